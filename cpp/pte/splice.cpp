// SPDX-License-Identifier: Apache-2.0
#include "splice.h"

#include <algorithm>
#include <map>
#include <utility>

#include "error.h"
#include "verify.h"

namespace etvk_guard {
namespace {

constexpr uint64_t kBlobAlignment = 16;
constexpr uint64_t kBlobGraphOffset = 32;  // the blob's header, padded
constexpr uint64_t kMinAlignment = 16;     // of segments
constexpr uint64_t kMaxAlignment = 65536;
constexpr uint64_t kMaxFlatbuffer = (1u << 31) - 1;

// Places of numbers after "eh00" in the extended header, from the start of the file.
constexpr uint64_t kProgramSizeAt = ExtendedHeader::kOffset + 8;
constexpr uint64_t kSegmentBaseAt = ExtendedHeader::kOffset + 16;
constexpr uint64_t kSegmentDataSizeAt = ExtendedHeader::kOffset + 24;

std::vector<uint8_t> little_endian(uint64_t value, size_t bytes) {
  std::vector<uint8_t> out(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    out[i] = static_cast<uint8_t>(value >> (8 * i));
  }
  return out;
}

void put(std::vector<uint8_t>* bytes, size_t at, uint64_t value, size_t size) {
  const std::vector<uint8_t> number = little_endian(value, size);
  std::copy(number.begin(), number.end(), bytes->begin() + static_cast<std::ptrdiff_t>(at));
}

// A blob as it will be.
class BlobPlan {
 public:
  BlobPlan(const Blob& blob, const RewrittenGraph& graph) : blob_(blob), graph_(graph) {
    bytes_offset_ = kBlobGraphOffset + align_up(graph.flatbuffer.size(), kBlobAlignment);
    tail_ = blob.range.end() - blob.bytes.offset;  // the bytes region, and what may follow it
    bytes_size_ = graph.data.empty() ? tail_ : graph.bytes_size;
  }
  uint64_t size() const { return bytes_offset_ + bytes_size_; }

  Error append(const Reader& reader, Overlay* into) const {
    if (blob_.header.length != BlobHeader::kLength) {
      return make_error(ErrorCode::kUnsupportedSchema, blob_.range.offset, "the Vulkan blob's header has %u bytes, not %u",
                        unsigned{blob_.header.length}, static_cast<unsigned>(BlobHeader::kLength));
    }
    std::vector<uint8_t> head(static_cast<size_t>(bytes_offset_));  // a graph in memory, and its header
    if (!reader.read(blob_.range.offset, head.data(), BlobHeader::kLength)) {
      return make_error(ErrorCode::kIoError, blob_.range.offset, "cannot read the Vulkan blob's header");
    }
    put(&head, 10, kBlobGraphOffset, 4);
    put(&head, 14, graph_.flatbuffer.size(), 4);
    put(&head, 18, bytes_offset_, 4);
    put(&head, 22, bytes_size_, 8);
    std::copy(graph_.flatbuffer.begin(), graph_.flatbuffer.end(), head.begin() + std::ptrdiff_t{kBlobGraphOffset});
    const uint64_t start = into->size();
    into->append_owned(std::move(head));
    into->append_original(blob_.bytes.offset, tail_);
    for (const NewData& data : graph_.data) {
      into->append_zeros(start + bytes_offset_ + data.offset - into->size());
      into->append_repeated(data.pattern, data.length);
    }
    into->append_zeros(start + size() - into->size());
    return {};
  }

 private:
  const Blob& blob_;
  const RewrittenGraph& graph_;
  uint64_t bytes_offset_, tail_, bytes_size_;
};

// A number to change in the Program flatbuffer or the extended header.
struct Patch {
  uint64_t offset;  // in the file
  std::vector<uint8_t> bytes;
};

// A segment, or several that are the same bytes.
struct Place {
  Range before, after;
  int32_t blob = -1;  // index in the list of new blobs
};

class Splicer {
 public:
  Splicer(const ProgramImpl& program, const std::vector<NewBlob>& blobs) : program_(program), blobs_(blobs) {
    for (const NewBlob& blob : blobs) {
      plans_.emplace_back(program.blobs[blob.blob], blob.graph);
    }
  }

  Error run(Overlay* into) {
    if (program_.header.present && program_.header.length > ExtendedHeader::kLengthWithData) {
      return make_error(ErrorCode::kUnsupportedSchema, ExtendedHeader::kOffset, "the extended header has %u bytes, not %u",
                        program_.header.length, ExtendedHeader::kLengthWithData);
    }
    place_inline();
    place_segments();
    if (program_end_ > kMaxFlatbuffer && program_end_ > program_.header.program_size) {
      return make_error(ErrorCode::kTooLarge, 0, "the program's flatbuffer would have %s bytes", number(program_end_).c_str());
    }
    patch_headers();
    patch_segments();
    if (Error error = order_patches()) {
      return error;
    }
    Overlay overlay(*program_.reader);
    if (Error error = emit(&overlay)) {
      return error;
    }
    *into = std::move(overlay);
    return {};
  }

