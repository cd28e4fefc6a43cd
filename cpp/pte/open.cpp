// SPDX-License-Identifier: Apache-2.0
//
// Program::open: every check that makes the views in program.h safe to use, in this order.
//   1. identifier and extended header                        header.cpp
//   2. the Program flatbuffer's structure                    verify.h
//   3. segments: inside the file, apart from one another; what refers to them
//   4. methods: indices of values, operators, delegates      verify.cpp
//   5. delegates: their data exists; inline data do not overlap
//   6. Vulkan blobs, each once: header, VkGraph (graph.cpp), ranges of constants
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "error.h"
#include "program.h"
#include "verify.h"

namespace etvk_guard {
namespace {

// The first two of `ranges` that overlap without being equal (by index), or nothing. Empty ranges overlap none. O(n log n).
bool find_overlap(const std::vector<Range>& ranges, size_t* first, size_t* second) {
  std::vector<size_t> order;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].size != 0) {
      order.push_back(i);
    }
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::make_pair(ranges[a].offset, ranges[a].size) < std::make_pair(ranges[b].offset, ranges[b].size);
  });
  for (size_t i = 1; i < order.size(); ++i) {
    const Range& before = ranges[order[i - 1]];
    const Range& range = ranges[order[i]];
    if (range.offset < before.end() && !(range == before)) {
      *first = std::min(order[i - 1], order[i]);
      *second = std::max(order[i - 1], order[i]);
      return true;
    }
  }
  return false;
}

class Opener {
 public:
  Opener(const Reader& reader, ProgramImpl* program) : reader_(reader), program_(*program) {}

  Error run() {
    const bool done = structure() && segments() && constants() && named_data() && plans() && delegates() && inline_apart() &&
                      blobs() && workload();
    (void)done;  // error_ says the same
    return std::move(error_);
  }

 private:
  bool fail(Error error) {
    error_ = std::move(error);
    return false;
  }
  bool take(Error error) { return !error || fail(std::move(error)); }
  bool bad(const void* at, std::string message) {
    return fail(make_error(ErrorCode::kBadProgramFlatbuffer, program_.offset_of(at), "%s", message.c_str()));
  }

  bool structure() {
    program_.reader = &reader_;
    if (!take(ExtendedHeader::read(reader_, &program_.header)) ||
        !take(Bytes::load(reader_, {0, program_.header.program_size}, &program_.bytes))) {
      return false;
    }
    const Bytes& bytes = program_.bytes;
    if (!verify_structure<et::Program>(bytes.data(), bytes.size(), et::ProgramIdentifier())) {
      return fail(make_error(ErrorCode::kBadProgramFlatbuffer, 0,
                             "a table, vector or string of the program lies outside its %s bytes, or is misaligned",
                             number(bytes.size()).c_str()));
    }
    program_.root = et::GetProgram(bytes.data());
    budget_ = Budget(bytes.size());
    return true;
  }

  bool segments() {
    const auto* list = program_.root->segments();
    const uint64_t base = program_.header.segment_base;
    uint64_t largest = 0;
    for (uint32_t i = 0; i < count(list); ++i) {
      largest = std::max(largest, list->Get(i)->size());
    }
    // A program whose data are all inline still lists one empty segment, for the constants that it does not have.
    if (largest != 0 && base == 0) {
      return fail(make_error(ErrorCode::kBadExtendedHeader, ExtendedHeader::kOffset,
                             "the program has %u segments, but no extended header says where they are", list->size()));
    }
    for (uint32_t i = 0; i < count(list); ++i) {
      const et::DataSegment* segment = list->Get(i);
      Range range{0, segment->size()};
      if (!checked_add(base, segment->offset(), &range.offset) || !in_range(range.offset, range.size, reader_.size())) {
        return fail(make_error(ErrorCode::kSegmentOutOfRange, program_.offset_of(segment),
                               "segment %u has %s bytes at %s after byte %s, but the file has %s", i,
                               number(range.size).c_str(), number(segment->offset()).c_str(), number(base).c_str(),
                               number(reader_.size()).c_str()));
      }
      program_.segments.push_back(range);
    }
    size_t first = 0;
    size_t second = 0;
    if (find_overlap(program_.segments, &first, &second)) {
      return fail(make_error(ErrorCode::kSegmentsOverlap, program_.offset_of(list->Get(static_cast<uint32_t>(second))),
                             "segments %s and %s share bytes", number(first).c_str(), number(second).c_str()));
    }
    return true;
  }

