// SPDX-License-Identifier: Apache-2.0
//
// What stock does with an op that prepacks nothing wrong, and yet throws or computes wrongly. Each says why; "": it does not.
#pragma once

#include <cstdint>
#include <string>

#include "graph.h"

namespace etvk_guard {

// The groups of a convolution of images. Convolution.cpp picks a shader by the weight's shape; conv2d_pw and conv_transpose2d know nothing of groups, and conv2d
// takes a group for whole texels, of four channels each.
std::string wrong_groups(const GraphView& graph, uint32_t op_index);

// A reduction over the second of four dims, of several batches: they lie behind each other along it (Reduce.cpp, Softmax.cpp and
// Var.cpp throw).
std::string reduced_channels(const GraphView& graph, uint32_t op_index);

// Whether the result of an embedding is packed in a way that its shader does not know: embedding_texture.glsl fills texels along
// the width. Indices in a channels-packed texture are for another shader.
bool is_misplaced(const TensorDesc& indices, const TensorDesc& out);

}  // namespace etvk_guard
