// SPDX-License-Identifier: Apache-2.0
#include "verify.h"

#include "error.h"
#include "program.h"

namespace etvk_guard {
namespace {

constexpr uint32_t kMaxMethodName = 255;

// Checks one method. Every check returns false after setting the error.
class PlanVerifier {
 public:
  PlanVerifier(const et::ExecutionPlan& plan, const uint8_t* base, Budget* budget)
      : plan_(plan), base_(base), budget_(budget), value_count_(static_cast<int64_t>(count(plan.values()))) {}

  Error run() {
    if (method_name() && names() && values() && indices(&plan_, plan_.inputs(), "an input") &&
        indices(&plan_, plan_.outputs(), "an output") && aligned(&plan_, plan_.non_const_buffer_sizes())) {
      chains();
    }
    if (error_) {
      error_.where.method = excerpt(view(plan_.name()));
    }
    return error_;
  }

 private:
  bool fail(ErrorCode code, const void* at, std::string message) {
    error_.code = code;
    error_.message = std::move(message);
    error_.where.offset = static_cast<uint64_t>(static_cast<const uint8_t*>(at) - base_);
    return false;
  }
  bool bad(const void* at, std::string message) { return fail(ErrorCode::kBadProgramFlatbuffer, at, std::move(message)); }

  bool index(const void* at, int64_t value, const char* what) {
    return (value >= 0 && value < value_count_) ||
           fail(ErrorCode::kBadValueIndex, at,
                format("%s is value %lld of %lld", what, static_cast<long long>(value), static_cast<long long>(value_count_)));
  }
  template <typename V>
  bool indices(const void* at, const V* list, const char* what, int64_t lowest = 0) {
    return spend(at, count(list)) &&
           (items_below(list, value_count_, lowest) ||
            fail(ErrorCode::kBadValueIndex, at,
                 format("%s is not one of the method's %lld values", what, static_cast<long long>(value_count_))));
  }
  template <typename V>
  bool aligned(const void* at, const V* list) {
    return items_aligned(list) || bad(at, "a list of 64-bit numbers is not aligned");
  }
  bool spend(const void* at, uint64_t items) {
    return budget_->spend(items) || bad(at, "its lists have more items than it has room for");
  }

  // Every finding carries the method's name.
  bool method_name() {
    if (plan_.name() == nullptr) {
      return bad(&plan_, "a method has no name");
    }
    return plan_.name()->size() <= kMaxMethodName ||
           fail(ErrorCode::kTooLarge, &plan_,
                format("a method's name has %u bytes; at most %u are taken", plan_.name()->size(), kMaxMethodName));
  }

  bool names() {
    for (uint32_t i = 0; i < count(plan_.operators()); ++i) {
      const et::Operator* op = plan_.operators()->Get(i);
      if (op->name() == nullptr) {
        return bad(op, "an operator has no name");
      }
      if (!spend(op, op->name()->size() + (op->overload() == nullptr ? 0 : op->overload()->size()))) {
        return false;
      }
    }
    for (uint32_t i = 0; i < count(plan_.delegates()); ++i) {
      const et::BackendDelegate* delegate = plan_.delegates()->Get(i);
      if (delegate->id() == nullptr) {
        return bad(delegate, format("delegate %u has no backend", i));
      }
      if (!spend(delegate, delegate->id()->size())) {
        return false;
      }
    }
    return true;
  }

  bool values() {
    for (uint32_t i = 0; i < count(plan_.values()); ++i) {
      if (!value(*plan_.values()->Get(i))) {
        return false;
      }
    }
    return true;
  }

