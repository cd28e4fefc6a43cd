// SPDX-License-Identifier: Apache-2.0
//
// The planner's part for norms over channels: a case a line for file repair, others for the builder, and then every combination
// of ranks, dtypes, representations and operands for both.
#include <etvk_guard/plan.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <ostream>

namespace etvk_guard {
namespace {

using Dims = std::vector<int64_t>;

constexpr int64_t kC = 6;
constexpr DType kF = DType::kFloat32;
constexpr DType kH = DType::kFloat16;

TensorDesc desc(Kind kind, Dims dims, DType dtype = kF, Storage storage = Storage::kTexture3D,
                Layout layout = Layout::kWidthPacked) {
  return {kind, dtype, storage, layout, std::move(dims)};
}
TensorDesc runtime(Dims dims, DType dtype = kF) { return desc(Kind::kRuntime, std::move(dims), dtype); }
TensorDesc constant(Dims dims, DType dtype = kF) { return desc(Kind::kConstant, std::move(dims), dtype); }
TensorDesc image(Dims dims, DType dtype = kF) {
  return desc(Kind::kRuntime, std::move(dims), dtype, Storage::kTexture3D, Layout::kChannelsPacked);
}
TensorDesc buffer(Dims dims, DType dtype = kF) { return desc(Kind::kRuntime, std::move(dims), dtype, Storage::kBuffer); }
const TensorDesc kNone;

NormSite group(TensorDesc weight, TensorDesc bias, const TensorDesc& x = image({2, kC, 5, 7})) {
  return {NormKind::kGroup, x, std::move(weight), std::move(bias), x};
}
NormSite batch(const TensorDesc& mean, const TensorDesc& variance, const TensorDesc& x = image({2, kC, 5, 7})) {
  return {NormKind::kBatch, x, kNone, kNone, x, 1, mean, variance};
}
const TensorDesc kColumn = constant({kC}), kGiven = runtime({kC});
const TensorDesc kMutable = desc(Kind::kMutable, {kC});

// ----------------------------------------------------------------------------------------------------------------- file repair

struct NormCase {
  const char* name;
  NormSite site;
  Form form;
  Reason reason;
  bool unit, zero, multiply, add;
  int32_t added_dims = 0;
};
void PrintTo(const NormCase& c, std::ostream* os) { *os << c.name; }

const NormCase kNorms[] = {
    {"legal", group(kColumn, kColumn), Form::kStock, Reason::kLegal, false, false, false, false},
    {"bare", group(kNone, kNone), Form::kUnit, Reason::kWeightMissing, true, true, false, false},
    {"no_bias", group(kColumn, kNone), Form::kUnit, Reason::kBiasMissing, false, true, false, false},
    {"runtime", group(kGiven, kGiven), Form::kUnitThenOps, Reason::kWeightRuntime, true, true, true, true},
    {"runtime_weight", group(kGiven, kColumn), Form::kUnitThenOps, Reason::kWeightRuntime, true, true, true, true},
    {"runtime_weight_only", group(kGiven, kNone), Form::kUnitThenOps, Reason::kWeightRuntime, true, true, true, false},
    {"runtime_bias", group(kColumn, kGiven), Form::kUnitThenOps, Reason::kBiasRuntime, false, true, false, true},
    {"in_a_buffer", group(kColumn, buffer({6})), Form::kUnitThenOps, Reason::kBiasRuntime, false, true, false, true},
    {"three_dims", group(kColumn, kColumn, image({2, 6, 5})), Form::kUnitThenOps, Reason::kImageRank, false, false, false,
     false, 1},
    {"two_dims", group(kGiven, kNone, image({2, 6})), Form::kUnitThenOps, Reason::kImageRank, true, true, true, false, 2},
    {"too_deep", group(kColumn, kColumn, image({1025, 6, 5})), Form::kRefused, Reason::kTextureSize, false, false, false,
     false},
    {"five_dims", group(kNone, kNone, image({2, 6, 5, 7, 3})), Form::kRefused, Reason::kUnsupportedRank, false, false, false,
     false},
    {"one_dim", group(kNone, kNone, image({6})), Form::kRefused, Reason::kUnknownShape, false, false, false, false},
    {"not_packed_by_channels", group(kNone, kNone, runtime({2, 6, 5, 7})), Form::kRefused, Reason::kUnsupportedLayout, true,
     true, false, false},
    {"mutable", group(kMutable, kColumn), Form::kRefused, Reason::kWeightMutable, true, true, true, true},
    {"of_another_length", group(runtime({3}), kColumn), Form::kRefused, Reason::kWeightShape, true, true, true, true},
    {"integers", group(runtime({6}, DType::kInt32), kColumn), Form::kRefused, Reason::kUnsupportedDtype, true, true, true,
     true},
    {"batch", batch(kColumn, kColumn), Form::kUnit, Reason::kWeightMissing, true, true, false, false},
    {"batch_mean", batch(kGiven, kColumn), Form::kUnitThenOps, Reason::kStatistics, false, false, false, false},
    {"batch_mean_of_three_dims", batch(kGiven, kColumn, image({2, 6, 5})), Form::kUnitThenOps, Reason::kStatistics, false,
     false, false, false},
    {"batch_mean_half", batch(kGiven, kColumn, image({2, 6, 5, 7}, DType::kFloat16)), Form::kRefused, Reason::kUnsupportedDtype,
     false, false, false, false},
    {"batch_mean_of_another_length", batch(runtime({3}), kColumn), Form::kRefused, Reason::kStatistics, false, false, false,
     false},
    {"batch_variance", batch(kColumn, kMutable), Form::kRefused, Reason::kStatistics, false, false, false, false},
};

class ChannelNorm : public ::testing::TestWithParam<NormCase> {};

TEST_P(ChannelNorm, IsPlanned) {
  const NormCase& c = GetParam();
  const NormPlan plan = plan_norm(c.site, Target::kFile);
  EXPECT_EQ(plan.form, c.form);
  EXPECT_EQ(plan.reason, c.reason);
  EXPECT_EQ(plan.unit_weight, c.unit);
  EXPECT_EQ(plan.zero_bias, c.zero);
  EXPECT_EQ(plan.multiply.used, c.multiply);
  EXPECT_EQ(plan.add.used, c.add);
  EXPECT_EQ(plan.form == Form::kRefused ? 0 : plan.added_dims, c.added_dims);
  for (const OperandSteps* steps : {&plan.multiply, &plan.add}) {
    if (steps->used) {
      EXPECT_EQ(steps->view, (Dims{1, 6, 1, 1}));
      EXPECT_EQ(steps->storage, Storage::kTexture3D);
    }
  }
  EXPECT_FALSE(describe(c.site, plan).empty());
}
INSTANTIATE_TEST_SUITE_P(Cases, ChannelNorm, ::testing::ValuesIn(kNorms), [](const auto& row) { return row.param.name; });

TEST(ChannelNorm, OperandsOfBuffersAreCopied) {
  const NormPlan plan = plan_norm(group(buffer({6}), runtime({6}, DType::kFloat16)), Target::kFile);
  EXPECT_TRUE(plan.multiply.relayout);
  EXPECT_FALSE(plan.multiply.cast);
  EXPECT_FALSE(plan.add.relayout);
  EXPECT_TRUE(plan.add.cast);
}

// ----------------------------------------------------------------------------------------------------------------- the builder

struct BuilderCase {
  const char* name;
  NormSite site;
  Form form;
  Reason reason, problem;
  bool relayout_x = false, relayout_out = false;
  const char* operands = "";  // what is done besides the norm: "c" computed instead, "*", "+"
};
void PrintTo(const BuilderCase& c, std::ostream* os) { *os << c.name; }

NormSite to(NormSite site, TensorDesc out) {
  site.out = std::move(out);
  return site;
}

constexpr Form kOps = Form::kUnitThenOps;
const Dims kX{2, kC, 5, 7};
const BuilderCase kBuilt[] = {
    {"legal", group(kColumn, kColumn), Form::kStock, Reason::kLegal, Reason::kLegal},
    {"bare", group(kNone, kNone), Form::kUnit, Reason::kWeightMissing, Reason::kWeightMissing},
    {"legal_but_in_buffers", group(kColumn, kColumn, buffer(kX)), kOps, Reason::kUnsupportedLayout, Reason::kUnsupportedLayout,
     true, true},
    {"width_packed", group(kColumn, kColumn, runtime(kX)), kOps, Reason::kUnsupportedLayout, Reason::kUnsupportedLayout, true,
     true},
    {"to_a_buffer", to(group(kColumn, kColumn), buffer(kX)), kOps, Reason::kUnsupportedLayout, Reason::kUnsupportedLayout,
     false, true},
    {"permuted", group(kColumn, kColumn, desc(Kind::kRuntime, kX, kF, Storage::kTexture3D, static_cast<Layout>(100))), kOps,
     Reason::kUnsupportedLayout, Reason::kUnsupportedLayout, true, true},
    {"three_dims_in_buffers", group(kGiven, kNone, buffer({2, kC, 9})), kOps, Reason::kImageRank, Reason::kImageRank, true,
     true, "*"},
    {"two_dtypes", to(group(kColumn, kColumn, buffer(kX, kH)), buffer(kX)), kOps, Reason::kUnsupportedLayout,
     Reason::kUnsupportedLayout, true, true},
    {"constant_row", group(constant({1, kC}), kColumn), kOps, Reason::kWeightShape, Reason::kWeightShape, false, false, "*+"},
    {"constant_column", group(kColumn, constant({kC, 1, 1})), kOps, Reason::kBiasShape, Reason::kBiasShape, false, false, "+"},
    {"runtime_column", group(buffer({1, kC, 1, 1}, kH), kNone), kOps, Reason::kWeightRuntime, Reason::kWeightRuntime, false,
     false, "*"},
    {"one_channel_of_rank_0", group(constant({}), kNone, image({2, 1, 5, 7})), kOps, Reason::kWeightShape, Reason::kWeightShape,
     false, false, "*"},
    {"computed", batch(kColumn, kGiven), kOps, Reason::kStatistics, Reason::kStatistics, false, false, "c"},
    {"computed_of_a_row", batch(constant({1, kC}), kColumn), kOps, Reason::kStatistics, Reason::kStatistics, false, false, "c"},
    {"computed_in_buffers", batch(buffer({kC}), kColumn, buffer({2, kC, 9})), kOps, Reason::kStatistics, Reason::kStatistics,
     true, true, "c"},
    {"computed_half", batch(kColumn, kGiven, image(kX, kH)), Form::kRefused, Reason::kUnsupportedDtype, Reason::kStatistics},
    {"matrix_of_weights", group(runtime({2, 3}), kNone), Form::kRefused, Reason::kWeightShape, Reason::kWeightRuntime},
    {"rows_of_weights", group(runtime({2, kC}), kNone), Form::kRefused, Reason::kWeightShape, Reason::kWeightRuntime},
    {"weight_of_five_dims", group(runtime({1, 1, 1, 1, kC}), kNone), Form::kRefused, Reason::kUnsupportedRank,
     Reason::kWeightRuntime},
    {"weight_in_a_2d_texture", group(desc(Kind::kRuntime, {kC}, kF, Storage::kTexture2D), kNone), Form::kRefused,
     Reason::kUnsupportedLayout, Reason::kWeightRuntime},
    {"x_in_a_2d_texture", group(kColumn, kColumn, desc(Kind::kRuntime, kX, kF, Storage::kTexture2D)), Form::kRefused,
     Reason::kUnsupportedLayout, Reason::kUnsupportedLayout},
    {"larger_than_a_texture", group(kColumn, kColumn, buffer({1025, kC, 5, 7})), Form::kRefused, Reason::kTextureSize,
     Reason::kUnsupportedLayout},
    {"x_is_constant", group(kColumn, kColumn, constant(kX)), Form::kRefused, Reason::kUnknownShape, Reason::kUnknownShape},
};

class BuiltNorm : public ::testing::TestWithParam<BuilderCase> {};

TEST_P(BuiltNorm, IsPlanned) {
  const BuilderCase& c = GetParam();
  const NormPlan plan = plan_norm(c.site, Target::kBuilder);
  EXPECT_STREQ(name(plan.form), name(c.form));
  EXPECT_STREQ(name(plan.reason), name(c.reason));
  EXPECT_STREQ(name(plan.problem), name(c.problem));
  if (c.form != Form::kRefused) {
    EXPECT_EQ(plan.relayout_x, c.relayout_x);
    EXPECT_EQ(plan.relayout_out, c.relayout_out);
    const std::string operands =
        std::string(plan.computed ? "c" : "") + (plan.multiply.used ? "*" : "") + (plan.add.used ? "+" : "");
    EXPECT_EQ(operands, c.operands);
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, BuiltNorm, ::testing::ValuesIn(kBuilt), [](const auto& row) { return row.param.name; });

// ------------------------------------------------------------------------------------------------------------ all combinations

bool is_float_dtype(DType dtype) { return dtype == kF || dtype == kH; }
bool is_image(const TensorDesc& tensor) {
  return tensor.storage == Storage::kTexture3D && tensor.layout == Layout::kChannelsPacked;
}
int64_t count(const Dims& dims) { return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()); }
bool stock_takes(const TensorDesc& operand) {
  return operand.kind == Kind::kConstant && operand.dims == Dims{kC} && is_float_dtype(operand.dtype);
}

// What can be viewed as one element for each channel.
bool can_follow(const TensorDesc& operand, Target target) {
  const bool one_dim = target == Target::kBuilder
                           ? count(operand.dims) == kC && *std::max_element(operand.dims.begin(), operand.dims.end()) == kC
                           : operand.dims == Dims{kC};
  return (operand.kind == Kind::kConstant || operand.kind == Kind::kRuntime) && one_dim && is_float_dtype(operand.dtype);
}

bool is_computed(const NormSite& site) {
  return site.kind == NormKind::kBatch && !(stock_takes(site.mean) && stock_takes(site.variance));
}

bool possible(const NormSite& site, Target target) {
  const bool builder = target == Target::kBuilder;
  const size_t rank = site.x.dims.size();
  const auto operand = [&](const TensorDesc& given) { return given.kind == Kind::kNone || can_follow(given, target); };
  const auto statistic = [&](const TensorDesc& given) { return site.kind == NormKind::kGroup || can_follow(given, target); };
  const auto stored = [&](const TensorDesc& tensor) {
    return builder ? tensor.storage != Storage::kTexture2D : is_image(tensor);
  };
  return rank >= 2 && rank <= 4 && is_float_dtype(site.x.dtype) && is_float_dtype(site.out.dtype) && operand(site.weight) &&
         operand(site.bias) && statistic(site.mean) && statistic(site.variance) && stored(site.x) && stored(site.out) &&
         !(is_computed(site) && (site.x.dtype != kF || site.out.dtype != kF));
}

// Stock has no say in what file repair finds legal: it looks at the operands only.
bool legal(const NormSite& site, Target target) {
  return site.x.dims.size() == 4 && is_float_dtype(site.x.dtype) && is_float_dtype(site.out.dtype) &&
         stock_takes(site.weight) && stock_takes(site.bias) && !is_computed(site) &&
         (target == Target::kFile || (is_image(site.x) && is_image(site.out)));
}

void expect_usable(const TensorDesc& operand, const OperandSteps& steps, const NormSite& site) {
  if (!steps.used) {
    return;
  }
  EXPECT_EQ(steps.prepack, operand.kind == Kind::kConstant);
  EXPECT_EQ(steps.relayout, operand.kind == Kind::kRuntime && operand.storage == Storage::kBuffer);
  EXPECT_EQ(steps.cast ? steps.dtype : operand.dtype, site.out.dtype);
  EXPECT_EQ(steps.storage, Storage::kTexture3D);
  EXPECT_EQ(steps.view_layout, Layout::kChannelsPacked);
  Dims column(is_computed(site) ? site.x.dims.size() : 4, 1);
  column[1] = kC;
  EXPECT_EQ(steps.view, column);
}

// What the plan gives for one element, of which the bare norm gives `bare`.
double carry_out(const NormSite& site, const NormPlan& plan, double bare, double weight, double bias) {
  double value = bare;
  if (!plan.computed) {
    EXPECT_TRUE(plan.unit_weight || stock_takes(site.weight));
    EXPECT_TRUE(plan.zero_bias || stock_takes(site.bias));
    value = bare * (plan.unit_weight ? 1 : weight) + (plan.zero_bias ? 0 : bias);
  }
  value *= plan.multiply.used ? weight : 1;
  return value + (plan.add.used ? bias : 0);
}

void check_site(const NormSite& site, Target target) {
  const NormPlan plan = plan_norm(site, target);
  ASSERT_EQ(plan.form == Form::kStock, legal(site, target));
  if (plan.form == Form::kStock) {
    return;
  }
  ASSERT_EQ(plan.form != Form::kRefused, possible(site, target));
  if (plan.form == Form::kRefused) {
    return;
  }
  ASSERT_EQ(plan.computed, is_computed(site));
  ASSERT_EQ(plan.relayout_x, target == Target::kBuilder && !is_image(site.x));
  ASSERT_EQ(plan.relayout_out, target == Target::kBuilder && !is_image(site.out));
  ASSERT_EQ(plan.norm_dims.size(), plan.computed ? site.x.dims.size() : 4);
  ASSERT_EQ(plan.added_dims, static_cast<int32_t>(plan.norm_dims.size() - site.x.dims.size()));
  expect_usable(site.weight, plan.multiply, site);
  expect_usable(site.bias, plan.add, site);
  if (plan.computed) {
    expect_usable(site.mean, plan.mean, site);
    expect_usable(site.variance, plan.variance, site);
    ASSERT_TRUE(plan.mean.used && plan.variance.used);
  }
  const double weight = site.weight.kind == Kind::kNone ? 1 : 0.6, bias = site.bias.kind == Kind::kNone ? 0 : 0.35;
  ASSERT_DOUBLE_EQ(carry_out(site, plan, 1.7, weight, bias), 1.7 * weight + bias);
}

// Where file repair can do it, the builder does the same.
void expect_alike(const NormSite& site) {
  const NormPlan file = plan_norm(site, Target::kFile), builder = plan_norm(site, Target::kBuilder);
  if (file.form == Form::kRefused || !is_image(site.x) || !is_image(site.out)) {
    return;
  }
  ASSERT_EQ(file.form, builder.form);
  ASSERT_EQ(file.reason, builder.reason);
  ASSERT_EQ(file.unit_weight, builder.unit_weight);
  ASSERT_EQ(file.zero_bias, builder.zero_bias);
  ASSERT_EQ(file.multiply.used, builder.multiply.used);
  ASSERT_EQ(file.add.used, builder.add.used);
  ASSERT_EQ(file.norm_dims, builder.norm_dims);
}

TEST(ChannelNorms, AllCombinations) {
  const TensorDesc images[] = {image({}), buffer({}), runtime({}), desc(Kind::kRuntime, {}, kF, Storage::kTexture2D)};
  const TensorDesc operands[] = {kNone,  kColumn,      kMutable,         constant({1, kC}),   constant({kC}, DType::kInt32),
                                 kGiven, runtime({3}), buffer({kC}, kH), runtime({kC, 1, 1}), desc(Kind::kScalar, {})};
  const std::vector<std::pair<TensorDesc, TensorDesc>> statistics = {{kColumn, kColumn},     {kColumn, kGiven},
                                                                     {buffer({kC}), kGiven}, {constant({1, kC}), kColumn},
                                                                     {kColumn, kMutable},    {kNone, kColumn}};
  const std::pair<DType, DType> dtypes[] = {{kF, kF}, {kH, kH}, {kH, kF}, {DType::kInt32, kF}};
  int checked = 0;
  const auto check = [&](const NormSite& site) {
    check_site(site, Target::kFile);
    check_site(site, Target::kBuilder);
    expect_alike(site);
    ++checked;
    ASSERT_FALSE(testing::Test::HasFailure())
        << describe(site, plan_norm(site, Target::kBuilder)) << " kind " << static_cast<int>(site.kind) << " x "
        << testing::PrintToString(site.x.dims) << " weight " << testing::PrintToString(site.weight.dims) << " bias "
        << testing::PrintToString(site.bias.dims);
  };
  for (const Dims& dims : {Dims{kC}, Dims{2, kC}, Dims{2, kC, 9}, Dims{2, kC, 5, 7}, Dims{2, kC, 5, 7, 3}}) {
    for (const auto& [x_dtype, out_dtype] : dtypes) {
      for (const TensorDesc& x : images) {
        for (const TensorDesc& out : images) {
          NormSite site = group(kNone, kNone, x);
          site.out = out;
          site.x.dims = site.out.dims = dims;
          site.x.dtype = x_dtype;
          site.out.dtype = out_dtype;
          for (const TensorDesc& weight : operands) {
            for (const TensorDesc& bias : operands) {
              site.kind = NormKind::kGroup;
              site.weight = weight;
              site.bias = bias;
              ASSERT_NO_FATAL_FAILURE(check(site));
              site.kind = NormKind::kBatch;
              for (const auto& [mean, variance] : statistics) {
                site.mean = mean;
                site.variance = variance;
                ASSERT_NO_FATAL_FAILURE(check(site));
              }
              site.mean = site.variance = {};
            }
          }
        }
      }
    }
  }
  EXPECT_GT(checked, 200000);
}

}  // namespace
}  // namespace etvk_guard
