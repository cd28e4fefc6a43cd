// SPDX-License-Identifier: Apache-2.0
//
// The planner, row by row: what the design's table says. plan_carried_out_test.cpp covers the combinations.
#include <etvk_guard/plan.h>
#include <gtest/gtest.h>

#include <functional>

namespace etvk_guard {
namespace {

using Dims = std::vector<int64_t>;

TensorDesc desc(Kind kind, Dims dims, DType dtype = DType::kFloat32, Storage storage = Storage::kTexture3D,
                Layout layout = Layout::kWidthPacked) {
  return {kind, dtype, storage, layout, std::move(dims)};
}

const Dims kX{2, 3, 64};
constexpr DType kF = DType::kFloat32;
constexpr DType kH = DType::kFloat16;

NormSite rms(TensorDesc weight, Dims out = kX, DType dtype = kF) {
  NormSite site;
  site.x = desc(Kind::kRuntime, kX, dtype);
  site.weight = std::move(weight);
  site.out = desc(Kind::kRuntime, std::move(out), dtype);
  return site;
}
NormSite layer(TensorDesc weight, TensorDesc bias) {
  NormSite site = rms(std::move(weight));
  site.kind = NormKind::kLayer;
  site.bias = std::move(bias);
  return site;
}
NormSite buffers(NormSite site) {
  site.x.storage = site.out.storage = Storage::kBuffer;
  return site;
}
TensorDesc none() { return {}; }
TensorDesc constant(Dims dims, DType dtype = kF) { return desc(Kind::kConstant, std::move(dims), dtype); }
TensorDesc runtime(Dims dims, DType dtype = kF) { return desc(Kind::kRuntime, std::move(dims), dtype); }

// What is done to an operand: "" (not used), or of "used prepack cast relayout" the first letters.
std::string letters(const OperandSteps& steps) {
  std::string text = steps.used ? "u" : "";
  text += steps.prepack ? "p" : "";
  text += steps.cast ? "c" : "";
  return text + (steps.relayout ? "r" : "");
}

struct Row {
  const char* name;
  NormSite site;
  Form file, builder, lowering;
  Reason problem;
  const char* multiply = "";  // for the file
  const char* add = "";
  bool unit_weight = false, zero_bias = false;
};

const Row kRows[] = {
    {"leaf", rms(constant({64})), Form::kStock, Form::kFusedRow, Form::kStock, Reason::kLegal},
    {"leaf 1,1,D", rms(constant({1, 1, 64})), Form::kStock, Form::kFusedRow, Form::kStock, Reason::kLegal},
    {"run-time D", rms(runtime({64})), Form::kUnitThenOps, Form::kFusedRow, Form::kUnitThenOps, Reason::kWeightRuntime, "u", "",
     true},
    {"run-time 1,1,D", rms(runtime({1, 1, 64})), Form::kUnitThenOps, Form::kFusedRow, Form::kUnitThenOps,
     Reason::kWeightRuntime, "u", "", true},
    {"run-time B,1,D", rms(runtime({2, 1, 64})), Form::kUnitThenOps, Form::kFusedBatch, Form::kUnitThenOps,
     Reason::kWeightRuntime, "u", "", true},
    {"run-time B,T,D", rms(runtime(kX)), Form::kUnitThenOps, Form::kFusedFull, Form::kUnitThenOps, Reason::kWeightRuntime, "u",
     "", true},
    {"run-time 1", rms(runtime({1})), Form::kUnitThenOps, Form::kUnitThenOps, Form::kUnitThenOps, Reason::kWeightRuntime, "u",
     "", true},
    {"run-time B,T,1", rms(runtime({2, 3, 1})), Form::kUnitThenOps, Form::kUnitThenOps, Form::kUnitThenOps,
     Reason::kWeightRuntime, "u", "", true},
    {"constant T,D", rms(constant({3, 64})), Form::kUnitThenOps, Form::kFusedBatch, Form::kUnitThenOps, Reason::kWeightShape,
     "up", "", true},
    {"constant B,1,D", rms(constant({2, 1, 64})), Form::kUnitThenOps, Form::kFusedBatch, Form::kUnitThenOps,
     Reason::kWeightShape, "up", "", true},
    {"constant 1", rms(constant({1})), Form::kUnitThenOps, Form::kUnitThenOps, Form::kUnitThenOps, Reason::kWeightShape, "up",
     "", true},
    {"constant rank 0", rms(constant({})), Form::kUnitThenOps, Form::kUnitThenOps, Form::kUnitThenOps, Reason::kWeightShape,
     "up", "", true},
    {"constant D,1 is no row", rms(constant({64, 1}), {2, 64, 64}), Form::kRefused, Form::kRefused, Form::kRefused,
     Reason::kWeightShape},
    {"broadcast up", rms(constant({5, 1, 1, 64}), {5, 2, 3, 64}), Form::kUnitThenOps, Form::kUnitThenOps, Form::kUnitThenOps,
     Reason::kWeightShape, "up", "", true},
    {"leaf raises the rank", rms(constant({1, 1, 1, 64}), {1, 2, 3, 64}), Form::kUnitThenOps, Form::kUnitThenOps,
     Form::kUnitThenOps, Reason::kResultShape, "up", "", true},
    {"no weight", rms(none()), Form::kUnit, Form::kFusedRow, Form::kUnit, Reason::kWeightMissing, "", "", true},
    {"mutable", rms(desc(Kind::kMutable, {64})), Form::kRefused, Form::kRefused, Form::kUnitThenOps, Reason::kWeightMutable},
    {"scalar", rms(desc(Kind::kScalar, {})), Form::kRefused, Form::kRefused, Form::kUnitThenOps, Reason::kWeightScalar},
    {"half leaf", rms(constant({64}, kH), kX, kH), Form::kStock, Form::kFusedRow, Form::kStock, Reason::kLegal},
    {"float leaf on half x", buffers(rms(constant({64}), kX, kH)), Form::kUnitThenOps, Form::kFusedRow, Form::kUnitThenOps,
     Reason::kWeightDtype, "upc", "", true},
    {"float leaf on half x in textures", rms(constant({64}), kX, kH), Form::kStock, Form::kFusedRow, Form::kUnitThenOps,
     Reason::kLegal},
    {"int32 constant", rms(constant({64}, DType::kInt32)), Form::kUnitThenOps, Form::kFusedRow, Form::kUnitThenOps,
     Reason::kWeightDtype, "upc", "", true},
    {"bool run-time", rms(runtime(kX, DType::kBool)), Form::kUnitThenOps, Form::kFusedFull, Form::kUnitThenOps,
     Reason::kWeightRuntime, "uc", "", true},
    {"int64", rms(runtime({64}, DType::kInt64)), Form::kRefused, Form::kRefused, Form::kUnitThenOps, Reason::kWeightRuntime},
    {"does not broadcast", rms(runtime({5, 64})), Form::kRefused, Form::kRefused, Form::kRefused, Reason::kWeightRuntime},
    {"result is not the product's shape", rms(runtime({5, 1, 1, 64})), Form::kRefused, Form::kRefused, Form::kRefused,
     Reason::kWeightRuntime},
    {"layer leaf", layer(constant({64}), constant({64})), Form::kStock, Form::kFusedRow, Form::kStock, Reason::kLegal},
    {"layer nothing", layer(none(), none()), Form::kUnit, Form::kFusedRow, Form::kUnit, Reason::kWeightMissing, "", "", true,
     true},
    {"layer no bias", layer(constant({64}), none()), Form::kUnit, Form::kFusedRow, Form::kUnit, Reason::kBiasMissing, "", "",
     false, true},
    {"layer no weight", layer(none(), constant({64})), Form::kUnit, Form::kFusedRow, Form::kUnit, Reason::kWeightMissing, "",
     "", true, false},
    {"layer run-time weight moves the bias", layer(runtime({64}), constant({64})), Form::kUnitThenOps, Form::kFusedRow,
     Form::kUnitThenOps, Reason::kWeightRuntime, "u", "up", true, true},
    {"layer run-time bias", layer(constant({64}), runtime({64})), Form::kUnitThenOps, Form::kFusedRow, Form::kUnitThenOps,
     Reason::kBiasRuntime, "", "u", false, true},
    {"layer both run-time", layer(runtime({2, 1, 64}), runtime({2, 1, 64})), Form::kUnitThenOps, Form::kFusedBatch,
     Form::kUnitThenOps, Reason::kWeightRuntime, "u", "u", true, true},
    {"layer run-time weight, no bias", layer(runtime({64}), none()), Form::kUnitThenOps, Form::kFusedRow, Form::kUnitThenOps,
     Reason::kWeightRuntime, "u", "", true, true},
    {"layer bias of another shape", layer(constant({64}), constant({3, 64})), Form::kUnitThenOps, Form::kFusedBatch,
     Form::kUnitThenOps, Reason::kBiasShape, "", "up", false, true},
};

TEST(PlanTable, FormsReasonsAndSteps) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    const NormPlan plan = plan_norm(row.site, Target::kFile);
    EXPECT_STREQ(name(plan.form), name(row.file));
    EXPECT_STREQ(name(plan_norm(row.site, Target::kBuilder).form), name(row.builder));
    EXPECT_STREQ(name(plan_norm(row.site, Target::kLowering).form), name(row.lowering));
    EXPECT_STREQ(name(plan.problem), name(row.problem));
    if (row.file == Form::kRefused) {
      continue;
    }
    EXPECT_STREQ(name(plan.reason), name(row.problem));
    EXPECT_EQ(letters(plan.multiply), row.multiply);
    EXPECT_EQ(letters(plan.add), row.add);
    EXPECT_EQ(plan.unit_weight, row.unit_weight);
    EXPECT_EQ(plan.zero_bias, row.zero_bias);
  }
}

