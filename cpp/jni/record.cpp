// SPDX-License-Identifier: Apache-2.0
#include "record.h"

#include "utf8.h"

namespace etvk_guard::jni {
namespace {

constexpr bool kDone = true;

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

}  // namespace

void Record::big_endian(uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    bytes_ += static_cast<char>(static_cast<uint8_t>(value >> shift));
  }
}

void Record::text(std::string_view bytes) {
  const std::string decoded = tool::file_text(bytes);
  number32(static_cast<int32_t>(decoded.size()));
  bytes_ += decoded;
}

void Record::text_or_none(std::string_view bytes) {
  if (bytes.empty()) {
    number32(-1);
  } else {
    text(bytes);
  }
}

void Record::where(const Where& where) {
  text_or_none(where.method);
  number32(where.delegate);
  number32(where.op_index);
  text_or_none(where.op);
  text_or_none(where.argument);
  number64(where.offset);  // kNoOffset is -1 in Java
}

void Record::findings(const std::vector<Finding>& findings) {
  number32(static_cast<int32_t>(findings.size()));
  for (const Finding& finding : findings) {
    const FindingInfo* info = find_finding(finding.code);  // every code is in the table that it comes from
    text(info->code);
    text(info->name);
    text(severity_name(info->severity));
    where(finding.where);
    text(finding.message);
    text(stock_name(info->stock));
    flag(finding.fixable);
  }
}

std::string error_record(const Error& error, bool of_output) {
  const ErrorInfo* info = find_error(error.code);
  if (info == nullptr) {
    info = find_error(ErrorCode::kInternal);
  }
  Record record;
  record.flag(!kDone);
  record.flag(of_output);
  record.text(info->code);
  record.text(info->name);
  record.text(error.message);
  record.text(info->advice);
  record.where(error.where);
  return record.bytes();
}

std::string report_record(const Report& report) {
  Record record;
  record.flag(kDone);
  record.findings(report.findings);
  record.number32(static_cast<int32_t>(report.delegates.size()));
  for (const DelegateSummary& delegate : report.delegates) {
    record.text(delegate.method);
    record.number32(delegate.delegate);
    record.text(delegate.backend);
    record.number32(static_cast<int32_t>(delegate.ops.size()));
    for (const std::string_view op : delegate.ops) {
      record.text(op);
    }
  }
  return record.bytes();
}

std::string repair_record(const Repair& repair) {
  Record record;
  record.flag(kDone);
  record.flag(repair.changed);
  record.findings(repair.repaired);
  record.findings(repair.remaining);
  record.number64(repair.added_activation_bytes);
  return record.bytes();
}

}  // namespace etvk_guard::jni
