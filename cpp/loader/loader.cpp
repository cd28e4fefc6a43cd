// SPDX-License-Identifier: Apache-2.0
#include <etvk_guard/loader.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "checked.h"

namespace etvk_guard {

using loader::check_file;
using loader::Checked;
using loader::DataLoader;
using loader::FreeableBuffer;
using loader::Result;
using loader::RuntimeError;
using loader::SegmentInfo;
using loader::Wrapped;
using Extent = Overlay::Extent;

namespace {

constexpr size_t kPage = 4096;

// As in a mapped file: what lies at an aligned offset is aligned.
size_t alignment_at(size_t offset, size_t least) {
  const size_t natural = offset == 0 ? kPage : std::min(kPage, offset & (~offset + 1));
  return std::max({natural, least, alignof(std::max_align_t)});
}

// `context` is the alignment.
void free_aligned(void* context, void* data, size_t) {
  ::operator delete(data, std::align_val_t{reinterpret_cast<uintptr_t>(context)});
}

FreeableBuffer allocate(size_t size, size_t alignment) {
  void* data = ::operator new(size, std::align_val_t{alignment}, std::nothrow);
  return FreeableBuffer(data, data == nullptr ? 0 : size, free_aligned, reinterpret_cast<void*>(uintptr_t{alignment}));
}

// The extent that holds the byte at `offset`, which is inside the overlay.
const Extent* extent_at(const Overlay& overlay, size_t offset) {
  const auto& extents = overlay.extents();
  const auto after = std::upper_bound(extents.begin(), extents.end(), offset,
                                      [](size_t at, const Extent& extent) { return at < extent.start; });
  return &*(after - 1);
}

}  // namespace

class GuardedDataLoader::Impl {
 public:
  Impl(DataLoader* wrapped, std::unique_ptr<DataLoader> owned, const GuardedLoaderOptions& options)
      : owned_(std::move(owned)), wrapped_(wrapped), exists_(wrapped != nullptr), options_(options) {}

  // Checks the file if that is not done. On success `*into` says what to serve.
  RuntimeError ready(const Checked** into) {
    const Checked* done = done_.load(std::memory_order_acquire);
    if (done != nullptr) {
      *into = done;
      return done->error;
    }
    if (!exists_ || options_.alignment == 0 || (options_.alignment & (options_.alignment - 1)) != 0) {
      return RuntimeError::InvalidArgument;
    }
    return check_now(into);
  }

  const Checked* done() const { return done_.load(std::memory_order_acquire); }

  Result<FreeableBuffer> load(size_t offset, size_t size, const SegmentInfo& info) {
    const Checked* checked = nullptr;
    if (const RuntimeError error = ready(&checked); error != RuntimeError::Ok) {
      return error;
    }
    if (!checked->overlaid) {
      return wrapped_.load(offset, size, info);
    }
    if (!inside(*checked, offset, size)) {
      return RuntimeError::InvalidArgument;
    }
    if (size == 0) {
      return FreeableBuffer();
    }
    const Extent& extent = *extent_at(checked->overlay, offset);
    if (extent.buffer < 0 && size <= extent.length - (offset - extent.start)) {
      return wrapped_.load(static_cast<size_t>(extent.source + (offset - extent.start)), size, info);
    }
    FreeableBuffer made = allocate(size, alignment_at(offset, options_.alignment));
    if (made.data() == nullptr) {
      return RuntimeError::MemoryAllocationFailed;
    }
    const RuntimeError error = assemble(checked->overlay, offset, size, info, const_cast<void*>(made.data()));
    if (error != RuntimeError::Ok) {
      return error;
    }
    return Result<FreeableBuffer>(std::move(made));
  }

