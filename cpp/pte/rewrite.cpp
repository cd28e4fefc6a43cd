// SPDX-License-Identifier: Apache-2.0
//
// A norm becomes, in this order and as far as the plan asks for it:
//   et_vk.prepack.default     the multiplier and the addend, if they are constants (once for all norms that use one)
//   aten.unsqueeze_copy       of x, until it has four dims (norms over channels)
//   the norm                  with ones for its weight and zeros for its bias; a batch norm of run-time statistics in plain ops
//   a cast                    of its result
//   casts, clones and views   of the multiplier, then aten.mul.Tensor
//   casts, clones and views   of the addend, then aten.add.Tensor
//   aten.squeeze_copy         of the result, to the dims that x has
#include "rewrite.h"

#include "emit.h"
#include "operands.h"
#include "site.h"

namespace etvk_guard {
namespace {

constexpr const char* kMul = "aten.mul.Tensor";                    // [a, b, out]
constexpr const char* kAdd = "aten.add.Tensor";                    // [a, b, alpha, out]
constexpr const char* kSub = "aten.sub.Tensor";                    // [a, b, alpha, out]
constexpr const char* kRsqrt = "aten.rsqrt.default";               // [in, out]
constexpr const char* kUnsqueeze = "aten.unsqueeze_copy.default";  // [in, dim, out]
constexpr const char* kSqueeze = "aten.squeeze_copy.dims";         // [in, dims, out]

NewTensor like(const TensorDesc& x, DType dtype, std::vector<int64_t> dims) {
  return {dtype, std::move(dims), storage_of(x), layout_of(x), -1, -1};
}

// Carries out the plan of one norm.
class NormRewriter {
 public:
  NormRewriter(Emitter* emit, uint32_t op_index, const NormSite& site, const NormPlan& plan)
      : emit_(*emit), graph_(emit->graph()), op_index_(op_index), site_(site), plan_(plan), args_(*norm_args(graph_, op_index)) {}

  void run() {
    std::vector<int32_t> norm = emit_.args_of(op_index_);
    weight_ = at(norm, args_.weight);
    bias_ = args_.bias < 0 ? -1 : at(norm, args_.bias);
    const int64_t width = weight_length(site_);
    if (plan_.unit_weight) {
      at(norm, args_.weight) = emit_.neutral().get(width, plan_.norm_dtype, true);
    }
    if (plan_.zero_bias) {
      at(norm, args_.bias) = emit_.neutral().get(width, plan_.norm_dtype, false);
    }
    if (plan_.form == Form::kUnitThenOps) {
      with_ops(std::move(norm));
    } else {
      emit_.op_as(op_index_, std::move(norm));
    }
  }

 private:
  static int32_t& at(std::vector<int32_t>& args, int32_t position) { return args[static_cast<size_t>(position)]; }

  void with_ops(std::vector<int32_t> norm) {
    steps_left_ = plan_.computed + plan_.cast_norm + plan_.multiply.used + plan_.add.used + (plan_.added_dims > 0);
    result_ = emit_.existing(graph_.result(op_index_), site_.out);
    if (plan_.multiply.prepack) {
      emit_.prepacked(weight_, site_.weight, plan_.multiply.storage, plan_.multiply.layout);
    }
    if (plan_.add.prepack) {
      emit_.prepacked(bias_, site_.bias, plan_.add.storage, plan_.add.layout);
    }
    if (plan_.computed) {
      Handle current = computed(norm);
      return after_norm(&current);
    }
    const Handle x = lifted(at(norm, args_.x));
    Handle current = emit_.temporary(like(site_.x, plan_.norm_dtype, plan_.norm_dims));
    at(norm, args_.x) = x.id;
    at(norm, args_.out) = norm_result(at(norm, args_.out), current.id);
    emit_.op_as(op_index_, std::move(norm));
    emit_.release(x);
    after_norm(&current);
  }

