// SPDX-License-Identifier: Apache-2.0
//
// What repair can do about one op of a graph: which planner is asked, and what it says. check() asks for what is fixable, and
// repair() carries it out.
#pragma once

#include <etvk_guard/plan.h>

#include <cstdint>
#include <string>

#include "graph.h"
#include "plan_call.h"
#include "plan_ops.h"

namespace etvk_guard {

// What surrounds a graph in its program.
struct GraphContext {
  int64_t storage = -1, layout = -1;  // what compile specs say instead of ET-VK's defaults; -1: nothing
  bool dynamic = false;               // a tensor that is passed to it may have other sizes than it says
  bool operator==(const GraphContext& other) const {
    return storage == other.storage && layout == other.layout && dynamic == other.dynamic;
  }
};

inline constexpr const char* kEmbeddingOp = "aten.embedding.default";
inline constexpr uint32_t kEmbeddingArgs = 6;

enum class FixKind : uint8_t { kNone, kNorm, kLinear, kEmbedding, kFactor, kCall };

struct Fix {
  FixKind kind = FixKind::kNone;
  uint32_t op_index = 0;
  std::string refusal;  // why there is no legal form; "" if there is one
  NormSite norm;        // of kNorm, and so on
  NormPlan norm_plan;
  LinearSite linear;
  LinearPlan linear_plan;
  EmbeddingSite embedding;
  EmbeddingPlan embedding_plan;
  FactorSite factor;
  FactorPlan factor_plan;
  uint32_t factor_arg = 0;  // which argument the factor is
  CallPlan call;

  bool possible() const { return kind != FixKind::kNone && refusal.empty(); }
  // Whether the rewrite takes an argument out of the op, or the op away: what is wrong with it otherwise is gone too.
  bool settles(uint32_t position) const;
};

// Total. FixKind::kNone: no planner knows the op, or it is legal as it is.
Fix plan_fix(const GraphView& graph, uint32_t op_index, const GraphContext& context);

}  // namespace etvk_guard
