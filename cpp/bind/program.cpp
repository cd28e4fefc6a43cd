// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "views.h"

namespace etvk_guard::bind {

namespace {

// name, inputs, outputs, (name, overload) of each operator.
using MethodRow = std::tuple<py::str, std::vector<int64_t>, std::vector<int64_t>, std::vector<std::pair<py::str, py::str>>>;
// kind, index of the operator or delegate (-1: neither), args.
using InstructionRow = std::tuple<const char*, int32_t, std::vector<int64_t>>;
// index, backend, offset in the file, size, compile specs.
using DelegateRow = std::tuple<uint32_t, py::str, uint64_t, uint64_t, std::vector<std::pair<py::str, py::bytes>>>;

std::shared_ptr<OwnedProgram> open_program(std::shared_ptr<Reader> reader) {
  auto made = std::make_shared<OwnedProgram>();
  made->reader = std::move(reader);
  Error error;
  {
    const py::gil_scoped_release release;
    error = Program::open(*made->reader, &made->program);
  }
  raise_if(std::move(error));
  return made;
}

const et::ExecutionPlan& plan(const OwnedProgram& self, uint32_t method) {
  const ProgramImpl& impl = self.program.impl();
  if (method >= impl.plan_count()) {
    throw py::index_error("no method " + std::to_string(method));
  }
  return impl.plan(method);
}

MethodRow method(const OwnedProgram& self, uint32_t index) {
  const et::ExecutionPlan& table = plan(self, index);
  std::vector<std::pair<py::str, py::str>> operators;
  if (table.operators() != nullptr) {
    for (const et::Operator* op : *table.operators()) {
      operators.emplace_back(text(view(op->name())), text(view(op->overload())));
    }
  }
  return {text(view(table.name())), numbers(table.inputs()), numbers(table.outputs()), std::move(operators)};
}

// dtype, sizes, dim_order, data_buffer_idx, has_allocation, dynamism, fully qualified name, external.
py::object tensor_row(const et::Tensor& tensor) {
  const et::ExtraTensorInfo* extra = tensor.extra_tensor_info();
  return py::make_tuple(tensor.scalar_type(), tuple_of(tensor.sizes()), tuple_of(tensor.dim_order()), tensor.data_buffer_idx(),
                        tensor.allocation_info() != nullptr, tensor.shape_dynamism(),
                        text_or_none(extra == nullptr ? std::string_view() : view(extra->fully_qualified_name())),
                        extra != nullptr && extra->location() == 1);
}

ValueRow value_row(const et::EValue& value) {
  switch (value.val_type()) {
    case et::KernelTypes::Int:
      return {"int", py::int_(value.val_as_Int()->int_val())};
    case et::KernelTypes::Bool:
      return {"bool", py::bool_(value.val_as_Bool()->bool_val())};
    case et::KernelTypes::Double:
      return {"double", py::float_(value.val_as_Double()->double_val())};
    case et::KernelTypes::Tensor:
      return {"tensor", tensor_row(*value.val_as_Tensor())};
    case et::KernelTypes::String:
      return {"string", text(view(value.val_as_String()->string_val()))};
    case et::KernelTypes::IntList:
      return {"int_list", tuple_of(value.val_as_IntList()->items())};
    case et::KernelTypes::DoubleList:
      return {"double_list", tuple_of(value.val_as_DoubleList()->items())};
    case et::KernelTypes::BoolList:
      return {"bool_list", bools_of(value.val_as_BoolList()->items())};
    case et::KernelTypes::TensorList:
      return {"tensor_list", tuple_of(value.val_as_TensorList()->items())};
    case et::KernelTypes::OptionalTensorList:
      return {"optional_tensor_list", tuple_of(value.val_as_OptionalTensorList()->items())};
    default:
      return {"null", py::none()};
  }
}

std::vector<ValueRow> values(const OwnedProgram& self, uint32_t method) {
  std::vector<ValueRow> rows;
  if (const auto* items = plan(self, method).values()) {
    rows.reserve(items->size());
    for (const et::EValue* value : *items) {
      rows.push_back(value_row(*value));
    }
  }
  return rows;
}

InstructionRow instruction_row(const et::Instruction& instruction) {
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
      throw Failure({ErrorCode::kUnsupportedSchema, "an instruction is of a kind that is not known here", {}});
  }
}

std::vector<InstructionRow> instructions(const OwnedProgram& self, uint32_t method) {
  std::vector<InstructionRow> rows;
  const auto* chains = plan(self, method).chains();
  for (uint32_t i = 0; chains != nullptr && i < chains->size(); ++i) {
    if (const auto* items = chains->Get(i)->instructions()) {
      for (const et::Instruction* instruction : *items) {
        rows.push_back(instruction_row(*instruction));
      }
    }
  }
  return rows;
}

std::vector<std::pair<py::str, py::bytes>> compile_specs(const et::BackendDelegate& delegate) {
  std::vector<std::pair<py::str, py::bytes>> specs;
  if (delegate.compile_specs() != nullptr) {
    for (const et::CompileSpec* spec : *delegate.compile_specs()) {
      const auto* value = spec->value();
      const py::bytes bytes =
          value == nullptr ? py::bytes() : py::bytes(reinterpret_cast<const char*>(value->data()), value->size());
      specs.emplace_back(text(view(spec->key())), bytes);
    }
  }
  return specs;
}

// The first delegate of a method; they lie method by method.
std::vector<DelegateView>::const_iterator first_delegate(const ProgramImpl& impl, uint32_t method) {
  return std::lower_bound(impl.delegates.begin(), impl.delegates.end(), method,
                          [](const DelegateView& delegate, uint32_t wanted) { return delegate.id.plan < wanted; });
}

std::vector<DelegateRow> delegates(const OwnedProgram& self, uint32_t method) {
  plan(self, method);
  std::vector<DelegateRow> rows;
  const ProgramImpl& impl = self.program.impl();
  for (auto at = first_delegate(impl, method); at != impl.delegates.end() && at->id.plan == method; ++at) {
    rows.emplace_back(at->id.index, text(impl.backend(*at)), at->data.offset, at->data.size, compile_specs(*at->table));
  }
  return rows;
}

std::optional<GraphHandle> graph(const std::shared_ptr<OwnedProgram>& self, uint32_t method, uint32_t index) {
  const ProgramImpl& impl = self->program.impl();
  const auto first = first_delegate(impl, method);
  if (index >= static_cast<size_t>(impl.delegates.end() - first)) {
    return std::nullopt;
  }
  const DelegateView& delegate = first[index];
  if (delegate.id.plan != method || delegate.blob < 0) {
    return std::nullopt;
  }
  return GraphHandle{self, &impl.blobs[static_cast<size_t>(delegate.blob)]};
}

std::vector<std::pair<uint64_t, uint64_t>> segments(const OwnedProgram& self) {
  std::vector<std::pair<uint64_t, uint64_t>> rows;
  for (const Range& range : self.program.impl().segments) {
    rows.emplace_back(range.offset, range.size);
  }
  return rows;
}

py::typing::Dict<py::str, uint32_t> named_data(const OwnedProgram& self) {
  py::dict made;
  for (const auto& entry : self.program.impl().named_data) {
    made.attr("setdefault")(text(entry.key), entry.segment);  // the first of equal keys counts
  }
  return made;
}

std::optional<std::pair<uint64_t, uint64_t>> constant_range(const OwnedProgram& self, uint32_t data_buffer_idx,
                                                            uint64_t nbytes) {
  Range range;
  if (!self.program.impl().plan_constant_range(data_buffer_idx, nbytes, &range)) {
    return std::nullopt;
  }
  return std::pair(range.offset, range.size);
}

std::optional<std::pair<uint64_t, uint64_t>> initial_range(const OwnedProgram& self, uint32_t data_buffer_idx, uint64_t nbytes) {
  Range range;
  if (!self.program.impl().plan_initial_range(data_buffer_idx, nbytes, &range)) {
    return std::nullopt;
  }
  return std::pair(range.offset, range.size);
}

}  // namespace

