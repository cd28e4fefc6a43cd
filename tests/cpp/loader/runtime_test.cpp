// SPDX-License-Identifier: Apache-2.0
//
// ExecuTorch itself loads through the loader.
#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/data_loader/file_data_loader.h>
#include <executorch/extension/data_loader/mmap_data_loader.h>
#include <executorch/extension/module/module.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/runtime.h>

#include "fake_loader.h"

namespace etvk_guard::testing {
namespace {

using executorch::extension::BufferDataLoader;
using executorch::extension::FileDataLoader;
using executorch::extension::MmapDataLoader;
using executorch::extension::Module;
using RuntimeProgram = executorch::runtime::Program;

constexpr char kFile[] = "1.5.1/methods.pte";

template <typename Loader>
std::unique_ptr<DataLoader> owned(Result<Loader> loader) {
  EXPECT_TRUE(loader.ok());
  return std::make_unique<Loader>(std::move(loader.get()));
}
std::unique_ptr<DataLoader> file_loader(const std::string& path) { return owned(FileDataLoader::from(path.c_str())); }
std::unique_ptr<DataLoader> mmap_loader(const std::string& path) {
  return owned(MmapDataLoader::from(path.c_str(), MmapDataLoader::MlockConfig::NoMlock));
}

// The runtime takes it, verified, and gets all that it asks for.
void expect_loads(const GuardedDataLoader& guarded) {
  executorch::runtime::runtime_init();
  const Result<RuntimeProgram> program =
      RuntimeProgram::load(const_cast<GuardedDataLoader*>(&guarded), RuntimeProgram::Verification::InternalConsistency);
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->num_methods(), 3u);
  ASSERT_NE(guarded.report(), nullptr);
  EXPECT_EQ(guarded.report()->outcome, LoadOutcome::kRepaired);
  const auto data = program->get_named_data_map();
  ASSERT_TRUE(data.ok());
  const uint32_t count = *(*data)->get_num_keys();
  EXPECT_GT(count, 0u);
  for (uint32_t i = 0; i < count; ++i) {
    const Result<FreeableBuffer> value = (*data)->get_data(*(*data)->get_key(i));
    ASSERT_TRUE(value.ok());
    EXPECT_GT(value->size(), 0u);
  }
}

TEST(Runtime, ProgramLoad) {
  const std::string path = release_path(kFile);
  const FileBytes file = file_bytes(path);
  expect_loads(GuardedDataLoader(file_loader(path)));
  expect_loads(GuardedDataLoader(mmap_loader(path)));
  BufferDataLoader buffer(file.data(), file.size());
  expect_loads(GuardedDataLoader(&buffer));
}

// FileDataLoader and MmapDataLoader against a file on the disk, byte for byte.
TEST(Runtime, FileAndMmapLoadersServeTheRepairedFile) {
  const std::string path = release_path(kFile);
  const FileBytes expected = repaired_file(file_bytes(path));
  const GuardedDataLoader file(file_loader(path));
  const GuardedDataLoader mapped(mmap_loader(path));
  for (const GuardedDataLoader* loader : {&file, &mapped}) {
    for (size_t at = 0; at < expected.size(); at += 777) {
      const size_t count = std::min<size_t>(777, expected.size() - at);
      const Result<FreeableBuffer> part = loader->load(at, count, kProgramInfo);
      ASSERT_TRUE(part.ok());
      ASSERT_EQ(bytes_of(*part), slice(expected, at, count));
    }
    FileBytes all(expected.size());
    ASSERT_EQ(loader->load_into(0, all.size(), kProgramInfo, all.data()), RuntimeError::Ok);
    EXPECT_EQ(all, expected);
  }
}

TEST(Runtime, AModuleOwnsTheLoader) {
  auto guarded = std::make_unique<GuardedDataLoader>(file_loader(release_path(kFile)));
  const GuardedDataLoader* loader = guarded.get();
  Module module(std::move(guarded));
  ASSERT_EQ(module.load(), RuntimeError::Ok);
  EXPECT_EQ(*module.num_methods(), 3u);
  EXPECT_EQ(loader->report()->outcome, LoadOutcome::kRepaired);
}

TEST(Runtime, RefusalsAndBadBytesAreErrors) {
  GuardedLoaderOptions options;
  options.policy = LoadPolicy::kRefuse;
  FakeLoader fake(release_file(kFile));
  Module refused(std::make_unique<GuardedDataLoader>(&fake, options));
  EXPECT_EQ(refused.load(), RuntimeError::DelegateInvalidCompatibility);
  FakeLoader text(FileBytes(1000, 'x'));
  Module bad(std::make_unique<GuardedDataLoader>(&text));
  EXPECT_EQ(bad.load(), RuntimeError::InvalidProgram);
}

TEST(Runtime, AProgramWhoseLoaderFailsAtEachCall) {
  executorch::runtime::runtime_init();
  const FileBytes file = release_file(kFile);
  for (int n = 0; n < 40; ++n) {
    FakeLoader fake(file);
    fake.fail_at = n;
    {
      GuardedDataLoader guarded(&fake);
      const Result<RuntimeProgram> program = RuntimeProgram::load(&guarded);
      EXPECT_EQ(program.ok(), fake.calls <= n) << n;
    }
    EXPECT_EQ(fake.alive, 0);
  }
}

}  // namespace
}  // namespace etvk_guard::testing
