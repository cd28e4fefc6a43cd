// SPDX-License-Identifier: Apache-2.0
#include "utf8.h"

#include <algorithm>

namespace etvk_guard::tool {
namespace {

bool is_continuation(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

// Bytes of the UTF-8 sequence that the text starts with; 0: it starts with none (a stray byte, an overlong form, a surrogate).
size_t sequence_length(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  const size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (length == 0 || length > text.size() || !std::all_of(text.begin() + 1, text.begin() + length, is_continuation)) {
    return 0;
  }
  const uint8_t second = length > 1 ? static_cast<uint8_t>(text[1]) : 0;
  const bool wrong = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) || (lead == 0xF0 && second < 0x90) ||
                     (lead == 0xF4 && second > 0x8F);
  return wrong ? 0 : length;
}

// Sound sequences as they are, every other byte by `replace`.
template <typename Replace>
std::string decode(std::string_view bytes, Replace replace) {
  std::string made;
  made.reserve(bytes.size());
  while (!bytes.empty()) {
    const size_t length = sequence_length(bytes);
    if (length == 0) {
      replace(static_cast<uint8_t>(bytes[0]), &made);
    } else {
      made += bytes.substr(0, length);
    }
    bytes.remove_prefix(std::max<size_t>(length, 1));
  }
  return made;
}

}  // namespace

std::string file_text(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  return decode(bytes, [&](uint8_t byte, std::string* into) {
    *into += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 0xF]};
  });
}

std::string path_text(std::string_view bytes) {
  return decode(bytes, [](uint8_t byte, std::string* into) {  // U+DC00 + byte, in three bytes
    *into += '\xED';
    *into += static_cast<char>(0xB0 | (byte >> 6));
    *into += static_cast<char>(0x80 | (byte & 0x3F));
  });
}

uint32_t next_code_point(std::string_view text, size_t* at) {
  const auto lead = static_cast<uint8_t>(text[(*at)++]);
  uint32_t code = lead < 0x80 ? lead : lead < 0xE0 ? lead & 0x1Fu : lead < 0xF0 ? lead & 0x0Fu : lead & 0x07u;
  while (*at < text.size() && is_continuation(text[*at])) {
    code = (code << 6) | (static_cast<uint8_t>(text[(*at)++]) & 0x3Fu);
  }
  return code;
}

}  // namespace etvk_guard::tool
