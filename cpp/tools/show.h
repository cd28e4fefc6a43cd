// SPDX-License-Identifier: Apache-2.0
//
// What both forms of `show` need of a program.
#pragma once

#include <string>
#include <vector>

#include "output.h"
#include "program.h"

namespace etvk_guard::tool {

struct ShownInstruction {
  const char* kind;  // nullptr: from a newer schema
  int32_t index;     // of the operator or delegate, else -1
  std::vector<int64_t> args;
};

ShownInstruction shown(const et::Instruction& instruction);
const char* kind_name(vk::GraphTypes type);
const vk::VkGraph* graph_of(const ProgramImpl& program, const DelegateView& delegate);  // nullptr: another backend
std::string operator_text(const et::ExecutionPlan& plan, int32_t index);                // "aten::cumsum.out"

template <typename V>
uint32_t length(const V* vector) {
  return vector == nullptr ? 0 : vector->size();
}

void print_program(const std::string& path, const ProgramImpl& program, Output* out);  // show_text.cpp

}  // namespace etvk_guard::tool
