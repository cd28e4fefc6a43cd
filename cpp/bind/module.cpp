// SPDX-License-Identifier: Apache-2.0
#include "bind.h"

PYBIND11_MODULE(_native, module) {
  using namespace etvk_guard::bind;
  module.doc() = "The C++ core of etvk_guard. Import etvk_guard.pte instead.";
  bind_errors(module);
  bind_readers(module);
  bind_graph(module);
  bind_program(module);
  bind_check(module);
  bind_repair(module);
  bind_planner(module);
}
