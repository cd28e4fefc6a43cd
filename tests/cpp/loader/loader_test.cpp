// SPDX-License-Identifier: Apache-2.0
//
// What is served: the bytes of the file that repair writes, from the wrapped loader wherever they are its own.
#include <random>

#include "fake_loader.h"
#include "repair_run.h"

namespace etvk_guard::testing {
namespace {

// Every range of a kind: all bytes, random ranges, and those around each change.
void expect_serves(const GuardedDataLoader& loader, const FileBytes& expected) {
  const Result<size_t> size = loader.size();
  ASSERT_TRUE(size.ok());
  ASSERT_EQ(*size, expected.size());
  std::mt19937 random(3);
  std::vector<std::pair<size_t, size_t>> ranges = {{0, expected.size()}, {0, 64}, {expected.size(), 0}};
  for (int i = 0; i < 400; ++i) {
    const size_t offset = random() % expected.size();
    const size_t left = expected.size() - offset;
    ranges.emplace_back(offset, i % 2 == 0 ? 1 + random() % left : std::min<size_t>(left, 1 + random() % 40));
  }
  for (const auto& [offset, count] : ranges) {
    const FileBytes wanted = slice(expected, offset, count);
    Result<FreeableBuffer> buffer = loader.load(offset, count, kProgramInfo);
    ASSERT_TRUE(buffer.ok()) << offset << " + " << count;
    ASSERT_EQ(buffer->size(), count);
    ASSERT_EQ(bytes_of(*buffer), wanted) << offset << " + " << count;
    FileBytes copy(count + 1, 0xee);
    ASSERT_EQ(loader.load_into(offset, count, kProgramInfo, copy.data()), RuntimeError::Ok);
    ASSERT_EQ(copy.back(), 0xee);
    copy.pop_back();
    ASSERT_EQ(copy, wanted);
  }
}

class EachRelease : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Files, EachRelease,
                         ::testing::Values("1.3.1/one_plus.pte", "1.4.1/gated.pte", "1.5.1/runtime_b1d.pte",
                                           "1.5.1/constant_rows.pte", "1.5.1/methods.pte", "1.5.1/split.pte",
                                           "1.3.1/layer_norm_runtime.pte", "1.4.1/leaf.pte"));

TEST_P(EachRelease, IsServedAsRepairWritesIt) {
  const FileBytes file = release_file(GetParam());
  const FileBytes expected = repaired_file(file);
  const bool faulty = GetParam() != "1.4.1/leaf.pte";
  ASSERT_EQ(expected != file, faulty);
  for (const bool no_load_into : {false, true}) {
    auto fake = std::make_unique<FakeLoader>(file);
    fake->no_load_into = no_load_into;
    const FakeLoader& wrapped = *fake;
    {
      const GuardedDataLoader loader(std::move(fake));
      EXPECT_EQ(loader.report(), nullptr);
      expect_serves(loader, expected);
      ASSERT_NE(loader.report(), nullptr);
      EXPECT_EQ(loader.report()->outcome, faulty ? LoadOutcome::kRepaired : LoadOutcome::kClean);
      EXPECT_EQ(loader.report()->repaired.empty(), !faulty);
      EXPECT_EQ(wrapped.alive, 0);
    }
  }
}

TEST(Loader, ProgramsWithTheirBlobsInline) {
  ProgramSpec spec;
  spec.inline_blobs = {blob_of(clean_graph(), counting(3000, 9)), blob_of(faulty_graph(), counting(1000, 1))};
  spec.methods = {method("forward", {in_line(0), in_line(1)})};
  for (const bool header : {true, false}) {
    spec.header = header;
    const FileBytes file = spec.build();
    FakeLoader fake(file);
    const GuardedDataLoader loader(&fake);
    const FileBytes expected = repaired_file(file);
    ASSERT_NE(expected, file);
    expect_serves(loader, expected);
  }
}

// Segments of many kinds around the faulty one: those before it stay, those after it move.
FileBytes many_segments() {
  ProgramSpec spec;
  spec.segments = {counting(100, 1), blob_of(faulty_graph()), counting(33, 2), blob_of(clean_graph()), counting(1000, 4)};
  spec.named = {{"first", 0}, {"second", 2}};
  spec.constant_segment = {4, {0, 16}};
  spec.methods = {method("forward", {in_segment(1), in_segment(3)})};
  return spec.build();
}

TEST(Loader, UnchangedRangesAreTheWrappedLoadersOwnBuffers) {
  FakeLoader fake(many_segments());
  fake.in_place = true;
  const GuardedDataLoader loader(&fake);
  const FileBytes expected = repaired_file(fake.bytes());
  expect_serves(loader, expected);
  const BytesReader reader(fake.bytes().data(), fake.bytes().size());
  const BytesReader fixed_reader(expected.data(), expected.size());
  Program before, after;
  ASSERT_FALSE(Program::open(reader, &before));
  ASSERT_FALSE(Program::open(fixed_reader, &after));
  const struct {
    Type type;
    const char* descriptor;
    bool own;
  } kinds[] = {{Type::External, nullptr, true},
               {Type::Backend, "VulkanBackend", false},
               {Type::Mutable, nullptr, true},
               {Type::Backend, "VulkanBackend", true},
               {Type::Constant, nullptr, true}};
  for (size_t i = 0; i < std::size(kinds); ++i) {
    const Range was = before.impl().segments[i];
    const Range is = after.impl().segments[i];
    const int calls = fake.calls;
    const Result<FreeableBuffer> buffer = loader.load(is.offset, is.size, SegmentInfo(kinds[i].type, i, kinds[i].descriptor));
    ASSERT_TRUE(buffer.ok());
    EXPECT_EQ(buffer->data() == fake.bytes().data() + was.offset, kinds[i].own) << i;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % alignof(std::max_align_t), 0u);
    if (kinds[i].own) {
      EXPECT_EQ(fake.calls, calls + 1);
      EXPECT_EQ(fake.last_offset, was.offset);
      EXPECT_EQ(fake.last_info.segment_type, kinds[i].type);
      EXPECT_EQ(fake.last_info.segment_index, i);
      EXPECT_EQ(fake.last_info.descriptor, kinds[i].descriptor);
    }
  }
  EXPECT_GT(after.impl().segments[4].offset, before.impl().segments[4].offset);  // it has moved, and is still served in place
}

