// SPDX-License-Identifier: Apache-2.0
#include "context.h"

#include "bytes.h"
#include "verify.h"

namespace etvk_guard {
namespace {

int64_t number_of(const et::CompileSpec* spec) {
  const bool is_number = spec != nullptr && count(spec->value()) == 4;
  return is_number ? static_cast<int64_t>(load_le(spec->value()->data(), 4)) : -1;
}

bool is_dynamic(const et::ExecutionPlan& plan, int32_t value_id) {
  const et::Tensor* tensor = plan.values()->Get(static_cast<uint32_t>(value_id))->val_as_Tensor();
  return tensor != nullptr && tensor->shape_dynamism() != 0;
}

void add_call(const et::ExecutionPlan& plan, const et::DelegateCall& call, DelegateCallInfo* info) {
  if (info->given < 0) {
    info->given = static_cast<int64_t>(count(call.args()));
  }
  for (uint32_t i = 0; i < count(call.args()); ++i) {
    info->dynamic = info->dynamic || is_dynamic(plan, call.args()->Get(i));
  }
}

std::vector<DelegateCallInfo> calls_of(const et::ExecutionPlan& plan) {
  std::vector<DelegateCallInfo> calls(count(plan.delegates()));
  for (uint32_t i = 0; i < count(plan.chains()); ++i) {
    const auto* instructions = plan.chains()->Get(i)->instructions();
    for (uint32_t j = 0; j < count(instructions); ++j) {
      const et::DelegateCall* call = instructions->Get(j)->instr_args_as_DelegateCall();
      if (call != nullptr && static_cast<size_t>(call->delegate_index()) < calls.size()) {
        add_call(plan, *call, &calls[static_cast<size_t>(call->delegate_index())]);
      }
    }
  }
  return calls;
}

}  // namespace

GraphContexts::GraphContexts(const ProgramImpl& program) : program_(program) {
  for (uint32_t i = 0; i < program.plan_count(); ++i) {
    calls_.push_back(calls_of(program.plan(i)));
  }
}

GraphContext GraphContexts::of(const DelegateView& delegate) const {
  return {number_of(program_.compile_spec(delegate, "storage_type_override")),
          number_of(program_.compile_spec(delegate, "memory_layout_override")), call(delegate).dynamic};
}

}  // namespace etvk_guard
