// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "bytes.h"

namespace etvk_guard {
namespace {

// Repeated bytes are kept as one buffer of about this size and as many extents as it takes.
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
  std::vector<uint8_t> block(static_cast<size_t>(std::min<uint64_t>(times * pattern.size(), length)));
  for (size_t i = 0; i < block.size(); ++i) {
    block[i] = pattern[i % pattern.size()];
  }
  const uint64_t block_size = block.size();
  owned_.push_back(std::move(block));
  for (uint64_t left = length; left > 0; left -= std::min(left, block_size)) {
    append(static_cast<int32_t>(owned_.size() - 1), 0, std::min(left, block_size));
  }
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
  for (const Extent* extent = count == 0 ? nullptr : &extent_at(offset); count > 0; ++extent) {
    const uint64_t within = offset - extent->start;
    const auto part = static_cast<size_t>(std::min<uint64_t>(extent->length - within, count));
    if (extent->buffer < 0) {
      if (!original_->read(extent->source + within, out, part)) {
        return false;
      }
    } else {
      std::memcpy(out, owned_[static_cast<size_t>(extent->buffer)].data() + extent->source + within, part);
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
  return extent.buffer < 0 ? original_->view(extent.source + within, count)
                           : owned_[static_cast<size_t>(extent.buffer)].data() + extent.source + within;
}

}  // namespace etvk_guard
