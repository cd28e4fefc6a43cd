// SPDX-License-Identifier: Apache-2.0
//
// Convolutions that stock refuses or computes wrongly, though their weights are as the contract has it.
// python/etvk_guard/contract/convolutions.py says the same for lowering and for the reference interpreter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph.h"

namespace etvk_guard {

// A list of numbers, as far as an image needs it. A file may give many ops one long list: it is not copied.
struct Numbers {
  bool is_list = false;
  uint32_t count = 0;
  int64_t first = 0, second = 0;
};
Numbers read_numbers(const GraphView& graph, int32_t id);
// For both dims of an image: one number stands for both. False: there are more, or none.
bool read_pair(const Numbers& numbers, int64_t into[2]);

// aten.convolution.default, and the same with a clamp fused to it.
struct Convolution {
  static constexpr uint32_t kWeight = 1, kStride = 3, kPadding = 4, kDilation = 5, kTransposed = 6, kOutputPadding = 7, kGroups = 8;

  std::vector<int64_t> weight;  // channels made, channels of a group (transposed: the other way round), the kernel
  Numbers stride, padding, dilation, output_padding;
  bool transposed = false;
  int64_t groups = 1;
  bool height_packed = false;  // x is

  bool of_images() const { return weight.size() == 4; }
  bool depthwise() const { return of_images() && !transposed && weight[0] == groups && weight[1] == 1; }
  bool pointwise() const { return of_images() && !transposed && !depthwise() && weight[2] == 1 && weight[3] == 1; }
};

// False: the op is none, or lacks a weight of three or four dims.
bool read_convolution(const GraphView& graph, uint32_t op_index, Convolution* into);

// Each says why; "" if it does not hold.
//
// Groups that give silently wrong values. Convolution.cpp picks a shader by the weight's shape; conv2d_pw and conv_transpose2d know nothing of
// groups, and conv2d takes a group for whole texels, of four channels each.
std::string wrong_groups(const Convolution& call);
// A depthwise kernel that conv2d_dw cuts off wrongly where the image ends: it goes on counting the kernel's numbers.
std::string cut_kernel(const Convolution& call);
// What no shader computes: stock throws.
std::string refused_form(const Convolution& call);
// What conv1d_pw does not look at.
std::string ignored_numbers(const Convolution& call);

}  // namespace etvk_guard
