// SPDX-License-Identifier: Apache-2.0
#include "bench.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>

#include "embedded_spirv.h"
#include "half.h"

namespace etvk_guard::kernels {
extern const EmbeddedSpirv etvk_guard_baseline_buffer_float;
extern const EmbeddedSpirv etvk_guard_baseline_buffer_half;
extern const EmbeddedSpirv etvk_guard_baseline_texture3d_float;
extern const EmbeddedSpirv etvk_guard_baseline_texture3d_half;
extern const EmbeddedSpirv etvk_guard_copy;
extern const EmbeddedSpirv etvk_guard_copy_texture_float;
extern const EmbeddedSpirv etvk_guard_copy_texture_half;
}  // namespace etvk_guard::kernels

namespace etvk_guard::harness {
namespace {

using kernels::Dtype;
using kernels::Norm;
using kernels::Storage;

constexpr std::size_t kColdBytes = std::size_t{512} << 20;
constexpr std::size_t kMaxRing = 66;
constexpr std::int32_t kRowsPerBatch = 8;

// [rows, width] with the height a texture can have; one batch per kRowsPerBatch rows where operands are by batch.
Sizes sizes_of(const DeviceInfo& device, const BenchSpec& spec) {
  if (spec.weight == OperandKind::kBatch || spec.shift == OperandKind::kBatch) {
    const std::int32_t batch_rows = spec.rows % kRowsPerBatch == 0 ? kRowsPerBatch : 1;
    return {spec.width, batch_rows, spec.rows / batch_rows, 1};
  }
  std::int32_t height = spec.rows;
  while (spec.x_storage == Storage::kTexture3d && height % 2 == 0 &&
         height > static_cast<std::int32_t>(device.max_texture_extent)) {
    height /= 2;
  }
  return {spec.width, height, spec.rows / height, 1};
}

Sizes operand_sizes(OperandKind kind, const Sizes& x) {
  switch (kind) {
    case OperandKind::kFull:
      return x;
    case OperandKind::kBatch:
      return {x[0], 1, x[2], x[3]};
    default:
      return {x[0], 1, 1, 1};
  }
}

kernels::OperandMode mode_of(OperandKind kind, const Sizes& x) {
  kernels::OperandMode mode = kernels::OperandMode::kNone;
  if (kind != OperandKind::kNone) {
    kernels::operand_mode(x.data(), operand_sizes(kind, x).data(), &mode);
  }
  return mode;
}

// A block of random values is drawn once and repeated. Weights are 1 and -1: with others, a chain of norms soon has nothing
// but zeros left, which are faster to move.
void fill_random(HostTensor* tensor, bool is_weight) {
  constexpr std::size_t kBlock = 4096;
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0.0f, 0.3f);
  std::vector<std::uint8_t> block;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const float drawn = normal(random);
    const float value = is_weight ? std::copysign(1.0f, drawn) : drawn;
    std::uint8_t raw[4];
    const std::size_t bytes = tensor->layout().element_bytes;
    if (bytes == 2) {
      const std::uint16_t bits = half_from_float(value);
      std::memcpy(raw, &bits, sizeof(bits));
    } else {
      std::memcpy(raw, &value, sizeof(value));
    }
    block.insert(block.end(), raw, raw + bytes);
  }
  std::vector<std::uint8_t>& bytes = tensor->bytes();
  for (std::size_t at = 0; at < bytes.size(); at += block.size()) {
    std::memcpy(&bytes[at], block.data(), std::min(block.size(), bytes.size() - at));
  }
}

std::vector<GpuTensor> make_tensors(const Device& device, Storage storage, Dtype dtype, const Sizes& sizes, bool is_weight,
                                    std::size_t count) {
  const Layout layout(device.info(), storage, dtype, sizes, false);
  HostTensor host(layout, 0, 0);
  fill_random(&host, is_weight);
  std::vector<GpuTensor> tensors;
  tensors.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    tensors.emplace_back(device, layout);
    tensors.back().upload(host);
  }
  return tensors;
}

std::size_t ring_size(const BenchSpec& spec, std::size_t bytes) {
  if (!spec.cold) {
    return 2;
  }
  return std::clamp((kColdBytes + bytes - 1) / bytes, std::size_t{2}, kMaxRing);
}

ProgramInfo program_info(const kernels::EmbeddedSpirv& spirv) {
  ProgramInfo info;
  info.name = spirv.name;
  info.words = spirv.words;
  info.word_count = spirv.word_count;
  return info;
}

