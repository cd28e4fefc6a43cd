// SPDX-License-Identifier: Apache-2.0
//
// The command line, read as the Python command reads it: options anywhere, "--" ends them, "--output=OUT" and "-oOUT" too.
#pragma once

#include <string>
#include <vector>

namespace etvk_guard::tool {

struct Options {
  std::vector<std::string> names;  // what is no option
  std::string output;
  bool has_output = false;
  bool json = false;
  bool quiet = false;
  bool help = false;
};

// Which options and how many names a command takes.
struct Syntax {
  bool output = false;  // and wants it
  bool quiet = false;
  size_t least_names = 1;
  size_t most_names = 1;
};

// `arguments` come after the command's name. Returns an empty text, or what is wrong with them.
std::string parse(const std::vector<std::string>& arguments, const Syntax& syntax, Options* into);

}  // namespace etvk_guard::tool
