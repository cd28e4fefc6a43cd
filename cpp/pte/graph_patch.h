// SPDX-License-Identifier: Apache-2.0
//
// A VkGraph under change. The new flatbuffer holds the old one, byte for byte, as its tail: new tables refer into it, so what
// is not changed keeps every field, also those that our schema does not know. Only the root, the lists of values, ops and
// constants, and what is added are new. (Flatbuffers refer forwards, and builders write from the end: to put the old buffer
// last is all it takes.)
#pragma once

#include <etvk_guard/plan.h>
#include <etvk_guard/pte.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph.h"

namespace etvk_guard {

// A tensor to add. `constant` is an index in VkGraph.constants, or -1.
struct NewTensor {
  DType dtype = DType::kUnset;
  std::vector<int64_t> dims;
  Storage storage = Storage::kDefault;
  Layout layout = Layout::kDefault;
  int32_t mem_obj_id = -1;
  int32_t constant = -1;
};

struct NewOp {
  std::string name;
  std::vector<int32_t> args;
};

class GraphPatch {
 public:
  // The graph must outlive the patch.
  explicit GraphPatch(const GraphView& graph) : graph_(graph) {}

  // Each returns the id of the new value.
  int32_t add_tensor(NewTensor tensor);
  int32_t add_value_list(std::vector<int32_t> items);
  int32_t null();                  // one for the graph
  int32_t integer(int64_t value);  // one for each number
  int32_t integers(std::vector<int64_t> items);  // one for each list of numbers
  // Returns the index of the new constant. `offset` is in the blob's bytes region.
  int32_t add_constant(uint64_t offset, uint64_t length);
  // Puts ops in an op's place; they keep its node id, so that profiles still lead to the model's node. Ops must be replaced in
  // order.
  void replace(uint32_t op_index, std::vector<NewOp> ops);

  // kUnsupportedSchema: the root, or a replaced op, has a field that would be lost. kTooLarge.
  Error finish(std::vector<uint8_t>* into) const;

 private:
  friend class GraphPatchWriter;

  struct NewValue {
    enum class Type : uint8_t { kTensor, kValueList, kNull, kInt, kIntList } type = Type::kNull;
    NewTensor tensor;
    std::vector<int32_t> items;
    int64_t number = 0;
    std::vector<int64_t> numbers;
  };
  struct NewConstant {
    uint64_t offset, length;
  };
  struct Replacement {
    uint32_t op_index;
    std::vector<NewOp> ops;
  };

  int32_t add(NewValue value);
  uint64_t size_bound() const;

  const GraphView& graph_;
  std::vector<NewValue> values_;
  std::map<std::vector<int64_t>, int32_t> lists_;
  std::vector<NewConstant> constants_;
  std::vector<Replacement> replacements_;
};

}  // namespace etvk_guard
