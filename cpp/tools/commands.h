// SPDX-License-Identifier: Apache-2.0
//
// The commands. Each prints to `out` and returns the exit code.
#pragma once

#include "options.h"
#include "output.h"

namespace etvk_guard::tool {

int check_files(const Options& options, Output* out);
int repair_file(const Options& options, Output* out);
int show_file(const Options& options, Output* out);

}  // namespace etvk_guard::tool
