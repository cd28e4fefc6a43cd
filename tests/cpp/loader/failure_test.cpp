// SPDX-License-Identifier: Apache-2.0
//
// A wrapped loader that goes wrong, ranges that do not exist, and many threads.
#include <thread>

#include "fake_loader.h"

namespace etvk_guard::testing {
namespace {

constexpr char kFile[] = "1.5.1/methods.pte";

// An impossible allocation gives nullptr, as without the sanitizer.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() { return "allocator_may_return_null=1"; }

// One session with a loader: everything there is to read. The first error, or Ok with all bytes right.
RuntimeError session(const GuardedDataLoader& loader, const FileBytes& expected) {
  Result<FreeableBuffer> head = loader.load(0, 64, kProgramInfo);
  if (!head.ok()) {
    return head.error();
  }
  EXPECT_EQ(bytes_of(*head), slice(expected, 0, 64));
  const Result<size_t> size = loader.size();
  EXPECT_TRUE(size.ok());  // it cannot fail any more
  EXPECT_EQ(*size, expected.size());
  for (size_t at = 0; at < expected.size(); at += 1000) {
    const size_t count = std::min<size_t>(1000, expected.size() - at);
    Result<FreeableBuffer> part = loader.load(at, count, kProgramInfo);
    if (!part.ok()) {
      return part.error();
    }
    EXPECT_EQ(bytes_of(*part), slice(expected, at, count));
  }
  FileBytes all(expected.size());
  const RuntimeError error = loader.load_into(0, all.size(), kProgramInfo, all.data());
  if (error == RuntimeError::Ok) {
    EXPECT_EQ(all, expected);
  }
  return error;
}

// How many calls a session makes of a loader that works.
int session_calls(const FileBytes& file, const FileBytes& expected, bool no_load_into) {
  FakeLoader good(file);
  good.no_load_into = no_load_into;
  const GuardedDataLoader loader(&good);
  EXPECT_EQ(session(loader, expected), RuntimeError::Ok);
  EXPECT_GT(good.calls, 20);
  return good.calls;
}

class EachCall : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Loaders, EachCall, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "WithoutLoadInto" : "WithLoadInto"; });

TEST_P(EachCall, MayFailOnce) {
  const FileBytes file = release_file(kFile);
  const FileBytes expected = repaired_file(file);
  const int calls = session_calls(file, expected, GetParam());
  for (int n = 0; n < calls; ++n) {
    SCOPED_TRACE(n);
    FakeLoader fake(file);
    fake.no_load_into = GetParam();
    fake.fail_at = n;
    {
      const GuardedDataLoader loader(&fake);
      EXPECT_EQ(session(loader, expected), kInjected);  // its own error, as it gave it
      EXPECT_EQ(session(loader, expected), RuntimeError::Ok);
      EXPECT_EQ(session(loader, expected), RuntimeError::Ok);
    }
    EXPECT_EQ(fake.alive, 0);
  }
}

TEST_P(EachCall, MayFailForGood) {
  const FileBytes file = release_file(kFile);
  const FileBytes expected = repaired_file(file);
  const int calls = session_calls(file, expected, GetParam());
  for (int n = 0; n < calls; ++n) {
    FakeLoader fake(file);
    fake.no_load_into = GetParam();
    fake.fail_from = n;
    const GuardedDataLoader loader(&fake);
    EXPECT_EQ(session(loader, expected), kInjected);
    EXPECT_EQ(session(loader, expected), kInjected);
    EXPECT_EQ(fake.alive, 0);
  }
}

TEST(Failure, AShortBufferIsAnError) {
  const FileBytes file = release_file(kFile);
  const FileBytes expected = repaired_file(file);
  const int calls = session_calls(file, expected, true);
  for (int n = 1; n < calls; ++n) {  // call 0 is size()
    SCOPED_TRACE(n);
    FakeLoader fake(file);
    fake.no_load_into = true;
    fake.short_at = n;
    const GuardedDataLoader loader(&fake);
    EXPECT_EQ(session(loader, expected), RuntimeError::AccessFailed);
    EXPECT_EQ(fake.alive, 0);
  }
}

// Memory of another core cannot be copied from: an error, where it has to be.
class ForeignMemory final : public DataLoader {
 public:
  Result<FreeableBuffer> load(size_t, size_t size, const SegmentInfo&) const override {
    return FreeableBuffer(uint64_t{16}, size, nullptr);
  }
  Result<size_t> size() const override { return 1000; }
};

TEST(Failure, BuffersWithoutAPointer) {
  ForeignMemory wrapped;
  const GuardedDataLoader loader(&wrapped);
  EXPECT_EQ(loader.check(), RuntimeError::InvalidType);
  GuardedLoaderOptions options;
  options.policy = LoadPolicy::kReport;
  options.pass_unknown = true;
  EXPECT_EQ(GuardedDataLoader(&wrapped, options).check(), RuntimeError::InvalidType);
}

