// SPDX-License-Identifier: Apache-2.0
//
// What ET-VK's ops ask of their tensors comes from its sources Linear.cpp, Matmul.cpp, Permute.cpp, IndexSelect.cpp and Clone.cpp.
#include "plan_ops.h"

#include "error.h"
#include "operands.h"
#include "quirks.h"

namespace etvk_guard {
namespace {

std::string what(const char* label, const TensorDesc& desc) {
  return format("%s is %s %s", label, dtype_name(desc.dtype), dims_text(desc.dims).c_str());
}

// What makes an operand that should have been a constant unusable as a tensor; "" for a run-time value or a constant.
std::string no_tensor(const char* label, const TensorDesc& desc) {
  switch (desc.kind) {
    case Kind::kNone:
      return std::string(label) + " is missing";
    case Kind::kScalar:
      return std::string(label) + " is a number, not a tensor";
    case Kind::kMutable:
      return std::string(label) + " is a mutable buffer of shape " + dims_text(desc.dims);
    default:
      break;
  }
  if (count_elements(desc.dims) < 0 || desc.dims.size() > kMaxRank) {
    return what(label, desc) + ": its sizes are not usable";
  }
  if (!is_float(desc.dtype)) {
    return what(label, desc) + ": it cannot be cast on the GPU";
  }
  return desc.kind == Kind::kConstant || is_plain(desc) ? "" : what(label, desc) + ", stored in a way that no op copies";
}

bool is_matrix_operand(const TensorDesc& desc) {
  return desc.kind == Kind::kRuntime && is_plain(desc) && layout_of(desc) == Layout::kWidthPacked && count_elements(desc.dims) > 0 &&
         desc.dims.size() <= kMaxRank && is_float(desc.dtype);
}

// As an operand of an op whose result is `out`.
OperandSteps steps_like(const TensorDesc& desc, const TensorDesc& out) {
  OperandSteps steps;
  steps.used = true;
  steps.prepack = desc.kind == Kind::kConstant;
  steps.cast = desc.dtype != out.dtype;
  steps.relayout = !steps.prepack && (storage_of(desc) != storage_of(out) || layout_of(desc) != layout_of(out));
  steps.dtype = out.dtype;
  steps.storage = storage_of(out);
  steps.layout = layout_of(out);
  return steps;
}

std::string refusal_of_product(const LinearSite& site) {
  if (std::string refusal = no_tensor("weight", site.weight); !refusal.empty()) {
    return refusal;
  }
  const auto& x = site.x.dims;
  const auto& w = site.weight.dims;
  const bool matrices = x.size() == 2 && w.size() == 2 && w[1] == x[1] && site.out.dims == std::vector<int64_t>{x[0], w[0]};
  if (!matrices) {
    return what("x", site.x) + ", " + what("weight", site.weight) + ": a product takes matrices only";
  }
  const bool fits = storage_of(site.out) == Storage::kBuffer || (w[0] <= kMaxTextureSide && w[1] <= kMaxTextureSide);
  return fits ? "" : what("weight", site.weight) + ", which is larger than a texture";
}

std::string refusal_of_bias(const LinearSite& site) {
  if (std::string refusal = no_tensor("bias", site.bias); !refusal.empty()) {
    return refusal;
  }
  const bool row = site.bias.dims == std::vector<int64_t>{site.out.dims.back()};
  return row ? "" : what("bias", site.bias) + ", not one row";
}

std::string refusal_of_linear(const LinearSite& site, const LinearPlan& plan) {
  if (!is_matrix_operand(site.x) || !is_matrix_operand(site.out) || storage_of(site.x) != storage_of(site.out) ||
      site.x.dtype != site.out.dtype || site.x.dims.empty() || site.out.dims.empty()) {
    return what("x", site.x) + ", " + what("the result", site.out) + ": they are not two width-packed tensors of one kind";
  }
  std::string refusal = plan.product ? refusal_of_product(site) : "";
  return refusal.empty() && plan.add.used ? refusal_of_bias(site) : refusal;
}

}  // namespace

LinearPlan plan_linear(const LinearSite& site) {
  LinearPlan plan;
  plan.product = site.weight.kind != Kind::kConstant;
  const bool has_bias = site.bias.kind != Kind::kNone;
  plan.legal = !plan.product && (!has_bias || site.bias.kind == Kind::kConstant);
  if (plan.legal) {
    return plan;
  }
  plan.add.used = has_bias && (plan.product || site.bias.kind != Kind::kConstant);
  plan.refusal = refusal_of_linear(site, plan);
  if (!plan.refusal.empty()) {
    return plan;
  }
  if (plan.product) {
    plan.weight = steps_like(site.weight, site.out);
  }
  if (plan.add.used) {
    plan.add = steps_like(site.bias, site.out);
  }
  return plan;
}

namespace {

std::string refusal_of_embedding(const EmbeddingSite& site) {
  if (std::string refusal = no_tensor("weight", site.table); !refusal.empty()) {
    return refusal;
  }
  const auto& table = site.table.dims;
  std::vector<int64_t> dims = site.indices.dims;
  dims.push_back(table.empty() ? 0 : table.back());
  const int64_t count = count_elements(site.indices.dims);
  if (table.size() != 2 || count < 0 || site.out.kind != Kind::kRuntime || site.out.dims != dims || dims.size() > kMaxRank || !is_plain(site.out) ||
      site.out.dtype != site.table.dtype) {
    return what("weight", site.table) + ", " + what("the result", site.out) + ": no op selects rows like this";
  }
  if (site.indices.kind != Kind::kRuntime || site.indices.dtype != DType::kInt32 || !is_plain(site.indices)) {
    return what("indices", site.indices) + ": rows are selected by int32 run-time values";
  }
  for (const int64_t side : {table[0], table[1], count}) {
    if (side > kMaxTextureSide) {
      return format("%lld rows or columns are more than a texture takes", static_cast<long long>(side));
    }
  }
  return site.dynamic ? "rows are selected by an op that does not follow sizes that are dynamic" : "";
}

// Packed along its width, a tensor is as high as its last dim but one, and the dims before that lie behind each other.
std::string refusal_of_repacking(const TensorDesc& out) {
  const auto& dims = out.dims;
  if (out.kind != Kind::kRuntime || !is_plain(out) || !is_float(out.dtype) || dims.empty() || dims.size() > kMaxRank ||
      count_elements(dims) < 0) {
    return what("the result", out) + ": no op copies it";
  }
  const int64_t height = dims.size() > 1 ? dims[dims.size() - 2] : 1;
  const bool fits = height <= kMaxTextureSide && dims.back() <= kMaxTextureSide &&
                    count_elements(dims) / dims.back() / height <= kMaxTextureDepth;
  return fits ? "" : what("the result", out) + ", which is larger than a texture that is packed by width";
}

OperandSteps as_channels_packed(const TensorDesc& desc) {
  OperandSteps steps = steps_like(desc, desc);
  steps.prepack = false;
  steps.storage = Storage::kTexture3D;
  steps.layout = Layout::kChannelsPacked;
  steps.relayout = storage_of(desc) != steps.storage || layout_of(desc) != steps.layout;
  return steps;
}

}  // namespace

EmbeddingPlan plan_embedding(const EmbeddingSite& site) {
  EmbeddingPlan plan;
  const bool constant = site.table.kind == Kind::kConstant;
  plan.repack = constant && is_misplaced(site.indices, site.out);
  plan.legal = constant && !plan.repack;
  plan.refusal = plan.legal ? "" : plan.repack ? refusal_of_repacking(site.out) : refusal_of_embedding(site);
  if (plan.legal || plan.repack || !plan.refusal.empty()) {
    return plan;
  }
  plan.table = as_channels_packed(site.table);
  plan.indices = as_channels_packed(site.indices);
  if (site.indices.dims.size() != 1) {
    plan.indices.view = {count_elements(site.indices.dims)};
    plan.indices.view_layout = Layout::kChannelsPacked;
  }
  plan.in_place = site.indices.dims.size() == 1 && storage_of(site.out) == Storage::kTexture3D &&
                  layout_of(site.out) == Layout::kChannelsPacked;
  return plan;
}

FactorPlan plan_factor(const FactorSite& site) {
  FactorPlan plan;
  plan.legal = site.factor.kind != Kind::kConstant;
  if (plan.legal) {
    return plan;
  }
  if (!is_matrix_operand(site.out)) {
    plan.refusal = what("the result", site.out) + ", which is not width-packed";
  } else {
    plan.refusal = no_tensor("the factor", site.factor);
  }
  if (plan.refusal.empty()) {
    plan.factor = steps_like(site.factor, site.out);
  }
  return plan;
}

}  // namespace etvk_guard
