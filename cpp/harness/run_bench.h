// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench.h"

namespace etvk_guard::harness {

struct BenchOptions {
  bool json = false;
  bool sweep = false;  // time every sensible way to dispatch, not only the chosen one
  bool quick = false;  // the first four shapes only
  std::string only;    // only norms whose line holds this text: "half texture3d 2048x2048"
  TimingOptions timing;
  std::vector<std::pair<std::int32_t, std::int32_t>> shapes;  // rows and width; the built-in list where empty
};

// Times the kernels on one device and prints what it found.
void run_bench(const Instance& instance, VkPhysicalDevice physical, const BenchOptions& options);

}  // namespace etvk_guard::harness
