// SPDX-License-Identifier: Apache-2.0
//
// How many bytes of the heap a piece of code has at a time: from malloc, new and the rest, as the sanitizer's runtime sees them.
// Without a sanitizer nothing is counted.
#pragma once

#include <cstddef>
#include <cstdint>

namespace etvk_guard::testing {

class Allocations {
 public:
  static bool counted();  // whether this build can count
  Allocations();
  uint64_t peak_bytes() const;  // since the latest one was made, in this thread

  // What a file of that size may have: 1 MB for each KB, and for the first one.
  static uint64_t allowed(size_t file_size);

 private:
  uint64_t before_;
};

}  // namespace etvk_guard::testing
