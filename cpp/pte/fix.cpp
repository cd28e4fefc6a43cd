// SPDX-License-Identifier: Apache-2.0
#include "fix.h"

#include <initializer_list>
#include <string_view>

#include "site.h"

namespace etvk_guard {
namespace {

struct Factor {
  std::string_view op;
  uint32_t arg, count;
};
constexpr Factor kFactors[] = {{"aten.mm.default", 0, 3}, {"aten.bmm.default", 0, 3}, {"aten.addmm.default", 1, 6}};

void apply(const GraphContext& context, TensorDesc* desc) {
  if (desc->storage == Storage::kDefault && context.storage >= 0 && context.storage < 255) {
    desc->storage = static_cast<Storage>(context.storage);
  }
  if (desc->layout == Layout::kDefault && context.layout >= 0 && context.layout < 255) {
    desc->layout = static_cast<Layout>(context.layout);
  }
}

class Planner {
 public:
  Planner(const GraphView& graph, uint32_t op_index, const GraphContext& context)
      : graph_(graph), context_(context), name_(graph.op_name(op_index)), args_(graph.arg_count(op_index)) {
    fix_.op_index = op_index;
  }

  Fix run() {
    if (norm_args(graph_, fix_.op_index) != nullptr) {
      norm();
    } else if (name_ == "aten.linear.default" && args_ == 4) {
      linear();
    } else if (name_ == kEmbeddingOp && args_ == kEmbeddingArgs) {
      embedding();
    } else {
      factor();
      call();
    }
    return std::move(fix_);
  }

 private:
  TensorDesc describe(uint32_t position) const {
    TensorDesc desc = graph_.describe(graph_.arg(fix_.op_index, position));
    apply(context_, &desc);
    return desc;
  }
  TensorDesc result() const {
    const int32_t id = graph_.result(fix_.op_index);
    TensorDesc desc = id < 0 ? TensorDesc() : graph_.describe(id);
    apply(context_, &desc);
    return desc;
  }
  void done(FixKind kind, bool legal, const std::string& refusal) {
    fix_.kind = legal ? FixKind::kNone : kind;
    fix_.refusal = refusal;
  }

  void norm() {
    NormSite& site = fix_.norm;
    site = make_site(graph_, fix_.op_index);
    for (TensorDesc* desc : {&site.x, &site.weight, &site.bias, &site.out, &site.mean, &site.variance}) {
      apply(context_, desc);
    }
    fix_.norm_plan = plan_norm(site, Target::kFile);
    const bool possible = fix_.norm_plan.form == Form::kUnit || fix_.norm_plan.form == Form::kUnitThenOps;
    if (double eps = 0; fix_.norm_plan.computed && !norm_eps(graph_, fix_.op_index, &eps)) {
      return done(FixKind::kNorm, false, "eps is no number");
    }
    done(FixKind::kNorm, fix_.norm_plan.form == Form::kStock, possible ? "" : etvk_guard::describe(site, fix_.norm_plan));
  }

  void linear() {
    fix_.linear = {describe(0), describe(1), describe(2), result()};
    fix_.linear_plan = plan_linear(fix_.linear);
    done(FixKind::kLinear, fix_.linear_plan.legal, fix_.linear_plan.refusal);
  }

  void embedding() {
    fix_.embedding = {describe(0), describe(1), result(), context_.dynamic};
    fix_.embedding_plan = plan_embedding(fix_.embedding);
    done(FixKind::kEmbedding, fix_.embedding_plan.legal, fix_.embedding_plan.refusal);
  }

  void factor() {
    for (const Factor& row : kFactors) {
      if (name_ == row.op && args_ == row.count) {
        fix_.factor_arg = row.arg;
        fix_.factor = {describe(row.arg), result()};
        fix_.factor_plan = plan_factor(fix_.factor);
        done(FixKind::kFactor, fix_.factor_plan.legal, fix_.factor_plan.refusal);
      }
    }
  }

  void call() {
    if (fix_.kind == FixKind::kNone && args_ > 1) {
      fix_.call = plan_call(graph_, fix_.op_index, describe(0), result());
      done(FixKind::kCall, !fix_.call.possible(), "");
    }
  }

  const GraphView& graph_;
  const GraphContext& context_;
  const std::string_view name_;
  const uint32_t args_;
  Fix fix_;
};

}  // namespace

bool Fix::settles(uint32_t position) const {
  switch (kind) {
    case FixKind::kNorm:
      return norm_plan.computed;
    case FixKind::kLinear:
      return linear_plan.product;
    case FixKind::kEmbedding:
      return !embedding_plan.repack;
    case FixKind::kFactor:
      return position == factor_arg;
    case FixKind::kCall:  // its findings are settled by code
    case FixKind::kNone:
      break;
  }
  return false;
}

Fix plan_fix(const GraphView& graph, uint32_t op_index, const GraphContext& context) {
  return Planner(graph, op_index, context).run();
}

}  // namespace etvk_guard
