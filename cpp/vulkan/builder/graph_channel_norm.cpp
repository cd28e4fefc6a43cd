// SPDX-License-Identifier: Apache-2.0
//
// Group norm and batch norm, by the delegate's own builders and ops: the recipe says which.
#include "channel_recipe.h"
#include "graph_norm.h"
#include "graph_values.h"

namespace etvk_guard::vulkan {
namespace {

constexpr int64_t kBehindChannels = 2;

// Positions of the arguments that both ops have. results: out, and mean and rstd of a group norm.
struct Call {
  ChannelKind kind;
  ValueRef x, weight, bias;
  Refs results;
};

struct Site {
  ComputeGraph& graph;
  const Call& call;
  const ChannelSite& desc;
  const ChannelRecipe& recipe;
  const versions::OpFunction& stock;
  Temporaries temporaries;

  ValueRef image(const std::vector<int64_t>& dims) { return temporaries.add(dims, desc.x.dtype, Storage::kTexture3D, Layout::kChannelsPacked); }
};

ChannelSite describe_call(ComputeGraph& graph, const Call& call, const Refs& args) {
  ChannelSite site;
  site.kind = call.kind;
  site.x = describe_value(graph, call.x);
  site.weight = describe_value(graph, call.weight);
  site.bias = describe_value(graph, call.bias);
  site.out = describe_value(graph, call.results.at(0));
  if (call.kind == ChannelKind::kBatch) {
    site.mean = describe_value(graph, args.at(3));
    site.variance = describe_value(graph, args.at(4));
  }
  return site;
}

// x as stock's shaders want it: a channels-packed texture of four dimensions.
ValueRef make_image(Site& site) {
  ValueRef value = site.call.x;
  std::vector<int64_t> dims = site.desc.x.dims;
  if (site.recipe.relayout_x) {
    const ValueRef moved = site.image(dims);
    add_clone(site.graph, value, moved);
    value = moved;
  }
  for (int i = 0; i < site.recipe.missing_dims; ++i) {
    dims.insert(dims.begin() + kBehindChannels, 1);
    const ValueRef wider = site.image(dims);
    add_op(site.graph, "aten.unsqueeze_copy.default", {value, site.graph.add_scalar<int64_t>(kBehindChannels), wider});
    value = wider;
  }
  return value;
}

// Back to the rank and the representation of the result.
void write_result(Site& site, ValueRef value, std::vector<int64_t> dims) {
  const ValueRef out = site.call.results.at(0);
  for (int i = 0; i < site.recipe.missing_dims; ++i) {
    dims.erase(dims.begin() + kBehindChannels);
    const bool last = i + 1 == site.recipe.missing_dims && !site.recipe.relayout_out;
    const ValueRef narrower = last ? out : site.image(dims);
    add_op(site.graph, "aten.squeeze_copy.dims", {value, site.graph.add_scalar_list<int64_t>({kBehindChannels}), narrower});
    value = narrower;
  }
  if (site.recipe.relayout_out) {
    add_clone(site.graph, value, out);
  }
}

// A weight or bias as [C, 1, 1], to broadcast over an image.
ValueRef make_column(Site& site, ValueRef operand, const TensorDesc& desc) {
  OperandSteps steps;
  steps.used = true;
  steps.prepack = desc.kind == Kind::kConstant;
  steps.dtype = site.desc.x.dtype;
  steps.cast = desc.dtype != steps.dtype;
  steps.storage = Storage::kTexture3D;
  steps.layout = Layout::kWidthPacked;
  const ValueRef ready = prepare(site.graph, site.temporaries, operand, desc, steps);
  const std::vector<int64_t> dims = {site.desc.x.dims.at(1), 1, 1};
  const ValueRef column = site.image(dims);
  add_op(site.graph, "aten.view_copy.default", {ready, site.graph.add_scalar_list(std::vector<int64_t>(dims)), column});
  return column;
}

// Stock writes the statistics of a group norm to plain buffers: elsewhere it gets temporaries, which are cloned afterwards.
Refs statistics_for_stock(Site& site) {
  Refs results(site.call.results.begin() + 1, site.call.results.end());
  if (site.call.kind == ChannelKind::kGroup) {
    for (ValueRef& ref : results) {
      if (!site.graph.is_contiguous_buffer_tensor(ref)) {
        const TensorDesc desc = describe_value(site.graph, ref);
        ref = site.temporaries.add(desc.dims, desc.dtype, Storage::kBuffer, Layout::kWidthPacked);
      }
    }
  }
  return results;
}

void add_stock_norm(Site& site, Refs args, ValueRef image, ValueRef out) {
  const int64_t channels = site.desc.x.dims.at(1);
  args.at(0) = image;
  if (site.recipe.unit_weight) {
    args.at(1) = add_filled_tref(site.graph, channels, site.desc.x.dtype, true);
  }
  if (site.recipe.zero_bias) {
    args.at(2) = add_filled_tref(site.graph, channels, site.desc.x.dtype, false);
  }
  const Refs statistics = statistics_for_stock(site);
  Refs results = statistics;
  results.insert(results.begin(), out);
  args.back() = site.graph.add_value_list(std::move(results));
  site.stock(site.graph, args);
  for (size_t i = 0; i < statistics.size(); ++i) {
    if (const ValueRef wanted = site.call.results[i + 1]; wanted != statistics[i]) {
      add_clone(site.graph, statistics[i], wanted);
    }
  }
}

void carry_out(Site& site, const Refs& args) {
  std::vector<int64_t> dims = site.desc.x.dims;
  dims.insert(dims.begin() + kBehindChannels, static_cast<size_t>(site.recipe.missing_dims), 1);
  const bool moved = site.recipe.missing_dims != 0 || site.recipe.relayout_out;
  const ValueRef image_out = moved ? site.image(dims) : site.call.results.at(0);
  ValueRef value = site.recipe.multiply || site.recipe.add ? site.image(dims) : image_out;
  add_stock_norm(site, args, make_image(site), value);
  if (site.recipe.multiply) {
    const ValueRef product = site.recipe.add ? site.image(dims) : image_out;
    add_op(site.graph, "aten.mul.Tensor", {value, make_column(site, site.call.weight, site.desc.weight), product});
    value = product;
  }
  if (site.recipe.add) {
    const ValueRef bias = make_column(site, site.call.bias, site.desc.bias);
    add_op(site.graph, "aten.add.Tensor", {value, bias, site.graph.add_scalar<int64_t>(1), image_out});
  }
  if (moved) {
    write_result(site, image_out, dims);
  }
}

Path build_channel_norm(ComputeGraph& graph, ChannelKind kind, const Refs& args, const versions::OpFunction& stock) {
  const Call call{kind, args.at(0), args.at(1), args.at(2), *graph.get_value_list(args.back())};
  const ChannelSite desc = describe_call(graph, call, args);
  const ChannelRecipe recipe = make_channel_recipe(desc);
  if (recipe.path == Path::kRefused) {
    VK_THROW("etvk-guard: ", recipe.message);
  }
  if (recipe.path == Path::kStock) {
    stock(graph, args);
  } else {
    Site site{graph, call, desc, recipe, stock, Temporaries(&graph)};
    carry_out(site, args);
  }
  return recipe.path;
}

}  // namespace

Path build_group_norm(ComputeGraph& graph, const Refs& args, const versions::OpFunction& stock) {
  return build_channel_norm(graph, ChannelKind::kGroup, args, stock);
}

Path build_batch_norm(ComputeGraph& graph, const Refs& args, const versions::OpFunction& stock) {
  return build_channel_norm(graph, ChannelKind::kBatch, args, stock);
}

}  // namespace etvk_guard::vulkan