  bool value(const et::EValue& value) {
    if (value.val_type() != et::KernelTypes::NONE && value.val() == nullptr) {
      return bad(&value, "a value has a type but no content");
    }
    switch (value.val_type()) {
      case et::KernelTypes::Tensor: {
        const et::Tensor* tensor = value.val_as_Tensor();
        return spend(tensor, count(tensor->sizes())) && spend(tensor, count(tensor->dim_order()));
      }
      case et::KernelTypes::String:
        return spend(&value, count(value.val_as_String()->string_val()));
      case et::KernelTypes::IntList:
        return aligned(&value, value.val_as_IntList()->items()) &&
               indices(&value, value.val_as_IntList()->items(), "an item of an int list");
      case et::KernelTypes::DoubleList:
        return aligned(&value, value.val_as_DoubleList()->items()) && spend(&value, count(value.val_as_DoubleList()->items()));
      case et::KernelTypes::BoolList:
        return spend(&value, count(value.val_as_BoolList()->items()));
      case et::KernelTypes::TensorList:
        return indices(&value, value.val_as_TensorList()->items(), "an item of a tensor list");
      case et::KernelTypes::OptionalTensorList:  // -1: no tensor
        return indices(&value, value.val_as_OptionalTensorList()->items(), "an item of an optional tensor list", -1);
      default:  // scalars, and types from a newer schema, which nothing here looks into
        return true;
    }
  }

  bool chains() {
    for (uint32_t c = 0; c < count(plan_.chains()); ++c) {
      const et::Chain* chain = plan_.chains()->Get(c);
      if (!indices(chain, chain->inputs(), "an input of a chain") ||
          !indices(chain, chain->outputs(), "an output of a chain")) {
        return false;
      }
      for (uint32_t i = 0; i < count(chain->instructions()); ++i) {
        if (!instruction(*chain->instructions()->Get(i), static_cast<int64_t>(count(chain->instructions())))) {
          return false;
        }
      }
    }
    return true;
  }

  bool reference(const void* at, int64_t index, uint64_t limit, const char* what) {
    return (index >= 0 && static_cast<uint64_t>(index) < limit) ||
           bad(at, format("an instruction names %s %lld of %llu", what, static_cast<long long>(index),
                          static_cast<unsigned long long>(limit)));
  }

  bool instruction(const et::Instruction& instruction, int64_t instruction_count) {
    const void* at = &instruction;
    if (instruction.instr_args() == nullptr) {
      return bad(at, "an instruction has no content");
    }
    switch (instruction.instr_args_type()) {
      case et::InstructionArguments::NONE:
        return bad(at, "an instruction has no type");
      case et::InstructionArguments::KernelCall: {
        const et::KernelCall* call = instruction.instr_args_as_KernelCall();
        return reference(at, call->op_index(), count(plan_.operators()), "operator") &&
               indices(at, call->args(), "an argument of an operator");
      }
      case et::InstructionArguments::DelegateCall: {
        const et::DelegateCall* call = instruction.instr_args_as_DelegateCall();
        return reference(at, call->delegate_index(), count(plan_.delegates()), "delegate") &&
               indices(at, call->args(), "an argument of a delegate");
      }
      case et::InstructionArguments::MoveCall: {
        const et::MoveCall* call = instruction.instr_args_as_MoveCall();
        return index(at, call->move_from(), "the source of a move") && index(at, call->move_to(), "the target of a move");
      }
      case et::InstructionArguments::JumpFalseCall: {
        const et::JumpFalseCall* call = instruction.instr_args_as_JumpFalseCall();
        return index(at, call->cond_value_index(), "the condition of a jump") &&
               reference(at, call->destination_instruction(), static_cast<uint64_t>(instruction_count) + 1, "instruction");
      }
      case et::InstructionArguments::FreeCall:
        return index(at, instruction.instr_args_as_FreeCall()->value_index(), "the operand of a free");
    }
    return true;  // a type from a newer schema
  }

  const et::ExecutionPlan& plan_;
  const uint8_t* base_;
  Budget* budget_;
  int64_t value_count_;
  Error error_;
};

}  // namespace

Error verify_plan(const et::ExecutionPlan& plan, const uint8_t* base, Budget* budget) {
  return PlanVerifier(plan, base, budget).run();
}

}  // namespace etvk_guard