struct Change {
  const char* name;
  std::function<void(NormSite&)> apply;
  Form file;
  Reason reason;
  const char* multiply = "";
};

// A run-time multiplier [2,1,64] of x [2,3,64], and one thing changed.
const Change kChanges[] = {
    {"as it is", [](NormSite&) {}, Form::kUnitThenOps, Reason::kWeightRuntime, "u"},
    {"multiplier in a buffer", [](NormSite& s) { s.weight.storage = Storage::kBuffer; }, Form::kUnitThenOps,
     Reason::kWeightRuntime, "ur"},
    {"multiplier channels-packed", [](NormSite& s) { s.weight.layout = Layout::kChannelsPacked; }, Form::kUnitThenOps,
     Reason::kWeightRuntime, "ur"},
    {"multiplier of default layout is channels-packed", [](NormSite& s) { s.weight.layout = Layout::kDefault; },
     Form::kUnitThenOps, Reason::kWeightRuntime, "ur"},
    {"multiplier of default storage is a texture", [](NormSite& s) { s.weight.storage = Storage::kDefault; },
     Form::kUnitThenOps, Reason::kWeightRuntime, "u"},
    {"rank 2 of default layout is width-packed",
     [](NormSite& s) { s.weight.layout = Layout::kDefault, s.weight.dims = {3, 64}; }, Form::kUnitThenOps,
     Reason::kWeightRuntime, "u"},
    {"half multiplier", [](NormSite& s) { s.weight.dtype = kH; }, Form::kUnitThenOps, Reason::kWeightRuntime, "uc"},
    {"half multiplier in a buffer", [](NormSite& s) { s.weight.dtype = kH, s.weight.storage = Storage::kBuffer; },
     Form::kUnitThenOps, Reason::kWeightRuntime, "ucr"},
    {"half x, float multiplier and result", [](NormSite& s) { s.x.dtype = kH; }, Form::kUnitThenOps, Reason::kWeightRuntime,
     "u"},
    {"multiplier in a 2-D texture", [](NormSite& s) { s.weight.storage = Storage::kTexture2D; }, Form::kRefused,
     Reason::kUnsupportedLayout},
    {"multiplier int8-packed", [](NormSite& s) { s.weight.layout = static_cast<Layout>(4); }, Form::kRefused,
     Reason::kUnsupportedLayout},
    {"x in a 2-D texture", [](NormSite& s) { s.x.storage = s.out.storage = Storage::kTexture2D; }, Form::kRefused,
     Reason::kUnsupportedLayout},
    {"x channels-packed", [](NormSite& s) { s.x.layout = s.out.layout = Layout::kChannelsPacked; }, Form::kRefused,
     Reason::kUnsupportedLayout},
    {"buffers, channels-packed",
     [](NormSite& s) { s.x.layout = s.out.layout = Layout::kChannelsPacked, s.x.storage = s.out.storage = Storage::kBuffer; },
     Form::kUnitThenOps, Reason::kWeightRuntime, "ur"},
    {"layer norm takes x channels-packed",
     [](NormSite& s) { s.kind = NormKind::kLayer, s.x.layout = s.out.layout = Layout::kChannelsPacked; }, Form::kUnitThenOps,
     Reason::kWeightRuntime, "ur"},
    {"x and result in different storage", [](NormSite& s) { s.x.storage = Storage::kBuffer; }, Form::kRefused,
     Reason::kUnsupportedLayout},
    {"x and result in different layout", [](NormSite& s) { s.out.layout = Layout::kHeightPacked; }, Form::kRefused,
     Reason::kUnsupportedLayout},
    {"rank 5", [](NormSite& s) { s.x.dims = s.out.dims = {1, 1, 2, 3, 64}; }, Form::kRefused, Reason::kUnsupportedRank},
    {"multiplier of rank 5", [](NormSite& s) { s.weight.dims = {1, 1, 1, 1, 64}, s.out.dims = {1, 1, 2, 3, 64}; },
     Form::kRefused, Reason::kUnsupportedRank},
    {"normalized_shape of 2 dims", [](NormSite& s) { s.kind = NormKind::kLayer, s.normalized_dims = 2; }, Form::kRefused,
     Reason::kNormalizedDims},
    {"x int32", [](NormSite& s) { s.x.dtype = DType::kInt32; }, Form::kRefused, Reason::kUnsupportedDtype},
    {"result float64", [](NormSite& s) { s.out.dtype = DType::kFloat64; }, Form::kRefused, Reason::kUnsupportedDtype},
    {"unknown dtype", [](NormSite& s) { s.weight.dtype = static_cast<DType>(99); }, Form::kRefused, Reason::kUnsupportedDtype},
    {"x is a constant", [](NormSite& s) { s.x.kind = Kind::kConstant; }, Form::kRefused, Reason::kUnknownShape},
    {"x is no tensor", [](NormSite& s) { s.x = {}; }, Form::kRefused, Reason::kUnknownShape},
    {"x of rank 0", [](NormSite& s) { s.x.dims = {}; }, Form::kRefused, Reason::kUnknownShape},
    {"x empty", [](NormSite& s) { s.x.dims = {0, 64}; }, Form::kRefused, Reason::kUnknownShape},
    {"x of negative size", [](NormSite& s) { s.x.dims = {-1, 64}; }, Form::kRefused, Reason::kUnknownShape},
    {"sizes that overflow", [](NormSite& s) { s.x.dims = s.out.dims = {INT32_MAX, INT32_MAX, INT32_MAX}; }, Form::kRefused,
     Reason::kUnknownShape},
    {"multiplier that overflows", [](NormSite& s) { s.weight.dims = {INT64_MAX, 2, 64}; }, Form::kRefused,
     Reason::kUnknownShape},
    {"multiplier of size INT64_MIN", [](NormSite& s) { s.weight.dims = {INT64_MIN}; }, Form::kRefused, Reason::kUnknownShape},
    {"result empty", [](NormSite& s) { s.out.dims = {2, 0, 64}; }, Form::kRefused, Reason::kUnknownShape},
};

