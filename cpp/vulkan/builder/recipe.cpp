// SPDX-License-Identifier: Apache-2.0
#include "recipe.h"

#include <algorithm>

namespace etvk_guard::vulkan {
namespace {

using kernels::OperandMode;

kernels::Storage kernel_storage(Storage storage) {
  return storage == Storage::kBuffer ? kernels::Storage::kBuffer : kernels::Storage::kTexture3d;
}

OperandMode mode_of(const OperandSteps& steps, const TensorDesc& operand, const std::int32_t x[4]) {
  if (!steps.used) {
    return OperandMode::kNone;
  }
  std::int32_t sizes[4];
  set_whcn(operand.dims, sizes);
  OperandMode mode = OperandMode::kFull;
  // The planner has placed the operand's rows already: here only the kernel's name for it is looked up.
  return kernels::operand_mode(x, sizes, &mode) ? mode : OperandMode::kFull;
}

// Where constants are put that no operand which is there already decides for. A float one for halves stays with x, where a
// texture's sampler converts it.
Storage storage_of_constants(const NormSite& site, const kernels::DeviceLimits* device) {
  const Storage own = site.x.storage == Storage::kBuffer ? Storage::kBuffer : Storage::kTexture3D;
  const auto converts = [&](const TensorDesc& operand) { return operand.kind != Kind::kNone && operand.dtype != site.x.dtype; };
  if (device == nullptr || converts(site.weight) || converts(site.bias)) {
    return own;
  }
  const auto width = static_cast<std::int32_t>(site.x.dims.back());
  return kernels::best_operand_storage(kernel_storage(own), width, *device) == kernels::Storage::kBuffer ? Storage::kBuffer : own;
}

// Both operands of a kernel share one storage: that of the first one that is there already, else what suits constants.
void share_storage(const NormSite& site, const kernels::DeviceLimits* device, OperandSteps* multiply, OperandSteps* add) {
  const OperandSteps* first = multiply->used && !multiply->prepack ? multiply : add->used && !add->prepack ? add : nullptr;
  const Storage shared = first == nullptr ? storage_of_constants(site, device) : first->storage;
  for (OperandSteps* steps : {multiply, add}) {
    if (steps->used && steps->storage != shared) {
      steps->storage = shared;
      steps->relayout = steps->relayout || !steps->prepack;
    }
  }
}

// A texture is read through a sampler, which converts between float and half.
void drop_needless_cast(const TensorDesc& operand, OperandSteps* steps) {
  const bool is_float = operand.dtype == DType::kFloat32 || operand.dtype == DType::kFloat16;
  if (steps->cast && is_float && steps->storage == Storage::kTexture3D) {
    steps->cast = false;
    steps->dtype = operand.dtype;
  }
}

kernels::NormProblem problem_of(const NormSite& site, const OperandSteps& multiply, const OperandSteps& add) {
  kernels::NormProblem problem;
  problem.norm = site.kind == NormKind::kRms ? kernels::Norm::kRms : kernels::Norm::kLayer;
  problem.x_storage = kernel_storage(site.x.storage);
  problem.operand_storage =
      multiply.used ? kernel_storage(multiply.storage) : add.used ? kernel_storage(add.storage) : problem.x_storage;
  problem.dtype = site.x.dtype == DType::kFloat16 ? kernels::Dtype::kHalf : kernels::Dtype::kFloat;
  set_whcn(site.x.dims, problem.x_sizes);
  problem.weight = mode_of(multiply, site.weight, problem.x_sizes);
  problem.shift = mode_of(add, site.bias, problem.x_sizes);
  return problem;
}

bool choose_kernel(Recipe* recipe, const kernels::DeviceLimits* device) {
  recipe->our_norm = device != nullptr && kernels::choose(recipe->problem, *device, &recipe->kernel) == kernels::PlanStatus::kOk;
  return recipe->our_norm;
}

bool is_fused(Form form) { return form == Form::kFusedRow || form == Form::kFusedBatch || form == Form::kFusedFull; }

bool is_channel(const NormSite& site) { return site.kind == NormKind::kGroup || site.kind == NormKind::kBatch; }

Path path_of(const NormPlan& plan) {
  switch (plan.form) {
    case Form::kStock: return Path::kStock;
    case Form::kUnit: return Path::kUnit;
    case Form::kUnitThenOps: break;
    case Form::kFusedRow: return Path::kFusedRow;
    case Form::kFusedBatch: return Path::kFusedBatch;
    case Form::kFusedFull: return Path::kFusedFull;
    case Form::kRefused: return Path::kRefused;
  }
  if (plan.computed || plan.cast_norm || plan.multiply.used || plan.add.used) {
    return Path::kUnitThenOps;
  }
  return plan.unit_weight || plan.zero_bias ? Path::kUnit : Path::kMoved;  // with or without other steps of x and out
}

// The norm of a kUnit or kUnitThenOps plan: ours where it takes x, without operands.
void choose_bare_norm(const NormSite& site, const kernels::DeviceLimits* device, Recipe* recipe) {
  const bool keeps_operands = !recipe->plan.unit_weight || (site.kind == NormKind::kLayer && !recipe->plan.zero_bias);
  const bool readable = !is_channel(site) && site.x.layout == Layout::kWidthPacked && site.x.dims.size() <= 4;
  if (readable && !keeps_operands) {
    recipe->problem = problem_of(site, {}, {});
    choose_kernel(recipe, device);
  }
}

const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kBool: return "bool";
    case DType::kUInt8: return "uint8";
    case DType::kInt8: return "int8";
    case DType::kInt32: return "int32";
    case DType::kInt64: return "int64";
    case DType::kFloat16: return "float16";
    case DType::kFloat32: return "float32";
    case DType::kFloat64: return "float64";
    case DType::kUnset: break;
  }
  return "an unsupported dtype";
}

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::kNone: return "none";
    case Kind::kConstant: return "constant";
    case Kind::kRuntime: return "computed";
    case Kind::kMutable: return "a mutable buffer";
    case Kind::kScalar: return "a number";
  }
  return "unknown";
}

