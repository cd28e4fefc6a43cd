// SPDX-License-Identifier: Apache-2.0
#include "json.h"

#include <cmath>
#include <cstdio>

namespace etvk_guard::harness {

std::string json_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string json_number(double value) {
  if (!std::isfinite(value)) {
    return "null";
  }
  char text[32];
  std::snprintf(text, sizeof(text), "%.10g", value);
  return text;
}

JsonObject& JsonObject::add(const std::string& name, const std::string& text) {
  return add_json(name, json_string(text));
}

JsonObject& JsonObject::add(const std::string& name, double value) { return add_json(name, json_number(value)); }

JsonObject& JsonObject::add(const std::string& name, bool value) { return add_json(name, value ? "true" : "false"); }

JsonObject& JsonObject::add_json(const std::string& name, const std::string& json) {
  members_.emplace_back(name, json);
  return *this;
}

std::string JsonObject::text() const {
  std::string out = "{";
  for (const auto& [name, json] : members_) {
    out += (out.size() > 1 ? ", " : "") + json_string(name) + ": " + json;
  }
  return out + "}";
}

std::string json_array(const std::vector<std::string>& items) {
  std::string out = "[";
  for (const std::string& item : items) {
    out += (out.size() > 1 ? ",\n  " : "\n  ") + item;
  }
  return out + (items.empty() ? "]" : "\n]");
}

}  // namespace etvk_guard::harness