  bool subsegments(const et::SubsegmentOffsets& table, const char* what) {
    if (count(table.offsets()) == 0) {
      return true;
    }
    if (table.segment_index() >= program_.segments.size()) {
      // A list with only the entry for "no constant" goes with no segment.
      return table.offsets()->size() == 1 ||
             bad(&table, format("%s is in segment %u of %zu", what, table.segment_index(), program_.segments.size()));
    }
    if (!items_aligned(table.offsets())) {
      return bad(&table, "a list of 64-bit numbers is not aligned");
    }
    const uint64_t size = program_.segments[table.segment_index()].size;
    for (uint32_t i = 1; i < table.offsets()->size(); ++i) {
      if (table.offsets()->Get(i) > size) {
        return bad(&table, format("item %u of %s starts beyond its segment", i, what));
      }
    }
    return true;
  }

  bool constants() {
    const et::SubsegmentOffsets* constants = program_.root->constant_segment();
    if (constants != nullptr && !subsegments(*constants, "the constant data")) {
      return false;
    }
    const auto* mutables = program_.root->mutable_data_segments();
    for (uint32_t i = 0; i < count(mutables); ++i) {
      // Each looked at in full, so that sharing one long list is not free.
      if (!budget_.spend(count(mutables->Get(i)->offsets()))) {
        return bad(mutables->Get(i), "its lists have more items than it has room for");
      }
      if (!subsegments(*mutables->Get(i), "mutable data")) {
        return false;
      }
    }
    return true;
  }

  bool named_data() {
    const auto* list = program_.root->named_data();
    for (uint32_t i = 0; i < count(list); ++i) {
      const et::NamedData* data = list->Get(i);
      if (data->key() == nullptr || !budget_.spend(data->key()->size())) {
        return bad(data, "named data has no usable name");
      }
      if (data->segment_index() >= program_.segments.size()) {
        return bad(data, format("named data is in segment %u of %zu", data->segment_index(), program_.segments.size()));
      }
      program_.named_data.push_back({view(data->key()), data->segment_index()});
    }
    std::stable_sort(program_.named_data.begin(), program_.named_data.end(),
                     [](const NamedSegment& a, const NamedSegment& b) { return a.key < b.key; });
    return true;
  }

  // A method is known by its name, here as in the runtime.
  bool plans() {
    std::set<std::string_view> names;
    for (uint32_t i = 0; i < program_.plan_count(); ++i) {
      const et::ExecutionPlan& plan = program_.plan(i);
      if (!take(verify_plan(plan, program_.bytes.data(), &budget_))) {
        return false;
      }
      if (!names.insert(program_.plan_name(i)).second) {
        bad(&plan, "two methods have one name");
        error_.where.method = program_.plan_name(i);
        return false;
      }
    }
    return true;
  }

  bool delegates() {
    for (uint32_t p = 0; p < program_.plan_count(); ++p) {
      const auto* list = program_.plan(p).delegates();
      for (uint32_t i = 0; i < count(list); ++i) {
        DelegateView delegate;
        delegate.id = {p, i};
        delegate.table = list->Get(i);
        if (!delegate_data(&delegate)) {
          error_.where = program_.where(delegate);
          error_.where.offset = program_.offset_of(delegate.table);
          return false;
        }
        program_.delegates.push_back(delegate);
      }
    }
    return true;
  }

  bool delegate_data(DelegateView* delegate) {
    const auto reference = [this](const char* what, uint32_t index, uint64_t limit) {
      return fail(make_error(ErrorCode::kBadDelegateReference, kNoOffset, "its data is %s %u of %s", what, index,
                             number(limit).c_str()));
    };
    const et::BackendDelegateDataReference* processed = delegate->table->processed();
    if (processed == nullptr) {
      return fail(make_error(ErrorCode::kBadDelegateReference, kNoOffset, "it has no data"));
    }
    const uint32_t index = processed->index();
    if (processed->location() == kInSegment) {
      if (index >= program_.segments.size()) {
        return reference("segment", index, program_.segments.size());
      }
      delegate->segment = static_cast<int32_t>(index);
      delegate->data = program_.segments[index];
      return true;
    }
    if (processed->location() != kInline) {
      return fail(make_error(ErrorCode::kUnsupportedSchema, kNoOffset, "its data has location %d", processed->location()));
    }
    const auto* list = program_.root->backend_delegate_data();
    if (index >= count(list)) {
      return reference("inline blob", index, count(list));
    }
    const auto* data = list->Get(index)->data();
    if (data != nullptr) {
      delegate->data = {program_.offset_of(data->data()), data->size()};
    }
    return true;
  }

