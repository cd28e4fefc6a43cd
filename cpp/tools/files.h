// SPDX-License-Identifier: Apache-2.0
//
// From the command line's FILE... to files: folders are searched for `*.pte`, patterns expanded.
#pragma once

#include <string>
#include <vector>

namespace etvk_guard::tool {

struct Item {
  std::string path;
  std::string problem;  // not empty: why there is no file to read
};

// The files that `names` stand for, in order and each once. Unlike in Python, "**" in a pattern is "*".
std::vector<Item> expand(const std::vector<std::string>& names);

}  // namespace etvk_guard::tool
