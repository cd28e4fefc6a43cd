// SPDX-License-Identifier: Apache-2.0
//
// What a norm must give, in float64, and how far a kernel may be from it.
#pragma once

#include <vector>

#include "norm_choose.h"
#include "tensor.h"

namespace etvk_guard::harness {

// A tensor's values as its dtype can hold them, width innermost, then height, channels and batch.
struct Values {
  Sizes sizes{};
  std::vector<float> data;
};

// What to normalise. A missing operand has no data.
struct NormInput {
  kernels::Norm norm;
  Values x;
  Values weight;
  Values shift;
  float epsilon;
};

struct NormReference {
  std::vector<double> out;
  std::vector<double> out_scale;  // of each element: the sum of the magnitudes of the terms that were added
  std::vector<double> mean;       // a row
  std::vector<double> mean_scale;
  std::vector<double> rstd;
};

NormReference reference(const NormInput& input);

// Allowed error relative to a value's scale: 1e-5 for float, 2e-3 for half.
double tolerance(kernels::Dtype dtype);

}  // namespace etvk_guard::harness
