// SPDX-License-Identifier: Apache-2.0
//
// Convolutions that stock runs without complaint, and computes wrongly.
#pragma once

#include <cstdint>
#include <string>

#include "graph.h"

namespace etvk_guard {

// Why stock computes the groups of a convolution wrongly; "": it does not, or the op is no convolution of images. What it
// does: Convolution.cpp picks a shader by the weight's shape; conv2d_pw and conv_transpose2d know nothing of groups, and conv2d
// takes a group for whole texels, of four channels each.
std::string wrong_groups(const GraphView& graph, uint32_t op_index);

}  // namespace etvk_guard
