// SPDX-License-Identifier: Apache-2.0
#include "slots.h"

#include <algorithm>

namespace etvk_guard::testing {
namespace {

using flatbuffers::ElementaryType;
using flatbuffers::Table;
using flatbuffers::TypeTable;
using Kind = Slot::Kind;

constexpr size_t kMaxItems = 64;  // of one vector

size_t scalar_size(ElementaryType type) {
  switch (type) {
    case flatbuffers::ET_SHORT:
    case flatbuffers::ET_USHORT:
      return 2;
    case flatbuffers::ET_INT:
    case flatbuffers::ET_UINT:
    case flatbuffers::ET_FLOAT:
      return 4;
    case flatbuffers::ET_LONG:
    case flatbuffers::ET_ULONG:
    case flatbuffers::ET_DOUBLE:
      return 8;
    default:
      return 1;
  }
}

class Walker {
 public:
  explicit Walker(const uint8_t* data) : data_(data) {}

  std::vector<Slot> run(const TypeTable* root) {
    offset(data_, root);
    table(reinterpret_cast<const Table*>(follow(data_)), root);
    return std::move(slots_);
  }

 private:
  static const uint8_t* follow(const uint8_t* at) { return at + flatbuffers::ReadScalar<flatbuffers::uoffset_t>(at); }
  size_t place(const uint8_t* at) const { return static_cast<size_t>(at - data_); }

  void add(Kind kind, const uint8_t* at, size_t size) { slots_.push_back({kind, place(at), size, 0, nullptr}); }
  void offset(const uint8_t* at, const TypeTable* type) {
    slots_.push_back({Kind::kOffset, place(at), 4, place(follow(at)), type});
  }

  void table(const Table* table, const TypeTable* type) {
    for (size_t field = 0; field < type->num_elems; ++field) {
      const auto entry = static_cast<flatbuffers::voffset_t>(4 + 2 * field);
      const uint8_t* at = table->GetAddressOf(entry);
      if (at != nullptr) {
        add(Kind::kField, table->GetVTable() + entry, 2);
        this->field(table, type, field, at);
      }
    }
  }

  void field(const Table* table, const TypeTable* type, size_t field, const uint8_t* at) {
    const flatbuffers::TypeCode code = type->type_codes[field];
    const auto base = static_cast<ElementaryType>(code.base_type);
    const TypeTable* target = code.sequence_ref >= 0 ? type->type_refs[code.sequence_ref]() : nullptr;
    if (target != nullptr && target->st == flatbuffers::ST_UNION && base == flatbuffers::ET_SEQUENCE) {
      const auto number = table->GetField<uint8_t>(static_cast<flatbuffers::voffset_t>(2 + 2 * field), 0);
      target = number == 0 || number >= target->num_elems ? nullptr
                                                          : target->type_refs[target->type_codes[number].sequence_ref]();
      if (target == nullptr) {
        return;
      }
    }
    if (code.is_repeating) {
      offset(at, nullptr);
      vector(follow(at), base, target);
    } else if (base == flatbuffers::ET_SEQUENCE) {
      offset(at, target);
      this->table(reinterpret_cast<const Table*>(follow(at)), target);
    } else if (base == flatbuffers::ET_STRING) {
      offset(at, nullptr);
      add(Kind::kLength, follow(at), 4);
      add(Kind::kText, follow(at) + 4, flatbuffers::ReadScalar<uint32_t>(follow(at)));
    } else {
      add(Kind::kScalar, at, scalar_size(base));
    }
  }

  void vector(const uint8_t* at, ElementaryType base, const TypeTable* target) {
    add(Kind::kLength, at, 4);
    const size_t count = std::min<size_t>(flatbuffers::ReadScalar<uint32_t>(at), kMaxItems);
    for (size_t i = 0; i < count; ++i) {
      if (base == flatbuffers::ET_SEQUENCE) {
        const uint8_t* item = at + 4 + 4 * i;
        offset(item, target);
        table(reinterpret_cast<const Table*>(follow(item)), target);
      } else {
        add(Kind::kScalar, at + 4 + i * scalar_size(base), scalar_size(base));
      }
    }
  }

  const uint8_t* data_;
  std::vector<Slot> slots_;
};

}  // namespace

std::vector<Slot> slots_of(const uint8_t* data, const TypeTable* root) { return Walker(data).run(root); }

}  // namespace etvk_guard::testing