  // With this, blobs take no more bytes than the file has.
  bool inline_apart() {
    std::vector<Range> ranges;
    std::vector<size_t> owners;
    for (size_t i = 0; i < program_.delegates.size(); ++i) {
      if (program_.delegates[i].segment < 0) {
        ranges.push_back(program_.delegates[i].data);
        owners.push_back(i);
      }
    }
    size_t first = 0;
    size_t second = 0;
    if (!find_overlap(ranges, &first, &second)) {
      return true;
    }
    Error error = make_error(ErrorCode::kSegmentsOverlap, kNoOffset, "its inline data shares bytes with another delegate's");
    error.where = program_.where(program_.delegates[owners[second]]);
    error.where.offset = ranges[second].offset;
    return fail(std::move(error));
  }

  bool blobs() {
    std::map<std::pair<uint64_t, uint64_t>, int32_t> known;
    for (DelegateView& delegate : program_.delegates) {
      if (program_.backend(delegate) != kVulkanBackend) {
        continue;
      }
      const auto found =
          known.emplace(std::make_pair(delegate.data.offset, delegate.data.size), static_cast<int32_t>(program_.blobs.size()));
      if (found.second) {
        program_.blobs.emplace_back();
        if (Error error = open_blob(delegate, &program_.blobs.back())) {
          Where where = program_.where(delegate);
          where.op_index = error.where.op_index;
          where.op = std::move(error.where.op);
          where.offset = error.where.offset;
          error.where = std::move(where);
          return fail(std::move(error));
        }
      }
      delegate.blob = found.first->second;
      program_.blobs[static_cast<size_t>(delegate.blob)].users.push_back(delegate.id);
    }
    return true;
  }

  Error open_blob(const DelegateView& delegate, Blob* blob) {
    blob->range = delegate.data;
    blob->segment = delegate.segment;
    if (delegate.segment < 0) {
      blob->inline_index = static_cast<int32_t>(delegate.table->processed()->index());
    }
    if (Error error = BlobHeader::read(reader_, blob->range, &blob->header)) {
      return error;
    }
    blob->graph_range = {blob->range.offset + blob->header.flatbuffer_offset, blob->header.flatbuffer_size};
    blob->bytes = {blob->range.offset + blob->header.bytes_offset, blob->header.bytes_size};
    if (blob->bytes.size == 0) {  // as the delegate reads it
      blob->bytes.size = blob->range.end() - blob->bytes.offset;
    }
    if (Error error = Bytes::load(reader_, blob->graph_range, &blob->graph_bytes)) {
      return error;
    }
    if (Error error =
            GraphView::open(blob->graph_bytes.data(), blob->graph_bytes.size(), blob->graph_range.offset, &blob->graph)) {
      return error;
    }
    return constant_ranges(*blob);
  }

  Error constant_ranges(const Blob& blob) const {
    const auto* list = blob.graph.root().constants();
    for (uint32_t i = 0; i < count(list); ++i) {
      const vk::VkBytes* bytes = list->Get(i);
      uint64_t available = blob.bytes.size;
      uint64_t offset = bytes->offset();
      if (offset == UINT64_MAX) {
        const int64_t segment = program_.find_named(view(bytes->named_key()));
        if (segment < 0) {
          continue;  // in an external data file
        }
        available = program_.segments[static_cast<size_t>(segment)].size;
        offset = 0;
      }
      if (!in_range(offset, bytes->length(), available)) {
        return make_error(ErrorCode::kBadConstant, blob.graph.offset_of(bytes),
                          "constant %u has %s bytes at %s of the %s that are there", i, number(bytes->length()).c_str(),
                          number(offset).c_str(), number(available).c_str());
      }
    }
    return {};
  }

  // Delegates may share a blob, and so a small file can stand for a very large number of ops. An honest op takes some hundred
  // bytes with its values, and a delegate some more.
  bool workload() {
    uint64_t bytes = program_.bytes.size();
    uint64_t ops = 0;
    for (const Blob& blob : program_.blobs) {
      bytes += blob.graph_range.size;
      ops += uint64_t{blob.graph.op_count()} * blob.users.size();
    }
    return ops <= bytes / 6 ||
           fail(make_error(ErrorCode::kTooLarge, kNoOffset, "its delegates share so much that they come to %s ops in %s bytes",
                           number(ops).c_str(), number(bytes).c_str()));
  }

  static constexpr int8_t kInline = 0;
  static constexpr int8_t kInSegment = 1;

  const Reader& reader_;
  ProgramImpl& program_;
  Budget budget_{0};
  Error error_;
};

}  // namespace

Error Program::open(const Reader& reader, Program* into) {
  auto impl = std::make_unique<ProgramImpl>();
  if (Error error = Opener(reader, impl.get()).run()) {
    return error;
  }
  into->impl_ = std::move(impl);
  return {};
}

}  // namespace etvk_guard
