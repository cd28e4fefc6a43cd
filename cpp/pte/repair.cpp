// SPDX-License-Identifier: Apache-2.0
//
// repair(): findings -> plans -> rewritten graphs -> an overlay, which is opened and checked again.
#include <algorithm>
#include <map>
#include <utility>

#include "context.h"
#include "error.h"
#include "fix.h"
#include "program.h"
#include "rewrite.h"
#include "scratch.h"
#include "splice.h"

namespace etvk_guard {
namespace {

// The sites of one blob.
struct BlobFixes {
  std::string blocked;                   // why nothing of it can be rewritten, or ""
  GraphContext context;                  // of all delegates that use it
  std::vector<Fix> fixes;                // in order of op
  std::map<uint32_t, std::string> left;  // op -> why it stays, "" if it is fixed
};

constexpr uint32_t kMaxNormResults = 3;  // of a layer norm: result, mean, reciprocal standard deviation

class Repairer {
 public:
  explicit Repairer(const Program& program) : program_(program), impl_(program.impl()), contexts_(impl_) {}

  Error run(Repair* into) {
    Report report;
    if (Error error = check(program_, &report)) {
      return error;
    }
    Repair repair;
    plan(report);
    std::vector<NewBlob> blobs;
    if (Error error = rewrite(&blobs, &repair.added_activation_bytes)) {
      return error;
    }
    repair.changed = !blobs.empty();
    if (!repair.changed) {
      repair.overlay = Overlay(program_.reader());
      repair.overlay.append_original(0, program_.reader().size());
    } else if (Error error = splice(impl_, blobs, &repair.overlay)) {
      return error;
    }
    sort_findings(std::move(report.findings), &repair);
    if (repair.changed) {
      if (Error error = recheck(repair)) {
        return error;
      }
    }
    *into = std::move(repair);
    return {};
  }

 private:
  // The findings come delegate by delegate, op by op.
  void plan(const Report& report) {
    auto delegate = impl_.delegates.begin();
    for (const Finding& finding : report.findings) {
      delegate = std::find_if(delegate, impl_.delegates.end(), [&](const DelegateView& view) {
        return static_cast<int32_t>(view.id.index) == finding.where.delegate &&
               impl_.plan_name(view.id.plan) == finding.where.method;
      });
      blobs_.push_back(delegate == impl_.delegates.end() ? -1 : delegate->blob);
      if (blobs_.back() < 0 || !finding.fixable || finding.where.op_index < 0) {
        continue;
      }
      BlobFixes& fixes = fixes_of(static_cast<uint32_t>(delegate->blob));
      const auto op_index = static_cast<uint32_t>(finding.where.op_index);
      if (fixes.left.count(op_index) == 0) {
        fixes.left[op_index] = plan_site(impl_.blobs[static_cast<size_t>(delegate->blob)].graph, op_index, &fixes);
      }
    }
    for (auto& [blob, fixes] : fixes_) {
      std::sort(fixes.fixes.begin(), fixes.fixes.end(),
                [](const Fix& a, const Fix& b) { return a.op_index < b.op_index; });
    }
  }

  BlobFixes& fixes_of(uint32_t index) {
    const auto found = fixes_.emplace(index, BlobFixes());
    BlobFixes& fixes = found.first->second;
    if (!found.second) {
      return fixes;
    }
    if (const std::string other = other_user(impl_, impl_.blobs[index]); !other.empty()) {
      fixes.blocked = "its blob is also used as " + other;
    }
    bool first = true;
    for (const DelegateView& user : impl_.delegates) {
      if (user.blob != static_cast<int32_t>(index)) {
        continue;
      }
      GraphContext context = contexts_.of(user);
      context.dynamic = context.dynamic || (!first && fixes.context.dynamic);
      if (!first && (context.storage != fixes.context.storage || context.layout != fixes.context.layout)) {
        fixes.blocked = "its blob is shared by delegates with different storage overrides";
      }
      fixes.context = context;
      first = false;
    }
    return fixes;
  }

