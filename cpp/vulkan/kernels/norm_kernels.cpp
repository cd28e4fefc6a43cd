// SPDX-License-Identifier: Apache-2.0
#include "norm_kernels.h"

namespace etvk_guard::kernels {
bool operand_mode(const std::int32_t x[4], const std::int32_t operand[4], OperandMode* mode) noexcept {
  if (operand[0] != x[0]) {
    return false;
  }
  int first = 4;  // first and last dimension, after width, that the operand does not repeat
  int last = 0;
  for (int i = 1; i < 4; ++i) {
    if (operand[i] != 1) {
      if (operand[i] != x[i]) {
        return false;
      }
      first = first == 4 ? i : first;
      last = i;
    }
  }
  if (first == 4) {
    *mode = OperandMode::kOneRow;
    return true;
  }
  bool full = true;
  for (int i = 1; i < 4; ++i) {
    if (operand[i] == 1 && x[i] != 1) {
      full = false;
      if (i > first && i < last) {
        return false;
      }
    }
  }
  const bool plane = operand[1] == 1 && operand[2] == x[2] && operand[3] == x[3];
  *mode = full ? OperandMode::kFull : plane ? OperandMode::kPlane : OperandMode::kBroadcast;
  return true;
}

BindingKind binding_kind(const KernelKey& key, std::uint32_t index) noexcept {
  const std::uint32_t outputs = output_count(key.norm);
  const bool is_operand = index > outputs;
  const Storage storage = is_operand ? key.operand_storage : key.x_storage;
  if (storage == Storage::kBuffer) {
    return BindingKind::kStorageBuffer;
  }
  return index < outputs ? BindingKind::kStorageImage : BindingKind::kSampledImage;
}

}  // namespace etvk_guard::kernels
