// SPDX-License-Identifier: Apache-2.0
//
// What a validated Program holds, for the other parts of this library and for the bindings. Nothing here is public API.
#pragma once

#include <etvk_guard/pte.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "bytes.h"
#include "graph.h"
#include "header.h"
#include "schema.h"

namespace etvk_guard {

inline constexpr std::string_view kVulkanBackend = "VulkanBackend";
inline constexpr std::string_view kGuardedSpec = "etvk_guard_runtime";  // compile spec of a delegate made for our runtime

// Place of a delegate in the program.
struct DelegateId {
  uint32_t plan = 0;   // index in Program.execution_plan
  uint32_t index = 0;  // index in ExecutionPlan.delegates
};

// One distinct blob of a Vulkan delegate; several delegates may share it.
struct Blob {
  Range range;                // in the file
  int32_t segment = -1;       // index in Program.segments of its first user, or -1: inline
  int32_t inline_index = -1;  // index in Program.backend_delegate_data of its first user, or -1: in a segment
  BlobHeader header;
  Range graph_range;  // the VkGraph flatbuffer, in the file
  Range bytes;        // the bytes region as the delegate sees it, in the file
  Bytes graph_bytes;
  GraphView graph;
  std::vector<DelegateId> users;  // in file order, at least one
};

// One delegate of one method.
struct DelegateView {
  DelegateId id;
  const et::BackendDelegate* table = nullptr;
  Range data;            // its blob in the file
  int32_t segment = -1;  // index in Program.segments, or -1: inline
  int32_t blob = -1;     // index in ProgramImpl::blobs, or -1: not a Vulkan delegate
};

struct NamedSegment {
  std::string_view key;
  uint32_t segment = 0;  // index in Program.segments
};

// Everything is validated: see open.cpp for the list. All references between tables are in range.
class ProgramImpl {
 public:
  const Reader* reader = nullptr;
  ExtendedHeader header;
  Bytes bytes;  // the Program flatbuffer; it starts at byte 0 of the file
  const et::Program* root = nullptr;
  std::vector<Range> segments;           // Program.segments, as ranges of the file
  std::vector<DelegateView> delegates;   // plan by plan, in file order
  std::vector<Blob> blobs;               // in order of first use
  std::vector<NamedSegment> named_data;  // Program.named_data, sorted by key (equal keys in file order)

  uint32_t plan_count() const;
  const et::ExecutionPlan& plan(uint32_t index) const { return *root->execution_plan()->Get(index); }
  std::string_view plan_name(uint32_t index) const;
  std::string_view backend(const DelegateView& delegate) const;
  // The delegate's compile spec of that key, or nullptr.
  const et::CompileSpec* compile_spec(const DelegateView& delegate, std::string_view key) const;
  // Offset in the file of a table, vector or string of the Program flatbuffer.
  uint64_t offset_of(const void* item) const { return static_cast<uint64_t>(static_cast<const uint8_t*>(item) - bytes.data()); }
  Where where(const DelegateView& delegate) const;

  // The segment of that name, or -1; the first of equal keys, as in the runtime. O(log n).
  int64_t find_named(std::string_view key) const;
  // Where the bytes of a graph's constant are in the file. False: under a name that the program does not have (external data).
  bool constant_range(const Blob& blob, uint32_t constant_id, Range* into) const;
  // Where the bytes of a plan's constant tensor are in the file (constant_segment, or constant_buffer in old files). `nbytes`
  // is what the tensor's shape asks for. False: there is no such index, or the range does not fit.
  bool plan_constant_range(uint32_t data_buffer_idx, uint64_t nbytes, Range* into) const;
  // The same of the value that a tensor in planned memory starts with (the first of mutable_data_segments, as exporters write it).
  bool plan_initial_range(uint32_t data_buffer_idx, uint64_t nbytes, Range* into) const;

 private:
  bool subsegment_range(const et::SubsegmentOffsets& from, uint32_t index, uint64_t nbytes, Range* into) const;
};

inline std::string_view view(const flatbuffers::String* string) {
  return string == nullptr ? std::string_view() : std::string_view(string->c_str(), string->size());
}

}  // namespace etvk_guard