const GpuTensor& ring(const std::vector<GpuTensor>& tensors, int i) {
  return tensors[static_cast<std::size_t>(i) % tensors.size()];
}

ProgramInfo baseline_program(const BenchSpec& spec) {
  const bool texture = spec.x_storage == Storage::kTexture3d;
  const bool half = spec.dtype == Dtype::kHalf;
  const kernels::EmbeddedSpirv& spirv =
      texture ? (half ? kernels::etvk_guard_baseline_texture3d_half : kernels::etvk_guard_baseline_texture3d_float)
              : (half ? kernels::etvk_guard_baseline_buffer_half : kernels::etvk_guard_baseline_buffer_float);
  using kernels::BindingKind;
  ProgramInfo info = program_info(spirv);
  info.bindings = texture ? std::vector<BindingKind>{BindingKind::kStorageImage, BindingKind::kSampledImage,
                                                     BindingKind::kSampledImage}
                          : std::vector<BindingKind>(3, BindingKind::kStorageBuffer);
  return info;
}

}  // namespace

std::string name_of(OperandKind kind) {
  switch (kind) {
    case OperandKind::kRow:
      return "row";
    case OperandKind::kBatch:
      return "batch";
    case OperandKind::kFull:
      return "full";
    default:
      return "none";
  }
}

bool Bench::fits(const DeviceInfo& device, const BenchSpec& spec) {
  const Layout layout(device, spec.x_storage, spec.dtype, sizes_of(device, spec), false);
  if (spec.x_storage == Storage::kBuffer) {
    return layout.byte_count <= device.max_buffer_range;
  }
  return *std::max_element(layout.extents.begin(), layout.extents.end()) <= device.max_texture_extent;
}

Bench::Bench(const Device& device, ProgramCache& programs, const BenchSpec& spec)
    : device_(device), programs_(programs), spec_(spec) {
  const Sizes x = sizes_of(device.info(), spec);
  problem_.norm = spec.norm;
  problem_.x_storage = spec.x_storage;
  problem_.operand_storage = spec.operand_storage;
  problem_.dtype = spec.dtype;
  std::copy(x.begin(), x.end(), problem_.x_sizes);
  problem_.weight = mode_of(spec.weight, x);
  problem_.shift = mode_of(spec.shift, x);
  if (kernels::choose(problem_, device.info().limits, &chosen_) != kernels::PlanStatus::kOk) {
    throw std::runtime_error("the device cannot run this norm");
  }
  const Sizes weight = operand_sizes(spec.weight, x);
  const Sizes shift = operand_sizes(spec.shift, x);
  std::copy(x.begin(), x.end(), push_.x_sizes);
  std::copy(weight.begin(), weight.end(), push_.weight_sizes);
  std::copy(shift.begin(), shift.end(), push_.shift_sizes);
  push_.epsilon = 1e-5f;
  const std::size_t count = ring_size(spec, static_cast<std::size_t>(tensor_bytes()));
  const auto ring_of = [count](OperandKind kind) { return kind == OperandKind::kFull ? count : 1; };
  x_ = make_tensors(device, spec.x_storage, spec.dtype, x, false, count);
  weight_ = make_tensors(device, spec.operand_storage, spec.dtype, weight, true, ring_of(spec.weight));
  shift_ = make_tensors(device, spec.operand_storage, spec.dtype, shift, false, ring_of(spec.shift));
  row_weight_ = make_tensors(device, spec.x_storage, spec.dtype, {x[0], 1, 1, 1}, true, 1);
  stats_ = make_tensors(device, spec.x_storage, spec.dtype, {1, x[1], x[2], x[3]}, false, 2);
}

double Bench::tensor_bytes() const {
  return static_cast<double>(spec_.rows) * spec_.width * (spec_.dtype == Dtype::kHalf ? 2.0 : 4.0);
}

double Bench::total_bytes() const {
  double tensors = 2.0;
  for (const OperandKind kind : {spec_.weight, spec_.shift}) {
    tensors += kind == OperandKind::kFull ? 1.0 : 0.0;
    tensors += kind == OperandKind::kRow ? 1.0 / spec_.rows : 0.0;
    tensors += kind == OperandKind::kBatch ? 1.0 / static_cast<double>(problem_.x_sizes[1]) : 0.0;
  }
  return tensors * tensor_bytes();
}

