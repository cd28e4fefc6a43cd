// SPDX-License-Identifier: Apache-2.0
//
// Shapes, dtypes and representations of a norm's operands: the small rules that the planner is made of.
#pragma once

#include <etvk_guard/plan.h>

#include <cstdint>
#include <vector>

namespace etvk_guard {

inline constexpr size_t kMaxRank = 4;           // of a tensor that ET-VK's norms take, and of any texture
inline constexpr int64_t kMaxTextureSide = 16384, kMaxTextureDepth = 2048;  // what ExecuTorch's lowering takes for granted
inline constexpr int64_t kMaxSize = INT32_MAX;  // shaders keep sizes in 32 bits

// Product of sizes; -1 if a size is not in [1, kMaxSize] or the product does not fit. Empty tensors are left alone: ET-VK
// broadcasts by the larger size, which is wrong for a size of 0.
int64_t count_elements(const std::vector<int64_t>& dims);

// The shape of an elementwise op on both, by NumPy's rule. False: they do not broadcast.
bool broadcast(const std::vector<int64_t>& a, const std::vector<int64_t>& b, std::vector<int64_t>* into);

// Which rows of an operand belong to which rows of x, and how many consecutive rows of x share one if it is Rows::kBatch.
Rows rows_of(const std::vector<int64_t>& operand, const std::vector<int64_t>& x);
int64_t rows_per_row(const std::vector<int64_t>& operand, const std::vector<int64_t>& x);

inline bool is_float(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kFloat32; }
// Dtypes that ET-VK can cast to float and half.
inline bool is_castable(DType dtype) {
  return is_float(dtype) || dtype == DType::kInt32 || dtype == DType::kUInt8 || dtype == DType::kBool;
}
inline bool is_tensor(const TensorDesc& desc) { return desc.kind != Kind::kNone && desc.kind != Kind::kScalar; }

// Storage and layout, with "default" as ET-VK reads it.
Storage storage_of(const TensorDesc& desc);
Layout layout_of(const TensorDesc& desc);
// A shader reads and writes a texture of float32 or float16 as either; a buffer is read as if it were of the dtype that the
// shader was chosen for, which is the result's.
inline bool converts_floats(const TensorDesc& x, const TensorDesc& out) {
  return storage_of(x) == Storage::kTexture3D && storage_of(out) == Storage::kTexture3D;
}
// Stored in a way that aten.clone.default can read: a buffer or 3-D texture, and no int8 packing.
bool is_plain(const TensorDesc& desc);

}  // namespace etvk_guard
