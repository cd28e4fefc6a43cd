// SPDX-License-Identifier: Apache-2.0
//
// The places in a sound flatbuffer whose bytes mean something, found by walking it along its schema.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "schema.h"

namespace etvk_guard::testing {

struct Slot {
  enum class Kind { kScalar, kOffset, kLength, kText, kField };  // kField: a table's entry in its vtable

  Kind kind = Kind::kScalar;
  size_t at = 0;    // from the start of the flatbuffer
  size_t size = 0;  // bytes; of a text, its length
  size_t target = 0;                             // of an offset: what it refers to
  const flatbuffers::TypeTable* type = nullptr;  // of an offset to a table: its schema
};

// `root` is the schema of a flatbuffer that its verifier takes.
std::vector<Slot> slots_of(const uint8_t* data, const flatbuffers::TypeTable* root);

}  // namespace etvk_guard::testing
