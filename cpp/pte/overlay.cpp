// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "bytes.h"

namespace etvk_guard {
namespace {

// Repeated bytes are kept once, in a buffer of about this size.
constexpr uint64_t kPatternBytes = 64u << 10;

}  // namespace

void Overlay::append(int32_t buffer, uint64_t source, uint64_t length) {
  if (length == 0) {
    return;
  }
  if (!extents_.empty()) {
    Extent& last = extents_.back();
    if (buffer < 0 && last.buffer < 0 && last.source + last.length == source) {
      last.length += length;
      size_ += length;
      return;
    }
  }
  extents_.push_back({size_, length, buffer, source});
  size_ += length;
}

void Overlay::append_original(uint64_t offset, uint64_t length) { append(-1, offset, length); }

void Overlay::append_owned(std::vector<uint8_t> bytes) {
  if (bytes.empty()) {
    return;
  }
  owned_.push_back(std::move(bytes));
  append(static_cast<int32_t>(owned_.size() - 1), 0, owned_.back().size());
}

void Overlay::append_zeros(uint64_t count) { append_repeated({0}, count); }

void Overlay::append_repeated(const std::vector<uint8_t>& pattern, uint64_t length) {
  if (length == 0 || pattern.empty()) {
    return;
  }
  const uint64_t times = std::max<uint64_t>(kPatternBytes / pattern.size(), 1);
  std::vector<uint8_t> block(pattern);
  block.resize(static_cast<size_t>(std::min<uint64_t>(times * pattern.size(), length)));
  for (size_t done = pattern.size(); done < block.size(); done *= 2) {
    std::memcpy(block.data() + done, block.data(), std::min(done, block.size() - done));
  }
  owned_.push_back(std::move(block));
  append(static_cast<int32_t>(owned_.size() - 1), 0, length);
}

const uint8_t* Overlay::owned_run(const Extent& extent, uint64_t within, size_t* count) const {
  const std::vector<uint8_t>& bytes = owned_[static_cast<size_t>(extent.buffer)];
  const auto at = static_cast<size_t>(within % bytes.size());
  *count = static_cast<size_t>(std::min<uint64_t>(bytes.size() - at, extent.length - within));
  return bytes.data() + at;
}

const Overlay::Extent& Overlay::extent_at(uint64_t offset) const {
  const auto after = std::upper_bound(extents_.begin(), extents_.end(), offset,
                                      [](uint64_t at, const Extent& extent) { return at < extent.start; });
  return *(after - 1);
}

bool Overlay::read(uint64_t offset, void* into, size_t count) const {
  if (!in_range(offset, count, size_)) {
    return false;
  }
  auto* out = static_cast<uint8_t*>(into);
  while (count > 0) {
    const Extent& extent = extent_at(offset);
    const uint64_t within = offset - extent.start;
    auto part = static_cast<size_t>(std::min<uint64_t>(extent.length - within, count));
    if (extent.buffer < 0) {
      if (!original_->read(extent.source + within, out, part)) {
        return false;
      }
    } else {
      const uint8_t* bytes = owned_run(extent, within, &part);
      part = std::min(part, count);
      std::memcpy(out, bytes, part);
    }
    out += part;
    offset += part;
    count -= part;
  }
  return true;
}

const uint8_t* Overlay::view(uint64_t offset, size_t count) const {
  if (count == 0 || !in_range(offset, count, size_)) {
    return nullptr;
  }
  const Extent& extent = extent_at(offset);
  const uint64_t within = offset - extent.start;
  if (count > extent.length - within) {
    return nullptr;
  }
  if (extent.buffer < 0) {
    return original_->view(extent.source + within, count);
  }
  size_t run = 0;
  const uint8_t* bytes = owned_run(extent, within, &run);
  return count <= run ? bytes : nullptr;
}

}  // namespace etvk_guard
