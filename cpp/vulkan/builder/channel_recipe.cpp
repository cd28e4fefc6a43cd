// SPDX-License-Identifier: Apache-2.0
#include "channel_recipe.h"

#include <algorithm>

namespace etvk_guard::vulkan {
namespace {

constexpr size_t kRank = 4;  // of what stock's shaders take: N, C, H, W

bool is_float(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kFloat16; }

bool is_image_layout(const TensorDesc& desc) { return desc.storage == Storage::kTexture3D && desc.layout == Layout::kChannelsPacked; }

bool is_row(const TensorDesc& desc, int64_t channels) { return desc.dims.size() == 1 && desc.dims[0] == channels; }

// One number a channel, in any rank: [C], [1, C], [C, 1, 1].
bool is_one_a_channel(const TensorDesc& desc, int64_t channels) {
  const auto others = std::count(desc.dims.begin(), desc.dims.end(), 1);
  const bool one_size = static_cast<size_t>(others) + 1 >= desc.dims.size();
  return one_size && (desc.dims.empty() ? channels == 1 : *std::max_element(desc.dims.begin(), desc.dims.end()) == channels);
}

// Why an operand cannot be used at all; empty if it can.
std::string operand_refusal(const char* what, const TensorDesc& desc, int64_t channels) {
  if (desc.kind == Kind::kNone) {
    return "";
  }
  if (desc.kind == Kind::kScalar || desc.kind == Kind::kMutable) {
    return std::string(what) + " is " + (desc.kind == Kind::kScalar ? "a number" : "a buffer that the program writes");
  }
  if (!is_float(desc.dtype)) {
    return std::string(what) + " is not of floats";
  }
  return is_one_a_channel(desc, channels) ? "" : std::string(what) + " does not have one element a channel";
}

std::string refusal(const ChannelSite& site) {
  const auto rank = site.x.dims.size();
  if (site.x.kind != Kind::kRuntime || !is_float(site.x.dtype)) {
    return "x is not a tensor of floats";
  }
  if (rank < 2 || rank > kRank) {
    return "x has " + std::to_string(rank) + " dimensions";
  }
  if (site.out.dims != site.x.dims || site.out.dtype != site.x.dtype) {
    return "the result is not like x";
  }
  const int64_t channels = site.x.dims[1];
  if (site.kind == ChannelKind::kBatch) {
    for (const TensorDesc* desc : {&site.mean, &site.variance}) {
      if (desc->kind != Kind::kConstant || !is_row(*desc, channels)) {
        return std::string("the running ") + (desc == &site.mean ? "mean" : "variance") + " is no constant of one element a channel";
      }
    }
  }
  const std::string weight = operand_refusal("weight", site.weight, channels);
  return weight.empty() ? operand_refusal("bias", site.bias, channels) : weight;
}

std::string message(const ChannelSite& site, const std::string& why) {
  const bool batch = site.kind == ChannelKind::kBatch;
  std::string text = batch ? "aten._native_batch_norm_legit_no_training.default: " : "aten.native_group_norm.default: ";
  text += why + "; x " + describe(site.x) + "; weight " + describe(site.weight) + "; bias " + describe(site.bias);
  if (batch) {
    text += "; running mean " + describe(site.mean) + "; running variance " + describe(site.variance);
  }
  return text + "; out " + describe(site.out);
}

Path path_of(const ChannelRecipe& recipe) {
  if (recipe.multiply || recipe.add) {
    return Path::kUnitThenOps;
  }
  if (recipe.unit_weight || recipe.zero_bias) {
    return Path::kUnit;
  }
  return recipe.missing_dims != 0 || recipe.relayout_x || recipe.relayout_out ? Path::kMoved : Path::kStock;
}

}  // namespace

ChannelRecipe make_channel_recipe(const ChannelSite& site) {
  ChannelRecipe recipe;
  if (const std::string why = refusal(site); !why.empty()) {
    recipe.message = message(site, why);
    return recipe;
  }
  const int64_t channels = site.x.dims[1];
  const auto inside = [&](const TensorDesc& desc) { return desc.kind == Kind::kConstant && is_row(desc, channels); };
  recipe.multiply = site.weight.kind != Kind::kNone && !inside(site.weight);
  recipe.unit_weight = site.weight.kind == Kind::kNone || recipe.multiply;
  // What is added inside would be multiplied by the weight that comes after.
  recipe.add = site.bias.kind != Kind::kNone && (recipe.multiply || !inside(site.bias));
  recipe.zero_bias = site.bias.kind == Kind::kNone || recipe.add;
  recipe.missing_dims = static_cast<int>(kRank - site.x.dims.size());
  recipe.relayout_x = !is_image_layout(site.x);
  recipe.relayout_out = !is_image_layout(site.out);
  recipe.path = path_of(recipe);
  return recipe;
}

}  // namespace etvk_guard::vulkan
