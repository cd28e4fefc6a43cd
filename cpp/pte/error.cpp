// SPDX-License-Identifier: Apache-2.0
#include "error.h"

#include <cstdio>

namespace etvk_guard {

std::string format_list(const char* pattern, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, pattern, again);
  va_end(again);
  if (length <= 0) {
    return {};
  }
  std::string text(static_cast<size_t>(length) + 1, '\0');
  std::vsnprintf(text.data(), text.size(), pattern, arguments);
  text.pop_back();
  return text;
}

std::string format(const char* pattern, ...) {
  va_list arguments;
  va_start(arguments, pattern);
  std::string text = format_list(pattern, arguments);
  va_end(arguments);
  return text;
}

Error make_error(ErrorCode code, uint64_t offset, const char* pattern, ...) {
  Error error;
  error.code = code;
  error.where.offset = offset;
  va_list arguments;
  va_start(arguments, pattern);
  error.message = format_list(pattern, arguments);
  va_end(arguments);
  return error;
}

std::string excerpt(std::string_view text, size_t limit) {
  if (text.size() <= limit) {
    return std::string(text);
  }
  return std::string(text.substr(0, limit)) + "...";
}

std::string dims_text(const std::vector<int64_t>& dims) {
  constexpr size_t kShown = 16;
  std::string text = "[";
  for (size_t i = 0; i < dims.size() && i < kShown; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(dims[i]);
  }
  return text + (dims.size() > kShown ? ", ...]" : "]");
}

const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "bool";
    case DType::kUInt8:
      return "uint8";
    case DType::kInt8:
      return "int8";
    case DType::kInt32:
      return "int32";
    case DType::kFloat16:
      return "float16";
    case DType::kFloat32:
      return "float32";
    case DType::kFloat64:
      return "float64";
    case DType::kInt64:
      return "int64";
    case DType::kUnset:
      return "unset";
  }
  return "unknown dtype";
}

}  // namespace etvk_guard
