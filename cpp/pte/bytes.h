// SPDX-License-Identifier: Apache-2.0
//
// Checked arithmetic, little-endian loads, and the bytes of one flatbuffer at an aligned address.
#pragma once

#include <etvk_guard/pte.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace etvk_guard {

// False if the sum or product does not fit; `into` is then untouched.
inline bool checked_add(uint64_t a, uint64_t b, uint64_t* into) {
  if (a > UINT64_MAX - b) {
    return false;
  }
  *into = a + b;
  return true;
}
inline bool checked_mul(uint64_t a, uint64_t b, uint64_t* into) {
  if (b != 0 && a > UINT64_MAX / b) {
    return false;
  }
  *into = a * b;
  return true;
}
// Whether [offset, offset + count) lies in [0, size).
inline bool in_range(uint64_t offset, uint64_t count, uint64_t size) { return offset <= size && count <= size - offset; }

// The next multiple of a power of two; callers know that there is one.
inline uint64_t align_up(uint64_t value, uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

inline uint64_t load_le(const uint8_t* from, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; --i) {
    value = (value << 8) | from[i];
  }
  return value;
}

// A range of the file.
struct Range {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t end() const { return offset + size; }  // callers have checked it
  bool operator==(const Range& other) const { return offset == other.offset && size == other.size; }
};

// The bytes of one flatbuffer, 16-byte aligned: in place where the reader can show them so, copied up to kCopyLimit, and mapped
// above that where the reader has a descriptor.
class Bytes {
 public:
  static constexpr uint64_t kCopyLimit = 64u << 20;

  Bytes() = default;
  ~Bytes();
  Bytes(Bytes&& other) noexcept { swap(other); }
  Bytes& operator=(Bytes&& other) noexcept {
    swap(other);
    return *this;
  }
  // kIoError, kOutOfMemory, kTooLarge. The range lies in the file.
  static Error load(const Reader& reader, Range range, Bytes* into);

  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void swap(Bytes& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(owned_, other.owned_);
    std::swap(map_, other.map_);
    std::swap(map_size_, other.map_size_);
  }
  bool map(const Reader& reader, Range range);

  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  void* owned_ = nullptr;  // from aligned allocation
  void* map_ = nullptr;    // from mmap
  size_t map_size_ = 0;
};

}  // namespace etvk_guard
