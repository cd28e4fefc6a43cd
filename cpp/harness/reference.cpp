// SPDX-License-Identifier: Apache-2.0
#include "reference.h"

#include <cmath>

namespace etvk_guard::harness {
namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

// Index into `operand` of the element that broadcasts to (w, h, c, n).
std::size_t broadcast_index(const Values& operand, std::int32_t w, std::int32_t h, std::int32_t c, std::int32_t n) {
  const Sizes& s = operand.sizes;
  const std::int32_t y = s[1] == 1 ? 0 : h;
  const std::int32_t z = s[2] == 1 ? 0 : c;
  const std::int32_t b = s[3] == 1 ? 0 : n;
  return at(w) + at(s[0]) * (at(y) + at(s[1]) * (at(z) + at(s[2]) * at(b)));
}

struct RowStats {
  double mean = 0.0;
  double mean_magnitude = 0.0;
  double rstd = 0.0;
};

RowStats row_stats(const NormInput& input, const float* row) {
  const auto width = at(input.x.sizes[0]);
  RowStats stats;
  for (std::size_t i = 0; i < width; ++i) {
    stats.mean_magnitude += std::fabs(static_cast<double>(row[i])) / static_cast<double>(width);
    if (input.norm == kernels::Norm::kLayer) {
      stats.mean += static_cast<double>(row[i]) / static_cast<double>(width);
    }
  }
  double square = 0.0;
  for (std::size_t i = 0; i < width; ++i) {
    const double d = static_cast<double>(row[i]) - stats.mean;
    square += d * d / static_cast<double>(width);
  }
  stats.rstd = 1.0 / std::sqrt(square + static_cast<double>(input.epsilon));
  return stats;
}

}  // namespace

NormReference reference(const NormInput& input) {
  const Sizes& s = input.x.sizes;
  NormReference result;
  result.out.reserve(input.x.data.size());
  result.out_scale.reserve(input.x.data.size());
  const float* row = input.x.data.data();
  for (std::int32_t n = 0; n < s[3]; ++n) {
    for (std::int32_t c = 0; c < s[2]; ++c) {
      for (std::int32_t h = 0; h < s[1]; ++h, row += s[0]) {
        const RowStats stats = row_stats(input, row);
        for (std::int32_t w = 0; w < s[0]; ++w) {
          const double x = static_cast<double>(row[w]);
          const double weight =
              input.weight.data.empty() ? 1.0 : static_cast<double>(input.weight.data[broadcast_index(input.weight, w, h, c, n)]);
          const double shift =
              input.shift.data.empty() ? 0.0 : static_cast<double>(input.shift.data[broadcast_index(input.shift, w, h, c, n)]);
          result.out.push_back((x - stats.mean) * stats.rstd * weight + shift);
          result.out_scale.push_back((std::fabs(x) + std::fabs(stats.mean)) * stats.rstd * std::fabs(weight) +
                                     std::fabs(shift));
        }
        result.mean.push_back(stats.mean);
        result.mean_scale.push_back(stats.mean_magnitude);
        result.rstd.push_back(stats.rstd);
      }
    }
  }
  return result;
}

double tolerance(kernels::Dtype dtype) { return dtype == kernels::Dtype::kHalf ? 2e-3 : 1e-5; }

}  // namespace etvk_guard::harness
