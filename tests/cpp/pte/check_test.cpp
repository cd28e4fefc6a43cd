// SPDX-License-Identifier: Apache-2.0
//
// check(): one small graph a case; what is expected is written down from the contract's words.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>

#include "builder.h"

namespace etvk_guard::testing {
namespace {

using Expected = std::vector<std::pair<FindingCode, std::string>>;  // code, argument

struct Case {
  std::string name;
  std::function<void(GraphBuilder&)> build;
  Expected expected;
  std::string words = "";  // in the first finding's message
};
void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

int runtime(GraphBuilder& g, const std::vector<uint32_t>& dims, int8_t dtype = GraphBuilder::kFloat) {
  const int a = g.input(dims, dtype);
  const int out = g.tensor(dims, -1, dtype);
  g.op("aten.sigmoid.default", {a, out});
  return out;
}

void linear(GraphBuilder& g, int weight, int bias) {
  g.op("aten.linear.default", {g.input({2, 4}), weight, bias, g.tensor({2, 8})});
}

// A convolution of images with a weight of `out` by `in` by kernel by kernel.
void convolution(GraphBuilder& g, uint32_t out, uint32_t in, uint32_t kernel, int64_t groups, bool transposed = false,
                 const char* name = "aten.convolution.default") {
  const int x = g.input({1, static_cast<uint32_t>(in * groups), 5, 5});
  const int weight = g.constant({out, in, kernel, kernel});
  const int ones = g.int_list({1, 1}), zeros = g.int_list({0, 0});
  const int flag = g.boolean(transposed);
  std::vector<int32_t> args{x, weight, g.null(), ones, zeros, ones, flag, zeros, g.integer(groups)};
  if (std::string(name) != "aten.convolution.default") {
    args.insert(args.end(), {g.number(0), g.number(6)});
  }
  args.push_back(g.tensor({1, out, 5, 5}));
  g.op(name, args);
}

const Expected kGroups{{FindingCode::kConvolutionGroups, "groups"}};

const Case kCases[] = {
    {"convolution", [](GraphBuilder& g) { convolution(g, 6, 3, 3, 1); }, {}},
    {"convolution_depthwise", [](GraphBuilder& g) { convolution(g, 6, 1, 3, 6); }, {}},
    {"convolution_depthwise_point", [](GraphBuilder& g) { convolution(g, 6, 1, 1, 6); }, {}},
    {"convolution_groups_of_fours", [](GraphBuilder& g) { convolution(g, 8, 4, 3, 2); }, {}},
    {"convolution_groups_in", [](GraphBuilder& g) { convolution(g, 8, 2, 3, 2); }, kGroups, "no multiple of four"},
    {"convolution_groups_out", [](GraphBuilder& g) { convolution(g, 6, 4, 3, 2); }, kGroups, "weight is [6, 4, 3, 3]"},
    {"convolution_groups_point", [](GraphBuilder& g) { convolution(g, 8, 4, 1, 2); }, kGroups, "1 by 1"},
    {"convolution_groups_transposed", [](GraphBuilder& g) { convolution(g, 8, 4, 3, 2, true); }, kGroups, "transposed"},
    {"convolution_transposed", [](GraphBuilder& g) { convolution(g, 8, 4, 3, 1, true); }, {}},
    {"convolution_groups_clamped",
     [](GraphBuilder& g) { convolution(g, 8, 2, 3, 2, false, "et_vk.conv_with_clamp.default"); },
     kGroups,
     "groups is 2"},
    {"pad_by_a_dynamic_size",
     [](GraphBuilder& g) {
       const int pad = g.value_list({g.integer(0), g.symint(3)});
       g.op("aten.constant_pad_nd.default", {g.input({2, 4}), pad, g.null(), g.tensor({2, 7})});
     },
     {{FindingCode::kSymbolicSize, "argument 1"}},
     "computed while running"},
    {"view_by_a_dynamic_size",
     [](GraphBuilder& g) {
       const int sizes = g.value_list({g.integer(2), g.symint(4)});
       g.op("aten.view_copy.default", {g.input({8}), sizes, g.tensor({2, 4})});
     },
     {}},
    {"rms_leaf", [](GraphBuilder& g) { g.rms_norm(g.input({1, 7, 4}), g.constant({4}), {1, 7, 4}); }, {}},
    {"rms_leaf_with_leading_ones",
     [](GraphBuilder& g) { g.rms_norm(g.input({1, 7, 4}), g.constant({1, 1, 4}), {1, 7, 4}); },
     {}},
    {"rms_leaf_half", [](GraphBuilder& g) { g.rms_norm(g.input({7, 4}, 4), g.constant({4}, 4), {7, 4}, 4); }, {}},
    {"rms_runtime",
     [](GraphBuilder& g) { g.rms_norm(g.input({1, 7, 4}), runtime(g, {1, 1, 4}), {1, 7, 4}); },
     {{FindingCode::kNormWeightRuntime, "weight"}},
     "float32 [1, 1, 4], made by op 0 (aten.sigmoid.default); x is float32 [1, 7, 4]"},
    {"rms_input",
     [](GraphBuilder& g) { g.rms_norm(g.input({7, 4}), g.input({4}), {7, 4}); },
     {{FindingCode::kNormWeightRuntime, "weight"}},
     "an input of the graph"},
    {"rms_scalar",
     [](GraphBuilder& g) { g.rms_norm(g.input({7, 4}), g.symint(3), {7, 4}); },
     {{FindingCode::kNormWeightRuntime, "weight"}},
     "SymInt"},
    {"rms_none",
     [](GraphBuilder& g) { g.rms_norm(g.input({7, 4}), g.null(), {7, 4}); },
     {{FindingCode::kNormWeightMissing, "weight"}},
     "weight is missing"},
    {"rms_mutable_input",
     [](GraphBuilder& g) {
       const int x = g.input({7, 4});
       const int w = g.constant({4});
       g.inputs({static_cast<uint32_t>(x), static_cast<uint32_t>(w)});
       g.rms_norm(x, w, {7, 4});
     },
     {{FindingCode::kPrepackMutable, "weight"}},
     "a mutable buffer"},
    {"rms_mutable_written",
     [](GraphBuilder& g) {
       const int x = g.input({7, 4});
       const int w = g.constant({4});
       g.rms_norm(x, w, {7, 4});
       g.op("aten.sigmoid.default", {x, w});
     },
     {{FindingCode::kPrepackMutable, "weight"}},
     "made by op 1"},
    {"rms_constant_rows",
     [](GraphBuilder& g) { g.rms_norm(g.input({7, 4}), g.constant({7, 4}), {7, 4}); },
     {{FindingCode::kNormWeightShape, "weight"}},
     "a constant, float32 [7, 4]; x is float32 [7, 4]"},
    {"rms_constant_one",
     [](GraphBuilder& g) { g.rms_norm(g.input({7, 4}), g.constant({1}), {7, 4}); },
     {{FindingCode::kNormWeightShape, "weight"}}},
    {"rms_constant_column",
     [](GraphBuilder& g) { g.rms_norm(g.input({4, 4}), g.constant({4, 1}), {4, 4}); },
     {{FindingCode::kNormWeightShape, "weight"}}},
    {"rms_constant_rank_0",
     [](GraphBuilder& g) { g.rms_norm(g.input({7, 4}), g.constant({}), {7, 4}); },
     {{FindingCode::kNormWeightShape, "weight"}}},
    {"rms_broadcast_up",
     [](GraphBuilder& g) { g.rms_norm(g.input({7, 4}), g.constant({2, 1, 4}), {2, 7, 4}); },
     {{FindingCode::kNormWeightShape, "weight"}, {FindingCode::kNormResultShape, "out"}}},
    {"rms_runtime_broadcast_up",
     [](GraphBuilder& g) { g.rms_norm(g.input({1, 4}), runtime(g, {3, 4}), {3, 4}); },
     {{FindingCode::kNormWeightRuntime, "weight"}, {FindingCode::kNormResultShape, "out"}}},
    {"rms_leaf_raises_rank",
     [](GraphBuilder& g) { g.rms_norm(g.input({7, 4}), g.constant({1, 1, 4}), {1, 7, 4}); },
     {{FindingCode::kNormResultShape, "out"}},
     "out is float32 [1, 7, 4]"},
    {"rms_half_x_float_weight_in_textures",
     [](GraphBuilder& g) { g.rms_norm(g.input({7, 4}, GraphBuilder::kHalf), g.constant({4}), {7, 4}); },
     {}},
    {"rms_half_x_float_weight",
     [](GraphBuilder& g) {
       const int x = g.input({7, 4}, GraphBuilder::kHalf, GraphBuilder::kBuffer);
       g.rms_norm(x, g.constant({4}), {7, 4}, GraphBuilder::kFloat, GraphBuilder::kBuffer);
     },
     {{FindingCode::kNormDtype, "weight"}, {FindingCode::kNormDtype, "out"}},
     "weight is a constant, float32 [4]; x is float16"},
    {"rms_channels_packed_texture",
     [](GraphBuilder& g) {
       const int x = g.tensor({7, 4}, -1, GraphBuilder::kFloat, -1, GraphBuilder::kTexture, 2);
       const int eps = g.number(1e-6);
       const int out = g.tensor({7, 4}, -1, GraphBuilder::kFloat, -1, GraphBuilder::kTexture, 2);
       g.op("et_vk.rms_norm.default", {x, g.constant({4}), eps, out});
     },
     {{FindingCode::kNormLayout, "x"}}},
    {"rms_channels_packed_buffer",
     [](GraphBuilder& g) {
       const int x = g.tensor({7, 4}, -1, GraphBuilder::kFloat, -1, GraphBuilder::kBuffer, 2);
       const int eps = g.number(1e-6);
       const int out = g.tensor({7, 4}, -1, GraphBuilder::kFloat, -1, GraphBuilder::kBuffer, 2);
       g.op("et_vk.rms_norm.default", {x, g.constant({4}), eps, out});
     },
     {}},
    {"layer_leaf", [](GraphBuilder& g) { g.layer_norm(g.input({7, 4}), g.constant({4}), g.constant({4}), {7, 4}); }, {}},
    {"layer_nothing",
     [](GraphBuilder& g) { g.layer_norm(g.input({7, 4}), g.null(), g.null(), {7, 4}); },
     {{FindingCode::kNormWeightMissing, "weight"}, {FindingCode::kNormBiasMissing, "bias"}}},
    {"layer_runtime",
     [](GraphBuilder& g) {
       const int w = runtime(g, {4});
       const int b = runtime(g, {4});
       g.layer_norm(g.input({7, 4}), w, b, {7, 4});
     },
     {{FindingCode::kNormWeightRuntime, "weight"}, {FindingCode::kNormBiasRuntime, "bias"}},
     "made by op 0"},
    {"layer_bias_shape",
     [](GraphBuilder& g) { g.layer_norm(g.input({7, 4}), g.constant({4}), g.constant({7, 4}), {7, 4}); },
     {{FindingCode::kNormBiasShape, "bias"}}},
    {"weight_made_by_a_list",
     [](GraphBuilder& g) {
       const int x = g.input({7, 4});
       const int w = g.tensor({4});
       g.op("aten.split_with_sizes_copy.default", {x, g.int_list({1}), g.integer(0), g.value_list({w})});
       g.rms_norm(x, w, {7, 4});
     },
     {{FindingCode::kNormWeightRuntime, "weight"}},
     "made by op 0"},
    {"linear_leaf", [](GraphBuilder& g) { linear(g, g.constant({8, 4}), g.null()); }, {}},
    {"linear_runtime",
     [](GraphBuilder& g) { linear(g, runtime(g, {8, 4}), g.constant({8})); },
     {{FindingCode::kPrepackRuntime, "weight"}},
     "weight is a run-time value, float32 [8, 4], made by op 0 (aten.sigmoid.default)"},
    {"linear_runtime_bias",
     [](GraphBuilder& g) { linear(g, g.constant({8, 4}), g.input({8})); },
     {{FindingCode::kPrepackRuntime, "bias"}}},
    {"linear_missing", [](GraphBuilder& g) { linear(g, g.null(), g.null()); }, {{FindingCode::kPrepackMissing, "weight"}}},
    {"linear_mutable",
     [](GraphBuilder& g) {
       const int w = g.constant({8, 4});
       linear(g, w, g.null());
       g.op("aten.sigmoid.default", {w, w});
     },
     {{FindingCode::kPrepackMutable, "weight"}}},
    {"embedding_runtime",
     [](GraphBuilder& g) {
       const int w = g.input({9, 4});
       g.op("aten.embedding.default", {w, g.input({2}), g.integer(0), g.null(), g.null(), g.tensor({2, 4})});
     },
     {{FindingCode::kPrepackRuntime, "weight"}}},
    {"unknown_op", [](GraphBuilder& g) { g.op("my.own.op", {g.input({4}), g.tensor({4})}); }, {{FindingCode::kUnknownOp, ""}}},
    {"norm_with_too_few_arguments",
     [](GraphBuilder& g) { g.op("et_vk.rms_norm.default", {g.input({4}), g.tensor({4})}); },
     {{FindingCode::kNormWeightMissing, "weight"}}},
    {"norm_without_arguments",
     [](GraphBuilder& g) { g.op("et_vk.rms_norm.default", {}); },
     {{FindingCode::kNormWeightMissing, "weight"}}},
};

class CheckCase : public ::testing::TestWithParam<Case> {};

TEST_P(CheckCase, FindsWhatTheContractSays) {
  GraphBuilder graph;
  GetParam().build(graph);
  const Buffer file = program_of(graph).build();
  Opened opened;
  open_and_check(file, &opened);
  ASSERT_FALSE(opened.error) << opened.error.message;
  Expected found;
  for (const Finding& finding : opened.report.findings) {
    if (finding.code == FindingCode::kUnknownOp && finding.where.op != "my.own.op") {
      continue;  // ops around the norm: whether the contract knows them is not the question here
    }
    found.emplace_back(finding.code, finding.where.argument);
    EXPECT_EQ(finding.where.method, "forward");
    EXPECT_EQ(finding.where.delegate, 0);
    EXPECT_LT(finding.where.offset, file.size());
    if (found.size() == 1) {
      EXPECT_NE(finding.message.find(GetParam().words), std::string::npos) << finding.message;
    }
  }
  EXPECT_EQ(found, GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(Table, CheckCase, ::testing::ValuesIn(kCases), [](const auto& info) { return info.param.name; });

// The offset in a finding is that of the op's table: its first field (node_id) can be read there.
TEST(Check, OffsetIsTheOperatorCall) {
  GraphBuilder graph;
  const int x = graph.input({7, 4});
  const int w = runtime(graph, {4});
  graph.rms_norm(x, w, {7, 4});
  const Buffer file = program_of(graph).build();
  Opened opened;
  open_and_check(file, &opened);
  ASSERT_FALSE(opened.error) << opened.error.message;
  const Finding* norm = nullptr;
  for (const Finding& finding : opened.report.findings) {
    norm = finding.code == FindingCode::kNormWeightRuntime ? &finding : norm;
  }
  ASSERT_NE(norm, nullptr);
  EXPECT_EQ(norm->where.op_index, 1);
  EXPECT_EQ(norm->where.op, "et_vk.rms_norm.default");
  const auto* op = reinterpret_cast<const vk::OperatorCall*>(file.data() + norm->where.offset);
  EXPECT_EQ(op->node_id(), 1u);
  EXPECT_EQ(op->name()->str(), "et_vk.rms_norm.default");
}

TEST(Check, FixableNormsAreMarked) {
  GraphBuilder graph;
  graph.rms_norm(graph.input({7, 4}), runtime(graph, {4}), {7, 4});
  graph.op("et_vk.rms_norm.default", {0, 1});
  const Buffer file = program_of(graph).build();
  Opened opened;
  open_and_check(file, &opened);
  ASSERT_FALSE(opened.error);
  std::vector<bool> fixable;
  for (const Finding& finding : opened.report.findings) {
    if (finding.code != FindingCode::kUnknownOp) {
      fixable.push_back(finding.fixable);
    }
  }
  EXPECT_EQ(fixable, (std::vector<bool>{true, false}));
}

TEST(Check, GuardedDelegateIsAnnouncedNotBlamed) {
  GraphBuilder graph;
  graph.rms_norm(graph.input({7, 4}), runtime(graph, {4}), {7, 4});
  ProgramSpec spec = program_of(graph);
  spec.methods[0].delegates[0].specs = {"something", "etvk_guard_runtime"};
  const Buffer file = spec.build();
  Opened opened;
  open_and_check(file, &opened);
  ASSERT_FALSE(opened.error);
  int announced = 0;
  for (const Finding& finding : opened.report.findings) {
    announced += finding.code == FindingCode::kNeedsGuardedRuntime;
    EXPECT_NE(finding.code, FindingCode::kNormWeightRuntime);
  }
  EXPECT_EQ(announced, 1);
}

TEST(Check, SummaryNamesEveryDelegate) {
  GraphBuilder graph;
  graph.rms_norm(graph.input({1, 4}), graph.constant({4}), {1, 4});
  ProgramSpec spec = program_of(graph);
  spec.methods.push_back(spec.methods[0]);  // shares the blob
  spec.methods[1].name = "decode";
  DelegateSpec other;
  other.backend = "XnnpackBackend";
  other.index = 1;  // anything: blobs of other backends are not read
  spec.methods[1].delegates.push_back(other);
  const Buffer file = spec.build();
  Opened opened;
  open_and_check(file, &opened);
  ASSERT_FALSE(opened.error) << opened.error.message;
  ASSERT_EQ(opened.report.delegates.size(), 3u);
  EXPECT_EQ(opened.report.delegates[1].method, "decode");
  EXPECT_EQ(opened.report.delegates[1].graph, opened.report.delegates[0].graph);
  EXPECT_EQ(opened.report.delegates[1].ops, std::vector<std::string_view>{"et_vk.rms_norm.default"});
  EXPECT_EQ(opened.report.delegates[2].backend, "XnnpackBackend");
  EXPECT_EQ(opened.report.delegates[2].graph, nullptr);
  EXPECT_TRUE(opened.report.clean());
}

}  // namespace
}  // namespace etvk_guard::testing
