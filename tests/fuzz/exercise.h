// SPDX-License-Identifier: Apache-2.0
//
// Everything that can be done with bytes from elsewhere, held against what the library promises: the same for every way to read
// them, errors that name the file's fault, a repair that is clean and repairs to itself, memory in proportion. A broken promise
// ends the process. The fuzz targets do no more than to call these; so do tests, on the files that fuzzing kept.
#pragma once

#include <etvk_guard/pte.h>

#include <cstddef>
#include <cstdint>

namespace etvk_guard::testing {

void exercise_check(const uint8_t* data, size_t size);    // a program: open, walk, check
void exercise_repair(const uint8_t* data, size_t size);   // a program: the same, repair, and all of it again
void exercise_blob(const uint8_t* data, size_t size);     // a Vulkan blob: as the only one of a sound program
void exercise_overlay(const uint8_t* data, size_t size);  // what to append to an overlay, and where to read

// Looks at all that a program refers to.
void walk(const Program& program);

// Ends the process with a line that says what was promised.
[[noreturn]] void broken(const char* promise, const char* file, int line);

#define ETVK_GUARD_PROMISE(condition) \
  ((condition) ? static_cast<void>(0) : ::etvk_guard::testing::broken(#condition, __FILE__, __LINE__))

}  // namespace etvk_guard::testing
