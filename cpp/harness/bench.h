// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "chain.h"
#include "program.h"

namespace etvk_guard::harness {

enum class OperandKind { kNone, kRow, kBatch, kFull };  // none, [D], [B,1,D] with 8 rows (or 1) a batch, [rows,D]

// One norm to time.
struct BenchSpec {
  kernels::Norm norm = kernels::Norm::kRms;
  kernels::Storage x_storage = kernels::Storage::kBuffer;
  kernels::Storage operand_storage = kernels::Storage::kBuffer;
  kernels::Dtype dtype = kernels::Dtype::kFloat;
  std::int32_t rows = 1;
  std::int32_t width = 1;
  OperandKind weight = OperandKind::kRow;
  OperandKind shift = OperandKind::kNone;
  bool cold = false;  // go round tensors of 512 MB in all, so that a cache holds none of them; else between two
};

std::string name_of(OperandKind kind);

// The tensors of a spec on a device, filled with random numbers.
class Bench {
 public:
  // Throws std::runtime_error if the device cannot hold them: ask fits() first.
  Bench(const Device& device, ProgramCache& programs, const BenchSpec& spec);

  static bool fits(const DeviceInfo& device, const BenchSpec& spec);

  const kernels::Plan& chosen() const { return chosen_; }
  const kernels::NormProblem& problem() const { return problem_; }

  Timing time_plan(const kernels::Plan& plan, const TimingOptions& options);
  Timing time_baseline(const TimingOptions& options);  // RMS norm with a weight of one row, whatever the spec says
  Timing time_copy(const TimingOptions& options);      // of the bytes of x, between buffers, by a shader
  Timing time_texture_copy(const TimingOptions& options);  // of x, a texture
  Timing time_empty(const TimingOptions& options);     // of the chosen plan over no rows: a dispatch and its barrier

  double tensor_bytes() const;  // of x
  double total_bytes() const;   // that one norm must move

 private:
  using StepTensors = std::function<std::vector<const GpuTensor*>(int step)>;
  Timing time_program(const Program& program, const StepTensors& tensors, const kernels::PushConstants& push, Grid groups,
                      const TimingOptions& options);
  std::vector<const GpuTensor*> tensors_of_step(int step) const;

  const Device& device_;
  ProgramCache& programs_;
  BenchSpec spec_;
  kernels::NormProblem problem_;
  kernels::Plan chosen_{};
  kernels::PushConstants push_{};
  std::vector<GpuTensor> x_;  // step i reads i and writes i + 1, modulo their number
  std::vector<GpuTensor> weight_;
  std::vector<GpuTensor> shift_;
  std::vector<GpuTensor> row_weight_;  // for the baseline
  std::vector<GpuTensor> stats_;
};

}  // namespace etvk_guard::harness
