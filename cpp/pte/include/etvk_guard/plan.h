// SPDX-License-Identifier: Apache-2.0
//
// The planner: given plain descriptions of a norm's operands, the legal form of the norm and why. It is a pure function:
// file repair, the patched op builder and the lowering's audit ask it, and only carry out what it says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <etvk_guard/api.h>

namespace etvk_guard {

// Numeric values are those of VkDataType, VkStorageType and VkMemoryLayout in ET-VK's schema.
enum class DType : int8_t {
  kBool = 0, kUInt8 = 1, kInt8 = 2, kInt32 = 3, kFloat16 = 4, kFloat32 = 5, kFloat64 = 6, kInt64 = 7, kUnset = 127,
};
enum class Storage : uint8_t { kBuffer = 0, kTexture3D = 1, kTexture2D = 2, kDefault = 255 };
enum class Layout : uint8_t { kWidthPacked = 0, kHeightPacked = 1, kChannelsPacked = 2, kDefault = 255 };  // others pass through

// What an operand is to the delegate.
enum class Kind : uint8_t {
  kNone,      // absent (Null)
  kConstant,  // a tref: serialized data, prepacked at load
  kRuntime,   // computed, or an input
  kMutable,   // has serialized data, but is also an input or written to: not a constant
  kScalar,    // a number, not a tensor
};

struct TensorDesc {
  Kind kind = Kind::kNone;
  DType dtype = DType::kUnset;
  Storage storage = Storage::kDefault;
  Layout layout = Layout::kDefault;
  std::vector<int64_t> dims;  // sizes, outermost first; empty: rank 0
};

// RMS and layer norms are over the last dim, D: their weight is a row. Group and batch norms have a weight for each channel, C.
enum class NormKind : uint8_t { kRms, kLayer, kGroup, kBatch };

struct NormSite {
  NormKind kind = NormKind::kRms;
  TensorDesc x, weight, bias, out;  // bias: not for kRms. out: the tensor the site must produce
  int32_t normalized_dims = 1;      // kLayer: length of normalized_shape
  TensorDesc mean = {}, variance = {};  // kBatch
};

// Who asks: they differ in what they can do.
enum class Target : uint8_t {
  kLowering,  // can evaluate constants
  kFile,      // can add unit weights, ops and temporaries; runs on stock
  kBuilder,   // has our fused kernels; clones x and the result of norms over channels to where stock takes them
};

enum class Form : uint8_t {
  kStock,         // legal as it is: nothing to do
  kUnit,          // norm with unit weight (and zero bias), nothing after it
  kUnitThenOps,   // norm with unit weight (and zero bias), then multiply and/or add; or between steps of x and out
  kFusedRow,      // our kernel, weight [D] shared by all rows (constant or run-time)
  kFusedBatch,    // our kernel, one weight row for each group of consecutive rows ([B,1,D])
  kFusedFull,     // our kernel, one weight row for each row ([B,T,D])
  kRefused,       // no legal form is known: see reason
};

enum class Reason : uint8_t {
  kLegal,
  kWeightRuntime, kWeightMutable, kWeightShape, kWeightMissing, kWeightDtype, kWeightScalar,
  kBiasRuntime, kBiasMutable, kBiasShape, kBiasMissing, kBiasDtype, kBiasScalar,
  kResultShape,           // the multiply broadcasts the result up
  kResultDtype,           // result dtype differs from x's
  kImageRank,             // kGroup, kBatch: x is not four-dimensional
  kStatistics,            // kBatch: mean or variance is not a constant of one element for each channel
  // refusals
  kNotBroadcastable, kUnsupportedDtype, kUnsupportedRank, kNormalizedDims, kUnsupportedLayout, kUnknownShape,
  kTextureSize,           // kGroup, kBatch: x with its added dims is larger than a texture
};

// Which rows of an operand belong to which rows of x (a row: the D values along the last dim).
enum class Rows : uint8_t {
  kNone,   // the operand takes no part
  kOne,    // one row for all rows of x
  kBatch,  // sizes are x's or 1, and those that are not 1 are neighbours: one row for each group of consecutive rows, repeated
  kFull,   // one row for each row of x
  kOther,  // none of these: it needs a broadcasting op
};

// What has to be done to one operand (multiplier or addend) before it can be used by the op after the norm, or by our kernel.
struct OperandSteps {
  bool used = false;      // the operand takes part after the norm, or in our kernel
  bool prepack = false;   // constant: et_vk.prepack.default first
  bool cast = false;      // to `dtype`
  bool relayout = false;  // aten.clone.default to `storage`, `layout`
  DType dtype = DType::kUnset;
  Storage storage = Storage::kDefault;
  Layout layout = Layout::kDefault;
  Rows rows = Rows::kNone;
  int64_t shared_rows = 0;  // Rows::kBatch: consecutive rows of x that share one row of the operand
  // kGroup, kBatch: then aten.view_copy.default to these sizes, [1, C, 1, 1] or so, in `view_layout`. Empty: no view.
  std::vector<int64_t> view;
  Layout view_layout = Layout::kDefault;
};

struct NormPlan {
  Form form = Form::kRefused;
  Reason reason = Reason::kLegal;   // of the form: why it is not kStock, or why it is kRefused
  Reason problem = Reason::kLegal;  // what stock cannot run, also where the form is kRefused
  bool unit_weight = false;  // the norm gets a constant of ones [D], or [C], of dtype `norm_dtype`
  bool zero_bias = false;    // not for kRms: the norm gets a constant of zeros [D], or [C]
  DType norm_dtype = DType::kUnset;     // dtype of the norm's own result
  std::vector<int64_t> norm_dims;       // its sizes (x's, with added_dims)
  bool cast_norm = false;    // the norm's result is cast to out's dtype before the ops after it
  OperandSteps multiply, add;
  std::vector<int64_t> multiply_dims;  // kUnitThenOps: sizes before the addition, if there is one: norm_dims times the multiplier
  int64_t rows_per_weight = 0;  // multiply.shared_rows
  // kBatch, of run-time statistics: no norm is left, but (x - mean) * rsqrt(variance + eps), then multiply and add.
  bool computed = false;
  OperandSteps mean, variance;
  int32_t added_dims = 0;  // kGroup, kBatch: so many dims of size 1 are put after x's, and taken from the result
  // kGroup, kBatch, of Target::kBuilder: aten.clone.default of x to a channels-packed 3-D texture first; and from one to out last.
  bool relayout_x = false, relayout_out = false;
};

// The length of the norm's weight: D or C. `site.x` must have that dim.
ETVK_GUARD_API int64_t weight_length(const NormSite& site);

// Total: any description gives a plan, however wrong its numbers. Steps are for the representation (storage, layout) of x; "default"
// is read as ET-VK reads it where nothing overrides it: a 3-D texture, width-packed below rank 3, else channels-packed.

ETVK_GUARD_API NormPlan plan_norm(const NormSite& site, Target target);

// One line for logs and findings, e.g. "weight is a run-time value of shape [1, 1, 64]".
ETVK_GUARD_API std::string describe(const NormSite& site, const NormPlan& plan);
// Stable lower-case names ("unit-then-ops", "weight-runtime"), for the Python face and the docs.
ETVK_GUARD_API const char* name(Form form);
ETVK_GUARD_API const char* name(Reason reason);

}  // namespace etvk_guard
