// SPDX-License-Identifier: Apache-2.0
//
// Making errors and the words in them.
#pragma once

#include <etvk_guard/plan.h>
#include <etvk_guard/pte.h>

#include <cstdarg>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace etvk_guard {

// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);
std::string format_list(const char* pattern, va_list arguments);

// An error at a file offset (kNoOffset: nowhere). `pattern` is printf's.
[[gnu::format(printf, 3, 4)]] Error make_error(ErrorCode code, uint64_t offset, const char* pattern, ...);

inline std::string number(uint64_t value) { return std::to_string(value); }

// Bytes from a file for a message: at most `limit` of them, the rest as "...". They may be no UTF-8: the caller's caller
// decides how to show them.
std::string excerpt(std::string_view text, size_t limit = 80);

std::string dims_text(const std::vector<int64_t>& dims);  // "[1, 1, 64]"
const char* dtype_name(DType dtype);                      // "float32"; "unset" or "unknown dtype" otherwise

}  // namespace etvk_guard
