// SPDX-License-Identifier: Apache-2.0
//
// What ET-VK's ops ask of their tensors comes from its sources Convolution.cpp, Pad.cpp and BinaryOp.cpp.
#include "plan_call.h"

#include <etvk_guard/contract.h>

#include <algorithm>

#include "convolution.h"
#include "error.h"
#include "operands.h"
#include "quirks.h"

namespace etvk_guard {
namespace {

std::string what(const char* label, const TensorDesc& desc) {
  return format("%s is %s %s", label, dtype_name(desc.dtype), dims_text(desc.dims).c_str());
}

void plan_numbers(const GraphView& graph, uint32_t op_index, CallPlan* plan) {
  const OpInfo* info = find_op(graph.op_name(op_index));
  for (uint32_t position = 0; info != nullptr && position < 32 && position + 1 < graph.arg_count(op_index); ++position) {
    const vk::Double* given = graph.value(graph.arg(op_index, position)).value_as_Double();
    if ((info->integers_mask >> position & 1u) == 0 || given == nullptr) {
      continue;
    }
    const double number = given->double_val();
    // Also false for what is no number. No size or count is larger.
    if (!(number >= -kMaxSize && number <= kMaxSize) || static_cast<double>(static_cast<int64_t>(number)) != number) {
      continue;
    }
    plan->changes.push_back({position, format("argument %u", position), false, {static_cast<int64_t>(number)}});
  }
}

void plan_lists(const GraphView& graph, uint32_t op_index, CallPlan* plan) {
  for (const ShortList& list : short_lists(graph, op_index)) {
    if (list.known) {
      plan->changes.push_back({list.position, list.name, true, {list.numbers[0], list.numbers[1]}});
    }
  }
}

void plan_gather(const GraphView& graph, uint32_t op_index, CallPlan* plan) {
  if (int64_t dim = 0; gathers_from_the_end(graph, op_index, &dim) && dim >= 0) {
    plan->changes.push_back({kGatherDim, "dim", false, {dim}});
  }
}

std::string refusal_of_pad(const TensorDesc& x, const TensorDesc& out, const int64_t padding[2], TensorDesc* padded) {
  const auto is_image = [](const TensorDesc& desc) {
    return desc.kind == Kind::kRuntime && storage_of(desc) == Storage::kTexture3D && layout_of(desc) == Layout::kChannelsPacked &&
           desc.dims.size() == kMaxRank && count_elements(desc.dims) > 0 && is_float(desc.dtype);
  };
  if (!is_image(x) || !is_image(out) || x.dtype != out.dtype) {
    return what("the input", x) + ", " + what("the result", out) + ": they are not two channels-packed textures of one kind";
  }
  *padded = x;
  for (size_t i = 0; i < 2; ++i) {
    int64_t& size = padded->dims[2 + i];
    if (padding[i] < 0 || padding[i] > kMaxTextureSide || (size += 2 * padding[i]) > kMaxTextureSide) {
      return what("the input", x) + ", which does not fit a texture when it is padded";
    }
  }
  return count_elements(padded->dims) > 0 ? "" : what("the input", x) + ", which does not fit a texture when it is padded";
}

void plan_pad(const GraphView& graph, uint32_t op_index, const TensorDesc& x, const TensorDesc& out, CallPlan* plan) {
  Convolution call;
  int64_t padding[2];
  if (!read_convolution(graph, op_index, &call) || cut_kernel(call).empty() || !read_pair(call.padding, padding)) {
    return;
  }
  plan->pad_refusal = refusal_of_pad(x, out, padding, &plan->padded);
  plan->pads = plan->pad_refusal.empty();
  plan->pad = {padding[1], padding[1], padding[0], padding[0]};
}

void plan_comparison(const GraphView& graph, uint32_t op_index, const TensorDesc& x, const TensorDesc& out, CallPlan* plan) {
  if (!compares_integers(graph, op_index)) {
    return;
  }
  const TensorDesc other = graph.describe(graph.arg(op_index, 1));
  const bool usable = x.dtype == DType::kInt32 && other.dtype == DType::kInt32 && out.kind == Kind::kRuntime && is_plain(out) &&
                      out.dtype == DType::kBool && count_elements(out.dims) > 0 && !out.dims.empty();
  plan->compares = usable;
  plan->result = out;
  plan->compare_refusal = usable ? "" : what("self", x) + ", " + what("other", other) + ", " + what("the result", out) +
                                            ": only int32 values with dims are compared";
}

}  // namespace

bool CallPlan::settles(FindingCode code, const std::string& argument) const {
  switch (code) {
    case FindingCode::kNumberType:
    case FindingCode::kArgumentIgnored:
    case FindingCode::kShortList:
    case FindingCode::kNegativeDim:
      return std::any_of(changes.begin(), changes.end(), [&](const Change& change) { return change.argument == argument; });
    case FindingCode::kDepthwiseEdge:
      return pads;
    case FindingCode::kIntegerEquality:
      return compares;
    default:
      return false;
  }
}

std::string CallPlan::refusal_of(FindingCode code) const {
  return code == FindingCode::kDepthwiseEdge ? pad_refusal : code == FindingCode::kIntegerEquality ? compare_refusal : "";
}

CallPlan plan_call(const GraphView& graph, uint32_t op_index, const TensorDesc& x, const TensorDesc& out) {
  CallPlan plan;
  plan_numbers(graph, op_index, &plan);
  plan_lists(graph, op_index, &plan);
  plan_gather(graph, op_index, &plan);
  plan_pad(graph, op_index, x, out, &plan);
  plan_comparison(graph, op_index, x, out, &plan);
  return plan;
}

}  // namespace etvk_guard
