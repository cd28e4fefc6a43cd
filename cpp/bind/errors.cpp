// SPDX-License-Identifier: Apache-2.0
#include "bind.h"

namespace etvk_guard::bind {

namespace {

// The Python class is made in Python, where it can be documented and pickled; it is looked up when first needed, as the module
// that holds it imports this one.
void raise_in_python(const Error& error) {
  const ErrorInfo* info = find_error(error.code);
  if (info == nullptr) {
    info = find_error(ErrorCode::kInternal);
  }
  const py::object make = py::module_::import("etvk_guard.pte").attr("EtvkGuardError");
  const py::object made = make(info->code, info->name, text(error.message), where_row(error.where), text(info->advice));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
}

void translate(std::exception_ptr pointer) {
  try {
    if (pointer) {
      std::rethrow_exception(pointer);
    }
  } catch (const Failure& failure) {
    raise_in_python(failure.error());
  }
}

}  // namespace

void bind_errors(py::module_&) { py::register_local_exception_translator(translate); }

}  // namespace etvk_guard::bind
