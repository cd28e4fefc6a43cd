// SPDX-License-Identifier: Apache-2.0
//
// Carries out the planner's forms in one Vulkan graph.
#pragma once

#include <etvk_guard/plan.h>
#include <etvk_guard/pte.h>

#include <cstdint>
#include <vector>

#include "fix.h"
#include "graph.h"

namespace etvk_guard {

// Constant data to append to the blob's bytes region: `pattern` repeated to `length` bytes.
struct NewData {
  std::vector<uint8_t> pattern;
  uint64_t offset = 0;  // in the bytes region, a multiple of 16
  uint64_t length = 0;
};

struct RewrittenGraph {
  std::vector<uint8_t> flatbuffer;
  std::vector<NewData> data;            // in order of offset
  uint64_t bytes_size = 0;              // of the bytes region with the new data, a multiple of 16 if there is any
  uint64_t added_activation_bytes = 0;  // upper bound of what the temporaries take on the GPU
};

class Emitter;

// Emits what stands in the place of an op that is no norm.
void rewrite_op(Emitter* emit, const Fix& fix);

// `fixes` must be possible, in order of op_index; `bytes_size`: of the blob's bytes region as it is. kUnsupportedSchema,
// kTooLarge.
Error rewrite_graph(const GraphView& graph, const std::vector<Fix>& fixes, uint64_t bytes_size, RewrittenGraph* into);

}  // namespace etvk_guard
