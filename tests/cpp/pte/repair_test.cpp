// SPDX-License-Identifier: Apache-2.0
//
// Repaired programs: what moves, what stays, what is refused.
#include <algorithm>
#include <functional>
#include <memory>

#include <gtest/gtest.h>

#include "builder.h"
#include "program.h"

namespace etvk_guard::testing {
namespace {

constexpr int8_t kFloat = GraphBuilder::kFloat;

// A faulty graph: norm(x) * m, x [7, width], m at run time.
Buffer faulty_graph(uint32_t width = 4) {
  GraphBuilder graph;
  const int x = graph.input({7, width});
  const int m = graph.input({width});
  graph.outputs({static_cast<uint32_t>(graph.rms_norm(x, m, {7, width}))});
  return graph.finish();
}
Buffer blob_of(Buffer graph, Buffer bytes = {}) {
  BlobSpec spec;
  spec.graph = std::move(graph);
  spec.bytes = std::move(bytes);
  return spec.build();
}
Buffer clean_graph() {
  GraphBuilder graph;
  const int x = graph.input({1, 4});
  const int y = graph.input({1, 4});
  const int out = graph.tensor({1, 4});
  graph.op("aten.mul.Tensor", {x, y, out});
  graph.outputs({static_cast<uint32_t>(out)});
  return graph.finish();
}
Buffer counting(size_t size, uint8_t from) {
  Buffer bytes(size);
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<uint8_t>(from + i);
  }
  return bytes;
}
DelegateSpec in_segment(uint32_t index, std::string backend = "VulkanBackend") {
  DelegateSpec spec;
  spec.index = index;
  spec.backend = std::move(backend);
  return spec;
}
DelegateSpec in_line(uint32_t index) {
  DelegateSpec spec;
  spec.location = 0;
  spec.index = index;
  return spec;
}
MethodSpec method(std::string name, std::vector<DelegateSpec> delegates) {
  MethodSpec spec;
  spec.name = std::move(name);
  spec.delegates = std::move(delegates);
  spec.call_args = {0, 0, 1};  // two inputs and a result, as the graphs have
  return spec;
}

// A file, its repair, and the repaired file, opened.
struct Run {
  Buffer file, fixed;
  BytesReader reader, fixed_reader;
  Program program, fixed_program;
  Repair repair;
  Error error;
};

std::unique_ptr<Run> run(const Buffer& file) {
  auto made = std::make_unique<Run>();
  made->file = file;
  made->reader = BytesReader(made->file.data(), made->file.size());
  made->error = Program::open(made->reader, &made->program);
  if (!made->error) {
    made->error = repair(made->program, &made->repair);
  }
  if (!made->error) {
    made->fixed.resize(made->repair.overlay.size());
    EXPECT_TRUE(made->repair.overlay.read(0, made->fixed.data(), made->fixed.size()));
    made->fixed_reader = BytesReader(made->fixed.data(), made->fixed.size());
    made->error = Program::open(made->fixed_reader, &made->fixed_program);
  }
  return made;
}

Buffer slice(const Buffer& file, const Range& range) {
  return Buffer(file.begin() + static_cast<std::ptrdiff_t>(range.offset), file.begin() + static_cast<std::ptrdiff_t>(range.end()));
}

// Names, delegates, named data and every segment that is no repaired blob are as before; segments keep the alignment that all have.
void expect_rest_untouched(const Run& run) {
  const ProgramImpl& before = run.program.impl();
  const ProgramImpl& after = run.fixed_program.impl();
  ASSERT_EQ(after.segments.size(), before.segments.size());
  uint64_t alignment = 65536;
  for (const Range& range : before.segments) {
    while (range.offset % alignment != 0) {
      alignment /= 2;
    }
  }
  for (size_t i = 0; i < before.segments.size(); ++i) {
    EXPECT_EQ(after.segments[i].offset % alignment, 0u) << i;
    const bool blob = std::any_of(before.blobs.begin(), before.blobs.end(), [&](const Blob& b) { return b.range == before.segments[i]; });
    if (!blob) {
      EXPECT_EQ(slice(run.fixed, after.segments[i]), slice(run.file, before.segments[i])) << i;
    }
  }
  ASSERT_EQ(after.delegates.size(), before.delegates.size());
  for (size_t i = 0; i < before.delegates.size(); ++i) {
    EXPECT_EQ(after.backend(after.delegates[i]), before.backend(before.delegates[i]));
    EXPECT_EQ(after.delegates[i].segment, before.delegates[i].segment);
  }
  ASSERT_EQ(after.named_data.size(), before.named_data.size());
  for (size_t i = 0; i < before.named_data.size(); ++i) {
    EXPECT_EQ(after.named_data[i].key, before.named_data[i].key);
    EXPECT_EQ(after.named_data[i].segment, before.named_data[i].segment);
  }
}

std::vector<std::string> ops(const ProgramImpl& program, size_t delegate) {
  const GraphView& graph = program.blobs[static_cast<size_t>(program.delegates[delegate].blob)].graph;
  std::vector<std::string> names;
  for (uint32_t i = 0; i < graph.op_count(); ++i) {
    names.emplace_back(graph.op_name(i));
  }
  return names;
}
const std::vector<std::string> kFixedOps{"et_vk.rms_norm.default", "aten.mul.Tensor"};

ProgramSpec faulty() {
  ProgramSpec spec;
  spec.segments = {blob_of(faulty_graph())};
  spec.methods = {method("forward", {in_segment(0)})};
  return spec;
}

TEST(Repair, CleanFileIsItself) {
  const auto made = run(clean_file());
  ASSERT_FALSE(made->error) << made->error.message;
  EXPECT_FALSE(made->repair.changed);
  EXPECT_EQ(made->repair.overlay.extents().size(), 1u);
  EXPECT_EQ(made->fixed, made->file);
}

TEST(Repair, MethodsDelegatesAndSegments) {
  ProgramSpec spec;
  spec.segments = {counting(100, 1), blob_of(faulty_graph()), counting(33, 2), blob_of(clean_graph()), blob_of(faulty_graph(8)),
                   counting(7, 3), counting(1000, 4)};
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
    EXPECT_EQ(Buffer(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(blob.bytes.size())), slice(made->file, before.bytes));
    EXPECT_EQ(bytes.size() % 16, 0u);
    EXPECT_EQ(after.header.bytes_size, after.bytes.size);
    EXPECT_EQ(after.graph.root().constants()->Get(1)->offset(), 144u);  // 16 + 112 + 5, rounded up
  }
}

