// SPDX-License-Identifier: Apache-2.0
#include "mutate.h"

#include <algorithm>
#include <cstring>

#include "grow.h"
#include "slots.h"
#include "verify.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace etvk_guard::testing {
namespace {

// Numbers that checks are about.
constexpr uint64_t kTelling[] = {0,      1,          2,          3,          4,          8,         16,       127,
                                 128,    255,        256,        0x7fff,     0xffff,     0x7ffffff, 1u << 30, 0x7fffffff,
                                 1u << 31, 0xfffffffc, 0xffffffff, UINT64_MAX, UINT64_MAX / 2, uint64_t{1} << 32};

// A place in the input whose bytes mean something, and the flatbuffer that it is in.
struct Place {
  Slot slot;
  size_t base;
};

class Mutator {
 public:
  Mutator(uint8_t* data, size_t size, size_t max_size, unsigned seed)
      : data_(data), size_(size), max_size_(max_size), random_(seed) {}

  size_t program() {
    const BytesReader reader(data_, size_);
    Program program;
    if (one_in(random_, 3) || Program::open(reader, &program)) {
      return LLVMFuzzerMutate(data_, size_, max_size_);
    }
    const ProgramImpl& impl = program.impl();
    if (one_in(random_, 3)) {
      return replace(grow_program(impl, random_));
    }
    numbers(ExtendedHeader::kOffset, impl.header.present ? 4 : 0, {{4, 4}, {8, 8}, {16, 8}, {24, 8}});
    flatbuffer(0, et::ProgramTypeTable());
    for (const Blob& blob : impl.blobs) {
      blob_slots(blob.range.offset, blob.graph_range.offset);
    }
    return edit();
  }

  size_t blob() {
    const BytesReader reader(data_, size_);
    Blob blob;
    if (one_in(random_, 3) || BlobHeader::read(reader, {0, size_}, &blob.header) || !open_graph(reader, &blob)) {
      return LLVMFuzzerMutate(data_, size_, max_size_);
    }
    if (one_in(random_, 3)) {
      return replace(grow_blob(blob, random_));
    }
    blob_slots(0, blob.header.flatbuffer_offset);
    return edit();
  }

 private:
  static bool open_graph(const Reader& reader, Blob* blob) {
    blob->graph_range = {blob->header.flatbuffer_offset, blob->header.flatbuffer_size};
    return !Bytes::load(reader, blob->graph_range, &blob->graph_bytes) &&
           !GraphView::open(blob->graph_bytes.data(), blob->graph_bytes.size(), blob->graph_range.offset, &blob->graph);
  }

  // Leaves an input as it is if there is nothing to put in its place.
  size_t replace(const Buffer& made) {
    if (made.empty() || made.size() > max_size_) {
      return LLVMFuzzerMutate(data_, size_, max_size_);
    }
    std::memcpy(data_, made.data(), made.size());
    return made.size();
  }

  void numbers(size_t base, size_t count, const std::vector<std::pair<size_t, size_t>>& fields) {
    for (size_t i = 0; i < std::min(count, fields.size()); ++i) {
      places_.push_back({{Slot::Kind::kScalar, fields[i].first, fields[i].second, 0, nullptr}, base});
    }
  }
  void flatbuffer(size_t base, const flatbuffers::TypeTable* root) {
    for (const Slot& slot : slots_of(data_ + base, root)) {
      places_.push_back({slot, base});
    }
  }
  void blob_slots(size_t blob, size_t graph) {
    numbers(blob, 5, {{8, 2}, {10, 4}, {14, 4}, {18, 4}, {22, 8}});
    flatbuffer(graph, vk::VkGraphTypeTable());
  }

  size_t edit() {
    const uint32_t edits = 1 + below(random_, 4);
    for (uint32_t i = 0; i < edits; ++i) {
      const Place& place = places_[below(random_, places_.size())];
      if (place.base + place.slot.at + place.slot.size <= size_) {
        change(place);
      }
    }
    return size_;
  }

  uint64_t load(const Place& place) const { return load_le(data_ + place.base + place.slot.at, static_cast<int>(place.slot.size)); }
  void store(const Place& place, uint64_t value) {
    std::memcpy(data_ + place.base + place.slot.at, &value, place.slot.size);  // little-endian, as the files are
  }

  // Near what is there, near nothing, telling, or anything.
  uint64_t number(uint64_t old) {
    switch (below(random_, 4)) {
      case 0:
        return old + below(random_, 9) - 4;
      case 1:
        return below(random_, 32);
      case 2:
        return kTelling[below(random_, std::size(kTelling))] + (one_in(random_, 4) ? uint64_t{below(random_, 3)} - 1 : 0);
      default:
        return (uint64_t{random_()} << 31) ^ random_();
    }
  }

  // The same number as another place has, or a new one.
  void scalar(const Place& place) {
    if (one_in(random_, 3)) {
      const Place& other = places_[below(random_, places_.size())];
      if (other.slot.kind == Slot::Kind::kScalar && other.slot.size == place.slot.size) {
        return store(place, load(other));
      }
    }
    store(place, number(load(place)));
  }

  // To another table of the same schema, behind it; else anywhere.
  void offset(const Place& place) {
    for (int attempt = 0; attempt < 16; ++attempt) {
      const Place& other = places_[below(random_, places_.size())];
      const bool fits = other.base == place.base && other.slot.kind == Slot::Kind::kOffset &&
                        other.slot.type == place.slot.type && other.slot.target > place.slot.at;
      if (fits) {
        return store(place, other.slot.target - place.slot.at);
      }
    }
    store(place, number(load(place)));
  }

  // Another name, cut to the room that there is.
  void text(const Place& place) {
    uint8_t* const at = data_ + place.base + place.slot.at;
    const std::string& name = op_name(random_);
    const size_t length = std::min(name.size(), place.slot.size);
    std::memcpy(at, name.data(), length);
    if (length < place.slot.size) {
      at[length] = 0;
      const auto stored = static_cast<uint32_t>(length);
      std::memcpy(at - 4, &stored, 4);
    }
  }

  void change(const Place& place) {
    switch (place.slot.kind) {
      case Slot::Kind::kScalar:
        return scalar(place);
      case Slot::Kind::kOffset:
        return offset(place);
      case Slot::Kind::kLength:
        return store(place, number(load(place)));
      case Slot::Kind::kText:
        return text(place);
      case Slot::Kind::kField:
        return store(place, one_in(random_, 2) ? 0 : number(load(place)));
    }
  }

  uint8_t* data_;
  size_t size_, max_size_;
  Random random_;
  std::vector<Place> places_;
};

}  // namespace

size_t mutate_program(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return Mutator(data, size, max_size, seed).program();
}

size_t mutate_blob(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return Mutator(data, size, max_size, seed).blob();
}

}  // namespace etvk_guard::testing
