// SPDX-License-Identifier: Apache-2.0
//
// The writer: what it writes, and what is left when something fails.
#include "write.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <set>
#include <thread>

#include "builder.h"

namespace etvk_guard {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes random_bytes(size_t count, unsigned seed = 1) {
  std::mt19937 random(seed);
  Bytes bytes(count);
  for (uint8_t& byte : bytes) {
    byte = static_cast<uint8_t>(random());
  }
  return bytes;
}

Bytes contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

void put(const std::string& path, const Bytes& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

bool exists(const std::string& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0;
}

// Reads from memory without views, in the way that a test wants.
class HookedReader final : public Reader {
 public:
  HookedReader(const Bytes& bytes, std::function<bool(int)> on_read) : bytes_(bytes), on_read_(std::move(on_read)) {}
  uint64_t size() const override { return bytes_.size(); }
  bool read(uint64_t offset, void* into, size_t count) const override {
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), count, static_cast<uint8_t*>(into));
    return on_read_(calls_++);
  }

 private:
  const Bytes& bytes_;
  std::function<bool(int)> on_read_;
  mutable int calls_ = 0;
};

// Some of each kind of extent, several buffers long; `model` is what it means.
Overlay mixed(const Reader& reader, const Bytes& original, Bytes* model) {
  Overlay overlay(reader);
  const Bytes owned = random_bytes(3000, 2);
  const size_t half = original.size() / 2;
  overlay.append_original(half, original.size() - half);
  overlay.append_owned(owned);
  overlay.append_zeros(100);
  overlay.append_original(0, half);
  model->assign(original.begin() + static_cast<std::ptrdiff_t>(half), original.end());
  model->insert(model->end(), owned.begin(), owned.end());
  model->insert(model->end(), 100, 0);
  model->insert(model->end(), original.begin(), original.begin() + static_cast<std::ptrdiff_t>(half));
  return overlay;
}

// A folder of its own for each test; the parameter: with files that have no name, or beside the output.
class Write : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "write_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    out_ = folder_ + "/out.pte";
  }
  void TearDown() override {
    for (const std::string& name : names()) {
      ::unlink((folder_ + "/" + name).c_str());
    }
    ::rmdir(folder_.c_str());
  }
  std::set<std::string> names() const {
    std::set<std::string> found;
    DIR* folder = ::opendir(folder_.c_str());
    while (const dirent* entry = ::readdir(folder)) {
      found.insert(entry->d_name);
    }
    ::closedir(folder);
    found.erase(".");
    found.erase("..");
    return found;
  }
  Error write(const Overlay& overlay, Error (*verify)(const Reader&) = nullptr, const char* input = nullptr) const {
    return write_overlay(overlay, out_.c_str(), input, verify, GetParam());
  }

  std::string folder_, out_;
};

INSTANTIATE_TEST_SUITE_P(Modes, Write, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& info) { return info.param ? "unnamed" : "named"; });

TEST_P(Write, FromMemory) {
  const Bytes original = random_bytes(5'000'001);
  const BytesReader reader(original.data(), original.size());
  Bytes model;
  const Overlay overlay = mixed(reader, original, &model);
  const Error error = write(overlay);
  ASSERT_FALSE(error) << error.message;
  EXPECT_TRUE(contents(out_) == model);
  EXPECT_EQ(names(), std::set<std::string>{"out.pte"});
}

TEST_P(Write, FromAFile) {
  const Bytes original = random_bytes(5'000'001);
  put(folder_ + "/in.pte", original);
  FileReader reader;
  ASSERT_FALSE(FileReader::open((folder_ + "/in.pte").c_str(), &reader));
  Bytes model;
  const Overlay overlay = mixed(reader, original, &model);
  const Error error = write(overlay, nullptr, (folder_ + "/in.pte").c_str());
  ASSERT_FALSE(error) << error.message;
  EXPECT_TRUE(contents(out_) == model);
  EXPECT_TRUE(contents(folder_ + "/in.pte") == original);
  EXPECT_EQ(names(), (std::set<std::string>{"in.pte", "out.pte"}));
}

TEST_P(Write, NothingAtAll) {
  const Overlay overlay;
  ASSERT_FALSE(write(overlay));
  EXPECT_TRUE(exists(out_));
  EXPECT_TRUE(contents(out_).empty());
}

