// SPDX-License-Identifier: Apache-2.0
//
// Bytes from files, names of files, and how they are shown: as the Python command line does it.
//
// Text in here is UTF-8 in which lone surrogates may stand as well (three bytes each), and is always well formed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace etvk_guard::tool {

// Text out of a program: what is not UTF-8 becomes "\xNN" (Python's "backslashreplace").
std::string file_text(std::string_view bytes);
// The name of a file: what is not UTF-8 becomes U+DC80 to U+DCFF (Python's "surrogateescape"), so that no two names are equal.
std::string path_text(std::string_view bytes);

// The code point at `*at`, which is moved past it. `text` is well formed.
uint32_t next_code_point(std::string_view text, size_t* at);

// Text for a terminal: whatever is not printable is escaped, as "\x1b" or "\u202e".
std::string plain(std::string_view text);

std::string count_text(size_t number, const char* noun);  // "1 finding", "2 findings"
std::string thousands(uint64_t number);                   // "12,345"
std::string real_text(double value);                      // Python's repr: "1e-05", "0.5", "1.0", "inf"
std::string hex(const uint8_t* bytes, size_t size);

}  // namespace etvk_guard::tool
