// SPDX-License-Identifier: Apache-2.0
//
// Files beyond 4 GiB, also where size_t has 32 bits, and bytes at any address.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "builder.h"
#include "header.h"
#include "repair_run.h"

namespace etvk_guard::testing {
namespace {

constexpr uint64_t kGap = uint64_t{5} << 30;

ProgramSpec between_others() {
  ProgramSpec spec;
  spec.segments = {counting(100, 7), blob_of(faulty_graph()), counting(33, 1)};
  spec.methods = {method("forward", {in_segment(1)})};
  return spec;
}

// A file of holes: the program at its start, its segments kGap further on than they would be.
class SparseFile {
 public:
  explicit SparseFile(ProgramSpec spec) : near_(spec.build()) {
    ExtendedHeader header;
    EXPECT_FALSE(ExtendedHeader::read(BytesReader(near_.data(), near_.size()), &header));
    base_ = static_cast<size_t>(header.segment_base);
    spec.segment_base = base_ + kGap;
    far_ = spec.build();
    std::string pattern = ::testing::TempDir() + "etvk_guard_XXXXXX";
    const int file = mkstemp(pattern.data());
    path_ = pattern;
    EXPECT_EQ(pwrite64(file, far_.data(), base_, 0), static_cast<ssize_t>(base_));
    const size_t tail = far_.size() - base_;
    EXPECT_EQ(pwrite64(file, far_.data() + base_, tail, static_cast<off64_t>(base_ + kGap)), static_cast<ssize_t>(tail));
    ::close(file);
  }
  ~SparseFile() { ::unlink(path_.c_str()); }

  const Buffer& near() const { return near_; }
  const char* path() const { return path_.c_str(); }
  uint64_t base() const { return base_ + kGap; }

 private:
  Buffer near_, far_;
  size_t base_ = 0;
  std::string path_;
};

// The findings are those of the small file, at offsets that are kGap larger.
TEST(Wide, SegmentsBeyondFourGibibytes) {
  const SparseFile sparse(between_others());
  Opened expected;
  open_and_check(sparse.near(), &expected);
  ASSERT_FALSE(expected.error) << expected.error.message;
  FileReader reader;
  ASSERT_FALSE(FileReader::open(sparse.path(), &reader));
  EXPECT_EQ(reader.size(), sparse.near().size() + kGap);
  Program program;
  const Error error = Program::open(reader, &program);
  ASSERT_FALSE(error) << error.message;
  Report report;
  ASSERT_FALSE(check(program, &report));
  ASSERT_EQ(report.findings.size(), 1u);
  ASSERT_EQ(expected.report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].message, expected.report.findings[0].message);
  EXPECT_EQ(report.findings[0].where.offset, expected.report.findings[0].where.offset + kGap);
}

// Behind the gap, the repaired file has the bytes of the small file's repair.
TEST(Wide, RepairBeyondFourGibibytes) {
  const SparseFile sparse(between_others());
  Opened small;
  open_and_check(sparse.near(), &small);
  Repair expected;
  ASSERT_FALSE(repair(small.program, &expected));
  FileReader reader;
  ASSERT_FALSE(FileReader::open(sparse.path(), &reader));
  Program program;
  ASSERT_FALSE(Program::open(reader, &program));
  Repair made;
  const Error error = repair(program, &made);
  ASSERT_FALSE(error) << error.message;
  EXPECT_EQ(made.repaired.size(), 1u);
  ASSERT_EQ(made.overlay.size(), expected.overlay.size() + kGap);
  Buffer want(static_cast<size_t>(expected.overlay.size() - (sparse.base() - kGap)));
  ASSERT_TRUE(expected.overlay.read(sparse.base() - kGap, want.data(), want.size()));
  Buffer got(want.size());
  ASSERT_TRUE(made.overlay.read(sparse.base(), got.data(), got.size()));
  EXPECT_EQ(got, want);
  Program again;
  ASSERT_FALSE(Program::open(made.overlay, &again));
  Report report;
  ASSERT_FALSE(check(again, &report));
  EXPECT_TRUE(report.clean());
}

// Sizes that only differ from small ones above bit 31 are not taken for those.
class Boundless final : public Reader {
 public:
  Boundless(Buffer head, uint64_t size) : head_(std::move(head)), size_(size) {}
  uint64_t size() const override { return size_; }
  bool read(uint64_t offset, void* into, size_t count) const override {
    if (offset + count > head_.size()) {
      return false;
    }
    std::memcpy(into, head_.data() + offset, count);
    return true;
  }

