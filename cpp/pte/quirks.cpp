// SPDX-License-Identifier: Apache-2.0
#include "quirks.h"

#include <etvk_guard/contract.h>

#include <string_view>

#include "convolution.h"
#include "error.h"
#include "operands.h"

namespace etvk_guard {
namespace {

constexpr size_t kImageRank = 4;

template <size_t N>
bool is_one_of(std::string_view name, const std::string_view (&names)[N]) {
  bool found = false;
  for (const std::string_view one : names) {
    found = found || name == one;
  }
  return found;
}

constexpr std::string_view kOverDims[] = {"aten._log_softmax.default", "aten._softmax.default", "aten.amax.default",
                                          "aten.amin.default",         "aten.mean.dim",         "aten.sum.dim_IntList",
                                          "aten.var.dim"};
constexpr uint32_t kReduced = 1;  // a dim, or a list of them

constexpr std::string_view kOfTwo[] = {
    "aten.add.Tensor",        "aten.bitwise_and.Tensor", "aten.bitwise_or.Tensor", "aten.div.Tensor",  "aten.div.Tensor_mode",
    "aten.eq.Tensor",         "aten.ge.Tensor",          "aten.gt.Tensor",         "aten.le.Tensor",   "aten.logical_and.default",
    "aten.logical_or.default", "aten.lt.Tensor",         "aten.minimum.default",   "aten.mul.Tensor",  "aten.pow.Tensor_Tensor",
    "aten.sub.Tensor"};

constexpr std::string_view kNearest = "aten.upsample_nearest2d.vec";    // [in, size, factors, out]
constexpr std::string_view kBilinear = "aten.upsample_bilinear2d.vec";  // [in, size, align_corners, factors, out]

constexpr std::string_view kAveragePool = "aten.avg_pool2d.default";
constexpr std::string_view kMaxPools[] = {"aten.max_pool2d.default", "aten.max_pool2d_with_indices.default"};
constexpr uint32_t kPoolKernel = 1, kPoolStride = 2, kPoolPadding = 3, kPoolDilation = 4;

// One op under question.
struct Site {
  const GraphView& graph;
  uint32_t op_index;
  std::string_view name;
  uint32_t inputs;  // how many arguments there are before the result

