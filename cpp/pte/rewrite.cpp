// SPDX-License-Identifier: Apache-2.0
//
// A norm becomes, in this order and as far as the plan asks for it:
//   et_vk.prepack.default     the multiplier and the addend, if they are constants (once for all norms that use one)
//   the norm                  with ones for its weight and zeros for its bias
//   a cast                    of its result
//   casts and clones          of the multiplier, then aten.mul.Tensor
//   casts and clones          of the addend, then aten.add.Tensor
// Names and arguments of the ops are those that ET-VK registers in every release from 1.3 on.
#include "rewrite.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "bytes.h"
#include "error.h"
#include "graph_patch.h"
#include "operands.h"
#include "scratch.h"
#include "site.h"

namespace etvk_guard {
namespace {

constexpr const char* kPrepack = "et_vk.prepack.default";  // [constant, out]
constexpr const char* kClone = "aten.clone.default";       // [in, memory_format, out]
constexpr const char* kToCopy = "aten._to_copy.default";   // [in, five that are ignored, memory_format, out]
constexpr const char* kToDimOrder = "dim_order_ops._to_dim_order_copy.default";  // [in, six that are ignored, out]
constexpr const char* kMul = "aten.mul.Tensor";                                  // [a, b, out]
constexpr const char* kAdd = "aten.add.Tensor";                                  // [a, b, alpha, out]

constexpr uint64_t kDataAlignment = 16;

std::vector<uint8_t> element(DType dtype, bool one) {
  if (dtype == DType::kFloat16) {
    return one ? std::vector<uint8_t>{0x00, 0x3c} : std::vector<uint8_t>{0, 0};
  }
  return one ? std::vector<uint8_t>{0x00, 0x00, 0x80, 0x3f} : std::vector<uint8_t>{0, 0, 0, 0};
}

// Constants of ones or zeros, one for each length, dtype and value, as the exporter writes constants.
class NeutralConstants {
 public:
  NeutralConstants(GraphPatch* patch, uint64_t bytes_size) : patch_(*patch), size_(bytes_size) {}

  int32_t get(int64_t width, DType dtype, bool one) {
    const auto found = ids_.emplace(std::make_tuple(width, dtype, one), -1);
    if (found.second) {
      found.first->second = make(width, dtype, one);
    }
    return found.first->second;
  }
  uint64_t bytes_size() const { return size_; }
  std::vector<NewData> take_data() { return std::move(data_); }

 private:
  int32_t make(int64_t width, DType dtype, bool one) {
    NewData data;
    data.pattern = element(dtype, one);
    data.length = static_cast<uint64_t>(width) * data.pattern.size();
    data.offset = align_up(size_, kDataAlignment);
    size_ = align_up(data.offset + data.length, kDataAlignment);
    NewTensor tensor;
    tensor.dtype = dtype;
    tensor.dims = {width};
    tensor.constant = patch_.add_constant(data.offset, data.length);
    data_.push_back(std::move(data));
    return patch_.add_tensor(std::move(tensor));
  }

  GraphPatch& patch_;
  uint64_t size_;
  std::map<std::tuple<int64_t, DType, bool>, int32_t> ids_;
  std::vector<NewData> data_;
};

// A tensor on its way through the ops: its id, what it is, and its memory if it is a temporary.
struct Handle {
  int32_t id = -1;
  NewTensor tensor;
  Scratch::Slot slot;
};

class GraphRewriter {
 public:
  GraphRewriter(const GraphView& graph, uint64_t bytes_size)
      : graph_(graph), patch_(graph), neutral_(&patch_, bytes_size), scratch_(graph) {}

  void fix(const NormFix& fix) {
    ops_.clear();
    const NormArgs& args = *norm_args(graph_, fix.op_index);
    NewOp norm;
    norm.name = std::string(graph_.op_name(fix.op_index));
    for (uint32_t i = 0; i < args.count; ++i) {
      norm.args.push_back(graph_.arg(fix.op_index, i));
    }
    const auto argument = [&norm](int32_t position) -> int32_t& { return norm.args[static_cast<size_t>(position)]; };
    const int32_t weight = argument(args.weight);
    const int32_t bias = args.bias < 0 ? -1 : argument(args.bias);
    const int64_t width = fix.site.x.dims.back();
    if (fix.plan.unit_weight) {
      argument(args.weight) = neutral_.get(width, fix.plan.norm_dtype, true);
    }
    if (fix.plan.zero_bias) {
      argument(args.bias) = neutral_.get(width, fix.plan.norm_dtype, false);
    }
    if (fix.plan.form == Form::kUnitThenOps) {
      after_norm(fix, std::move(norm), args, weight, bias);
    } else {
      ops_.push_back(std::move(norm));
    }
    patch_.replace(fix.op_index, std::move(ops_));
  }

  Error finish(RewrittenGraph* into) {
    RewrittenGraph made;
    if (Error error = patch_.finish(&made.flatbuffer)) {
      return error;
    }
    made.bytes_size = neutral_.bytes_size();
    made.data = neutral_.take_data();
    made.added_activation_bytes = scratch_.bytes();
    *into = std::move(made);
    return {};
  }

