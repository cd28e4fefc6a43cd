// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "builder.h"
#include "bytes.h"
#include "program.h"

namespace etvk_guard::testing {
namespace {

class Folder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "etvk_guard_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  void TearDown() override {
    std::remove(file().c_str());
    rmdir(path_.c_str());
  }
  std::string file() const { return path_ + "/model.pte"; }
  void write(const Buffer& bytes) const {
    std::ofstream(file(), std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
  }
  std::string path_;
};

TEST_F(Folder, NoSuchFile) {
  FileReader reader;
  const Error error = FileReader::open(file().c_str(), &reader);
  EXPECT_EQ(error.code, ErrorCode::kIoError);
  EXPECT_NE(error.message.find("No such file"), std::string::npos) << error.message;
}

TEST_F(Folder, NotAFile) {
  FileReader reader;
  EXPECT_EQ(FileReader::open(path_.c_str(), &reader).code, ErrorCode::kNotAFile);
  EXPECT_EQ(FileReader::open("/dev/null", &reader).code, ErrorCode::kNotAFile);
  ASSERT_EQ(mkfifo(file().c_str(), 0600), 0);
  EXPECT_EQ(FileReader::open(file().c_str(), &reader).code, ErrorCode::kNotAFile);  // and does not wait
}

TEST_F(Folder, EmptyFile) {
  write({});
  FileReader reader;
  EXPECT_EQ(FileReader::open(file().c_str(), &reader).code, ErrorCode::kEmptyFile);
}

TEST_F(Folder, ReadsLikeMemory) {
  const Buffer bytes = clean_file();
  write(bytes);
  FileReader opened;
  ASSERT_FALSE(FileReader::open(file().c_str(), &opened));
  FileReader reader = std::move(opened);
  EXPECT_EQ(reader.size(), bytes.size());
  Buffer copy(bytes.size() - 5);
  ASSERT_TRUE(reader.read(5, copy.data(), copy.size()));
  EXPECT_EQ(copy, Buffer(bytes.begin() + 5, bytes.end()));
  EXPECT_TRUE(reader.read(bytes.size(), copy.data(), 0));
  EXPECT_FALSE(reader.read(bytes.size(), copy.data(), 1));
  EXPECT_FALSE(reader.read(UINT64_MAX, copy.data(), 2));
  Program program;
  EXPECT_FALSE(Program::open(reader, &program));
}

TEST_F(Folder, FileThatShrinksIsAReadError) {
  write(Buffer(100));
  FileReader reader;
  ASSERT_FALSE(FileReader::open(file().c_str(), &reader));
  ASSERT_EQ(truncate(file().c_str(), 50), 0);
  uint8_t byte = 0;
  EXPECT_TRUE(reader.read(49, &byte, 1));
  EXPECT_FALSE(reader.read(50, &byte, 1));
}

// A flatbuffer above the limit for copies is mapped, from an offset that is no multiple of a page.
TEST_F(Folder, LargeFlatbufferIsMapped) {
  write({1, 2, 3});
  const uint64_t start = 4096 + 16;
  const uint64_t size = Bytes::kCopyLimit + 1;
  ASSERT_EQ(truncate(file().c_str(), static_cast<off_t>(start + size)), 0);  // sparse
  {
    std::fstream stream(file(), std::ios::binary | std::ios::in | std::ios::out);
    stream.seekp(static_cast<long>(start)).put('a');
    stream.seekp(static_cast<long>(start + size - 1)).put('z');
  }
  FileReader reader;
  ASSERT_FALSE(FileReader::open(file().c_str(), &reader));
  Bytes bytes;
  ASSERT_FALSE(Bytes::load(reader, {start, size}, &bytes));
  Bytes moved = std::move(bytes);
  EXPECT_EQ(moved.size(), size);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(moved.data()) % 16, 0u);
  EXPECT_EQ(moved.data()[0], 'a');
  EXPECT_EQ(moved.data()[size - 1], 'z');
}

TEST(Bytes, InPlaceWhereAlignedElseCopied) {
  alignas(16) uint8_t data[64] = {};
  data[17] = 5;
  const BytesReader reader(data, sizeof(data));
  Bytes there;
  ASSERT_FALSE(Bytes::load(reader, {16, 32}, &there));
  EXPECT_EQ(there.data(), data + 16);
  Bytes copied;
  ASSERT_FALSE(Bytes::load(reader, {17, 32}, &copied));
  EXPECT_NE(copied.data(), data + 17);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(copied.data()) % 16, 0u);
  EXPECT_EQ(copied.data()[0], 5);
}

TEST(Bytes, TooLargeForAFlatbuffer) {
  class Huge final : public Reader {
   public:
    uint64_t size() const override { return uint64_t{1} << 40; }
    bool read(uint64_t, void*, size_t) const override { return false; }
  };
  Bytes bytes;
  EXPECT_EQ(Bytes::load(Huge(), {0, (uint64_t{1} << 31) - 1}, &bytes).code, ErrorCode::kTooLarge);
}

TEST(Bytes, CheckedArithmetic) {
  uint64_t sum = 7;
  EXPECT_TRUE(checked_add(UINT64_MAX - 1, 1, &sum));
  EXPECT_EQ(sum, UINT64_MAX);
  EXPECT_FALSE(checked_add(UINT64_MAX, 1, &sum));
  EXPECT_TRUE(checked_mul(uint64_t{1} << 32, (uint64_t{1} << 32) - 1, &sum));
  EXPECT_FALSE(checked_mul(uint64_t{1} << 32, uint64_t{1} << 32, &sum));
  EXPECT_TRUE(checked_mul(UINT64_MAX, 0, &sum));
  EXPECT_EQ(sum, 0u);
  EXPECT_TRUE(in_range(4, 4, 8));
  EXPECT_TRUE(in_range(8, 0, 8));
  EXPECT_FALSE(in_range(5, 4, 8));
  EXPECT_FALSE(in_range(9, 0, 8));
  EXPECT_FALSE(in_range(8, UINT64_MAX, 8));
}

}  // namespace
}  // namespace etvk_guard::testing
