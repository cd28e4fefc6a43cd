// SPDX-License-Identifier: Apache-2.0
//
// Overlays over bytes and over one another, read at any place, held against a plain model of what they mean.
#include <algorithm>

#include "bytes.h"
#include "exercise.h"

namespace etvk_guard::testing {
namespace {

constexpr int kMaxPieces = 24;
constexpr int kReads = 24;

// The input, a number at a time; zeros when it has ended.
class Script {
 public:
  Script(const uint8_t* data, size_t size) : data_(data), left_(size) {}
  bool ended() const { return left_ == 0; }
  uint64_t number(size_t bytes) {
    const size_t taken = std::min(bytes, left_);
    const uint64_t value = load_le(data_, static_cast<int>(taken));
    data_ += taken;
    left_ -= taken;
    return value;
  }
  uint64_t below(uint64_t limit, size_t bytes) { return limit == 0 ? 0 : number(bytes) % limit; }
  std::vector<uint8_t> bytes(size_t count) {
    std::vector<uint8_t> made;
    while (made.size() < count) {
      made.push_back(static_cast<uint8_t>(number(1)));
    }
    return made;
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

// What an overlay means: runs of a pattern, or of the model below.
class Model {
 public:
  explicit Model(std::vector<uint8_t> bytes) : base_(std::move(bytes)), size_(base_.size()) {}
  explicit Model(const Model* below) : below_(below) {}
  uint64_t size() const { return size_; }
  const Model& below() const { return *below_; }
  const std::vector<uint8_t>& base() const { return base_; }

  void add(std::vector<uint8_t> pattern, uint64_t source, uint64_t length) {
    if (length != 0) {
      pieces_.push_back({size_, source, std::move(pattern)});
      size_ += length;
    }
  }
  uint8_t at(uint64_t offset) const {
    if (below_ == nullptr) {
      return base_[static_cast<size_t>(offset)];
    }
    const auto after = std::upper_bound(pieces_.begin(), pieces_.end(), offset,
                                        [](uint64_t wanted, const Piece& piece) { return wanted < piece.start; });
    const Piece& piece = *(after - 1);
    const uint64_t within = offset - piece.start;
    return piece.pattern.empty() ? below_->at(piece.source + within)
                                 : piece.pattern[static_cast<size_t>(within % piece.pattern.size())];
  }

 private:
  struct Piece {
    uint64_t start, source;
    std::vector<uint8_t> pattern;  // empty: of the model below
  };
  const Model* below_ = nullptr;
  std::vector<uint8_t> base_;
  std::vector<Piece> pieces_;
  uint64_t size_ = 0;
};

void append_piece(Script* script, Overlay* overlay, Model* model) {
  const uint64_t kind = script->number(1);
  // Of any magnitude up to 16 GiB.
  const uint64_t length = script->number(5) & ((uint64_t{1} << (kind >> 2) % 35) - 1);
  if (kind % 4 == 0) {
    const uint64_t offset = script->below(model->below().size() + 1, 5);
    const uint64_t part = std::min(length, model->below().size() - offset);
    overlay->append_original(offset, part);
    model->add({}, offset, part);
  } else if (kind % 4 == 1) {
    const std::vector<uint8_t> bytes = script->bytes(length % 48);
    overlay->append_owned(bytes);
    model->add(bytes, 0, bytes.size());
  } else if (kind % 4 == 2) {
    overlay->append_zeros(length);
    model->add({0}, 0, length);
  } else {
    const std::vector<uint8_t> pattern = script->bytes(script->number(1) % 5);
    overlay->append_repeated(pattern, length);
    model->add(pattern, 0, pattern.empty() ? 0 : length);
  }
}

void expect_bytes(const uint8_t* bytes, const Model& model, uint64_t offset, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    ETVK_GUARD_PROMISE(bytes[i] == model.at(offset + i));
  }
}

void read_somewhere(Script* script, const Overlay& overlay, const Model& model) {
  const uint64_t around = overlay.extents().empty() ? 0 : overlay.extents()[script->number(1) % overlay.extents().size()].start;
  const uint64_t choice = script->number(1);
  const uint64_t offset = choice % 2 == 0 ? script->number(5) : around - std::min<uint64_t>(around, choice >> 1);
  const auto count = static_cast<size_t>(script->number(1) * (choice % 16 == 15 ? 40 : 1));
  std::vector<uint8_t> into(count);
  const bool there = in_range(offset, count, model.size());
  ETVK_GUARD_PROMISE(overlay.read(offset, into.data(), count) == there);
  const uint8_t* view = overlay.view(offset, count);
  ETVK_GUARD_PROMISE(there || view == nullptr);
  if (there) {
    expect_bytes(into.data(), model, offset, count);
  }
  if (view != nullptr) {
    expect_bytes(view, model, offset, count);
  }
}

void compose(Script* script, Overlay* overlay, Model* model) {
  for (int i = 0; i < kMaxPieces && !script->ended() && script->number(1) != 0xff; ++i) {
    append_piece(script, overlay, model);
  }
  ETVK_GUARD_PROMISE(overlay->size() == model->size());
}

}  // namespace

void exercise_overlay(const uint8_t* data, size_t size) {
  Script script(data, size);
  const Model base(script.bytes(script.number(1)));
  const BytesReader reader(base.base().data(), base.base().size());
  Overlay first(reader);
  Model first_model(&base);
  compose(&script, &first, &first_model);
  Overlay second(static_cast<const Reader&>(first));
  Model second_model(&first_model);
  compose(&script, &second, &second_model);
  for (int i = 0; i < kReads; ++i) {
    read_somewhere(&script, first, first_model);
    read_somewhere(&script, second, second_model);
  }
}

}  // namespace etvk_guard::testing
