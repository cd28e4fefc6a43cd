// SPDX-License-Identifier: Apache-2.0
//
// Files as exported by a release of ExecuTorch, damaged in every way that is small, and the files that fuzzing kept: see
// exercise.h for what is held against them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "builder.h"
#include "exercise.h"
#include "program.h"

namespace etvk_guard::testing {
namespace {

namespace fs = std::filesystem;

Buffer contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Buffer(std::istreambuf_iterator<char>(file), {});
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() != ".py") {
      found.push_back(entry.path());
    }
  }
  return found;
}

class RealFile : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    whole_ = contents(fs::path(ETVK_GUARD_TESTS_FOLDER) / "data/releases/1.5.1" / GetParam());
    ASSERT_GT(whole_.size(), 1000u);
  }
  Buffer whole_;
};

INSTANTIATE_TEST_SUITE_P(Files, RealFile, ::testing::Values("one_plus.pte", "layer_norm_bare.pte", "split.pte"),
                         [](const auto& info) { return fs::path(info.param).stem().string(); });

// The end of what the program refers to; padding may be missing.
uint64_t last_byte(const Buffer& file) {
  Opened opened;
  open_and_check(file, &opened);
  EXPECT_FALSE(opened.error) << opened.error.message;
  uint64_t end = 0;
  for (const Range& segment : opened.program.impl().segments) {
    end = std::max(end, segment.end());
  }
  return end;
}

// Bytes of its own for each prefix, so that a read past the end is seen by AddressSanitizer.
TEST_P(RealFile, EveryPrefixFails) {
  const uint64_t end = last_byte(whole_);
  ASSERT_GT(end, whole_.size() / 2);
  for (size_t size = 0; size < end; ++size) {
    const Buffer prefix(whole_.begin(), whole_.begin() + static_cast<std::ptrdiff_t>(size));
    Opened opened;
    open_and_check(prefix, &opened);
    ASSERT_TRUE(opened.error) << size << " of " << whole_.size() << " bytes pass";
  }
}

TEST_P(RealFile, EverySingleBitFlip) {
  Buffer file = whole_;
  for (size_t at = 0; at < file.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      file[at] ^= static_cast<uint8_t>(1 << bit);
      Opened opened;
      open_and_check(file, &opened);
      if (!opened.error) {
        walk(opened.program);
        if ((at * 9 + static_cast<size_t>(bit)) % 32 == 0) {  // takes longer: for one bit of four bytes
          exercise_repair(file.data(), file.size());
        }
      }
      file[at] = whole_[at];
    }
  }
}

TEST_P(RealFile, TenThousandCorruptions) {
  std::mt19937 random(20261201);
  const uint8_t telling[] = {0, 1, 4, 0x7f, 0x80, 0xfc, 0xff};
  for (int round = 0; round < 10000; ++round) {
    Buffer file = whole_;
    const int changes = 2 + static_cast<int>(random() % 7);
    for (int i = 0; i < changes; ++i) {
      file[random() % file.size()] =
          random() % 2 != 0 ? telling[random() % sizeof(telling)] : static_cast<uint8_t>(random());
    }
    exercise_repair(file.data(), file.size());
  }
}

TEST(RealFiles, All) {
  const std::vector<fs::path> files = files_in(fs::path(ETVK_GUARD_TESTS_FOLDER) / "data");
  size_t programs = 0;
  for (const fs::path& path : files) {
    SCOPED_TRACE(path.string());
    const Buffer file = contents(path);
    exercise_check(file.data(), file.size());
    exercise_repair(file.data(), file.size());
    programs += path.extension() == ".pte" ? 1 : 0;
  }
  EXPECT_GT(programs, 30u);
}

struct Kept {
  const char* target;
  void (*exercise)(const uint8_t*, size_t);
};

class Corpus : public ::testing::TestWithParam<Kept> {};

INSTANTIATE_TEST_SUITE_P(Targets, Corpus,
                         ::testing::Values(Kept{"check", exercise_check}, Kept{"repair", exercise_repair},
                                           Kept{"blob", exercise_blob}, Kept{"overlay", exercise_overlay}),
                         [](const auto& info) { return std::string(info.param.target); });

TEST_P(Corpus, KeepsItsPromises) {
  const std::vector<fs::path> files = files_in(fs::path(ETVK_GUARD_TESTS_FOLDER) / "fuzz/corpus" / GetParam().target);
  EXPECT_GT(files.size(), 10u);
  for (const fs::path& path : files) {
    SCOPED_TRACE(path.string());
    const Buffer file = contents(path);
    GetParam().exercise(file.data(), file.size());
  }
}

}  // namespace
}  // namespace etvk_guard::testing
