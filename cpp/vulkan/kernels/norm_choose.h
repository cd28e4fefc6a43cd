// SPDX-License-Identifier: Apache-2.0
//
// Which kernel, with which local size and grid, for which problem on which device. Pure: plain values in and out.
#pragma once

#include <cstdint>

#include "norm_kernels.h"

namespace etvk_guard::kernels {

// What matters of a device (VkPhysicalDeviceLimits, VkPhysicalDeviceSubgroupProperties and the 16-bit storage feature).
struct DeviceLimits {
  std::uint32_t subgroup_size = 1;
  bool subgroup_arithmetic = false;  // VK_SUBGROUP_FEATURE_ARITHMETIC_BIT, in the compute stage
  bool storage_16bit = false;        // storageBuffer16BitAccess
  std::uint32_t max_threads = 128;   // maxComputeWorkGroupInvocations
  std::uint32_t max_size_x = 128;    // maxComputeWorkGroupSize[0] and [1]
  std::uint32_t max_size_y = 128;
  std::uint32_t max_groups_x = 65535;  // maxComputeWorkGroupCount[0] and [1]
  std::uint32_t max_groups_y = 65535;
};

// One norm. Sizes are (W, H, C, N), missing leading dimensions 1; the norm is over W.
struct NormProblem {
  Norm norm = Norm::kRms;
  Storage x_storage = Storage::kBuffer;
  Storage operand_storage = Storage::kBuffer;
  Dtype dtype = Dtype::kFloat;
  std::int32_t x_sizes[4] = {1, 1, 1, 1};
  OperandMode weight = OperandMode::kOneRow;
  OperandMode shift = OperandMode::kNone;
};

// All that is needed to run it, except the tensors and the push constants.
struct Plan {
  KernelKey key;
  SpecConstants spec;
  std::uint32_t local_size[2];
  std::uint32_t groups[3];  // workgroups; threads in all are groups * local_size
};

enum class PlanStatus : std::uint8_t {
  kOk,
  kEmpty,           // a size is 0 or less: there is nothing to run
  kNo16BitStorage,  // the kernel for this problem needs storageBuffer16BitAccess
  kTooManyRows,     // more workgroups than the device takes
};

// Sets `plan`, except where the status is not kOk.
PlanStatus choose(const NormProblem& problem, const DeviceLimits& device, Plan* plan) noexcept;

// The plan for the same tensors at other sizes, keeping `plan.spec`: for a pipeline whose specialisation is fixed but whose
// kernel, local size and grid may still change.
PlanStatus replan(const NormProblem& problem, const DeviceLimits& device, Plan* plan) noexcept;

// Sets `plan->key.access` for textures, where it depends on the rest of the plan.
void settle_access(const NormProblem& problem, Plan* plan) noexcept;

// Where a weight and shift that can be put anywhere are best. Texture units take a load of four floats in four turns on an
// NVIDIA GPU, and are needed for x; on Mesa's CPU driver there is no difference. GPUs with other subgroups (Adreno, Mali) keep
// the operands beside x, since none was at hand to measure.
Storage best_operand_storage(Storage x_storage, std::int32_t width, const DeviceLimits& device) noexcept;

bool needs_16bit_storage(const KernelKey& key) noexcept;

}  // namespace etvk_guard::kernels
