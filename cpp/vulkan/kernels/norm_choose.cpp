// SPDX-License-Identifier: Apache-2.0
#include "norm_choose.h"

#include <algorithm>

namespace etvk_guard::kernels {
namespace {

using std::uint32_t;
using std::uint64_t;

constexpr uint32_t kMaxChunks = 8;      // more would spill registers
constexpr uint32_t kMinSubgroup = 4;    // reduce.glslh has room for a quarter of the workgroup
constexpr uint32_t kNarrowSubgroup = 8;  // a CPU driver: threads are loop iterations, barriers are dear

uint32_t div_up(uint64_t a, uint32_t b) noexcept { return static_cast<uint32_t>((a + b - 1u) / b); }

uint32_t power_of_two_at_least(uint32_t n) noexcept {
  uint32_t p = 1;
  while (p < n) {
    p *= 2u;
  }
  return p;
}

uint32_t size_at(const NormProblem& p, int i) noexcept { return static_cast<uint32_t>(p.x_sizes[i]); }

uint64_t row_count(const NormProblem& p) noexcept {
  return uint64_t{size_at(p, 1)} * size_at(p, 2) * size_at(p, 3);
}

bool is_empty(const NormProblem& p) noexcept {
  return std::any_of(p.x_sizes, p.x_sizes + 4, [](std::int32_t size) { return size <= 0; });
}

uint32_t elements_per_chunk(Access access) noexcept { return access == Access::kVec8 ? 8u : 4u; }

Access pick_access(const NormProblem& p) noexcept {
  const bool any_buffer = p.x_storage == Storage::kBuffer || p.operand_storage == Storage::kBuffer;
  const bool all_buffer = p.x_storage == Storage::kBuffer && p.operand_storage == Storage::kBuffer;
  const uint32_t width = size_at(p, 0);
  if (any_buffer && width % 4u != 0u) {
    return Access::kScalar;
  }
  return all_buffer && p.dtype == Dtype::kHalf && width % 8u == 0u ? Access::kVec8 : Access::kVec4;
}

KernelKey pick_key(const NormProblem& p, const DeviceLimits& d) noexcept {
  const bool subgroups = d.subgroup_arithmetic && d.subgroup_size >= kMinSubgroup;
  return {p.norm,  p.x_storage,    p.operand_storage,
          p.dtype, pick_access(p), subgroups ? Reduction::kSubgroup : Reduction::kShared};
}

// Threads that share a row (or `rows` rows), and how many such units are in a workgroup.
struct Shape {
  uint32_t threads;
  uint32_t units;
};

uint32_t max_threads(const DeviceLimits& d) noexcept {
  uint32_t threads = 1;
  while (threads * 2u <= std::min({d.max_threads, d.max_size_x, 1024u})) {
    threads *= 2u;
  }
  return threads;
}

// Units of one subgroup each (or of as few threads in the shared-memory kernel): for short rows.
Shape many_units(const KernelKey& key, const DeviceLimits& d, uint64_t units, uint32_t threads) noexcept {
  const uint32_t x = key.reduction == Reduction::kSubgroup ? d.subgroup_size : threads;
  uint32_t y = 1;
  while (y < 8u && y < units && x * y * 2u <= std::min(d.max_threads, 256u) && y * 2u <= d.max_size_y) {
    y *= 2u;
  }
  return {x, y};
}

Shape pick_shape(const NormProblem& p, const KernelKey& key, const DeviceLimits& d, uint32_t rows) noexcept {
  const uint32_t chunks = div_up(size_at(p, 0), elements_per_chunk(key.access)) * rows;
  const uint64_t units = row_count(p) / rows;
  const uint32_t limit = max_threads(d);
  const bool few_rows = units < 64u;
  if (d.subgroup_size <= kNarrowSubgroup) {
    const uint32_t threads = std::min({power_of_two_at_least(div_up(chunks, kMaxChunks)), limit, 64u});
    return {std::max(threads, std::min(d.subgroup_size, limit)), 1u};
  }
  const uint32_t each = few_rows ? 1u : 4u;  // chunks a thread
  const uint32_t threads = std::min(power_of_two_at_least(div_up(chunks, each)), limit);
  if (threads <= d.subgroup_size) {
    return many_units(key, d, units, threads);
  }
  return {threads, 1u};
}

uint32_t pick_rows(const NormProblem& p, const DeviceLimits& d) noexcept {
  if (p.x_storage == Storage::kBuffer || d.subgroup_size <= kNarrowSubgroup || p.x_sizes[1] < 4) {
    return 1;
  }
  return 2;
}

PlanStatus set_grid(const NormProblem& p, const DeviceLimits& d, Plan* plan) noexcept {
  const bool texture = p.x_storage == Storage::kTexture3d;
  const uint64_t units = texture ? uint64_t{div_up(size_at(p, 1), plan->spec.rows)} * size_at(p, 2) * size_at(p, 3)
                                 : row_count(p);
  const uint64_t groups = (units + plan->local_size[1] - 1u) / plan->local_size[1];
  const uint64_t in_y = (groups + d.max_groups_x - 1u) / d.max_groups_x;
  if (in_y > d.max_groups_y) {
    return PlanStatus::kTooManyRows;
  }
  plan->groups[0] = div_up(groups, static_cast<uint32_t>(in_y));
  plan->groups[1] = static_cast<uint32_t>(in_y);
  return PlanStatus::kOk;
}

PlanStatus set_shape(const NormProblem& p, const DeviceLimits& d, Plan* plan) noexcept {
  const Shape shape = pick_shape(p, plan->key, d, plan->spec.rows);
  plan->local_size[0] = std::max(shape.threads, plan->spec.rows);
  plan->local_size[1] = shape.units;
  return set_grid(p, d, plan);
}

PlanStatus check(const DeviceLimits& d, const KernelKey& key) noexcept {
  return needs_16bit_storage(key) && !d.storage_16bit ? PlanStatus::kNo16BitStorage : PlanStatus::kOk;
}

}  // namespace

bool needs_16bit_storage(const KernelKey& key) noexcept {
  return key.dtype == Dtype::kHalf &&
         (key.access == Access::kScalar || (key.norm == Norm::kLayer && key.x_storage == Storage::kBuffer));
}

PlanStatus choose(const NormProblem& problem, const DeviceLimits& device, Plan* plan) noexcept {
  if (is_empty(problem)) {
    return PlanStatus::kEmpty;
  }
  plan->key = pick_key(problem, device);
  plan->spec.weight = problem.weight;
  plan->spec.shift = problem.shift;
  plan->spec.rows = pick_rows(problem, device);
  const Shape shape = pick_shape(problem, plan->key, device, plan->spec.rows);
  const uint32_t chunks = div_up(size_at(problem, 0), elements_per_chunk(plan->key.access));
  plan->spec.chunks = std::min(div_up(uint64_t{chunks} * plan->spec.rows, shape.threads), kMaxChunks);
  plan->spec.early = 1;
  const PlanStatus status = check(device, plan->key);
  return status == PlanStatus::kOk ? set_shape(problem, device, plan) : status;
}

PlanStatus replan(const NormProblem& problem, const DeviceLimits& device, Plan* plan) noexcept {
  if (is_empty(problem)) {
    return PlanStatus::kEmpty;
  }
  plan->key = pick_key(problem, device);
  const PlanStatus status = check(device, plan->key);
  return status == PlanStatus::kOk ? set_shape(problem, device, plan) : status;
}

}  // namespace etvk_guard::kernels
