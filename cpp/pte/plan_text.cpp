// SPDX-License-Identifier: Apache-2.0
//
// The planner's words.
#include <etvk_guard/plan.h>

#include "error.h"

namespace etvk_guard {
namespace {

struct ReasonText {
  Reason reason;
  const char* name;
};

constexpr ReasonText kReasons[] = {
    {Reason::kLegal, "legal"},
    {Reason::kWeightRuntime, "weight-runtime"},
    {Reason::kWeightMutable, "weight-mutable"},
    {Reason::kWeightShape, "weight-shape"},
    {Reason::kWeightMissing, "weight-missing"},
    {Reason::kWeightDtype, "weight-dtype"},
    {Reason::kWeightScalar, "weight-scalar"},
    {Reason::kBiasRuntime, "bias-runtime"},
    {Reason::kBiasMutable, "bias-mutable"},
    {Reason::kBiasShape, "bias-shape"},
    {Reason::kBiasMissing, "bias-missing"},
    {Reason::kBiasDtype, "bias-dtype"},
    {Reason::kBiasScalar, "bias-scalar"},
    {Reason::kResultShape, "result-shape"},
    {Reason::kResultDtype, "result-dtype"},
    {Reason::kImageRank, "image-rank"},
    {Reason::kStatistics, "statistics"},
    {Reason::kNotBroadcastable, "not-broadcastable"},
    {Reason::kUnsupportedDtype, "unsupported-dtype"},
    {Reason::kUnsupportedRank, "unsupported-rank"},
    {Reason::kNormalizedDims, "normalized-dims"},
    {Reason::kUnsupportedLayout, "unsupported-layout"},
    {Reason::kUnknownShape, "unknown-shape"},
    {Reason::kTextureSize, "texture-size"},
};

std::string shape(const TensorDesc& desc) { return dims_text(desc.dims); }
bool is_channel(const NormSite& site) { return site.kind == NormKind::kGroup || site.kind == NormKind::kBatch; }
int64_t width(const NormSite& site) { return site.x.dims.size() < (is_channel(site) ? 2 : 1) ? 0 : weight_length(site); }

std::string wrong_shape(const char* operand, const TensorDesc& desc, const NormSite& site) {
  const char* what = desc.kind == Kind::kConstant ? "a constant" : "a run-time value";
  return format("%s is %s of shape %s, but the norm reads one row of %lld", operand, what, shape(desc).c_str(),
                static_cast<long long>(width(site)));
}

std::string wrong_dtype(const char* operand, const TensorDesc& desc, const NormSite& site) {
  return format("%s is %s, but x is %s", operand, dtype_name(desc.dtype), dtype_name(site.x.dtype));
}

std::string runtime(const char* operand, const TensorDesc& desc) {
  return format("%s is a run-time value of shape %s", operand, shape(desc).c_str());
}

std::string statistics(const NormSite& site) {
  const bool mean = site.mean.kind != Kind::kConstant || site.mean.dims != std::vector<int64_t>{width(site)};
  const TensorDesc& desc = mean ? site.mean : site.variance;
  const char* label = mean ? "running_mean" : "running_var";
  switch (desc.kind) {
    case Kind::kRuntime:
      return runtime(label, desc);
    case Kind::kMutable:
      return std::string(label) + " is a mutable buffer of shape " + shape(desc);
    case Kind::kConstant:
      return wrong_shape(label, desc, site);
    default:
      return std::string(label) + " is missing";
  }
}

std::string sentence(const NormSite& site, Reason reason) {
  switch (reason) {
    case Reason::kLegal:
      return "legal as it is";
    case Reason::kWeightRuntime:
      return runtime("weight", site.weight);
    case Reason::kWeightMutable:
      return "weight is a mutable buffer of shape " + shape(site.weight);
    case Reason::kWeightShape:
      return wrong_shape("weight", site.weight, site);
    case Reason::kWeightMissing:
      return "weight is missing";
    case Reason::kWeightDtype:
      return wrong_dtype("weight", site.weight, site);
    case Reason::kWeightScalar:
      return "weight is a number, not a tensor";
    case Reason::kBiasRuntime:
      return runtime("bias", site.bias);
    case Reason::kBiasMutable:
      return "bias is a mutable buffer of shape " + shape(site.bias);
    case Reason::kBiasShape:
      return wrong_shape("bias", site.bias, site);
    case Reason::kBiasMissing:
      return "bias is missing";
    case Reason::kBiasDtype:
      return wrong_dtype("bias", site.bias, site);
    case Reason::kBiasScalar:
      return "bias is a number, not a tensor";
    case Reason::kResultShape:
      return "the result has shape " + shape(site.out) + ", but x has " + shape(site.x);
    case Reason::kResultDtype:
      return wrong_dtype("the result", site.out, site);
    case Reason::kImageRank:
      return format("x has %zu dims, but the norm takes images of four", site.x.dims.size());
    case Reason::kStatistics:
      return statistics(site);
    case Reason::kNotBroadcastable:
      return "x, weight and bias do not broadcast to the result's shape " + shape(site.out);
    case Reason::kUnsupportedDtype:
      return "an operand's dtype cannot be cast on the GPU";
    case Reason::kUnsupportedRank:
      return "an operand has more than 4 dims";
    case Reason::kNormalizedDims:
      return "normalized_shape has " + std::to_string(site.normalized_dims) + " dims, not 1";
    case Reason::kUnsupportedLayout:
      return "an operand's storage or memory layout is not one that the norm and its ops take";
    case Reason::kTextureSize:
      return "x with shape " + shape(site.x) + " is larger than a texture" +
             (site.x.dims.size() < 4 ? ", once it has four dims" : "");
    case Reason::kUnknownShape:
      return "an operand is no tensor that the delegate computes, or its sizes are not usable";
  }
  return "unknown reason";
}

}  // namespace

const char* name(Form form) {
  switch (form) {
    case Form::kStock:
      return "stock";
    case Form::kUnit:
      return "unit";
    case Form::kUnitThenOps:
      return "unit-then-ops";
    case Form::kFusedRow:
      return "fused-row";
    case Form::kFusedBatch:
      return "fused-batch";
    case Form::kFusedFull:
      return "fused-full";
    case Form::kRefused:
      return "refused";
  }
  return "unknown";
}

const char* name(Reason reason) {
  for (const ReasonText& row : kReasons) {
    if (row.reason == reason) {
      return row.name;
    }
  }
  return "unknown";
}

std::string describe(const NormSite& site, const NormPlan& plan) {
  std::string text = sentence(site, plan.problem);
  if (plan.form == Form::kRefused && plan.reason != plan.problem) {
    text += "; no legal form: " + sentence(site, plan.reason);
  }
  return text;
}

}  // namespace etvk_guard
