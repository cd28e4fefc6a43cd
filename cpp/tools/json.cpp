// SPDX-License-Identifier: Apache-2.0
#include "json.h"

#include <cmath>
#include <cstdio>
#include <string>

#include "text.h"

namespace etvk_guard::tool {
namespace {

void append_unit(uint32_t unit, std::string* into) {
  char text[8];
  std::snprintf(text, sizeof(text), "\\u%04x", unit);
  *into += text;
}

void append_escaped(uint32_t code, std::string* into) {
  constexpr std::string_view kNamed = "\"\\\b\f\n\r\t";
  constexpr std::string_view kNames = "\"\\bfnrt";
  const size_t named = code < 0x80 ? kNamed.find(static_cast<char>(code)) : std::string_view::npos;
  if (named != std::string_view::npos) {
    *into += '\\';
    *into += kNames[named];
  } else if (code >= 0x20 && code < 0x7F) {
    *into += static_cast<char>(code);
  } else if (code < 0x10000) {
    append_unit(code, into);
  } else {
    append_unit(0xD800 + ((code - 0x10000) >> 10), into);
    append_unit(0xDC00 + (code & 0x3FF), into);
  }
}

}  // namespace

void JsonWriter::new_line() { out_.write("\n" + std::string(2 * has_items_.size(), ' ')); }

void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (!has_items_.empty()) {
    out_.write(has_items_.back() ? "," : "");
    has_items_.back() = true;
    new_line();
  }
}

void JsonWriter::begin(char bracket) {
  scalar({&bracket, 1});
  has_items_.push_back(false);
}

void JsonWriter::end(char bracket) {
  const bool had_items = has_items_.back();
  has_items_.pop_back();
  if (had_items) {
    new_line();
  }
  out_.write({&bracket, 1});
}

void JsonWriter::quoted(std::string_view text) {
  std::string made = "\"";
  for (size_t at = 0; at < text.size();) {
    append_escaped(next_code_point(text, &at), &made);
  }
  out_.write(made + "\"");
}

void JsonWriter::key(std::string_view text) {
  separate();
  quoted(text);
  out_.write(": ");
  after_key_ = true;
}

void JsonWriter::scalar(std::string_view text) {
  separate();
  out_.write(text);
}

void JsonWriter::string(std::string_view text) {
  separate();
  quoted(text);
}

void JsonWriter::integer(int64_t value) { scalar(std::to_string(value)); }
void JsonWriter::natural(uint64_t value) { scalar(std::to_string(value)); }
void JsonWriter::boolean(bool value) { scalar(value ? "true" : "false"); }
void JsonWriter::null() { scalar("null"); }

void JsonWriter::real(double value) {
  if (std::isfinite(value)) {
    scalar(real_text(value));
  } else {
    string(real_text(value));
  }
}

}  // namespace etvk_guard::tool
