// SPDX-License-Identifier: Apache-2.0
//
// A loader over bytes in memory that can be told to go wrong, and what the tests compare with.
#pragma once

#include <etvk_guard/loader.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace etvk_guard::testing {

using executorch::runtime::DataLoader;
using executorch::runtime::FreeableBuffer;
using executorch::runtime::Result;
using RuntimeError = executorch::runtime::Error;
using SegmentInfo = DataLoader::SegmentInfo;
using Type = SegmentInfo::Type;
using FileBytes = std::vector<uint8_t>;

inline const SegmentInfo kProgramInfo{Type::Program};
inline constexpr RuntimeError kInjected = RuntimeError::OutOfResources;

// Hands out copies, and counts those that are not freed yet; or, `in_place`, the bytes themselves, as a mapped file does.
class FakeLoader final : public DataLoader {
 public:
  explicit FakeLoader(FileBytes bytes) : bytes_(std::move(bytes)) {}

  // Set before use. Calls are counted from 0.
  int fail_at = -1;     // this call fails with kInjected
  int fail_from = -1;   // so do this one and all that follow
  int short_at = -1;    // this load() returns one byte less
  bool no_load_into = false;
  bool in_place = false;

  mutable std::atomic<int> calls{0};
  mutable std::atomic<int> alive{0};      // buffers
  mutable std::atomic<uint64_t> read{0};  // bytes
  mutable SegmentInfo last_info{};        // of the last call: for tests with one thread
  mutable size_t last_offset = 0;

  const FileBytes& bytes() const { return bytes_; }
  void truncate(size_t size) { bytes_.resize(size); }

  Result<FreeableBuffer> load(size_t offset, size_t size, const SegmentInfo& info) const override {
    const int call = calls++;
    if (const RuntimeError error = problem(call, offset, size); error != RuntimeError::Ok) {
      return error;
    }
    note(offset, size, info);
    const size_t given = call == short_at ? size - 1 : size;
    if (in_place) {
      return FreeableBuffer(bytes_.data() + offset, given, nullptr);
    }
    ++alive;
    auto* data = static_cast<uint8_t*>(std::malloc(given + 1));
    std::memcpy(data, bytes_.data() + offset, given);
    return FreeableBuffer(data, given, free_copy, const_cast<FakeLoader*>(this));
  }

  RuntimeError load_into(size_t offset, size_t size, const SegmentInfo& info, void* buffer) const override {
    if (no_load_into) {
      return RuntimeError::NotImplemented;
    }
    if (const RuntimeError error = problem(calls++, offset, size); error != RuntimeError::Ok) {
      return error;
    }
    note(offset, size, info);
    std::memcpy(buffer, bytes_.data() + offset, size);
    return RuntimeError::Ok;
  }

  Result<size_t> size() const override {
    if (const RuntimeError error = problem(calls++, 0, 0); error != RuntimeError::Ok) {
      return error;
    }
    return bytes_.size();
  }

 private:
  RuntimeError problem(int call, size_t offset, size_t size) const {
    if (call == fail_at || (fail_from >= 0 && call >= fail_from)) {
      return kInjected;
    }
    const bool inside = offset <= bytes_.size() && size <= bytes_.size() - offset;
    return inside ? RuntimeError::Ok : RuntimeError::InvalidArgument;
  }
  void note(size_t offset, size_t size, const SegmentInfo& info) const {
    read += size;
    if (track) {
      last_info = info;
      last_offset = offset;
    }
  }
  static void free_copy(void* context, void* data, size_t) {
    std::free(data);
    --static_cast<FakeLoader*>(context)->alive;
  }

 public:
  bool track = true;  // false: several threads

 private:
  FileBytes bytes_;
};

inline FileBytes file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return FileBytes(std::istreambuf_iterator<char>(file), {});
}
inline std::string release_path(const std::string& name) { return std::string(ETVK_GUARD_TEST_DATA "/releases/") + name; }
inline FileBytes release_file(const std::string& name) { return file_bytes(release_path(name)); }

// The file that `etvk-guard repair` writes.
inline FileBytes repaired_file(const FileBytes& file) {
  const BytesReader reader(file.data(), file.size());
  Program program;
  Repair repair;
  Error error = Program::open(reader, &program);
  if (!error) {
    error = etvk_guard::repair(program, &repair);
  }
  char path[] = "/tmp/etvk_guard_loader_XXXXXX";
  const int descriptor = mkstemp(path);
  if (!error) {
    error = write_file(repair.overlay, path, nullptr);
  }
  EXPECT_FALSE(error) << error.message;
  FileBytes written = file_bytes(path);
  close(descriptor);
  unlink(path);
  return written;
}

inline FileBytes slice(const FileBytes& bytes, size_t offset, size_t size) {
  const auto start = bytes.begin() + static_cast<std::ptrdiff_t>(offset);
  return FileBytes(start, start + static_cast<std::ptrdiff_t>(size));
}

inline FileBytes bytes_of(const FreeableBuffer& buffer) {
  const auto* data = static_cast<const uint8_t*>(buffer.data());
  return data == nullptr ? FileBytes() : FileBytes(data, data + buffer.size());
}

}  // namespace etvk_guard::testing