std::vector<const GpuTensor*> Bench::tensors_of_step(int i) const {
  const GpuTensor& weight = ring(weight_, i);
  const GpuTensor& shift = ring(shift_, i);
  if (spec_.norm == Norm::kLayer) {
    return {&ring(x_, i + 1), &stats_[0], &stats_[1], &ring(x_, i), &weight, &shift};
  }
  return {&ring(x_, i + 1), &ring(x_, i), &weight, &shift};
}

Timing Bench::time_program(const Program& program, const StepTensors& tensors, const kernels::PushConstants& push,
                           Grid groups, const TimingOptions& options) {
  const int steps = std::min(options.chain, static_cast<int>(x_.size()));
  Bindings bindings(device_, program, static_cast<std::uint32_t>(steps));
  std::vector<VkDescriptorSet> sets;
  for (int i = 0; i < steps; ++i) {
    sets.push_back(bindings.bind(tensors(i)));
  }
  return time_chain(device_, options, [&](VkCommandBuffer commands, int i) {
    record_dispatch(commands, program, sets[static_cast<std::size_t>(i % steps)], push, groups);
    compute_barrier(commands);
  });
}

Timing Bench::time_plan(const kernels::Plan& plan, const TimingOptions& options) {
  return time_program(programs_.get(program_of(plan)), [this](int i) { return tensors_of_step(i); }, push_,
                      {plan.groups[0], plan.groups[1], plan.groups[2]}, options);
}

Timing Bench::time_empty(const TimingOptions& options) {
  kernels::PushConstants push = push_;
  push.x_sizes[1] = 0;
  return time_program(programs_.get(program_of(chosen_)), [this](int i) { return tensors_of_step(i); }, push, {1, 1, 1},
                      options);
}

Timing Bench::time_baseline(const TimingOptions& options) {
  const auto rows = static_cast<std::uint32_t>(spec_.rows);
  if (rows > device_.info().limits.max_groups_y) {
    throw std::runtime_error("the baseline's grid has a workgroup for each row in y");
  }
  const auto tensors = [this](int i) {
    return std::vector<const GpuTensor*>{&ring(x_, i + 1), &ring(x_, i), &row_weight_[0]};
  };
  return time_program(programs_.get(baseline_program(spec_)), tensors, push_, {1, rows, 1}, options);
}

Timing Bench::time_copy(const TimingOptions& options) {
  constexpr std::size_t kWord = 16;
  constexpr std::uint32_t kWordsPerGroup = 1024;
  const auto words = static_cast<std::int32_t>(static_cast<std::size_t>(tensor_bytes()) / kWord);
  const std::vector<GpuTensor> buffers =
      make_tensors(device_, Storage::kBuffer, Dtype::kFloat, {words * 4, 1, 1, 1}, false, x_.size());
  ProgramInfo info = program_info(kernels::etvk_guard_copy);
  info.bindings.assign(2, kernels::BindingKind::kStorageBuffer);
  kernels::PushConstants push{};
  push.x_sizes[0] = words;
  const auto tensors = [&buffers](int i) {
    return std::vector<const GpuTensor*>{&ring(buffers, i + 1), &ring(buffers, i)};
  };
  const auto groups = (static_cast<std::uint32_t>(words) + kWordsPerGroup - 1) / kWordsPerGroup;
  return time_program(programs_.get(info), tensors, push, {groups, 1, 1}, options);
}

Timing Bench::time_texture_copy(const TimingOptions& options) {
  constexpr std::uint32_t kGroup[2] = {32, 8};
  const bool half = spec_.dtype == Dtype::kHalf;
  ProgramInfo info = program_info(half ? kernels::etvk_guard_copy_texture_half : kernels::etvk_guard_copy_texture_float);
  info.bindings = {kernels::BindingKind::kStorageImage, kernels::BindingKind::kSampledImage};
  const std::array<std::uint32_t, 3>& extents = x_[0].layout().extents;
  kernels::PushConstants push{};
  std::copy(extents.begin(), extents.end(), push.x_sizes);
  const auto tensors = [this](int i) { return std::vector<const GpuTensor*>{&ring(x_, i + 1), &ring(x_, i)}; };
  const Grid groups = {(extents[0] + kGroup[0] - 1) / kGroup[0], (extents[1] + kGroup[1] - 1) / kGroup[1], extents[2]};
  return time_program(programs_.get(info), tensors, push, groups, options);
}

}  // namespace etvk_guard::harness
