// SPDX-License-Identifier: Apache-2.0
#include "norm_choose.h"

#include <algorithm>

namespace etvk_guard::kernels {
namespace {

using std::uint32_t;
using std::uint64_t;

constexpr uint32_t kMaxChunks = 8;        // more would spill registers
constexpr uint32_t kMinSubgroup = 4;      // reduce.glslh has room for a quarter of the workgroup
constexpr uint32_t kNarrowSubgroup = 8;   // a CPU driver: threads are loop iterations, barriers are dear
constexpr uint32_t kWideSubgroup = 32;    // a GPU with registers for 16 chunks a thread
constexpr uint32_t kFewRows = 128;        // up to here a workgroup a row leaves much of a GPU idle
constexpr uint32_t kFewGroups = 64;       // workgroups that any large GPU starts at once
constexpr uint32_t kMaxThreads = 1024;    // what ET-VK can encode
constexpr uint64_t kManyBands = 512;      // from here on half as many workgroups still fill a large GPU
constexpr uint32_t kEach = 2;             // rows of a thread that loads weight and shift once for them
constexpr uint32_t kEachMin = 128;        // threads of such a workgroup
constexpr uint32_t kEachMax = 512;

uint32_t div_up(uint64_t a, uint32_t b) noexcept { return static_cast<uint32_t>((a + b - 1u) / b); }

uint32_t power_of_two_at_least(uint32_t n) noexcept {
  uint32_t p = 1;
  while (p < n) {
    p *= 2u;
  }
  return p;
}

uint32_t size_at(const NormProblem& p, int i) noexcept { return static_cast<uint32_t>(p.x_sizes[i]); }

bool is_texture(const NormProblem& p) noexcept { return p.x_storage == Storage::kTexture3d; }

uint64_t row_count(const NormProblem& p) noexcept {
  return uint64_t{size_at(p, 1)} * size_at(p, 2) * size_at(p, 3);
}

// Bands of `rows` neighbouring rows: see norm.comp.
uint64_t band_count(const NormProblem& p, uint32_t rows) noexcept {
  return uint64_t{div_up(size_at(p, 1), rows)} * size_at(p, 2) * size_at(p, 3);
}

bool is_empty(const NormProblem& p) noexcept {
  return std::any_of(p.x_sizes, p.x_sizes + 4, [](std::int32_t size) { return size <= 0; });
}

uint32_t chunk_count(const NormProblem& p, Access access) noexcept {
  return div_up(size_at(p, 0), access == Access::kVec8 ? 8u : 4u);
}

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

bool is_narrow(const DeviceLimits& d) noexcept { return d.subgroup_size <= kNarrowSubgroup; }

bool few_rows(const NormProblem& p) noexcept { return row_count(p) <= kFewRows; }

// Two rows that are neighbours in a texture share the smallest units of its memory, 32 bytes.
uint32_t pick_rows(const NormProblem& p, const DeviceLimits& d) noexcept {
  return !is_texture(p) || few_rows(p) || size_at(p, 1) < 4u || is_narrow(d) ? 1u : 2u;
}

bool has_operands(const NormProblem& p) noexcept { return p.weight != OperandMode::kNone || p.shift != OperandMode::kNone; }

// Rows that are neighbours in y have the same weight and shift.
bool shared_in_plane(OperandMode mode) noexcept {
  return mode == OperandMode::kOneRow || mode == OperandMode::kPlane || mode == OperandMode::kNone;
}

uint32_t thread_limit(const DeviceLimits& d) noexcept {
  uint32_t threads = 1;
  while (threads * 2u <= std::min({d.max_threads, d.max_size_x, kMaxThreads})) {
    threads *= 2u;
  }
  return threads;
}

bool two_operands(const NormProblem& p) noexcept { return p.weight != OperandMode::kNone && p.shift != OperandMode::kNone; }

// Loads of a weight from a texture cost as much as those of x, so where there are many rows it pays to have it for several.
bool may_share(const NormProblem& p, const DeviceLimits& d) noexcept {
  const bool shared = has_operands(p) && shared_in_plane(p.weight) && shared_in_plane(p.shift);
  return is_texture(p) && shared && !is_narrow(d) && size_at(p, 0) % 4u == 0u &&
         chunk_count(p, Access::kVec4) >= 4u * d.subgroup_size && band_count(p, 2) >= kManyBands;
}

// Chunks of a row that a thread may keep besides those of its other row: by the registers they take.
uint32_t each_chunks(const NormProblem& p) noexcept {
  return two_operands(p) && p.dtype == Dtype::kFloat ? kMaxChunks / 2u : kMaxChunks;
}

uint32_t each_threads(const NormProblem& p) noexcept {
  const uint32_t lanes = power_of_two_at_least(div_up(chunk_count(p, Access::kVec4), each_chunks(p)));
  return std::clamp(2u * lanes, kEachMin, kEachMax);
}

uint32_t pick_each(const NormProblem& p, const DeviceLimits& d) noexcept {
  const uint32_t chunks = chunk_count(p, Access::kVec4);
  const uint32_t threads = each_threads(p);
  const uint32_t lanes = threads / 2u;
  const bool fits = threads <= thread_limit(d) && lanes >= d.subgroup_size && chunks % lanes == 0u;
  const bool full = band_count(p, 2u * kEach) * 2u * kEach * 4u <= row_count(p) * 5u;  // few rows are missing in the last bands
  return may_share(p, d) && fits && full && chunks <= each_chunks(p) * lanes ? kEach : 1u;
}

// Rows are exactly the chunks that their threads keep.
bool is_whole(const NormProblem& p, const Plan& plan) noexcept {
  const uint32_t lanes = plan.local_size[0] / plan.spec.rows;
  return size_at(p, 0) % 4u == 0u && chunk_count(p, Access::kVec4) == lanes * plan.spec.chunks;
}

// With few rows a thread waits less if it asks for everything at once, and with many if it keeps one operand for them. Two of
// them take too many registers, unless they are packed (see keep() in norm.comp).
Early pick_early(const NormProblem& p, const DeviceLimits& d, const Plan& plan) noexcept {
  const bool packed = p.dtype == Dtype::kHalf && plan.spec.each > 1u;
  if (may_share(p, d) && is_whole(p, plan)) {
    return two_operands(p) && !packed ? Early::kNot : Early::kRow;
  }
  const bool textures = is_texture(p) || p.operand_storage == Storage::kTexture3d;
  return textures && few_rows(p) && !is_narrow(d) ? Early::kRow : Early::kNot;
}

// Threads for a row (or band of rows) of `chunks` chunks, before limits.
uint32_t wanted_threads(const NormProblem& p, const DeviceLimits& d, const KernelKey& key, uint32_t chunks) noexcept {
  if (pick_each(p, d) > 1u) {
    return each_threads(p);
  }
  if (is_texture(p) && few_rows(p)) {
    return std::max(std::min(chunks, 256u), chunks / 4u);
  }
  if (is_texture(p)) {  // where rows are whole there are registers for more chunks
    return chunks / (chunks < 16u * d.subgroup_size || size_at(p, 0) % 4u != 0u ? 4u : 8u);
  }
  if (few_rows(p)) {
    return chunks;
  }
  return div_up(chunks, key.access == Access::kScalar ? 4u : 2u);
}

uint32_t pick_threads(const NormProblem& p, const KernelKey& key, const DeviceLimits& d) noexcept {
  const uint32_t chunks = chunk_count(p, key.access);
  const uint32_t limit = thread_limit(d);
  if (is_narrow(d)) {  // few kinds of pipeline, since a CPU driver compiles slowly
    return std::min(chunks <= d.subgroup_size * kMaxChunks ? d.subgroup_size : 64u, limit);
  }
  return std::clamp(power_of_two_at_least(wanted_threads(p, d, key, chunks)), std::min(d.subgroup_size, limit), limit);
}

// Units in a workgroup: several where a row needs no more than a subgroup.
uint32_t pick_units(const DeviceLimits& d, uint32_t threads, uint64_t bands) noexcept {
  uint32_t units = 1;
  if (threads == d.subgroup_size && !is_narrow(d)) {
    while (units < bands && threads * units * 2u <= std::min(d.max_threads, 256u) && units * 2u <= d.max_size_y) {
      units *= 2u;
    }
  }
  return units;
}

// For few rows: workgroups that share a row, as many as there are chunks a thread to share out.
uint32_t pick_split(const NormProblem& p, const DeviceLimits& d, const Plan& plan) noexcept {
  const uint64_t groups = band_count(p, plan.spec.rows);
  if (!is_texture(p) || is_narrow(d) || plan.local_size[1] > 1u) {
    return 1;
  }
  const uint32_t steps = div_up(chunk_count(p, plan.key.access), plan.local_size[0] / plan.spec.rows);
  uint32_t split = 1;
  while (split * 2u <= steps && groups * split * 2u <= kFewGroups) {
    split *= 2u;
  }
  return split;
}

PlanStatus set_groups(const NormProblem& p, const DeviceLimits& d, Plan* plan) noexcept {
  const uint32_t each = plan->key.access == Access::kWhole ? plan->spec.each : 1u;
  const uint64_t groups = div_up(band_count(p, plan->spec.rows * each), plan->local_size[1]);
  plan->groups[1] = div_up(groups, d.max_groups_x);
  plan->groups[0] = div_up(groups, plan->groups[1]);
  plan->groups[2] = plan->spec.split;
  return plan->groups[1] > d.max_groups_y ? PlanStatus::kTooManyRows : PlanStatus::kOk;
}

void set_local_size(const NormProblem& p, const DeviceLimits& d, Plan* plan) noexcept {
  plan->local_size[0] = std::max(pick_threads(p, plan->key, d), plan->spec.rows);
  plan->local_size[1] = pick_units(d, plan->local_size[0], band_count(p, plan->spec.rows));
}

uint32_t pick_chunks(const NormProblem& p, const DeviceLimits& d, const Plan& plan) noexcept {
  const uint32_t lanes = plan.local_size[0] / plan.spec.rows;
  const uint32_t chunks = div_up(chunk_count(p, plan.key.access), lanes);
  const uint32_t most = d.subgroup_size >= kWideSubgroup ? 2u * kMaxChunks : kMaxChunks;
  return std::min(is_narrow(d) ? power_of_two_at_least(chunks) : chunks, most);
}

PlanStatus check(const NormProblem& p, const DeviceLimits& d) noexcept {
  if (is_empty(p)) {
    return PlanStatus::kEmpty;
  }
  return needs_16bit_storage(pick_key(p, d)) && !d.storage_16bit ? PlanStatus::kNo16BitStorage : PlanStatus::kOk;
}

}  // namespace

Storage best_operand_storage(Storage x_storage, std::int32_t width, const DeviceLimits& device) noexcept {
  const bool buffers_are_faster = device.subgroup_size == kWideSubgroup;
  return buffers_are_faster && width % 4 == 0 ? Storage::kBuffer : x_storage;
}

bool needs_16bit_storage(const KernelKey& key) noexcept {
  return key.dtype == Dtype::kHalf &&
         (key.access == Access::kScalar || (key.norm == Norm::kLayer && key.x_storage == Storage::kBuffer));
}

void settle_access(const NormProblem& p, Plan* plan) noexcept {
  if (!is_texture(p)) {
    return;
  }
  const bool may_each = plan->spec.each == 1u || plan->local_size[1] == 1u;
  plan->key.access = is_whole(p, *plan) && may_each ? Access::kWhole : pick_access(p);
}

PlanStatus choose(const NormProblem& problem, const DeviceLimits& device, Plan* plan) noexcept {
  const PlanStatus status = check(problem, device);
  if (status != PlanStatus::kOk) {
    return status;
  }
  plan->key = pick_key(problem, device);
  plan->spec.weight = problem.weight;
  plan->spec.shift = problem.shift;
  plan->spec.rows = pick_rows(problem, device);
  plan->spec.split = 1;
  plan->spec.each = pick_each(problem, device);
  set_local_size(problem, device, plan);
  plan->spec.chunks = pick_chunks(problem, device, *plan);
  plan->spec.early = pick_early(problem, device, *plan);
  plan->spec.split = pick_split(problem, device, *plan);
  settle_access(problem, plan);
  return set_groups(problem, device, plan);
}

PlanStatus replan(const NormProblem& problem, const DeviceLimits& device, Plan* plan) noexcept {
  const PlanStatus status = check(problem, device);
  if (status != PlanStatus::kOk) {
    return status;
  }
  plan->key = pick_key(problem, device);
  set_local_size(problem, device, plan);
  settle_access(problem, plan);
  return set_groups(problem, device, plan);
}

}  // namespace etvk_guard::kernels