std::string representation(const TensorDesc& desc) {
  static constexpr const char* kLayouts[] = {"width-packed", "height-packed", "channels-packed"};
  const auto layout = static_cast<size_t>(desc.layout);
  const char* storage = desc.storage == Storage::kBuffer ? "buffer" : desc.storage == Storage::kTexture3D ? "texture" : "2-D texture";
  return std::string(storage) + " " + (layout < 3 ? kLayouts[layout] : "in another layout");
}

const char* op_name(NormKind kind) {
  switch (kind) {
    case NormKind::kRms: return "et_vk.rms_norm.default";
    case NormKind::kLayer: return "aten.native_layer_norm.default";
    case NormKind::kGroup: return "aten.native_group_norm.default";
    case NormKind::kBatch: return "aten._native_batch_norm_legit_no_training.default";
  }
  return "a norm";
}

std::string refusal(const NormSite& site, const NormPlan& plan) {
  std::string text = op_name(site.kind);
  text += ": " + etvk_guard::describe(site, plan) + "; x " + describe(site.x) + "; weight " + describe(site.weight);
  if (site.kind != NormKind::kRms) {
    text += "; bias " + describe(site.bias);
  }
  if (site.kind == NormKind::kBatch) {
    text += "; running_mean " + describe(site.mean) + "; running_var " + describe(site.variance);
  }
  return text + "; out " + describe(site.out);
}

}  // namespace

const char* name(Path path) {
  static constexpr const char* kNames[kPathCount] = {"stock",      "fused_row", "fused_batch",  "fused_full",
                                                     "unit",       "unit_then_ops", "moved", "refused"};
  return kNames[static_cast<size_t>(path)];
}

void set_whcn(const std::vector<int64_t>& dims, std::int32_t whcn[4]) {
  for (size_t i = 0; i < 4; ++i) {
    whcn[i] = i < dims.size() ? static_cast<std::int32_t>(dims[dims.size() - 1 - i]) : 1;
  }
}

bool still_fits(OperandMode mode, const std::int32_t x[4], const std::int32_t* operand) {
  OperandMode now = OperandMode::kNone;
  if (mode == OperandMode::kNone) {
    return operand == nullptr;
  }
  if (operand == nullptr || !kernels::operand_mode(x, operand, &now)) {
    return false;
  }
  // A general kernel does the special cases too; rows that are all of size 1 are one row and full at once.
  const bool one_row = operand[1] == 1 && operand[2] == 1 && operand[3] == 1;
  const bool full = std::equal(operand + 1, operand + 4, x + 1);
  if (mode == OperandMode::kPlane) {
    return operand[1] == 1 && (one_row || std::equal(operand + 2, operand + 4, x + 2));
  }
  return mode == OperandMode::kBroadcast || (mode == OperandMode::kOneRow ? one_row : full);
}

std::string describe(const TensorDesc& desc) {
  if (desc.kind == Kind::kNone || desc.kind == Kind::kScalar) {
    return kind_name(desc.kind);
  }
  std::string text = std::string(dtype_name(desc.dtype)) + " [";
  for (size_t i = 0; i < desc.dims.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(desc.dims[i]);
  }
  text += "] ";
  return desc.kind == Kind::kRuntime ? text + representation(desc) : text + kind_name(desc.kind);
}

Recipe make_recipe(const NormSite& site, const kernels::DeviceLimits* device) {
  Recipe recipe;
  recipe.plan = plan_norm(site, Target::kBuilder);
  if (is_fused(recipe.plan.form)) {
    share_storage(site, device, &recipe.plan.multiply, &recipe.plan.add);
    drop_needless_cast(site.weight, &recipe.plan.multiply);
    drop_needless_cast(site.bias, &recipe.plan.add);
    recipe.problem = problem_of(site, recipe.plan.multiply, recipe.plan.add);
    if (!choose_kernel(&recipe, device)) {
      recipe.plan = plan_norm(site, Target::kFile);  // what can be done with the delegate's own ops
    }
  }
  recipe.path = path_of(recipe.plan);
  if (recipe.path == Path::kUnit || recipe.path == Path::kUnitThenOps) {
    choose_bare_norm(site, device, &recipe);
  } else if (recipe.path == Path::kRefused) {
    recipe.message = refusal(site, recipe.plan);
  }
  return recipe;
}

}  // namespace etvk_guard::vulkan
