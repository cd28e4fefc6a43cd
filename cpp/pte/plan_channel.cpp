// SPDX-License-Identifier: Apache-2.0
//
// Group and batch norms. Stock reads weight, bias and statistics as constants of one element for each channel, of images
// [N, C, H, W] in channels-packed textures (GroupNorm.cpp, BatchNorm.cpp). What is no such constant follows the norm as
// [1, C, 1, 1]; an x of two or three dims gets dims of size 1 behind its own, which follow a change of shape at run time. A
// batch norm whose statistics are computed at run time is computed in plain ops. The builder does the same, and more: it clones
// x and the result where they are no such images, and takes operands that have one element for each channel in any rank.
#include "plan_channel.h"

#include <algorithm>

#include "operands.h"

namespace etvk_guard {
namespace {

constexpr size_t kImageRank = 4;

bool is_per_channel(const TensorDesc& desc, int64_t channels) { return desc.dims == std::vector<int64_t>{channels}; }

// [C], or as the builder takes it also [1, C], [C, 1, 1] and such.
bool has_channels(const TensorDesc& desc, int64_t channels, Target target) {
  if (target != Target::kBuilder) {
    return is_per_channel(desc, channels);
  }
  const bool one_dim = channels == 1 || std::find(desc.dims.begin(), desc.dims.end(), channels) != desc.dims.end();
  return one_dim && count_elements(desc.dims) == channels;
}

bool is_image(const TensorDesc& desc) {
  return storage_of(desc) == Storage::kTexture3D && layout_of(desc) == Layout::kChannelsPacked;
}

// aten.clone.default makes an image of it, or it of an image: a tensor of floats in any layout.
bool is_movable(const TensorDesc& desc) {
  return storage_of(desc) == Storage::kBuffer || storage_of(desc) == Storage::kTexture3D;
}

// A weight or bias, and what is wrong with it in the words of its side.
struct Side {
  const TensorDesc* desc;
  Reason missing, runtime, is_mutable, scalar, shape, dtype;
  Reason problem = Reason::kLegal;
};

Reason find_problem(const Side& side, int64_t channels) {
  switch (side.desc->kind) {
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
  if (!is_per_channel(*side.desc, channels)) {
    return side.shape;
  }
  return is_float(side.desc->dtype) ? Reason::kLegal : side.dtype;  // a texture converts between floats
}

// What makes x, the result and the statistics unusable for any form.
Reason unusable(const NormSite& site, Target target) {
  if (!is_tensor(site.x) || !is_tensor(site.out) || site.x.dims.size() < 2 || count_elements(site.x.dims) < 0) {
    return Reason::kUnknownShape;
  }
  if (target == Target::kBuilder && (site.x.kind != Kind::kRuntime || site.out.kind != Kind::kRuntime)) {
    return Reason::kUnknownShape;
  }
  if (site.out.dims != site.x.dims) {
    return Reason::kResultShape;
  }
  if (site.x.dims.size() > kImageRank) {
    return Reason::kUnsupportedRank;
  }
  if (!is_float(site.x.dtype) || !is_float(site.out.dtype)) {
    return Reason::kUnsupportedDtype;
  }
  const auto sound = [&](const TensorDesc& desc) {
    const bool known = desc.kind == Kind::kConstant || (desc.kind == Kind::kRuntime && is_plain(desc));
    return known && has_channels(desc, site.x.dims[1], target) && desc.dims.size() <= kMaxRank && is_float(desc.dtype);
  };
  return site.kind == NormKind::kBatch && !(sound(site.mean) && sound(site.variance)) ? Reason::kStatistics : Reason::kLegal;
}

bool is_computed(const NormSite& site) {
  const auto stays = [&](const TensorDesc& desc) {
    return desc.kind == Kind::kConstant && is_per_channel(desc, site.x.dims[1]);
  };
  return site.kind == NormKind::kBatch && !(stays(site.mean) && stays(site.variance));
}

OperandSteps steps_for(const TensorDesc& operand, const NormSite& site) {
  OperandSteps steps;
  steps.used = true;
  steps.prepack = operand.kind == Kind::kConstant;
  steps.cast = operand.dtype != site.out.dtype;
  steps.relayout = !steps.prepack && storage_of(operand) != Storage::kTexture3D;
  steps.dtype = site.out.dtype;
  steps.storage = Storage::kTexture3D;
  steps.layout = steps.prepack || steps.relayout ? Layout::kWidthPacked : layout_of(operand);
  steps.rows = Rows::kOther;  // not rows, but channels
  steps.view.assign(is_computed(site) ? site.x.dims.size() : kImageRank, 1);
  steps.view[1] = site.x.dims[1];
  steps.view_layout = Layout::kChannelsPacked;
  return steps;
}

// What keeps an operand from following the norm.
Reason unsupported(const Side& side, const OperandSteps& steps, int64_t channels, Target target) {
  const TensorDesc& desc = *side.desc;
  if (!steps.used) {
    return Reason::kLegal;
  }
  if (desc.kind == Kind::kMutable || desc.kind == Kind::kScalar) {
    return side.problem;
  }
  if (!has_channels(desc, channels, target)) {
    return side.shape;
  }
  if (desc.dims.size() > kMaxRank) {
    return Reason::kUnsupportedRank;
  }
  if (!is_float(desc.dtype)) {
    return Reason::kUnsupportedDtype;
  }
  return desc.kind == Kind::kConstant || is_plain(desc) ? Reason::kLegal : Reason::kUnsupportedLayout;
}

NormPlan refuse(NormPlan plan, Reason refusal) {
  plan.form = Form::kRefused;
  plan.reason = refusal;
  return plan;
}

// Whether an image of two to four dims fits a texture that is packed along its channels.
bool fits_texture(std::vector<int64_t> image) {
  image.resize(kImageRank, 1);
  return image[3] <= kMaxTextureSide && image[2] <= kMaxTextureSide && image[1] <= kMaxTextureSide &&
         image[0] <= kMaxTextureDepth && image[0] * ((image[1] + 3) / 4) <= kMaxTextureDepth;
}

// What keeps x and the result from the norm, and from the ops around it.
Reason unsupported(const NormSite& site, const NormPlan& plan, Target target) {
  const auto taken = [&](const TensorDesc& desc) {
    return target == Target::kBuilder ? is_movable(desc) : is_image(desc) && desc.kind == Kind::kRuntime;
  };
  if (!taken(site.x) || !taken(site.out)) {
    return Reason::kUnsupportedLayout;
  }
  const bool makes_images = plan.added_dims > 0 || plan.relayout_x || plan.relayout_out;
  if (makes_images && !fits_texture(site.x.dims)) {
    return Reason::kTextureSize;
  }
  const bool floats = site.x.dtype == DType::kFloat32 && site.out.dtype == DType::kFloat32;
  return plan.computed && !floats ? Reason::kUnsupportedDtype : Reason::kLegal;
}

// A batch norm without the norm.
void compute(const NormSite& site, const Side& weight, const Side& bias, NormPlan* plan) {
  plan->computed = true;
  plan->added_dims = 0;
  plan->norm_dims = plan->multiply_dims = site.x.dims;
  plan->mean = steps_for(site.mean, site);
  plan->variance = steps_for(site.variance, site);
  if (weight.problem != weight.missing) {
    plan->multiply = steps_for(*weight.desc, site);
  }
  if (bias.problem != bias.missing) {
    plan->add = steps_for(*bias.desc, site);
  }
}

// Puts each operand into the norm or after it; the shift comes last.
void place(const NormSite& site, const Side& weight, const Side& bias, NormPlan* plan) {
  const bool keeps_weight = weight.problem == Reason::kLegal;
  const bool multiplies = !keeps_weight && weight.problem != weight.missing;
  const bool keeps_bias = !multiplies && bias.problem == Reason::kLegal;
  plan->unit_weight = !keeps_weight;
  plan->zero_bias = !keeps_bias;
  if (multiplies) {
    plan->multiply = steps_for(*weight.desc, site);
  }
  if (!keeps_bias && bias.problem != bias.missing) {
    plan->add = steps_for(*bias.desc, site);
  }
}

Reason first_of(std::initializer_list<Reason> reasons) {
  const auto* found = std::find_if(reasons.begin(), reasons.end(), [](Reason reason) { return reason != Reason::kLegal; });
  return found == reasons.end() ? Reason::kLegal : *found;
}

}  // namespace

NormPlan plan_channel_norm(const NormSite& site, Target target) {
  NormPlan plan;
  plan.norm_dtype = site.out.dtype;
  if (const Reason refusal = unusable(site, target); refusal != Reason::kLegal) {
    plan.problem = refusal;
    return refuse(plan, refusal);
  }
  const int64_t channels = weight_length(site);
  Side weight{&site.weight,          Reason::kWeightMissing, Reason::kWeightRuntime, Reason::kWeightMutable,
              Reason::kWeightScalar, Reason::kWeightShape,   Reason::kWeightDtype};
  Side bias{&site.bias,          Reason::kBiasMissing, Reason::kBiasRuntime, Reason::kBiasMutable,
            Reason::kBiasScalar, Reason::kBiasShape,   Reason::kBiasDtype};
  weight.problem = find_problem(weight, channels);
  bias.problem = find_problem(bias, channels);
  plan.added_dims = static_cast<int32_t>(kImageRank - site.x.dims.size());
  plan.relayout_x = target == Target::kBuilder && !is_image(site.x);
  plan.relayout_out = target == Target::kBuilder && !is_image(site.out);
  const bool moved = plan.relayout_x || plan.relayout_out;
  plan.norm_dims = site.x.dims;
  plan.norm_dims.resize(kImageRank, 1);
  plan.multiply_dims = plan.norm_dims;
  plan.problem = plan.reason = first_of({is_computed(site) ? Reason::kStatistics : Reason::kLegal,
                                         plan.added_dims > 0 ? Reason::kImageRank : Reason::kLegal, weight.problem,
                                         bias.problem, moved ? Reason::kUnsupportedLayout : Reason::kLegal});
  if (plan.problem == Reason::kLegal) {
    plan.form = Form::kStock;
    return plan;
  }
  if (is_computed(site)) {
    compute(site, weight, bias, &plan);
  } else {
    place(site, weight, bias, &plan);
  }
  if (target != Target::kLowering) {
    const Reason refusal = first_of({unsupported(site, plan, target), unsupported(weight, plan.multiply, channels, target),
                                     unsupported(bias, plan.add, channels, target)});
    if (refusal != Reason::kLegal) {
      return refuse(plan, refusal);
    }
  }
  const bool alone = !plan.computed && !plan.multiply.used && !plan.add.used && plan.added_dims == 0 && !moved;
  plan.form = alone ? Form::kUnit : Form::kUnitThenOps;
  return plan;
}

}  // namespace etvk_guard
