// SPDX-License-Identifier: Apache-2.0
#include "schema.h"

namespace etvk_guard {
namespace {

using flatbuffers::ElementaryType;
using flatbuffers::Table;
using flatbuffers::TypeTable;
using Tables = flatbuffers::Vector<flatbuffers::Offset<Table>>;

constexpr flatbuffers::voffset_t kFirstField = 4;  // a vtable starts with its own size and the table's

flatbuffers::voffset_t field_offset(size_t index) {
  return static_cast<flatbuffers::voffset_t>(kFirstField + index * sizeof(flatbuffers::voffset_t));
}

// Appends the path below `path`, or leaves it. True: an unknown field was found.
bool walk(const Table* table, const TypeTable* type, std::string* path);

// The table type of a union field: its type number is the field before it. Unknown number: nullptr.
const TypeTable* union_member(const Table* table, const TypeTable* member_types, size_t field, bool* unknown) {
  const uint8_t number = table->GetField<uint8_t>(field_offset(field - 1), 0);
  *unknown = number >= member_types->num_elems;
  if (number == 0 || *unknown) {
    return nullptr;
  }
  return member_types->type_refs[member_types->type_codes[number].sequence_ref]();
}

bool walk_field(const Table* table, const TypeTable* type, size_t field, std::string* path) {
  const flatbuffers::TypeCode code = type->type_codes[field];
  if (code.base_type != flatbuffers::ET_SEQUENCE) {
    return false;
  }
  const TypeTable* target = type->type_refs[code.sequence_ref]();
  const size_t length = path->size();
  *path += std::string(".") + type->names[field];
  if (code.is_repeating) {
    const auto* items = table->GetPointer<const Tables*>(field_offset(field));
    for (flatbuffers::uoffset_t i = 0; items != nullptr && i < items->size(); ++i) {
      if (walk(items->Get(i), target, path)) {
        return true;
      }
    }
  } else {
    bool unknown = false;
    const TypeTable* found = target->st == flatbuffers::ST_UNION ? union_member(table, target, field, &unknown) : target;
    const auto* item = found == nullptr ? nullptr : table->GetPointer<const Table*>(field_offset(field));
    if (unknown || (item != nullptr && walk(item, found, path))) {
      return true;
    }
  }
  path->resize(length);
  return false;
}

bool walk(const Table* table, const TypeTable* type, std::string* path) {
  if (has_unknown_fields(table, known_fields(type))) {
    return true;
  }
  for (size_t field = 0; field < type->num_elems; ++field) {
    if (walk_field(table, type, field, path)) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool has_unknown_fields(const Table* table, uint16_t known_count) {
  const uint8_t* vtable = table->GetVTable();
  const auto size = flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable);
  for (size_t at = field_offset(known_count); at + sizeof(flatbuffers::voffset_t) <= size;
       at += sizeof(flatbuffers::voffset_t)) {
    if (flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable + at) != 0) {
      return true;
    }
  }
  return false;
}

std::string find_unknown_field(const Table* root, const TypeTable* type, const char* name) {
  std::string path = name;
  return walk(root, type, &path) ? path : std::string();
}

}  // namespace etvk_guard