  // (x - mean) * rsqrt(variance + eps)
  Handle computed(std::vector<int32_t>& args) {
    const int32_t one = emit_.patch().integer(1);
    const Handle mean = emit_.prepare(at(args, args_.mean), site_.mean, plan_.mean);
    const Handle centred = emit_.temporary(like(site_.x, plan_.norm_dtype, plan_.norm_dims));
    emit_.op(kSub, {at(args, args_.x), mean.id, one, centred.id});
    emit_.release(mean);
    double eps = 0;
    norm_eps(graph_, op_index_, &eps);
    Handle scale = emit_.prepare(at(args, args_.variance), site_.variance, plan_.variance);
    NewTensor column = scale.tensor;
    column.mem_obj_id = -1;
    const Handle sum = emit_.temporary(column);
    emit_.op(kAdd, {scale.id, emit_.neutral().filled(column.dims, static_cast<float>(eps)), one, sum.id});
    emit_.move(&scale, sum);
    const Handle root = emit_.temporary(column);
    emit_.op(kRsqrt, {scale.id, root.id});
    emit_.move(&scale, root);
    const Handle to = next(like(site_.x, plan_.norm_dtype, plan_.norm_dims));
    emit_.op(kMul, {centred.id, scale.id, to.id});
    emit_.release(scale);
    emit_.release(centred);
    return to;
  }

  void after_norm(Handle* current) {
    const DType dtype = site_.out.dtype;
    if (plan_.cast_norm) {
      const Handle to = next(like(site_.x, dtype, plan_.norm_dims));
      emit_.cast(*current, to);
      emit_.move(current, to);
    }
    if (plan_.multiply.used) {
      const Handle operand = emit_.prepare(weight_, site_.weight, plan_.multiply);
      const Handle to = next(like(site_.x, dtype, plan_.multiply_dims));
      emit_.op(kMul, {current->id, operand.id, to.id});
      emit_.release(operand);
      emit_.move(current, to);
    }
    if (plan_.add.used) {
      const Handle operand = emit_.prepare(bias_, site_.bias, plan_.add);
      const Handle to = next(plan_.added_dims > 0 ? like(site_.x, dtype, plan_.norm_dims) : result_.tensor);
      emit_.op(kAdd, {current->id, operand.id, emit_.patch().integer(1), to.id});
      emit_.release(operand);
      emit_.move(current, to);
    }
    if (plan_.added_dims > 0) {
      emit_.op(kSqueeze, {current->id, emit_.patch().integers(added_dims()), result_.id});
      emit_.release(*current);
    }
  }

  // x with its added dims.
  Handle lifted(int32_t x) {
    Handle current = emit_.existing(x, site_.x);
    for (int32_t i = 0; i < plan_.added_dims; ++i) {
      std::vector<int64_t> dims = current.tensor.dims;
      dims.push_back(1);
      const Handle to = emit_.temporary(like(site_.x, site_.x.dtype, dims));
      emit_.op(kUnsqueeze, {current.id, emit_.patch().integer(static_cast<int64_t>(dims.size()) - 1), to.id});
      emit_.move(&current, to);
    }
    return current;
  }
  std::vector<int64_t> added_dims() const {
    std::vector<int64_t> dims;
    for (int32_t i = 0; i < plan_.added_dims; ++i) {
      dims.push_back(static_cast<int64_t>(site_.x.dims.size()) + i);
    }
    return dims;
  }

  // What the norm writes in place of its result: the same list with another first item, or the temporary itself.
  int32_t norm_result(int32_t original, int32_t temporary_id) {
    const auto* items = graph_.value_list(original);
    if (items == nullptr) {
      return temporary_id;
    }
    std::vector<int32_t> list(items->begin(), items->end());
    list.front() = temporary_id;
    return emit_.patch().add_value_list(std::move(list));
  }

  // Where the next step after the norm writes: the site's result if it is the last.
  Handle next(NewTensor tensor) { return --steps_left_ == 0 ? result_ : emit_.temporary(std::move(tensor)); }

  Emitter& emit_;
  const GraphView& graph_;
  const uint32_t op_index_;
  const NormSite& site_;
  const NormPlan& plan_;
  const NormArgs& args_;
  int32_t weight_ = -1, bias_ = -1;
  Handle result_;
  int steps_left_ = 0;  // after the norm
};

}  // namespace

Error rewrite_graph(const GraphView& graph, const std::vector<Fix>& fixes, uint64_t bytes_size, RewrittenGraph* into) {
  Emitter emit(graph, bytes_size);
  for (const Fix& fix : fixes) {
    emit.begin();
    if (fix.kind == FixKind::kNorm) {
      NormRewriter(&emit, fix.op_index, fix.norm, fix.norm_plan).run();
    } else {
      rewrite_op(&emit, fix);
    }
    emit.end(fix.op_index);
  }
  return emit.finish(into);
}

}  // namespace etvk_guard
