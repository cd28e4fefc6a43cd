// SPDX-License-Identifier: Apache-2.0
//
// What every builder does with the values of a ComputeGraph: describes them, makes new ones, adds the delegate's own ops.
#pragma once

#include <deque>
#include <vector>

#include <etvk_guard/plan.h>

#include "versions.h"

namespace etvk_guard::vulkan {

using vkcompute::ComputeGraph;
using vkcompute::kDummyValueRef;
using vkcompute::ValueRef;
using Refs = std::vector<ValueRef>;

// A layout that is none of the three plain ones: strided buffers, permuted or int8-packed textures.
inline constexpr Layout kOtherLayout = static_cast<Layout>(100);

DType dtype_of(ComputeGraph& graph, ValueRef ref);
vkcompute::vkapi::ScalarType scalar_type(DType dtype);
// An absent value (kDummyValueRef, or None) has Kind::kNone.
TensorDesc describe_value(ComputeGraph& graph, ValueRef ref);

// Ops of the delegate, through its registry. add_cast: between float and half; add_clone: between storages and layouts.
void add_op(ComputeGraph& graph, const char* name, const Refs& args);
void add_cast(ComputeGraph& graph, ValueRef in, ValueRef out);
void add_clone(ComputeGraph& graph, ValueRef in, ValueRef out);
// A tref of ones or zeros, which lives as long as the graph needs it.
ValueRef add_filled_tref(ComputeGraph& graph, const std::vector<int64_t>& dims, DType dtype, bool ones);

// Makes temporaries that live until the builder returns, and then lend their memory to those of the next one.
class Temporaries {
 public:
  explicit Temporaries(ComputeGraph* graph) : graph_(graph) {}
  ValueRef add(const std::vector<int64_t>& dims, DType dtype, Storage storage, Layout layout);
  ValueRef add_like(const std::vector<int64_t>& dims, DType dtype, const TensorDesc& like) { return add(dims, dtype, like.storage, like.layout); }

 private:
  ComputeGraph* graph_;
  std::deque<vkcompute::TmpTensor> all_;
};

// The operand as the kernel or op after the norm wants it: prepacked, cast, in another representation, of other dims. kDummyValueRef if it takes no part.
ValueRef prepare(ComputeGraph& graph, Temporaries& temporaries, ValueRef operand, const TensorDesc& desc, const OperandSteps& steps);

}  // namespace etvk_guard::vulkan
