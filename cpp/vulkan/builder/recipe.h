// SPDX-License-Identifier: Apache-2.0
//
// What the builder does with a norm: the planner's legal form, with the kernel that carries it out. Pure: plain descriptions in and out, no
// ExecuTorch. graph_norm.cpp does what it says, graph_channel_norm.cpp for group and batch norms, which have no kernel of ours.
#pragma once

#include <cstdint>
#include <string>

#include <etvk_guard/plan.h>

#include "norm_choose.h"

namespace etvk_guard::vulkan {

// What is built into the graph for a norm. Also the keys of the status' "sites", by name().
enum class Path : uint8_t {
  kStock,        // the delegate's own builder, with the operands as they are
  kFusedRow,     // our kernel, one dispatch
  kFusedBatch,
  kFusedFull,
  kUnit,         // a norm without weight and bias
  kUnitThenOps,  // that, then a cast, a multiplication and an addition, as far as the plan asks for them; or no norm, but its plain ops
  kMoved,        // the delegate's own builder, between changes of rank or representation
  kRefused,      // message says why
};
inline constexpr int kPathCount = 8;
const char* name(Path path);

struct Recipe {
  Path path = Path::kRefused;
  NormPlan plan;         // with its steps for the operands
  bool our_norm = false; // the norm itself is our kernel; else (but for kStock) the delegate's, with unit weight and zero bias
  kernels::NormProblem problem;  // our_norm: as it is when the graph is built
  kernels::Plan kernel;          // our_norm
  std::string message;   // kRefused
};

// `device` null: our kernels cannot be used.
Recipe make_recipe(const NormSite& site, const kernels::DeviceLimits* device);

// Sizes (W, H, C, N) of up to four dimensions, as the kernels take them.
void set_whcn(const std::vector<int64_t>& dims, std::int32_t whcn[4]);

// Whether an operand still fits what the kernel was specialised for, after a resize: `operand` null where the mode is kNone.
bool still_fits(kernels::OperandMode mode, const std::int32_t x[4], const std::int32_t* operand);

// "float32 [2, 8, 64] texture width-packed, constant": for messages.
std::string describe(const TensorDesc& desc);

}  // namespace etvk_guard::vulkan
