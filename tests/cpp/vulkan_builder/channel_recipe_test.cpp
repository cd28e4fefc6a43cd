// SPDX-License-Identifier: Apache-2.0
//
// Recipes of group and batch norm for every combination of operands. A recipe is right if what stays inside the norm and what comes after it
// make weight * norm + bias together.
#include "channel_recipe.h"

#include <gtest/gtest.h>

namespace etvk_guard::vulkan {
namespace {

using Dims = std::vector<int64_t>;
constexpr int64_t kChannels = 6;

TensorDesc tensor(Kind kind, Dims dims, DType dtype = DType::kFloat32, Storage storage = Storage::kTexture3D,
                  Layout layout = Layout::kChannelsPacked) {
  TensorDesc desc;
  desc.kind = kind;
  desc.dims = std::move(dims);
  desc.dtype = dtype;
  desc.storage = storage;
  desc.layout = layout;
  return desc;
}

TensorDesc constant() { return tensor(Kind::kConstant, {kChannels}); }

ChannelSite legal(ChannelKind kind, Dims dims = {2, kChannels, 4, 5}) {
  ChannelSite site;
  site.kind = kind;
  site.x = site.out = tensor(Kind::kRuntime, std::move(dims));
  site.weight = site.bias = constant();
  if (kind == ChannelKind::kBatch) {
    site.mean = site.variance = constant();
  }
  return site;
}

class ChannelRecipeTest : public testing::TestWithParam<ChannelKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, ChannelRecipeTest, testing::Values(ChannelKind::kGroup, ChannelKind::kBatch));

TEST_P(ChannelRecipeTest, LegalIsStock) { EXPECT_EQ(make_channel_recipe(legal(GetParam())).path, Path::kStock); }

TEST_P(ChannelRecipeTest, EveryOperandIsAppliedOnce) {
  const TensorDesc operands[] = {TensorDesc(),
                                 constant(),
                                 tensor(Kind::kConstant, {1, kChannels}),
                                 tensor(Kind::kRuntime, {kChannels}),
                                 tensor(Kind::kRuntime, {kChannels}, DType::kFloat16, Storage::kBuffer, Layout::kWidthPacked),
                                 tensor(Kind::kRuntime, {kChannels, 1, 1})};
  for (const TensorDesc& weight : operands) {
    for (const TensorDesc& bias : operands) {
      ChannelSite site = legal(GetParam());
      site.weight = weight;
      site.bias = bias;
      const ChannelRecipe recipe = make_channel_recipe(site);
      ASSERT_NE(recipe.path, Path::kRefused) << recipe.message;
      // Inside the norm only what stock takes.
      EXPECT_TRUE(recipe.unit_weight || (weight.kind == Kind::kConstant && weight.dims == Dims{kChannels}));
      EXPECT_TRUE(recipe.zero_bias || (bias.kind == Kind::kConstant && bias.dims == Dims{kChannels}));
      // Each operand exactly once: inside, or after.
      EXPECT_EQ((recipe.unit_weight ? 0 : 1) + (recipe.multiply ? 1 : 0), weight.kind == Kind::kNone ? 0 : 1);
      EXPECT_EQ((recipe.zero_bias ? 0 : 1) + (recipe.add ? 1 : 0), bias.kind == Kind::kNone ? 0 : 1);
      // A bias inside would be multiplied by the weight.
      EXPECT_TRUE(!recipe.multiply || recipe.zero_bias);
    }
  }
}

TEST_P(ChannelRecipeTest, OtherRanksAreViewed) {
  EXPECT_EQ(make_channel_recipe(legal(GetParam(), {2, kChannels, 9})).missing_dims, 1);
  EXPECT_EQ(make_channel_recipe(legal(GetParam(), {2, kChannels})).missing_dims, 2);
  EXPECT_EQ(make_channel_recipe(legal(GetParam(), {2, kChannels})).path, Path::kMoved);
}

TEST_P(ChannelRecipeTest, OtherRepresentationsAreMoved) {
  ChannelSite site = legal(GetParam());
  site.x.storage = Storage::kBuffer;
  site.out.layout = Layout::kWidthPacked;
  const ChannelRecipe recipe = make_channel_recipe(site);
  EXPECT_EQ(recipe.path, Path::kMoved);
  EXPECT_TRUE(recipe.relayout_x);
  EXPECT_TRUE(recipe.relayout_out);
}

TEST_P(ChannelRecipeTest, PathSaysWhatIsDone) {
  ChannelSite site = legal(GetParam());
  site.weight = site.bias = TensorDesc();
  EXPECT_EQ(make_channel_recipe(site).path, Path::kUnit);
  site.bias = tensor(Kind::kRuntime, {kChannels});
  EXPECT_EQ(make_channel_recipe(site).path, Path::kUnitThenOps);
}

struct Refusal {
  const char* says;
  void (*break_site)(ChannelSite&);
};

TEST_P(ChannelRecipeTest, RefusalsNameTheCulprit) {
  const Refusal refusals[] = {
      {"x has 5 dimensions", [](ChannelSite& s) { s.x.dims = s.out.dims = {1, kChannels, 2, 2, 2}; }},
      {"x has 1 dimensions", [](ChannelSite& s) { s.x.dims = s.out.dims = {kChannels}; }},
      {"x is not a tensor of floats", [](ChannelSite& s) { s.x.dtype = DType::kInt32; }},
      {"the result is not like x", [](ChannelSite& s) { s.out.dtype = DType::kFloat16; }},
      {"weight is a number", [](ChannelSite& s) { s.weight.kind = Kind::kScalar; }},
      {"bias is a buffer that the program writes", [](ChannelSite& s) { s.bias.kind = Kind::kMutable; }},
      {"bias is not of floats", [](ChannelSite& s) { s.bias.dtype = DType::kInt64; }},
      {"weight does not have one element a channel", [](ChannelSite& s) { s.weight = tensor(Kind::kRuntime, {2, kChannels}); }},
      {"weight does not have one element a channel", [](ChannelSite& s) { s.weight = tensor(Kind::kConstant, {1}); }},
  };
  for (const Refusal& refusal : refusals) {
    ChannelSite site = legal(GetParam());
    refusal.break_site(site);
    const ChannelRecipe recipe = make_channel_recipe(site);
    EXPECT_EQ(recipe.path, Path::kRefused);
    EXPECT_NE(recipe.message.find(refusal.says), std::string::npos) << recipe.message;
    EXPECT_NE(recipe.message.find("; bias "), std::string::npos) << recipe.message;
  }
}

TEST(ChannelRecipe, RunningStatisticsMustBeConstants) {
  for (TensorDesc ChannelSite::* which : {&ChannelSite::mean, &ChannelSite::variance}) {
    ChannelSite site = legal(ChannelKind::kBatch);
    (site.*which).kind = Kind::kRuntime;
    const ChannelRecipe recipe = make_channel_recipe(site);
    EXPECT_EQ(recipe.path, Path::kRefused);
    EXPECT_NE(recipe.message.find("is no constant of one element a channel"), std::string::npos);
  }
}

}  // namespace
}  // namespace etvk_guard::vulkan
