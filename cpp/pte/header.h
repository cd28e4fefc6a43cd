// SPDX-License-Identifier: Apache-2.0
//
// The two fixed-layout headers: the extended header of a program file, and the header of a Vulkan blob. All numbers are
// little-endian.
#pragma once

#include <etvk_guard/pte.h>

#include <cstdint>

#include "bytes.h"

namespace etvk_guard {

// "eh00" at byte 8 of the file: magic, u32 length (from the magic), u64 program size, u64 segment base offset and, if the
// length allows, u64 segment data size. Absent in old files: then the whole file is the flatbuffer and there are no segments.
struct ExtendedHeader {
  static constexpr uint64_t kOffset = 8;
  static constexpr uint32_t kLength = 24;          // without the segment data size
  static constexpr uint32_t kLengthWithData = 32;  // with it

  bool present = false;
  uint32_t length = 0;
  uint64_t program_size = 0;       // bytes of the flatbuffer, from the start of the file
  uint64_t segment_base = 0;       // 0: no segments
  uint64_t segment_data_size = 0;  // 0: no segments, or not stated
  bool has_segment_data_size() const { return length >= kLengthWithData; }

  // kEmptyFile, kNotAPte, kUnsupportedSchema (another identifier than ET12), kTruncated, kBadExtendedHeader, kIoError.
  static Error read(const Reader& reader, ExtendedHeader* into);
};

// 4 bytes of anything, "VH00", u16 header length, u32 flatbuffer offset, u32 flatbuffer size, u32 bytes offset, u64 bytes size.
// Offsets count from the start of the blob.
struct BlobHeader {
  static constexpr uint64_t kLength = 30;

  uint16_t length = 0;
  uint32_t flatbuffer_offset = 0;
  uint32_t flatbuffer_size = 0;
  uint32_t bytes_offset = 0;
  uint64_t bytes_size = 0;  // as stored; 0 is read by the delegate as "to the end of the blob": see Blob::bytes

  // kBadDelegateHeader, kIoError. `blob` lies in the file.
  static Error read(const Reader& reader, Range blob, BlobHeader* into);
};

}  // namespace etvk_guard
