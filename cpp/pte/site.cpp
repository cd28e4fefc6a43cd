// SPDX-License-Identifier: Apache-2.0
#include "site.h"

#include "program.h"
#include "verify.h"

namespace etvk_guard {
namespace {

struct NamedArgs {
  std::string_view name;
  NormArgs args;
};
constexpr NamedArgs kNorms[] = {
    {kRmsNorm, {NormKind::kRms, 4, 0, -1, 1, -1, -1, -1, 2, 3}},
    {kLayerNorm, {NormKind::kLayer, 6, 0, 1, 2, 3, -1, -1, 4, 5}},
    {kGroupNorm, {NormKind::kGroup, 9, 0, -1, 1, 2, -1, -1, 7, 8}},
    {kBatchNorm, {NormKind::kBatch, 8, 0, -1, 1, 2, 3, 4, 6, 7}},
};

int32_t list_length(const GraphView& graph, int32_t id) {
  const vk::IntList* ints = graph.value(id).value_as_IntList();
  return ints == nullptr ? 0 : static_cast<int32_t>(count(ints->items()));
}

}  // namespace

const NormArgs* norm_args(const GraphView& graph, uint32_t op_index) {
  for (const NamedArgs& row : kNorms) {
    if (graph.op_name(op_index) == row.name && graph.arg_count(op_index) == row.args.count) {
      return &row.args;
    }
  }
  return nullptr;
}

bool norm_eps(const GraphView& graph, uint32_t op_index, double* into) {
  const NormArgs& args = *norm_args(graph, op_index);
  const vk::Double* eps = graph.value(graph.arg(op_index, static_cast<uint32_t>(args.eps))).value_as_Double();
  if (eps == nullptr) {
    return false;
  }
  *into = eps->double_val();
  return true;
}

NormSite make_site(const GraphView& graph, uint32_t op_index) {
  const NormArgs& args = *norm_args(graph, op_index);
  const auto operand = [&](int32_t position) {
    return position < 0 ? TensorDesc() : graph.describe(graph.arg(op_index, static_cast<uint32_t>(position)));
  };
  NormSite site;
  site.kind = args.kind;
  site.x = operand(args.x);
  site.weight = operand(args.weight);
  site.bias = operand(args.bias);
  site.mean = operand(args.mean);
  site.variance = operand(args.variance);
  const int32_t result = graph.result(op_index);
  site.out = result < 0 ? TensorDesc() : graph.describe(result);
  if (args.normalized_shape >= 0) {
    site.normalized_dims = list_length(graph, graph.arg(op_index, static_cast<uint32_t>(args.normalized_shape)));
  }
  return site;
}

}  // namespace etvk_guard
