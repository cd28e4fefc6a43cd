// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace etvk_guard::kernels {

// A SPIR-V module compiled into the program.
struct EmbeddedSpirv {
  const char* name;
  const std::uint32_t* words;
  std::size_t word_count;
};

}  // namespace etvk_guard::kernels
