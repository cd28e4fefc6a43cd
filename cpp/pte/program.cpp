// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <algorithm>

#include "verify.h"

namespace etvk_guard {

Program::Program() = default;
Program::~Program() = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
const Reader& Program::reader() const { return *impl_->reader; }

uint32_t ProgramImpl::plan_count() const { return static_cast<uint32_t>(count(root->execution_plan())); }

std::string_view ProgramImpl::plan_name(uint32_t index) const { return view(plan(index).name()); }

std::string_view ProgramImpl::backend(const DelegateView& delegate) const { return view(delegate.table->id()); }

const et::CompileSpec* ProgramImpl::compile_spec(const DelegateView& delegate, std::string_view key) const {
  const auto* specs = delegate.table->compile_specs();
  for (uint32_t i = 0; i < count(specs); ++i) {
    if (view(specs->Get(i)->key()) == key) {
      return specs->Get(i);
    }
  }
  return nullptr;
}

Where ProgramImpl::where(const DelegateView& delegate) const {
  Where where;
  where.method = std::string(plan_name(delegate.id.plan));
  where.delegate = static_cast<int32_t>(delegate.id.index);
  return where;
}

int64_t ProgramImpl::find_named(std::string_view key) const {
  const auto found = std::lower_bound(named_data.begin(), named_data.end(), key,
                                      [](const NamedSegment& entry, std::string_view wanted) { return entry.key < wanted; });
  return found == named_data.end() || found->key != key ? -1 : int64_t{found->segment};
}

bool ProgramImpl::constant_range(const Blob& blob, uint32_t constant_id, Range* into) const {
  const vk::VkBytes* constant = blob.graph.root().constants()->Get(constant_id);
  if (constant->offset() != UINT64_MAX) {
    *into = {blob.bytes.offset + constant->offset(), constant->length()};
    return true;
  }
  const int64_t segment = find_named(view(constant->named_key()));
  if (segment < 0) {
    return false;
  }
  *into = {segments[static_cast<size_t>(segment)].offset, constant->length()};
  return true;
}

bool ProgramImpl::subsegment_range(const et::SubsegmentOffsets& from, uint32_t index, uint64_t nbytes, Range* into) const {
  if (index >= count(from.offsets())) {
    return false;
  }
  const Range& segment = segments[from.segment_index()];
  const uint64_t offset = from.offsets()->Get(index);
  if (!in_range(offset, nbytes, segment.size)) {
    return false;
  }
  *into = {segment.offset + offset, nbytes};
  return true;
}

bool ProgramImpl::plan_initial_range(uint32_t data_buffer_idx, uint64_t nbytes, Range* into) const {
  const auto* mutables = root->mutable_data_segments();
  return count(mutables) != 0 && subsegment_range(*mutables->Get(0), data_buffer_idx, nbytes, into);
}

bool ProgramImpl::plan_constant_range(uint32_t data_buffer_idx, uint64_t nbytes, Range* into) const {
  const et::SubsegmentOffsets* constants = root->constant_segment();
  if (constants != nullptr && count(constants->offsets()) > 1) {
    return subsegment_range(*constants, data_buffer_idx, nbytes, into);
  }
  const auto* buffers = root->constant_buffer();
  if (data_buffer_idx >= count(buffers) || count(buffers->Get(data_buffer_idx)->storage()) < nbytes) {
    return false;
  }
  const auto* storage = buffers->Get(data_buffer_idx)->storage();
  *into = {storage == nullptr ? 0 : offset_of(storage->data()), nbytes};
  return true;
}

}  // namespace etvk_guard
