// SPDX-License-Identifier: Apache-2.0
//
// How to read this file: plan_norm() first finds what stock cannot run (problems), then places each operand (in the norm, or
// after it), then asks whether the ops that this takes exist (refusals). What ET-VK's ops ask of their tensors comes from its
// sources RmsNorm.cpp, NativeLayerNorm.cpp, BinaryOp.cpp, Clone.cpp, ToCopy.cpp and View.cpp, which agree from release 1.3 on.
#include <etvk_guard/plan.h>

#include <algorithm>
#include <initializer_list>

#include "operands.h"
#include "plan_channel.h"

namespace etvk_guard {
namespace {

using Dims = std::vector<int64_t>;

bool is_layer(const NormSite& site) { return site.kind == NormKind::kLayer; }

// An operand of the norm: what is wrong with it, in the words of its own side.
struct Side {
  const TensorDesc* desc;
  Reason missing, runtime, is_mutable, scalar, shape, dtype;
  Reason problem = Reason::kLegal;
  bool stays = false;  // in the norm, as it is
};

Side weight_side(const NormSite& site) {
  return {&site.weight,          Reason::kWeightMissing, Reason::kWeightRuntime, Reason::kWeightMutable,
          Reason::kWeightScalar, Reason::kWeightShape,   Reason::kWeightDtype};
}
Side bias_side(const NormSite& site) {
  return {&site.bias,          Reason::kBiasMissing, Reason::kBiasRuntime, Reason::kBiasMutable,
          Reason::kBiasScalar, Reason::kBiasShape,   Reason::kBiasDtype};
}

// Whether operands may differ in dtype. Lowering does not know yet where they will be stored.
bool may_differ(const NormSite& site, Target target) {
  return target != Target::kLowering && converts_floats(site.x, site.out);
}

Reason find_problem(const Side& side, const NormSite& site, Target target) {
  const TensorDesc& desc = *side.desc;
  switch (desc.kind) {
    case Kind::kNone:
      return side.missing;
    case Kind::kRuntime:
      return side.runtime;
    case Kind::kMutable:
      return side.is_mutable;
    case Kind::kScalar:
      return side.scalar;
    case Kind::kConstant:
      break;
  }
  const int64_t width = site.x.dims.back();
  if (desc.dims.empty() || desc.dims.back() != width || count_elements(desc.dims) != width) {
    return side.shape;
  }
  const bool readable = desc.dtype == site.x.dtype || (is_float(desc.dtype) && may_differ(site, target));
  return readable ? Reason::kLegal : side.dtype;
}

Reason result_problem(const NormSite& site, Target target) {
  if (site.out.dims != site.x.dims) {
    return Reason::kResultShape;
  }
  return site.out.dtype == site.x.dtype || may_differ(site, target) ? Reason::kLegal : Reason::kResultDtype;
}

// What makes x and the result unusable for any form.
Reason unusable(const NormSite& site) {
  if (!is_tensor(site.x) || !is_tensor(site.out) || site.x.dims.empty() || count_elements(site.x.dims) < 0 ||
      count_elements(site.out.dims) < 0) {
    return Reason::kUnknownShape;
  }
  if (!is_float(site.x.dtype) || !is_float(site.out.dtype)) {
    return Reason::kUnsupportedDtype;
  }
  return is_layer(site) && site.normalized_dims != 1 ? Reason::kNormalizedDims : Reason::kLegal;
}

// What makes x and the result unusable for ops of the delegate after the norm.
Reason unsupported(const NormSite& site) {
  const TensorDesc& x = site.x;
  if (x.kind != Kind::kRuntime || site.out.kind != Kind::kRuntime) {
    return Reason::kUnknownShape;
  }
  if (x.dims.size() > kMaxRank || site.out.dims.size() > kMaxRank) {
    return Reason::kUnsupportedRank;
  }
  const bool packed = is_layer(site) || storage_of(x) == Storage::kBuffer || layout_of(x) == Layout::kWidthPacked;
  const bool alike = storage_of(x) == storage_of(site.out) && layout_of(x) == layout_of(site.out);
  return packed && alike && is_plain(x) ? Reason::kLegal : Reason::kUnsupportedLayout;
}

// What makes an operand unusable after the norm.
Reason unsupported(const Side& side) {
  const TensorDesc& desc = *side.desc;
  if (desc.kind == Kind::kMutable || desc.kind == Kind::kScalar) {
    return side.problem;
  }
  if (!is_castable(desc.dtype)) {
    return Reason::kUnsupportedDtype;
  }
  if (desc.dims.size() > kMaxRank) {
    return Reason::kUnsupportedRank;
  }
  return desc.kind == Kind::kConstant || is_plain(desc) ? Reason::kLegal : Reason::kUnsupportedLayout;
}

OperandSteps steps_for(const TensorDesc& operand, const NormSite& site) {
  OperandSteps steps;
  steps.used = true;
  steps.prepack = operand.kind == Kind::kConstant;
  steps.cast = operand.dtype != site.out.dtype;
  steps.relayout =
      operand.kind != Kind::kConstant && (storage_of(operand) != storage_of(site.x) || layout_of(operand) != layout_of(site.x));
  steps.dtype = site.out.dtype;
  steps.storage = storage_of(site.x);
  steps.layout = layout_of(site.x);
  steps.rows = rows_of(operand.dims, site.x.dims);
  steps.shared_rows = steps.rows == Rows::kBatch ? rows_per_row(operand.dims, site.x.dims) : 0;
  return steps;
}

// Puts each operand into the norm or after it. False: the result's shape cannot come about.
bool place(const NormSite& site, Side* weight, Side* bias, NormPlan* plan) {
  const auto keeps = [&](const Side& side) {
    Dims dims;
    return side.problem == Reason::kLegal &&
           (site.out.dims == site.x.dims || (broadcast(site.x.dims, side.desc->dims, &dims) && dims == site.x.dims));
  };
  weight->stays = keeps(*weight);
  const bool multiplies = !weight->stays && weight->problem != weight->missing;
  const bool has_bias = is_layer(site);
  // The shift comes last: it cannot stay in a norm that is multiplied afterwards.
  bias->stays = has_bias && !multiplies && keeps(*bias);
  const bool adds = has_bias && !bias->stays && bias->problem != bias->missing;
  plan->unit_weight = !weight->stays;
  plan->zero_bias = has_bias && !bias->stays;

  Dims dims = site.x.dims;
  if (multiplies) {
    plan->multiply = steps_for(site.weight, site);
    if (!broadcast(site.x.dims, site.weight.dims, &dims)) {
      return false;
    }
  }
  plan->multiply_dims = dims;
  if (adds) {
    plan->add = steps_for(site.bias, site);
    if (!broadcast(plan->multiply_dims, site.bias.dims, &dims)) {
      return false;
    }
  }
  return dims == site.out.dims;
}

NormPlan refuse(NormPlan plan, Reason refusal) {
  plan.form = Form::kRefused;
  plan.reason = refusal;
  return plan;
}

// Whether our kernels take the site in one dispatch, and then in which form.
bool fuse(const NormSite& site, const Side& weight, const Side& bias, NormPlan* plan) {
  const auto readable = [](const Side& side) { return side.desc->kind == Kind::kNone || unsupported(side) == Reason::kLegal; };
  const bool in_place = site.out.dims == site.x.dims && site.out.dtype == site.x.dtype;
  if (!in_place || layout_of(site.x) != Layout::kWidthPacked || !readable(weight) || (is_layer(site) && !readable(bias))) {
    return false;
  }
  const auto operand = [&](const Side& side) {
    OperandSteps steps = side.desc->kind == Kind::kNone ? OperandSteps() : steps_for(*side.desc, site);
    // A kernel reads an operand from either storage, as long as it is width-packed.
    if (steps.used && !steps.prepack) {
      steps.storage = storage_of(*side.desc);
      steps.relayout = layout_of(*side.desc) != steps.layout;
    }
    return steps;
  };
  const OperandSteps multiply = operand(weight);
  const OperandSteps add = is_layer(site) ? operand(bias) : OperandSteps();
  const Rows rows = std::max({multiply.rows, add.rows, Rows::kOne});
  if (rows == Rows::kOther) {
    return false;
  }
  plan->form = rows == Rows::kOne ? Form::kFusedRow : rows == Rows::kBatch ? Form::kFusedBatch : Form::kFusedFull;
  plan->unit_weight = plan->zero_bias = false;
  plan->multiply = multiply;
  plan->add = add;
  plan->rows_per_weight = multiply.shared_rows;
  return true;
}

Reason first_of(std::initializer_list<Reason> reasons) {
  const auto* found = std::find_if(reasons.begin(), reasons.end(), [](Reason reason) { return reason != Reason::kLegal; });
  return found == reasons.end() ? Reason::kLegal : *found;
}

// The form in ops of the delegate, once every operand is in its place.
NormPlan with_ops(const NormSite& site, const Side& weight, const Side& bias, Target target, NormPlan plan) {
  if (target != Target::kLowering) {
    const Reason refusal = first_of({unsupported(site), plan.multiply.used ? unsupported(weight) : Reason::kLegal,
                                     plan.add.used ? unsupported(bias) : Reason::kLegal});
    if (refusal != Reason::kLegal) {
      return refuse(plan, refusal);
    }
  }
  plan.cast_norm = site.out.dtype != site.x.dtype;
  plan.form = plan.multiply.used || plan.add.used || plan.cast_norm ? Form::kUnitThenOps : Form::kUnit;
  return plan;
}

}  // namespace

int64_t weight_length(const NormSite& site) {
  const bool channels = site.kind == NormKind::kGroup || site.kind == NormKind::kBatch;
  return channels ? site.x.dims[1] : site.x.dims.back();
}

NormPlan plan_norm(const NormSite& site, Target target) {
  if (site.kind == NormKind::kGroup || site.kind == NormKind::kBatch) {
    return plan_channel_norm(site, target);
  }
  NormPlan plan;
  plan.norm_dtype = site.x.dtype;
  if (const Reason refusal = unusable(site); refusal != Reason::kLegal) {
    plan.problem = refusal;
    return refuse(plan, refusal);
  }
  plan.norm_dims = site.x.dims;
  Side weight = weight_side(site);
  Side bias = bias_side(site);
  weight.problem = find_problem(weight, site, target);
  bias.problem = is_layer(site) ? find_problem(bias, site, target) : Reason::kLegal;
  plan.problem = plan.reason = first_of({weight.problem, bias.problem, result_problem(site, target)});
  const bool legal = plan.problem == Reason::kLegal;
  if (legal && target != Target::kBuilder) {
    plan.form = Form::kStock;
    return plan;
  }
  if (count_elements(site.weight.dims) < 0 || (is_layer(site) && count_elements(site.bias.dims) < 0)) {
    return refuse(plan, Reason::kUnknownShape);
  }
  const bool placed = legal || place(site, &weight, &bias, &plan);
  if (!placed) {
    return refuse(plan, Reason::kNotBroadcastable);
  }
  if (target == Target::kBuilder && unsupported(site) == Reason::kLegal && fuse(site, weight, bias, &plan)) {
    return plan;
  }
  if (legal) {
    plan.form = Form::kStock;
    return plan;
  }
  return with_ops(site, weight, bias, target, plan);
}

}  // namespace etvk_guard
