// SPDX-License-Identifier: Apache-2.0
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64  // off_t, where long has 32 bits
#endif
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "bytes.h"
#include "error.h"

namespace etvk_guard {

Reader::~Reader() = default;
const uint8_t* Reader::view(uint64_t, size_t) const { return nullptr; }
int Reader::descriptor() const { return -1; }

bool BytesReader::read(uint64_t offset, void* into, size_t count) const {
  if (!in_range(offset, count, size_)) {
    return false;
  }
  if (count != 0) {
    std::memcpy(into, data_ + offset, count);
  }
  return true;
}

const uint8_t* BytesReader::view(uint64_t offset, size_t count) const {
  return in_range(offset, count, size_) ? data_ + offset : nullptr;
}

FileReader::~FileReader() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

FileReader::FileReader(FileReader&& other) noexcept : fd_(std::exchange(other.fd_, -1)), size_(std::exchange(other.size_, 0)) {}

FileReader& FileReader::operator=(FileReader&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  return *this;
}

Error FileReader::open(const char* path, FileReader* into) {
  FileReader file;
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  file.fd_ = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.fd_ < 0) {
    return make_error(ErrorCode::kIoError, kNoOffset, "cannot open: %s", std::strerror(errno));
  }
  struct stat status;
  if (::fstat(file.fd_, &status) != 0) {
    return make_error(ErrorCode::kIoError, kNoOffset, "cannot read its size: %s", std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    return make_error(ErrorCode::kNotAFile, kNoOffset, S_ISDIR(status.st_mode) ? "it is a folder" : "it is not a regular file");
  }
  if (status.st_size == 0) {
    return make_error(ErrorCode::kEmptyFile, 0, "it has 0 bytes");
  }
  file.size_ = static_cast<uint64_t>(status.st_size);
  *into = std::move(file);
  return {};
}

bool FileReader::read(uint64_t offset, void* into, size_t count) const {
  if (fd_ < 0 || !in_range(offset, count, size_)) {
    return false;
  }
  auto* out = static_cast<uint8_t*>(into);
  while (count > 0) {
    const ssize_t got = ::pread(fd_, out, count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {  // an error, or the file has shrunk
      return false;
    }
    out += got;
    offset += static_cast<uint64_t>(got);
    count -= static_cast<size_t>(got);
  }
  return true;
}

}  // namespace etvk_guard
