// SPDX-License-Identifier: Apache-2.0
//
// Repair of files from newer schemas, of huge tensors, and over readers that fail.
#include "repair_run.h"

namespace etvk_guard::testing {
namespace {

// A table of the fields that a graph's tables have, and one more, at the index that its schema would take next.
template <typename Build>
flatbuffers::Offset<flatbuffers::Table> with_extra(flatbuffers::FlatBufferBuilder& fbb, flatbuffers::voffset_t next,
                                                   Build build) {
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
    add(vk::GraphTypes::VkTensor,
        !extra ? vk::CreateVkTensor(fbb, kFloat, dims, -1, -1, 1, 0).Union()
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

TEST(RepairLimits, FieldsFromANewerSchemaAreKeptOrTheFileRefused) {
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
      return static_cast<const flatbuffers::Table*>(table)->GetField<int32_t>(
          static_cast<flatbuffers::voffset_t>(4 + 2 * index), 0);
    };
    EXPECT_EQ(extra(graph.tensor(0), 7), which == Newer::kTensor ? 12345 : 0);
    EXPECT_EQ(extra(&graph.op(2), 3), which == Newer::kOtherOp ? 12345 : 0);
  }
}

TEST(RepairLimits, HeadersFromANewerSchemaAreRefused) {
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

TEST(RepairLimits, AWideNormTakesNoMemory) {
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

// More memory than can be counted is said to be as much as can be.
TEST(RepairLimits, TemporariesOfAnySizeAreCounted) {
  GraphBuilder graph;
  const std::vector<uint32_t> dims = {1u << 28, INT32_MAX};  // of 2^61 bytes
  const int x = graph.input(dims);
  graph.outputs({static_cast<uint32_t>(graph.rms_norm(x, graph.input({INT32_MAX}), dims))});
  ProgramSpec spec = program_of(graph);
  spec.methods[0].delegates.resize(16);
  const Buffer file = spec.build();
  const BytesReader reader(file.data(), file.size());
  Program program;
  ASSERT_FALSE(Program::open(reader, &program));
  Repair made;
  ASSERT_FALSE(repair(program, &made));
  EXPECT_TRUE(made.changed);
  EXPECT_EQ(made.added_activation_bytes, UINT64_MAX);
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

TEST(RepairLimits, AReadErrorAtEveryCall) {
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
