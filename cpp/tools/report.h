// SPDX-License-Identifier: Apache-2.0
//
// Errors and findings in words and in JSON.
#pragma once

#include <etvk_guard/pte.h>

#include <string>
#include <vector>

#include "json.h"
#include "output.h"

namespace etvk_guard::tool {

inline constexpr int kClean = 0;
inline constexpr int kFindings = 1;
inline constexpr int kFailed = 2;

// One line, escaped. `file` is what the error is about; where that has no name, `fallback` starts the line.
std::string error_line(const std::string& file, const Error& error, const std::string& fallback = "");
// "error: ..." on the error output; returns kFailed.
int fail(const std::string& line);

void write_findings(const std::vector<Finding>& findings, JsonWriter* json);
// Two lines a finding: where it is, and what it is.
void print_findings(const std::vector<Finding>& findings, Output* out);

}  // namespace etvk_guard::tool
