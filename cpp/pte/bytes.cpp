// SPDX-License-Identifier: Apache-2.0
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64  // off_t, where long has 32 bits
#endif
#include "bytes.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "error.h"

namespace etvk_guard {
namespace {

constexpr size_t kAlignment = 16;
constexpr uint64_t kFlatbufferLimit = (uint64_t{1} << 31) - 1;  // offsets have 31 bits

bool aligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % kAlignment == 0; }

}  // namespace

Bytes::~Bytes() {
  std::free(owned_);
  if (map_ != nullptr) {
    munmap(map_, map_size_);
  }
}

// Maps whole pages around the range. Used for large flatbuffers only (programs of old releases, with their constants inline),
// of which a few pages are read.
bool Bytes::map(const Reader& reader, Range range) {
  const int descriptor = reader.descriptor();
  if (descriptor < 0 || range.offset % kAlignment != 0) {
    return false;
  }
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t before = range.offset % page;
  const size_t length = static_cast<size_t>(range.size + before);
  void* mapped = mmap(nullptr, length, PROT_READ, MAP_PRIVATE, descriptor, static_cast<off_t>(range.offset - before));
  if (mapped == MAP_FAILED) {
    return false;
  }
  map_ = mapped;
  map_size_ = length;
  data_ = static_cast<const uint8_t*>(mapped) + before;
  return true;
}

Error Bytes::load(const Reader& reader, Range range, Bytes* into) {
  if (range.size >= kFlatbufferLimit) {
    return make_error(ErrorCode::kTooLarge, range.offset, "a flatbuffer of %s bytes: the format allows 2 GiB",
                      number(range.size).c_str());
  }
  Bytes bytes;
  bytes.size_ = static_cast<size_t>(range.size);
  bytes.data_ = reader.view(range.offset, bytes.size_);
  if (bytes.data_ != nullptr && aligned(bytes.data_)) {
    *into = std::move(bytes);
    return {};
  }
  if (range.size > kCopyLimit && bytes.map(reader, range)) {
    *into = std::move(bytes);
    return {};
  }
  const size_t rounded = (bytes.size_ + kAlignment) / kAlignment * kAlignment;  // never 0
  bytes.owned_ = std::aligned_alloc(kAlignment, rounded);
  if (bytes.owned_ == nullptr) {
    return make_error(ErrorCode::kOutOfMemory, range.offset, "no memory for %s bytes", number(range.size).c_str());
  }
  if (!reader.read(range.offset, bytes.owned_, bytes.size_)) {
    return make_error(ErrorCode::kIoError, range.offset, "cannot read %s bytes", number(range.size).c_str());
  }
  bytes.data_ = static_cast<const uint8_t*>(bytes.owned_);
  *into = std::move(bytes);
  return {};
}

}  // namespace etvk_guard
