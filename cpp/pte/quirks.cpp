// SPDX-License-Identifier: Apache-2.0
#include "quirks.h"

#include <string_view>

#include "error.h"
#include "operands.h"
#include "verify.h"

namespace etvk_guard {
namespace {

constexpr std::string_view kConvolutions[] = {"aten.convolution.default", "conv_with_clamp.default",
                                              "et_vk.conv_with_clamp.default"};
constexpr uint32_t kWeight = 1, kTransposed = 6, kGroups = 8, kFewestArgs = 10;
constexpr size_t kImageRank = 4;
constexpr int64_t kTexel = 4;

constexpr std::string_view kReductions[] = {"aten.mean.dim",     "aten.sum.dim_IntList",     "aten.amax.default", "aten.amin.default",
                                            "aten._softmax.default", "aten._log_softmax.default", "aten.var.dim"};
constexpr uint32_t kReduced = 1;  // a dim, or a list of them

// Whether a dim is the second of four.
bool is_channels(int64_t dim) { return dim == 1 || dim == -3; }

bool names_channels(const GraphView& graph, int32_t id) {
  if (const vk::Int* dim = graph.value(id).value_as_Int(); dim != nullptr) {
    return is_channels(dim->int_val());
  }
  const vk::IntList* list = graph.value(id).value_as_IntList();
  for (uint32_t i = 0; list != nullptr && i < count(list->items()); ++i) {
    if (is_channels(list->items()->Get(i))) {
      return true;
    }
  }
  return false;
}

bool is_convolution(const GraphView& graph, uint32_t op_index) {
  bool found = false;
  for (const std::string_view name : kConvolutions) {
    found = found || graph.op_name(op_index) == name;
  }
  return found && graph.arg_count(op_index) >= kFewestArgs;
}

}  // namespace

std::string wrong_groups(const GraphView& graph, uint32_t op_index) {
  if (!is_convolution(graph, op_index)) {
    return {};
  }
  const vk::Int* given = graph.value(graph.arg(op_index, kGroups)).value_as_Int();
  const vk::Bool* transposed = graph.value(graph.arg(op_index, kTransposed)).value_as_Bool();
  const TensorDesc weight = graph.describe(graph.arg(op_index, kWeight));
  const int64_t groups = given == nullptr ? 1 : given->int_val();
  if (groups <= 1 || weight.dims.size() != kImageRank) {
    return {};
  }
  const std::string what = format("groups is %lld, weight is %s", static_cast<long long>(groups), dims_text(weight.dims).c_str());
  if (transposed != nullptr && transposed->bool_val()) {
    return what + "; the shader of a transposed convolution knows no groups";
  }
  const int64_t made = weight.dims[0], read = weight.dims[1];
  if (made == groups && read == 1) {
    return {};  // depthwise: a shader of its own
  }
  if (weight.dims[2] == 1 && weight.dims[3] == 1) {
    return what + "; the shader for kernels of 1 by 1 knows no groups";
  }
  const bool whole = made % groups == 0 && made / groups % kTexel == 0 && read % kTexel == 0;
  return whole ? std::string() : what + "; the channels of a group are no multiple of four on both sides";
}

std::string reduced_channels(const GraphView& graph, uint32_t op_index) {
  bool found = false;
  for (const std::string_view name : kReductions) {
    found = found || graph.op_name(op_index) == name;
  }
  if (!found || graph.arg_count(op_index) <= kReduced + 1) {
    return {};
  }
  const TensorDesc x = graph.describe(graph.arg(op_index, 0));
  if (x.dims.size() != kImageRank || x.dims[0] <= 1 || !names_channels(graph, graph.arg(op_index, kReduced))) {
    return {};
  }
  return "the second dim of " + dims_text(x.dims) + " is reduced, and there are several batches";
}

bool is_misplaced(const TensorDesc& indices, const TensorDesc& out) {
  const bool other = storage_of(indices) == Storage::kTexture3D && layout_of(indices) == Layout::kChannelsPacked;
  return !other && is_tensor(out) && storage_of(out) == Storage::kTexture3D && layout_of(out) != Layout::kWidthPacked;
}

}  // namespace etvk_guard
