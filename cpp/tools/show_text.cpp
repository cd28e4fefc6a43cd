// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "show.h"
#include "text.h"

namespace etvk_guard::tool {
namespace {

// The name of a schema's number; a number without a name as it is.
std::string named(const char* what, int number, std::initializer_list<const char*> names) {
  if (number >= 0 && static_cast<size_t>(number) < names.size()) {
    return names.begin()[number];
  }
  return number == 255 ? "default" : std::string(what) + " " + std::to_string(number);
}

std::string dtype_text(int8_t dtype) {
  return named("dtype", dtype, {"bool", "uint8", "int8", "int32", "float16", "float32", "float64", "int64"});
}

// As Python shows a tuple: "()", "(1,)", "(1, 2)".
template <typename V, typename Text>
std::string tuple_text(const V* items, Text text) {
  std::string made = "(";
  for (uint32_t i = 0; i < length(items); ++i) {
    made += (i == 0 ? "" : ", ") + text(items->Get(i));
  }
  return made + (length(items) == 1 ? ",)" : ")");
}

std::string bool_text(bool value) { return value ? "True" : "False"; }

std::string tensor_text(const vk::VkTensor& tensor) {
  std::string dims;
  for (uint32_t i = 0; i < length(tensor.dims()); ++i) {
    dims += (i == 0 ? "" : ", ") + std::to_string(tensor.dims()->Get(i));
  }
  std::string made = " " + dtype_text(tensor.datatype()) + " [" + dims + "]";
  made += " " + named("storage", tensor.storage_type(), {"buffer", "texture3d", "texture2d"});
  made += " " + named("layout", tensor.memory_layout(), {"width-packed", "height-packed", "channels-packed"});
  return made + (tensor.constant_id() < 0 ? "" : " constant " + std::to_string(tensor.constant_id()));
}

// What comes after the kind.
std::string content_text(const vk::VkValue& value) {
  const auto integer = [](auto item) { return std::to_string(item); };
  switch (value.value_type()) {
    case vk::GraphTypes::Int:
      return " " + std::to_string(value.value_as_Int()->int_val());
    case vk::GraphTypes::Double:
      return " " + real_text(value.value_as_Double()->double_val());
    case vk::GraphTypes::Bool:
      return " " + bool_text(value.value_as_Bool()->bool_val());
    case vk::GraphTypes::VkTensor:
      return tensor_text(*value.value_as_VkTensor());
    case vk::GraphTypes::IntList:
      return " " + tuple_text(value.value_as_IntList()->items(), integer);
    case vk::GraphTypes::DoubleList:
      return " " + tuple_text(value.value_as_DoubleList()->items(), real_text);
    case vk::GraphTypes::BoolList:
      return " " + tuple_text(value.value_as_BoolList()->items(), [](uint8_t item) { return bool_text(item != 0); });
    case vk::GraphTypes::ValueList:
      return " " + tuple_text(value.value_as_ValueList()->items(), integer);
    case vk::GraphTypes::String:
      return " " + file_text(view(value.value_as_String()->string_val()));
    case vk::GraphTypes::SymInt:
      return " " + std::to_string(value.value_as_SymInt()->value());
    default:
      return "";
  }
}

std::vector<bool> marked(const flatbuffers::Vector<uint32_t>* ids, uint32_t count) {
  std::vector<bool> made(count);
  for (uint32_t i = 0; i < length(ids); ++i) {
    made[ids->Get(i)] = true;  // in range: the graph is validated
  }
  return made;
}

void print_values(const vk::VkGraph& graph, Output* out) {
  const uint32_t count = length(graph.values());
  const std::vector<bool> inputs = marked(graph.input_ids(), count);
  const std::vector<bool> outputs = marked(graph.output_ids(), count);
  for (uint32_t id = 0; id < count; ++id) {
    const vk::VkValue& value = *graph.values()->Get(id);
    out->write("    %" + std::to_string(id) + " " + plain(kind_name(value.value_type()) + content_text(value)) +
               (inputs[id] ? " input" : "") + (outputs[id] ? " output" : "") + "\n");
  }
}

void print_ops(const vk::VkGraph& graph, Output* out) {
  for (uint32_t i = 0; i < length(graph.chain()); ++i) {
    const vk::OperatorCall& op = *graph.chain()->Get(i);
    const uint32_t count = length(op.args());
    std::string line = "    op " + std::to_string(i) + " " + plain(file_text(view(op.name()))) + "(";
    for (uint32_t a = 0; a + 1 < count; ++a) {
      line += (a == 0 ? "%" : ", %") + std::to_string(op.args()->Get(a));
    }
    line += count == 0 ? ") -> " : ") -> %" + std::to_string(op.args()->Get(count - 1));
    out->write(line + "\n");
  }
}

void print_delegate(const ProgramImpl& program, const DelegateView& delegate, Output* out) {
  out->write("  delegate " + std::to_string(delegate.id.index) + " " + plain(file_text(program.backend(delegate))) + ": " +
             thousands(delegate.data.size) + " bytes at " + std::to_string(delegate.data.offset) + "\n");
  if (const vk::VkGraph* graph = graph_of(program, delegate)) {
    print_ops(*graph, out);
    print_values(*graph, out);
  }
}

void print_method(const ProgramImpl& program, uint32_t index, Output* out) {
  const et::ExecutionPlan& plan = program.plan(index);
  std::string lines;
  size_t calls = 0;
  for (uint32_t c = 0; c < length(plan.chains()); ++c) {
    const auto* instructions = plan.chains()->Get(c)->instructions();
    for (uint32_t i = 0; i < length(instructions); ++i) {
      if (const auto* call = instructions->Get(i)->instr_args_as_KernelCall()) {
        calls += 1;
        lines += "  CPU op " + plain(operator_text(plan, call->op_index())) + "\n";
      }
    }
  }
  out->write("method " + plain(file_text(program.plan_name(index))) + ": " + count_text(length(plan.delegates()), "delegate") +
             ", " + count_text(calls, "CPU op") + "\n" + lines);
  for (const DelegateView& delegate : program.delegates) {
    if (delegate.id.plan == index) {
      print_delegate(program, delegate, out);
    }
  }
}

}  // namespace

void print_program(const std::string& path, const ProgramImpl& program, Output* out) {
  out->write(plain(path_text(path)) + ": " + count_text(program.plan_count(), "method") + ", " +
             count_text(program.segments.size(), "segment") + ", " + thousands(program.reader->size()) + " bytes\n");
  for (uint32_t method = 0; method < program.plan_count(); ++method) {
    print_method(program, method, out);
  }
}

}  // namespace etvk_guard::tool
