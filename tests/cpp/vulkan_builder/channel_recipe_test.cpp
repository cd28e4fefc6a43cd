// SPDX-License-Identifier: Apache-2.0
//
// What the builder says of group and batch norms: the path, by which they are counted, and the words of a refusal. The plan itself is
// tested in tests/cpp/pte/plan_channel_test.cpp.
#include "recipe.h"

#include <gtest/gtest.h>

namespace etvk_guard::vulkan {
namespace {

using Dims = std::vector<int64_t>;
constexpr int64_t kChannels = 6;

TensorDesc tensor(Kind kind, Dims dims, DType dtype = DType::kFloat32, Storage storage = Storage::kTexture3D,
                  Layout layout = Layout::kChannelsPacked) {
  return {kind, dtype, storage, layout, std::move(dims)};
}

TensorDesc constant() { return tensor(Kind::kConstant, {kChannels}); }

NormSite legal(NormKind kind, Dims dims = {2, kChannels, 4, 5}) {
  NormSite site;
  site.kind = kind;
  site.x = site.out = tensor(Kind::kRuntime, std::move(dims));
  site.weight = site.bias = constant();
  if (kind == NormKind::kBatch) {
    site.mean = site.variance = constant();
  }
  return site;
}

// Our kernels are for rows: that a device is known makes no difference.
Recipe recipe_of(const NormSite& site) {
  const kernels::DeviceLimits device;
  const Recipe recipe = make_recipe(site, &device);
  EXPECT_FALSE(recipe.our_norm);
  EXPECT_EQ(recipe.path, make_recipe(site, nullptr).path);
  return recipe;
}

class ChannelRecipeTest : public testing::TestWithParam<NormKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, ChannelRecipeTest, testing::Values(NormKind::kGroup, NormKind::kBatch));

struct Change {
  Path path;
  void (*apply)(NormSite&);
};

TEST_P(ChannelRecipeTest, PathSaysWhatIsDone) {
  const Change changes[] = {
      {Path::kStock, [](NormSite&) {}},
      {Path::kMoved, [](NormSite& s) { s.x.dims = s.out.dims = {2, kChannels, 9}; }},
      {Path::kMoved, [](NormSite& s) { s.x.dims = s.out.dims = {2, kChannels}; }},
      {Path::kMoved, [](NormSite& s) { s.x.storage = Storage::kBuffer, s.out.layout = Layout::kWidthPacked; }},
      {Path::kUnit, [](NormSite& s) { s.weight = s.bias = TensorDesc(); }},
      {Path::kUnit, [](NormSite& s) { s.bias = TensorDesc(), s.x.storage = Storage::kBuffer; }},
      {Path::kUnitThenOps, [](NormSite& s) { s.weight = TensorDesc(), s.bias.kind = Kind::kRuntime; }},
      {Path::kUnitThenOps, [](NormSite& s) { s.weight.dims = {1, kChannels}; }},
      {Path::kUnitThenOps, [](NormSite& s) { s.weight = tensor(Kind::kRuntime, {kChannels, 1, 1}); }},
  };
  for (const Change& change : changes) {
    NormSite site = legal(GetParam());
    change.apply(site);
    EXPECT_STREQ(name(recipe_of(site).path), name(change.path)) << recipe_of(site).message;
  }
}

TEST(ChannelRecipe, ComputedStatisticsArePlainOps) {
  NormSite site = legal(NormKind::kBatch);
  site.variance.kind = Kind::kRuntime;
  EXPECT_EQ(recipe_of(site).path, Path::kUnitThenOps);
  site.weight = site.bias = TensorDesc();
  EXPECT_EQ(recipe_of(site).path, Path::kUnitThenOps);
}

struct Refusal {
  const char* says;
  void (*break_site)(NormSite&);
};

TEST_P(ChannelRecipeTest, RefusalsNameTheCulprit) {
  const Refusal refusals[] = {
      {"more than 4 dims; x float32 [1, 6, 2, 2, 2]", [](NormSite& s) { s.x.dims = s.out.dims = {1, kChannels, 2, 2, 2}; }},
      {"sizes are not usable; x float32 [6]", [](NormSite& s) { s.x.dims = s.out.dims = {kChannels}; }},
      {"dtype cannot be cast on the GPU; x int32", [](NormSite& s) { s.x.dtype = DType::kInt32; }},
      {"the result has shape [6]", [](NormSite& s) { s.out.dims = {kChannels}; }},
      {"no tensor that the delegate computes", [](NormSite& s) { s.x.kind = Kind::kConstant; }},
      {"layout is not one that the norm", [](NormSite& s) { s.x.storage = Storage::kTexture2D; }},
      {"weight is a number", [](NormSite& s) { s.weight.kind = Kind::kScalar; }},
      {"bias is a mutable buffer", [](NormSite& s) { s.bias.kind = Kind::kMutable; }},
      {"bias is int64", [](NormSite& s) { s.bias.dtype = DType::kInt64; }},
      {"weight is a run-time value of shape [2, 6]", [](NormSite& s) { s.weight = tensor(Kind::kRuntime, {2, kChannels}); }},
      {"weight is a constant of shape [1]", [](NormSite& s) { s.weight = tensor(Kind::kConstant, {1}); }},
  };
  const bool batch = GetParam() == NormKind::kBatch;
  for (const Refusal& refusal : refusals) {
    NormSite site = legal(GetParam());
    refusal.break_site(site);
    const Recipe recipe = recipe_of(site);
    EXPECT_EQ(recipe.path, Path::kRefused);
    EXPECT_NE(recipe.message.find(refusal.says), std::string::npos) << recipe.message;
    EXPECT_EQ(recipe.message.find(batch ? "aten._native_batch_norm_legit_no_training.default: " : "aten.native_group_norm.default: "), 0u);
    for (const char* part : {"; x ", "; weight ", "; bias ", "; out "}) {
      EXPECT_NE(recipe.message.find(part), std::string::npos) << recipe.message;
    }
    EXPECT_EQ(recipe.message.find("; running_mean float32 [6] constant; running_var ") != std::string::npos, batch) << recipe.message;
  }
}

TEST(ChannelRecipe, StatisticsThatCannotBeUsedAreNamed) {
  for (TensorDesc NormSite::* which : {&NormSite::mean, &NormSite::variance}) {
    NormSite site = legal(NormKind::kBatch);
    (site.*which).kind = Kind::kMutable;
    const Recipe recipe = recipe_of(site);
    EXPECT_EQ(recipe.path, Path::kRefused);
    const char* says = which == &NormSite::mean ? "running_mean is a mutable buffer" : "running_var is a mutable buffer";
    EXPECT_NE(recipe.message.find(says), std::string::npos) << recipe.message;
  }
}

}  // namespace
}  // namespace etvk_guard::vulkan
