// SPDX-License-Identifier: Apache-2.0
#include "control.h"

#include <cctype>

namespace etvk_guard::vulkan {
namespace {

bool is_off(const char* setting) {
  std::string lower = setting == nullptr ? "" : setting;
  for (char& c : lower) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return lower == "off" || lower == "0";
}

std::string quoted(const std::string& text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += std::string("\\u00") + kHex[byte >> 4] + kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

const char* json(bool value) { return value ? "true" : "false"; }

}  // namespace

const char* name(State state) {
  switch (state) {
    case State::kActive: return "active";
    case State::kInactive: return "inactive";
    case State::kDisabled: return "disabled";
    case State::kRefused: return "refused";
  }
  return "inactive";
}

State Control::set(State state, const std::string& message, bool is_error) {
  message_ = message;
  state_.store(state, std::memory_order_release);
  hooks_.log(("etvk-guard: " + message).c_str(), is_error);
  return state;
}

State Control::start(const char* setting) {
  if (is_off(setting)) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return set(State::kDisabled, "ETVK_GUARD=off: the delegate's own norm builders stay in effect", false);
  }
  return install();
}

State Control::install() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_active()) {
    return State::kActive;
  }
  if (const std::string mismatch = hooks_.find_mismatch(); !mismatch.empty()) {
    return set(State::kRefused, mismatch, true);
  }
  hooks_.put_ours();
  for (const char* op : kOps) {
    if (!hooks_.is_ours(op)) {
      return set(State::kRefused, std::string("the delegate's registry does not answer with our builder for ") + op, true);
    }
  }
  return set(State::kActive, "our norm builders are in effect in the Vulkan delegate", false);
}

State Control::uninstall() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!is_active()) {
    return state_.load();
  }
  return set(State::kInactive, "removed: the delegate's own norm builders are in effect", false);
}

void Control::refuse(const std::string& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  set(State::kRefused, why, true);
}

std::string Control::status() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string text = std::string("{\"state\":\"") + name(state_.load()) + "\",\"message\":" + quoted(message_);
  text += ",\"built\":{\"executorch\":" + quoted(facts_.executorch_version) + ",\"event_tracer\":" + json(facts_.event_tracer) +
          ",\"compute_graph_bytes\":" + std::to_string(facts_.compute_graph_bytes) + "},\"kernels\":" + std::to_string(facts_.kernels);
  text += ",\"sites\":{";
  for (size_t i = 0; i < sites_.size(); ++i) {
    text += (i == 0 ? "" : ",") + quoted(vulkan::name(static_cast<Path>(i))) + ":" + std::to_string(sites_[i].load());
  }
  text += "},\"ops\":{";
  for (size_t i = 0; i < kOps.size(); ++i) {
    text += (i == 0 ? "" : ",") + quoted(kOps[i]) + ":" + json(is_active() && hooks_.is_ours(kOps[i]));
  }
  return text + "}}";
}

}  // namespace etvk_guard::vulkan