  // Appends the fix, or says why there is none.
  static std::string plan_site(const GraphView& graph, uint32_t op_index, BlobFixes* fixes) {
    if (!fixes->blocked.empty()) {
      return fixes->blocked;
    }
    // Each op gets a list of its own: many that share a long one must not come to more than the file has.
    const bool has_results = op_index < graph.op_count() && graph.arg_count(op_index) != 0;
    const auto* results = has_results ? graph.value_list(graph.arg(op_index, graph.arg_count(op_index) - 1)) : nullptr;
    if (results != nullptr && results->size() > kMaxNormResults) {
      return format("its result is a list of %u values", results->size());
    }
    Fix fix = plan_fix(graph, op_index, fixes->context);
    if (!fix.possible()) {
      return fix.kind == FixKind::kNone ? "no rewrite is known for it" : "no legal form is known: " + fix.refusal;
    }
    fixes->fixes.push_back(std::move(fix));
    return {};
  }

  Error rewrite(std::vector<NewBlob>* into, uint64_t* added_activation_bytes) {
    for (const auto& [index, fixes] : fixes_) {
      if (fixes.fixes.empty()) {
        continue;
      }
      const Blob& blob = impl_.blobs[index];
      NewBlob made;
      made.blob = index;
      if (Error error = rewrite_graph(blob.graph, fixes.fixes, blob.range.end() - blob.bytes.offset, &made.graph)) {
        return error;
      }
      for (size_t i = 0; i < blob.users.size(); ++i) {
        *added_activation_bytes = saturated_add(*added_activation_bytes, made.graph.added_activation_bytes);
      }
      into->push_back(std::move(made));
    }
    return {};
  }

  // Why a finding stays; "": it is repaired; nullptr: it never was a case for repair.
  const std::string* why_left(size_t index, const Finding& finding) const {
    const auto fixes = fixes_.find(static_cast<uint32_t>(blobs_[index]));
    if (blobs_[index] < 0 || fixes == fixes_.end() || finding.where.op_index < 0 || !finding.fixable) {
      return nullptr;
    }
    const auto site = fixes->second.left.find(static_cast<uint32_t>(finding.where.op_index));
    return site == fixes->second.left.end() ? nullptr : &site->second;
  }

  void sort_findings(std::vector<Finding> findings, Repair* repair) const {
    for (size_t i = 0; i < findings.size(); ++i) {
      Finding& finding = findings[i];
      const std::string* why = why_left(i, finding);
      if (why != nullptr && why->empty()) {
        repair->repaired.push_back(std::move(finding));
        continue;
      }
      if (why != nullptr) {
        finding.message += "; repair leaves it: " + *why;
        finding.fixable = false;
      }
      repair->remaining.push_back(std::move(finding));
    }
  }

  // Nothing is left but what remains, in the same order.
  static Error recheck(const Repair& repair) {
    Program program;
    Report report;
    Error error = Program::open(repair.overlay, &program);
    if (!error) {
      error = check(program, &report);
    }
    if (error.code == ErrorCode::kIoError || error.code == ErrorCode::kOutOfMemory) {
      return error;
    }
    if (error) {
      Error failed = make_error(ErrorCode::kRecheckFailed, error.where.offset, "the repaired program cannot be opened: %s",
                                error.message.c_str());
      failed.where = std::move(error.where);
      return failed;
    }
    const auto same = [](const Finding& a, const Finding& b) {
      return a.code == b.code && a.where.method == b.where.method && a.where.delegate == b.where.delegate &&
             a.where.op == b.where.op && a.where.argument == b.where.argument;
    };
    const auto [found, expected] =
        std::mismatch(report.findings.begin(), report.findings.end(), repair.remaining.begin(), repair.remaining.end(), same);
    if (found == report.findings.end() && expected == repair.remaining.end()) {
      return {};
    }
    const Finding& odd = found == report.findings.end() ? *expected : *found;
    Error failed = make_error(ErrorCode::kRecheckFailed, odd.where.offset,
                              "the repaired program's findings are not those that should remain: %s", odd.message.c_str());
    failed.where = odd.where;
    return failed;
  }

  const Program& program_;
  const ProgramImpl& impl_;
  const GraphContexts contexts_;
  std::vector<int32_t> blobs_;           // of each finding: index of its blob, or -1
  std::map<uint32_t, BlobFixes> fixes_;  // by index of blob
};

}  // namespace

Error repair(const Program& program, Repair* into) { return Repairer(program).run(into); }

}  // namespace etvk_guard