 private:
  const Blob& old_blob(size_t index) const { return program_.blobs[blobs_[index].blob]; }

  // Inline blobs go after the Program flatbuffer, their vectors' items 16-byte aligned.
  void place_inline() {
    program_end_ = program_.header.program_size;
    for (size_t i = 0; i < blobs_.size(); ++i) {
      if (old_blob(i).segment >= 0) {
        continue;
      }
      const uint64_t items = align_up(program_end_ + sizeof(uint32_t), kBlobAlignment);
      inline_places_.push_back({i, items});
      program_end_ = items + plans_[i].size();
      for (const DelegateView& delegate : program_.delegates) {
        if (delegate.blob == static_cast<int32_t>(blobs_[i].blob) && delegate.segment < 0) {
          const auto* table = program_.root->backend_delegate_data()->Get(delegate.table->processed()->index());
          const uint8_t* field = flatbuffer_field(table, et::BackendDelegateInlineData::VT_DATA);
          const uint64_t at = program_.offset_of(field);
          patches_.push_back({at, little_endian(items - sizeof(uint32_t) - at, sizeof(uint32_t))});
        }
      }
    }
  }

  template <typename T>
  static const uint8_t* flatbuffer_field(const T* table, flatbuffers::voffset_t field) {
    return reinterpret_cast<const flatbuffers::Table*>(table)->GetAddressOf(field);
  }

  // The largest power of two that divides the start of every segment.
  uint64_t common_alignment() const {
    uint64_t alignment = kMaxAlignment;
    for (const Range& range : program_.segments) {
      while (alignment > kMinAlignment && range.offset % alignment != 0) {
        alignment /= 2;
      }
    }
    return alignment;
  }

  void place_segments() {
    std::map<std::pair<uint64_t, uint64_t>, int32_t> distinct;  // by offset, so in order
    for (const Range& range : program_.segments) {
      distinct.emplace(std::make_pair(range.offset, range.size), -1);
    }
    for (size_t i = 0; i < blobs_.size(); ++i) {
      if (old_blob(i).segment >= 0) {
        distinct[{old_blob(i).range.offset, old_blob(i).range.size}] = static_cast<int32_t>(i);
      }
    }
    const uint64_t alignment = common_alignment();
    base_shift_ = align_up(program_end_ - program_.header.program_size, alignment);
    shift_ = base_shift_;
    for (const auto& [range, blob] : distinct) {
      Place place;
      place.before = {range.first, range.second};
      place.after = {range.first + shift_, range.second};
      place.blob = blob;
      if (blob >= 0) {
        // A blob never shrinks, so that everything moves one way.
        place.after.size = std::max(plans_[static_cast<size_t>(blob)].size(), range.second);
        shift_ += align_up(place.after.size - range.second, alignment);
      }
      places_.push_back(place);
    }
  }

  const Place& place_of(const Range& range) const {
    return *std::lower_bound(places_.begin(), places_.end(), range, [](const Place& place, const Range& wanted) {
      return std::make_pair(place.before.offset, place.before.size) < std::make_pair(wanted.offset, wanted.size);
    });
  }

  void patch(uint64_t at, uint64_t before, uint64_t after) {
    if (before != after) {
      patches_.push_back({at, little_endian(after, sizeof(uint64_t))});
    }
  }

  void patch_headers() {
    const ExtendedHeader& header = program_.header;
    if (!header.present) {
      return;
    }
    patch(kProgramSizeAt, header.program_size, program_end_);
    if (header.segment_base != 0) {
      patch(kSegmentBaseAt, header.segment_base, header.segment_base + base_shift_);
    }
    if (header.has_segment_data_size() && header.segment_data_size != 0) {
      patch(kSegmentDataSizeAt, header.segment_data_size, header.segment_data_size + data_growth());
    }
  }

  // By how much the end of the last segment moves, against the base.
  uint64_t data_growth() const {
    uint64_t before = 0, after = base_shift_;
    for (const Place& place : places_) {
      before = std::max(before, place.before.end());
      after = std::max(after, place.after.end());
    }
    return after - before - base_shift_;
  }

  void patch_segments() {
    const auto* list = program_.root->segments();
    const uint64_t base = program_.header.segment_base + base_shift_;
    for (uint32_t i = 0; i < program_.segments.size(); ++i) {
      const et::DataSegment* table = list->Get(i);
      const Range& after = place_of(program_.segments[i]).after;
      patch_field(table, et::DataSegment::VT_OFFSET, table->offset(), after.offset - base);
      patch_field(table, et::DataSegment::VT_SIZE, table->size(), after.size);
    }
  }

