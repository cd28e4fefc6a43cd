// SPDX-License-Identifier: Apache-2.0
#include "wrapped.h"

#include <cstring>
#include <utility>

namespace etvk_guard::loader {

Result<FreeableBuffer> Wrapped::load(size_t offset, size_t size, const SegmentInfo& info) const {
  Result<FreeableBuffer> buffer = loader_->load(offset, size, info);
  if (buffer.ok() && buffer->size() < size) {
    return RuntimeError::AccessFailed;
  }
  return buffer;
}

RuntimeError Wrapped::copy(size_t offset, size_t size, const SegmentInfo& info, void* into) const {
  Result<FreeableBuffer> buffer = load(offset, size, info);
  if (!buffer.ok()) {
    return buffer.error();
  }
  const Result<const void*> data = buffer->data_safe();
  if (!data.ok()) {
    return data.error();  // memory of another core
  }
  if (*data == nullptr) {
    return RuntimeError::AccessFailed;
  }
  std::memcpy(into, *data, size);
  return RuntimeError::Ok;
}

RuntimeError Wrapped::read(size_t offset, size_t size, const SegmentInfo& info, void* into) const {
  if (!only_load_.load(std::memory_order_relaxed)) {
    const RuntimeError error = loader_->load_into(offset, size, info, into);
    if (error != RuntimeError::NotImplemented) {
      return error;
    }
    only_load_.store(true, std::memory_order_relaxed);
  }
  return copy(offset, size, info, into);
}

bool WrappedReader::read(uint64_t offset, void* into, size_t count) const {
  if (count == 0) {
    return true;
  }
  // The size came from a size_t, and so do offsets below it.
  const RuntimeError error =
      wrapped_.read(static_cast<size_t>(offset), count, SegmentInfo(SegmentInfo::Type::Program), into);
  if (error != RuntimeError::Ok) {
    failure_ = error;
  }
  return error == RuntimeError::Ok;
}

}  // namespace etvk_guard::loader