TEST(PlanTable, OneThingChanged) {
  for (const Change& change : kChanges) {
    SCOPED_TRACE(change.name);
    NormSite site = rms(runtime({2, 1, 64}));
    change.apply(site);
    const NormPlan plan = plan_norm(site, Target::kFile);
    EXPECT_STREQ(name(plan.form), name(change.file));
    EXPECT_STREQ(name(plan.reason), name(change.reason));
    if (plan.form != Form::kRefused) {
      EXPECT_EQ(letters(plan.multiply), change.multiply);
      EXPECT_EQ(plan.cast_norm, site.x.dtype != site.out.dtype);
    }
  }
}

TEST(PlanTable, Words) {
  const auto words = [](const NormSite& site) { return describe(site, plan_norm(site, Target::kFile)); };
  EXPECT_EQ(words(rms(constant({64}))), "legal as it is");
  EXPECT_EQ(words(rms(runtime({1, 1, 64}))), "weight is a run-time value of shape [1, 1, 64]");
  EXPECT_EQ(words(rms(constant({3, 64}))), "weight is a constant of shape [3, 64], but the norm reads one row of 64");
  EXPECT_EQ(words(buffers(rms(constant({64}), kX, kH))), "weight is float32, but x is float16");
  EXPECT_EQ(words(rms(constant({1, 1, 1, 64}), {1, 2, 3, 64})), "the result has shape [1, 2, 3, 64], but x has [2, 3, 64]");
  EXPECT_EQ(words(layer(constant({64}), none())), "bias is missing");
  EXPECT_EQ(words(rms(runtime({5, 64}))),
            "weight is a run-time value of shape [5, 64]; no legal form: x, weight and bias do not broadcast to the result's "
            "shape [2, 3, 64]");
  for (int i = 0; i < 64; ++i) {  // every value has a name, and values beyond the last do no harm
    EXPECT_NE(name(static_cast<Reason>(i)), nullptr);
    EXPECT_NE(name(static_cast<Form>(i)), nullptr);
  }
}

}  // namespace
}  // namespace etvk_guard
