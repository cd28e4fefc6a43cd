// SPDX-License-Identifier: Apache-2.0
//
// Files that ask for more than their size is worth: memory and time to open, check and repair them stay in proportion.
#include <ctime>

#include "allocations.h"
#include "repair_run.h"

namespace etvk_guard::testing {
namespace {

// What it takes to open, check and repair a file.
struct Work {
  Error error;
  bool changed = false;
  size_t repaired = 0;
  uint64_t bytes = 0;
  double seconds = 0;
};

Work work_of(const Buffer& file) {
  Work work;
  const std::clock_t start = std::clock();  // of the processor: other processes do not count
  const Allocations allocations;
  {
    const BytesReader reader(file.data(), file.size());
    Program program;
    Report report;
    Repair made;
    work.error = Program::open(reader, &program);
    work.error = work.error ? work.error : check(program, &report);
    work.error = work.error ? work.error : repair(program, &made);
    work.changed = made.changed;
    work.repaired = made.repaired.size();
  }
  work.bytes = allocations.peak_bytes();
  work.seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  return work;
}

// 1 s a MB is what we allow ourselves; without optimization the sanitizers take ten times as long as the rest.
void expect_in_proportion(const Work& work, const Buffer& file) {
  EXPECT_LE(work.bytes, Allocations::allowed(file.size())) << file.size() << " bytes";
  EXPECT_LT(work.seconds, 10.0 * (0.1 + static_cast<double>(file.size()) / 1e6)) << file.size() << " bytes";
}

TEST(Work, AllocationsAreCounted) {
  if (!Allocations::counted()) {
    GTEST_SKIP() << "needs AddressSanitizer";
  }
  const Allocations allocations;
  const Buffer block(12345);
  EXPECT_EQ(allocations.peak_bytes(), block.size());
  {
    const Buffer more(100);
    EXPECT_EQ(allocations.peak_bytes(), block.size() + more.size());
  }
  const Buffer less(50);
  EXPECT_EQ(allocations.peak_bytes(), block.size() + 100);
}

// Delegates may share their blob, and a graph its ops. Of all ops, a layer norm with nothing right gives the most to say.
Buffer sharing_all(size_t delegates, size_t ops) {
  flatbuffers::FlatBufferBuilder fbb;
  std::vector<flatbuffers::Offset<vk::VkValue>> values;
  for (const uint32_t width : {4u, 1u}) {
    const auto dims = fbb.CreateVector(std::vector<uint32_t>{2, width});
    const auto tensor = vk::CreateVkTensor(fbb, kFloat, dims, -1, -1, 1, 0);
    values.push_back(vk::CreateVkValue(fbb, vk::GraphTypes::VkTensor, tensor.Union()));
  }
  const auto shape = vk::CreateIntList(fbb, fbb.CreateVector(std::vector<int64_t>{4}));
  values.push_back(vk::CreateVkValue(fbb, vk::GraphTypes::IntList, shape.Union()));
  const auto op = vk::CreateOperatorCall(fbb, 0, fbb.CreateString("aten.native_layer_norm.default"),
                                         fbb.CreateVector(std::vector<int32_t>{0, 2, 1, 1, 2, 0}));
  const auto chain = fbb.CreateVector(std::vector<flatbuffers::Offset<vk::OperatorCall>>(ops, op));
  fbb.Finish(vk::CreateVkGraph(fbb, 0, chain, fbb.CreateVector(values)), "VK00");
  ProgramSpec spec;
  spec.segments = {blob_of({fbb.GetBufferPointer(), fbb.GetBufferPointer() + fbb.GetSize()})};
  spec.methods = {method(std::string(200, 'm'), std::vector<DelegateSpec>(delegates))};
  return spec.build();
}

TEST(Work, ASmallFileOfSharedOps) {
  size_t opened = 0;
  size_t repaired = 0;
  for (size_t ops = 16; ops <= 4096; ops *= 2) {
    for (size_t delegates = 1; delegates <= 256; delegates *= 2) {
      const Buffer file = sharing_all(delegates, ops);
      const Work work = work_of(file);
      expect_in_proportion(work, file);
      opened += work.error ? 0 : 1;
      repaired += work.changed ? 1 : 0;
    }
  }
  EXPECT_GT(opened, 10u);
  EXPECT_GT(repaired, 10u);
}

TEST(Work, NormsThatShareALongListOfResults) {
  GraphBuilder graph;
  const int x = graph.input({7, 4});
  const int m = graph.input({4});
  const int out = graph.tensor({7, 4});
  const int list = graph.value_list(std::vector<int32_t>(100000, out));
  const std::vector<int32_t> args = {x, graph.int_list({4}), m, graph.null(), graph.number(1e-5), list};
  for (int i = 0; i < 5000; ++i) {
    graph.op("aten.native_layer_norm.default", args);
  }
  const Buffer file = program_of(graph).build();
  const Work work = work_of(file);
  expect_in_proportion(work, file);
  EXPECT_FALSE(work.error) << work.error.message;
  EXPECT_FALSE(work.changed);
}

TEST(Work, ANormOfTheLargestWidth) {
  ProgramSpec spec = faulty();
  spec.segments = {blob_of(faulty_graph(INT32_MAX))};  // 8 GB of ones
  const Buffer file = spec.build();
  ASSERT_LT(file.size(), 2048u);
  const Work work = work_of(file);
  expect_in_proportion(work, file);
  EXPECT_TRUE(work.changed);
}

TEST(Work, NormsOfManyWidths) {
  GraphBuilder graph;
  for (uint32_t width = 1; width <= 1000; ++width) {
    graph.rms_norm(graph.tensor({2, width}), graph.tensor({width}), {2, width});
  }
  const Buffer file = program_of(graph).build();
  const Work work = work_of(file);
  expect_in_proportion(work, file);
  EXPECT_EQ(work.repaired, 1000u);
}

TEST(Work, AFixInEachOfManyBlobs) {
  for (const bool inlined : {false, true}) {
    ProgramSpec spec;
    const Buffer blob = blob_of(faulty_graph());
    std::vector<DelegateSpec> delegates;
    for (uint32_t i = 0; i < 1000; ++i) {
      (inlined ? spec.inline_blobs : spec.segments).push_back(blob);
      delegates.push_back(inlined ? in_line(i) : in_segment(i));
    }
    spec.methods = {method("forward", std::move(delegates))};
    const Buffer file = spec.build();
    const Work work = work_of(file);
    expect_in_proportion(work, file);
    EXPECT_EQ(work.repaired, 1000u);
  }
}

}  // namespace
}  // namespace etvk_guard::testing
