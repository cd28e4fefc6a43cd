// SPDX-License-Identifier: Apache-2.0
//
// The bytes go to a file without a name in the output's folder (O_TMPFILE), or where there is no such thing to one beside it,
// and get their name last: whoever looks sees the whole file or none, also if the process is killed.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#include "write.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#include <unistd.h>

#include "bytes.h"
#include "error.h"

namespace etvk_guard {
namespace {

constexpr size_t kBufferBytes = 1u << 20;
constexpr size_t kCopyBytes = 1u << 30;  // asked of one in-kernel copy
constexpr int kAttempts = 100;           // at a name that nobody has

Error output_error(const char* doing, const char* path, int code) {
  return make_error(ErrorCode::kOutputError, kNoOffset, "%s '%s': %s", doing, path, std::strerror(code));
}

// A file under construction. Closed, and removed if it has a name, unless it was published.
class Temporary final : public Reader {
 public:
  Temporary(const char* path, mode_t mode);
  ~Temporary() override { discard(); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  bool open_unnamed();
  Error open_named();
  Error publish(const char* path);

  uint64_t size() const override;
  bool read(uint64_t offset, void* into, size_t count) const override;
  int descriptor() const override { return fd_; }

 private:
  void discard();
  std::string fresh_name() const;
  bool link_as(const char* name) const;
  Error sync_folder() const;

  std::string folder_;  // with its last '/', or "./"
  const mode_t mode_;   // less what umask takes away
  std::string name_;    // empty: it has none
  int fd_ = -1;
};

Temporary::Temporary(const char* path, mode_t mode) : folder_(path), mode_(mode) {
  const size_t slash = folder_.rfind('/');
  folder_ = slash == std::string::npos ? "./" : folder_.substr(0, slash + 1);
}

void Temporary::discard() {
  if (fd_ >= 0) {
    ::close(fd_);
    fd_ = -1;
  }
  if (!name_.empty()) {
    ::unlink(name_.c_str());
    name_.clear();
  }
}

std::string Temporary::fresh_name() const {
  struct timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return format("%s.etvk-guard-%ld-%lld%09ld.tmp", folder_.c_str(), static_cast<long>(::getpid()),
                static_cast<long long>(now.tv_sec), static_cast<long>(now.tv_nsec));
}

bool Temporary::open_unnamed() {
#ifdef O_TMPFILE
  fd_ = ::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, mode_);
#endif
  return fd_ >= 0;
}

Error Temporary::open_named() {
  discard();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string name = fresh_name();
    fd_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode_);
    if (fd_ >= 0) {
      name_ = std::move(name);
      return {};
    }
    if (errno != EEXIST && errno != EINTR) {
      break;
    }
  }
  return output_error("cannot create a file in", folder_.c_str(), errno);
}

