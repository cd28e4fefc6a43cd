// SPDX-License-Identifier: Apache-2.0
#include "scratch.h"

#include <algorithm>

#include "bytes.h"

namespace etvk_guard {

uint64_t gpu_bytes(const NewTensor& tensor) {
  uint64_t bytes = element_size(tensor.dtype);
  const auto packed = static_cast<size_t>(tensor.layout);  // 0: the last dim, 1: the one before, 2: the one before that
  for (size_t i = 0; i < std::max(tensor.dims.size(), packed + 1); ++i) {
    const uint64_t size = i < tensor.dims.size() ? static_cast<uint64_t>(tensor.dims[tensor.dims.size() - 1 - i]) : 1;
    bytes *= i == packed ? align_up(size, 4) : size;
  }
  return bytes;
}

Scratch::Scratch(const GraphView& graph) {
  for (uint32_t i = 0; i < graph.value_count(); ++i) {
    const vk::VkTensor* tensor = graph.tensor(static_cast<int32_t>(i));
    last_id_ = std::max(last_id_, tensor == nullptr ? -1 : tensor->mem_obj_id());
  }
}

Scratch::Slot Scratch::acquire(const NewTensor& tensor) {
  const uint64_t bytes = gpu_bytes(tensor);
  for (size_t i = 0; i < objects_.size(); ++i) {
    Object& object = objects_[i];
    if (object.free && object.storage == tensor.storage) {
      object.free = false;
      object.bytes = std::max(object.bytes, bytes);
      return {static_cast<int32_t>(i), object.mem_obj_id};
    }
  }
  // A graph that has used up all ids gets temporaries with memory of their own.
  const int32_t id = last_id_ == INT32_MAX ? -1 : ++last_id_;
  objects_.push_back({id, tensor.storage, bytes, false});
  return {static_cast<int32_t>(objects_.size() - 1), id};
}

void Scratch::release(const Slot& slot) {
  if (slot.index >= 0) {
    objects_[static_cast<size_t>(slot.index)].free = slot.mem_obj_id >= 0;
  }
}

uint64_t Scratch::bytes() const {
  uint64_t sum = 0;
  for (const Object& object : objects_) {
    sum = saturated_add(sum, object.bytes);
  }
  return sum;
}

}  // namespace etvk_guard
