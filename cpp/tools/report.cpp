// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <unistd.h>

#include "text.h"

namespace etvk_guard::tool {
namespace {

const char* severity_name(Severity severity) {
  switch (severity) {
    case Severity::kInfo:
      return "info";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      break;
  }
  return "error";
}

const char* stock_name(Stock stock) {
  switch (stock) {
    case Stock::kNone:
      return "none";
    case Stock::kWrong:
      return "wrong";
    case Stock::kAbort:
      break;
  }
  return "abort";
}

const char* stock_words(Stock stock) {
  switch (stock) {
    case Stock::kNone:
      return "";
    case Stock::kWrong:
      return "; a stock delegate gives silently wrong values";
    case Stock::kAbort:
      break;
  }
  return "; a stock delegate aborts while the method loads";
}

std::string place_text(const Where& where) {
  std::string place;
  const auto add = [&place](const std::string& part) { place += (place.empty() ? "" : ", ") + part; };
  if (!where.method.empty()) {
    add("method '" + file_text(where.method) + "'");
  }
  if (where.delegate >= 0) {
    add("delegate " + std::to_string(where.delegate));
  }
  if (where.op_index >= 0) {
    add("op " + std::to_string(where.op_index) + (where.op.empty() ? "" : " (" + file_text(where.op) + ")"));
  }
  if (!where.argument.empty()) {
    add("argument '" + file_text(where.argument) + "'");
  }
  if (where.offset != kNoOffset) {
    add("byte " + std::to_string(where.offset));
  }
  return place;
}

void write_text(const char* key, const std::string& text, JsonWriter* json) {
  json->key(key);
  if (text.empty()) {
    json->null();
  } else {
    json->string(file_text(text));
  }
}

void write_index(const char* key, int32_t index, JsonWriter* json) {
  json->key(key);
  if (index < 0) {
    json->null();
  } else {
    json->integer(index);
  }
}

std::string or_none(const std::string& text) { return text.empty() ? "None" : file_text(text); }
std::string or_none(int32_t index) { return index < 0 ? "None" : std::to_string(index); }

void write_finding(const Finding& finding, JsonWriter* json) {
  const FindingInfo* info = find_finding(finding.code);  // every code is in the table that it comes from
  json->begin_object();
  json->key("code");
  json->string(info->code);
  json->key("severity");
  json->string(severity_name(info->severity));
  write_text("method", finding.where.method, json);
  write_index("delegate", finding.where.delegate, json);
  write_index("op_index", finding.where.op_index, json);
  write_text("op", finding.where.op, json);
  write_text("argument", finding.where.argument, json);
  json->key("message");
  json->string(file_text(finding.message));
  json->key("stock");
  json->string(stock_name(info->stock));
  json->key("fixable");
  json->boolean(finding.fixable);
  json->end_object();
}

}  // namespace

std::string error_line(const std::string& file, const Error& error, const std::string& fallback) {
  const ErrorInfo* info = find_error(error.code);
  if (info == nullptr) {
    info = find_error(ErrorCode::kInternal);
  }
  const std::string place = place_text(error.where);
  std::string line = file.empty() ? path_text(fallback) + ": " : std::string();
  line += std::string(info->code) + " " + info->name + ": " + (file.empty() ? "" : path_text(file) + ": ");
  line += file_text(error.message) + (place.empty() ? "" : " (" + place + ")");
  line += *info->advice == '\0' ? "" : std::string(". ") + info->advice;
  return plain(line);
}

int fail(const std::string& line) {
  Output(STDERR_FILENO).write("error: " + line + "\n");
  return kFailed;
}

void write_findings(const std::vector<Finding>& findings, JsonWriter* json) {
  json->begin_array();
  for (const Finding& finding : findings) {
    write_finding(finding, json);
  }
  json->end_array();
}

void print_findings(const std::vector<Finding>& findings, Output* out) {
  for (const Finding& finding : findings) {
    const FindingInfo* info = find_finding(finding.code);
    const Where& where = finding.where;
    const std::string argument = where.argument.empty() ? "" : ", " + file_text(where.argument);
    const std::string place = or_none(where.method) + ", delegate " + or_none(where.delegate) + ", op " +
                              or_none(where.op_index) + " " + or_none(where.op) + argument;
    out->write(std::string("  ") + info->code + " " + severity_name(info->severity) + ": " + plain(place) + "\n");
    out->write("    " + plain(file_text(finding.message) + stock_words(info->stock)) + "\n");
  }
}

}  // namespace etvk_guard::tool
