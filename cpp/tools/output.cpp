// SPDX-License-Identifier: Apache-2.0
#include "output.h"

#include <unistd.h>

#include <cerrno>

namespace etvk_guard::tool {
namespace {

constexpr size_t kBufferBytes = 1u << 16;

}  // namespace

void Output::write(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() >= kBufferBytes) {
    flush();
  }
}

bool Output::flush() {
  std::string_view left = buffer_;
  while (!left.empty() && failure_ == 0) {
    const ssize_t put = ::write(descriptor_, left.data(), left.size());
    if (put > 0) {
      left.remove_prefix(static_cast<size_t>(put));
    } else if (put == 0 || errno != EINTR) {
      failure_ = put == 0 ? ENOSPC : errno;
    }
  }
  buffer_.clear();
  return failure_ == 0;
}

}  // namespace etvk_guard::tool
