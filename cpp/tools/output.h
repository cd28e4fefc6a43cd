// SPDX-License-Identifier: Apache-2.0
//
// What the program prints: buffered, to a file descriptor. The first failure is kept, and ends the writing.
#pragma once

#include <string>
#include <string_view>

namespace etvk_guard::tool {

class Output {
 public:
  explicit Output(int descriptor) : descriptor_(descriptor) {}
  ~Output() { flush(); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void write(std::string_view bytes);
  // False after any failure; `failure` is then its errno.
  bool flush();
  int failure() const { return failure_; }

 private:
  int descriptor_;
  int failure_ = 0;
  std::string buffer_;
};

}  // namespace etvk_guard::tool
