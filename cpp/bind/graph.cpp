// SPDX-License-Identifier: Apache-2.0
#include "views.h"

namespace etvk_guard::bind {

namespace {

// node_id, name, args, offset in the file.
using OpRow = std::tuple<uint32_t, py::str, std::vector<int64_t>, uint64_t>;
// offset in the file or None (not in the file), length, named_key.
using ConstantRow = std::tuple<std::optional<uint64_t>, uint64_t, std::optional<py::str>>;

// dtype, dims, constant_id, mem_obj_id, storage, layout, staging dtype.
py::object tensor_row(const vk::VkTensor& tensor) {
  return py::make_tuple(tensor.datatype(), py::tuple(py::cast(numbers(tensor.dims()))), tensor.constant_id(),
                        tensor.mem_obj_id(), tensor.storage_type(), tensor.memory_layout(), tensor.staging_datatype());
}

ValueRow value_row(const vk::VkValue& value) {
  switch (value.value_type()) {
    case vk::GraphTypes::Int:
      return {"int", py::int_(value.value_as_Int()->int_val())};
    case vk::GraphTypes::Double:
      return {"double", py::float_(value.value_as_Double()->double_val())};
    case vk::GraphTypes::Bool:
      return {"bool", py::bool_(value.value_as_Bool()->bool_val())};
    case vk::GraphTypes::VkTensor:
      return {"tensor", tensor_row(*value.value_as_VkTensor())};
    case vk::GraphTypes::IntList:
      return {"int_list", tuple_of(value.value_as_IntList()->items())};
    case vk::GraphTypes::DoubleList:
      return {"double_list", tuple_of(value.value_as_DoubleList()->items())};
    case vk::GraphTypes::BoolList:
      return {"bool_list", bools_of(value.value_as_BoolList()->items())};
    case vk::GraphTypes::ValueList:
      return {"value_list", tuple_of(value.value_as_ValueList()->items())};
    case vk::GraphTypes::String:
      return {"string", text(view(value.value_as_String()->string_val()))};
    case vk::GraphTypes::SymInt:
      return {"symint", py::int_(value.value_as_SymInt()->value())};
    default:
      return {"null", py::none()};
  }
}

std::vector<OpRow> ops(const GraphHandle& self) {
  const GraphView& graph = self.blob->graph;
  std::vector<OpRow> rows;
  rows.reserve(graph.op_count());
  for (uint32_t i = 0; i < graph.op_count(); ++i) {
    const vk::OperatorCall& op = graph.op(i);
    rows.emplace_back(op.node_id(), text(graph.op_name(i)), numbers(op.args()), graph.offset_of(&op));
  }
  return rows;
}

std::vector<ValueRow> values(const GraphHandle& self) {
  const GraphView& graph = self.blob->graph;
  std::vector<ValueRow> rows;
  rows.reserve(graph.value_count());
  for (uint32_t id = 0; id < graph.value_count(); ++id) {
    rows.push_back(value_row(graph.value(static_cast<int32_t>(id))));
  }
  return rows;
}

std::optional<Range> constant_range(const GraphHandle& self, uint32_t id) {
  Range range;
  return self.owner->program.impl().constant_range(*self.blob, id, &range) ? std::optional<Range>(range) : std::nullopt;
}

std::vector<ConstantRow> constants(const GraphHandle& self) {
  std::vector<ConstantRow> rows;
  const auto* items = self.blob->graph.root().constants();
  for (uint32_t id = 0; items != nullptr && id < items->size(); ++id) {
    const std::optional<Range> range = constant_range(self, id);
    rows.emplace_back(range ? std::optional<uint64_t>(range->offset) : std::nullopt, items->Get(id)->length(),
                      text_or_none(view(items->Get(id)->named_key())));
  }
  return rows;
}

py::buffer_info flatbuffer(const GraphHandle& self) {
  const GraphView& graph = self.blob->graph;
  return py::buffer_info(graph.data(), static_cast<py::ssize_t>(graph.size()));  // read-only, of bytes
}

}  // namespace

void bind_graph(py::module_& module) {
  using Self = const GraphHandle&;
  py::class_<GraphHandle>(module, "Graph", py::buffer_protocol(), "A validated VkGraph; keeps its program alive.")
      .def_buffer([](Self self) { return flatbuffer(self); })
      .def_property_readonly("version", [](Self self) { return text(view(self.blob->graph.root().version())); })
      .def_property_readonly("ops", &ops, "(node_id, name, args, offset) of each op.")
      .def_property_readonly("values", &values, "(kind, value) of each value.")
      .def_property_readonly("input_ids", [](Self self) { return numbers(self.blob->graph.root().input_ids()); })
      .def_property_readonly("output_ids", [](Self self) { return numbers(self.blob->graph.root().output_ids()); })
      .def_property_readonly("constants", &constants, "(offset in the file or None, length, named_key) of each constant.")
      .def_property_readonly("storage_override", [](Self self) { return self.blob->graph.root().storage_type_override(); })
      .def_property_readonly("layout_override", [](Self self) { return self.blob->graph.root().memory_layout_override(); })
      .def_property_readonly("offset", [](Self self) { return self.blob->graph.file_offset(); })
      .def_property_readonly(
          "flatbuffer", [](const py::object& self) { return py::memoryview(self); },
          "The VkGraph flatbuffer's bytes, in place.");
}

}  // namespace etvk_guard::bind
