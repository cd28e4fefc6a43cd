// SPDX-License-Identifier: Apache-2.0
//
// Calls that stock refuses or gets wrong, weights apart: what is found, what of it can be repaired, and the ops that come of it.
#include <functional>
#include <ostream>

#include "repair_run.h"

namespace etvk_guard::testing {
namespace {

constexpr uint8_t kWidthPacked = 0, kHeightPacked = 1, kChannelsPacked = 2;
constexpr int8_t kBool = 0, kInt32 = 3;

struct Found {
  FindingCode code;
  std::string argument;
  bool fixable;
  bool operator==(const Found& other) const {
    return code == other.code && argument == other.argument && fixable == other.fixable;
  }
};
void PrintTo(const Found& found, std::ostream* os) {
  const FindingInfo* info = find_finding(found.code);
  *os << (info == nullptr ? "?" : info->name) << " of " << found.argument << (found.fixable ? ", fixable" : "");
}

struct Case {
  std::string name;
  std::function<void(GraphBuilder&)> build;
  std::vector<Found> found;
  std::string ops = "";    // after repair, as words of the last op: its lists and integers; "": unchanged
  std::string words = "";  // in the first finding's message
};
void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

struct Call {
  std::vector<uint32_t> x = {1, 8, 9, 11}, weight = {8, 1, 7, 7}, out = {1, 8, 9, 11};
  std::vector<int64_t> stride = {1, 1}, padding = {3, 3}, dilation = {1, 1}, output_padding = {0, 0};
  bool transposed = false;
  int64_t groups = 8;
  double float_groups = 0;  // instead
  uint8_t layout = kChannelsPacked, storage = GraphBuilder::kTexture;
  int8_t dtype = GraphBuilder::kFloat;
  bool runtime_weight = false;
};

void convolution(GraphBuilder& g, const Call& call) {
  const int x = g.tensor(call.x, -1, call.dtype, -1, call.storage, call.layout);
  const int weight = call.runtime_weight ? g.tensor(call.weight) : g.constant(call.weight, call.dtype);
  const int out = g.tensor(call.out, -1, call.dtype, -1, call.storage, call.layout);
  const int groups = call.float_groups != 0 ? g.number(call.float_groups) : g.integer(call.groups);
  g.op("aten.convolution.default",
       {x, weight, g.null(), g.int_list(call.stride), g.int_list(call.padding), g.int_list(call.dilation),
        g.boolean(call.transposed), g.int_list(call.output_padding), groups, out});
  g.inputs(call.runtime_weight ? std::vector<uint32_t>{static_cast<uint32_t>(x), static_cast<uint32_t>(weight)}
                               : std::vector<uint32_t>{static_cast<uint32_t>(x)});
  g.outputs({static_cast<uint32_t>(out)});
}
std::function<void(GraphBuilder&)> of(Call call) {
  return [call](GraphBuilder& g) { convolution(g, call); };
}
template <typename Change>
std::function<void(GraphBuilder&)> with(Change change) {
  Call call;
  change(call);
  return of(call);
}
Call row() {
  Call call;
  call.x = call.out = {1, 8, 9};
  call.weight = {8, 8, 1};
  call.stride = call.dilation = {1};
  call.padding = call.output_padding = {0};
  call.groups = 1;
  call.layout = kHeightPacked;
  return call;
}
template <typename Change>
std::function<void(GraphBuilder&)> row_with(Change change) {
  Call call = row();
  change(call);
  return of(call);
}

void pool(GraphBuilder& g, const std::vector<int64_t>& kernel, const std::vector<int64_t>& stride,
          const std::vector<int64_t>& padding, double divisor = 0) {
  const int x = g.input({1, 4, 6, 6}), out = g.tensor({1, 4, 3, 3});
  const int by = divisor == 0 ? g.null() : g.number(divisor);
  g.op("aten.avg_pool2d.default",
       {x, g.int_list(kernel), g.int_list(stride), g.int_list(padding), g.boolean(false), g.boolean(true), by, out});
  g.inputs({static_cast<uint32_t>(x)});
  g.outputs({static_cast<uint32_t>(out)});
}

void compare(GraphBuilder& g, const std::vector<uint32_t>& dims, int8_t dtype, int8_t result = kBool) {
  const int a = g.input(dims, dtype), b = g.input(dims, dtype);
  const int out = g.tensor(dims, -1, result, -1, GraphBuilder::kTexture, kWidthPacked);
  g.op("aten.eq.Tensor", {a, b, out});
  g.inputs({static_cast<uint32_t>(a), static_cast<uint32_t>(b)});
  g.outputs({static_cast<uint32_t>(out)});
}

void unary(GraphBuilder& g, const char* name, const std::vector<uint32_t>& dims, const std::vector<uint32_t>& result,
           const std::function<std::vector<int32_t>(GraphBuilder&)>& rest) {
  const int x = g.input(dims), out = g.tensor(result);
  std::vector<int32_t> args{x};
  for (const int32_t id : rest(g)) {
    args.push_back(id);
  }
  args.push_back(out);
  g.op(name, args);
  g.inputs({static_cast<uint32_t>(x)});
  g.outputs({static_cast<uint32_t>(out)});
}
void resample(GraphBuilder& g, const char* name, const std::vector<uint32_t>& to, std::vector<double> factors) {
  unary(g, name, {1, 3, 4, 5}, to, [&](GraphBuilder& b) {
    const auto list = vk::CreateDoubleList(b.fbb(), b.fbb().CreateVector(factors)).Union();
    std::vector<int32_t> rest{b.null()};
    if (std::string(name) == "aten.upsample_bilinear2d.vec") {
      rest.push_back(b.boolean(false));
    }
    rest.push_back(b.typed(vk::GraphTypes::DoubleList, list));
    return rest;
  });
}
void divide(GraphBuilder& g, const char* mode) {
  unary(g, "aten.div.Tensor_mode", {2, 3}, {2, 3}, [&](GraphBuilder& b) {
    const auto text = vk::CreateString(b.fbb(), b.fbb().CreateString(mode)).Union();
    return std::vector<int32_t>{b.tensor({2, 3}), b.typed(vk::GraphTypes::String, text)};
  });
}
void index(GraphBuilder& g, const std::vector<int32_t>& extra) {
  unary(g, "aten.index.Tensor", {5, 4}, {2, 4}, [&](GraphBuilder& b) {
    std::vector<int32_t> items(extra);
    items.push_back(b.tensor({2}, -1, kInt32));
    return std::vector<int32_t>{b.value_list(items)};
  });
}
void gather(GraphBuilder& g, int64_t dim) {
  unary(g, "aten.gather.default", {5, 4}, {2, 4}, [&](GraphBuilder& b) {
    return std::vector<int32_t>{b.integer(dim), b.tensor({2, 4}, -1, kInt32), b.boolean(false)};
  });
}
void add(GraphBuilder& g, const std::vector<uint32_t>& left, const std::vector<uint32_t>& right) {
  unary(g, "aten.add.Tensor", left, left.size() > right.size() ? left : right,
        [&](GraphBuilder& b) { return std::vector<int32_t>{b.tensor(right), b.integer(1)}; });
}

const Found kEdge{FindingCode::kDepthwiseEdge, "weight", true};
const Found kNoPad{FindingCode::kDepthwiseEdge, "weight", false};
const Found kForm{FindingCode::kConvolutionForm, "weight", false};
const Found kIgnored{FindingCode::kArgumentIgnored, "weight", false};
const Found kNumber{FindingCode::kNumberType, "argument 8", true};
const Found kNoDims{FindingCode::kNoDimensions, "self", false};

Found short_list(const char* name, bool fixable = true) { return {FindingCode::kShortList, name, fixable}; }

const std::string kPad = "constant_pad_nd [3 3 3 3] 0; convolution ";
const std::string kCompared = "ge; le; bitwise_and";

const Case kCases[] = {
    {"edge", of({}), {kEdge}, kPad + "[1 1] [0 0] [1 1] [0 0] 8", "7x7 with a padding of 3"},
    {"edge_half", with([](Call& c) { c.dtype = GraphBuilder::kHalf; }), {kEdge}, kPad + "[1 1] [0 0] [1 1] [0 0] 8"},
    {"edge_unpadded", with([](Call& c) { c.padding = {0, 0}; }), {}},
    {"edge_padded_below", with([](Call& c) { c.padding = {3, 0}; }), {}},
    {"edge_of_one_row", with([](Call& c) { c.weight = {8, 1, 1, 7}; }), {}},
    {"edge_of_one_channel",
     with([](Call& c) { c.x = c.out = {1, 1, 9, 11}, c.weight = {1, 1, 7, 7}, c.groups = 1; }),
     {kEdge},
     kPad + "[1 1] [0 0] [1 1] [0 0] 1"},
    {"edge_tiled", with([](Call& c) { c.weight = {8, 1, 5, 5}; }), {}},
    {"edge_strided_as_dilated", with([](Call& c) { c.stride = c.dilation = {2, 2}; }), {kEdge}, kPad + "[2 2] [0 0] [2 2] [0 0] 8"},
    {"edge_strided", with([](Call& c) { c.stride = {2, 2}; }), {kForm}, "", "stride unlike its dilation"},
    {"edge_of_short_lists",
     with([](Call& c) { c.stride = c.padding = c.dilation = {1}, c.padding = {3}; }),
     {short_list("stride"), short_list("padding"), short_list("dilation"), kEdge},
     kPad + "[1 1] [0 0] [1 1] [0 0] 8"},
    {"edge_in_a_buffer",
     with([](Call& c) { c.storage = GraphBuilder::kBuffer; }),
     {kNoPad},
     "",
     "repair has no rewrite: the input is float32 [1, 8, 9, 11]"},
    {"edge_packed_by_width", with([](Call& c) { c.layout = kWidthPacked; }), {kNoPad}},
    {"edge_too_large",
     with([](Call& c) { c.x = c.out = {1, 8, 9, 16380}; }),
     {kNoPad},
     "",
     "does not fit a texture when it is padded"},
    {"edge_padded_by_less_than_nothing", with([](Call& c) { c.padding = {-1, 3}; }), {kNoPad}},
    {"edge_with_a_run_time_weight",
     with([](Call& c) { c.runtime_weight = true; }),
     {{FindingCode::kPrepackRuntime, "weight", false}, kEdge},
     kPad + "[1 1] [0 0] [1 1] [0 0] 8"},
    {"float_groups", with([](Call& c) { c.weight = {8, 8, 3, 3}, c.float_groups = 1; }), {kNumber}, "convolution [1 1] [3 3] [1 1] [0 0] 1",
     "argument 8 is stored as the float 1"},
    {"float_groups_no_integer",
     with([](Call& c) { c.weight = {8, 8, 3, 3}, c.float_groups = 1.5; }),
     {{FindingCode::kNumberType, "argument 8", false}}},
    {"float_groups_too_large",
     with([](Call& c) { c.weight = {8, 8, 3, 3}, c.float_groups = 1e300; }),
     {{FindingCode::kNumberType, "argument 8", false}}},
    {"short_list_of_a_point",
     with([](Call& c) { c.weight = {8, 8, 1, 1}, c.groups = 1, c.dilation = {1}; }),
     {}},
    {"short_list_transposed",
     with([](Call& c) { c.weight = {8, 8, 3, 3}, c.groups = 1, c.transposed = true, c.output_padding = {0}; }),
     {short_list("output_padding")},
     "convolution [1 1] [3 3] [1 1] [0 0] 1"},
    {"list_of_three",
     with([](Call& c) { c.weight = {8, 8, 3, 3}, c.groups = 1, c.stride = {1, 1, 1}; }),
     {short_list("stride", false)},
     "",
     "stride has 3 numbers"},
    {"one_list_of_two_is_fixed",
     with([](Call& c) { c.weight = {8, 8, 3, 3}, c.groups = 1, c.stride = {1, 1, 1}, c.padding = {2}; }),
     {short_list("stride", false), short_list("padding")},
     "convolution [1 1 1] [2 2] [1 1] [0 0] 1"},
    {"transposed_and_dilated",
     with([](Call& c) { c.weight = {8, 8, 3, 3}, c.groups = 1, c.transposed = true, c.dilation = {1, 2}; }),
     {kForm},
     "",
     "transposed, and has a dilation"},
    {"row", of(row()), {}},
    {"row_strided", row_with([](Call& c) { c.stride = {2}; }), {kIgnored}, "", "not looked at"},
    {"row_padded", row_with([](Call& c) { c.padding = {1}; }), {kIgnored}},
    {"row_in_groups", row_with([](Call& c) { c.weight = {8, 4, 1}, c.groups = 2; }), {kForm}, "", "in groups"},
    {"row_strided_in_channels", row_with([](Call& c) { c.stride = {2}, c.layout = kChannelsPacked; }), {}},
    {"row_of_three", row_with([](Call& c) { c.weight = {8, 8, 3}, c.stride = {2}; }), {}},
    {"pool", [](GraphBuilder& g) { pool(g, {2, 2}, {2, 2}, {0, 0}); }, {}},
    {"pool_without_stride",
     [](GraphBuilder& g) { pool(g, {3, 2}, {}, {0, 0}); },
     {short_list("stride")},
     "avg_pool2d [3 2] [3 2] [0 0]",
     "stride has 0 numbers"},
    {"pool_of_one_number",
     [](GraphBuilder& g) { pool(g, {2}, {}, {1}); },
     {short_list("kernel_size"), short_list("stride"), short_list("padding")},
     "avg_pool2d [2 2] [2 2] [1 1]"},
    {"pool_of_nothing",
     [](GraphBuilder& g) { pool(g, {}, {}, {0, 0}); },
     {short_list("kernel_size", false), short_list("stride", false)}},
    {"pool_by_a_float",
     [](GraphBuilder& g) { pool(g, {2, 2}, {2, 2}, {0, 0}, 3); },
     {{FindingCode::kArgumentIgnored, "argument 6", true}},
     "avg_pool2d [2 2] [2 2] [0 0] 3",
     "looks at integers only"},
    {"equal", [](GraphBuilder& g) { compare(g, {2, 3}, kInt32); }, {{FindingCode::kIntegerEquality, "self", true}}, kCompared},
    {"equal_floats", [](GraphBuilder& g) { compare(g, {2, 3}, GraphBuilder::kFloat); }, {}},
    {"equal_into_integers",
     [](GraphBuilder& g) { compare(g, {2, 3}, kInt32, kInt32); },
     {{FindingCode::kIntegerEquality, "self", false}},
     "",
     "only int32 values with dims are compared"},
    {"equal_numbers",
     [](GraphBuilder& g) { compare(g, {}, kInt32); },
     {{FindingCode::kIntegerEquality, "self", false}, kNoDims}},
    {"add_numbers", [](GraphBuilder& g) { add(g, {}, {}); }, {kNoDims}, "", "neither operand"},
    {"add_a_number", [](GraphBuilder& g) { add(g, {3}, {}); }, {}},
    {"softmax_of_a_number",
     [](GraphBuilder& g) {
       unary(g, "aten._softmax.default", {}, {}, [](GraphBuilder& b) { return std::vector<int32_t>{b.integer(0), b.boolean(false)}; });
     },
     {kNoDims}},
    {"divided_towards_zero",
     [](GraphBuilder& g) { divide(g, "trunc"); },
     {{FindingCode::kRoundingMode, "rounding_mode", false}},
     "",
     "rounds down"},
    {"divided_downwards", [](GraphBuilder& g) { divide(g, "floor"); }, {}},
    {"index", [](GraphBuilder& g) { index(g, {}); }, {}},
    {"index_of_columns",
     [](GraphBuilder& g) { index(g, {g.null()}); },
     {{FindingCode::kSeveralIndices, "indices", false}},
     "",
     "there are 2 indices"},
    {"gather", [](GraphBuilder& g) { gather(g, 1); }, {}},
    {"gather_from_the_end",
     [](GraphBuilder& g) { gather(g, -2); },
     {{FindingCode::kNegativeDim, "dim", true}},
     "gather 0",
     "counted from the end"},
    {"gather_beyond", [](GraphBuilder& g) { gather(g, -3); }, {{FindingCode::kNegativeDim, "dim", false}}},
    {"nearest", [](GraphBuilder& g) { resample(g, "aten.upsample_nearest2d.vec", {1, 3, 8, 10}, {2, 2}); }, {}},
    {"nearest_no_multiple",
     [](GraphBuilder& g) { resample(g, "aten.upsample_nearest2d.vec", {1, 3, 8, 7}, {2, 1.5}); },
     {{FindingCode::kResampledSizes, "input", false}},
     "",
     "5 pixels become 7"},
    {"bilinear", [](GraphBuilder& g) { resample(g, "aten.upsample_bilinear2d.vec", {1, 3, 6, 10}, {1.5, 2}); }, {}},
    {"bilinear_by_a_factor",
     [](GraphBuilder& g) { resample(g, "aten.upsample_bilinear2d.vec", {1, 3, 6, 8}, {1.5, 1.7}); },
     {{FindingCode::kResamplingFactor, "scale_factors", false}},
     "",
     "not 1.7 times as many"},
};

class Quirks : public ::testing::TestWithParam<Case> {};

std::vector<Found> of_findings(const std::vector<Finding>& findings) {
  std::vector<Found> found;
  for (const Finding& finding : findings) {
    found.push_back({finding.code, finding.where.argument, finding.fixable});
  }
  return found;
}

// "pad [3 3 3 3] 0; convolution [1 1] .. 8": each op with its lists and integers.
std::string words_of(const GraphView& graph) {
  std::string words;
  for (uint32_t op = 0; op < graph.op_count(); ++op) {
    const std::string name(graph.op_name(op));
    const size_t first = name.find('.') + 1;
    words += (op == 0 ? "" : "; ") + name.substr(first, name.find('.', first) - first);
    for (uint32_t i = 0; i < graph.arg_count(op); ++i) {
      const vk::VkValue& value = graph.value(graph.arg(op, i));
      if (const vk::Int* number = value.value_as_Int()) {
        words += " " + std::to_string(number->int_val());
      } else if (const vk::IntList* list = value.value_as_IntList()) {
        std::string items;
        for (const int64_t item : *list->items()) {
          items += (items.empty() ? "" : " ") + std::to_string(item);
        }
        words += " [" + items + "]";
      }
    }
  }
  return words;
}

TEST_P(Quirks, AreFoundAndRepaired) {
  const Case& c = GetParam();
  GraphBuilder graph;
  c.build(graph);
  const auto made = run(program_of(graph).build());
  ASSERT_FALSE(made->error) << made->error.message;
  Report report;
  ASSERT_FALSE(check(made->program, &report));
  EXPECT_EQ(of_findings(report.findings), c.found);
  if (!c.words.empty()) {
    ASSERT_FALSE(report.findings.empty());
    EXPECT_NE(report.findings.front().message.find(c.words), std::string::npos) << report.findings.front().message;
  }
  std::vector<Found> fixable, left;
  for (const Found& found : c.found) {
    (found.fixable ? fixable : left).push_back(found);
  }
  EXPECT_EQ(of_findings(made->repair.repaired), fixable);
  EXPECT_EQ(of_findings(made->repair.remaining), left);
  EXPECT_EQ(made->repair.changed, !fixable.empty());
  const std::string before = words_of(made->program.impl().blobs[0].graph);
  EXPECT_EQ(words_of(made->fixed_program.impl().blobs[0].graph), c.ops.empty() ? before : c.ops);
}

INSTANTIATE_TEST_SUITE_P(Table, Quirks, ::testing::ValuesIn(kCases), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace etvk_guard::testing
