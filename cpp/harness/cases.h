// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "norm_case.h"

namespace etvk_guard::harness {

// The table of checks. `subgroup_size` is the device's, for the cases that force a local size.
std::vector<NormCase> all_cases(std::uint32_t subgroup_size);

}  // namespace etvk_guard::harness