TEST(Repair, HeaderWithoutSegmentDataSize) {
  ProgramSpec spec = faulty();
  spec.header_length = 24;
  const auto made = run(spec.build());
  ASSERT_FALSE(made->error) << made->error.message;
  expect_rest_untouched(*made);
  EXPECT_EQ(Buffer(made->fixed.begin() + 32, made->fixed.begin() + 40), Buffer(made->file.begin() + 32, made->file.begin() + 40));
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
  graph.rms_norm(x, w, {7, 4});                                // clean, but ...
  const int good = graph.rms_norm(x, m, {7, 4});               // fixable
  graph.op("aten.sigmoid.default", {x, w});                    // ... w is written: mutable
  const int out = graph.rms_norm(x, graph.input({5, 4}), {7, 4});  // does not broadcast
  graph.op("custom.op.default", {out, good});                  // unknown
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

// --------------------------------------------------------------------------------------------------------- newer schemas

// A table of the fields that a graph's tables have, and one more, at the index that its schema would take next.
template <typename Build>
flatbuffers::Offset<flatbuffers::Table> with_extra(flatbuffers::FlatBufferBuilder& fbb, flatbuffers::voffset_t next, Build build) {
  const auto start = fbb.StartTable();
  build();
  fbb.AddElement<int32_t>(static_cast<flatbuffers::voffset_t>(4 + 2 * next), 12345, 0);
  return fbb.EndTable(start);
}

enum class Newer { kNothing, kRoot, kNorm, kOtherOp, kTensor };

// norm(x) * m, then sigmoid; one of the tables is from a newer schema.
Buffer newer_graph(Newer which) {
  flatbuffers::FlatBufferBuilder fbb;
  std::vector<flatbuffers::Offset<vk::VkValue>> values;
  const auto add = [&](vk::GraphTypes type, flatbuffers::Offset<void> content) {
    values.push_back(vk::CreateVkValue(fbb, type, content));
  };
  for (int i = 0; i < 4; ++i) {  // x, m, norm, out
    const auto dims = fbb.CreateVector(i == 1 ? std::vector<uint32_t>{4} : std::vector<uint32_t>{7, 4});
    const bool extra = which == Newer::kTensor && i == 0;
    add(vk::GraphTypes::VkTensor, !extra ? vk::CreateVkTensor(fbb, kFloat, dims, -1, -1, 1, 0).Union()
                                         : flatbuffers::Offset<void>(with_extra(fbb, 7, [&] {
                                             fbb.AddElement<int8_t>(vk::VkTensor::VT_DATATYPE, kFloat, 0);
                                             fbb.AddOffset(vk::VkTensor::VT_DIMS, dims);
                                             fbb.AddElement<int32_t>(vk::VkTensor::VT_CONSTANT_ID, -1, 0);
                                             fbb.AddElement<int32_t>(vk::VkTensor::VT_MEM_OBJ_ID, -1, 0);
                                             fbb.AddElement<uint8_t>(vk::VkTensor::VT_STORAGE_TYPE, 1, 255);
                                             fbb.AddElement<uint8_t>(vk::VkTensor::VT_MEMORY_LAYOUT, 0, 255);
                                           }).o));
  }
  add(vk::GraphTypes::Double, vk::CreateDouble(fbb, 1e-6).Union());
  std::vector<flatbuffers::Offset<vk::OperatorCall>> chain;
  const auto op = [&](const char* name, const std::vector<int32_t>& args, bool extra) {
    const auto text = fbb.CreateString(name);
    const auto list = fbb.CreateVector(args);
    chain.push_back(!extra ? vk::CreateOperatorCall(fbb, 0, text, list)
                           : flatbuffers::Offset<vk::OperatorCall>(with_extra(fbb, 3, [&] {
                               fbb.AddOffset(vk::OperatorCall::VT_NAME, text);
                               fbb.AddOffset(vk::OperatorCall::VT_ARGS, list);
                             }).o));
  };
  op("et_vk.rms_norm.default", {0, 1, 4, 2}, which == Newer::kNorm);
  op("aten.sigmoid.default", {2, 3}, which == Newer::kOtherOp);
  const auto chain_list = fbb.CreateVector(chain);
  const auto value_list = fbb.CreateVector(values);
  const auto in = fbb.CreateVector(std::vector<uint32_t>{0, 1});
  const auto out = fbb.CreateVector(std::vector<uint32_t>{3});
  const auto root = with_extra(fbb, which == Newer::kRoot ? 9 : 100, [&] {
    fbb.AddOffset(vk::VkGraph::VT_CHAIN, chain_list);
    fbb.AddOffset(vk::VkGraph::VT_VALUES, value_list);
    fbb.AddOffset(vk::VkGraph::VT_INPUT_IDS, in);
    fbb.AddOffset(vk::VkGraph::VT_OUTPUT_IDS, out);
  });
  const auto plain = vk::CreateVkGraph(fbb, 0, chain_list, value_list, in, out);
  if (which == Newer::kRoot) {
    fbb.Finish(root, "VK00");
  } else {
    fbb.Finish(plain, "VK00");
  }
  return {fbb.GetBufferPointer(), fbb.GetBufferPointer() + fbb.GetSize()};
}

TEST(Repair, FieldsFromANewerSchemaAreKeptOrTheFileRefused) {
  for (const Newer which : {Newer::kNothing, Newer::kRoot, Newer::kNorm, Newer::kOtherOp, Newer::kTensor}) {
    SCOPED_TRACE(static_cast<int>(which));
    ProgramSpec spec = faulty();
    spec.segments = {blob_of(newer_graph(which))};
    const auto made = run(spec.build());
    if (which == Newer::kRoot || which == Newer::kNorm) {
      EXPECT_EQ(made->error.code, ErrorCode::kUnsupportedSchema);
      continue;
    }
    ASSERT_FALSE(made->error) << made->error.message;
    const GraphView& graph = made->fixed_program.impl().blobs[0].graph;
    const auto extra = [](const void* table, flatbuffers::voffset_t index) {
      return static_cast<const flatbuffers::Table*>(table)->GetField<int32_t>(static_cast<flatbuffers::voffset_t>(4 + 2 * index), 0);
    };
    EXPECT_EQ(extra(graph.tensor(0), 7), which == Newer::kTensor ? 12345 : 0);
    EXPECT_EQ(extra(&graph.op(2), 3), which == Newer::kOtherOp ? 12345 : 0);
  }
}

TEST(Repair, HeadersFromANewerSchemaAreRefused) {
  ProgramSpec spec = faulty();
  spec.header_length = 40;
  EXPECT_EQ(run(spec.build())->error.code, ErrorCode::kUnsupportedSchema);
  spec = faulty();
  BlobSpec blob;
  blob.graph = faulty_graph();
  blob.length = 31;
  spec.segments = {blob.build()};
  EXPECT_EQ(run(spec.build())->error.code, ErrorCode::kUnsupportedSchema);
}

// ----------------------------------------------------------------------------------------------------------------- limits

TEST(Repair, AWideNormTakesNoMemory) {
  constexpr uint32_t kWidth = 1u << 28;  // a gigabyte of ones
  ProgramSpec spec = faulty();
  spec.segments = {blob_of(faulty_graph(kWidth))};
  const Buffer file = spec.build();
  const BytesReader reader(file.data(), file.size());
  Program program;
  ASSERT_FALSE(Program::open(reader, &program));
  Repair made;
  const Error error = repair(program, &made);
  ASSERT_FALSE(error) << error.message;
  EXPECT_GT(made.overlay.size(), uint64_t{kWidth} * 4);
  uint64_t owned = 0;
  int32_t last = -1;
  for (const Overlay::Extent& extent : made.overlay.extents()) {
    owned += extent.buffer > last ? made.overlay.owned(static_cast<size_t>(extent.buffer)).size() : 0;
    last = std::max(last, extent.buffer);
  }
  EXPECT_LT(owned, 1u << 20);
}

class CountedReader final : public Reader {
 public:
  CountedReader(const Buffer& file, int good) : file_(file), left_(good) {}
  uint64_t size() const override { return file_.size(); }
  bool read(uint64_t offset, void* into, size_t count) const override {
    if (left_-- == 0) {
      return false;
    }
    std::copy_n(file_.begin() + static_cast<std::ptrdiff_t>(offset), count, static_cast<uint8_t*>(into));
    return true;
  }

 private:
  const Buffer& file_;
  mutable int left_;
};

TEST(Repair, AReadErrorAtEveryCall) {
  const Buffer file = faulty().build();
  bool failed = true;
  int good = 0;
  for (; failed; ++good) {
    const CountedReader reader(file, good);
    Program program;
    Repair made;
    Error error = Program::open(reader, &program);
    error = error ? error : repair(program, &made);
    failed = static_cast<bool>(error);
    EXPECT_EQ(error.code, failed ? ErrorCode::kIoError : ErrorCode::kNone) << error.message;
  }
  EXPECT_GT(good, 5);
}

}  // namespace
}  // namespace etvk_guard::testing
