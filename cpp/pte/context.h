// SPDX-License-Identifier: Apache-2.0
//
// What a program says of each of its delegates' graphs.
#pragma once

#include <cstdint>
#include <vector>

#include "fix.h"
#include "program.h"

namespace etvk_guard {

// How a method calls one of its delegates.
struct DelegateCallInfo {
  int64_t given = -1;    // arguments, -1: it is never called. Calls that differ in this give the first one's count.
  bool dynamic = false;  // a tensor among them is of dynamic shape
};

class GraphContexts {
 public:
  explicit GraphContexts(const ProgramImpl& program);
  const DelegateCallInfo& call(const DelegateView& delegate) const { return calls_[delegate.id.plan][delegate.id.index]; }
  GraphContext of(const DelegateView& delegate) const;

 private:
  const ProgramImpl& program_;
  std::vector<std::vector<DelegateCallInfo>> calls_;  // by method and delegate
};

}  // namespace etvk_guard