  int32_t arg(uint32_t position) const { return graph.arg(op_index, position); }
  bool has(uint32_t position) const { return position < inputs; }
  TensorDesc describe(uint32_t position) const { return graph.describe(arg(position)); }
  bool is_tensor(uint32_t position) const { return has(position) && graph.tensor(arg(position)) != nullptr; }
  const TensorDesc result() const {
    const int32_t id = graph.result(op_index);
    return id < 0 ? TensorDesc() : graph.describe(id);
  }
};

using Quirks = std::vector<Quirk>;

void add(Quirks* into, FindingCode code, std::string argument, std::string message) {
  if (!message.empty()) {
    into->push_back({code, std::move(argument), std::move(message)});
  }
}

void number_types(const Site& site, Quirks* into) {
  const OpInfo* info = find_op(site.name);
  for (uint32_t position = 0; info != nullptr && position < 32 && site.has(position); ++position) {
    const vk::Double* given = site.graph.value(site.arg(position)).value_as_Double();
    if ((info->integers_mask >> position & 1u) == 0 || given == nullptr) {
      continue;
    }
    const bool left_out = site.name == kAveragePool;  // which takes no float for a divisor
    const std::string what = format("argument %u is stored as the float %g", position, given->double_val());
    add(into, left_out ? FindingCode::kArgumentIgnored : FindingCode::kNumberType, format("argument %u", position),
        what + (left_out ? ", and the op looks at integers only" : ", and the op reads an integer"));
  }
}

void lists(const Site& site, Quirks* into) {
  for (const ShortList& list : short_lists(site.graph, site.op_index)) {
    add(into, FindingCode::kShortList, list.name, format("%s has %u numbers, and the op reads two", list.name, list.count));
  }
}

void convolutions(const Site& site, Quirks* into) {
  Convolution call;
  if (read_convolution(site.graph, site.op_index, &call)) {
    add(into, FindingCode::kConvolutionGroups, "groups", wrong_groups(call));
    add(into, FindingCode::kDepthwiseEdge, "weight", cut_kernel(call));
    add(into, FindingCode::kConvolutionForm, "weight", refused_form(call));
    add(into, FindingCode::kArgumentIgnored, "weight", ignored_numbers(call));
  }
}

bool names_channels(const GraphView& graph, int32_t id) {
  const auto is_channels = [](int64_t dim) { return dim == 1 || dim == -3; };
  if (const vk::Int* dim = graph.value(id).value_as_Int(); dim != nullptr) {
    return is_channels(dim->int_val());
  }
  // Many ops may share one long list, of which no more than the first dims can mean anything.
  const vk::IntList* list = graph.value(id).value_as_IntList();
  const uint32_t count = list == nullptr || list->items() == nullptr ? 0 : list->items()->size();
  for (uint32_t i = 0; i < count && i < kImageRank; ++i) {
    if (is_channels(list->items()->Get(i))) {
      return true;
    }
  }
  return false;
}

// They lie behind each other along that dim (Reduce.cpp, Softmax.cpp and Var.cpp throw).
void reduced_channels(const Site& site, Quirks* into) {
  if (!is_one_of(site.name, kOverDims) || !site.has(kReduced)) {
    return;
  }
  const TensorDesc x = site.describe(0);
  if (x.dims.size() == kImageRank && x.dims[0] > 1 && names_channels(site.graph, site.arg(kReduced))) {
    add(into, FindingCode::kReducedChannels, "dim",
        "the second dim of " + dims_text(x.dims) + " is reduced, and there are several batches");
  }
}

void equality(const Site& site, Quirks* into) {
  if (compares_integers(site.graph, site.op_index)) {
    add(into, FindingCode::kIntegerEquality, "self",
        std::string("self is ") + dtype_name(site.describe(0).dtype) + ", for which no release has a shader");
  }
}

void no_dimensions(const Site& site, Quirks* into) {
  const uint32_t operands = is_one_of(site.name, kOfTwo) ? 2 : is_one_of(site.name, kOverDims) ? 1 : 0;
  bool none = operands != 0;
  for (uint32_t position = 0; position < operands; ++position) {
    none = none && site.is_tensor(position) && site.describe(position).dims.empty();
  }
  if (none) {
    add(into, FindingCode::kNoDimensions, "self", operands == 2 ? "neither operand has a dimension" : "self has no dimension");
  }
}

void rounding(const Site& site, Quirks* into) {
  constexpr uint32_t kMode = 2;
  if (site.name != "aten.div.Tensor_mode" || !site.has(kMode)) {
    return;
  }
  const vk::String* mode = site.graph.value(site.arg(kMode)).value_as_String();
  if (mode != nullptr && mode->string_val() != nullptr && mode->string_val()->string_view() == "trunc") {
    add(into, FindingCode::kRoundingMode, "rounding_mode", "it is \"trunc\", and the shader rounds down");
  }
}

void indices(const Site& site, Quirks* into) {
  constexpr uint32_t kIndices = 1;
  if (site.name != "aten.index.Tensor" || !site.has(kIndices) ||
      site.graph.value_type(site.arg(kIndices)) != vk::GraphTypes::ValueList) {
    return;
  }
  const auto* items = site.graph.value_list(site.arg(kIndices));
  if (const uint32_t count = items == nullptr ? 0 : items->size(); count != 1) {
    add(into, FindingCode::kSeveralIndices, "indices", format("there are %u indices, and the op takes one", count));
  }
}

// Sizes that the new pixels are taken from by nearest neighbour; by a factor, in the float32 in which Upsample.cpp multiplies.
void resampling(const Site& site, Quirks* into) {
  if ((site.name != kNearest && site.name != kBilinear) || site.inputs < 3) {
    return;
  }
  const std::vector<int64_t> from = site.describe(0).dims, to = site.result().dims;
  if (from.size() != kImageRank || to.size() != kImageRank) {
    return;
  }
  const vk::DoubleList* given = site.graph.value(site.arg(site.inputs - 1)).value_as_DoubleList();
  const bool by_factor = site.graph.is_null(site.arg(1)) && given != nullptr && given->items() != nullptr && given->items()->size() == 2;
  for (uint32_t i = 0; i < 2; ++i) {
    const int64_t size = from[kImageRank - 2 + i], made = to[kImageRank - 2 + i];
    const std::string sizes = format("%lld pixels become %lld", static_cast<long long>(size), static_cast<long long>(made));
    if (site.name == kNearest && size > 0 && made % size != 0) {
      return add(into, FindingCode::kResampledSizes, "input", sizes + ", which is no whole multiple");
    }
    if (by_factor && static_cast<float>(size) * static_cast<float>(given->items()->Get(i)) != static_cast<float>(made)) {
      return add(into, FindingCode::kResamplingFactor, "scale_factors",
                 sizes + format(", which is not %g times as many", given->items()->Get(i)));
    }
  }
}

void gathers(const Site& site, Quirks* into) {
  if (int64_t dim = 0; gathers_from_the_end(site.graph, site.op_index, &dim)) {
    add(into, FindingCode::kNegativeDim, "dim", "it is counted from the end, which the op does not do");
  }
}

constexpr void (*kQuestions[])(const Site&, Quirks*) = {number_types,  lists,    convolutions, reduced_channels, equality,
                                                       no_dimensions, rounding, indices,      resampling,       gathers};

}  // namespace

std::vector<Quirk> find_quirks(const GraphView& graph, uint32_t op_index) {
  Quirks found;
  const uint32_t args = graph.arg_count(op_index);
  const Site site{graph, op_index, graph.op_name(op_index), args == 0 ? 0 : args - 1};
  for (const auto& question : kQuestions) {
    if (site.inputs > 0) {
      question(site, &found);
    }
  }
  return found;
}

std::vector<ShortList> short_lists(const GraphView& graph, uint32_t op_index) {
  std::vector<ShortList> found;
  const std::string_view name = graph.op_name(op_index);
  const uint32_t args = graph.arg_count(op_index);
  const auto look = [&](uint32_t position, const char* label, const Numbers* instead) {
    const Numbers numbers = position + 1 < args ? read_numbers(graph, graph.arg(op_index, position)) : Numbers();
    if (!numbers.is_list || numbers.count == 2) {
      return;
    }
    ShortList list{position, label, numbers.count, false, {0, 0}};
    list.known = read_pair(numbers.count == 0 && instead != nullptr ? *instead : numbers, list.numbers);
    found.push_back(list);
  };
  Convolution call;
  const bool max_pool = is_one_of(name, kMaxPools);
  if (max_pool || name == kAveragePool) {
    const Numbers kernel = args > kPoolKernel + 1 ? read_numbers(graph, graph.arg(op_index, kPoolKernel)) : Numbers();
    look(kPoolKernel, "kernel_size", nullptr);
    look(kPoolStride, "stride", &kernel);
    look(kPoolPadding, "padding", nullptr);
    if (max_pool) {
      look(kPoolDilation, "dilation", nullptr);
    }
  } else if (read_convolution(graph, op_index, &call) && call.of_images()) {
    look(Convolution::kStride, "stride", nullptr);
    look(Convolution::kPadding, "padding", nullptr);
    if (!call.pointwise()) {
      look(Convolution::kDilation, "dilation", nullptr);
    }
    if (call.transposed) {
      look(Convolution::kOutputPadding, "output_padding", nullptr);
    }
  }
  return found;
}

bool gathers_from_the_end(const GraphView& graph, uint32_t op_index, int64_t* dim) {
  if (graph.op_name(op_index) != kGatherOp || graph.arg_count(op_index) <= kGatherDim + 1) {
    return false;
  }
  const vk::Int* given = graph.value(graph.arg(op_index, kGatherDim)).value_as_Int();
  if (given == nullptr || given->int_val() >= 0 || graph.tensor(graph.arg(op_index, 0)) == nullptr) {
    return false;
  }
  const auto rank = static_cast<int64_t>(graph.describe(graph.arg(op_index, 0)).dims.size());
  *dim = given->int_val() < -rank ? -1 : given->int_val() + rank;
  return true;
}

bool compares_integers(const GraphView& graph, uint32_t op_index) {
  if (graph.op_name(op_index) != "aten.eq.Tensor" || graph.arg_count(op_index) != 3) {
    return false;
  }
  const DType dtype = graph.describe(graph.arg(op_index, 0)).dtype;
  return graph.tensor(graph.arg(op_index, 0)) != nullptr && (dtype == DType::kInt32 || dtype == DType::kInt64);
}

bool is_misplaced(const TensorDesc& indices, const TensorDesc& out) {
  const bool other = storage_of(indices) == Storage::kTexture3D && layout_of(indices) == Layout::kChannelsPacked;
  return !other && is_tensor(out) && storage_of(out) == Storage::kTexture3D && layout_of(out) != Layout::kWidthPacked;
}

}  // namespace etvk_guard
