// SPDX-License-Identifier: Apache-2.0
#include "bind.h"

namespace etvk_guard::bind {

namespace {

std::optional<int32_t> index_or_none(int32_t index) { return index < 0 ? std::nullopt : std::optional<int32_t>(index); }

std::optional<uint64_t> offset_or_none(uint64_t offset) {
  return offset == kNoOffset ? std::nullopt : std::optional<uint64_t>(offset);
}

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

FindingRow finding_row(const Finding& finding) {
  const FindingInfo* info = find_finding(finding.code);
  if (info == nullptr) {
    throw Failure({ErrorCode::kInternal, "a finding has a code that is not in the table", finding.where});
  }
  auto [method, delegate, op_index, op, argument, offset] = where_row(finding.where);
  return {info->code,
          info->name,
          severity_name(info->severity),
          std::move(method),
          delegate,
          op_index,
          std::move(op),
          std::move(argument),
          offset,
          text(finding.message),
          stock_name(info->stock),
          finding.fixable};
}

}  // namespace

py::str text(std::string_view bytes) {
  PyObject* made = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "backslashreplace");
  if (made == nullptr) {
    throw py::error_already_set();
  }
  return py::reinterpret_steal<py::str>(made);
}

std::optional<py::str> text_or_none(std::string_view bytes) {
  return bytes.empty() ? std::nullopt : std::optional<py::str>(text(bytes));
}

WhereRow where_row(const Where& where) {
  return {text_or_none(where.method), index_or_none(where.delegate), index_or_none(where.op_index),
          text_or_none(where.op),     text_or_none(where.argument),  offset_or_none(where.offset)};
}

std::vector<FindingRow> finding_rows(const std::vector<Finding>& findings) {
  std::vector<FindingRow> rows;
  rows.reserve(findings.size());
  for (const Finding& finding : findings) {
    rows.push_back(finding_row(finding));
  }
  return rows;
}

}  // namespace etvk_guard::bind
