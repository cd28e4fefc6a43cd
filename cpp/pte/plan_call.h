// SPDX-License-Identifier: Apache-2.0
//
// The planner for calls whose operands are as the contract has them, and that stock refuses or computes wrongly all the same
// (quirks.h): numbers and lists in the form that its op builders read, a pad in front of a depthwise convolution, and two
// comparisons for one.
#pragma once

#include <etvk_guard/plan.h>
#include <etvk_guard/pte.h>

#include <cstdint>
#include <string>
#include <vector>

#include "graph.h"

namespace etvk_guard {

struct CallPlan {
  // An argument that becomes an integer, or a list of integers.
  struct Change {
    uint32_t position = 0;
    std::string argument;  // as its finding names it
    bool is_list = false;
    std::vector<int64_t> numbers;
  };
  std::vector<Change> changes;

  bool pads = false;  // aten.constant_pad_nd before the convolution, which gets no padding
  TensorDesc padded;
  std::vector<int64_t> pad;  // before and after, the last dim first
  std::string pad_refusal;

  bool compares = false;  // aten.ge and aten.le, and whether both hold
  TensorDesc result;
  std::string compare_refusal;

  bool possible() const { return !changes.empty() || pads || compares; }
  // Whether a finding is gone afterwards, and if not, why not, where there is more to say than that no rewrite is known.
  bool settles(FindingCode code, const std::string& argument) const;
  std::string refusal_of(FindingCode code) const;
};

// `x` and `out`: the op's first operand and its result, with storage and layout as compile specs say. Pure, and total.
CallPlan plan_call(const GraphView& graph, uint32_t op_index, const TensorDesc& x, const TensorDesc& out);

}  // namespace etvk_guard
