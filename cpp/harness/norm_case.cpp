// SPDX-License-Identifier: Apache-2.0
#include "norm_case.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

#include "half.h"

namespace etvk_guard::harness {
namespace {

using kernels::Dtype;
using kernels::Norm;
using kernels::Storage;

constexpr float kEpsilon = 1e-5f;
constexpr std::uint8_t kInputGuard = 0xff;    // NaN in both dtypes: poisons the result if it is read
constexpr std::uint8_t kOutputGuard = 0xcd;   // a number: must still be there
constexpr std::uint8_t kUnwritten = 0xff;     // NaN: fails the comparison
constexpr double kSmallestHalf = 6.0e-8;      // subnormal spacing

float as_stored(float value, Dtype dtype) {
  return dtype == Dtype::kHalf ? float_from_half(half_from_float(value)) : value;
}

Values random_values(const Sizes& sizes, float centre, float spread, Dtype dtype, std::mt19937* random) {
  std::normal_distribution<float> normal(centre, spread);
  Values values;
  values.sizes = sizes;
  values.data.resize(element_count(sizes));
  for (float& value : values.data) {
    value = as_stored(normal(*random), dtype);
  }
  return values;
}

NormInput make_input(const NormCase& test) {
  std::mt19937 random(20240u + static_cast<std::uint32_t>(test.x[0] * 31 + test.x[1]));
  NormInput input;
  input.norm = test.norm;
  input.epsilon = kEpsilon;
  input.x = random_values(test.x, test.offset, test.magnitude, test.dtype, &random);
  if (test.weight) {
    input.weight = random_values(*test.weight, 1.0f, 0.5f, test.dtype, &random);
  }
  if (test.shift) {
    input.shift = random_values(*test.shift, 0.0f, 1.0f, test.dtype, &random);
  }
  return input;
}

GpuTensor upload(const Device& device, const NormCase& test, Storage storage, const Values& values) {
  const Layout layout(device.info(), storage, test.dtype, values.sizes, true);
  HostTensor host(layout, kInputGuard, kInputGuard);
  const auto width = static_cast<std::size_t>(values.sizes[0]);
  for (std::size_t i = 0; i < values.data.size(); ++i) {
    host.set(i / width, i % width, values.data[i]);
  }
  GpuTensor tensor(device, layout);
  tensor.upload(host);
  return tensor;
}

GpuTensor poisoned(const Device& device, const NormCase& test, const Sizes& sizes) {
  const Layout layout(device.info(), test.x_storage, test.dtype, sizes, true);
  GpuTensor tensor(device, layout);
  tensor.upload(HostTensor(layout, kOutputGuard, kUnwritten));
  return tensor;
}

void copy_sizes(const Sizes& from, std::int32_t (&to)[4]) { std::copy(from.begin(), from.end(), to); }

kernels::PushConstants push_of(const NormCase& test) {
  const Sizes ones{1, 1, 1, 1};
  kernels::PushConstants push{};
  copy_sizes(test.x, push.x_sizes);
  copy_sizes(test.weight.value_or(ones), push.weight_sizes);
  copy_sizes(test.shift.value_or(ones), push.shift_sizes);
  push.epsilon = kEpsilon;
  return push;
}

kernels::OperandMode mode_of(const NormCase& test, const std::optional<Sizes>& operand) {
  kernels::OperandMode mode = kernels::OperandMode::kNone;
  if (operand && !kernels::operand_mode(test.x.data(), operand->data(), &mode)) {
    throw std::logic_error("a case has an operand that no mode fits: " + describe(test));
  }
  return mode;
}

// Compares one output; keeps the worst error seen and, in `message`, the first that is too large.
void compare(const char* what, const GpuTensor& tensor, const std::vector<double>& expected,
             const std::vector<double>& scale, CaseResult* result) {
  const HostTensor got = tensor.download();
  const auto width = static_cast<std::size_t>(got.layout().sizes[0]);
  const Dtype dtype = got.layout().dtype;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double value = static_cast<double>(got.get(i / width, i % width));
    const double allowed = tolerance(dtype) * scale[i] + (dtype == Dtype::kHalf ? kSmallestHalf : 1e-12);
    const double error = std::fabs(value - expected[i]) / allowed;
    if (!(error <= 1.0) && result->message.empty()) {
      result->message = std::string(what) + " row " + std::to_string(i / width) + " element " +
                        std::to_string(i % width) + ": got " + std::to_string(value) + ", expected " +
                        std::to_string(expected[i]);
    }
    result->worst_error = std::isnan(error) ? HUGE_VAL : std::max(result->worst_error, error);
  }
  const std::string broken = got.broken_guard(kOutputGuard);
  if (!broken.empty() && result->message.empty()) {
    result->message = std::string(what) + ": " + broken;
  }
}

bool fits(const DeviceInfo& device, Storage storage, Dtype dtype, const Sizes& sizes) {
  const Layout layout(device, storage, dtype, sizes, true);
  if (storage == Storage::kBuffer) {
    return layout.byte_count <= device.max_buffer_range;
  }
  return *std::max_element(layout.extents.begin(), layout.extents.end()) <= device.max_texture_extent;
}

kernels::NormProblem problem_of(const NormCase& test) {
  kernels::NormProblem problem;
  problem.norm = test.norm;
  problem.x_storage = test.x_storage;
  problem.operand_storage = test.operand_storage;
  problem.dtype = test.dtype;
  copy_sizes(test.x, problem.x_sizes);
  problem.weight = mode_of(test, test.weight);
  problem.shift = mode_of(test, test.shift);
  return problem;
}

kernels::PlanStatus base_plan(const NormCase& test, const DeviceInfo& device, kernels::Plan* plan) {
  kernels::DeviceLimits limits = device.limits;
  limits.subgroup_arithmetic = limits.subgroup_arithmetic && test.subgroups;
  return kernels::choose(problem_of(test), limits, plan);
}

// The plan with what the case forces, and the workgroups for that.
void force(const NormCase& test, kernels::Plan* plan) {
  plan->spec.chunks = test.chunks.value_or(plan->spec.chunks);
  plan->spec.rows = test.rows.value_or(plan->spec.rows);
  plan->spec.early = test.early.value_or(plan->spec.early);
  plan->local_size[0] = test.threads.value_or(plan->local_size[0]);
  plan->local_size[1] = test.units.value_or(plan->local_size[1]);
  const auto height = static_cast<std::uint32_t>(test.x[1]);
  const auto depth = static_cast<std::uint32_t>(test.x[2] * test.x[3]);
  plan->spec.each = test.each.value_or(1);
  const std::uint32_t band = plan->spec.rows * plan->spec.each;
  const std::uint32_t bands = (height + band - 1) / band * depth;
  plan->groups[0] = test.groups.value_or((bands + plan->local_size[1] - 1) / plan->local_size[1]);
  plan->groups[1] = test.groups ? 2 : 1;
  plan->spec.split = test.split.value_or(1);
  plan->groups[2] = plan->spec.split;
  kernels::settle_access(problem_of(test), plan);
}

}  // namespace

