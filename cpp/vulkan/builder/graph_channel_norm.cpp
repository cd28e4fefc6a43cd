// SPDX-License-Identifier: Apache-2.0
//
// Group norm and batch norm, by the delegate's own builders and ops: the recipe says which.
#include "graph_norm.h"
#include "graph_values.h"

namespace etvk_guard::vulkan {
namespace {

// The operands of a call. results: out, and mean and rstd of a group norm. kDummyValueRef: what the op does not have.
struct Call {
  NormKind kind;
  ValueRef x, weight, bias, mean, variance, eps;
  Refs results;
};

Call read_call(ComputeGraph& graph, NormKind kind, const Refs& args) {
  const bool batch = kind == NormKind::kBatch;
  const ValueRef mean = batch ? args.at(3) : kDummyValueRef;
  const ValueRef variance = batch ? args.at(4) : kDummyValueRef;
  return {kind, args.at(0), args.at(1), args.at(2), mean, variance, args.at(args.size() - 2), *graph.get_value_list(args.back())};
}

NormSite describe_call(ComputeGraph& graph, const Call& call) {
  NormSite site;
  site.kind = call.kind;
  site.x = describe_value(graph, call.x);
  site.weight = describe_value(graph, call.weight);
  site.bias = describe_value(graph, call.bias);
  site.out = describe_value(graph, call.results.at(0));
  site.mean = describe_value(graph, call.mean);
  site.variance = describe_value(graph, call.variance);
  return site;
}

struct Site {
  ComputeGraph& graph;
  const Call& call;
  const NormSite& desc;
  const NormPlan& plan;
  const versions::OpFunction& stock;
  Temporaries temporaries;

  ValueRef image(const std::vector<int64_t>& dims, DType dtype) {
    return temporaries.add(dims, dtype, Storage::kTexture3D, Layout::kChannelsPacked);
  }
  ValueRef image() { return image(plan.norm_dims, plan.norm_dtype); }
  ValueRef ready(ValueRef operand, const TensorDesc& from, const OperandSteps& steps) {
    return prepare(graph, temporaries, operand, from, steps);
  }
};

// x as the norm wants it: a channels-packed texture, of four dimensions for stock's shaders.
ValueRef make_image(Site& site) {
  ValueRef value = site.call.x;
  std::vector<int64_t> dims = site.desc.x.dims;
  if (site.plan.relayout_x) {
    const ValueRef moved = site.image(dims, site.desc.x.dtype);
    add_clone(site.graph, value, moved);
    value = moved;
  }
  for (int32_t i = 0; i < site.plan.added_dims; ++i) {
    const auto last = static_cast<int64_t>(dims.size());
    dims.push_back(1);
    const ValueRef wider = site.image(dims, site.desc.x.dtype);
    add_op(site.graph, "aten.unsqueeze_copy.default", {value, site.graph.add_scalar(last), wider});
    value = wider;
  }
  return value;
}

// Back to the rank and the representation of the result.
void write_result(Site& site, ValueRef value) {
  const ValueRef out = site.call.results.at(0);
  if (site.plan.added_dims != 0) {
    std::vector<int64_t> added;
    for (size_t dim = site.desc.out.dims.size(); dim < site.plan.norm_dims.size(); ++dim) {
      added.push_back(static_cast<int64_t>(dim));
    }
    const ValueRef narrower = site.plan.relayout_out ? site.image(site.desc.out.dims, site.desc.out.dtype) : out;
    add_op(site.graph, "aten.squeeze_copy.dims", {value, site.graph.add_scalar_list(std::move(added)), narrower});
    value = narrower;
  }
  if (site.plan.relayout_out) {
    add_clone(site.graph, value, out);
  }
}

// Stock writes the statistics of a group norm to plain buffers: elsewhere it gets temporaries, which are cloned afterwards.
Refs statistics_for_stock(Site& site) {
  Refs results(site.call.results.begin() + 1, site.call.results.end());
  if (site.call.kind == NormKind::kGroup) {
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
  const int64_t channels = weight_length(site.desc);
  args.at(0) = image;
  if (site.plan.unit_weight) {
    args.at(1) = add_filled_tref(site.graph, {channels}, site.plan.norm_dtype, true);
  }
  if (site.plan.zero_bias) {
    args.at(2) = add_filled_tref(site.graph, {channels}, site.plan.norm_dtype, false);
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

// (x - mean) * rsqrt(variance + eps), of statistics that are computed.
void add_computed_norm(Site& site, ValueRef image, ValueRef out) {
  const std::vector<int64_t>& column = site.plan.variance.view;
  const DType dtype = site.plan.variance.dtype;
  const ValueRef centred = site.image();
  const ValueRef mean = site.ready(site.call.mean, site.desc.mean, site.plan.mean);
  add_op(site.graph, "aten.sub.Tensor", {image, mean, site.graph.add_scalar<int64_t>(1), centred});
  const ValueRef variance = site.ready(site.call.variance, site.desc.variance, site.plan.variance);
  const ValueRef sum = site.image(column, dtype);
  // Eps times one: the op's alpha is a number.
  add_op(site.graph, "aten.add.Tensor", {variance, add_filled_tref(site.graph, column, dtype, true), site.call.eps, sum});
  const ValueRef scale = site.image(column, dtype);
  add_op(site.graph, "aten.rsqrt.default", {sum, scale});
  add_op(site.graph, "aten.mul.Tensor", {centred, scale, out});
}

void carry_out(Site& site, const Refs& args) {
  const NormPlan& plan = site.plan;
  const bool moved = plan.added_dims != 0 || plan.relayout_out;
  const ValueRef image_out = moved ? site.image() : site.call.results.at(0);
  ValueRef value = plan.multiply.used || plan.add.used ? site.image() : image_out;
  const ValueRef image = make_image(site);
  plan.computed ? add_computed_norm(site, image, value) : add_stock_norm(site, args, image, value);
  if (plan.multiply.used) {
    const ValueRef product = plan.add.used ? site.image() : image_out;
    const ValueRef weight = site.ready(site.call.weight, site.desc.weight, plan.multiply);
    add_op(site.graph, "aten.mul.Tensor", {value, weight, product});
    value = product;
  }
  if (plan.add.used) {
    const ValueRef bias = site.ready(site.call.bias, site.desc.bias, plan.add);
    add_op(site.graph, "aten.add.Tensor", {value, bias, site.graph.add_scalar<int64_t>(1), image_out});
  }
  if (moved) {
    write_result(site, image_out);
  }
}

Path build_channel_norm(ComputeGraph& graph, NormKind kind, const Refs& args, const versions::OpFunction& stock) {
  const Call call = read_call(graph, kind, args);
  const NormSite desc = describe_call(graph, call);
  const Recipe recipe = make_recipe(desc, nullptr);
  if (recipe.path == Path::kRefused) {
    VK_THROW("etvk-guard: ", recipe.message);
  }
  if (recipe.path == Path::kStock) {
    stock(graph, args);
  } else {
    Site site{graph, call, desc, recipe.plan, stock, Temporaries(&graph)};
    carry_out(site, args);
  }
  return recipe.path;
}

}  // namespace

Path build_group_norm(ComputeGraph& graph, const Refs& args, const versions::OpFunction& stock) {
  return build_channel_norm(graph, NormKind::kGroup, args, stock);
}

Path build_batch_norm(ComputeGraph& graph, const Refs& args, const versions::OpFunction& stock) {
  return build_channel_norm(graph, NormKind::kBatch, args, stock);
}

}  // namespace etvk_guard::vulkan