  RuntimeError load_into(size_t offset, size_t size, const SegmentInfo& info, void* buffer) {
    const Checked* checked = nullptr;
    if (const RuntimeError error = ready(&checked); error != RuntimeError::Ok) {
      return error;
    }
    if (!inside(*checked, offset, size) || (buffer == nullptr && size != 0)) {
      return RuntimeError::InvalidArgument;
    }
    if (size == 0) {
      return RuntimeError::Ok;
    }
    return checked->overlaid ? assemble(checked->overlay, offset, size, info, buffer)
                             : wrapped_.read(offset, size, info, buffer);
  }

 private:
  static bool inside(const Checked& checked, size_t offset, size_t size) {
    return offset <= checked.size && size <= checked.size - offset;
  }

  // One thread checks, the others wait for it. The callback runs outside the lock, so that it may use the loader.
  RuntimeError check_now(const Checked** into) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (const Checked* done = done_.load(std::memory_order_relaxed); done != nullptr) {
      *into = done;
      return done->error;
    }
    std::unique_ptr<const Checked> made = check_file(wrapped_, options_);
    const Checked* checked = made.get();
    if (!checked->again) {
      kept_ = std::move(made);
      done_.store(checked, std::memory_order_release);
    }
    lock.unlock();
    if (options_.on_checked != nullptr) {
      options_.on_checked(options_.context, checked->report);
    }
    *into = checked;
    return checked->error;  // with `again` there is an error, and nobody looks at *into
  }

  // A range of the overlay, piece by piece. `size` is not 0.
  RuntimeError assemble(const Overlay& overlay, size_t offset, size_t size, const SegmentInfo& info, void* into) const {
    auto* out = static_cast<uint8_t*>(into);
    while (size > 0) {
      const Extent* extent = extent_at(overlay, offset);
      const uint64_t within = offset - extent->start;
      auto part = static_cast<size_t>(std::min<uint64_t>(extent->length - within, size));
      const auto source = static_cast<size_t>(extent->source + within);
      if (extent->buffer >= 0) {
        const uint8_t* bytes = overlay.owned_run(*extent, within, &part);
        part = std::min(part, size);
        std::memcpy(out, bytes, part);
      } else if (const RuntimeError error = wrapped_.read(source, part, info, out); error != RuntimeError::Ok) {
        return error;
      }
      out += part;
      offset += part;
      size -= part;
    }
    return RuntimeError::Ok;
  }

  const std::unique_ptr<DataLoader> owned_;
  const Wrapped wrapped_;
  const bool exists_;
  const GuardedLoaderOptions options_;
  std::mutex mutex_;
  std::unique_ptr<const Checked> kept_;
  std::atomic<const Checked*> done_{nullptr};  // kept_, once it is there
};

GuardedDataLoader::GuardedDataLoader(std::unique_ptr<DataLoader> wrapped, GuardedLoaderOptions options) {
  DataLoader* loader = wrapped.get();
  impl_ = std::make_unique<Impl>(loader, std::move(wrapped), options);
}

GuardedDataLoader::GuardedDataLoader(DataLoader* wrapped, GuardedLoaderOptions options)
    : impl_(std::make_unique<Impl>(wrapped, nullptr, options)) {}

GuardedDataLoader::~GuardedDataLoader() = default;

Result<FreeableBuffer> GuardedDataLoader::load(size_t offset, size_t size, const SegmentInfo& segment_info) const {
  return impl_->load(offset, size, segment_info);
}

RuntimeError GuardedDataLoader::load_into(size_t offset, size_t size, const SegmentInfo& segment_info, void* buffer) const {
  return impl_->load_into(offset, size, segment_info, buffer);
}

Result<size_t> GuardedDataLoader::size() const {
  const Checked* checked = nullptr;
  if (const RuntimeError error = impl_->ready(&checked); error != RuntimeError::Ok) {
    return error;
  }
  return checked->size;
}

RuntimeError GuardedDataLoader::check() const {
  const Checked* checked = nullptr;
  return impl_->ready(&checked);
}

const LoadReport* GuardedDataLoader::report() const {
  const Checked* checked = impl_->done();
  return checked == nullptr ? nullptr : &checked->report;
}

}  // namespace etvk_guard
