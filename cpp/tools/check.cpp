// SPDX-License-Identifier: Apache-2.0
#include <etvk_guard/pte.h>

#include <algorithm>

#include "commands.h"
#include "files.h"
#include "json.h"
#include "report.h"
#include "sha256.h"
#include "text.h"

namespace etvk_guard::tool {
namespace {

// A file that was checked. The report points into the program, and that into the reader.
struct Checked {
  FileReader reader;
  Program program;
  Report report;
  std::string error;  // one line; empty: there is a report
};

void check_one(const Item& item, Checked* checked) {
  if (!item.problem.empty()) {
    checked->error = plain(path_text(item.path) + ": " + item.problem);
    return;
  }
  Error error = FileReader::open(item.path.c_str(), &checked->reader);
  if (!error) {
    error = Program::open(checked->reader, &checked->program);
  }
  if (!error) {
    error = check(checked->program, &checked->report);
  }
  if (error) {
    checked->error = error_line(item.path, error);
  }
}

void write_delegate(const DelegateSummary& delegate, JsonWriter* json) {
  json->begin_object();
  json->key("method");
  json->string(file_text(delegate.method));
  json->key("delegate");
  json->integer(delegate.delegate);
  json->key("ops");
  json->begin_array();
  for (const std::string_view op : delegate.ops) {
    json->string(file_text(op));
  }
  json->end_array();
  json->key("sha256");
  if (delegate.graph == nullptr) {
    json->null();
  } else {
    json->string(sha256(delegate.graph, delegate.graph_size));
  }
  json->end_object();
}

void write_file_json(const Item& item, const Checked& checked, JsonWriter* json) {
  json->begin_object();
  json->key("file");
  json->string(path_text(item.path));
  json->key("error");
  if (checked.error.empty()) {
    json->null();
  } else {
    json->string(checked.error);
  }
  json->key("findings");
  write_findings(checked.report.findings, json);
  json->key("delegates");
  json->begin_array();
  for (const DelegateSummary& delegate : checked.report.delegates) {
    write_delegate(delegate, json);
  }
  json->end_array();
  json->end_object();
}

std::string headline(const std::string& path, const Report& report) {
  size_t graphs = 0;
  size_t ops = 0;
  for (const DelegateSummary& delegate : report.delegates) {
    graphs += delegate.graph != nullptr;
    ops += delegate.ops.size();
  }
  const std::string scope = " (" + count_text(graphs, "Vulkan delegate") + ", " + count_text(ops, "op") + ")\n";
  const std::string name = plain(path_text(path)) + ": ";
  if (report.clean()) {
    return name + "clean" + scope;
  }
  const auto fixable = std::count_if(report.findings.begin(), report.findings.end(), [](const Finding& f) { return f.fixable; });
  return name + count_text(report.findings.size(), "finding") + ", " + std::to_string(fixable) + " fixable" + scope;
}

void print(const Item& item, const Checked& checked, bool quiet, Output* out) {
  if (!checked.error.empty()) {
    fail(checked.error);
  } else if (!quiet) {
    out->write(headline(item.path, checked.report));
    print_findings(checked.report.findings, out);
  }
}

// What is known of all files so far.
struct Totals {
  int code = kClean;
  bool fixable = false;
  void add(const Checked& checked) {
    const Report& report = checked.report;
    code = std::max(code, !checked.error.empty() ? kFailed : report.clean() ? kClean : kFindings);
    fixable |= std::any_of(report.findings.begin(), report.findings.end(), [](const Finding& f) { return f.fixable; });
  }
};

}  // namespace

int check_files(const Options& options, Output* out) {
  Totals totals;
  JsonWriter json(out);
  if (options.json) {
    json.begin_object();
    json.key("files");
    json.begin_array();
  }
  for (const Item& item : expand(options.names)) {
    Checked checked;
    check_one(item, &checked);
    totals.add(checked);
    if (options.json) {
      write_file_json(item, checked, &json);
    } else {
      print(item, checked, options.quiet, out);
    }
  }
  if (options.json) {
    json.end_array();
    json.end_object();
    json.finish();
  } else if (totals.fixable && !options.quiet) {
    out->write("`etvk-guard-pte repair FILE -o OUT` writes a program that stock delegates run.\n");
  }
  return totals.code;
}

}  // namespace etvk_guard::tool