std::string describe(const NormCase& test) {
  const auto list = [](const Sizes& s) {
    return "[" + std::to_string(s[3]) + "," + std::to_string(s[2]) + "," + std::to_string(s[1]) + "," +
           std::to_string(s[0]) + "]";
  };
  std::string text = test.norm == Norm::kRms ? "rms" : "layer";
  text += test.dtype == Dtype::kHalf ? " half" : " float";
  text += test.x_storage == Storage::kTexture3d ? " texture" : " buffer";
  text += test.operand_storage == Storage::kTexture3d ? "/texture" : "/buffer";
  text += " x " + list(test.x);
  text += test.weight ? " weight " + list(*test.weight) : std::string();
  text += test.shift ? " shift " + list(*test.shift) : std::string();
  text += test.subgroups ? "" : " no subgroups";
  const auto forced = [&text](const char* name, const std::optional<std::uint32_t>& value) {
    text += value ? std::string(" ") + name + "=" + std::to_string(*value) : std::string();
  };
  forced("chunks", test.chunks);
  forced("threads", test.threads);
  forced("units", test.units);
  forced("rows", test.rows);
  forced("groups", test.groups);
  forced("split", test.split);
  forced("each", test.each);
  text += test.early ? " early=" + std::to_string(static_cast<int>(*test.early)) : std::string();
  return text;
}

std::optional<kernels::Plan> plan_of(const NormCase& test, const DeviceInfo& device) {
  kernels::Plan plan{};
  const bool all_fit = fits(device, test.x_storage, test.dtype, test.x) &&
                       fits(device, test.operand_storage, test.dtype, test.weight.value_or(test.x)) &&
                       fits(device, test.operand_storage, test.dtype, test.shift.value_or(test.x));
  if (!all_fit || base_plan(test, device, &plan) != kernels::PlanStatus::kOk) {
    return std::nullopt;
  }
  if (test.chunks || test.threads || test.units || test.rows || test.early || test.groups || test.split || test.each) {
    force(test, &plan);
  }
  const kernels::DeviceLimits& limits = device.limits;
  if (plan.local_size[0] * plan.local_size[1] > limits.max_threads || plan.local_size[0] > limits.max_size_x ||
      plan.local_size[1] > limits.max_size_y || plan.groups[0] > limits.max_groups_x) {
    return std::nullopt;
  }
  return plan;
}

CaseResult run_case(const Device& device, ProgramCache& programs, const NormCase& test, const kernels::Plan& plan) {
  const NormInput input = make_input(test);
  const Program& program = programs.get(program_of(plan));
  const Sizes stat_sizes{1, test.x[1], test.x[2], test.x[3]};
  const GpuTensor out = poisoned(device, test, test.x);
  const GpuTensor mean = poisoned(device, test, stat_sizes);
  const GpuTensor rstd = poisoned(device, test, stat_sizes);
  const GpuTensor x = upload(device, test, test.x_storage, input.x);
  const bool no_operand = !test.weight && !test.shift;
  const GpuTensor weight = upload(device, test, test.operand_storage,
                                  test.weight ? input.weight : (no_operand ? input.x : input.shift));
  const GpuTensor shift = upload(device, test, test.operand_storage,
                                 test.shift ? input.shift : (no_operand ? input.x : input.weight));
  const bool layer = test.norm == Norm::kLayer;
  Bindings bindings(device, program, 1);
  const VkDescriptorSet set =
      layer ? bindings.bind({&out, &mean, &rstd, &x, &weight, &shift}) : bindings.bind({&out, &x, &weight, &shift});
  const VkCommandBuffer commands = device.begin();
  full_barrier(commands);
  record_dispatch(commands, program, set, push_of(test), {plan.groups[0], plan.groups[1], plan.groups[2]});
  full_barrier(commands);
  check(vk().vkEndCommandBuffer(commands), "vkEndCommandBuffer");
  device.submit_and_wait(commands);
  device.free(commands);
  CaseResult result;
  result.kernel = program.info().name;
  const NormReference expected = reference(input);
  compare("out", out, expected.out, expected.out_scale, &result);
  if (layer) {
    compare("mean", mean, expected.mean, expected.mean_scale, &result);
    compare("rstd", rstd, expected.rstd, expected.rstd, &result);
  }
  result.passed = result.message.empty();
  return result;
}

}  // namespace etvk_guard::harness
