// SPDX-License-Identifier: Apache-2.0
#include "checked.h"

#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace etvk_guard::loader {
namespace {

constexpr char kDataIdentifier[] = "FT01";  // of a .ptd file, at byte 4
constexpr size_t kIdentifierOffset = 4;

bool harmful(const Finding& finding) {
  const FindingInfo* info = find_finding(finding.code);
  return info == nullptr || info->severity == Severity::kError;
}

class Check {
 public:
  Check(const Wrapped& wrapped, const GuardedLoaderOptions& options, Checked* into)
      : wrapped_(wrapped), options_(options), checked_(*into), report_(into->report) {}

  void run() {
    const Result<size_t> size = wrapped_.size();
    if (!size.ok()) {
      fail(size.error(), true);
      return;
    }
    checked_.size = *size;
    const WrappedReader reader(wrapped_, *size);
    if (Error error = file(reader)) {
      failed(std::move(error), reader);
    }
  }

 private:
  static Error make_error(ErrorCode code, const char* message) {
    Error error;
    error.code = code;
    error.message = message;
    return error;
  }

  Error file(const WrappedReader& reader) {
    char head[kIdentifierOffset + 4] = {};
    if (reader.size() >= sizeof(head)) {
      if (!reader.read(0, head, sizeof(head))) {
        return make_error(ErrorCode::kIoError, "cannot read the first 8 bytes");
      }
      if (std::memcmp(head + kIdentifierOffset, kDataIdentifier, 4) == 0) {
        report_.outcome = LoadOutcome::kPassedOn;
        return {};
      }
    }
    return program(reader);
  }

  Error program(const WrappedReader& reader) {
    Program program;
    if (Error error = Program::open(reader, &program)) {
      return error;
    }
    Report report;
    if (Error error = etvk_guard::check(program, &report)) {
      return error;
    }
    const bool repairs = options_.policy == LoadPolicy::kRepair || options_.policy == LoadPolicy::kRepairOrRefuse;
    const bool fixable =
        std::any_of(report.findings.begin(), report.findings.end(), [](const Finding& finding) { return finding.fixable; });
    if (repairs && fixable) {
      if (Error error = repaired(program)) {
        return error;
      }
    } else {
      report_.remaining = std::move(report.findings);
    }
    decide();
    return {};
  }

  Error repaired(const Program& program) {
    Repair repair;
    if (Error error = etvk_guard::repair(program, &repair)) {
      return error;
    }
    if (repair.changed) {
      if (repair.overlay.size() > SIZE_MAX) {
        return make_error(ErrorCode::kTooLarge, "the repaired file is larger than this machine's address space");
      }
      checked_.overlaid = true;
      checked_.size = static_cast<size_t>(repair.overlay.size());
      checked_.overlay = std::move(repair.overlay);
    }
    report_.repaired = std::move(repair.repaired);
    report_.remaining = std::move(repair.remaining);
    report_.added_activation_bytes = repair.added_activation_bytes;
    return {};
  }

  // What becomes of a program whose findings are known.
  void decide() {
    const auto bad = std::find_if(report_.remaining.begin(), report_.remaining.end(), harmful);
    const bool refuses = options_.policy == LoadPolicy::kRefuse || options_.policy == LoadPolicy::kRepairOrRefuse;
    if (bad != report_.remaining.end() && refuses) {
      report_.outcome = LoadOutcome::kRefused;
      checked_.error = RuntimeError::DelegateInvalidCompatibility;
      ET_LOG(Error, "etvk_guard: refused: method '%s', %s: %s", bad->where.method.c_str(), bad->where.op.c_str(),
             bad->message.c_str());
    } else if (checked_.overlaid) {
      report_.outcome = LoadOutcome::kRepaired;
    } else {
      report_.outcome = bad == report_.remaining.end() ? LoadOutcome::kClean : LoadOutcome::kReported;
    }
  }

  void failed(Error error, const WrappedReader& reader) {
    const bool io = error.code == ErrorCode::kIoError;
    const bool memory = error.code == ErrorCode::kOutOfMemory;
    if ((error.code == ErrorCode::kNotAPte || error.code == ErrorCode::kEmptyFile) && options_.pass_unknown) {
      report_.outcome = LoadOutcome::kPassedOn;
      return;
    }
    report_.error = std::move(error);
    if (options_.policy == LoadPolicy::kReport && !io && !memory) {
      report_.outcome = LoadOutcome::kReported;
      return;
    }
    fail(io ? reader.failure() : memory ? RuntimeError::MemoryAllocationFailed : translated(report_.error.code), io || memory);
    ET_LOG(Error, "etvk_guard: %s", report_.error.message.c_str());
  }

  static RuntimeError translated(ErrorCode code) {
    switch (code) {
      case ErrorCode::kUnsupportedSchema:
      case ErrorCode::kSharedBlob:
      case ErrorCode::kTooLarge:
        return RuntimeError::NotSupported;
      case ErrorCode::kRecheckFailed:
      case ErrorCode::kInternal:
        return RuntimeError::Internal;
      default:
        return RuntimeError::InvalidProgram;
    }
  }

  void fail(RuntimeError error, bool again) {
    report_.outcome = LoadOutcome::kFailed;
    if (!report_.error) {
      report_.error = make_error(ErrorCode::kIoError, "the wrapped loader cannot say how large the file is");
    }
    checked_.error = error;
    checked_.again = again;
  }

  const Wrapped& wrapped_;
  const GuardedLoaderOptions& options_;
  Checked& checked_;
  LoadReport& report_;
};

}  // namespace

std::unique_ptr<const Checked> check_file(const Wrapped& wrapped, const GuardedLoaderOptions& options) {
  auto checked = std::make_unique<Checked>();
  Check(wrapped, options, checked.get()).run();
  return checked;
}

}  // namespace etvk_guard::loader