 private:
  Buffer head_;
  uint64_t size_;
};

TEST(Wide, FlatbuffersBeyondFourGibibytes) {
  ProgramSpec spec = between_others();
  const Buffer plain = spec.build();
  spec.program_size = (uint64_t{1} << 32) + plain.size();
  spec.segment_base = uint64_t{6} << 30;
  const Boundless with_header(spec.build(), uint64_t{8} << 30);
  Program program;
  EXPECT_EQ(Program::open(with_header, &program).code, ErrorCode::kTooLarge);
  spec.header = false;
  const Boundless without_header(spec.build(), (uint64_t{1} << 32) + plain.size());
  EXPECT_EQ(Program::open(without_header, &program).code, ErrorCode::kTooLarge);
}

TEST(Wide, GraphBeyondTheLimit) {
  ProgramSpec spec = between_others();
  BlobSpec blob;
  blob.graph = faulty_graph();
  blob.flatbuffer_size = 0xFFFFFF00u;
  blob.bytes_offset = 0xFFFFFFF0u;
  spec.segments[1] = blob.build();
  spec.table = std::vector<SegmentSpec>{{0, 100}, {112, uint64_t{5} << 30}, {uint64_t{6} << 30, 33}};
  spec.segment_data_size = (uint64_t{6} << 30) + 33;
  const Boundless reader(spec.build(), uint64_t{8} << 30);
  Program program;
  EXPECT_EQ(Program::open(reader, &program).code, ErrorCode::kTooLarge);
}

TEST(Wide, OverlayBeyondFourGibibytes) {
  const Buffer bytes = counting(1000, 0);
  const Boundless original(bytes, uint64_t{9} << 30);
  Overlay overlay(static_cast<const Reader&>(original));
  overlay.append_zeros(uint64_t{1} << 20);
  overlay.append_original(uint64_t{1} << 30, uint64_t{5} << 30);
  overlay.append_owned(counting(16, 3));
  overlay.append_original(0, 1000);
  const uint64_t end = (uint64_t{1} << 20) + (uint64_t{5} << 30);
  ASSERT_EQ(overlay.size(), end + 1016);
  Buffer got(26);
  ASSERT_TRUE(overlay.read(end, got.data(), got.size()));
  EXPECT_EQ(Buffer(got.begin(), got.begin() + 16), counting(16, 3));
  EXPECT_EQ(Buffer(got.begin() + 16, got.end()), counting(10, 0));
  EXPECT_FALSE(overlay.read(end - 1, got.data(), 2));  // the original's failure
  EXPECT_FALSE(overlay.read(end + 1016, got.data(), 1));
}

// The core copies what is not aligned; nothing that it finds or writes depends on where the bytes lie.
TEST(Wide, BytesAtAnyAddress) {
  const Buffer file = between_others().build();
  Opened aligned;
  open_and_check(file, &aligned);
  Repair expected;
  ASSERT_FALSE(repair(aligned.program, &expected));
  Buffer want(static_cast<size_t>(expected.overlay.size()));
  ASSERT_TRUE(expected.overlay.read(0, want.data(), want.size()));
  for (size_t shift = 0; shift < 16; ++shift) {
    Buffer shifted(shift);
    shifted.insert(shifted.end(), file.begin(), file.end());
    const BytesReader reader(shifted.data() + shift, file.size());
    Program program;
    ASSERT_FALSE(Program::open(reader, &program)) << shift;
    Repair made;
    ASSERT_FALSE(repair(program, &made)) << shift;
    Buffer got(static_cast<size_t>(made.overlay.size()));
    ASSERT_TRUE(made.overlay.read(0, got.data(), got.size())) << shift;
    EXPECT_EQ(got, want) << shift;
  }
}

}  // namespace
}  // namespace etvk_guard::testing
