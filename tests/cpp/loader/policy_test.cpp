// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a file under each policy, and what is said about it.
#include "fake_loader.h"
#include "repair_run.h"

namespace etvk_guard::testing {
namespace {

struct Told {
  int times = 0;
  LoadOutcome outcome = LoadOutcome::kFailed;
  size_t repaired = 0, remaining = 0;
  ErrorCode error = ErrorCode::kNone;
};

GuardedLoaderOptions telling(LoadPolicy policy, Told* told) {
  GuardedLoaderOptions options;
  options.policy = policy;
  options.context = told;
  options.on_checked = [](void* context, const LoadReport& report) {
    auto* into = static_cast<Told*>(context);
    ++into->times;
    into->outcome = report.outcome;
    into->repaired = report.repaired.size();
    into->remaining = report.remaining.size();
    into->error = report.error.code;
  };
  return options;
}

// A convolution with a weight at run time: found, and not repaired. `norms` faulty norms before it.
FileBytes convolution_file(bool norm) {
  GraphBuilder graph;
  const int x = graph.input({7, 4});
  const int w = graph.input({4, 4});
  int from = x;
  if (norm) {
    from = graph.rms_norm(x, graph.input({4}), {7, 4});
  }
  const int out = graph.tensor({7, 4});
  const int none = graph.null();
  graph.op("aten.convolution.default", {from, w, none, none, none, none, none, none, none, out});
  graph.outputs({static_cast<uint32_t>(out)});
  ProgramSpec spec;
  const size_t arguments = graph.call_size();
  spec.segments = {blob_of(graph.finish())};
  MethodSpec forward = method("forward", {in_segment(0)});
  forward.call_args.assign(arguments, 0);
  forward.call_args.back() = 1;
  spec.methods = {forward};
  return spec.build();
}

FileBytes unknown_op_file() {
  GraphBuilder graph;
  const int x = graph.input({7, 4});
  const int out = graph.tensor({7, 4});
  graph.op("my.op.default", {x, x, out});
  graph.outputs({static_cast<uint32_t>(out)});
  ProgramSpec spec;
  spec.segments = {blob_of(graph.finish())};
  MethodSpec forward = method("forward", {in_segment(0)});
  forward.call_args = {0, 1};
  spec.methods = {forward};
  return spec.build();
}

struct Row {
  const char* name;
  LoadPolicy policy;
  RuntimeError error;
  LoadOutcome outcome;
  size_t repaired, remaining;
  enum { kRepairedFile, kItself } serves;
};

void expect_row(const Row& row, const FileBytes& file) {
  SCOPED_TRACE(row.name);
  FakeLoader fake(file);
  Told told;
  const GuardedDataLoader loader(&fake, telling(row.policy, &told));
  EXPECT_EQ(loader.check(), row.error);
  EXPECT_EQ(loader.check(), row.error);
  EXPECT_EQ(told.times, 1);
  EXPECT_EQ(told.outcome, row.outcome);
  EXPECT_EQ(told.repaired, row.repaired);
  EXPECT_EQ(told.remaining, row.remaining);
  const FileBytes expected = row.serves == Row::kRepairedFile ? repaired_file(file) : file;
  const Result<FreeableBuffer> all = loader.load(0, expected.size(), kProgramInfo);
  EXPECT_EQ(all.ok() ? RuntimeError::Ok : all.error(), row.error);
  FileBytes copy(expected.size());
  EXPECT_EQ(loader.load_into(0, copy.size(), kProgramInfo, copy.data()), row.error);
  EXPECT_EQ(loader.size().ok(), row.error == RuntimeError::Ok);
  if (row.error == RuntimeError::Ok) {
    EXPECT_EQ(copy, expected);
    EXPECT_EQ(bytes_of(*all), expected);
  }
}

constexpr RuntimeError kOk = RuntimeError::Ok;
constexpr RuntimeError kNo = RuntimeError::DelegateInvalidCompatibility;

TEST(Policy, AFaultThatCanBeRepaired) {
  const Row rows[] = {{"repair", LoadPolicy::kRepair, kOk, LoadOutcome::kRepaired, 1, 0, Row::kRepairedFile},
                      {"repair or refuse", LoadPolicy::kRepairOrRefuse, kOk, LoadOutcome::kRepaired, 1, 0, Row::kRepairedFile},
                      {"refuse", LoadPolicy::kRefuse, kNo, LoadOutcome::kRefused, 0, 1, Row::kItself},
                      {"report", LoadPolicy::kReport, kOk, LoadOutcome::kReported, 0, 1, Row::kItself}};
  for (const Row& row : rows) {
    expect_row(row, release_file("1.5.1/gated.pte"));
  }
}

TEST(Policy, AFaultThatCannot) {
  const Row rows[] = {{"repair", LoadPolicy::kRepair, kOk, LoadOutcome::kReported, 0, 1, Row::kItself},
                      {"repair or refuse", LoadPolicy::kRepairOrRefuse, kNo, LoadOutcome::kRefused, 0, 1, Row::kItself},
                      {"refuse", LoadPolicy::kRefuse, kNo, LoadOutcome::kRefused, 0, 1, Row::kItself},
                      {"report", LoadPolicy::kReport, kOk, LoadOutcome::kReported, 0, 1, Row::kItself}};
  for (const Row& row : rows) {
    expect_row(row, convolution_file(false));
  }
}

TEST(Policy, OneOfEach) {
  const Row rows[] = {{"repair", LoadPolicy::kRepair, kOk, LoadOutcome::kRepaired, 1, 1, Row::kRepairedFile},
                      {"repair or refuse", LoadPolicy::kRepairOrRefuse, kNo, LoadOutcome::kRefused, 1, 1, Row::kRepairedFile},
                      {"refuse", LoadPolicy::kRefuse, kNo, LoadOutcome::kRefused, 0, 2, Row::kItself},
                      {"report", LoadPolicy::kReport, kOk, LoadOutcome::kReported, 0, 2, Row::kItself}};
  for (const Row& row : rows) {
    expect_row(row, convolution_file(true));
  }
}

TEST(Policy, InformationRefusesNothing) {
  for (const LoadPolicy policy :
       {LoadPolicy::kRepair, LoadPolicy::kRepairOrRefuse, LoadPolicy::kRefuse, LoadPolicy::kReport}) {
    expect_row({"unknown op", policy, kOk, LoadOutcome::kClean, 0, 1, Row::kItself}, unknown_op_file());
  }
}

TEST(Policy, BadBytes) {
  const FileBytes good = release_file("1.5.1/gated.pte");
  FileBytes other_schema = good;
  other_schema[7] = '3';  // ET13
  FileBytes broken = good;
  std::fill(broken.begin() + 64, broken.begin() + 400, uint8_t{0xff});
  const struct {
    const char* name;
    FileBytes bytes;
    RuntimeError error;
    ErrorCode code;
    bool unknown;  // no program at all
  } rows[] = {{"empty", {}, RuntimeError::InvalidProgram, ErrorCode::kEmptyFile, true},
              {"7 bytes", slice(good, 0, 7), RuntimeError::InvalidProgram, ErrorCode::kNotAPte, true},
              {"text", FileBytes(100, 'x'), RuntimeError::InvalidProgram, ErrorCode::kNotAPte, true},
              {"cut", slice(good, 0, good.size() / 2), RuntimeError::InvalidProgram, ErrorCode::kTruncated, false},
              {"broken", broken, RuntimeError::InvalidProgram, ErrorCode::kBadProgramFlatbuffer, false},
              {"newer", other_schema, RuntimeError::NotSupported, ErrorCode::kUnsupportedSchema, false}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    FakeLoader fake(row.bytes);
    Told told;
    const GuardedDataLoader loader(&fake, telling(LoadPolicy::kRepair, &told));
    EXPECT_EQ(loader.load(0, 4, kProgramInfo).error(), row.error);
    EXPECT_EQ(told.outcome, LoadOutcome::kFailed);
    EXPECT_EQ(told.error, row.code);
    const GuardedDataLoader report(&fake, telling(LoadPolicy::kReport, &told));  // hands on what it cannot read
    EXPECT_EQ(report.check(), RuntimeError::Ok);
    EXPECT_EQ(told.outcome, LoadOutcome::kReported);
    EXPECT_EQ(told.error, row.code);
    EXPECT_EQ(*report.size(), row.bytes.size());
    GuardedLoaderOptions options = telling(LoadPolicy::kRepair, &told);
    options.pass_unknown = true;
    const GuardedDataLoader passing(&fake, options);
    EXPECT_EQ(passing.check(), row.unknown ? RuntimeError::Ok : row.error);
    EXPECT_EQ(told.outcome, row.unknown ? LoadOutcome::kPassedOn : LoadOutcome::kFailed);
    EXPECT_EQ(fake.alive, 0);
  }
}

TEST(Policy, EveryPrefixOfAFileFails) {
  const FileBytes file = release_file("1.3.1/one_plus.pte");
  FakeLoader fake(file);
  for (size_t size = file.size() - 1; size + 1 > 0; size -= std::min<size_t>(size + 1, 61)) {
    fake.truncate(size);
    const GuardedDataLoader loader(&fake);
    EXPECT_NE(loader.check(), RuntimeError::Ok) << size;
    EXPECT_FALSE(loader.load(0, 1, kProgramInfo).ok()) << size;
    if (size == 0) {
      break;
    }
  }
}

TEST(Policy, TheCallbackMayUseTheLoader) {
  FakeLoader fake(release_file("1.5.1/gated.pte"));
  static size_t seen;
  static const GuardedDataLoader* self;
  GuardedLoaderOptions options;
  options.on_checked = [](void*, const LoadReport& report) {
    seen = *self->size() + report.repaired.size();
    EXPECT_EQ(self->report(), &report);
  };
  const GuardedDataLoader loader(&fake, options);
  self = &loader;
  ASSERT_EQ(loader.check(), RuntimeError::Ok);
  EXPECT_EQ(seen, repaired_file(fake.bytes()).size() + 1);
}

}  // namespace
}  // namespace etvk_guard::testing
