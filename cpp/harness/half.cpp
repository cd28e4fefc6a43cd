// SPDX-License-Identifier: Apache-2.0
#include "half.h"

#include <cmath>

namespace etvk_guard::harness {
namespace {

constexpr int kMantissaBits = 10;
constexpr int kMinExponent = -14;
constexpr int kMaxExponent = 15;
constexpr std::uint16_t kInfinity = 0x7c00;
constexpr std::uint16_t kNan = 0x7e00;

}  // namespace

std::uint16_t half_from_float(float value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::fabs(static_cast<double>(value));
  if (std::isnan(value)) {
    return static_cast<std::uint16_t>(sign | kNan);
  }
  if (magnitude == 0.0) {
    return sign;
  }
  int exponent = std::isinf(value) ? kMaxExponent + 1 : std::ilogb(magnitude);
  exponent = exponent < kMinExponent ? kMinExponent : exponent;
  if (exponent > kMaxExponent) {
    return static_cast<std::uint16_t>(sign | kInfinity);
  }
  // In units of the last place, subnormals included; a carry moves into the exponent by itself.
  const auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, kMantissaBits - exponent)));
  const int bits = ((exponent - kMinExponent) << kMantissaBits) + units;
  return static_cast<std::uint16_t>(sign | (bits > kInfinity ? kInfinity : bits));
}

float float_from_half(std::uint16_t bits) {
  const int exponent = (bits >> kMantissaBits) & 0x1f;
  const int mantissa = bits & 0x3ff;
  double magnitude = 0.0;
  if (exponent == 0x1f) {
    magnitude = mantissa == 0 ? HUGE_VAL : std::nan("");
  } else if (exponent == 0) {
    magnitude = std::ldexp(mantissa, kMinExponent - kMantissaBits);
  } else {
    magnitude = std::ldexp(mantissa + 1024, exponent + kMinExponent - 1 - kMantissaBits);
  }
  return static_cast<float>((bits & 0x8000) != 0 ? -magnitude : magnitude);
}

}  // namespace etvk_guard::harness
