// SPDX-License-Identifier: Apache-2.0
//
// The norm kernels: what there is, and what must be bound, pushed and specialised to run one. Plain C++: no Vulkan, no
// ExecuTorch, no exceptions. `choose()` in norm_choose.h picks a kernel and fills in everything below.
//
// Tensors
//   x, out, mean, rstd share one storage; weight and shift share one, which may be another. All share one dtype.
//   Buffer: contiguous, width innermost, no padding (element (w,h,c,n) at w + W*(h + H*(c + C*n))), bound at offset 0 or any
//     multiple of 16 bytes. Nothing beyond the last element is read or written.
//   Texture: 3-D, width-packed with the standard axis map: element w of row (h,c,n) is component w%4 of texel
//     (w/4, h, c + C*n); format rgba32f (float) or rgba16f (half). The unused components of a row's last texel are ignored
//     on reading and become 0 on writing. Extents may exceed what the sizes need.
//   A tensor in another layout has to be brought into one of these first.
//
// Bindings, all in set 0, in this order (which is the order ET-VK binds written, then read, arguments in; there are no
// uniform buffers):
//   RMS norm    0 out | 1 x | 2 weight | 3 shift
//   layer norm  0 out, 1 mean, 2 rstd | 3 x | 4 weight | 5 shift
//   A written texture is a storage image, a read texture a combined image sampler, a buffer a storage buffer.
//   The mean and rstd of a row are element 0 of the same row: sizes [..., 1]. In a texture the other components become 0.
//   An operand whose mode is kNone must still be bound to something of the operands' storage: the other operand, or x
//   where both are missing (the operands' storage is then x's).
//
// Push constants: struct PushConstants, 52 bytes (in ET-VK: sizes_pc_of(x), sizes_pc_of(weight), sizes_pc_of(shift), epsilon).
//   Sizes are (W, H, C, N), missing leading dimensions 1. A missing operand's sizes are not read. A contiguous buffer of
//   more than four dimensions can be given as (W, rows, 1, 1) with operands of one row or full.
//
// Specialisation constants: ids 0, 1, 2 are the local size; ids 3 to 9 are the fields of SpecConstants in their order.
//
// Threads: local size (x, y, 1). With y == 1 the whole workgroup works on a row (in textures: on a band of `rows` * `each`
//   neighbouring rows); with y > 1 each y does, and for a subgroup kernel x must then be the device's subgroup size. x is a
//   multiple of `rows`.
//   Workgroups are numbered x first, then y; surplus ones write nothing. There are `split` of them in z, which each read the
//   whole row and share out the writing of it: for few rows.
//   Local size, chunks, rows, early, split and each change the speed, and the result by rounding only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace etvk_guard::kernels {

enum class Norm : std::uint8_t { kRms, kLayer };
enum class Storage : std::uint8_t { kBuffer, kTexture3d };
enum class Dtype : std::uint8_t { kFloat, kHalf };
// Elements that a load takes. kWhole: four, of an x that is a texture whose rows are exactly `chunks` chunks for each thread of a row.
enum class Access : std::uint8_t { kScalar, kVec4, kVec8, kWhole };
enum class Reduction : std::uint8_t { kShared, kSubgroup };       // kSubgroup needs subgroup arithmetic in compute

struct KernelKey {
  Norm norm;
  Storage x_storage;
  Storage operand_storage;
  Dtype dtype;
  Access access;
  Reduction reduction;
};

struct Kernel {
  const char* name;  // unique, begins with "etvk_guard_"
  KernelKey key;
  bool needs_16bit_storage;  // storageBuffer16BitAccess
  const std::uint32_t* words;
  std::size_t word_count;
};

struct KernelTable {
  const Kernel* kernels;
  std::size_t count;
};

// Every kernel.
KernelTable kernel_table() noexcept;

// The kernel with that key, or null.
const Kernel* find_kernel(const KernelKey& key) noexcept;

// How the rows of a weight or shift belong to the rows of x.
enum class OperandMode : std::uint32_t {
  kOneRow = 0,     // one row for all
  kBroadcast = 1,  // leading or trailing dimensions (other than width) of size 1
  kFull = 2,       // a row for each
  kNone = 3,       // not there: weight 1, shift 0
  kPlane = 4,      // a row for all rows of the same channel and batch: [B, 1, D] beside an x of [B, T, D]
};

// Sets `mode` from two WHCN sizes. False where no mode fits: width differs, a size is neither 1 nor x's, or a dimension of
// size 1 (where x's is not) lies between two others.
bool operand_mode(const std::int32_t x[4], const std::int32_t operand[4], OperandMode* mode) noexcept;

struct PushConstants {
  std::int32_t x_sizes[4];
  std::int32_t weight_sizes[4];
  std::int32_t shift_sizes[4];
  float epsilon;
};
static_assert(sizeof(PushConstants) == 52, "push constants are packed");

// When weight and shift are loaded.
enum class Early : std::uint32_t {
  kNot = 0,  // once the sum of the row is known
  kRow = 1,  // before; where spec.each is not 1, only if weight and shift are one row, one for each plane or missing
};

struct SpecConstants {
  std::uint32_t chunks;  // id 3: chunks of 4 (kVec8: 8) elements a thread keeps in registers, at least 1
  OperandMode weight;    // id 4
  OperandMode shift;     // id 5
  std::uint32_t rows;    // id 6: rows that neighbouring threads take in turn, 1, 2 or 4; 1 for buffers
  Early early;           // id 7; used where x or weight and shift are textures, kNot elsewhere
  std::uint32_t split;   // id 8: workgroups in z; used where x is a texture
  std::uint32_t each;    // id 9: rows that a thread works on at once; used where the access is kWhole and local size y is 1
};
constexpr std::uint32_t kFirstSpecId = 3;
constexpr std::uint32_t kSpecCount = 7;

enum class BindingKind : std::uint8_t { kStorageBuffer, kStorageImage, kSampledImage };

constexpr std::uint32_t binding_count(Norm norm) noexcept { return norm == Norm::kRms ? 4u : 6u; }
constexpr std::uint32_t output_count(Norm norm) noexcept { return norm == Norm::kRms ? 1u : 3u; }

// What binding `index` (less than binding_count) is.
BindingKind binding_kind(const KernelKey& key, std::uint32_t index) noexcept;

}  // namespace etvk_guard::kernels
