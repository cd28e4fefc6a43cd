// SPDX-License-Identifier: Apache-2.0
#include "exercise.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "allocations.h"
#include "builder.h"
#include "program.h"

namespace etvk_guard::testing {
namespace {

constexpr uint64_t kReadLimit = 4u << 20;  // bytes of a repaired program that are read back

// Gives no views: what is looked at is a copy, whose ends the sanitizer watches.
class CopyingReader final : public Reader {
 public:
  CopyingReader(const uint8_t* data, size_t size) : bytes_(data, size) {}
  uint64_t size() const override { return bytes_.size(); }
  bool read(uint64_t offset, void* into, size_t count) const override { return bytes_.read(offset, into, count); }

 private:
  BytesReader bytes_;
};

// Codes that say something of the bytes, and not of the machine or of us.
bool is_files_fault(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNone:
    case ErrorCode::kIoError:
    case ErrorCode::kNotAFile:
    case ErrorCode::kOutputError:
    case ErrorCode::kOutputIsInput:
    case ErrorCode::kRecheckFailed:
    case ErrorCode::kOutOfMemory:
    case ErrorCode::kInternal:
      return false;
    default:
      return true;
  }
}

void expect_files_fault(const Error& error, uint64_t size) {
  if (!is_files_fault(error.code)) {
    std::fprintf(stderr, "%s\n", error.message.c_str());
  }
  ETVK_GUARD_PROMISE(is_files_fault(error.code));
  ETVK_GUARD_PROMISE(!error.message.empty());
  ETVK_GUARD_PROMISE(error.where.offset == kNoOffset || error.where.offset <= size);
}

bool same(const Where& a, const Where& b) {
  return a.method == b.method && a.delegate == b.delegate && a.op_index == b.op_index && a.op == b.op &&
         a.argument == b.argument && a.offset == b.offset;
}

void expect_same(const Error& a, const Error& b) {
  ETVK_GUARD_PROMISE(a.code == b.code && a.message == b.message && same(a.where, b.where));
}

void expect_same(const std::vector<Finding>& a, const std::vector<Finding>& b) {
  ETVK_GUARD_PROMISE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ETVK_GUARD_PROMISE(a[i].code == b[i].code && a[i].message == b[i].message && a[i].fixable == b[i].fixable);
    ETVK_GUARD_PROMISE(same(a[i].where, b[i].where));
  }
}

// A finding is at a place that the program has.
void expect_place(const ProgramImpl& impl, const Where& where) {
  const auto at = std::find_if(impl.delegates.begin(), impl.delegates.end(), [&](const DelegateView& view) {
    return impl.plan_name(view.id.plan) == where.method && static_cast<int32_t>(view.id.index) == where.delegate;
  });
  ETVK_GUARD_PROMISE(at != impl.delegates.end() && at->blob >= 0);
  const GraphView& graph = impl.blobs[static_cast<size_t>(at->blob)].graph;
  ETVK_GUARD_PROMISE(where.op_index < static_cast<int64_t>(graph.op_count()));
  ETVK_GUARD_PROMISE(where.offset < impl.reader->size());
}

void expect_report(const Program& program, const Report& report) {
  const ProgramImpl& impl = program.impl();
  ETVK_GUARD_PROMISE(report.delegates.size() == impl.delegates.size());
  const size_t step = 1 + report.findings.size() / 256;  // of many, some
  for (size_t i = 0; i < report.findings.size(); i += step) {
    ETVK_GUARD_PROMISE(!report.findings[i].message.empty());
    expect_place(impl, report.findings[i].where);
  }
}

// False: the file has a fault.
bool open_and_check(const Reader& reader, Program* program, Report* report) {
  if (const Error error = Program::open(reader, program)) {
    expect_files_fault(error, reader.size());
    return false;
  }
  ETVK_GUARD_PROMISE(!check(*program, report));
  return true;
}

// Segments that are no repaired blob have the bytes that they had.
void expect_rest_untouched(const ProgramImpl& before, const ProgramImpl& after) {
  ETVK_GUARD_PROMISE(after.segments.size() == before.segments.size());
  ETVK_GUARD_PROMISE(after.delegates.size() == before.delegates.size());
  for (size_t i = 0; i < before.segments.size(); ++i) {
    const Range& range = before.segments[i];
    if (std::any_of(before.blobs.begin(), before.blobs.end(), [&](const Blob& blob) { return blob.range == range; })) {
      continue;
    }
    ETVK_GUARD_PROMISE(after.segments[i].size == range.size);
    Buffer old(static_cast<size_t>(range.size));
    Buffer now(old.size());
    ETVK_GUARD_PROMISE(before.reader->read(range.offset, old.data(), old.size()));
    ETVK_GUARD_PROMISE(after.reader->read(after.segments[i].offset, now.data(), now.size()));
    ETVK_GUARD_PROMISE(old == now);
  }
}

