// SPDX-License-Identifier: Apache-2.0
#include "convolution.h"

#include <string_view>

#include "error.h"
#include "operands.h"

namespace etvk_guard {
namespace {

constexpr std::string_view kConvolutions[] = {"aten.convolution.default", "conv_with_clamp.default",
                                              "et_vk.conv_with_clamp.default"};
constexpr uint32_t kFewestArgs = 10;
constexpr int64_t kTexel = 4;

bool is_convolution(const GraphView& graph, uint32_t op_index) {
  bool found = false;
  for (const std::string_view name : kConvolutions) {
    found = found || graph.op_name(op_index) == name;
  }
  return found && graph.arg_count(op_index) >= kFewestArgs;
}

bool is_square(const Convolution& call, int64_t side) { return call.weight[2] == side && call.weight[3] == side; }

// Depthwise, and there is no shader for its kernel's size.
bool is_untiled(const Convolution& call) { return call.depthwise() && !is_square(call, 3) && !is_square(call, 5); }

bool is_pointwise_row(const Convolution& call) {
  return call.weight.size() == 3 && call.weight[2] == 1 && !call.transposed && call.height_packed;
}

bool is_strided(const Convolution& call) {
  int64_t stride[2], dilation[2];
  return read_pair(call.stride, stride) && read_pair(call.dilation, dilation) &&
         (stride[0] != dilation[0] || stride[1] != dilation[1]);
}

std::string kernel_text(const Convolution& call) {
  return format("%lldx%lld", static_cast<long long>(call.weight[2]), static_cast<long long>(call.weight[3]));
}

}  // namespace

Numbers read_numbers(const GraphView& graph, int32_t id) {
  Numbers numbers;
  const vk::IntList* list = graph.value(id).value_as_IntList();
  if (list == nullptr) {
    return numbers;
  }
  numbers.is_list = true;
  numbers.count = list->items() == nullptr ? 0 : list->items()->size();
  numbers.first = numbers.count > 0 ? list->items()->Get(0) : 0;
  numbers.second = numbers.count > 1 ? list->items()->Get(1) : 0;
  return numbers;
}

bool read_pair(const Numbers& numbers, int64_t into[2]) {
  into[0] = numbers.first;
  into[1] = numbers.count == 1 ? numbers.first : numbers.second;
  return numbers.count == 1 || numbers.count == 2;
}

bool read_convolution(const GraphView& graph, uint32_t op_index, Convolution* into) {
  if (!is_convolution(graph, op_index)) {
    return false;
  }
  const auto arg = [&](uint32_t position) { return graph.arg(op_index, position); };
  Convolution call;
  call.weight = graph.describe(arg(Convolution::kWeight)).dims;
  if (call.weight.size() != 3 && call.weight.size() != 4) {
    return false;
  }
  call.stride = read_numbers(graph, arg(Convolution::kStride));
  call.padding = read_numbers(graph, arg(Convolution::kPadding));
  call.dilation = read_numbers(graph, arg(Convolution::kDilation));
  call.output_padding = read_numbers(graph, arg(Convolution::kOutputPadding));
  const vk::Bool* transposed = graph.value(arg(Convolution::kTransposed)).value_as_Bool();
  call.transposed = transposed != nullptr && transposed->bool_val();
  const vk::Int* groups = graph.value(arg(Convolution::kGroups)).value_as_Int();
  call.groups = groups == nullptr ? 1 : groups->int_val();
  call.height_packed = layout_of(graph.describe(arg(0))) == Layout::kHeightPacked;
  *into = std::move(call);
  return true;
}

std::string wrong_groups(const Convolution& call) {
  if (call.groups <= 1 || !call.of_images() || call.depthwise()) {
    return {};
  }
  const std::string what =
      format("groups is %lld, weight is %s", static_cast<long long>(call.groups), dims_text(call.weight).c_str());
  if (call.transposed) {
    return what + "; the shader of a transposed convolution knows no groups";
  }
  const int64_t made = call.weight[0], read = call.weight[1];
  if (call.pointwise()) {
    return what + "; the shader for kernels of 1 by 1 knows no groups";
  }
  const bool whole = made % call.groups == 0 && made / call.groups % kTexel == 0 && read % kTexel == 0;
  return whole ? std::string() : what + "; the channels of a group are no multiple of four on both sides";
}

std::string cut_kernel(const Convolution& call) {
  int64_t padding[2];
  if (!is_untiled(call) || is_strided(call) || call.weight[2] <= 1 || !read_pair(call.padding, padding) || padding[1] <= 0) {
    return {};
  }
  return format("a depthwise kernel of %s with a padding of %lld is cut off wrongly at the right edge", kernel_text(call).c_str(),
                static_cast<long long>(padding[1]));
}

std::string refused_form(const Convolution& call) {
  int64_t dilation[2];
  if (call.transposed && read_pair(call.dilation, dilation) && (dilation[0] > 1 || dilation[1] > 1)) {
    return "it is transposed, and has a dilation";
  }
  if (is_untiled(call) && is_strided(call)) {
    return "no shader is depthwise, of " + kernel_text(call) + ", and has a stride unlike its dilation";
  }
  return is_pointwise_row(call) && call.groups != 1 ? "the kernel is one number, and it is in groups" : "";
}

std::string ignored_numbers(const Convolution& call) {
  const bool plain = call.stride.first == 1 && call.padding.first == 0;
  return is_pointwise_row(call) && !plain ? "the kernel is one number, and stride and padding are not looked at" : "";
}

}  // namespace etvk_guard