  void patch_field(const et::DataSegment* table, flatbuffers::voffset_t field, uint64_t before, uint64_t after) {
    const uint8_t* at = flatbuffer_field(table, field);
    if (at != nullptr) {
      patch(program_.offset_of(at), before, after);
    } else if (before != after) {
      elided_ = program_.offset_of(table);
    }
  }

  // In order of place, each once.
  Error order_patches() {
    if (elided_ != kNoOffset) {
      return make_error(ErrorCode::kUnsupportedSchema, elided_,
                        "a segment's size or offset must change, but is left out as the default");
    }
    std::stable_sort(patches_.begin(), patches_.end(), [](const Patch& a, const Patch& b) { return a.offset < b.offset; });
    patches_.erase(std::unique(patches_.begin(), patches_.end(),
                               [](const Patch& a, const Patch& b) { return a.offset == b.offset && a.bytes == b.bytes; }),
                   patches_.end());
    for (size_t i = 1; i < patches_.size(); ++i) {
      if (patches_[i].offset < patches_[i - 1].offset + patches_[i - 1].bytes.size()) {
        return make_error(ErrorCode::kUnsupportedSchema, patches_[i].offset, "two numbers that must change share their bytes");
      }
    }
    return {};
  }

  Error emit(Overlay* overlay) {
    const uint64_t program_size = program_.header.program_size;
    uint64_t done = 0;  // of the original file
    for (Patch& change : patches_) {
      overlay->append_original(done, change.offset - done);
      done = change.offset + change.bytes.size();
      overlay->append_owned(std::move(change.bytes));
    }
    overlay->append_original(done, program_size - done);
    for (const auto& [index, items] : inline_places_) {
      overlay->append_zeros(items - sizeof(uint32_t) - overlay->size());
      overlay->append_owned(little_endian(plans_[index].size(), sizeof(uint32_t)));
      if (Error error = plans_[index].append(*program_.reader, overlay)) {
        return error;
      }
    }
    return emit_segments(overlay, program_size);
  }

  Error emit_segments(Overlay* overlay, uint64_t done) {
    for (const Place& place : places_) {
      if (place.before.offset > done) {
        overlay->append_original(done, place.before.offset - done);  // what is between segments
        done = place.before.offset;
      }
      if (place.after.offset > overlay->size()) {
        overlay->append_zeros(place.after.offset - overlay->size());
      }
      if (place.blob >= 0) {
        if (Error error = plans_[static_cast<size_t>(place.blob)].append(*program_.reader, overlay)) {
          return error;
        }
        overlay->append_zeros(place.after.end() - overlay->size());
      } else {
        overlay->append_original(place.before.offset, place.before.size);
      }
      done = std::max(done, place.before.end());
    }
    overlay->append_original(done, program_.reader->size() - done);  // what is after them
    return {};
  }

  const ProgramImpl& program_;
  const std::vector<NewBlob>& blobs_;
  std::vector<BlobPlan> plans_;
  std::vector<Patch> patches_;
  std::vector<std::pair<size_t, uint64_t>> inline_places_;  // index of the new blob, where its bytes start
  std::vector<Place> places_;
  uint64_t program_end_ = 0;
  uint64_t base_shift_ = 0;
  uint64_t shift_ = 0;
  uint64_t elided_ = kNoOffset;
};

}  // namespace

std::string other_user(const ProgramImpl& program, const Blob& blob) {
  for (const DelegateView& delegate : program.delegates) {
    if (delegate.blob < 0 && delegate.data == blob.range) {
      return "a delegate of another backend";
    }
  }
  if (blob.segment < 0) {
    return {};
  }
  const auto same = [&](uint64_t segment) {
    return segment < program.segments.size() && program.segments[static_cast<size_t>(segment)] == blob.range;
  };
  if (std::any_of(program.named_data.begin(), program.named_data.end(),
                  [&](const auto& named) { return same(named.segment); })) {
    return "named data";
  }
  const et::SubsegmentOffsets* constants = program.root->constant_segment();
  if (constants != nullptr && count(constants->offsets()) != 0 && same(constants->segment_index())) {
    return "the constant data";
  }
  const auto* mutables = program.root->mutable_data_segments();
  for (uint32_t i = 0; i < count(mutables); ++i) {
    if (count(mutables->Get(i)->offsets()) != 0 && same(mutables->Get(i)->segment_index())) {
      return "mutable data";
    }
  }
  return {};
}

Error splice(const ProgramImpl& program, const std::vector<NewBlob>& blobs, Overlay* into) {
  return Splicer(program, blobs).run(into);
}

}  // namespace etvk_guard