TEST(Loader, MemoryIsAlignedAsInAMappedFile) {
  const FileBytes file = release_file("1.5.1/gated.pte");
  FakeLoader fake(file);
  GuardedLoaderOptions options;
  options.alignment = 256;
  const GuardedDataLoader asked(&fake, options);
  const GuardedDataLoader plain(&fake);
  const size_t size = *plain.size();
  for (size_t offset = 1; offset < size; offset *= 2) {
    for (const GuardedDataLoader* loader : {&asked, &plain}) {
      const Result<FreeableBuffer> made = loader->load(0, size, kProgramInfo);  // straddles: from memory
      EXPECT_EQ(reinterpret_cast<uintptr_t>(made->data()) % 4096, 0u);
      const Result<FreeableBuffer> part = loader->load(16, size - 16, kProgramInfo);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(part->data()) % (loader == &asked ? 256u : 16u), 0u);
    }
  }
}

TEST(Loader, BuffersFromMemoryOutliveTheLoader) {
  const FileBytes file = release_file("1.5.1/gated.pte");
  const FileBytes expected = repaired_file(file);
  auto loader = std::make_unique<GuardedDataLoader>(std::make_unique<FakeLoader>(file));
  const Result<FreeableBuffer> all = loader->load(0, expected.size(), kProgramInfo);
  ASSERT_TRUE(all.ok());
  loader.reset();
  EXPECT_EQ(bytes_of(*all), expected);
}

TEST(Loader, ACleanFileIsReadOnceAndIsTheWrappedLoadersFromThenOn) {
  ProgramSpec spec;
  spec.segments = {blob_of(clean_graph(), Buffer(1u << 20, 7)), Buffer(4u << 20, 5)};
  spec.named = {{"weights", 1}};
  spec.methods = {method("forward", {in_segment(0)})};
  FakeLoader fake(spec.build());
  fake.in_place = true;
  const GuardedDataLoader loader(&fake);
  ASSERT_EQ(loader.check(), RuntimeError::Ok);
  EXPECT_LT(fake.read, 8192u);  // of 5 MB
  const int calls = fake.calls;
  ASSERT_EQ(loader.check(), RuntimeError::Ok);
  EXPECT_EQ(*loader.size(), fake.bytes().size());
  EXPECT_EQ(fake.calls, calls);
  const Result<FreeableBuffer> buffer = loader.load(123, 4567, kProgramInfo);
  EXPECT_EQ(buffer->data(), fake.bytes().data() + 123);
  EXPECT_EQ(fake.calls, calls + 1);
}

TEST(Loader, AroundAnotherOne) {
  const FileBytes file = release_file("1.5.1/methods.pte");
  FakeLoader fake(file);
  GuardedDataLoader inner(&fake);
  const GuardedDataLoader outer(&inner);
  expect_serves(outer, repaired_file(file));
  EXPECT_EQ(inner.report()->outcome, LoadOutcome::kRepaired);
  EXPECT_EQ(outer.report()->outcome, LoadOutcome::kClean);
}

TEST(Loader, DataFilesArePassedOn) {
  FileBytes data(300, 3);
  std::memcpy(data.data() + 4, "FT01", 4);
  FakeLoader fake(data);
  fake.in_place = true;
  for (const LoadPolicy policy : {LoadPolicy::kRepair, LoadPolicy::kRefuse, LoadPolicy::kReport}) {
    GuardedLoaderOptions options;
    options.policy = policy;
    const GuardedDataLoader loader(&fake, options);
    expect_serves(loader, data);
    EXPECT_EQ(loader.report()->outcome, LoadOutcome::kPassedOn);
    EXPECT_EQ(loader.load(5, 10, kProgramInfo)->data(), fake.bytes().data() + 5);
  }
}

}  // namespace
}  // namespace etvk_guard::testing
