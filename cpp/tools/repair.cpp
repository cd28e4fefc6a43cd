// SPDX-License-Identifier: Apache-2.0
#include <etvk_guard/pte.h>

#include "commands.h"
#include "json.h"
#include "report.h"
#include "text.h"

namespace etvk_guard::tool {
namespace {

// Opens, repairs and writes. Returns an empty text, or the line that says what went wrong.
std::string repair_to(const std::string& from, const std::string& to, Repair* done) {
  FileReader reader;
  Program program;
  Error error = FileReader::open(from.c_str(), &reader);
  if (!error) {
    error = Program::open(reader, &program);
  }
  if (!error) {
    error = repair(program, done);
  }
  if (error) {
    return error_line(from, error);
  }
  error = write_file(done->overlay, to.c_str(), from.c_str());
  return error ? error_line(to.empty() ? from : to, error) : std::string();
}

void write_text(const char* key, const std::string& text, bool there, JsonWriter* json) {
  json->key(key);
  if (there) {
    json->string(text);
  } else {
    json->null();
  }
}

void write_json(const Options& options, const std::string& problem, const Repair& done, Output* out) {
  const bool failed = !problem.empty();
  JsonWriter json(out);
  json.begin_object();
  write_text("file", path_text(options.names[0]), true, &json);
  write_text("error", problem, failed, &json);
  write_text("output", path_text(options.output), !failed, &json);
  json.key("changed");
  json.boolean(!failed && done.changed);
  json.key("repaired");
  write_findings(failed ? std::vector<Finding>() : done.repaired, &json);
  json.key("remaining");
  write_findings(failed ? std::vector<Finding>() : done.remaining, &json);
  json.key("added_activation_bytes");
  json.natural(failed ? 0 : done.added_activation_bytes);
  json.end_object();
  json.finish();
}

void print(const Options& options, const Repair& done, Output* out) {
  const char* left = done.remaining.empty() ? "nothing to repair" : "nothing that can be repaired";
  const std::string what = done.changed ? count_text(done.repaired.size(), "finding") + " repaired"
                                        : std::string(left) + ", copied as it is";
  out->write(plain(path_text(options.names[0])) + " -> " + plain(path_text(options.output)) + ": " + what + "\n");
  print_findings(done.repaired, out);
  if (done.changed) {
    out->write("activation memory grows by at most " + thousands(done.added_activation_bytes) + " bytes\n");
  }
  if (!done.remaining.empty()) {
    const char* verb = done.remaining.size() == 1 ? " remains:\n" : " remain:\n";
    out->write(count_text(done.remaining.size(), "finding") + verb);
  }
  print_findings(done.remaining, out);
}

}  // namespace

int repair_file(const Options& options, Output* out) {
  Repair done;  // of its overlay nothing is asked once the file is written
  const std::string problem = repair_to(options.names[0], options.output, &done);
  if (options.json) {
    write_json(options, problem, done, out);
  } else if (problem.empty()) {
    print(options, done, out);
  } else {
    fail(problem);
  }
  return !problem.empty() ? kFailed : done.remaining.empty() ? kClean : kFindings;
}

}  // namespace etvk_guard::tool
