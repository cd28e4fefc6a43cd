// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace etvk_guard::harness {

// IEEE binary16 from float32, rounded to nearest even; and back, exactly.
std::uint16_t half_from_float(float value);
float float_from_half(std::uint16_t bits);

}  // namespace etvk_guard::harness
