// SPDX-License-Identifier: Apache-2.0
//
// Verification of a flatbuffer: first its structure (flatbuffers' own verifier, bounded), then what the schema cannot say.
#pragma once

#include <etvk_guard/pte.h>

#include <cstdint>

#include "schema.h"

namespace etvk_guard {

// A flatbuffer may share its parts, so that a small file can stand for a huge tree. Lists and names of up to kFree items are
// taken as they come; longer ones draw on an allowance in proportion to the buffer, which an honest file cannot use up.
class Budget {
 public:
  static constexpr uint64_t kFree = 64;
  explicit Budget(size_t buffer_size) : left_(buffer_size) {}
  // False: the buffer spends more than it has.
  bool spend(uint64_t items) {
    if (items <= kFree) {
      return true;
    }
    if (items > left_) {
      return false;
    }
    left_ -= items;
    return true;
  }

 private:
  uint64_t left_;
};

// Whether the buffer is a sound flatbuffer of root type T. Each table takes 4 bytes or more to refer to, so an honest buffer
// has fewer tables than a quarter of its bytes. `data` is 16-byte aligned.
template <typename T>
bool verify_structure(const uint8_t* data, size_t size, const char* identifier) {
  flatbuffers::Verifier::Options options;
  options.max_depth = 64;
  options.max_tables = static_cast<flatbuffers::uoffset_t>(size / 4 + 16);
  options.check_alignment = true;
  flatbuffers::Verifier verifier(data, size, options);
  return verifier.VerifyBuffer<T>(identifier);
}

// The verifier aligns a vector's length, but not its items. True for null and for an empty vector.
template <typename V>
bool items_aligned(const V* vector) {
  return vector == nullptr || vector->size() == 0 ||
         reinterpret_cast<uintptr_t>(vector->Data()) % sizeof(typename V::value_type) == 0;
}

template <typename V>
uint64_t count(const V* vector) {
  return vector == nullptr ? 0 : vector->size();
}

// Whether all of a vector's items lie in [lowest, limit).
template <typename V>
bool items_below(const V* vector, int64_t limit, int64_t lowest = 0) {
  for (uint32_t i = 0; vector != nullptr && i < vector->size(); ++i) {
    const auto item = static_cast<int64_t>(vector->Get(i));
    if (item < lowest || item >= limit) {
      return false;
    }
  }
  return true;
}

// A method: its values, lists, chains, instructions, operators and delegates refer to what exists. `base` is the Program
// flatbuffer.
Error verify_plan(const et::ExecutionPlan& plan, const uint8_t* base, Budget* budget);

}  // namespace etvk_guard
