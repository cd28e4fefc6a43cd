// SPDX-License-Identifier: Apache-2.0
//
// Ops in place of one op of a graph: temporaries, constants, and what an operand goes through before an op can take it. Names
// and arguments of the ops are those that ET-VK registers in every release from 1.3 on.
#pragma once

#include <etvk_guard/plan.h>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "graph.h"
#include "graph_patch.h"
#include "rewrite.h"
#include "scratch.h"

namespace etvk_guard {

// A tensor on its way through the ops: its id, what it is, and its memory if it is a temporary.
struct Handle {
  int32_t id = -1;
  NewTensor tensor;
  Scratch::Slot slot;
};

// Constants that are filled with one number, one for each shape and number, as the exporter writes constants.
class NeutralConstants {
 public:
  NeutralConstants(GraphPatch* patch, uint64_t bytes_size) : patch_(*patch), size_(bytes_size) {}
  // A row of ones, or of zeros.
  int32_t get(int64_t width, DType dtype, bool one);
  int32_t filled(std::vector<int64_t> dims, float number);
  uint64_t bytes_size() const { return size_; }
  std::vector<NewData> take_data() { return std::move(data_); }

 private:
  using Key = std::tuple<std::vector<int64_t>, DType, std::vector<uint8_t>>;
  int32_t find(Key key);
  int32_t make(const Key& key);

  GraphPatch& patch_;
  uint64_t size_;
  std::map<Key, int32_t> ids_;
  std::vector<NewData> data_;
};

class Emitter {
 public:
  Emitter(const GraphView& graph, uint64_t bytes_size)
      : graph_(graph), patch_(graph), neutral_(&patch_, bytes_size), scratch_(graph) {}

  const GraphView& graph() const { return graph_; }
  GraphPatch& patch() { return patch_; }
  NeutralConstants& neutral() { return neutral_; }

  // What is emitted between the two stands in the op's place.
  void begin() { ops_.clear(); }
  void end(uint32_t op_index) { patch_.replace(op_index, std::move(ops_)); }
  Error finish(RewrittenGraph* into);

  void op(const char* name, std::vector<int32_t> args) { ops_.push_back({name, std::move(args)}); }
  // The op at `op_index` with other arguments.
  void op_as(uint32_t op_index, std::vector<int32_t> args);
  std::vector<int32_t> args_of(uint32_t op_index) const;

  // A tensor of the graph, "default" read as ET-VK reads it.
  static Handle existing(int32_t id, const TensorDesc& desc);
  Handle temporary(NewTensor tensor);
  void release(const Handle& handle) { scratch_.release(handle.slot); }
  // Goes on from `to`: nothing reads the old tensor any more.
  void move(Handle* current, const Handle& to) {
    release(*current);
    *current = to;
  }

  // A constant as a tensor; it keeps its dtype. All ops that use it share one.
  Handle prepacked(int32_t id, const TensorDesc& desc, Storage storage, Layout layout);
  // An operand after its steps, in their order.
  Handle prepare(int32_t id, const TensorDesc& desc, const OperandSteps& steps);
  void cast(const Handle& from, const Handle& to);
  // To another storage or layout; dims are the same.
  void clone(const Handle& from, const Handle& to);
  // To other dims; the storage is the same.
  void view(const Handle& from, const Handle& to);

 private:
  const GraphView& graph_;
  GraphPatch patch_;
  NeutralConstants neutral_;
  Scratch scratch_;
  std::map<std::tuple<int32_t, Storage, Layout>, Handle> prepacked_;
  std::vector<NewOp> ops_;  // of the site at hand
};

}  // namespace etvk_guard
