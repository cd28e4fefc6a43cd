// SPDX-License-Identifier: Apache-2.0
//
// Program::open: for each error code a small file that causes it, and views of a sound file.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>

#include "builder.h"
#include "program.h"

namespace etvk_guard::testing {
namespace {

struct Case {
  std::string name;
  std::function<Buffer()> build;
  ErrorCode expected;
  std::string words;  // in the message
};
void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

ProgramSpec clean_spec() {
  GraphBuilder graph;
  const int x = graph.input({1, 4});
  const int out = graph.rms_norm(x, graph.constant({4}), {1, 4});
  graph.outputs({static_cast<uint32_t>(out)});
  return program_of(graph);
}

Buffer program(const std::function<void(ProgramSpec&)>& change) {
  ProgramSpec spec = clean_spec();
  change(spec);
  return spec.build();
}

Buffer with_graph(const std::function<void(GraphBuilder&)>& build) {
  GraphBuilder graph;
  build(graph);
  return program_of(graph).build();
}

Buffer with_blob(const std::function<void(BlobSpec&)>& change) {
  GraphBuilder graph;
  graph.rms_norm(graph.input({1, 4}), graph.constant({4}), {1, 4});
  ProgramSpec spec = program_of(graph);
  BlobSpec blob;
  GraphBuilder again;
  again.rms_norm(again.input({1, 4}), again.constant({4}), {1, 4});
  blob.graph = again.finish();
  change(blob);
  spec.segments[0] = blob.build();
  return spec.build();
}

Buffer bytes(const char* text) { return {text, text + std::char_traits<char>::length(text)}; }

Buffer cut(Buffer file, size_t size) {
  file.resize(size);
  return file;
}

const Case kHeaderCases[] = {
    {"empty", [] { return Buffer(); }, ErrorCode::kEmptyFile, "0 bytes"},
    {"seven_bytes",
     [] {
       return bytes(
           "\x1c\1\1\1"
           "ET1");
     },
     ErrorCode::kNotAPte, "too few"},
    {"html", [] { return bytes("<!DOCTYPE html>"); }, ErrorCode::kNotAPte, "43 54 59 50"},
    {"other_identifier", [] { return program([](ProgramSpec& s) { s.identifier = "ET13"; }); }, ErrorCode::kUnsupportedSchema,
     "ET13"},
    {"header_length", [] { return program([](ProgramSpec& s) { s.header_length = 23; }); }, ErrorCode::kBadExtendedHeader,
     "23"},
    {"header_cut", [] { return cut(clean_file(), 20); }, ErrorCode::kTruncated, "ends inside"},
    {"header_cut_data_size", [] { return cut(clean_file(), 34); }, ErrorCode::kTruncated, "ends inside"},
    {"program_size_small", [] { return program([](ProgramSpec& s) { s.program_size = 39; }); }, ErrorCode::kBadExtendedHeader,
     "39"},
    {"program_size_large", [] { return program([](ProgramSpec& s) { s.program_size = 1u << 20; }); }, ErrorCode::kTruncated,
     "1048576"},
    {"program_size_huge", [] { return program([](ProgramSpec& s) { s.program_size = UINT64_MAX; }); }, ErrorCode::kTruncated,
     ""},
    {"base_in_program", [] { return program([](ProgramSpec& s) { s.segment_base = 48; }); }, ErrorCode::kBadExtendedHeader,
     "inside"},
    {"base_beyond", [] { return program([](ProgramSpec& s) { s.segment_base = 1u << 20; }); }, ErrorCode::kTruncated, ""},
    {"base_missing", [] { return program([](ProgramSpec& s) { s.segment_base = 0; }); }, ErrorCode::kBadExtendedHeader,
     "no segment base"},
    {"data_size_beyond", [] { return program([](ProgramSpec& s) { s.segment_data_size = 1u << 20; }); }, ErrorCode::kTruncated,
     ""},
    {"data_size_overflows", [] { return program([](ProgramSpec& s) { s.segment_data_size = UINT64_MAX; }); },
     ErrorCode::kTruncated, ""},
    {"one_byte_short",
     [] {
       Buffer file = clean_file();
       return cut(file, file.size() - 1);
     },
     ErrorCode::kTruncated, ""},
    {"segments_without_header", [] { return program([](ProgramSpec& s) { s.header = false; }); }, ErrorCode::kBadExtendedHeader,
     "no extended header"},
};

const Case kProgramCases[] = {
    {"no_flatbuffer",
     [] {
       return bytes(
           "\xff\xff\xff\x7f"
           "ET12");
     },
     ErrorCode::kBadProgramFlatbuffer, ""},
    {"segment_beyond", [] { return program([](ProgramSpec& s) { s.table = {{0, 1u << 20}, {0, 0}}; }); },
     ErrorCode::kSegmentOutOfRange, "segment 0"},
    {"segment_overflows", [] { return program([](ProgramSpec& s) { s.table = {{UINT64_MAX, 1}, {0, 0}}; }); },
     ErrorCode::kSegmentOutOfRange, ""},
    {"segment_size_overflows", [] { return program([](ProgramSpec& s) { s.table = {{16, UINT64_MAX}, {0, 0}}; }); },
     ErrorCode::kSegmentOutOfRange, ""},
    {"segments_overlap", [] { return program([](ProgramSpec& s) { s.table = {{0, 64}, {63, 2}}; }); },
     ErrorCode::kSegmentsOverlap, "segments 0 and 1"},
    {"segment_in_segment", [] { return program([](ProgramSpec& s) { s.table = {{0, 64}, {0, 16}}; }); },
     ErrorCode::kSegmentsOverlap, ""},
    {"constant_segment", [] { return program([](ProgramSpec& s) { s.constant_segment = {{9, {0, 0}}}; }); },
     ErrorCode::kBadProgramFlatbuffer, "segment 9 of 2"},
    {"constant_offset", [] { return program([](ProgramSpec& s) { s.constant_segment = {{1, {0, 17}}}; }); },
     ErrorCode::kBadProgramFlatbuffer, "beyond"},
    {"named_segment", [] { return program([](ProgramSpec& s) { s.named[0].second = 2; }); }, ErrorCode::kBadProgramFlatbuffer,
     "segment 2 of 2"},
    {"method_name", [] { return program([](ProgramSpec& s) { s.methods[0].no_name = true; }); },
     ErrorCode::kBadProgramFlatbuffer, "no name"},
    {"method_name_long", [] { return program([](ProgramSpec& s) { s.methods[0].name.assign(256, 'm'); }); },
     ErrorCode::kTooLarge, "256"},
    {"plan_input", [] { return program([](ProgramSpec& s) { s.methods[0].inputs = {2}; }); }, ErrorCode::kBadValueIndex,
     "an input"},
    {"plan_input_negative", [] { return program([](ProgramSpec& s) { s.methods[0].inputs = {-1}; }); },
     ErrorCode::kBadValueIndex, ""},
    {"plan_output", [] { return program([](ProgramSpec& s) { s.methods[0].outputs = {2}; }); }, ErrorCode::kBadValueIndex,
     "an output"},
    {"call_argument", [] { return program([](ProgramSpec& s) { s.methods[0].call_args = {0, 7}; }); },
     ErrorCode::kBadValueIndex, "argument of a delegate"},
    {"call_delegate", [] { return program([](ProgramSpec& s) { s.methods[0].call_delegate = 1; }); },
     ErrorCode::kBadProgramFlatbuffer, "delegate 1 of 1"},
    {"delegate_without_id", [] { return program([](ProgramSpec& s) { s.methods[0].delegates[0].no_id = true; }); },
     ErrorCode::kBadProgramFlatbuffer, "no backend"},
    {"delegate_without_data", [] { return program([](ProgramSpec& s) { s.methods[0].delegates[0].no_processed = true; }); },
     ErrorCode::kBadDelegateReference, "no data"},
    {"delegate_segment", [] { return program([](ProgramSpec& s) { s.methods[0].delegates[0].index = 2; }); },
     ErrorCode::kBadDelegateReference, "segment 2 of 2"},
    {"delegate_inline", [] { return program([](ProgramSpec& s) { s.methods[0].delegates[0].location = 0; }); },
     ErrorCode::kBadDelegateReference, "inline blob 0 of 0"},
    {"delegate_location", [] { return program([](ProgramSpec& s) { s.methods[0].delegates[0].location = 2; }); },
     ErrorCode::kUnsupportedSchema, "location 2"},
    {"methods_of_one_name", [] { return program([](ProgramSpec& s) { s.methods.push_back(s.methods[0]); }); },
     ErrorCode::kBadProgramFlatbuffer, "one name"},
};

const Case kBlobCases[] = {
    {"too_small", [] { return program([](ProgramSpec& s) { s.segments[0] = Buffer(29); }); }, ErrorCode::kBadDelegateHeader,
     "29"},
    {"magic", [] { return with_blob([](BlobSpec& b) { b.magic = "VH01"; }); }, ErrorCode::kBadDelegateHeader, "56 48 30 31"},
    {"length", [] { return with_blob([](BlobSpec& b) { b.length = 29; }); }, ErrorCode::kBadDelegateHeader, "29"},
    {"graph_in_header", [] { return with_blob([](BlobSpec& b) { b.flatbuffer_offset = 29; }); }, ErrorCode::kBadDelegateHeader,
     ""},
    {"graph_beyond", [] { return with_blob([](BlobSpec& b) { b.flatbuffer_offset = UINT32_MAX; }); },
     ErrorCode::kBadDelegateHeader, "does not fit"},
    {"graph_empty", [] { return with_blob([](BlobSpec& b) { b.flatbuffer_size = 0; }); }, ErrorCode::kBadDelegateHeader, ""},
    {"graph_too_long", [] { return with_blob([](BlobSpec& b) { b.flatbuffer_size = UINT32_MAX; }); },
     ErrorCode::kBadDelegateHeader, ""},
    {"bytes_in_graph", [] { return with_blob([](BlobSpec& b) { b.bytes_offset = 64; }); }, ErrorCode::kBadDelegateHeader,
     "inside the flatbuffer"},
    {"bytes_beyond", [] { return with_blob([](BlobSpec& b) { b.bytes_offset = 1u << 20; }); }, ErrorCode::kBadDelegateHeader,
     ""},
    {"bytes_too_long", [] { return with_blob([](BlobSpec& b) { b.bytes_size = UINT64_MAX; }); }, ErrorCode::kBadDelegateHeader,
     ""},
    {"graph_identifier", [] { return with_blob([](BlobSpec& b) { b.graph[7] = '1'; }); }, ErrorCode::kBadGraphFlatbuffer,
     "VK00"},
    {"graph_tiny", [] { return with_blob([](BlobSpec& b) { b.flatbuffer_size = 7; }); }, ErrorCode::kBadGraphFlatbuffer, ""},
    {"graph_root", [] { return with_blob([](BlobSpec& b) { b.graph[3] = 0x7f; }); }, ErrorCode::kBadGraphFlatbuffer, "outside"},
};

const Case kGraphCases[] = {
    {"argument", [] { return with_graph([](GraphBuilder& g) { g.op("a", {g.null(), 1}); }); }, ErrorCode::kBadValueIndex,
     "an argument"},
    {"argument_negative", [] { return with_graph([](GraphBuilder& g) { g.op("a", {g.null(), -1}); }); },
     ErrorCode::kBadValueIndex, ""},
    {"input", [] { return with_graph([](GraphBuilder& g) { g.inputs({0}); }); }, ErrorCode::kBadValueIndex, "an input"},
    {"output", [] { return with_graph([](GraphBuilder& g) { g.outputs({UINT32_MAX}); }); }, ErrorCode::kBadValueIndex,
     "an output"},
    {"list_item", [] { return with_graph([](GraphBuilder& g) { g.value_list({1}); }); }, ErrorCode::kBadValueIndex, "an item"},
    {"list_of_itself", [] { return with_graph([](GraphBuilder& g) { g.value_list({0}); }); }, ErrorCode::kBadValueIndex,
     "not before it"},
    {"list_cycle", [] { return with_graph([](GraphBuilder& g) { g.value_list({1}), g.value_list({0}); }); },
     ErrorCode::kBadValueIndex, "not before it"},
    {"op_without_name", [] { return with_graph([](GraphBuilder& g) { g.nameless_op({}); }); }, ErrorCode::kBadGraphFlatbuffer,
     "op 0"},
    {"value_without_type", [] { return with_graph([](GraphBuilder& g) { g.typed(vk::GraphTypes::NONE, 0); }); },
     ErrorCode::kBadGraphFlatbuffer, "value 0"},
    {"value_without_content", [] { return with_graph([](GraphBuilder& g) { g.typed(vk::GraphTypes::VkTensor, 0); }); },
     ErrorCode::kBadGraphFlatbuffer, "value 0"},
    {"constant_id", [] { return with_graph([](GraphBuilder& g) { g.tensor({4}, 0); }); }, ErrorCode::kBadConstant,
     "constant 0 of 0"},
    {"constant_nameless", [] { return with_graph([](GraphBuilder& g) { g.add_bytes(UINT64_MAX, 4, nullptr); }); },
     ErrorCode::kBadConstant, "neither"},
    {"constant_name_empty", [] { return with_graph([](GraphBuilder& g) { g.add_bytes(UINT64_MAX, 4, ""); }); },
     ErrorCode::kBadConstant, "neither"},
    {"constant_range", [] { return with_graph([](GraphBuilder& g) { g.add_bytes(0, 1, nullptr); }); }, ErrorCode::kBadConstant,
     "1 bytes at 0"},
    {"constant_overflows", [] { return with_graph([](GraphBuilder& g) { g.add_bytes(UINT64_MAX - 1, 2, nullptr); }); },
     ErrorCode::kBadConstant, ""},
    {"constant_few", [] { return with_graph([](GraphBuilder& g) { g.tensor({4}, g.add_bytes(UINT64_MAX, 15, "w")); }); },
     ErrorCode::kBadConstant, "15"},
    {"constant_shape_overflows",
     [] {
       return with_graph([](GraphBuilder& g) { g.tensor({1u << 31, 1u << 31, 1u << 31}, g.add_bytes(UINT64_MAX, 16, "w")); });
     },
     ErrorCode::kBadConstant, ""},
    {"rank", [] { return with_graph([](GraphBuilder& g) { g.tensor(std::vector<uint32_t>(17, 1)); }); }, ErrorCode::kTooLarge,
     "rank 17"},
};

class OpenCase : public ::testing::TestWithParam<Case> {};

TEST_P(OpenCase, FailsWithItsCode) {
  const Buffer file = GetParam().build();
  Opened opened;
  open_and_check(file, &opened);
  ASSERT_TRUE(opened.error);
  EXPECT_EQ(opened.error.code, GetParam().expected) << opened.error.message;
  EXPECT_NE(opened.error.message.find(GetParam().words), std::string::npos) << opened.error.message;
  if (opened.error.where.offset != kNoOffset) {
    EXPECT_LE(opened.error.where.offset, file.size());
  }
}

constexpr auto kName = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Header, OpenCase, ::testing::ValuesIn(kHeaderCases), kName);
INSTANTIATE_TEST_SUITE_P(Program, OpenCase, ::testing::ValuesIn(kProgramCases), kName);
INSTANTIATE_TEST_SUITE_P(Blob, OpenCase, ::testing::ValuesIn(kBlobCases), kName);
INSTANTIATE_TEST_SUITE_P(Graph, OpenCase, ::testing::ValuesIn(kGraphCases), kName);

TEST(Open, ErrorInAGraphSaysWhere) {
  const Buffer file = with_graph([](GraphBuilder& g) { g.op("aten.add.Tensor", {g.null(), 1}); });
  Opened opened;
  open_and_check(file, &opened);
  EXPECT_EQ(opened.error.where.method, "forward");
  EXPECT_EQ(opened.error.where.delegate, 0);
  EXPECT_EQ(opened.error.where.op_index, 0);
  EXPECT_EQ(opened.error.where.op, "aten.add.Tensor");
  ASSERT_LT(opened.error.where.offset, file.size());
}

TEST(Open, EqualSegmentsAndEmptyOnesAreNoOverlap) {
  const Buffer file = program([](ProgramSpec& s) {
    const uint64_t blob = s.segments[0].size();
    const uint64_t weight = (blob + 15) / 16 * 16;
    s.table = {{0, blob}, {weight, 16}, {0, blob}, {8, 0}};
  });
  Opened opened;
  open_and_check(file, &opened);
  EXPECT_FALSE(opened.error) << opened.error.message;
}

TEST(Open, OldFileWithInlineBlobAndNoHeader) {
  GraphBuilder graph;
  const int w = graph.tensor({4}, graph.add_bytes(16, 16, nullptr));
  graph.rms_norm(graph.input({1, 4}), w, {1, 4});
  BlobSpec blob;
  blob.graph = graph.finish();
  blob.bytes = Buffer(48, 7);
  ProgramSpec spec;
  spec.header = false;
  spec.inline_blobs = {blob.build()};
  spec.methods.push_back({});
  spec.methods[0].delegates.push_back({});
  spec.methods[0].delegates[0].location = 0;
  const Buffer file = spec.build();
  Opened opened;
  open_and_check(file, &opened);
  ASSERT_FALSE(opened.error) << opened.error.message;
  const ProgramImpl& program = opened.program.impl();
  EXPECT_FALSE(program.header.present);
  ASSERT_EQ(program.blobs.size(), 1u);
  EXPECT_EQ(program.blobs[0].inline_index, 0);
  Range range;
  ASSERT_TRUE(program.constant_range(program.blobs[0], 0, &range));
  EXPECT_EQ(range.size, 16u);
  EXPECT_EQ(file[range.offset], 7);
  EXPECT_EQ(range.offset, program.blobs[0].bytes.offset + 16);
}

TEST(Open, ViewsOfASoundFile) {
  const Buffer file = clean_file();
  Opened opened;
  open_and_check(file, &opened);
  ASSERT_FALSE(opened.error) << opened.error.message;
  const ProgramImpl& program = opened.program.impl();
  EXPECT_EQ(program.plan_name(0), "forward");
  EXPECT_EQ(program.find_named("w0"), 1);
  EXPECT_EQ(program.find_named("w1"), -1);
  ASSERT_EQ(program.blobs.size(), 1u);
  const GraphView& graph = program.blobs[0].graph;
  ASSERT_EQ(graph.op_count(), 1u);
  EXPECT_EQ(graph.kind(0), Kind::kRuntime);
  EXPECT_EQ(graph.kind(1), Kind::kConstant);
  EXPECT_EQ(graph.kind(2), Kind::kScalar);
  EXPECT_TRUE(graph.is_input(0));
  EXPECT_TRUE(graph.is_output(3));
  EXPECT_EQ(graph.producer(3), 0);
  EXPECT_EQ(graph.producer(0), -1);
  Range range;
  ASSERT_TRUE(program.constant_range(program.blobs[0], 0, &range));
  EXPECT_EQ(std::vector<uint8_t>(file.begin() + static_cast<long>(range.offset), file.begin() + static_cast<long>(range.end())),
            (std::vector<uint8_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}));
}

