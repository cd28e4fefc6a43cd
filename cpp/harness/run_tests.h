// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "device.h"

namespace etvk_guard::harness {

struct TestOptions {
  bool json = false;
  bool verbose = false;  // a line for each case
  std::string only;      // only cases whose description holds this text
};

// Runs the whole table on one device and prints the outcome. True if every case passed, every kernel that the device can
// run was run, and the validation layer (where it is on) was silent.
bool run_tests(const Instance& instance, VkPhysicalDevice physical, const TestOptions& options);

}  // namespace etvk_guard::harness
