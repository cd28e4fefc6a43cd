// SPDX-License-Identifier: Apache-2.0
//
// The overlay against a plain array of bytes.
#include <etvk_guard/pte.h>
#include <gtest/gtest.h>

#include <random>

namespace etvk_guard {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes random_bytes(std::mt19937& random, size_t count) {
  Bytes bytes(count);
  for (uint8_t& byte : bytes) {
    byte = static_cast<uint8_t>(random());
  }
  return bytes;
}

// Fails after a number of reads; shows nothing in place.
class FailingReader final : public Reader {
 public:
  FailingReader(const Bytes& bytes, int good) : bytes_(bytes), left_(good) {}
  uint64_t size() const override { return bytes_.size(); }
  bool read(uint64_t offset, void* into, size_t count) const override {
    if (left_-- <= 0) {
      return false;
    }
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), count, static_cast<uint8_t*>(into));
    return true;
  }

 private:
  const Bytes& bytes_;
  mutable int left_;
};

// Appends something to both.
void grow(std::mt19937& random, const Bytes& original, Overlay* overlay, Bytes* model) {
  const size_t length = random() % 40;
  switch (random() % 4) {
    case 0: {
      const size_t offset = random() % (original.size() - length);
      overlay->append_original(offset, length);
      model->insert(model->end(), original.begin() + static_cast<std::ptrdiff_t>(offset),
                    original.begin() + static_cast<std::ptrdiff_t>(offset + length));
      break;
    }
    case 1: {
      const Bytes bytes = random_bytes(random, length);
      model->insert(model->end(), bytes.begin(), bytes.end());
      overlay->append_owned(bytes);
      break;
    }
    case 2:
      overlay->append_zeros(length);
      model->insert(model->end(), length, 0);
      break;
    default: {
      const Bytes pattern = random_bytes(random, 1 + random() % 7);
      overlay->append_repeated(pattern, length);
      for (size_t i = 0; i < length; ++i) {
        model->push_back(pattern[i % pattern.size()]);
      }
    }
  }
}

// Whether one run of bytes covers a range, an extent or one repetition of its buffer: by looking at all.
bool in_one_run(const Overlay& overlay, uint64_t offset, size_t count) {
  for (const Overlay::Extent& extent : overlay.extents()) {
    const uint64_t step = extent.buffer < 0 ? extent.length : overlay.owned(static_cast<size_t>(extent.buffer)).size();
    if (offset >= extent.start && offset + count <= extent.start + extent.length) {
      return (offset - extent.start) / step == (offset - extent.start + count - 1) / step;
    }
  }
  return false;
}

void expect_same(const Overlay& overlay, const Bytes& model, std::mt19937& random) {
  ASSERT_EQ(overlay.size(), model.size());
  Bytes all(model.size());
  ASSERT_TRUE(overlay.read(0, all.data(), all.size()));
  ASSERT_EQ(all, model);
  for (int i = 0; i < 50; ++i) {
    const size_t offset = random() % (model.size() + 1);
    const size_t count = random() % (model.size() - offset + 1);
    const Bytes wanted(model.begin() + static_cast<std::ptrdiff_t>(offset),
                       model.begin() + static_cast<std::ptrdiff_t>(offset + count));
    Bytes got(count, 0xee);
    ASSERT_TRUE(overlay.read(offset, got.data(), count));
    ASSERT_EQ(got, wanted);
    const uint8_t* view = overlay.view(offset, count);
    ASSERT_EQ(view != nullptr, count > 0 && in_one_run(overlay, offset, count));
    if (view != nullptr) {
      ASSERT_EQ(Bytes(view, view + count), wanted);
    }
  }
}

TEST(Overlay, RandomExtents) {
  std::mt19937 random(7);
  const Bytes original = random_bytes(random, 200);
  const BytesReader reader(original.data(), original.size());
  for (int round = 0; round < 300; ++round) {
    Overlay overlay(reader);
    Bytes model;
    for (size_t parts = random() % 30; parts > 0; --parts) {
      grow(random, original, &overlay, &model);
    }
    expect_same(overlay, model, random);
    ASSERT_FALSE(HasFatalFailure()) << "round " << round;
  }
}

