// SPDX-License-Identifier: Apache-2.0
//
// What libFuzzer's own mutations hardly ever do: edits that leave a file's structure as it is and change what it says, one
// number, offset, length, name or field at a time, and whole graphs written anew. See slots.h and grow.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace etvk_guard::testing {

// As LLVMFuzzerCustomMutator: change the `size` bytes in place, up to `max_size` of them, and return how many there are now.
size_t mutate_program(uint8_t* data, size_t size, size_t max_size, unsigned seed);
size_t mutate_blob(uint8_t* data, size_t size, size_t max_size, unsigned seed);

}  // namespace etvk_guard::testing
