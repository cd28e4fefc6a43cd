// SPDX-License-Identifier: Apache-2.0
//
// The thin layer on ET-VK's ComputeGraph: describes the operands of a norm, asks for the recipe, carries it out.
// Each adds the norm with these arguments (as serialized: results last) to the graph. `stock` is the delegate's own builder. Throws what ET-VK's
// builders throw (vkapi::Error), naming op, operands, shapes and dtypes. Returns what was done.
#pragma once

#include "recipe.h"
#include "versions.h"

namespace etvk_guard::vulkan {

using Build = Path (*)(vkcompute::ComputeGraph& graph, const std::vector<vkcompute::ValueRef>& args, const versions::OpFunction& stock);

Path build_rms_norm(vkcompute::ComputeGraph& graph, const std::vector<vkcompute::ValueRef>& args, const versions::OpFunction& stock);
Path build_layer_norm(vkcompute::ComputeGraph& graph, const std::vector<vkcompute::ValueRef>& args, const versions::OpFunction& stock);
Path build_group_norm(vkcompute::ComputeGraph& graph, const std::vector<vkcompute::ValueRef>& args, const versions::OpFunction& stock);
Path build_batch_norm(vkcompute::ComputeGraph& graph, const std::vector<vkcompute::ValueRef>& args, const versions::OpFunction& stock);

}  // namespace etvk_guard::vulkan