TEST(Overlay, OverAnOverlay) {
  std::mt19937 random(8);
  const Bytes original = random_bytes(random, 500);
  const BytesReader reader(original.data(), original.size());
  Overlay below(reader);
  Bytes middle;
  while (middle.size() < 300) {
    grow(random, original, &below, &middle);
  }
  Overlay above(static_cast<const Reader&>(below));
  Bytes model;
  for (int i = 0; i < 20; ++i) {
    grow(random, middle, &above, &model);
  }
  Bytes got(model.size());
  ASSERT_TRUE(above.read(0, got.data(), got.size()));
  EXPECT_EQ(got, model);
}

TEST(Overlay, Empty) {
  const Overlay overlay;
  uint8_t byte = 0;
  EXPECT_EQ(overlay.size(), 0u);
  EXPECT_TRUE(overlay.read(0, &byte, 0));
  EXPECT_FALSE(overlay.read(0, &byte, 1));
  EXPECT_EQ(overlay.view(0, 1), nullptr);
  EXPECT_EQ(overlay.view(0, 0), nullptr);
}

TEST(Overlay, RefusesWhatIsBeyondItsEnd) {
  const Bytes original(16, 1);
  const BytesReader reader(original.data(), original.size());
  Overlay overlay(reader);
  overlay.append_original(0, 16);
  uint8_t bytes[32];
  EXPECT_TRUE(overlay.read(16, bytes, 0));
  EXPECT_FALSE(overlay.read(17, bytes, 0));
  EXPECT_FALSE(overlay.read(0, bytes, 17));
  EXPECT_FALSE(overlay.read(16, bytes, 1));
  EXPECT_FALSE(overlay.read(UINT64_MAX, bytes, 2));
  EXPECT_EQ(overlay.view(UINT64_MAX, 2), nullptr);
  EXPECT_EQ(overlay.view(8, 9), nullptr);
}

TEST(Overlay, MergesAdjacentOriginalExtents) {
  const Bytes original(100, 1);
  const BytesReader reader(original.data(), original.size());
  Overlay overlay(reader);
  overlay.append_original(0, 10);
  overlay.append_original(10, 20);
  overlay.append_original(30, 0);
  overlay.append_original(30, 5);
  EXPECT_EQ(overlay.extents().size(), 1u);
  overlay.append_original(36, 4);
  overlay.append_owned({});
  overlay.append_owned({1});
  overlay.append_original(40, 4);
  EXPECT_EQ(overlay.extents().size(), 4u);
  EXPECT_EQ(overlay.size(), 44u);
}

TEST(Overlay, RepeatedBytesTakeNoMemory) {
  Overlay overlay;
  const uint64_t length = (uint64_t{3} << 30) + 4;  // beyond 32 bits of offset with what follows
  overlay.append_repeated({1, 2, 3}, length);
  overlay.append_owned({9});
  uint64_t owned = 0;
  for (size_t i = 0; i < 2; ++i) {
    owned += overlay.owned(i).size();
  }
  EXPECT_LE(owned, uint64_t{1} << 17);
  uint8_t bytes[3];
  for (const uint64_t at : {uint64_t{0}, uint64_t{65535}, uint64_t{65536}, length / 2, length - 3}) {
    ASSERT_TRUE(overlay.read(at, bytes, 3));
    EXPECT_EQ(bytes[0], at % 3 + 1);
    EXPECT_EQ(bytes[1], (at + 1) % 3 + 1);
  }
  ASSERT_TRUE(overlay.read(length, bytes, 1));
  EXPECT_EQ(bytes[0], 9);
}

TEST(Overlay, PassesOnTheReadersFailure) {
  const Bytes original(64, 1);
  uint8_t bytes[64];
  for (int good = 0; good < 3; ++good) {
    const FailingReader reader(original, good);
    Overlay overlay(reader);
    overlay.append_original(0, 10);
    overlay.append_owned({1, 2});
    overlay.append_original(20, 10);
    overlay.append_original(50, 10);
    EXPECT_FALSE(overlay.read(0, bytes, 32));
    EXPECT_EQ(overlay.view(0, 4), nullptr);
    EXPECT_NE(overlay.view(10, 2), nullptr);
  }
}

}  // namespace
}  // namespace etvk_guard
