// SPDX-License-Identifier: Apache-2.0
//
// The Python extension `etvk_guard._native`. It hands over plain tuples and numbers; `etvk_guard.pte`, its only importer, gives
// them names. Long calls release the GIL.
#pragma once

#include <etvk_guard/pte.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace etvk_guard::bind {

namespace py = pybind11;

void bind_check(py::module_& module);
void bind_errors(py::module_& module);
void bind_graph(py::module_& module);
void bind_planner(py::module_& module);
void bind_program(py::module_& module);
void bind_readers(py::module_& module);
void bind_repair(py::module_& module);

// A Program and the Reader that it points into.
struct OwnedProgram {
  std::shared_ptr<Reader> reader;
  Program program;
};

// An Error on its way to Python, where it becomes etvk_guard.pte.EtvkGuardError.
class Failure : public std::exception {
 public:
  explicit Failure(Error error) : error_(std::move(error)) {}
  const Error& error() const { return error_; }
  const char* what() const noexcept override { return error_.message.c_str(); }

 private:
  Error error_;
};

inline void raise_if(Error error) {
  if (error) {
    throw Failure(std::move(error));
  }
}

// A file's text is whatever bytes the file has: what is not UTF-8 comes out as \xNN, never as an exception.
py::str text(std::string_view bytes);
std::optional<py::str> text_or_none(std::string_view bytes);

// method, delegate, op_index, op, argument, offset: the fields of etvk_guard.pte.Where.
using WhereRow = std::tuple<std::optional<py::str>, std::optional<int32_t>, std::optional<int32_t>, std::optional<py::str>,
                            std::optional<py::str>, std::optional<uint64_t>>;
WhereRow where_row(const Where& where);

// code, name, severity, method, delegate, op_index, op, argument, offset, message, stock, fixable: of etvk_guard.pte.Finding.
using FindingRow =
    std::tuple<const char*, const char*, const char*, std::optional<py::str>, std::optional<int32_t>, std::optional<int32_t>,
               std::optional<py::str>, std::optional<py::str>, std::optional<uint64_t>, py::str, const char*, bool>;
std::vector<FindingRow> finding_rows(const std::vector<Finding>& findings);

}  // namespace etvk_guard::bind