 private:
  void after_norm(const NormFix& fix, NewOp norm, const NormArgs& args, int32_t weight, int32_t bias) {
    const NormPlan& plan = fix.plan;
    steps_left_ = plan.cast_norm + plan.multiply.used + plan.add.used;
    result_.id = graph_.result(fix.op_index);
    result_.tensor = like(fix.site.x, fix.site.out.dtype, fix.site.out.dims);

    if (plan.multiply.prepack) {
      prepacked(weight, fix.site.weight, plan.multiply);
    }
    if (plan.add.prepack) {
      prepacked(bias, fix.site.bias, plan.add);
    }
    Handle current = temporary(like(fix.site.x, plan.norm_dtype, plan.norm_dims));
    norm.args[static_cast<size_t>(args.out)] = norm_result(norm.args[static_cast<size_t>(args.out)], current.id);
    ops_.push_back(std::move(norm));
    if (plan.cast_norm) {
      const Handle to = next(like(fix.site.x, fix.site.out.dtype, plan.norm_dims));
      cast(current, to);
      move(&current, to);
    }
    if (plan.multiply.used) {
      Handle operand = prepare(weight, fix.site.weight, plan.multiply);
      const Handle to = next(like(fix.site.x, fix.site.out.dtype, plan.multiply_dims));
      ops_.push_back({kMul, {current.id, operand.id, to.id}});
      scratch_.release(operand.slot);
      move(&current, to);
    }
    if (plan.add.used) {
      Handle operand = prepare(bias, fix.site.bias, plan.add);
      const Handle to = next(result_.tensor);
      ops_.push_back({kAdd, {current.id, operand.id, patch_.integer(1), to.id}});
      scratch_.release(operand.slot);
      move(&current, to);
    }
  }

  // What the norm writes in place of its result: the same list with another first item, or the temporary itself.
  int32_t norm_result(int32_t original, int32_t temporary_id) {
    const auto* items = graph_.value_list(original);
    if (items == nullptr) {
      return temporary_id;
    }
    std::vector<int32_t> list(items->begin(), items->end());
    list.front() = temporary_id;
    return patch_.add_value_list(std::move(list));
  }

  static NewTensor like(const TensorDesc& x, DType dtype, std::vector<int64_t> dims) {
    return {dtype, std::move(dims), storage_of(x), layout_of(x), -1, -1};
  }

  Handle temporary(NewTensor tensor) {
    Handle made;
    made.slot = scratch_.acquire(tensor);
    tensor.mem_obj_id = made.slot.mem_obj_id;
    made.tensor = tensor;
    made.id = patch_.add_tensor(std::move(tensor));
    return made;
  }
  // Where the next step after the norm writes: the site's result if it is the last.
  Handle next(NewTensor tensor) { return --steps_left_ == 0 ? result_ : temporary(std::move(tensor)); }
  void move(Handle* current, const Handle& to) {
    scratch_.release(current->slot);
    *current = to;
  }

  // The operand as the binary op takes it.
  Handle prepare(int32_t id, const TensorDesc& desc, const OperandSteps& steps) {
    Handle current;
    current.id = id;
    current.tensor = {desc.dtype, desc.dims, storage_of(desc), layout_of(desc), -1, -1};
    if (steps.prepack) {
      current = prepacked(id, desc, steps);
    }
    if (steps.cast) {
      NewTensor tensor = current.tensor;
      tensor.dtype = steps.dtype;
      const Handle to = temporary(std::move(tensor));
      cast(current, to);
      move(&current, to);
    }
    if (steps.relayout) {
      const Handle to = temporary({steps.dtype, desc.dims, steps.storage, steps.layout, -1, -1});
      ops_.push_back({kClone, {current.id, patch_.null(), to.id}});
      move(&current, to);
    }
    return current;
  }

  // A constant as a tensor; it keeps its dtype. All norms that use it share one.
  Handle prepacked(int32_t id, const TensorDesc& desc, const OperandSteps& steps) {
    const auto found = prepacked_.emplace(std::make_tuple(id, steps.storage, steps.layout), Handle());
    Handle& made = found.first->second;
    if (found.second) {
      made.tensor = {desc.dtype, desc.dims, steps.storage, steps.layout, -1, -1};
      made.id = patch_.add_tensor(made.tensor);
      ops_.push_back({kPrepack, {id, made.id}});
    }
    return made;
  }

  // Buffers have an op that converts. For textures, the op that converts between float and half is a blit, which does not
  // follow a change of shape at run time; a clone reads through a sampler, which converts, and does.
  void cast(const Handle& from, const Handle& to) {
    const int32_t none = patch_.null();
    if (to.tensor.storage == Storage::kBuffer) {
      ops_.push_back({kToDimOrder, {from.id, none, none, none, none, none, none, to.id}});
    } else if (is_float(from.tensor.dtype)) {
      ops_.push_back({kClone, {from.id, none, to.id}});
    } else {
      ops_.push_back({kToCopy, {from.id, none, none, none, none, none, none, to.id}});
    }
  }

  const GraphView& graph_;
  GraphPatch patch_;
  NeutralConstants neutral_;
  Scratch scratch_;
  std::map<std::tuple<int32_t, Storage, Layout>, Handle> prepacked_;
  std::vector<NewOp> ops_;  // of the site at hand
  Handle result_;           // the site's
  int steps_left_ = 0;      // of the site, after the norm
};

}  // namespace

Error rewrite_graph(const GraphView& graph, const std::vector<NormFix>& fixes, uint64_t bytes_size, RewrittenGraph* into) {
  GraphRewriter rewriter(graph, bytes_size);
  for (const NormFix& fix : fixes) {
    rewriter.fix(fix);
  }
  return rewriter.finish(into);
}

}  // namespace etvk_guard
