// SPDX-License-Identifier: Apache-2.0
//
// The thin layer on ET-VK's ComputeGraph: describes the operands of a norm, asks for the recipe, carries it out.
#pragma once

#include "recipe.h"
#include "versions.h"

namespace etvk_guard::vulkan {

// Adds the norm with these arguments (as serialized: results last) to the graph. `stock` is the delegate's own builder. Throws what ET-VK's builders
// throw (vkapi::Error), naming op, operands, shapes and dtypes. Returns what was done.
Path build_norm(vkcompute::ComputeGraph& graph, NormKind kind, const std::vector<vkcompute::ValueRef>& args, const versions::OpFunction& stock);

}  // namespace etvk_guard::vulkan
