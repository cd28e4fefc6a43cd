// SPDX-License-Identifier: Apache-2.0
#include "allocations.h"

#include <algorithm>

#if defined(__SANITIZE_ADDRESS__)
#define ETVK_GUARD_COUNTS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ETVK_GUARD_COUNTS 1
#endif
#endif

#ifdef ETVK_GUARD_COUNTS
// Both compilers' runtimes have them, but gcc comes without sanitizer/allocator_interface.h.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*, size_t),
                                                         void (*on_free)(const volatile void*));
extern "C" size_t __sanitizer_get_allocated_size(const volatile void* pointer);
#endif

namespace etvk_guard::testing {
namespace {

#ifdef ETVK_GUARD_COUNTS
thread_local uint64_t live = 0;  // may wrap, where another thread frees
thread_local uint64_t peak = 0;

void on_malloc(const volatile void*, size_t size) {
  live += size;
  peak = std::max(peak, live);
}
void on_free(const volatile void* pointer) {
  if (pointer != nullptr) {
    live -= __sanitizer_get_allocated_size(pointer);
  }
}

const bool installed = __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) > 0;
#else
constexpr uint64_t live = 0;
uint64_t peak = 0;
constexpr bool installed = false;
#endif

}  // namespace

bool Allocations::counted() { return installed; }

Allocations::Allocations() : before_(live) { peak = live; }

uint64_t Allocations::peak_bytes() const { return peak - before_; }

uint64_t Allocations::allowed(size_t file_size) { return uint64_t{1024} * std::max<size_t>(file_size, 1024); }

}  // namespace etvk_guard::testing
