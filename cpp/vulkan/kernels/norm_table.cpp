// SPDX-License-Identifier: Apache-2.0
#include "norm_kernels.h"

namespace etvk_guard::kernels {
namespace {

bool same(const KernelKey& a, const KernelKey& b) noexcept {
  return a.norm == b.norm && a.x_storage == b.x_storage && a.operand_storage == b.operand_storage &&
         a.dtype == b.dtype && a.access == b.access && a.reduction == b.reduction;
}

}  // namespace

const Kernel* find_kernel(const KernelKey& key) noexcept {
  const KernelTable table = kernel_table();
  for (std::size_t i = 0; i < table.count; ++i) {
    if (same(table.kernels[i].key, key)) {
      return &table.kernels[i];
    }
  }
  return nullptr;
}

}  // namespace etvk_guard::kernels
