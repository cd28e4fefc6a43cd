// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <string_view>

namespace etvk_guard::tool {
namespace {

class Parser {
 public:
  Parser(const std::vector<std::string>& arguments, const Syntax& syntax, Options* options)
      : arguments_(arguments), syntax_(syntax), options_(*options) {}

  std::string run() {
    bool ended = false;
    while (problem_.empty() && at_ < arguments_.size()) {
      const std::string& argument = arguments_[at_++];
      if (ended || argument.size() < 2 || argument[0] != '-') {
        options_.names.push_back(argument);
      } else if (argument == "--") {
        ended = true;
      } else if (argument[1] == '-') {
        long_option(argument);
      } else {
        short_options(argument);
      }
    }
    if (problem_.empty() && !options_.help) {
      complete();
    }
    return problem_;
  }

 private:
  void long_option(const std::string& argument) {
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const bool has_value = equals != std::string::npos;
    if (name == "--output" && syntax_.output) {
      take_output(name, has_value ? argument.substr(equals + 1) : std::string(), has_value);
    } else if (!flag(name)) {
      problem_ = "there is no option " + name;
    } else if (has_value) {
      problem_ = "option " + name + " does not take a value";
    }
  }

  // "-q", "-qh", "-oOUT".
  void short_options(const std::string& argument) {
    for (size_t i = 1; i < argument.size() && problem_.empty(); ++i) {
      const std::string name = {'-', argument[i]};
      if (name == "-o" && syntax_.output) {
        take_output(name, argument.substr(i + 1), i + 1 < argument.size());
        return;
      }
      if (!flag(name)) {
        problem_ = "there is no option " + name;
      }
    }
  }

  void take_output(const std::string& name, const std::string& value, bool has_value) {
    if (!has_value && at_ == arguments_.size()) {
      problem_ = "option " + name + " wants a value";
      return;
    }
    options_.output = has_value ? value : arguments_[at_++];
    options_.has_output = true;
  }

  bool flag(std::string_view name) {
    if (name == "--json") {
      options_.json = true;
    } else if (name == "--help" || name == "-h") {
      options_.help = true;
    } else if (syntax_.quiet && (name == "--quiet" || name == "-q")) {
      options_.quiet = true;
    } else {
      return false;
    }
    return true;
  }

  void complete() {
    if (options_.names.size() < syntax_.least_names) {
      problem_ = "a file is missing";
    } else if (options_.names.size() > syntax_.most_names) {
      problem_ = "there is one file too many: " + options_.names[syntax_.most_names];
    } else if (syntax_.output && !options_.has_output) {
      problem_ = "option -o is missing";
    }
  }

  const std::vector<std::string>& arguments_;
  const Syntax& syntax_;
  Options& options_;
  size_t at_ = 0;
  std::string problem_;
};

}  // namespace

std::string parse(const std::vector<std::string>& arguments, const Syntax& syntax, Options* into) {
  return Parser(arguments, syntax, into).run();
}

}  // namespace etvk_guard::tool