bool Temporary::link_as(const char* name) const {
  return ::linkat(AT_FDCWD, format("/proc/self/fd/%d", fd_).c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
}

// A rename makes the name; a link cannot replace a file, so an unnamed file gets a passing name first.
Error Temporary::publish(const char* path) {
  if (name_.empty() && link_as(path)) {
    return sync_folder();
  }
  for (int attempt = 0; name_.empty() && attempt < kAttempts; ++attempt) {
    std::string name = fresh_name();
    if (link_as(name.c_str())) {
      name_ = std::move(name);
    } else if (errno != EEXIST) {
      break;
    }
  }
  if (name_.empty() || ::rename(name_.c_str(), path) != 0) {
    return output_error("cannot name the output", path, errno);
  }
  name_.clear();
  return sync_folder();
}

// Some file systems have no such sync; the file itself is safe then.
Error Temporary::sync_folder() const {
  const int folder = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
  return {};
}

uint64_t Temporary::size() const {
  struct stat status{};
  return ::fstat(fd_, &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

bool Temporary::read(uint64_t offset, void* into, size_t count) const {
  auto* out = static_cast<uint8_t*>(into);
  while (count > 0) {
    const ssize_t got = ::pread(fd_, out, count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return false;
    }
    out += got;
    offset += static_cast<uint64_t>(got);
    count -= static_cast<size_t>(got);
  }
  return true;
}

bool write_all(int fd, uint64_t offset, const uint8_t* from, size_t count) {
  while (count > 0) {
    const ssize_t put = ::pwrite(fd, from, count, static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) {
      continue;
    }
    if (put <= 0) {
      errno = put == 0 ? ENOSPC : errno;
      return false;
    }
    from += put;
    offset += static_cast<uint64_t>(put);
    count -= static_cast<size_t>(put);
  }
  return true;
}

// Copies in the kernel as far as it can; what is done is added to `done`. Whatever stops it, the plain copy meets it too, or
// manages.
void copy_in_kernel(int from, uint64_t source, int to, uint64_t start, uint64_t length, uint64_t* done) {
// By number: not every C library has the function. Android ends an app for a call that its C library does not make, as this one before 14.
#if defined(__NR_copy_file_range) && !defined(__ANDROID__)
  while (*done < length) {
    auto in = static_cast<loff_t>(source + *done);
    auto out = static_cast<loff_t>(start + *done);
    const size_t part = static_cast<size_t>(std::min<uint64_t>(length - *done, kCopyBytes));
    const long copied = ::syscall(__NR_copy_file_range, from, &in, to, &out, part, 0u);
    if (copied < 0 && errno == EINTR) {
      continue;
    }
    if (copied <= 0) {
      return;
    }
    *done += static_cast<uint64_t>(copied);
  }
#else
  (void)from, (void)source, (void)to, (void)start, (void)length, (void)done;
#endif
}

Error copy_through_buffer(const Reader& from, const Overlay::Extent& extent, uint64_t done, int to, const char* path,
                          std::vector<uint8_t>* buffer) {
  while (done < extent.length) {
    const auto part = static_cast<size_t>(std::min<uint64_t>(extent.length - done, kBufferBytes));
    const uint8_t* bytes = from.view(extent.source + done, part);
    if (bytes == nullptr) {
      buffer->resize(kBufferBytes);
      if (!from.read(extent.source + done, buffer->data(), part)) {
        return make_error(ErrorCode::kIoError, extent.source + done, "cannot read %zu bytes of the input", part);
      }
      bytes = buffer->data();
    }
    if (!write_all(to, extent.start + done, bytes, part)) {
      return output_error("cannot write", path, errno);
    }
    done += part;
  }
  return {};
}

Error write_extents(const Overlay& overlay, int fd, const char* path) {
  std::vector<uint8_t> buffer;
  for (const Overlay::Extent& extent : overlay.extents()) {
    if (extent.buffer >= 0) {
      size_t part = 0;
      for (uint64_t within = 0; within < extent.length; within += part) {
        const uint8_t* bytes = overlay.owned_run(extent, within, &part);
        if (!write_all(fd, extent.start + within, bytes, part)) {
          return output_error("cannot write", path, errno);
        }
      }
      continue;
    }
    uint64_t done = 0;
    const Reader& original = overlay.original();
    if (original.descriptor() >= 0) {
      copy_in_kernel(original.descriptor(), extent.source, fd, extent.start, extent.length, &done);
    }
    if (Error error = copy_through_buffer(original, extent, done, fd, path, &buffer)) {
      return error;
    }
  }
  return {};
}

Error fill(const Overlay& overlay, const Temporary& file, const char* path, Error (*verify)(const Reader&)) {
  if (Error error = write_extents(overlay, file.descriptor(), path)) {
    return error;
  }
  if (::fsync(file.descriptor()) != 0) {
    return output_error("cannot sync", path, errno);
  }
  if (file.size() != overlay.size()) {
    return make_error(ErrorCode::kOutputError, kNoOffset, "'%s' has %s bytes after writing %s", path,
                      number(file.size()).c_str(), number(overlay.size()).c_str());
  }
  return verify == nullptr ? Error() : verify(file);
}

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

// Where the bytes are to go. Its permissions are those of a file that is there already, else the input's, as cp has it.
struct Output {
  std::string path;  // of the file itself, where the caller's path is a link to it
  bool exists = false;
  struct stat status{};
  mode_t mode = 0666;
};

// Takes over the input's permissions, and says whether it is the output.
bool is_input(const struct stat& input, Output* output) {
  output->mode = input.st_mode & 0777;
  return output->exists && same_file(output->status, input);
}

bool is_input(const Overlay& overlay, const char* input_path, Output* output) {
  struct stat input{};
  const int descriptor = overlay.size() == 0 ? -1 : overlay.original().descriptor();
  return (input_path != nullptr && ::stat(input_path, &input) == 0 && is_input(input, output)) ||
         (descriptor >= 0 && ::fstat(descriptor, &input) == 0 && is_input(input, output));
}

// Follows links, so that a link stays one. An output that exists must be a regular file, and not the input.
Error find_output(const Overlay& overlay, const char* path, const char* input_path, Output* output) {
  struct stat link{};
  output->path = path;
  if (::lstat(path, &link) == 0 && S_ISLNK(link.st_mode)) {
    char* resolved = ::realpath(path, nullptr);
    if (resolved == nullptr) {
      return output_error("cannot follow the link", path, errno);
    }
    output->path = resolved;
    std::free(resolved);
  }
  if (::stat(path, &output->status) != 0) {
    if (errno != ENOENT) {
      return output_error("cannot use", path, errno);
    }
  } else {
    struct stat own{};
    output->exists = true;
    if (!S_ISREG(output->status.st_mode) || ::stat(output->path.c_str(), &own) != 0 || !same_file(own, output->status)) {
      return make_error(ErrorCode::kOutputError, kNoOffset, "'%s' exists and is not a regular file", path);
    }
  }
  if (is_input(overlay, input_path, output)) {
    return make_error(ErrorCode::kOutputIsInput, kNoOffset, "'%s' is the input", path);
  }
  return {};
}

// Owner and permissions of the file that is replaced, as far as this process may give them.
void keep_status(const Output& output, int fd) {
  if (!output.exists) {
    return;
  }
  if (::fchown(fd, output.status.st_uid, output.status.st_gid) == 0) {
    ::fchmod(fd, output.status.st_mode & 07777);
  } else {
    ::fchmod(fd, output.status.st_mode & 0777);
  }
}

Error verify_program(const Reader& written) {
  Program program;
  if (Error error = Program::open(written, &program)) {
    if (error.code == ErrorCode::kIoError || error.code == ErrorCode::kOutOfMemory) {
      return error;
    }
    return make_error(ErrorCode::kRecheckFailed, error.where.offset, "the written file cannot be opened: %s",
                      error.message.c_str());
  }
  Report report;
  return check(program, &report);
}

}  // namespace

Error write_overlay(const Overlay& overlay, const char* path, const char* input_path, Error (*verify)(const Reader& written),
                    bool unnamed) {
  if (path == nullptr || *path == '\0') {
    return make_error(ErrorCode::kOutputError, kNoOffset, "the output has no name");
  }
  Output output;
  if (Error error = find_output(overlay, path, input_path, &output)) {
    return error;
  }
  Temporary file(output.path.c_str(), output.mode);
  if (unnamed && file.open_unnamed()) {
    keep_status(output, file.descriptor());
    if (Error error = fill(overlay, file, path, verify)) {
      return error;
    }
    if (!file.publish(output.path.c_str())) {
      return {};
    }
  }
  // No unnamed files here, or they cannot be named (no /proc, or a policy against links).
  if (Error error = file.open_named()) {
    return error;
  }
  keep_status(output, file.descriptor());
  if (Error error = fill(overlay, file, path, verify)) {
    return error;
  }
  return file.publish(output.path.c_str());
}

Error write_file(const Overlay& overlay, const char* path, const char* input_path) {
  return write_overlay(overlay, path, input_path, verify_program);
}

}  // namespace etvk_guard
