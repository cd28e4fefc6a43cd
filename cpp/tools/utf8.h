// SPDX-License-Identifier: Apache-2.0
//
// Bytes from files and names of files, as text.
//
// Text in here is UTF-8 in which lone surrogates may stand as well (three bytes each), and is always well formed.
#pragma once

#include <cstddef>
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

}  // namespace etvk_guard::tool
