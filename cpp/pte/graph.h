// SPDX-License-Identifier: Apache-2.0
//
// A validated view of one VkGraph, with what the contract asks of its values: which are constants, which are written and by
// which op.
#pragma once

#include <etvk_guard/plan.h>
#include <etvk_guard/pte.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "schema.h"

namespace etvk_guard {

// Every index that the accessors take must be below the matching count; everything that they return was validated when the
// graph was opened: args, list items, inputs and outputs are ids of values, constant ids are in range, and no table or string
// is null.
class GraphView {
 public:
  GraphView() = default;

  // `file_offset`: where the flatbuffer starts in the file. kBadGraphFlatbuffer, kBadValueIndex, kBadConstant. Ranges of
  // constants are not held against the blob here (program.cpp does).
  static Error open(const uint8_t* data, size_t size, uint64_t file_offset, GraphView* into);

  const vk::VkGraph& root() const { return *root_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  uint64_t file_offset() const { return file_offset_; }
  // Offset in the file of a table, vector or string of this graph.
  uint64_t offset_of(const void* item) const {
    return file_offset_ + static_cast<uint64_t>(static_cast<const uint8_t*>(item) - data_);
  }

  uint32_t op_count() const { return op_count_; }
  const vk::OperatorCall& op(uint32_t index) const { return *root_->chain()->Get(index); }
  std::string_view op_name(uint32_t index) const;
  uint32_t arg_count(uint32_t index) const;
  int32_t arg(uint32_t index, uint32_t position) const { return op(index).args()->Get(position); }

  uint32_t value_count() const { return value_count_; }
  const vk::VkValue& value(int32_t id) const { return *root_->values()->Get(static_cast<uint32_t>(id)); }
  vk::GraphTypes value_type(int32_t id) const { return value(id).value_type(); }
  bool is_null(int32_t id) const { return value_type(id) == vk::GraphTypes::Null; }
  const vk::VkTensor* tensor(int32_t id) const { return value(id).value_as_VkTensor(); }  // nullptr: not a tensor
  // Items of a ValueList; nullptr if the value is none, or the list is empty.
  const flatbuffers::Vector<int32_t>* value_list(int32_t id) const;
  // The tensor that an op writes: its last argument, or the first item of it if that is a ValueList. -1: neither.
  int32_t result(uint32_t index) const;

  // What the value is to the delegate. Anything that is neither a tensor nor Null is kScalar.
  Kind kind(int32_t id) const;
  bool is_input(int32_t id) const { return flags_[static_cast<size_t>(id)] & kInput; }
  // A list of values, of which one is a size that only running tells.
  bool is_symbolic(int32_t id) const { return flags_[static_cast<size_t>(id)] & kSymbolic; }
  bool is_output(int32_t id) const { return flags_[static_cast<size_t>(id)] & kOutput; }
  // The first op that writes the value, or -1.
  int32_t producer(int32_t id) const { return producers_[static_cast<size_t>(id)]; }

  // The value as a planner's operand: the graph's storage and layout overrides stand in for "default".
  TensorDesc describe(int32_t id) const;

 private:
  static constexpr uint8_t kInput = 1;
  static constexpr uint8_t kOutput = 2;
  static constexpr uint8_t kSymbolic = 4;
  void index_values();

  const vk::VkGraph* root_ = nullptr;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  uint64_t file_offset_ = 0;
  uint32_t op_count_ = 0;
  uint32_t value_count_ = 0;
  std::vector<uint8_t> flags_;      // a value's kInput, kOutput, kSymbolic
  std::vector<int32_t> producers_;  // a value's first writer
};

// Bytes of an element; 0 for a dtype that is not known.
uint32_t element_size(DType dtype);
// Product of sizes, UINT64_MAX if it does not fit.
uint64_t numel(const std::vector<int64_t>& dims);

}  // namespace etvk_guard
