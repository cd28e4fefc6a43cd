// SPDX-License-Identifier: Apache-2.0
//
// Rewritten graphs, case by case.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <set>

#include "graph_checks.h"

namespace etvk_guard::testing {
namespace {

constexpr int8_t kHalf = GraphBuilder::kHalf;
constexpr int8_t kFloat = GraphBuilder::kFloat;

struct Case {
  const char* name;
  std::function<void(GraphBuilder&, Names&)> build;
  const char* words;
  uint64_t added_bytes;
};
void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

int in(GraphBuilder& g, Names& n, const char* name, const std::vector<uint32_t>& dims, int8_t dtype = kFloat,
       uint8_t storage = 1, uint8_t layout = 0) {
  const int id = g.tensor(dims, -1, dtype, -1, storage, layout);
  n[id] = name;
  return id;
}
int constant(GraphBuilder& g, Names& n, const char* name, const std::vector<uint32_t>& dims, int8_t dtype = kFloat) {
  const int id = g.constant(dims, dtype);
  n[id] = name;
  return id;
}
// A norm whose result may differ from x.
void rms(GraphBuilder& g, Names& n, int x, int w, const std::vector<uint32_t>& dims, int8_t dtype = kFloat,
         const char* name = "y", uint8_t storage = 1, uint8_t layout = 0) {
  const int eps = g.number(1e-6);
  const int out = g.tensor(dims, -1, dtype, -1, storage, layout);
  n[out] = name;
  g.op("et_vk.rms_norm.default", {x, w, eps, out});
}
void layer(GraphBuilder& g, Names& n, int x, int w, int b, const std::vector<uint32_t>& dims) {
  const int out = g.layer_norm(x, w, b, dims);
  n[out] = "y";
  n[out + 1] = "mean";
  n[out + 2] = "rstd";
}

const std::vector<uint32_t> kDims{2, 7, 6};
constexpr uint64_t kTexture = 2 * 7 * 8 * 4;  // bytes of it, width-packed

const Case kCases[] = {
    {"runtime",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       rms(g, n, x, in(g, n, "m", {1, 1, 6}), kDims);
     },
     "rms_norm(x ones .)->t0; mul(t0 m)->y", kTexture},
    {"constant_rows",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       rms(g, n, x, constant(g, n, "c", {7, 6}), kDims);
     },
     "prepack(c)->t0; rms_norm(x ones .)->t1; mul(t1 t0)->y", kTexture},
    {"missing",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       rms(g, n, x, g.null(), kDims);
     },
     "rms_norm(x ones .)->y", 0},
    {"half",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims, kHalf);
       rms(g, n, x, in(g, n, "m", {2, 1, 6}, kHalf), kDims, kHalf);
     },
     "rms_norm(x ones .)->t0; mul(t0 m)->y", kTexture / 2},
    {"other_layout",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       rms(g, n, x, in(g, n, "m", {1, 1, 6}, kFloat, 1, 2), kDims);
     },
     "rms_norm(x ones .)->t0; clone(m -)->t1; mul(t0 t1)->y", kTexture + 8 * 4},
    {"other_storage",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims, kFloat, 0);
       rms(g, n, x, in(g, n, "m", {1, 1, 6}), kDims, kFloat, "y", 0);
     },
     "rms_norm(x ones .)->t0; clone(m -)->t1; mul(t0 t1)->y", kTexture + 8 * 4},
    {"default_layout_of_rank_3",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       rms(g, n, x, in(g, n, "m", {2, 1, 6}, kFloat, 255, 255), kDims);
     },
     "rms_norm(x ones .)->t0; clone(m -)->t1; mul(t0 t1)->y", kTexture + 2 * 8 * 4},
    {"multiplier_of_other_dtype",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       rms(g, n, x, in(g, n, "m", {1, 1, 6}, kHalf), kDims);
     },
     "rms_norm(x ones .)->t0; clone(m -)->t1; mul(t0 t1)->y", kTexture + 8 * 4},
    {"multiplier_of_other_dtype_in_buffers",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims, kFloat, 0);
       rms(g, n, x, in(g, n, "m", {1, 1, 6}, kHalf, 0), kDims, kFloat, "y", 0);
     },
     "rms_norm(x ones .)->t0; _to_dim_order_copy(m - - - - - -)->t1; mul(t0 t1)->y", kTexture + 8 * 4},
    {"whole_numbers",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       rms(g, n, x, in(g, n, "m", {1, 1, 6}, 3), kDims);
     },
     "rms_norm(x ones .)->t0; _to_copy(m - - - - - -)->t1; mul(t0 t1)->y", kTexture + 8 * 4},
    {"other_dtype_and_storage",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       rms(g, n, x, in(g, n, "m", {1, 1, 6}, kHalf, 0), kDims);
     },
     "rms_norm(x ones .)->t0; _to_dim_order_copy(m - - - - - -)->t1; clone(t1 -)->t2; mul(t0 t2)->y", kTexture + 2 * 8 * 4},
    {"half_x_float_result",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims, kHalf);
       rms(g, n, x, in(g, n, "m", {1, 1, 6}), kDims);
     },
     "rms_norm(x ones .)->t0; clone(t0 -)->t1; mul(t1 m)->y", kTexture / 2 + kTexture},
    {"half_x_float_leaf",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims, kHalf, 0);
       rms(g, n, x, constant(g, n, "c", {6}), kDims, kFloat, "y", 0);
     },
     "prepack(c)->t0; rms_norm(x ones .)->t1; _to_dim_order_copy(t1 - - - - - -)->t2; mul(t2 t0)->y",
     kTexture / 2 + kTexture},
    {"only_the_result_differs",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims, kHalf, 0);
       rms(g, n, x, constant(g, n, "c", {6}, kHalf), kDims, kFloat, "y", 0);
     },
     "rms_norm(x c .)->t0; _to_dim_order_copy(t0 - - - - - -)->y", kTexture / 2},
    {"raises_the_result",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", {7, 6});
       rms(g, n, x, in(g, n, "m", {3, 2, 1, 6}), {3, 2, 7, 6});
     },
     "rms_norm(x ones .)->t0; mul(t0 m)->y", 7 * 8 * 4},
    {"one_weight_two_norms",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       const int z = in(g, n, "z", kDims);
       const int c = constant(g, n, "c", {7, 6});
       rms(g, n, x, c, kDims, kFloat, "a");
       rms(g, n, z, c, kDims, kFloat, "b");
     },
     "prepack(c)->t0; rms_norm(x ones .)->t1; mul(t1 t0)->a; rms_norm(z ones .)->t2; mul(t2 t0)->b", kTexture},
    {"a_chain_shares_memory",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       const int m = in(g, n, "m", {1, 1, 6});
       rms(g, n, x, m, kDims, kFloat, "a");
       const int a = n.rbegin()->first;
       rms(g, n, a, m, kDims, kFloat, "b");
     },
     "rms_norm(x ones .)->t0; mul(t0 m)->a; rms_norm(a ones .)->t1; mul(t1 m)->b", kTexture},
    {"layer_nothing",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       layer(g, n, x, g.null(), g.null(), kDims);
     },
     "native_layer_norm(x . ones zeros .)->[y mean rstd]", 0},
    {"layer_no_bias",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       const int w = constant(g, n, "w", {6});
       layer(g, n, x, w, g.null(), kDims);
     },
     "native_layer_norm(x . w zeros .)->[y mean rstd]", 0},
    {"layer_runtime_weight",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       const int w = in(g, n, "w", {6});
       layer(g, n, x, w, constant(g, n, "b", {6}), kDims);
     },
     "prepack(b)->t0; native_layer_norm(x . ones zeros .)->[t1 mean rstd]; mul(t1 w)->t2; add(t2 t0 1)->y", 2 * kTexture},
    {"layer_runtime_bias",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       const int w = constant(g, n, "w", {6});
       layer(g, n, x, w, in(g, n, "b", {6}), kDims);
     },
     "native_layer_norm(x . w zeros .)->[t0 mean rstd]; add(t0 b 1)->y", kTexture},
    {"layer_everything",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       const int w = in(g, n, "w", {6}, kHalf, 1, 2);
       layer(g, n, x, w, in(g, n, "b", {1, 7, 6}, kFloat, 0), kDims);
     },
     "native_layer_norm(x . ones zeros .)->[t0 mean rstd]; clone(w -)->t1; clone(t1 -)->t2; mul(t0 t2)->t3; clone(b -)->t4; "
     "add(t3 t4 "
     "1)->y",
     // t0, then t4; t1, then t3; t2
     2 * kTexture + 8 * 4},
};

