// SPDX-License-Identifier: Apache-2.0
//
// etvk-guard-pte: `check`, `repair` and `show` of the Python command etvk-guard, as one static program. The same JSON and exit
// codes; the system's own words for its errors are those of the C library it is linked with.
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "commands.h"
#include "report.h"
#include "text.h"

namespace etvk_guard::tool {
namespace {

constexpr char kHelp[] =
    "Usage: etvk-guard-pte COMMAND ...\n"
    "\n"
    "Find and repair broken prepack contracts in programs for ExecuTorch's Vulkan delegate.\n"
    "\n"
    "  check FILE... [--json] [-q]       hold programs (files, folders, patterns) against the contract\n"
    "                                    exit code: 0 all are clean, 1 there are findings, 2 there was an error\n"
    "  repair IN -o OUT [--json]         rewrite what can be rewritten, so that a stock delegate runs it\n"
    "                                    exit code: 0 repaired or already clean, 1 something remains, 2 there was an error\n"
    "  show FILE [--json]                show methods, delegates, and each Vulkan graph's ops and values\n"
    "                                    exit code: 0, or 2 if there was an error\n"
    "\n"
    "  --json         print JSON\n"
    "  -q, --quiet    print errors only\n"
    "  -h, --help     print this\n"
    "  --version      print the version\n";

struct Command {
  const char* name;
  Syntax syntax;
  int (*run)(const Options&, Output*);
};

constexpr Command kCommands[] = {
    {"check", {false, true, 1, SIZE_MAX}, check_files},
    {"repair", {true, false, 1, 1}, repair_file},
    {"show", {false, false, 1, 1}, show_file},
};

int usage_error(const std::string& problem) {
  Output(STDERR_FILENO).write("etvk-guard-pte: " + plain(path_text(problem)) + "\nTry 'etvk-guard-pte --help'.\n");
  return kFailed;
}

int run_command(const Command& command, const std::vector<std::string>& arguments, Output* out) {
  Options options;
  const std::string problem = parse(arguments, command.syntax, &options);
  if (!problem.empty()) {
    return usage_error(problem);
  }
  if (options.help) {
    out->write(kHelp);
    return kClean;
  }
  return command.run(options, out);
}

int run(const std::vector<std::string>& arguments, Output* out) {
  const std::string first = arguments.empty() ? "" : arguments[0];
  if (first == "--version") {
    out->write("etvk-guard-pte " ETVK_GUARD_VERSION "\n");
    return kClean;
  }
  if (first.empty() || first == "--help" || first == "-h") {
    out->write(kHelp);
    return arguments.empty() ? kFailed : kClean;
  }
  for (const Command& command : kCommands) {
    if (first == command.name) {
      return run_command(command, {arguments.begin() + 1, arguments.end()}, out);
    }
  }
  return usage_error((first[0] == '-' ? "there is no option " : "there is no command ") + first);
}

}  // namespace
}  // namespace etvk_guard::tool

int main(int argc, char** argv) {
  using namespace etvk_guard::tool;
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is a failed write
  Output out(STDOUT_FILENO);
  const int code = run(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc), &out);
  if (out.flush()) {
    return code;
  }
  if (out.failure() != EPIPE) {
    Output(STDERR_FILENO)
        .write(std::string("etvk-guard-pte: cannot write the output: ") + std::strerror(out.failure()) + "\n");
  }
  return kFailed;
}
