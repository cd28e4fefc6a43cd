// SPDX-License-Identifier: Apache-2.0
#include "graph_values.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

namespace etvk_guard::vulkan {

namespace utils = vkcompute::utils;
namespace vkapi = vkcompute::vkapi;

namespace {

utils::StorageType storage_type(Storage storage) { return storage == Storage::kBuffer ? utils::kBuffer : utils::kTexture3D; }

utils::GPUMemoryLayout memory_layout(Layout layout) {
  return layout == Layout::kChannelsPacked ? utils::kChannelsPacked
         : layout == Layout::kHeightPacked ? utils::kHeightPacked
                                           : utils::kWidthPacked;
}

Layout layout_of(ComputeGraph& graph, ValueRef ref) {
  const bool is_buffer = graph.is_buffer_storage(ref);
  if (is_buffer && graph.is_contiguous_buffer_tensor(ref)) {
    return Layout::kWidthPacked;
  }
  if (!is_buffer && !graph.has_standard_axis_map(ref)) {
    return kOtherLayout;
  }
  switch (graph.estimate_memory_layout_of(ref)) {
    case utils::kWidthPacked: return is_buffer ? kOtherLayout : Layout::kWidthPacked;
    case utils::kHeightPacked: return Layout::kHeightPacked;
    case utils::kChannelsPacked: return Layout::kChannelsPacked;
    default: return kOtherLayout;
  }
}

Storage storage_of(ComputeGraph& graph, ValueRef ref) {
  switch (graph.storage_type_of(ref)) {
    case utils::kBuffer: return Storage::kBuffer;
    case utils::kTexture3D: return Storage::kTexture3D;
    default: return Storage::kTexture2D;
  }
}

void resize_like(ComputeGraph* graph, const std::vector<vkcompute::ArgGroup>& args, const Refs&) {
  graph->virtual_resize(args.at(0).refs.at(0), graph->sizes_of(args.at(1).refs.at(0)));
}

}  // namespace

DType dtype_of(ComputeGraph& graph, ValueRef ref) {
  switch (graph.dtype_of(ref)) {
    case vkapi::kBool: return DType::kBool;
    case vkapi::kByte: return DType::kUInt8;
    case vkapi::kChar: return DType::kInt8;
    case vkapi::kInt: return DType::kInt32;
    case vkapi::kLong: return DType::kInt64;
    case vkapi::kHalf: return DType::kFloat16;
    case vkapi::kFloat: return DType::kFloat32;
    case vkapi::kDouble: return DType::kFloat64;
    default: return DType::kUnset;
  }
}

vkapi::ScalarType scalar_type(DType dtype) { return dtype == DType::kFloat16 ? vkapi::kHalf : vkapi::kFloat; }

TensorDesc describe_value(ComputeGraph& graph, ValueRef ref) {
  TensorDesc desc;
  if (ref == kDummyValueRef || graph.val_is_none(ref)) {
    return desc;
  }
  if (graph.val_is_tensor(ref)) {
    desc.kind = Kind::kRuntime;
    desc.storage = storage_of(graph, ref);
    desc.layout = layout_of(graph, ref);
  } else if (graph.val_is_tref(ref)) {
    const auto& inputs = graph.inputs();
    const bool is_input = std::any_of(inputs.begin(), inputs.end(), [ref](const auto& input) { return input.value == ref; });
    desc.kind = is_input ? Kind::kMutable : Kind::kConstant;
  } else {
    desc.kind = Kind::kScalar;
    return desc;
  }
  desc.dtype = dtype_of(graph, ref);
  desc.dims = graph.sizes_of(ref);
  return desc;
}

void add_op(ComputeGraph& graph, const char* name, const Refs& args) { VK_GET_OP_FN(name)(graph, args); }

void add_cast(ComputeGraph& graph, ValueRef in, ValueRef out) {
  const ValueRef none = graph.add_none();
  if (graph.is_buffer_storage(in)) {
    add_op(graph, "dim_order_ops._to_dim_order_copy.default", {in, none, none, none, none, none, none, out});
    return;
  }
  add_op(graph, "aten._to_copy.default", {in, none, none, none, none, none, none, out});
  // Between textures of float and half that is a blit, which does not pass a new size on.
  graph.execute_nodes().emplace_back(
      new vkcompute::ExecuteNode(resize_like, {}, {{out, vkapi::kWrite}, {in, vkapi::kRead}}, "etvk_guard_resize"));
}

void add_clone(ComputeGraph& graph, ValueRef in, ValueRef out) { add_op(graph, "aten.clone.default", {in, graph.add_none(), out}); }

ValueRef add_filled_tref(ComputeGraph& graph, const std::vector<int64_t>& dims, DType dtype, bool ones) {
  const auto count = static_cast<size_t>(std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()));
  const size_t size = count * (dtype == DType::kFloat16 ? 2 : 4);
  auto* data = new uint8_t[size]();
  for (size_t i = 0; ones && i < count; ++i) {
    const uint16_t half = 0x3c00;
    const float single = 1.0f;
    dtype == DType::kFloat16 ? std::memcpy(data + 2 * i, &half, 2) : std::memcpy(data + 4 * i, &single, 4);
  }
  const auto release = [](void*, void* memory, size_t) { delete[] static_cast<uint8_t*>(memory); };
  return graph.add_tensorref(dims, scalar_type(dtype), executorch::runtime::FreeableBuffer(data, size, release));
}

ValueRef Temporaries::add(const std::vector<int64_t>& dims, DType dtype, Storage storage, Layout layout) {
  all_.emplace_back(graph_, dims, scalar_type(dtype), storage_type(storage), memory_layout(layout));
  return all_.back();
}

ValueRef prepare(ComputeGraph& graph, Temporaries& temporaries, ValueRef operand, const TensorDesc& desc, const OperandSteps& steps) {
  if (!steps.used) {
    return kDummyValueRef;
  }
  if (steps.prepack) {
    operand = vkcompute::prepack_standard(graph, operand, storage_type(steps.storage), memory_layout(steps.layout));
  }
  if (steps.cast) {
    const Storage storage = steps.prepack ? steps.storage : desc.storage;
    const Layout layout = steps.prepack ? steps.layout : desc.layout;
    const ValueRef cast = temporaries.add(desc.dims, steps.dtype, storage, layout);
    add_cast(graph, operand, cast);
    operand = cast;
  }
  if (steps.relayout) {
    const ValueRef moved = temporaries.add(desc.dims, steps.dtype, steps.storage, steps.layout);
    add_clone(graph, operand, moved);
    operand = moved;
  }
  if (!steps.view.empty()) {
    const ValueRef viewed = temporaries.add(steps.view, steps.dtype, steps.storage, steps.view_layout);
    add_op(graph, "aten.view_copy.default", {operand, graph.add_scalar_list(std::vector<int64_t>(steps.view)), viewed});
    operand = viewed;
  }
  return operand;
}

}  // namespace etvk_guard::vulkan
