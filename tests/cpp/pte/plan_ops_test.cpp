// SPDX-License-Identifier: Apache-2.0
//
// The planner's parts for other ops than norms: a case a line, what is expected written down from the words of plan_ops.h.
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
const TensorDesc kColumn = constant({6}), kGiven = runtime({6});

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
