// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "program.h"
#include "reference.h"

namespace etvk_guard::harness {

// One check of one kernel. Operand sizes of nullopt mean that the operand is missing.
struct NormCase {
  kernels::Norm norm = kernels::Norm::kRms;
  kernels::Storage x_storage = kernels::Storage::kBuffer;
  kernels::Storage operand_storage = kernels::Storage::kBuffer;
  kernels::Dtype dtype = kernels::Dtype::kFloat;
  Sizes x{1, 1, 1, 1};
  std::optional<Sizes> weight;
  std::optional<Sizes> shift;
  bool subgroups = true;  // false: as on a device without subgroup arithmetic
  float magnitude = 1.0f;  // of x, roughly
  float offset = 0.0f;     // added to all of x
  // In place of what choose() gives, where set.
  std::optional<std::uint32_t> chunks;
  std::optional<std::uint32_t> threads;
  std::optional<std::uint32_t> units;
  std::optional<std::uint32_t> rows;
  std::optional<kernels::Early> early;
  std::optional<std::uint32_t> groups;  // in x, and 2 in y: a grid of two dimensions
  std::optional<std::uint32_t> split;   // groups in z
  std::optional<std::uint32_t> each;    // where the width makes the kernel one for whole rows
};

std::string describe(const NormCase& test);

// The plan for the case: choose()'s, with what the case overrides. nullopt if the device cannot run it (no 16-bit storage,
// a texture or buffer over its limits, a forced local size over its limits).
std::optional<kernels::Plan> plan_of(const NormCase& test, const DeviceInfo& device);

struct CaseResult {
  bool passed = false;
  std::string kernel;
  double worst_error = 0.0;  // largest error as a fraction of what is allowed
  std::string message;       // why it failed
};

// Runs the case on guarded, poisoned tensors and compares with the float64 reference.
CaseResult run_case(const Device& device, ProgramCache& programs, const NormCase& test, const kernels::Plan& plan);

}  // namespace etvk_guard::harness
