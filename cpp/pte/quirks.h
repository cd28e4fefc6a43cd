// SPDX-License-Identifier: Apache-2.0
//
// What stock does with an op that prepacks nothing wrong, and yet throws or computes wrongly. A quirk is a row of one table: a
// question about one op, and the finding that its answer is. python/etvk_guard/lowering/limits.py asks the same of a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph.h"

namespace etvk_guard {

struct Quirk {
  FindingCode code = FindingCode::kNone;
  std::string argument;  // the contract's name for it
  std::string message;   // why
};

// Everything of this kind that is wrong with one op, in a fixed order. O(its arguments).
std::vector<Quirk> find_quirks(const GraphView& graph, uint32_t op_index);

// Lists of numbers that an op on images reads two numbers of, and finds fewer or more: positions, with the two numbers that it should
// have had. There is no telling where a list is longer.
struct ShortList {
  uint32_t position = 0;
  const char* name = "";
  uint32_t count = 0;
  bool known = false;
  int64_t numbers[2] = {0, 0};
};
std::vector<ShortList> short_lists(const GraphView& graph, uint32_t op_index);

// The dim of a gather, if it is counted from the end: that of x as it should be, or a number that is none.
inline constexpr const char* kGatherOp = "aten.gather.default";  // [x, dim, indices, sparse_grad, out]
inline constexpr uint32_t kGatherDim = 1;
bool gathers_from_the_end(const GraphView& graph, uint32_t op_index, int64_t* dim);

// Whether two integers are compared for equality, for which there is no shader.
bool compares_integers(const GraphView& graph, uint32_t op_index);

// Whether the result of an embedding is packed in a way that its shader does not know: embedding_texture.glsl fills texels along
// the width. Indices in a channels-packed texture are for another shader.
bool is_misplaced(const TensorDesc& indices, const TensorDesc& out);

}  // namespace etvk_guard
