// SPDX-License-Identifier: Apache-2.0
//
// The loader that is wrapped: its answers checked, and its bytes as a Reader for the core.
#pragma once

#include <etvk_guard/pte.h>
#include <executorch/runtime/core/data_loader.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace etvk_guard::loader {

using executorch::runtime::DataLoader;
using executorch::runtime::FreeableBuffer;
using executorch::runtime::Result;
using SegmentInfo = DataLoader::SegmentInfo;
using RuntimeError = executorch::runtime::Error;

class Wrapped {
 public:
  explicit Wrapped(DataLoader* loader) : loader_(loader) {}

  Result<size_t> size() const { return loader_->size(); }
  // The loader's own buffer. AccessFailed if it is shorter than asked for.
  Result<FreeableBuffer> load(size_t offset, size_t size, const SegmentInfo& info) const;
  // Copies: with the loader's load_into if it has one, else by way of load(). `size` is not 0.
  RuntimeError read(size_t offset, size_t size, const SegmentInfo& info, void* into) const;

 private:
  RuntimeError copy(size_t offset, size_t size, const SegmentInfo& info, void* into) const;

  DataLoader* loader_;
  mutable std::atomic<bool> only_load_{false};  // it has said that it has no load_into
};

// For one thread at a time: it keeps the loader's error, which the core's own error leaves out.
class WrappedReader final : public Reader {
 public:
  WrappedReader(const Wrapped& wrapped, uint64_t size) : wrapped_(wrapped), size_(size) {}
  uint64_t size() const override { return size_; }
  bool read(uint64_t offset, void* into, size_t count) const override;
  RuntimeError failure() const { return failure_; }

 private:
  const Wrapped& wrapped_;
  uint64_t size_;
  mutable RuntimeError failure_ = RuntimeError::AccessFailed;
};

}  // namespace etvk_guard::loader
