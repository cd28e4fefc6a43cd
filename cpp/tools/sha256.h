// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace etvk_guard::tool {

// FIPS 180-4, in hex.
std::string sha256(const uint8_t* data, size_t size);

}  // namespace etvk_guard::tool