TEST(Failure, ASizeThatIsNotTrue) {
  class Liar final : public DataLoader {
   public:
    explicit Liar(size_t size) : size_(size), bytes_(release_file(kFile)) {}
    Result<FreeableBuffer> load(size_t offset, size_t size, const SegmentInfo&) const override {
      if (offset > bytes_.size() || size > bytes_.size() - offset) {
        return RuntimeError::InvalidArgument;
      }
      return FreeableBuffer(bytes_.data() + offset, size, nullptr);
    }
    Result<size_t> size() const override { return size_; }

   private:
    size_t size_;
    FileBytes bytes_;
  };
  for (const size_t size : {size_t{0}, size_t{8}, size_t{64}, size_t{2000}}) {
    Liar wrapped(size);
    EXPECT_EQ(GuardedDataLoader(&wrapped).check(), RuntimeError::InvalidProgram) << size;
  }
  Liar longest(SIZE_MAX);  // with what a repair adds, no size can hold it
  EXPECT_EQ(GuardedDataLoader(&longest).check(), RuntimeError::Internal);
  Liar longer(SIZE_MAX / 2);  // what is promised after the last segment is not there
  const GuardedDataLoader loader(&longer);
  ASSERT_EQ(loader.check(), RuntimeError::Ok);
  ASSERT_GT(*loader.size(), SIZE_MAX / 2);
  EXPECT_EQ(loader.load(*loader.size() - 10, 10, kProgramInfo).error(), RuntimeError::InvalidArgument);
}

TEST(Failure, AFileThatShrinksAfterTheCheck) {
  FakeLoader fake(release_file(kFile));
  const GuardedDataLoader loader(&fake);
  const size_t size = *loader.size();
  fake.truncate(fake.bytes().size() / 2);
  EXPECT_FALSE(loader.load(0, size, kProgramInfo).ok());
  FileBytes all(size);
  EXPECT_NE(loader.load_into(0, size, kProgramInfo, all.data()), RuntimeError::Ok);
  EXPECT_EQ(*loader.size(), size);
  EXPECT_TRUE(loader.load(0, 64, kProgramInfo).ok());
}

TEST(Failure, RangesThatDoNotExist) {
  for (const char* name : {kFile, "1.5.1/leaf.pte"}) {  // repaired, and clean
    FakeLoader fake(release_file(name));
    const GuardedDataLoader loader(&fake);
    const size_t size = *loader.size();
    uint8_t bytes[16];
    const struct {
      size_t offset, count;
    } bad[] = {{size, 1},     {size + 1, 0},        {0, size + 1},  {size - 1, 2},
               {SIZE_MAX, 1}, {SIZE_MAX, SIZE_MAX}, {1, SIZE_MAX}, {SIZE_MAX, 0}};
    for (const auto& range : bad) {
      EXPECT_EQ(loader.load(range.offset, range.count, kProgramInfo).error(), RuntimeError::InvalidArgument);
      EXPECT_EQ(loader.load_into(range.offset, range.count, kProgramInfo, bytes), RuntimeError::InvalidArgument);
    }
    EXPECT_EQ(loader.load_into(0, 1, kProgramInfo, nullptr), RuntimeError::InvalidArgument);
    EXPECT_EQ(loader.load_into(0, 0, kProgramInfo, nullptr), RuntimeError::Ok);
    for (const size_t offset : {size_t{0}, size_t{40}, size / 2, size}) {
      const Result<FreeableBuffer> none = loader.load(offset, 0, kProgramInfo);
      ASSERT_TRUE(none.ok());
      EXPECT_EQ(none->size(), 0u);
    }
  }
}

TEST(Failure, NothingToWrap) {
  const GuardedDataLoader borrowed(static_cast<DataLoader*>(nullptr));
  const GuardedDataLoader owned(std::unique_ptr<DataLoader>{});
  for (const GuardedDataLoader* loader : {&borrowed, &owned}) {
    EXPECT_EQ(loader->check(), RuntimeError::InvalidArgument);
    EXPECT_EQ(loader->load(0, 0, kProgramInfo).error(), RuntimeError::InvalidArgument);
    EXPECT_EQ(loader->size().error(), RuntimeError::InvalidArgument);
    EXPECT_EQ(loader->report(), nullptr);
  }
  FakeLoader fake(release_file(kFile));
  for (const size_t alignment : {size_t{0}, size_t{24}, SIZE_MAX}) {
    GuardedLoaderOptions options;
    options.alignment = alignment;
    EXPECT_EQ(GuardedDataLoader(&fake, options).check(), RuntimeError::InvalidArgument);
  }
}

TEST(Failure, NoMemory) {
  FakeLoader fake(release_file(kFile));
  GuardedLoaderOptions options;
  options.alignment = size_t{1} << 62;
  const GuardedDataLoader loader(&fake, options);
  EXPECT_EQ(loader.load(0, *loader.size(), kProgramInfo).error(), RuntimeError::MemoryAllocationFailed);
}

TEST(Threads, TheFirstCallsMayComeFromAll) {
  const FileBytes file = release_file(kFile);
  const FileBytes expected = repaired_file(file);
  for (int round = 0; round < 20; ++round) {
    FakeLoader fake(file);
    fake.track = false;
    fake.no_load_into = round % 2 == 0;
    std::atomic<int> checks{0};
    GuardedLoaderOptions options;
    options.context = &checks;
    options.on_checked = [](void* context, const LoadReport&) { ++*static_cast<std::atomic<int>*>(context); };
    const GuardedDataLoader loader(&fake, options);
    std::atomic<int> waiting{8};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        --waiting;
        while (waiting > 0) {
          std::this_thread::yield();
        }
        EXPECT_EQ(session(loader, expected), RuntimeError::Ok);
        EXPECT_NE(loader.report(), nullptr);
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_EQ(checks, 1);
    EXPECT_EQ(fake.alive, 0);
  }
}

}  // namespace
}  // namespace etvk_guard::testing