TEST_P(Write, ReplacesAnOlderOutputWithItsPermissions) {
  put(out_, random_bytes(100));
  ::chmod(out_.c_str(), 0600);
  const Bytes original = random_bytes(50);
  const BytesReader reader(original.data(), original.size());
  Overlay overlay(reader);
  overlay.append_original(0, 50);
  const mode_t before = ::umask(027);
  const Error error = write(overlay);
  ::umask(before);
  ASSERT_FALSE(error) << error.message;
  EXPECT_TRUE(contents(out_) == original);
  struct stat status{};
  ASSERT_EQ(::stat(out_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(names(), std::set<std::string>{"out.pte"});
}

TEST_P(Write, AReadErrorAtEveryCall) {
  const Bytes original = random_bytes(3'500'000);
  const Bytes older = random_bytes(10, 3);
  int fails_at = 0;
  bool failed = true;
  for (; failed; ++fails_at) {
    put(out_, older);
    const HookedReader reader(original, [&](int call) { return call != fails_at; });
    Bytes model;
    const Overlay overlay = mixed(reader, original, &model);
    const Error error = write(overlay);
    failed = static_cast<bool>(error);
    if (failed) {
      EXPECT_EQ(error.code, ErrorCode::kIoError);
      EXPECT_TRUE(contents(out_) == older);
    } else {
      EXPECT_TRUE(contents(out_) == model);
    }
    EXPECT_EQ(names(), std::set<std::string>{"out.pte"});
  }
  EXPECT_GE(fails_at, 4);
}

TEST_P(Write, AFileThatShrinks) {
  const Bytes original = random_bytes(3'000'000);
  const std::string in = folder_ + "/in.pte";
  put(in, original);
  FileReader reader;
  ASSERT_FALSE(FileReader::open(in.c_str(), &reader));
  ASSERT_EQ(::truncate(in.c_str(), 2'000'000), 0);
  Overlay overlay(reader);
  overlay.append_original(0, 3'000'000);
  EXPECT_EQ(write(overlay).code, ErrorCode::kIoError);
  EXPECT_EQ(names(), std::set<std::string>{"in.pte"});
}

TEST_P(Write, WhatIsWrittenMustPass) {
  const Bytes original = random_bytes(1000);
  const BytesReader reader(original.data(), original.size());
  Overlay overlay(reader);
  overlay.append_original(0, 1000);
  const Error error = write(overlay, [](const Reader& written) {
    Error found;
    uint8_t byte = 0;
    found.code = written.size() == 1000 && written.read(999, &byte, 1) && !written.read(1000, &byte, 1)
                     ? ErrorCode::kRecheckFailed
                     : ErrorCode::kInternal;
    return found;
  });
  EXPECT_EQ(error.code, ErrorCode::kRecheckFailed);
  EXPECT_TRUE(names().empty());
}

TEST_P(Write, PlacesThatCannotBeWritten) {
  const Bytes original = random_bytes(10);
  const BytesReader reader(original.data(), original.size());
  Overlay overlay(reader);
  overlay.append_original(0, 10);
  put(folder_ + "/file", original);
  const std::string places[] = {"",
                                folder_,
                                folder_ + "/",
                                folder_ + "/missing/out.pte",
                                folder_ + "/file/out.pte",
                                "/proc/out.pte",
                                "/dev/null",
                                folder_ + "/" + std::string(300, 'x')};
  for (const std::string& place : places) {
    out_ = place;
    const Error error = write(overlay);
    EXPECT_EQ(error.code, ErrorCode::kOutputError) << place;
    EXPECT_FALSE(error.message.empty());
    EXPECT_EQ(names(), std::set<std::string>{"file"}) << place;
  }
  struct stat status{};
  ASSERT_EQ(::stat("/dev/null", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
}

TEST_P(Write, NeverOverItsInput) {
  const std::string in = folder_ + "/in.pte";
  const Bytes original = random_bytes(10);
  put(in, original);
  ASSERT_EQ(::symlink("in.pte", (folder_ + "/symlink").c_str()), 0);
  ASSERT_EQ(::symlink((folder_ + "/symlink").c_str(), (folder_ + "/twice").c_str()), 0);
  ASSERT_EQ(::link(in.c_str(), (folder_ + "/hardlink").c_str()), 0);
  FileReader file;
  ASSERT_FALSE(FileReader::open(in.c_str(), &file));
  const BytesReader memory(original.data(), original.size());
  const Reader* const readers[] = {&file, &memory};
  for (const Reader* reader : readers) {
    Overlay overlay(*reader);
    overlay.append_original(0, 5);
    for (const char* name : {"/in.pte", "/./in.pte", "/symlink", "/twice", "/hardlink"}) {
      out_ = folder_ + name;
      // A descriptor says by itself what the input is.
      const Error error = write(overlay, nullptr, reader == &file ? nullptr : in.c_str());
      EXPECT_EQ(error.code, ErrorCode::kOutputIsInput) << name;
    }
  }
  EXPECT_TRUE(contents(in) == original);
  EXPECT_EQ(names(), (std::set<std::string>{"in.pte", "symlink", "twice", "hardlink"}));
}

mode_t mode_of(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

TEST_P(Write, Permissions) {
  const std::string in = folder_ + "/in.pte";
  put(in, random_bytes(20));
  ASSERT_EQ(::chmod(in.c_str(), 0640), 0);
  FileReader reader;
  ASSERT_FALSE(FileReader::open(in.c_str(), &reader));
  Overlay overlay(reader);
  overlay.append_original(0, 20);
  const mode_t before = ::umask(022);
  ASSERT_FALSE(write(overlay));
  EXPECT_EQ(mode_of(out_), 0640u);  // the input's
  ASSERT_EQ(::chmod(out_.c_str(), 0606), 0);
  ASSERT_FALSE(write(overlay));
  EXPECT_EQ(mode_of(out_), 0606u);  // those of the file that is replaced
  ASSERT_EQ(::unlink(out_.c_str()), 0);
  const Bytes original = random_bytes(20);
  const BytesReader memory(original.data(), original.size());
  Overlay unnamed(memory);
  unnamed.append_original(0, 20);
  ASSERT_FALSE(write(unnamed));
  EXPECT_EQ(mode_of(out_), 0644u);
  ::umask(before);
}

TEST_P(Write, ALinkToNothing) {
  ASSERT_EQ(::symlink("nowhere", out_.c_str()), 0);
  const Bytes original = random_bytes(20);
  const BytesReader reader(original.data(), original.size());
  Overlay overlay(reader);
  overlay.append_original(0, 20);
  EXPECT_EQ(write(overlay).code, ErrorCode::kOutputError);
  EXPECT_EQ(names(), std::set<std::string>{"out.pte"});
}

TEST_P(Write, ALinkStaysOne) {
  put(folder_ + "/other", random_bytes(10));
  ASSERT_EQ(::symlink("other", out_.c_str()), 0);
  const Bytes original = random_bytes(20, 5);
  const BytesReader reader(original.data(), original.size());
  Overlay overlay(reader);
  overlay.append_original(0, 20);
  ASSERT_FALSE(write(overlay));
  EXPECT_TRUE(contents(folder_ + "/other") == original);
  struct stat status{};
  ASSERT_EQ(::lstat(out_.c_str(), &status), 0);
  EXPECT_TRUE(S_ISLNK(status.st_mode));
  EXPECT_EQ(names(), (std::set<std::string>{"other", "out.pte"}));
}

TEST_P(Write, ADiskThatIsFull) {
  const Bytes original = random_bytes(3'000'000);
  const BytesReader reader(original.data(), original.size());
  Overlay overlay(reader);
  overlay.append_original(0, original.size());
  struct rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit small{1'000'000, before.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);  // as a full disk: an error code
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Error error = write(overlay);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(error.code, ErrorCode::kOutputError);
  EXPECT_TRUE(names().empty());
}

TEST_P(Write, KilledAtAnyRead) {
  const Bytes original = random_bytes(6'000'000);
  const Bytes older = random_bytes(10, 3);
  for (int kills_at = 0; kills_at < 7; ++kills_at) {
    put(out_, older);
    const pid_t child = ::fork();
    if (child == 0) {
      const HookedReader reader(original, [&](int call) { return call != kills_at || ::raise(SIGKILL) != 0; });
      Bytes model;
      const Overlay overlay = mixed(reader, original, &model);
      write(overlay);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    const bool killed = WIFSIGNALED(status);
    EXPECT_EQ(contents(out_) == older, killed);
    if (GetParam()) {
      EXPECT_EQ(names(), std::set<std::string>{"out.pte"});
    }
  }
}

TEST_P(Write, TwoAtOnce) {
  const Bytes originals[] = {random_bytes(2'000'000, 11), random_bytes(2'000'001, 12)};
  Error errors[2];
  for (int round = 0; round < 5; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&, i] {
        const BytesReader reader(originals[i].data(), originals[i].size());
        Overlay overlay(reader);
        overlay.append_original(0, originals[i].size());
        errors[i] = write(overlay);
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_FALSE(errors[0]) << errors[0].message;
    EXPECT_FALSE(errors[1]) << errors[1].message;
    const Bytes found = contents(out_);
    EXPECT_TRUE(found == originals[0] || found == originals[1]);
    EXPECT_EQ(names(), std::set<std::string>{"out.pte"});
  }
}

TEST_P(Write, AProgramIsOpenedAndCheckedAgain) {
  const Bytes file = testing::clean_file();
  const BytesReader reader(file.data(), file.size());
  Overlay good(reader);
  good.append_original(0, file.size());
  const Error none = write_file(good, out_.c_str(), nullptr);
  EXPECT_FALSE(none) << none.message;
  EXPECT_TRUE(contents(out_) == file);
  ::unlink(out_.c_str());
  Overlay bad(reader);
  bad.append_original(0, file.size() / 2);
  EXPECT_EQ(write_file(bad, out_.c_str(), nullptr).code, ErrorCode::kRecheckFailed);
  EXPECT_TRUE(names().empty());
}

}  // namespace
}  // namespace etvk_guard
