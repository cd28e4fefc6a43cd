// SPDX-License-Identifier: Apache-2.0
//
// JSON as Python's json.dump(indent=2) writes it: ASCII, one item a line, and numbers that are not finite as strings.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "output.h"

namespace etvk_guard::tool {

class JsonWriter {
 public:
  explicit JsonWriter(Output* out) : out_(*out) {}

  void begin_object() { begin('{'); }
  void end_object() { end('}'); }
  void begin_array() { begin('['); }
  void end_array() { end(']'); }
  void key(std::string_view text);  // before each value of an object

  void string(std::string_view text);  // as in text.h
  void integer(int64_t value);
  void natural(uint64_t value);
  void real(double value);
  void boolean(bool value);
  void null();

  void finish() { out_.write("\n"); }

 private:
  void begin(char bracket);
  void end(char bracket);
  void separate();  // what comes before an item
  void scalar(std::string_view text);
  void new_line();
  void quoted(std::string_view text);

  Output& out_;
  std::vector<bool> has_items_;  // of each object or array that is open
  bool after_key_ = false;
};

}  // namespace etvk_guard::tool
