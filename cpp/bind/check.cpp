// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>

#include "bind.h"

namespace etvk_guard::bind {

namespace {

// method, delegate, backend, ops, the VkGraph flatbuffer or None.
using DelegateRow =
    std::tuple<py::str, int32_t, py::str, py::typing::Tuple<py::str, py::ellipsis>, std::optional<py::memoryview>>;

// Graphs repeat few names many times: one str each.
class Names {
 public:
  py::typing::Tuple<py::str, py::ellipsis> tuple(const std::vector<std::string_view>& names) {
    py::typing::Tuple<py::str, py::ellipsis> made(names.size());
    for (size_t i = 0; i < names.size(); ++i) {
      made[i] = find(names[i]);
    }
    return made;
  }

 private:
  const py::str& find(std::string_view name) {
    const auto known = known_.find(name);
    return known != known_.end() ? known->second : known_.emplace(name, text(name)).first->second;
  }
  std::unordered_map<std::string_view, py::str> known_;
};

std::vector<DelegateRow> delegate_rows(const Report& report) {
  Names names;
  std::vector<DelegateRow> rows;
  rows.reserve(report.delegates.size());
  for (const DelegateSummary& summary : report.delegates) {
    std::optional<py::memoryview> graph;
    if (summary.graph != nullptr) {
      graph = py::memoryview::from_memory(summary.graph, static_cast<py::ssize_t>(summary.graph_size));
    }
    rows.emplace_back(text(summary.method), summary.delegate, text(summary.backend), names.tuple(summary.ops),
                      std::move(graph));
  }
  return rows;
}

std::pair<std::vector<FindingRow>, std::vector<DelegateRow>> check_program(const OwnedProgram& owned) {
  Report report;
  Error error;
  {
    const py::gil_scoped_release release;
    error = check(owned.program, &report);
  }
  raise_if(std::move(error));
  return {finding_rows(report.findings), delegate_rows(report)};
}

}  // namespace

void bind_check(py::module_& module) {
  module.def("check", &check_program, py::arg("program"),
             "Findings and delegates of a program. The graphs point into the program: they are valid as long as it is.");
}

}  // namespace etvk_guard::bind
