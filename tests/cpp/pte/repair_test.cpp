// SPDX-License-Identifier: Apache-2.0
//
// Repaired programs: what moves, and what stays.
#include <functional>

#include "repair_run.h"

namespace etvk_guard::testing {
namespace {

TEST(Repair, CleanFileIsItself) {
  const auto made = run(clean_file());
  ASSERT_FALSE(made->error) << made->error.message;
  EXPECT_FALSE(made->repair.changed);
  EXPECT_EQ(made->repair.overlay.extents().size(), 1u);
  EXPECT_EQ(made->fixed, made->file);
}

TEST(Repair, MethodsDelegatesAndSegments) {
  ProgramSpec spec;
  spec.segments = {counting(100, 1),         blob_of(faulty_graph()), counting(33, 2),  blob_of(clean_graph()),
                   blob_of(faulty_graph(8)), counting(7, 3),          counting(1000, 4)};
  spec.named = {{"first", 0}, {"second", 2}, {"third", 5}};
  spec.constant_segment = {6, {0, 16}};
  spec.methods = {method("prefill", {in_segment(1), in_segment(5, "XnnpackBackend"), in_segment(3)}),
                  method("decode", {in_segment(4)})};
  const auto made = run(spec.build());
  ASSERT_FALSE(made->error) << made->error.message;
  EXPECT_EQ(made->repair.repaired.size(), 2u);
  EXPECT_TRUE(made->repair.remaining.empty());
  expect_rest_untouched(*made);
  const ProgramImpl& after = made->fixed_program.impl();
  EXPECT_EQ(ops(after, 0), kFixedOps);
  EXPECT_EQ(ops(after, 2), std::vector<std::string>{"aten.mul.Tensor"});
  EXPECT_EQ(ops(after, 3), kFixedOps);
  EXPECT_EQ(slice(made->fixed, after.blobs[1].range), slice(made->file, made->program.impl().blobs[1].range));  // the clean one
  EXPECT_EQ(after.header.segment_data_size, made->fixed.size() - after.header.segment_base);
}

TEST(Repair, ABlobThatMethodsShareIsRewrittenOnce) {
  ProgramSpec spec = faulty();
  const uint64_t alone = run(spec.build())->repair.added_activation_bytes;
  spec.methods.push_back(method("other", {in_segment(0), in_segment(0)}));
  const auto made = run(spec.build());
  ASSERT_FALSE(made->error) << made->error.message;
  EXPECT_EQ(made->repair.repaired.size(), 3u);
  EXPECT_EQ(made->fixed_program.impl().blobs.size(), 1u);
  EXPECT_EQ(ops(made->fixed_program.impl(), 2), kFixedOps);
  EXPECT_EQ(made->repair.added_activation_bytes, 3 * alone);
}

TEST(Repair, TwoSegmentsThatAreTheSameBytes) {
  ProgramSpec spec = faulty();
  const uint64_t size = spec.segments[0].size();
  spec.segments.push_back(counting(20, 5));
  const uint64_t second = (size + 15) / 16 * 16;
  spec.table = {{{0, size}, {second, 20}, {0, size}}};
  spec.methods.push_back(method("other", {in_segment(2)}));
  const auto made = run(spec.build());
  ASSERT_FALSE(made->error) << made->error.message;
  EXPECT_EQ(made->repair.repaired.size(), 2u);
  expect_rest_untouched(*made);
  EXPECT_EQ(made->fixed_program.impl().segments[0], made->fixed_program.impl().segments[2]);
}

TEST(Repair, InlineBlobs) {
  for (const bool header : {false, true}) {
    ProgramSpec spec;
    spec.inline_blobs = {blob_of(clean_graph()), blob_of(faulty_graph()), blob_of(faulty_graph(8))};
    spec.methods = {method("a", {in_line(0), in_line(1)}), method("b", {in_line(2), in_line(1)})};
    spec.header = header;
    if (!header) {
      spec.table = {{{0, 0}}};  // as an exporter lists the constants that there are none of
      spec.constant_segment = {0, {0}};
    }
    const auto made = run(spec.build());
    ASSERT_FALSE(made->error) << made->error.message;
    EXPECT_EQ(made->repair.repaired.size(), 3u);
    const ProgramImpl& after = made->fixed_program.impl();
    EXPECT_EQ(ops(after, 1), kFixedOps);
    EXPECT_EQ(ops(after, 2), kFixedOps);
    EXPECT_EQ(after.delegates[1].data, after.delegates[3].data);
    for (const Blob& blob : after.blobs) {
      EXPECT_EQ(blob.range.offset % 16, 0u);
    }
    EXPECT_EQ(after.header.program_size, made->fixed.size());
  }
}

TEST(Repair, InlineAndSegmentsTogether) {
  ProgramSpec spec;
  spec.inline_blobs = {blob_of(faulty_graph())};
  spec.segments = {counting(50, 1), blob_of(faulty_graph(8)), counting(60, 2)};
  spec.named = {{"first", 0}, {"last", 2}};
  spec.methods = {method("a", {in_line(0), in_segment(1)})};
  Buffer file = spec.build();
  const Buffer tail{1, 2, 3};
  file.insert(file.end(), tail.begin(), tail.end());
  const auto made = run(file);
  ASSERT_FALSE(made->error) << made->error.message;
  EXPECT_EQ(made->repair.repaired.size(), 2u);
  expect_rest_untouched(*made);
  EXPECT_EQ(Buffer(made->fixed.end() - 3, made->fixed.end()), tail);
  EXPECT_GE(made->fixed_program.impl().header.segment_base, made->fixed_program.impl().header.program_size);
}

TEST(Repair, TheBlobsOwnConstantsStayWhereTheyAre) {
  for (const bool stated : {true, false}) {  // whether the header says how large the bytes region is
    GraphBuilder graph;
    const int x = graph.input({7, 4});
    const int w = graph.tensor({7, 4}, graph.add_bytes(16, 7 * 4 * 4, nullptr));
    graph.outputs({static_cast<uint32_t>(graph.rms_norm(x, w, {7, 4}))});
    BlobSpec blob;
    blob.graph = graph.finish();
    blob.bytes = counting(16 + 7 * 4 * 4 + 5, 9);
    if (!stated) {
      blob.bytes_size = 0;
    }
    ProgramSpec spec = faulty();
    spec.segments = {blob.build()};
    spec.methods[0].call_args = {0, 1};
    const auto made = run(spec.build());
    ASSERT_FALSE(made->error) << made->error.message;
    const Blob& before = made->program.impl().blobs[0];
    const Blob& after = made->fixed_program.impl().blobs[0];
    const Buffer bytes = slice(made->fixed, after.bytes);
    EXPECT_EQ(Buffer(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(blob.bytes.size())),
              slice(made->file, before.bytes));
    EXPECT_EQ(bytes.size() % 16, 0u);
    EXPECT_EQ(after.header.bytes_size, after.bytes.size);
    EXPECT_EQ(after.graph.root().constants()->Get(1)->offset(), 144u);  // 16 + 112 + 5, rounded up
  }
}

// Segments that all start at pages still do.
TEST(Repair, SegmentsKeepALargerAlignment) {
  constexpr size_t kPage = 4096;
  const auto paged = [](Buffer bytes) {
    bytes.resize((bytes.size() + kPage - 1) / kPage * kPage);
    return bytes;
  };
  ProgramSpec spec = faulty();
  spec.segments = {paged(counting(5000, 1)), paged(blob_of(faulty_graph())), paged(counting(100, 2)), counting(300, 3)};
  spec.named = {{"a", 0}, {"b", 2}, {"c", 3}};
  spec.methods = {method("forward", {in_segment(1)})};
  spec.segment_base = kPage;
  Buffer file = spec.build();
  const size_t data = file.size() - (4 * kPage + 300);
  ASSERT_LT(data, kPage);
  file.insert(file.begin() + static_cast<std::ptrdiff_t>(data), kPage - data, 0xab);
  const auto made = run(file);
  ASSERT_FALSE(made->error) << made->error.message;
  EXPECT_EQ(made->repair.repaired.size(), 1u);
  expect_rest_untouched(*made);
  for (const Range& range : made->fixed_program.impl().segments) {
    EXPECT_EQ(range.offset % kPage, 0u);
  }
  EXPECT_EQ(made->fixed[kPage - 1], 0xab);  // what is between program and segments
}

TEST(Repair, HeaderWithoutSegmentDataSize) {
  ProgramSpec spec = faulty();
  spec.header_length = 24;
  const auto made = run(spec.build());
  ASSERT_FALSE(made->error) << made->error.message;
  expect_rest_untouched(*made);
  EXPECT_EQ(Buffer(made->fixed.begin() + 32, made->fixed.begin() + 40),
            Buffer(made->file.begin() + 32, made->file.begin() + 40));
}

TEST(Repair, ADelegateForTheGuardedRuntimeIsMadeStock) {
  ProgramSpec spec = faulty();
  spec.methods[0].delegates[0].specs = {"etvk_guard_runtime"};
  const auto made = run(spec.build());
  ASSERT_FALSE(made->error) << made->error.message;
  ASSERT_EQ(made->repair.repaired.size(), 1u);
  EXPECT_EQ(made->repair.repaired[0].code, FindingCode::kNeedsGuardedRuntime);
  EXPECT_TRUE(made->repair.remaining.empty());
  EXPECT_EQ(ops(made->fixed_program.impl(), 0), kFixedOps);
}

struct Left {
  const char* name;
  std::function<void(ProgramSpec&)> change;
  const char* words;
};

const Left kLeft[] = {
    {"named data", [](ProgramSpec& s) { s.named = {{"blob", 0}}; }, "named data"},
    {"constant data", [](ProgramSpec& s) { s.constant_segment = {0, {0, 16}}; }, "the constant data"},
    {"another backend", [](ProgramSpec& s) { s.methods[0].delegates.push_back(in_segment(0, "XnnpackBackend")); },
     "a delegate of another backend"},
};

TEST(Repair, ABlobWithAnotherUseIsLeft) {
  for (const Left& row : kLeft) {
    SCOPED_TRACE(row.name);
    ProgramSpec spec = faulty();
    spec.segments.push_back(blob_of(faulty_graph(8)));
    spec.methods.push_back(method("other", {in_segment(1)}));
    row.change(spec);
    const auto made = run(spec.build());
    ASSERT_FALSE(made->error) << made->error.message;
    EXPECT_EQ(made->repair.repaired.size(), 1u);  // the other one
    ASSERT_EQ(made->repair.remaining.size(), 1u);
    EXPECT_FALSE(made->repair.remaining[0].fixable);
    EXPECT_NE(made->repair.remaining[0].message.find(row.words), std::string::npos) << made->repair.remaining[0].message;
    EXPECT_EQ(slice(made->fixed, made->fixed_program.impl().segments[0]), slice(made->file, made->program.impl().segments[0]));
  }
}

TEST(Repair, WhatHasNoLegalFormIsLeft) {
  GraphBuilder graph;
  const int x = graph.input({7, 4});
  const int w = graph.constant({4});
  const int m = graph.input({4});
  graph.rms_norm(x, w, {7, 4});                                    // clean, but ...
  const int good = graph.rms_norm(x, m, {7, 4});                   // fixable
  graph.op("aten.sigmoid.default", {x, w});                        // ... w is written: mutable
  const int out = graph.rms_norm(x, graph.input({5, 4}), {7, 4});  // does not broadcast
  graph.op("custom.op.default", {out, good});                      // unknown
  ProgramSpec spec = program_of(graph);
  spec.methods[0].call_args = {0, 0, 0};
  const auto made = run(spec.build());
  ASSERT_FALSE(made->error) << made->error.message;
  EXPECT_EQ(made->repair.repaired.size(), 1u);
  ASSERT_EQ(made->repair.remaining.size(), 3u);
  EXPECT_EQ(made->repair.remaining[0].code, FindingCode::kPrepackMutable);
  EXPECT_EQ(made->repair.remaining[1].code, FindingCode::kNormWeightRuntime);
  EXPECT_NE(made->repair.remaining[1].message.find("do not broadcast"), std::string::npos);
  EXPECT_EQ(made->repair.remaining[2].code, FindingCode::kUnknownOp);
}

// One op with a finding that a rewrite is for and one that stays.
TEST(Repair, PartOfAnOp) {
  GraphBuilder graph;
  const int x = graph.input({7, 4});
  const int results = graph.value_list({graph.tensor({7, 4}), graph.tensor({7, 1}), graph.tensor({7, 1})});
  const int eps = graph.constant({1});
  graph.op("aten.native_layer_norm.default", {x, graph.int_list({4}), graph.null(), graph.null(), eps, results});
  const auto made = run(program_of(graph).build());
  ASSERT_FALSE(made->error) << made->error.message;
  EXPECT_EQ(made->repair.repaired.size(), 2u);
  ASSERT_EQ(made->repair.remaining.size(), 1u);
  EXPECT_EQ(made->repair.remaining[0].code, FindingCode::kConstantInput);
}

// The same where the rewrite takes the op away.
TEST(Repair, AllOfAnOp) {
  GraphBuilder graph;
  const int table = graph.input({12, 4});
  const int indices = graph.input({5}, 3);
  const int size = graph.value_list({graph.symint(3)});
  const int out = graph.tensor({5, 4});
  graph.op("aten.embedding.default", {table, indices, graph.constant({1}), size, graph.null(), out});
  const auto made = run(program_of(graph).build());
  ASSERT_FALSE(made->error) << made->error.message;
  EXPECT_EQ(made->repair.repaired.size(), 3u);
  EXPECT_TRUE(made->repair.remaining.empty());
  EXPECT_EQ(ops(made->fixed_program.impl(), 0),
            (std::vector<std::string>{"aten.clone.default", "aten.clone.default", "aten.index_select.default",
                                      "aten.clone.default"}));
}

}  // namespace
}  // namespace etvk_guard::testing
