// SPDX-License-Identifier: Apache-2.0
#include "operands.h"

#include <algorithm>

namespace etvk_guard {
namespace {

// Size along a dim counted from the last one (0); 1 beyond the first.
int64_t size_at(const std::vector<int64_t>& dims, size_t from_last) {
  return from_last < dims.size() ? dims[dims.size() - 1 - from_last] : 1;
}

}  // namespace

int64_t count_elements(const std::vector<int64_t>& dims) {
  int64_t product = 1;
  for (const int64_t size : dims) {
    if (size < 1 || size > kMaxSize || product > INT64_MAX / 16 / size) {  // 16: room for bytes and padding
      return -1;
    }
    product *= size;
  }
  return product;
}

bool broadcast(const std::vector<int64_t>& a, const std::vector<int64_t>& b, std::vector<int64_t>* into) {
  std::vector<int64_t> dims(std::max(a.size(), b.size()));
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t left = size_at(a, i);
    const int64_t right = size_at(b, i);
    if (left != right && left != 1 && right != 1) {
      return false;
    }
    dims[dims.size() - 1 - i] = left == 1 ? right : left;
  }
  *into = std::move(dims);
  return true;
}

Rows rows_of(const std::vector<int64_t>& operand, const std::vector<int64_t>& x) {
  if (operand.empty() || operand.back() != x.back() || operand.size() > kMaxRank) {
    return Rows::kOther;
  }
  const size_t rank = std::max(operand.size(), x.size());
  bool one = true, full = true, ended = false;
  for (size_t i = 1; i < rank; ++i) {
    const int64_t size = size_at(operand, i);
    if (size != 1 && size != size_at(x, i)) {
      return Rows::kOther;
    }
    full = full && size == size_at(x, i);
    if (size_at(x, i) == 1) {
      continue;  // fits either way
    }
    if (size == 1) {
      ended = ended || !one;
    } else if (ended) {
      return Rows::kOther;  // a gap: its rows are no neighbours
    }
    one = one && size == 1;
  }
  return one ? Rows::kOne : full ? Rows::kFull : Rows::kBatch;
}

int64_t rows_per_row(const std::vector<int64_t>& operand, const std::vector<int64_t>& x) {
  int64_t rows = 1;
  for (size_t i = 1; i < x.size() && size_at(operand, i) == 1; ++i) {
    rows *= size_at(x, i);
  }
  return rows;
}

Storage storage_of(const TensorDesc& desc) { return desc.storage == Storage::kDefault ? Storage::kTexture3D : desc.storage; }

Layout layout_of(const TensorDesc& desc) {
  if (desc.layout != Layout::kDefault) {
    return desc.layout;
  }
  return desc.dims.size() < 3 || size_at(desc.dims, 2) == 1 ? Layout::kWidthPacked : Layout::kChannelsPacked;
}

bool is_plain(const TensorDesc& desc) {
  const Storage storage = storage_of(desc);
  return (storage == Storage::kBuffer || storage == Storage::kTexture3D) && layout_of(desc) <= Layout::kChannelsPacked;
}

}  // namespace etvk_guard
