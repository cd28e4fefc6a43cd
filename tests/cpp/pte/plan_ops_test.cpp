// SPDX-License-Identifier: Apache-2.0
//
// The planner's parts for other ops than norms over rows: a case a line, what is expected written down from the words of
// plan_ops.h and plan_channel.cpp.
#include <gtest/gtest.h>

#include <ostream>

#include "plan_ops.h"

namespace etvk_guard {
namespace {

using Dims = std::vector<int64_t>;

TensorDesc desc(Kind kind, Dims dims, DType dtype = DType::kFloat32, Storage storage = Storage::kTexture3D,
                Layout layout = Layout::kWidthPacked) {
  return {kind, dtype, storage, layout, std::move(dims)};
}
TensorDesc runtime(Dims dims, DType dtype = DType::kFloat32) { return desc(Kind::kRuntime, std::move(dims), dtype); }
TensorDesc constant(Dims dims, DType dtype = DType::kFloat32) { return desc(Kind::kConstant, std::move(dims), dtype); }
TensorDesc image(Dims dims, DType dtype = DType::kFloat32) {
  return desc(Kind::kRuntime, std::move(dims), dtype, Storage::kTexture3D, Layout::kChannelsPacked);
}
TensorDesc buffer(Dims dims, DType dtype = DType::kFloat32) {
  return desc(Kind::kRuntime, std::move(dims), dtype, Storage::kBuffer);
}
const TensorDesc kNone;

// ---------------------------------------------------------------------------------------------------------- norms over channels

struct NormCase {
  const char* name;
  NormSite site;
  Form form;
  Reason reason;
  bool unit, zero, multiply, add;
  int32_t added_dims = 0;
};
void PrintTo(const NormCase& c, std::ostream* os) { *os << c.name; }

NormSite group(TensorDesc weight, TensorDesc bias, const TensorDesc& x = image({2, 6, 5, 7})) {
  return {NormKind::kGroup, x, std::move(weight), std::move(bias), x};
}
NormSite batch(const TensorDesc& mean, const TensorDesc& variance, const TensorDesc& x = image({2, 6, 5, 7})) {
  return {NormKind::kBatch, x, kNone, kNone, x, 1, mean, variance};
}
const TensorDesc kColumn = constant({6}), kGiven = runtime({6});
const TensorDesc kMutable = desc(Kind::kMutable, {6});

const NormCase kNorms[] = {
    {"legal", group(kColumn, kColumn), Form::kStock, Reason::kLegal, false, false, false, false},
    {"bare", group(kNone, kNone), Form::kUnit, Reason::kWeightMissing, true, true, false, false},
    {"no_bias", group(kColumn, kNone), Form::kUnit, Reason::kBiasMissing, false, true, false, false},
    {"runtime", group(kGiven, kGiven), Form::kUnitThenOps, Reason::kWeightRuntime, true, true, true, true},
    {"runtime_weight", group(kGiven, kColumn), Form::kUnitThenOps, Reason::kWeightRuntime, true, true, true, true},
    {"runtime_weight_only", group(kGiven, kNone), Form::kUnitThenOps, Reason::kWeightRuntime, true, true, true, false},
    {"runtime_bias", group(kColumn, kGiven), Form::kUnitThenOps, Reason::kBiasRuntime, false, true, false, true},
    {"in_a_buffer", group(kColumn, buffer({6})), Form::kUnitThenOps, Reason::kBiasRuntime, false, true, false, true},
    {"three_dims", group(kColumn, kColumn, image({2, 6, 5})), Form::kUnitThenOps, Reason::kImageRank, false, false, false, false, 1},
    {"two_dims", group(kGiven, kNone, image({2, 6})), Form::kUnitThenOps, Reason::kImageRank, true, true, true, false, 2},
    {"too_deep", group(kColumn, kColumn, image({1025, 6, 5})), Form::kRefused, Reason::kTextureSize, false, false, false, false},
    {"five_dims", group(kNone, kNone, image({2, 6, 5, 7, 3})), Form::kRefused, Reason::kUnsupportedRank, false, false, false, false},
    {"one_dim", group(kNone, kNone, image({6})), Form::kRefused, Reason::kUnknownShape, false, false, false, false},
    {"not_packed_by_channels", group(kNone, kNone, runtime({2, 6, 5, 7})), Form::kRefused, Reason::kUnsupportedLayout, true, true,
     false, false},
    {"mutable", group(kMutable, kColumn), Form::kRefused, Reason::kWeightMutable, true, true, true, true},
    {"of_another_length", group(runtime({3}), kColumn), Form::kRefused, Reason::kWeightShape, true, true, true, true},
    {"integers", group(runtime({6}, DType::kInt32), kColumn), Form::kRefused, Reason::kUnsupportedDtype, true, true, true, true},
    {"batch", batch(kColumn, kColumn), Form::kUnit, Reason::kWeightMissing, true, true, false, false},
    {"batch_mean", batch(kGiven, kColumn), Form::kUnitThenOps, Reason::kStatistics, false, false, false, false},
    {"batch_mean_of_three_dims", batch(kGiven, kColumn, image({2, 6, 5})), Form::kUnitThenOps, Reason::kStatistics, false, false,
     false, false},
    {"batch_mean_half", batch(kGiven, kColumn, image({2, 6, 5, 7}, DType::kFloat16)), Form::kRefused, Reason::kUnsupportedDtype,
     false, false, false, false},
    {"batch_mean_of_another_length", batch(runtime({3}), kColumn), Form::kRefused, Reason::kStatistics, false, false, false, false},
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

// ------------------------------------------------------------------------------------------------------------------------ linear

struct LinearCase {
  const char* name;
  LinearSite site;
  bool legal, product, add;
  std::string refusal = "";
};
void PrintTo(const LinearCase& c, std::ostream* os) { *os << c.name; }

const TensorDesc kX = runtime({5, 8}), kOut = runtime({5, 6}), kWeight = runtime({6, 8}), kTref = constant({6, 8});

const LinearCase kLinears[] = {
    {"legal", {kX, kTref, kNone, kOut}, true, false, false},
    {"legal_with_bias", {kX, kTref, kColumn, kOut}, true, false, false},
    {"runtime", {kX, kWeight, kNone, kOut}, false, true, false},
    {"runtime_and_bias", {kX, kWeight, kGiven, kOut}, false, true, true},
    {"runtime_and_constant_bias", {kX, kWeight, kColumn, kOut}, false, true, true},
    {"runtime_bias", {kX, kTref, kGiven, kOut}, false, false, true},
    {"runtime_bias_of_three_dims", {runtime({2, 5, 8}), kTref, kGiven, runtime({2, 5, 6})}, false, false, true},
    {"runtime_of_three_dims", {runtime({2, 5, 8}), kWeight, kNone, runtime({2, 5, 6})}, false, true, false, "matrices only"},
    {"mutable", {kX, desc(Kind::kMutable, {6, 8}), kNone, kOut}, false, true, false, "mutable buffer of shape [6, 8]"},
    {"too_wide", {kX, runtime({16385, 8}), kNone, runtime({5, 16385})}, false, true, false, "larger than a texture"},
    {"too_wide_in_buffers", {buffer({5, 8}), runtime({16385, 8}), kNone, buffer({5, 16385})}, false, true, false},
    {"missing", {kX, kNone, kNone, kOut}, false, true, false, "weight is missing"},
    {"integers", {kX, runtime({6, 8}, DType::kInt8), kNone, kOut}, false, true, false, "cannot be cast"},
    {"bias_of_another_length", {kX, kTref, runtime({1}), kOut}, false, false, true, "not one row"},
    {"channels_packed", {image({5, 8}), kWeight, kNone, kOut}, false, true, false, "width-packed"},
    {"two_storages", {buffer({5, 8}), kWeight, kNone, kOut}, false, true, false, "of one kind"},
    {"two_dtypes", {runtime({5, 8}, DType::kFloat16), kWeight, kNone, kOut}, false, true, false, "of one kind"},
    {"nothing", {}, false, true, false, "of one kind"},
};

class Linear : public ::testing::TestWithParam<LinearCase> {};

TEST_P(Linear, IsPlanned) {
  const LinearCase& c = GetParam();
  const LinearPlan plan = plan_linear(c.site);
  EXPECT_EQ(plan.legal, c.legal);
  EXPECT_EQ(plan.product, c.product);
  EXPECT_EQ(plan.refusal.empty(), c.refusal.empty()) << plan.refusal;
  EXPECT_NE(plan.refusal.find(c.refusal), std::string::npos) << plan.refusal;
  if (c.refusal.empty()) {
    EXPECT_EQ(plan.add.used, c.add);
    EXPECT_EQ(plan.weight.used, c.product);
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, Linear, ::testing::ValuesIn(kLinears), [](const auto& row) { return row.param.name; });

// --------------------------------------------------------------------------------------------------------- embeddings and factors

TensorDesc indices(Dims dims) { return runtime(std::move(dims), DType::kInt32); }

struct EmbeddingCase {
  const char* name;
  EmbeddingSite site;
  bool legal, in_place;
  std::string refusal = "";
};
void PrintTo(const EmbeddingCase& c, std::ostream* os) { *os << c.name; }

const EmbeddingCase kEmbeddings[] = {
    {"legal", {constant({12, 10}), indices({5}), runtime({5, 10})}, true, false},
    {"runtime", {runtime({12, 10}), indices({5}), runtime({5, 10})}, false, false},
    {"in_place", {runtime({12, 10}), indices({5}), image({5, 10})}, false, true},
    {"of_two_dims", {buffer({12, 10}), indices({2, 5}), buffer({2, 5, 10})}, false, false},
    {"dynamic", {runtime({12, 10}), indices({5}), runtime({5, 10}), true}, false, false, "dynamic"},
    {"too_many_rows", {runtime({16385, 10}), indices({5}), runtime({5, 10})}, false, false, "16385"},
    {"too_many_indices", {runtime({12, 10}), indices({16385}), runtime({16385, 10})}, false, false, "16385"},
    {"long_indices", {runtime({12, 10}), runtime({5}, DType::kInt64), runtime({5, 10})}, false, false, "int32"},
    {"another_result", {runtime({12, 10}), indices({5}), runtime({5, 9})}, false, false, "no op selects"},
    {"a_row", {runtime({12}), indices({5}), runtime({5})}, false, false, "no op selects"},
    {"an_empty_row", {runtime({12}), indices({5}), runtime({5, 12})}, false, false, "no op selects"},
    {"mutable", {desc(Kind::kMutable, {12, 10}), indices({5}), runtime({5, 10})}, false, false, "mutable"},
    {"nothing", {}, false, false, "missing"},
};

class Embedding : public ::testing::TestWithParam<EmbeddingCase> {};

TEST_P(Embedding, IsPlanned) {
  const EmbeddingCase& c = GetParam();
  const EmbeddingPlan plan = plan_embedding(c.site);
  EXPECT_EQ(plan.legal, c.legal);
  EXPECT_EQ(plan.in_place, c.in_place);
  EXPECT_EQ(plan.refusal.empty(), c.refusal.empty()) << plan.refusal;
  EXPECT_NE(plan.refusal.find(c.refusal), std::string::npos) << plan.refusal;
  if (!plan.legal && plan.refusal.empty()) {
    EXPECT_EQ(plan.indices.view.empty(), c.site.indices.dims.size() == 1);
    EXPECT_EQ(plan.table.layout, Layout::kChannelsPacked);
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, Embedding, ::testing::ValuesIn(kEmbeddings), [](const auto& row) { return row.param.name; });

TEST(Factor, ConstantsAreCopiedAsTheResultIsStored) {
  EXPECT_TRUE(plan_factor({kX, kOut}).legal);
  const FactorPlan plan = plan_factor({constant({5, 8}), buffer({5, 6})});
  EXPECT_EQ(plan.refusal, "");
  EXPECT_TRUE(plan.factor.prepack);
  EXPECT_EQ(plan.factor.storage, Storage::kBuffer);
  EXPECT_NE(plan_factor({constant({5, 8}), image({5, 6})}).refusal, "");
}

}  // namespace
}  // namespace etvk_guard
