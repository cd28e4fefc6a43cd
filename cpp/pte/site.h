// SPDX-License-Identifier: Apache-2.0
//
// From an op of a VkGraph to the planner's description of a norm.
#pragma once

#include <etvk_guard/plan.h>

#include <cstdint>

#include "graph.h"

namespace etvk_guard {

inline constexpr const char* kRmsNorm = "et_vk.rms_norm.default";
inline constexpr const char* kLayerNorm = "aten.native_layer_norm.default";
inline constexpr const char* kGroupNorm = "aten.native_group_norm.default";
inline constexpr const char* kBatchNorm = "aten._native_batch_norm_legit_no_training.default";

// Positions in OperatorCall.args; -1: the op has no such argument.
struct NormArgs {
  NormKind kind = NormKind::kRms;
  uint32_t count = 0;  // arguments that the op must have
  int32_t x = 0, normalized_shape = -1, weight = 1, bias = -1, mean = -1, variance = -1, eps = -1, out = 3;
};

// The layout of a norm's arguments; nullptr if the op is no norm that we know, or has another number of arguments.
const NormArgs* norm_args(const GraphView& graph, uint32_t op_index);

// The number that a norm adds to the variance, where NormArgs says where it is. False: it is no number.
bool norm_eps(const GraphView& graph, uint32_t op_index, double* into);

// `op_index` must be one for which norm_args() is not null. A value that is no tensor has Kind::kScalar (or kNone) and no dims;
// so the planner refuses a site whose x or out is not a tensor.
NormSite make_site(const GraphView& graph, uint32_t op_index);

}  // namespace etvk_guard
