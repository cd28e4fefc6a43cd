// SPDX-License-Identifier: Apache-2.0
//
// How text and numbers are shown: as the Python command line does it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "utf8.h"

namespace etvk_guard::tool {

// Text for a terminal: whatever is not printable is escaped, as "\x1b" or "\u202e".
std::string plain(std::string_view text);

std::string count_text(size_t number, const char* noun);  // "1 finding", "2 findings"
std::string thousands(uint64_t number);                   // "12,345"
std::string real_text(double value);                      // Python's repr: "1e-05", "0.5", "1.0", "inf"
std::string hex(const uint8_t* bytes, size_t size);

}  // namespace etvk_guard::tool
