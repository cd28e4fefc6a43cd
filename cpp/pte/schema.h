// SPDX-License-Identifier: Apache-2.0
//
// The generated views of the two flatbuffers, and what the generated code does not give: fields from a newer schema.
#pragma once

#include <graph_generated.h>
#include <program_generated.h>

#include <cstdint>
#include <string>

namespace etvk_guard {

// Fields in a table's vtable at index `known_count` or above, present with a value: the table was written by a newer schema. A
// union counts as two fields (its type, its value).
bool has_unknown_fields(const flatbuffers::Table* table, uint16_t known_count);

// Number of fields that our schema gives a table: known_fields(vk::VkTensorTypeTable()).
inline uint16_t known_fields(const flatbuffers::TypeTable* type) { return static_cast<uint16_t>(type->num_elems); }

// Walks a *verified* flatbuffer from `root`, a table of `type`. The path of field names to the first table that has a field, or
// union that has a type, that our schema does not know, e.g. "VkGraph.values.value" with `name` "VkGraph"; empty if there is
// none.
std::string find_unknown_field(const flatbuffers::Table* root, const flatbuffers::TypeTable* type, const char* name);

}  // namespace etvk_guard
