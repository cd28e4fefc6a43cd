// SPDX-License-Identifier: Apache-2.0
//
// Linear ops, embeddings, factors of products, and calls that stock reads otherwise, as their plans say.
#include "convolution.h"
#include "emit.h"
#include "fix.h"
#include "operands.h"

namespace etvk_guard {
namespace {

constexpr const char* kAdd = "aten.add.Tensor";                     // [a, b, alpha, out]
constexpr const char* kMm = "aten.mm.default";                      // [a, b, out]
constexpr const char* kPermute = "aten.permute_copy.default";       // [in, dims, out]
constexpr const char* kIndexSelect = "aten.index_select.default";   // [in, dim, indices, out]
constexpr const char* kPad = "aten.constant_pad_nd.default";        // [in, pad, value, out]
constexpr const char* kAtLeast = "aten.ge.Tensor";                  // [a, b, out]
constexpr const char* kAtMost = "aten.le.Tensor";                   // [a, b, out]
constexpr const char* kBoth = "aten.bitwise_and.Tensor";            // [a, b, out]
constexpr uint32_t kLinearBias = 2, kLinearOut = 3;

void linear(Emitter* emit, const Fix& fix) {
  const LinearSite& site = fix.linear;
  const LinearPlan& plan = fix.linear_plan;
  std::vector<int32_t> args = emit->args_of(fix.op_index);
  const Handle result = emit->existing(args[kLinearOut], site.out);
  const int32_t weight = args[1], bias = args[kLinearBias];
  const Handle to = plan.add.used ? emit->temporary(result.tensor) : result;
  if (plan.product) {
    const Handle rows = emit->prepare(weight, site.weight, plan.weight);
    const Handle columns = emit->temporary(
        {site.out.dtype, {site.weight.dims[1], site.weight.dims[0]}, plan.weight.storage, plan.weight.layout, -1, -1});
    emit->op(kPermute, {rows.id, emit->patch().integers({1, 0}), columns.id});
    emit->release(rows);
    emit->op(kMm, {args[0], columns.id, to.id});
    emit->release(columns);
  } else {
    args[kLinearBias] = emit->patch().null();
    args[kLinearOut] = to.id;
    emit->op_as(fix.op_index, std::move(args));
  }
  if (plan.add.used) {
    const Handle operand = emit->prepare(bias, site.bias, plan.add);
    emit->op(kAdd, {to.id, operand.id, emit->patch().integer(1), result.id});
    emit->release(operand);
    emit->release(to);
  }
}

void repacked(Emitter* emit, const Fix& fix) {
  std::vector<int32_t> args = emit->args_of(fix.op_index);
  const Handle result = emit->existing(args.back(), fix.embedding.out);
  NewTensor tensor = result.tensor;
  tensor.layout = Layout::kWidthPacked;
  const Handle rows = emit->temporary(tensor);
  args.back() = rows.id;
  emit->op_as(fix.op_index, std::move(args));
  emit->clone(rows, result);
  emit->release(rows);
}

void embedding(Emitter* emit, const Fix& fix) {
  if (fix.embedding_plan.repack) {
    return repacked(emit, fix);
  }
  const EmbeddingSite& site = fix.embedding;
  const EmbeddingPlan& plan = fix.embedding_plan;
  const std::vector<int32_t> args = emit->args_of(fix.op_index);
  const Handle result = emit->existing(args.back(), site.out);
  const Handle table = emit->prepare(args[0], site.table, plan.table);
  const Handle indices = emit->prepare(args[1], site.indices, plan.indices);
  const int64_t count = count_elements(site.indices.dims);
  Handle rows = plan.in_place ? result
                              : emit->temporary({site.out.dtype, {count, site.table.dims[1]}, Storage::kTexture3D,
                                                 Layout::kChannelsPacked, -1, -1});
  emit->op(kIndexSelect, {table.id, emit->patch().integer(0), indices.id, rows.id});
  emit->release(table);
  emit->release(indices);
  if (plan.in_place) {
    return;
  }
  const bool same_dims = rows.tensor.dims == site.out.dims;
  if (!same_dims && result.tensor.storage != rows.tensor.storage) {
    const Handle to = emit->temporary({site.out.dtype, site.out.dims, rows.tensor.storage, Layout::kWidthPacked, -1, -1});
    emit->view(rows, to);
    emit->move(&rows, to);
    emit->clone(rows, result);
  } else if (same_dims) {
    emit->clone(rows, result);
  } else {
    emit->view(rows, result);
  }
  emit->release(rows);
}

void factor(Emitter* emit, const Fix& fix) {
  std::vector<int32_t> args = emit->args_of(fix.op_index);
  int32_t& id = args[fix.factor_arg];
  const Handle operand = emit->prepare(id, fix.factor.factor, fix.factor_plan.factor);
  id = operand.id;
  emit->op_as(fix.op_index, std::move(args));
  emit->release(operand);
}

void padded(Emitter* emit, const Fix& fix, std::vector<int32_t>* args) {
  const TensorDesc& desc = fix.call.padded;
  const Handle image = emit->temporary({desc.dtype, desc.dims, storage_of(desc), layout_of(desc), -1, -1});
  emit->op(kPad, {args->at(0), emit->patch().integers(fix.call.pad), emit->patch().integer(0), image.id});
  (*args)[0] = image.id;
  (*args)[Convolution::kPadding] = emit->patch().integers({0, 0});
  emit->op_as(fix.op_index, *args);
  emit->release(image);
}

void compared(Emitter* emit, const Fix& fix, const std::vector<int32_t>& args) {
  const TensorDesc& desc = fix.call.result;
  const NewTensor tensor{desc.dtype, desc.dims, storage_of(desc), layout_of(desc), -1, -1};
  const Handle least = emit->temporary(tensor), most = emit->temporary(tensor);
  emit->op(kAtLeast, {args[0], args[1], least.id});
  emit->op(kAtMost, {args[0], args[1], most.id});
  emit->op(kBoth, {least.id, most.id, args.back()});
  emit->release(least);
  emit->release(most);
}

void call(Emitter* emit, const Fix& fix) {
  std::vector<int32_t> args = emit->args_of(fix.op_index);
  for (const CallPlan::Change& change : fix.call.changes) {
    args[change.position] =
        change.is_list ? emit->patch().integers(change.numbers) : emit->patch().integer(change.numbers.front());
  }
  if (fix.call.pads) {
    padded(emit, fix, &args);
  } else if (fix.call.compares) {
    compared(emit, fix, args);
  } else {
    emit->op_as(fix.op_index, std::move(args));
  }
}

}  // namespace

void rewrite_op(Emitter* emit, const Fix& fix) {
  switch (fix.kind) {
    case FixKind::kLinear:
      return linear(emit, fix);
    case FixKind::kEmbedding:
      return embedding(emit, fix);
    case FixKind::kFactor:
      return factor(emit, fix);
    case FixKind::kCall:
      return call(emit, fix);
    default:
      return emit->op_as(fix.op_index, emit->args_of(fix.op_index));
  }
}

}  // namespace etvk_guard
