// SPDX-License-Identifier: Apache-2.0
//
// What the builder does with a norm that has one weight and one bias a channel: group norm and batch norm. Pure, as recipe.h.
// Stock runs both in channels-packed textures of four dimensions only, with constants.
#pragma once

#include <string>

#include <etvk_guard/plan.h>

#include "recipe.h"

namespace etvk_guard::vulkan {

enum class ChannelKind : uint8_t { kGroup, kBatch };

struct ChannelSite {
  ChannelKind kind = ChannelKind::kGroup;
  TensorDesc x, weight, bias, out;
  TensorDesc mean, variance;  // kBatch: of the running statistics
};

struct ChannelRecipe {
  Path path = Path::kRefused;  // kStock, kMoved, kUnit, kUnitThenOps or kRefused
  bool unit_weight = false;    // the norm itself gets ones,
  bool zero_bias = false;      // and zeros
  bool multiply = false;       // by the weight, afterwards
  bool add = false;            // the bias, afterwards
  int missing_dims = 0;        // of size 1, which x gets behind its channels for the norm
  bool relayout_x = false;     // to a channels-packed texture, before the norm
  bool relayout_out = false;   // from one, after it
  std::string message;         // kRefused
};

ChannelRecipe make_channel_recipe(const ChannelSite& site);

}  // namespace etvk_guard::vulkan
