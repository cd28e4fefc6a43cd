// SPDX-License-Identifier: Apache-2.0
//
// The planner's siblings, for ops other than norms: given plain descriptions, the legal form inside a VkGraph for stock, or why
// there is none. Pure functions, and total, as plan_norm() is.
#pragma once

#include <etvk_guard/plan.h>

#include <string>

namespace etvk_guard {

// x @ weight.T + bias, weight and bias constants. The same with a run-time weight is a product of matrices, and what is no
// constant bias is added afterwards.
struct LinearSite {
  TensorDesc x, weight, bias, out;
};
struct LinearPlan {
  bool legal = false;    // as it is
  std::string refusal;   // why there is no legal form; "" if there is one
  bool product = false;  // aten.mm with the transposed weight, instead of the linear op
  OperandSteps weight;   // used if `product`: before it is transposed
  OperandSteps add;      // the bias after the op, which then gets none
};
LinearPlan plan_linear(const LinearSite& site);

// Rows of a constant table, by indices of any rank, in a buffer or packed along their width. Rows of a run-time table: aten.index_select, in textures, by one list of
// indices; its runtime does not follow a change of shape.
struct EmbeddingSite {
  TensorDesc table, indices, out;
  bool dynamic = false;  // some size may be another at run time than the graph says
};
struct EmbeddingPlan {
  bool legal = false;
  std::string refusal;
  OperandSteps table, indices;
  bool in_place = false;  // the selected rows are the result as they are; else they are copied and viewed
  bool repack = false;    // the op stays, and gets a result that is packed along its width, which is copied
};
EmbeddingPlan plan_embedding(const EmbeddingSite& site);

// The left factor of a product of matrices, a constant. Stock prepacks only the right one.
struct FactorSite {
  TensorDesc factor, out;
};
struct FactorPlan {
  bool legal = false;
  std::string refusal;
  OperandSteps factor;
};
FactorPlan plan_factor(const FactorSite& site);

}  // namespace etvk_guard
