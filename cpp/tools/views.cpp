// SPDX-License-Identifier: Apache-2.0
#include "show.h"

namespace etvk_guard::tool {
namespace {

std::vector<int64_t> numbers(const flatbuffers::Vector<int32_t>* items) {
  return items == nullptr ? std::vector<int64_t>() : std::vector<int64_t>(items->begin(), items->end());
}

}  // namespace

ShownInstruction shown(const et::Instruction& instruction) {
  switch (instruction.instr_args_type()) {
    case et::InstructionArguments::KernelCall: {
      const et::KernelCall* call = instruction.instr_args_as_KernelCall();
      return {"kernel", call->op_index(), numbers(call->args())};
    }
    case et::InstructionArguments::DelegateCall: {
      const et::DelegateCall* call = instruction.instr_args_as_DelegateCall();
      return {"delegate", call->delegate_index(), numbers(call->args())};
    }
    case et::InstructionArguments::MoveCall: {
      const et::MoveCall* call = instruction.instr_args_as_MoveCall();
      return {"move", -1, {call->move_from(), call->move_to()}};
    }
    case et::InstructionArguments::JumpFalseCall: {
      const et::JumpFalseCall* call = instruction.instr_args_as_JumpFalseCall();
      return {"jump_false", -1, {call->cond_value_index(), call->destination_instruction()}};
    }
    case et::InstructionArguments::FreeCall:
      return {"free", -1, {instruction.instr_args_as_FreeCall()->value_index()}};
    default:
      return {nullptr, -1, {}};
  }
}

const char* kind_name(vk::GraphTypes type) {
  constexpr const char* kNames[] = {"null",     "null",        "int",       "double",     "bool",   "tensor",
                                    "int_list", "double_list", "bool_list", "value_list", "string", "symint"};
  const auto index = static_cast<size_t>(type);
  return index < sizeof(kNames) / sizeof(kNames[0]) ? kNames[index] : "null";
}

const vk::VkGraph* graph_of(const ProgramImpl& program, const DelegateView& delegate) {
  return delegate.blob < 0 ? nullptr : &program.blobs[static_cast<size_t>(delegate.blob)].graph.root();
}

std::string operator_text(const et::ExecutionPlan& plan, int32_t index) {
  const et::Operator& op = *plan.operators()->Get(static_cast<uint32_t>(index));
  std::string text(view(op.name()));
  const std::string_view overload = view(op.overload());
  return text + (text.empty() || overload.empty() ? "" : ".") + std::string(overload);
}

}  // namespace etvk_guard::tool