// The repaired program has the findings that remain, and repairs to itself.
void expect_repaired(const Program& before, const Repair& made, const Reader& reader) {
  Program program;
  Report report;
  ETVK_GUARD_PROMISE(open_and_check(reader, &program, &report));
  ETVK_GUARD_PROMISE(report.findings.size() == made.remaining.size());
  for (size_t i = 0; i < report.findings.size(); ++i) {
    ETVK_GUARD_PROMISE(report.findings[i].code == made.remaining[i].code);
  }
  expect_rest_untouched(before.impl(), program.impl());
  Repair again;
  ETVK_GUARD_PROMISE(!repair(program, &again));
  ETVK_GUARD_PROMISE(!again.changed && again.overlay.size() == reader.size());
}

}  // namespace

void broken(const char* promise, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: broken promise: %s\n", file, line, promise);
  std::abort();
}

void walk(const Program& program) {
  const ProgramImpl& impl = program.impl();
  Range range;
  for (const Blob& blob : impl.blobs) {
    const GraphView& graph = blob.graph;
    for (uint32_t id = 0; id < graph.value_count(); ++id) {
      numel(graph.describe(static_cast<int32_t>(id)).dims);
      const vk::VkTensor* tensor = graph.tensor(static_cast<int32_t>(id));
      if (tensor != nullptr && tensor->constant_id() >= 0 &&
          impl.constant_range(blob, static_cast<uint32_t>(tensor->constant_id()), &range)) {
        ETVK_GUARD_PROMISE(range.end() <= program.reader().size());
      }
    }
  }
  for (uint32_t i = 0; i < 4; ++i) {
    if (impl.plan_constant_range(i, 4, &range)) {
      ETVK_GUARD_PROMISE(range.end() <= program.reader().size());
    }
  }
  find_unknown_field(reinterpret_cast<const flatbuffers::Table*>(impl.root), et::ProgramTypeTable(), "Program");
}

void exercise_check(const uint8_t* data, size_t size) {
  const BytesReader in_place(data, size);
  const CopyingReader copied(data, size);
  Program programs[2];
  const Allocations allocations;
  const Error error = Program::open(in_place, &programs[0]);
  ETVK_GUARD_PROMISE(allocations.peak_bytes() <= Allocations::allowed(size));
  expect_same(error, Program::open(copied, &programs[1]));
  if (error) {
    expect_files_fault(error, size);
    return;
  }
  walk(programs[0]);
  walk(programs[1]);
  Report reports[2];
  ETVK_GUARD_PROMISE(!check(programs[0], &reports[0]));
  ETVK_GUARD_PROMISE(!check(programs[1], &reports[1]));
  expect_report(programs[0], reports[0]);
  expect_same(reports[0].findings, reports[1].findings);
}

void exercise_repair(const uint8_t* data, size_t size) {
  const CopyingReader reader(data, size);
  Program program;
  Report report;
  Repair made;
  const Allocations allocations;
  if (!open_and_check(reader, &program, &report)) {
    return;
  }
  const Error error = repair(program, &made);
  ETVK_GUARD_PROMISE(allocations.peak_bytes() <= Allocations::allowed(size));
  if (error) {
    expect_files_fault(error, size);
    return;
  }
  ETVK_GUARD_PROMISE(made.changed == !made.repaired.empty());
  ETVK_GUARD_PROMISE(made.repaired.size() + made.remaining.size() == report.findings.size());
  if (!made.changed) {
    ETVK_GUARD_PROMISE(made.overlay.size() == size);
    return;
  }
  expect_repaired(program, made, made.overlay);
  if (made.overlay.size() <= kReadLimit) {
    Buffer bytes(static_cast<size_t>(made.overlay.size()));
    ETVK_GUARD_PROMISE(made.overlay.read(0, bytes.data(), bytes.size()));
    expect_repaired(program, made, BytesReader(bytes.data(), bytes.size()));
  }
}

void exercise_blob(const uint8_t* data, size_t size) {
  ProgramSpec spec;
  spec.segments = {Buffer(data, data + size), Buffer(64, 1)};
  spec.named = {{"w", 1}};
  spec.methods.resize(2);
  spec.methods[1].name = "decode";
  for (MethodSpec& method : spec.methods) {
    method.delegates.resize(1);
  }
  const Buffer file = spec.build();
  exercise_repair(file.data(), file.size());
}

}  // namespace etvk_guard::testing
