// SPDX-License-Identifier: Apache-2.0
#include "show.h"

#include <unordered_set>

#include "commands.h"
#include "error.h"
#include "json.h"
#include "report.h"
#include "text.h"

namespace etvk_guard::tool {
namespace {

template <typename V>
void write_numbers(const V* items, JsonWriter* json) {
  json->begin_array();
  for (uint32_t i = 0; i < length(items); ++i) {
    json->integer(static_cast<int64_t>(items->Get(i)));
  }
  json->end_array();
}

template <typename V>
void write_numbers(const char* key, const V* items, JsonWriter* json) {
  json->key(key);
  write_numbers(items, json);
}

void write_number(const char* key, int64_t number, JsonWriter* json) {
  json->key(key);
  json->integer(number);
}

void write_natural(const char* key, uint64_t number, JsonWriter* json) {
  json->key(key);
  json->natural(number);
}

void write_text(const char* key, std::string_view bytes, JsonWriter* json) {
  json->key(key);
  json->string(file_text(bytes));
}

void write_tensor(const vk::VkTensor& tensor, JsonWriter* json) {
  json->begin_object();
  write_number("dtype", tensor.datatype(), json);
  write_numbers("dims", tensor.dims(), json);
  write_number("constant_id", tensor.constant_id(), json);
  write_number("mem_obj_id", tensor.mem_obj_id(), json);
  write_number("storage", tensor.storage_type(), json);
  write_number("layout", tensor.memory_layout(), json);
  write_number("staging_dtype", tensor.staging_datatype(), json);
  json->end_object();
}

void write_reals(const flatbuffers::Vector<double>* items, JsonWriter* json) {
  json->begin_array();
  for (uint32_t i = 0; i < length(items); ++i) {
    json->real(items->Get(i));
  }
  json->end_array();
}

void write_bools(const flatbuffers::Vector<uint8_t>* items, JsonWriter* json) {
  json->begin_array();
  for (uint32_t i = 0; i < length(items); ++i) {
    json->boolean(items->Get(i) != 0);
  }
  json->end_array();
}

void write_content(const vk::VkValue& value, JsonWriter* json) {
  switch (value.value_type()) {
    case vk::GraphTypes::Int:
      return json->integer(value.value_as_Int()->int_val());
    case vk::GraphTypes::Double:
      return json->real(value.value_as_Double()->double_val());
    case vk::GraphTypes::Bool:
      return json->boolean(value.value_as_Bool()->bool_val());
    case vk::GraphTypes::VkTensor:
      return write_tensor(*value.value_as_VkTensor(), json);
    case vk::GraphTypes::IntList:
      return write_numbers(value.value_as_IntList()->items(), json);
    case vk::GraphTypes::DoubleList:
      return write_reals(value.value_as_DoubleList()->items(), json);
    case vk::GraphTypes::BoolList:
      return write_bools(value.value_as_BoolList()->items(), json);
    case vk::GraphTypes::ValueList:
      return write_numbers(value.value_as_ValueList()->items(), json);
    case vk::GraphTypes::String:
      return json->string(file_text(view(value.value_as_String()->string_val())));
    case vk::GraphTypes::SymInt:
      return json->integer(value.value_as_SymInt()->value());
    default:
      return json->null();
  }
}

void write_op(const GraphView& graph, uint32_t index, JsonWriter* json) {
  const vk::OperatorCall& op = graph.op(index);
  json->begin_object();
  write_number("node_id", op.node_id(), json);
  write_text("name", graph.op_name(index), json);
  write_numbers("args", op.args(), json);
  write_natural("offset", graph.offset_of(&op), json);
  json->end_object();
}

void write_constant(const ProgramImpl& program, const Blob& blob, uint32_t id, JsonWriter* json) {
  const vk::VkBytes& constant = *blob.graph.root().constants()->Get(id);
  const std::string_view key = view(constant.named_key());
  Range range;
  json->begin_object();
  json->key("offset");
  if (program.constant_range(blob, id, &range)) {
    json->natural(range.offset);
  } else {
    json->null();
  }
  write_natural("length", constant.length(), json);
  json->key("named_key");
  if (key.empty()) {
    json->null();
  } else {
    json->string(file_text(key));
  }
  json->end_object();
}

void write_graph(const ProgramImpl& program, const Blob& blob, JsonWriter* json) {
  const GraphView& graph = blob.graph;
  const vk::VkGraph& root = graph.root();
  json->begin_object();
  write_text("version", view(root.version()), json);
  write_natural("offset", graph.file_offset(), json);
  write_number("storage_override", root.storage_type_override(), json);
  write_number("layout_override", root.memory_layout_override(), json);
  write_numbers("input_ids", root.input_ids(), json);
  write_numbers("output_ids", root.output_ids(), json);
  json->key("ops");
  json->begin_array();
  for (uint32_t i = 0; i < graph.op_count(); ++i) {
    write_op(graph, i, json);
  }
  json->end_array();
  json->key("values");
  json->begin_array();
  for (uint32_t id = 0; id < graph.value_count(); ++id) {
    const vk::VkValue& value = graph.value(static_cast<int32_t>(id));
    json->begin_object();
    write_text("kind", kind_name(value.value_type()), json);
    json->key("value");
    write_content(value, json);
    json->end_object();
  }
  json->end_array();
  json->key("constants");
  json->begin_array();
  for (uint32_t id = 0; id < length(root.constants()); ++id) {
    write_constant(program, blob, id, json);
  }
  json->end_array();
  json->end_object();
}

// Of equal keys the last value counts, at the place of the first, as in a Python dict.
void write_specs(const et::BackendDelegate& delegate, JsonWriter* json) {
  std::vector<std::pair<std::string, std::string>> specs;
  for (uint32_t i = 0; i < length(delegate.compile_specs()); ++i) {
    const et::CompileSpec& spec = *delegate.compile_specs()->Get(i);
    std::string key = file_text(view(spec.key()));
    std::string value = spec.value() == nullptr ? std::string() : hex(spec.value()->data(), spec.value()->size());
    auto known = specs.begin();
    while (known != specs.end() && known->first != key) {
      ++known;
    }
    if (known == specs.end()) {
      specs.emplace_back(std::move(key), std::move(value));
    } else {
      known->second = std::move(value);
    }
  }
  json->key("compile_specs");
  json->begin_object();
  for (const auto& [key, value] : specs) {
    json->key(key);
    json->string(value);
  }
  json->end_object();
}

void write_delegate(const ProgramImpl& program, const DelegateView& delegate, JsonWriter* json) {
  json->begin_object();
  write_number("index", delegate.id.index, json);
  write_text("backend", program.backend(delegate), json);
  write_natural("offset", delegate.data.offset, json);
  write_natural("size", delegate.data.size, json);
  write_specs(*delegate.table, json);
  json->key("graph");
  if (delegate.blob < 0) {
    json->null();
  } else {
    write_graph(program, program.blobs[static_cast<size_t>(delegate.blob)], json);
  }
  json->end_object();
}

void write_instructions(const et::ExecutionPlan& plan, JsonWriter* json) {
  json->key("instructions");
  json->begin_array();
  for (uint32_t c = 0; c < length(plan.chains()); ++c) {
    const auto* instructions = plan.chains()->Get(c)->instructions();
    for (uint32_t i = 0; i < length(instructions); ++i) {
      const ShownInstruction instruction = shown(*instructions->Get(i));
      json->begin_object();
      write_text("kind", instruction.kind, json);
      write_number("index", instruction.index, json);
      json->key("args");
      json->begin_array();
      for (const int64_t arg : instruction.args) {
        json->integer(arg);
      }
      json->end_array();
      json->end_object();
    }
  }
  json->end_array();
}

void write_method(const ProgramImpl& program, uint32_t index, JsonWriter* json) {
  const et::ExecutionPlan& plan = program.plan(index);
  json->begin_object();
  write_text("name", program.plan_name(index), json);
  write_numbers("inputs", plan.inputs(), json);
  write_numbers("outputs", plan.outputs(), json);
  json->key("operators");
  json->begin_array();
  for (uint32_t i = 0; i < length(plan.operators()); ++i) {
    json->string(file_text(operator_text(plan, static_cast<int32_t>(i))));
  }
  json->end_array();
  write_instructions(plan, json);
  json->key("delegates");
  json->begin_array();
  for (const DelegateView& delegate : program.delegates) {
    if (delegate.id.plan == index) {
      write_delegate(program, delegate, json);
    }
  }
  json->end_array();
  json->end_object();
}

void write_segments(const ProgramImpl& program, JsonWriter* json) {
  json->key("segments");
  json->begin_array();
  for (const Range& range : program.segments) {
    json->begin_array();
    json->natural(range.offset);
    json->natural(range.size);
    json->end_array();
  }
  json->end_array();
  json->key("named_data");
  json->begin_object();
  std::unordered_set<std::string> keys;
  for (const NamedSegment& entry : program.named_data) {
    const std::string key = file_text(entry.key);
    if (keys.insert(key).second) {  // the first of equal keys counts
      json->key(key);
      json->natural(entry.segment);
    }
  }
  json->end_object();
}

void write_program(const std::string& path, const ProgramImpl& program, Output* out) {
  JsonWriter json(out);
  json.begin_object();
  json.key("file");
  json.string(path_text(path));
  json.key("error");
  json.null();
  write_natural("size", program.reader->size(), &json);
  write_segments(program, &json);
  json.key("methods");
  json.begin_array();
  for (uint32_t method = 0; method < program.plan_count(); ++method) {
    write_method(program, method, &json);
  }
  json.end_array();
  json.end_object();
  json.finish();
}

int report_problem(const Options& options, const std::string& problem, Output* out) {
  if (!options.json) {
    return fail(problem);
  }
  JsonWriter json(out);
  json.begin_object();
  json.key("file");
  json.string(path_text(options.names[0]));
  json.key("error");
  json.string(problem);
  json.end_object();
  json.finish();
  return kFailed;
}

// An instruction of a newer schema can be passed on by a repair, but not be shown.
Error all_shown(const ProgramImpl& program) {
  for (uint32_t method = 0; method < program.plan_count(); ++method) {
    const et::ExecutionPlan& plan = program.plan(method);
    for (uint32_t c = 0; c < length(plan.chains()); ++c) {
      const auto* instructions = plan.chains()->Get(c)->instructions();
      for (uint32_t i = 0; i < length(instructions); ++i) {
        if (shown(*instructions->Get(i)).kind == nullptr) {
          return make_error(ErrorCode::kUnsupportedSchema, kNoOffset, "an instruction is of a kind that is not known here");
        }
      }
    }
  }
  return {};
}

}  // namespace

int show_file(const Options& options, Output* out) {
  const std::string& path = options.names[0];
  FileReader reader;
  Program program;
  Error error = FileReader::open(path.c_str(), &reader);
  if (!error) {
    error = Program::open(reader, &program);
  }
  if (!error) {
    error = all_shown(program.impl());
  }
  if (error) {
    return report_problem(options, error_line(path, error), out);
  }
  if (options.json) {
    write_program(path, program.impl(), out);
  } else {
    print_program(path, program.impl(), out);
  }
  return kClean;
}

}  // namespace etvk_guard::tool