void bind_program(py::module_& module) {
  py::class_<OwnedProgram, std::shared_ptr<OwnedProgram>>(module, "Program", "A validated program; keeps its reader alive.")
      .def(py::init(&open_program), py::arg("reader"))
      .def_property_readonly(
          "size", [](const OwnedProgram& self) { return self.reader->size(); }, "Bytes of the file.")
      .def_property_readonly("segments", &segments, "(offset in the file, size) of each segment.")
      .def_property_readonly("named_data", &named_data, "Key to index of a segment.")
      .def_property_readonly("method_count", [](const OwnedProgram& self) { return self.program.impl().plan_count(); })
      .def("method", &method, py::arg("index"), "(name, inputs, outputs, operators) of a method.")
      .def("values", &values, py::arg("method"), "(kind, value) of each value.")
      .def("instructions", &instructions, py::arg("method"), "(kind, index, args) of each instruction.")
      .def("delegates", &delegates, py::arg("method"), "(index, backend, offset, size, compile specs) of each delegate.")
      .def("graph", &graph, py::arg("method"), py::arg("delegate"), "The graph of a Vulkan delegate, else None.")
      .def("constant_range", &constant_range, py::arg("data_buffer_idx"), py::arg("nbytes"),
           "(offset in the file, size) of a method's constant, or None.")
      .def("initial_range", &initial_range, py::arg("data_buffer_idx"), py::arg("nbytes"),
           "(offset in the file, size) of what a tensor in planned memory starts with, or None.")
      .def(
          "read",
          [](const OwnedProgram& self, uint64_t offset, uint64_t size) { return read_checked(*self.reader, offset, size); },
          py::arg("offset"), py::arg("size"), "Bytes of the file.");
}

}  // namespace etvk_guard::bind