// With as many arguments in the call of the delegate as its graph takes.
Buffer file_of(GraphBuilder& graph, size_t args) {
  ProgramSpec spec = program_of(graph);
  spec.methods[0].call_args.assign(args, 0);
  return spec.build();
}

class Rewrite : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, Rewrite, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

Buffer file_of(const Case& c, Names* names) {
  GraphBuilder graph;
  c.build(graph, *names);
  std::vector<uint32_t> inputs, outputs;
  for (const auto& [id, name] : *names) {
    (name == "x" || name == "m" || name == "z" || name == "w" || name == "b" ? inputs : outputs)
        .push_back(static_cast<uint32_t>(id));
  }
  // Constants of those names are no inputs, or they would be mutable; "c" is none either.
  GraphBuilder again;
  Names same;
  c.build(again, same);
  BlobSpec probe;
  probe.graph = graph.finish();
  const auto* values = vk::GetVkGraph(probe.graph.data())->values();
  inputs.erase(std::remove_if(inputs.begin(), inputs.end(),
                              [&](uint32_t id) { return values->Get(id)->value_as_VkTensor()->constant_id() >= 0; }),
               inputs.end());
  outputs.erase(std::remove_if(outputs.begin(), outputs.end(),
                               [&](uint32_t id) { return values->Get(id)->value_as_VkTensor()->constant_id() >= 0; }),
                outputs.end());
  again.inputs(inputs);
  again.outputs(outputs);
  return file_of(again, inputs.size() + outputs.size());
}

