// SPDX-License-Identifier: Apache-2.0
#include "graph_norm.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>

#include "device_text.h"
#include "graph_values.h"

namespace etvk_guard::vulkan {
namespace {

namespace utils = vkcompute::utils;
namespace vkapi = vkcompute::vkapi;

using Args = std::vector<vkcompute::ArgGroup>;

// The operands of a call. results: out, and for layer norm also mean and rstd.
struct Call {
  NormKind kind;
  ValueRef x, weight, bias, eps;
  Refs results;
  int32_t normalized_dims;
};

Call read_call(ComputeGraph& graph, NormKind kind, const Refs& args) {
  if (kind == NormKind::kRms) {
    return {kind, args.at(0), args.at(1), kDummyValueRef, args.at(2), {args.at(3)}, 1};
  }
  const auto normalized = static_cast<int32_t>(graph.get_int_list(args.at(1))->size());
  return {kind, args.at(0), args.at(2), args.at(3), args.at(4), *graph.get_value_list(args.at(5)), normalized};
}

NormSite describe_call(ComputeGraph& graph, const Call& call) {
  NormSite site;
  site.kind = call.kind;
  site.x = describe_value(graph, call.x);
  site.weight = describe_value(graph, call.weight);
  site.bias = describe_value(graph, call.bias);
  site.out = describe_value(graph, call.results.at(0));
  site.normalized_dims = call.normalized_dims;
  return site;
}

kernels::DeviceLimits device_limits(ComputeGraph& graph) { return parse_device_limits(graph.context()->adapter_ptr()->stringize()); }

// ---- our kernel

const vkapi::ShaderInfo& shader_info(const kernels::KernelKey& key) {
  static std::mutex mutex;
  static std::map<const kernels::Kernel*, vkapi::ShaderInfo> made;
  const kernels::Kernel* kernel = kernels::find_kernel(key);
  if (kernel == nullptr) {
    VK_THROW("etvk-guard: a kernel that was chosen does not exist");
  }
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = made.find(kernel);
  return found != made.end() ? found->second : made.emplace(kernel, versions::make_shader_info(*kernel)).first->second;
}

// All that is needed to plan the dispatch again when sizes change. Missing operands are kDummyValueRef.
struct Dispatch {
  kernels::NormProblem problem;
  kernels::Plan plan;
  kernels::DeviceLimits device;
  ValueRef x, weight, shift;
};

// The dispatch for the sizes that the graph's values have now; without workgroups if x is empty.
kernels::Plan plan_now(ComputeGraph* graph, const Dispatch& dispatch) {
  kernels::NormProblem problem = dispatch.problem;
  set_whcn(graph->sizes_of(dispatch.x), problem.x_sizes);
  const auto fits = [&](kernels::OperandMode mode, ValueRef operand) {
    std::int32_t sizes[4] = {1, 1, 1, 1};
    if (operand != kDummyValueRef) {
      set_whcn(graph->sizes_of(operand), sizes);
    }
    return still_fits(mode, problem.x_sizes, operand == kDummyValueRef ? nullptr : sizes);
  };
  kernels::Plan plan = dispatch.plan;
  const kernels::PlanStatus status = kernels::replan(problem, dispatch.device, &plan);
  if (status == kernels::PlanStatus::kEmpty) {
    std::fill(std::begin(plan.groups), std::end(plan.groups), 0u);
  } else if (status != kernels::PlanStatus::kOk || !fits(problem.weight, dispatch.weight) || !fits(problem.shift, dispatch.shift)) {
    const auto text = [&](ValueRef ref) { return ref == kDummyValueRef ? "none" : describe(describe_value(*graph, ref)); };
    VK_THROW("etvk-guard: a norm cannot be resized to x ", text(dispatch.x), " with weight ", text(dispatch.weight), " and bias ", text(dispatch.shift));
  }
  return plan;
}

void resize_norm(ComputeGraph* graph, const Args& args, const Refs&) {
  const Refs& results = args.at(0).refs;
  std::vector<int64_t> sizes = graph->sizes_of(args.at(1).refs.at(0));
  graph->virtual_resize(results.at(0), sizes);
  if (!sizes.empty()) {
    sizes.back() = 1;
  }
  for (size_t i = 1; i < results.size(); ++i) {
    graph->virtual_resize(results[i], sizes);
  }
}

void add_dispatch(ComputeGraph& graph, const Dispatch& dispatch, float epsilon, const Refs& results) {
  const ValueRef any_operand = dispatch.weight != kDummyValueRef ? dispatch.weight : dispatch.shift != kDummyValueRef ? dispatch.shift : dispatch.x;
  const ValueRef weight = dispatch.weight != kDummyValueRef ? dispatch.weight : any_operand;
  const ValueRef shift = dispatch.shift != kDummyValueRef ? dispatch.shift : any_operand;
  const auto pick_shader = [dispatch](ComputeGraph* g, const Args&, const Refs&) { return shader_info(plan_now(g, dispatch).key); };
  const auto pick_global = [dispatch](ComputeGraph* g, const vkapi::ShaderInfo&, const Args&, const Refs&) {
    const kernels::Plan plan = plan_now(g, dispatch);
    return utils::uvec3{plan.groups[0] * plan.local_size[0], plan.groups[1] * plan.local_size[1], plan.groups[2]};
  };
  const auto pick_local = [dispatch](ComputeGraph* g, const vkapi::ShaderInfo&, const utils::uvec3&, const Args&, const Refs&) {
    const kernels::Plan plan = plan_now(g, dispatch);
    return utils::uvec3{plan.local_size[0], plan.local_size[1], 1u};
  };
  const kernels::SpecConstants& spec = dispatch.plan.spec;
  const auto number = [](auto value) { return vkapi::SpecVar(static_cast<int32_t>(value)); };
  graph.execute_nodes().emplace_back(new vkcompute::DynamicDispatchNode(
      graph, pick_shader, pick_global, pick_local, {{results, vkapi::kWrite}, {{dispatch.x, weight, shift}, vkapi::kRead}}, {},
      {graph.sizes_pc_of(dispatch.x), graph.sizes_pc_of(weight), graph.sizes_pc_of(shift),
       vkcompute::PushConstantDataInfo(&epsilon, sizeof(epsilon))},
      {number(spec.chunks), number(spec.weight), number(spec.shift), number(spec.rows), number(spec.early),
       number(spec.split), number(spec.each)}, {}, resize_norm));
}

// ---- carrying out a recipe

struct Site {
  ComputeGraph& graph;
  const Call& call;
  const NormSite& desc;
  const Recipe& recipe;
  const kernels::DeviceLimits& device;
  const versions::OpFunction& stock;
  Temporaries temporaries;
};

// Our kernel writes mean and rstd in x's representation: where the graph has another, into temporaries that are cloned afterwards.
Refs statistics_for_kernel(Site& site) {
  Refs refs;
  for (size_t i = 1; i < site.call.results.size(); ++i) {
    const TensorDesc desc = describe_value(site.graph, site.call.results[i]);
    const bool alike = desc.storage == site.desc.x.storage && desc.layout == site.desc.x.layout && desc.dtype == site.desc.x.dtype;
    refs.push_back(alike ? site.call.results[i] : site.temporaries.add_like(desc.dims, site.desc.x.dtype, site.desc.x));
  }
  return refs;
}

void add_our_norm(Site& site, ValueRef weight, ValueRef shift, ValueRef out) {
  Refs results = statistics_for_kernel(site);
  const Refs written = results;
  results.insert(results.begin(), out);
  const Dispatch dispatch{site.recipe.problem, site.recipe.kernel, site.device, site.call.x, weight, shift};
  add_dispatch(site.graph, dispatch, site.graph.extract_scalar<float>(site.call.eps), results);
  for (size_t i = 0; i < written.size(); ++i) {
    const ValueRef wanted = site.call.results[i + 1];
    if (written[i] != wanted) {
      const bool same_dtype = dtype_of(site.graph, wanted) == site.desc.x.dtype;
      same_dtype ? add_clone(site.graph, written[i], wanted) : add_cast(site.graph, written[i], wanted);
    }
  }
}

// The delegate's norm with unit weight and zero bias where the plan asks for them.
void add_stock_norm(Site& site, const Refs& args, ValueRef out) {
  const int64_t width = site.desc.x.dims.back();
  Refs stock_args = args;
  const bool layer = site.call.kind == NormKind::kLayer;
  if (site.recipe.plan.unit_weight) {
    stock_args.at(layer ? 2 : 1) = add_filled_tref(site.graph, {width}, site.recipe.plan.norm_dtype, true);
  }
  if (layer && site.recipe.plan.zero_bias) {
    stock_args.at(3) = add_filled_tref(site.graph, {width}, site.recipe.plan.norm_dtype, false);
  }
  Refs results = site.call.results;
  results.at(0) = out;
  stock_args.back() = layer ? site.graph.add_value_list(std::move(results)) : out;
  site.stock(site.graph, stock_args);
}

void add_norm_then_ops(Site& site, const Refs& args) {
  const NormPlan& plan = site.recipe.plan;
  const ValueRef out = site.call.results.at(0);
  const bool ops_after = plan.cast_norm || plan.multiply.used || plan.add.used;
  ValueRef value = ops_after ? site.temporaries.add_like(plan.norm_dims, plan.norm_dtype, site.desc.x) : out;
  site.recipe.our_norm ? add_our_norm(site, kDummyValueRef, kDummyValueRef, value) : add_stock_norm(site, args, value);
  const ValueRef weight = prepare(site.graph, site.temporaries, site.call.weight, site.desc.weight, plan.multiply);
  const ValueRef bias = prepare(site.graph, site.temporaries, site.call.bias, site.desc.bias, plan.add);
  if (plan.cast_norm) {
    const ValueRef cast = plan.multiply.used || plan.add.used ? site.temporaries.add_like(plan.norm_dims, site.desc.out.dtype, site.desc.x) : out;
    add_cast(site.graph, value, cast);
    value = cast;
  }
  if (plan.multiply.used) {
    const ValueRef product = plan.add.used ? site.temporaries.add_like(plan.multiply_dims, site.desc.out.dtype, site.desc.x) : out;
    add_op(site.graph, "aten.mul.Tensor", {value, weight, product});
    value = product;
  }
  if (plan.add.used) {
    add_op(site.graph, "aten.add.Tensor", {value, bias, site.graph.add_scalar<int64_t>(1), out});
  }
}

Path build_norm(ComputeGraph& graph, NormKind kind, const Refs& args, const versions::OpFunction& stock) {
  const Call call = read_call(graph, kind, args);
  const NormSite desc = describe_call(graph, call);
  const kernels::DeviceLimits device = device_limits(graph);
  const Recipe recipe = make_recipe(desc, &device);
  Site site{graph, call, desc, recipe, device, stock, Temporaries(&graph)};
  switch (recipe.path) {
    case Path::kRefused: VK_THROW("etvk-guard: ", recipe.message);
    case Path::kMoved:
    case Path::kStock: stock(graph, args); break;
    case Path::kUnit:
    case Path::kUnitThenOps: add_norm_then_ops(site, args); break;
    case Path::kFusedRow:
    case Path::kFusedBatch:
    case Path::kFusedFull: {
      const ValueRef weight = prepare(graph, site.temporaries, call.weight, desc.weight, recipe.plan.multiply);
      const ValueRef shift = prepare(graph, site.temporaries, call.bias, desc.bias, recipe.plan.add);
      add_our_norm(site, weight, shift, call.results.at(0));
      break;
    }
  }
  return recipe.path;
}

}  // namespace

Path build_rms_norm(ComputeGraph& graph, const Refs& args, const versions::OpFunction& stock) {
  return build_norm(graph, NormKind::kRms, args, stock);
}

Path build_layer_norm(ComputeGraph& graph, const Refs& args, const versions::OpFunction& stock) {
  return build_norm(graph, NormKind::kLayer, args, stock);
}

}  // namespace etvk_guard::vulkan
