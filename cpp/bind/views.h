// SPDX-License-Identifier: Apache-2.0
//
// From flatbuffers to Python objects, for the bindings of programs and graphs.
#pragma once

#include <string>
#include <vector>

#include "bind.h"
#include "program.h"

namespace etvk_guard::bind {

// Sizes, ids and the like; an absent vector is empty.
template <typename T>
std::vector<int64_t> numbers(const flatbuffers::Vector<T>* items) {
  std::vector<int64_t> made;
  if (items != nullptr) {
    made.reserve(items->size());
    for (const T item : *items) {
      made.push_back(static_cast<int64_t>(item));
    }
  }
  return made;
}

// The same as a tuple of Python numbers of the items' own type.
template <typename T>
py::tuple tuple_of(const flatbuffers::Vector<T>* items) {
  const size_t count = items == nullptr ? 0 : items->size();
  py::tuple made(count);
  for (size_t i = 0; i < count; ++i) {
    made[i] = items->Get(static_cast<flatbuffers::uoffset_t>(i));
  }
  return made;
}
inline py::tuple bools_of(const flatbuffers::Vector<uint8_t>* items) {
  py::tuple made(items == nullptr ? 0 : items->size());
  for (size_t i = 0; i < made.size(); ++i) {
    made[i] = py::bool_(items->Get(static_cast<flatbuffers::uoffset_t>(i)) != 0);
  }
  return made;
}

// kind, value. What the values of a kind are is written in etvk_guard.pte.
using ValueRow = std::pair<const char*, py::object>;

// Copies a range of the file, without the GIL. Raises IndexError where the range is not in it.
py::bytes read_checked(const Reader& reader, uint64_t offset, uint64_t size);

struct GraphHandle {
  std::shared_ptr<OwnedProgram> owner;
  const Blob* blob;
};

}  // namespace etvk_guard::bind
