// SPDX-License-Identifier: Apache-2.0
//
// Memory for temporaries. Tensors of one mem_obj_id share memory as large as the largest of them; ET-VK waits for earlier work
// before a tensor's first write, for just this case (transition() in Tensor.cpp, from release 1.3 on). So the temporaries of
// all norms can share, and only those alive at one time are apart. Images and buffers are kept apart, since their memory may
// have to be of different types.
#pragma once

#include <cstdint>
#include <vector>

#include "graph.h"
#include "graph_patch.h"

namespace etvk_guard {

class Scratch {
 public:
  struct Slot {
    int32_t index = -1;       // -1: not from here
    int32_t mem_obj_id = -1;  // -1: memory of its own
  };

  explicit Scratch(const GraphView& graph);
  // The first free memory object of the tensor's storage.
  Slot acquire(const NewTensor& tensor);
  // Lets others have it. Nothing for a slot that is not from here.
  void release(const Slot& slot);
  // What all memory objects take together.
  uint64_t bytes() const;

 private:
  struct Object {
    int32_t mem_obj_id;
    Storage storage;
    uint64_t bytes;
    bool free;
  };
  int32_t last_id_ = -1;  // the largest mem_obj_id in use
  std::vector<Object> objects_;
};

// The sum, or the largest number if it does not fit.
inline uint64_t saturated_add(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

// Bytes of a tensor on the GPU: its packed dim is rounded up to 4 elements.
uint64_t gpu_bytes(const NewTensor& tensor);

}  // namespace etvk_guard
