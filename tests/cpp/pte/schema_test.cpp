// SPDX-License-Identifier: Apache-2.0
//
// Fields and union types from a newer schema are noticed, wherever they are, and do not keep a file from being read.
#include <gtest/gtest.h>

#include "builder.h"
#include "program.h"

namespace etvk_guard::testing {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using flatbuffers::Table;

constexpr flatbuffers::voffset_t kField9 = 4 + 2 * 9;  // VkGraph has fields 0 to 8

Buffer finish(FlatBufferBuilder& fbb, const Offset<vk::VkGraph>& root) {
  fbb.Finish(root, "VK00");
  return {fbb.GetBufferPointer(), fbb.GetBufferPointer() + fbb.GetSize()};
}

std::string unknown(const Buffer& graph) {
  GraphView view;
  const Error error = GraphView::open(graph.data(), graph.size(), 0, &view);
  EXPECT_FALSE(error) << error.message;
  return error ? "" : find_unknown_field(reinterpret_cast<const Table*>(&view.root()), vk::VkGraphTypeTable(), "VkGraph");
}

TEST(Schema, NothingUnknown) {
  GraphBuilder graph;
  graph.rms_norm(graph.input({1, 4}), graph.constant({4}), {1, 4});
  EXPECT_EQ(unknown(graph.finish()), "");
}

TEST(Schema, NewFieldOfTheRoot) {
  FlatBufferBuilder fbb;
  vk::VkGraphBuilder root(fbb);
  fbb.AddElement<int32_t>(kField9, 5, 0);
  EXPECT_EQ(unknown(finish(fbb, root.Finish())), "VkGraph");
}

TEST(Schema, NewFieldOfATensor) {
  FlatBufferBuilder fbb;
  vk::VkTensorBuilder tensor(fbb);
  tensor.add_constant_id(-1);
  fbb.AddElement<uint8_t>(4 + 2 * 7, 5, 0);  // VkTensor has fields 0 to 6
  const auto value = vk::CreateVkValue(fbb, vk::GraphTypes::VkTensor, tensor.Finish().Union());
  const auto values = fbb.CreateVector(std::vector<Offset<vk::VkValue>>{value});
  EXPECT_EQ(unknown(finish(fbb, vk::CreateVkGraph(fbb, 0, 0, values))), "VkGraph.values.value");
}

TEST(Schema, NewTypeOfValue) {
  GraphBuilder graph;
  graph.null();
  graph.typed(static_cast<vk::GraphTypes>(12), vk::CreateNull(graph.fbb()).Union());
  graph.op("new.op", {0, 1});
  EXPECT_EQ(unknown(graph.finish()), "VkGraph.values.value");
}

TEST(Schema, FieldsAreCounted) {
  FlatBufferBuilder fbb;
  vk::VkBytesBuilder bytes(fbb);
  bytes.add_length(3);
  fbb.Finish(bytes.Finish());
  const Table* table = flatbuffers::GetRoot<Table>(fbb.GetBufferPointer());
  EXPECT_EQ(known_fields(vk::VkBytesTypeTable()), 3);
  EXPECT_EQ(known_fields(vk::VkValueTypeTable()), 2);
  EXPECT_FALSE(has_unknown_fields(table, 3));
  EXPECT_FALSE(has_unknown_fields(table, 2));
  EXPECT_TRUE(has_unknown_fields(table, 1));  // length is field 1
}

}  // namespace
}  // namespace etvk_guard::testing