TEST_P(Rewrite, OpsAndTheirArguments) {
  Names names;
  Repaired repaired;
  repair_file(file_of(GetParam(), &names), &repaired);
  ASSERT_FALSE(repaired.error) << repaired.error.message;
  EXPECT_TRUE(repaired.repair.changed);
  EXPECT_FALSE(repaired.repair.repaired.empty());
  EXPECT_TRUE(repaired.repair.remaining.empty());
  EXPECT_EQ(graph_words(repaired, names), GetParam().words);
  EXPECT_EQ(repaired.repair.added_activation_bytes, GetParam().added_bytes);
  expect_stock_takes(repaired.graph());
  expect_no_overlap(repaired.graph());
}

TEST_P(Rewrite, KeepsWhatItDoesNotTouch) {
  Names names;
  Repaired repaired;
  repair_file(file_of(GetParam(), &names), &repaired);
  ASSERT_FALSE(repaired.error) << repaired.error.message;
  const GraphView& before = repaired.program.impl().blobs[0].graph;
  const GraphView& after = repaired.graph();
  ASSERT_GE(after.value_count(), before.value_count());
  for (int32_t id = 0; id < static_cast<int32_t>(before.value_count()); ++id) {
    ASSERT_EQ(after.value_type(id), before.value_type(id));
    if (const vk::VkTensor* tensor = before.tensor(id)) {
      EXPECT_EQ(after.tensor(id)->mem_obj_id(), tensor->mem_obj_id());
      EXPECT_EQ(after.tensor(id)->constant_id(), tensor->constant_id());
      EXPECT_EQ(after.describe(id).dims, before.describe(id).dims);
      EXPECT_EQ(after.is_input(id), before.is_input(id));
      EXPECT_EQ(after.is_output(id), before.is_output(id));
    }
  }
  EXPECT_EQ(after.root().version()->str(), before.root().version()->str());
  std::set<uint32_t> ids;
  for (uint32_t i = 0; i < after.op_count(); ++i) {
    ids.insert(after.op(i).node_id());
  }
  EXPECT_EQ(ids.size(), before.op_count());  // each original node id is there, and no other
  EXPECT_EQ(*ids.rbegin(), before.op_count() - 1);
}

TEST_P(Rewrite, RepairsToItself) {
  Names names;
  Repaired first, second;
  repair_file(file_of(GetParam(), &names), &first);
  ASSERT_FALSE(first.error) << first.error.message;
  Buffer file(first.repair.overlay.size());
  ASSERT_TRUE(first.repair.overlay.read(0, file.data(), file.size()));
  repair_file(file, &second);
  ASSERT_FALSE(second.error) << second.error.message;
  EXPECT_FALSE(second.repair.changed);
  EXPECT_TRUE(second.repair.repaired.empty());
  EXPECT_EQ(second.repair.overlay.size(), file.size());
  EXPECT_EQ(second.repair.overlay.extents().size(), 1u);
}

// 40 norms, one after the other: one temporary's memory for all, beyond the memory objects of the graph.
TEST(RewriteMany, NormsShareOneMemoryObject) {
  GraphBuilder graph;
  const int x = graph.input({1, 7, 4});
  const int m = graph.input({1, 1, 4});
  int current = x;
  for (int i = 0; i < 40; ++i) {
    const int eps = graph.number(1e-6);
    const int out = graph.tensor({1, 7, 4}, -1, kFloat, i % 2);
    graph.op("et_vk.rms_norm.default", {current, m, eps, out});
    current = out;
  }
  graph.outputs({static_cast<uint32_t>(current)});
  Repaired repaired;
  repair_file(file_of(graph, 3), &repaired);
  ASSERT_FALSE(repaired.error) << repaired.error.message;
  EXPECT_EQ(repaired.repair.repaired.size(), 40u);
  EXPECT_EQ(repaired.repair.added_activation_bytes, 7u * 4 * 4);
  std::set<int32_t> ids;
  for (int32_t id = 0; id < static_cast<int32_t>(repaired.graph().value_count()); ++id) {
    if (const vk::VkTensor* tensor = repaired.graph().tensor(id)) {
      ids.insert(tensor->mem_obj_id());
    }
  }
  EXPECT_EQ(ids, (std::set<int32_t>{-1, 0, 1, 2}));
  expect_no_overlap(repaired.graph());
  EXPECT_EQ(repaired.graph().root().constants()->size(), 1u);  // one constant of ones
}

TEST(RewriteMany, NoMemoryObjectIdIsLeft) {
  GraphBuilder graph;
  const int x = graph.tensor({7, 4}, -1, kFloat, INT32_MAX);
  const int m = graph.tensor({4});
  graph.inputs({static_cast<uint32_t>(x), static_cast<uint32_t>(m)});
  graph.outputs({static_cast<uint32_t>(graph.rms_norm(x, m, {7, 4}))});
  Repaired repaired;
  repair_file(file_of(graph, 3), &repaired);
  ASSERT_FALSE(repaired.error) << repaired.error.message;
  EXPECT_EQ(repaired.graph().tensor(repaired.graph().result(0))->mem_obj_id(), -1);
}

}  // namespace
}  // namespace etvk_guard::testing
