// SPDX-License-Identifier: Apache-2.0
#include "header.h"

#include "error.h"

namespace etvk_guard {
namespace {

constexpr uint64_t kIdentifierOffset = 4;
constexpr char kProgramIdentifier[] = "ET12";
constexpr char kExtendedMagic[] = "eh00";
constexpr char kBlobMagic[] = "VH00";

bool is_digit(uint8_t byte) { return byte >= '0' && byte <= '9'; }

Error check_identifier(const uint8_t* head, uint64_t available) {
  if (available < kIdentifierOffset + 4) {
    return make_error(ErrorCode::kNotAPte, 0, "%s bytes are too few for a program", number(available).c_str());
  }
  const uint8_t* found = head + kIdentifierOffset;
  if (found[0] != 'E' || found[1] != 'T' || !is_digit(found[2]) || !is_digit(found[3])) {
    return make_error(ErrorCode::kNotAPte, kIdentifierOffset, "bytes 4 to 7 are %02x %02x %02x %02x, not the identifier \"%s\"",
                      found[0], found[1], found[2], found[3], kProgramIdentifier);
  }
  if (std::memcmp(found, kProgramIdentifier, 4) != 0) {
    return make_error(ErrorCode::kUnsupportedSchema, kIdentifierOffset, "the program has the identifier \"ET%c%c\", not \"%s\"",
                      found[2], found[3], kProgramIdentifier);
  }
  return {};
}

// The header's own sense, and that the file has the bytes it promises.
Error check_extended(const ExtendedHeader& header, uint64_t file_size) {
  const uint64_t offset = ExtendedHeader::kOffset;
  if (header.length < ExtendedHeader::kLength) {
    return make_error(ErrorCode::kBadExtendedHeader, offset, "its length is %u, below %u", header.length,
                      ExtendedHeader::kLength);
  }
  if (header.program_size < ExtendedHeader::kOffset + header.length) {
    return make_error(ErrorCode::kBadExtendedHeader, offset, "a program size of %s does not cover the header",
                      number(header.program_size).c_str());
  }
  if (header.program_size > file_size) {
    return make_error(ErrorCode::kTruncated, offset, "the program has %s bytes, the file %s",
                      number(header.program_size).c_str(), number(file_size).c_str());
  }
  if (header.segment_base == 0) {
    if (header.segment_data_size != 0) {
      return make_error(ErrorCode::kBadExtendedHeader, offset, "%s bytes of segments, but no segment base offset",
                        number(header.segment_data_size).c_str());
    }
    return {};
  }
  if (header.segment_base < header.program_size) {
    return make_error(ErrorCode::kBadExtendedHeader, offset, "segments start at byte %s, inside the program of %s bytes",
                      number(header.segment_base).c_str(), number(header.program_size).c_str());
  }
  if (!in_range(header.segment_base, header.segment_data_size, file_size)) {
    return make_error(ErrorCode::kTruncated, offset, "segments of %s bytes start at byte %s, but the file has %s",
                      number(header.segment_data_size).c_str(), number(header.segment_base).c_str(), number(file_size).c_str());
  }
  return {};
}

}  // namespace

Error ExtendedHeader::read(const Reader& reader, ExtendedHeader* into) {
  uint8_t head[kOffset + kLengthWithData] = {};
  const uint64_t file_size = reader.size();
  const uint64_t available = file_size < sizeof(head) ? file_size : sizeof(head);
  if (available == 0) {
    return make_error(ErrorCode::kEmptyFile, 0, "it has 0 bytes");
  }
  if (!reader.read(0, head, static_cast<size_t>(available))) {
    return make_error(ErrorCode::kIoError, 0, "cannot read the first %s bytes", number(available).c_str());
  }
  if (Error error = check_identifier(head, available)) {
    return error;
  }
  ExtendedHeader header;
  header.program_size = file_size;
  // A file too short for the magic has no header; with the magic it must have all of it.
  if (available < kOffset + 4 || std::memcmp(head + kOffset, kExtendedMagic, 4) != 0) {
    *into = header;
    return {};
  }
  if (available < kOffset + kLength) {
    return make_error(ErrorCode::kTruncated, kOffset, "the file ends inside the extended header");
  }
  const uint8_t* field = head + kOffset;
  header.present = true;
  header.length = static_cast<uint32_t>(load_le(field + 4, 4));
  header.program_size = load_le(field + 8, 8);
  header.segment_base = load_le(field + 16, 8);
  if (header.has_segment_data_size()) {
    if (available < kOffset + kLengthWithData) {
      return make_error(ErrorCode::kTruncated, kOffset, "the file ends inside the extended header");
    }
    header.segment_data_size = load_le(field + 24, 8);
  }
  if (Error error = check_extended(header, file_size)) {
    return error;
  }
  *into = header;
  return {};
}

namespace {

Error check_blob(const BlobHeader& header, Range blob) {
  if (header.length < BlobHeader::kLength || header.flatbuffer_offset < header.length || header.flatbuffer_size == 0) {
    return make_error(ErrorCode::kBadDelegateHeader, blob.offset,
                      "a header of %u bytes with a flatbuffer of %u bytes at %u cannot be right", header.length,
                      header.flatbuffer_size, header.flatbuffer_offset);
  }
  if (!in_range(header.flatbuffer_offset, header.flatbuffer_size, blob.size)) {
    return make_error(ErrorCode::kBadDelegateHeader, blob.offset,
                      "a flatbuffer of %u bytes at %u does not fit a blob of %s bytes", header.flatbuffer_size,
                      header.flatbuffer_offset, number(blob.size).c_str());
  }
  const uint64_t flatbuffer_end = uint64_t{header.flatbuffer_offset} + header.flatbuffer_size;
  if (header.bytes_offset < flatbuffer_end) {
    return make_error(ErrorCode::kBadDelegateHeader, blob.offset,
                      "constants start at %u, inside the flatbuffer that ends at %s", header.bytes_offset,
                      number(flatbuffer_end).c_str());
  }
  if (!in_range(header.bytes_offset, header.bytes_size, blob.size)) {
    return make_error(ErrorCode::kBadDelegateHeader, blob.offset, "constants of %s bytes at %u do not fit a blob of %s bytes",
                      number(header.bytes_size).c_str(), header.bytes_offset, number(blob.size).c_str());
  }
  return {};
}

}  // namespace

Error BlobHeader::read(const Reader& reader, Range blob, BlobHeader* into) {
  uint8_t head[kLength];
  if (blob.size < kLength) {
    return make_error(ErrorCode::kBadDelegateHeader, blob.offset, "a blob of %s bytes is too small for its header",
                      number(blob.size).c_str());
  }
  if (!reader.read(blob.offset, head, sizeof(head))) {
    return make_error(ErrorCode::kIoError, blob.offset, "cannot read the header of a blob");
  }
  if (std::memcmp(head + 4, kBlobMagic, 4) != 0) {
    return make_error(ErrorCode::kBadDelegateHeader, blob.offset, "bytes 4 to 7 are %02x %02x %02x %02x, not \"%s\"", head[4],
                      head[5], head[6], head[7], kBlobMagic);
  }
  BlobHeader header;
  header.length = static_cast<uint16_t>(load_le(head + 8, 2));
  header.flatbuffer_offset = static_cast<uint32_t>(load_le(head + 10, 4));
  header.flatbuffer_size = static_cast<uint32_t>(load_le(head + 14, 4));
  header.bytes_offset = static_cast<uint32_t>(load_le(head + 18, 4));
  header.bytes_size = load_le(head + 22, 8);
  if (Error error = check_blob(header, blob)) {
    return error;
  }
  *into = header;
  return {};
}

}  // namespace etvk_guard