TEST(Open, ExternalConstantIsNoError) {
  const Buffer file = with_graph([](GraphBuilder& g) { g.tensor({4}, g.add_bytes(UINT64_MAX, 16, "elsewhere")); });
  Opened opened;
  open_and_check(file, &opened);
  ASSERT_FALSE(opened.error) << opened.error.message;
  Range range;
  EXPECT_FALSE(opened.program.impl().constant_range(opened.program.impl().blobs[0], 0, &range));
}

TEST(Open, PlanConstants) {
  const Buffer file = program([](ProgramSpec& s) { s.constant_segment = {{1, {0, 0, 8}}}; });
  Opened opened;
  open_and_check(file, &opened);
  ASSERT_FALSE(opened.error) << opened.error.message;
  const ProgramImpl& program = opened.program.impl();
  Range range;
  ASSERT_TRUE(program.plan_constant_range(2, 8, &range));
  EXPECT_EQ(file[range.offset], 9);
  EXPECT_FALSE(program.plan_constant_range(2, 9, &range));
  EXPECT_FALSE(program.plan_constant_range(3, 1, &range));
}

TEST(Open, OverridesStandInForDefaults) {
  GraphBuilder graph;
  graph.tensor({4}, -1, GraphBuilder::kFloat, -1, 255, 255);
  graph.tensor({4}, -1, GraphBuilder::kFloat, -1, 1, 2);
  graph.overrides(0, 1);
  const Buffer file = program_of(graph).build();
  Opened opened;
  open_and_check(file, &opened);
  ASSERT_FALSE(opened.error) << opened.error.message;
  const GraphView& view = opened.program.impl().blobs[0].graph;
  EXPECT_EQ(view.describe(0).storage, Storage::kBuffer);
  EXPECT_EQ(view.describe(0).layout, Layout::kHeightPacked);
  EXPECT_EQ(view.describe(1).storage, Storage::kTexture3D);
  EXPECT_EQ(view.describe(1).layout, Layout::kChannelsPacked);
}

}  // namespace
}  // namespace etvk_guard::testing
