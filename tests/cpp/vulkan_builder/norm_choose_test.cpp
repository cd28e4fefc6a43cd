// SPDX-License-Identifier: Apache-2.0
// choose() and replan(): that a plan covers each row and chunk of its problem, whatever the device.
#include "norm_choose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace etvk_guard::kernels {
namespace {

DeviceLimits large_gpu() {
  DeviceLimits d;
  d.subgroup_size = 32;
  d.subgroup_arithmetic = d.storage_16bit = true;
  d.max_threads = d.max_size_x = d.max_size_y = 1024;
  return d;
}

DeviceLimits cpu_driver() {
  DeviceLimits d = large_gpu();
  d.subgroup_size = 8;
  return d;
}

DeviceLimits small_gpu() {  // the least that Vulkan 1.1 asks for
  DeviceLimits d;
  d.subgroup_size = 64;
  return d;
}

NormProblem textures(std::int32_t width, std::int32_t height, std::int32_t depth = 1) {
  NormProblem p;
  p.x_storage = p.operand_storage = Storage::kTexture3d;
  const std::int32_t sizes[4] = {width, height, depth, 1};
  std::copy(sizes, sizes + 4, p.x_sizes);
  return p;
}

std::uint64_t bands(const NormProblem& p, const Plan& plan) {
  const std::uint64_t rows = plan.spec.rows * (plan.key.access == Access::kWhole ? plan.spec.each : 1u);
  return (static_cast<std::uint64_t>(p.x_sizes[1]) + rows - 1) / rows * static_cast<std::uint64_t>(p.x_sizes[2]);
}

// Bands that the grid reaches.
std::uint64_t reached(const Plan& plan) {
  return std::uint64_t{plan.groups[0]} * plan.groups[1] * plan.local_size[1];
}

void expect_covers(const NormProblem& p, const Plan& plan) {
  EXPECT_GE(reached(plan), bands(p, plan)) << p.x_sizes[0] << "x" << p.x_sizes[1];
  if (plan.key.access == Access::kWhole) {  // such a kernel has no loop for the rest of a row, and no mask
    EXPECT_TRUE(plan.spec.each == 1 || plan.local_size[1] == 1);
    const std::uint64_t lanes = plan.local_size[0] / plan.spec.rows;
    EXPECT_EQ(lanes * plan.spec.chunks * 4, static_cast<std::uint64_t>(p.x_sizes[0]));
  }
}

const std::int32_t kWidths[] = {1, 4, 30, 64, 100, 512, 1000, 1024, 1536, 2048, 3072, 4095, 4096, 5120, 8192, 16384};
const std::int32_t kHeights[] = {1, 2, 7, 128, 129, 1023, 2048, 8193};

TEST(NormChoose, CoversEveryRow) {
  for (const DeviceLimits& device : {large_gpu(), cpu_driver(), small_gpu()}) {
    for (const std::int32_t width : kWidths) {
      for (const std::int32_t height : kHeights) {
        for (const OperandMode shift : {OperandMode::kNone, OperandMode::kOneRow, OperandMode::kFull}) {
          NormProblem p = textures(width, height, 3);
          p.shift = shift;
          Plan plan{};
          ASSERT_EQ(choose(p, device, &plan), PlanStatus::kOk);
          expect_covers(p, plan);
          EXPECT_LE(plan.local_size[0] * plan.local_size[1], device.max_threads);
        }
      }
    }
  }
}

// A plan for the largest sizes, then the same specialisation for all smaller ones.
TEST(NormChoose, ReplansWithTheSameSpecialisation) {
  for (const DeviceLimits& device : {large_gpu(), cpu_driver()}) {
    for (const std::int32_t first : {4096, 3072, 1000}) {
      Plan plan{};
      ASSERT_EQ(choose(textures(first, 8193), device, &plan), PlanStatus::kOk);
      const SpecConstants spec = plan.spec;
      for (const std::int32_t width : kWidths) {
        for (const std::int32_t height : kHeights) {
          const NormProblem p = textures(width, height);
          ASSERT_EQ(replan(p, device, &plan), PlanStatus::kOk);
          expect_covers(p, plan);
          EXPECT_EQ(plan.spec.chunks, spec.chunks);
          EXPECT_EQ(plan.spec.each, spec.each);
        }
      }
    }
  }
}

TEST(NormChoose, WholeRowsAndSeveralOfAThread) {
  struct Row {
    NormProblem problem;
    bool whole;
    std::uint32_t each;
  };
  NormProblem batch = textures(4096, 8, 1024);
  batch.weight = OperandMode::kBroadcast;
  NormProblem plane = batch;
  plane.weight = plane.shift = OperandMode::kPlane;
  NormProblem low = plane;  // half of each band would be missing
  low.x_sizes[1] = 6;
  NormProblem mixed = textures(4096, 8192);
  mixed.operand_storage = Storage::kBuffer;
  const Row rows[] = {
      {textures(4096, 8192), true, 2}, {textures(2048, 2048), true, 2}, {textures(4096, 1), true, 1},
      {textures(4095, 8192), false, 1}, {textures(4096, 512), true, 1}, {textures(12288, 8192), true, 1},
      {batch, true, 1}, {plane, true, 2}, {low, true, 1}, {mixed, true, 2},
  };
  for (const Row& row : rows) {
    Plan plan{};
    ASSERT_EQ(choose(row.problem, large_gpu(), &plan), PlanStatus::kOk);
    EXPECT_EQ(plan.key.access == Access::kWhole, row.whole) << row.problem.x_sizes[0] << "x" << row.problem.x_sizes[1];
    EXPECT_EQ(plan.spec.each, row.each) << row.problem.x_sizes[0] << "x" << row.problem.x_sizes[1];
  }
}

// Floats of two operands are loaded once for the rows of a thread, and not kept while sums are made.
TEST(NormChoose, WhenOperandsAreLoaded) {
  struct Row {
    std::int32_t height;
    Dtype dtype;
    OperandMode shift;
    Early early;
  };
  const Row rows[] = {{8192, Dtype::kFloat, OperandMode::kNone, Early::kRow},   {8192, Dtype::kFloat, OperandMode::kOneRow, Early::kNot},
                      {8192, Dtype::kHalf, OperandMode::kOneRow, Early::kRow},  {8192, Dtype::kFloat, OperandMode::kFull, Early::kNot},
                      {1, Dtype::kFloat, OperandMode::kOneRow, Early::kRow}};
  for (const Row& row : rows) {
    for (const Storage operands : {Storage::kTexture3d, Storage::kBuffer}) {
      NormProblem p = textures(4096, row.height);
      p.operand_storage = operands;
      p.dtype = row.dtype;
      p.shift = row.shift;
      Plan plan{};
      ASSERT_EQ(choose(p, large_gpu(), &plan), PlanStatus::kOk);
      EXPECT_EQ(plan.spec.early, row.early) << row.height << ", shift " << static_cast<int>(row.shift);
    }
  }
}

TEST(NormChoose, WhereConstantsAreBest) {
  EXPECT_EQ(best_operand_storage(Storage::kTexture3d, 4096, large_gpu()), Storage::kBuffer);
  EXPECT_EQ(best_operand_storage(Storage::kTexture3d, 4095, large_gpu()), Storage::kTexture3d);
  EXPECT_EQ(best_operand_storage(Storage::kBuffer, 4096, large_gpu()), Storage::kBuffer);
  EXPECT_EQ(best_operand_storage(Storage::kTexture3d, 4096, cpu_driver()), Storage::kTexture3d);
}

TEST(NormChoose, OperandModes) {
  struct Row {
    std::int32_t operand[4];
    bool fits;
    OperandMode mode;
  };
  const std::int32_t x[4] = {8, 5, 3, 2};
  const Row rows[] = {{{8, 1, 1, 1}, true, OperandMode::kOneRow},    {{8, 5, 3, 2}, true, OperandMode::kFull},
                      {{8, 1, 3, 2}, true, OperandMode::kPlane},     {{8, 1, 1, 2}, true, OperandMode::kBroadcast},
                      {{8, 1, 3, 1}, true, OperandMode::kBroadcast}, {{8, 5, 1, 1}, true, OperandMode::kBroadcast},
                      {{8, 5, 1, 2}, false, OperandMode::kNone},     {{4, 1, 1, 1}, false, OperandMode::kNone}};
  for (const Row& row : rows) {
    OperandMode mode = OperandMode::kNone;
    EXPECT_EQ(operand_mode(x, row.operand, &mode), row.fits);
    EXPECT_EQ(mode, row.mode) << row.operand[1] << " " << row.operand[2] << " " << row.operand[3];
  }
}

}  // namespace
}  // namespace etvk_guard::kernels
