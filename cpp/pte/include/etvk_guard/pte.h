// SPDX-License-Identifier: Apache-2.0
//
// etvk_guard::pte: find and repair broken prepack contracts in ExecuTorch program files (`.pte`).
//
//   FileReader file;
//   if (Error e = FileReader::open("model.pte", &file)) ...        // or BytesReader, or your own Reader
//   Program program;
//   if (Error e = Program::open(file, &program)) ...                // everything is validated here
//   Report report;
//   if (Error e = check(program, &report)) ...                      // reads graphs, never weights
//   Repair repair;
//   if (Error e = etvk_guard::repair(program, &repair)) ...         // an overlay: nothing is copied
//   if (Error e = write_file(repair.overlay, "model.fixed.pte", "model.pte")) ...
//
// Rules of the house
//  * The bytes of a file are hostile until validated: nothing is viewed before its bounds are checked, and no input makes
//    these functions crash, throw, or allocate more than a small multiple of the flatbuffers they read.
//  * A function that can fail returns an Error that is false on success. Out parameters are written on success only.
//  * Nothing here throws; it builds with -fno-exceptions -fno-rtti. There is no global state; distinct objects may be used
//    from distinct threads, and const member functions from several.
//  * A Program, a Report's names and an Overlay keep pointers into the Reader that they were made from: keep it alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <etvk_guard/api.h>
#include <etvk_guard/contract.h>  // generated: ErrorCode, FindingCode and the tables behind them

namespace etvk_guard {

inline constexpr uint64_t kNoOffset = UINT64_MAX;

// Where in a program something is. Fields that do not apply are empty, -1 or kNoOffset.
struct Where {
  std::string method;           // ExecutionPlan.name
  int32_t delegate = -1;        // index in ExecutionPlan.delegates
  int32_t op_index = -1;        // index in VkGraph.chain
  std::string op;               // OperatorCall.name, e.g. "et_vk.rms_norm.default"
  std::string argument;         // the argument's name in the contract, e.g. "weight"
  uint64_t offset = kNoOffset;  // bytes from the start of the file
};

// Outcome of a call. `if (Error e = f()) handle(e);`
struct Error {
  ErrorCode code = ErrorCode::kNone;
  std::string message;  // what is wrong, with the values that show it
  Where where;
  explicit operator bool() const { return code != ErrorCode::kNone; }
};

// ---------------------------------------------------------------------------------------------------------------- readers

// Random access to a file's bytes. Implementations must be safe to read from several threads.
class ETVK_GUARD_API Reader {
 public:
  virtual ~Reader();
  // Bytes in all.
  virtual uint64_t size() const = 0;
  // Copies exactly [offset, offset + count) to `into`; false on any failure. Callers keep offset + count <= size().
  virtual bool read(uint64_t offset, void* into, size_t count) const = 0;
  // The bytes in place if they are mapped (and stay valid and unchanged as long as the Reader lives), else nullptr.
  virtual const uint8_t* view(uint64_t offset, size_t count) const;
  // A file descriptor that holds the same bytes at the same offsets (for in-kernel copies), else -1.
  virtual int descriptor() const;
};

// Bytes in memory, not owned.
class ETVK_GUARD_API BytesReader final : public Reader {
 public:
  BytesReader() = default;
  BytesReader(const void* data, size_t size) : data_(static_cast<const uint8_t*>(data)), size_(size) {}
  uint64_t size() const override { return size_; }
  bool read(uint64_t offset, void* into, size_t count) const override;
  const uint8_t* view(uint64_t offset, size_t count) const override;

 private:
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// A regular file, read with pread (a file that shrinks while open is a read error, not a signal).
class ETVK_GUARD_API FileReader final : public Reader {
 public:
  FileReader() = default;
  ~FileReader() override;
  FileReader(FileReader&& other) noexcept;
  FileReader& operator=(FileReader&& other) noexcept;
  // kIoError, kNotAFile (directory, device, pipe), kEmptyFile.
  static Error open(const char* path, FileReader* into);
  uint64_t size() const override { return size_; }
  bool read(uint64_t offset, void* into, size_t count) const override;
  int descriptor() const override { return fd_; }

 private:
  int fd_ = -1;
  uint64_t size_ = 0;
};

// ---------------------------------------------------------------------------------------------------------------- program

class ProgramImpl;  // cpp/pte/program.h: flatbuffer views for the other parts of this library and for the bindings

// A validated program: header, Program flatbuffer and each Vulkan delegate's blob header and VkGraph flatbuffer. Constants,
// weights and the blobs of other delegates are not read.
class ETVK_GUARD_API Program {
 public:
  Program();
  ~Program();
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  static Error open(const Reader& reader, Program* into);
  const ProgramImpl& impl() const { return *impl_; }
  const Reader& reader() const;

 private:
  std::unique_ptr<ProgramImpl> impl_;
};

// ------------------------------------------------------------------------------------------------------------------ check

struct Finding {
  FindingCode code{};
  Where where;
  std::string message;   // names the culprit: shapes, dtypes, which value, which op produced it
  bool fixable = false;  // repair() has a rewrite for this site
};

// One delegate of one method, in file order. `ops` are the names in VkGraph.chain, in order (empty for other backends).
struct DelegateSummary {
  std::string method;
  int32_t delegate = 0;
  std::string backend;  // BackendDelegate.id
  std::vector<std::string_view> ops;
  const uint8_t* graph = nullptr;  // the VkGraph flatbuffer's bytes, nullptr for other backends
  size_t graph_size = 0;
};

struct Report {
  std::vector<Finding> findings;
  std::vector<DelegateSummary> delegates;
  bool clean() const { return findings.empty(); }
};

// Holds every op of every Vulkan delegate against the contract. Time is linear in the number of ops and values.
ETVK_GUARD_API Error check(const Program& program, Report* into);

// ----------------------------------------------------------------------------------------------------------------- repair

// A file's bytes as a list of extents, each from memory that the overlay owns or from the reader it was made of.
class ETVK_GUARD_API Overlay final : public Reader {
 public:
  struct Extent {
    uint64_t start = 0;   // in the overlay
    uint64_t length = 0;  // bytes
    int32_t buffer = -1;  // index into the owned buffers, or -1: the original reader
    uint64_t source = 0;  // offset in that reader; 0 in a buffer, which is repeated where it is shorter than the extent
  };
  Overlay() = default;
  // Over a reader; over another overlay, say which is meant: Overlay(static_cast<const Reader&>(below)).
  explicit Overlay(const Reader& original) : original_(&original) {}
  // Appends bytes of the original / owned bytes / zeros; adjacent original extents are merged. Callers keep ranges inside the original.
  void append_original(uint64_t offset, uint64_t length);
  void append_owned(std::vector<uint8_t> bytes);
  void append_zeros(uint64_t count);
  // Appends `length` bytes that repeat `pattern` (not empty) from its start: memory does not grow with `length`.
  void append_repeated(const std::vector<uint8_t>& pattern, uint64_t length);

  uint64_t size() const override { return size_; }
  bool read(uint64_t offset, void* into, size_t count) const override;
  // In place when one run of bytes covers the range (owned buffers are 16-byte aligned at their start).
  const uint8_t* view(uint64_t offset, size_t count) const override;
  const std::vector<Extent>& extents() const { return extents_; }
  const std::vector<uint8_t>& owned(size_t buffer) const { return owned_[buffer]; }
  // The bytes from `within` an extent of an owned buffer, in place, as far as they lie in one run: `*count` of them.
  const uint8_t* owned_run(const Extent& extent, uint64_t within, size_t* count) const;
  const Reader& original() const { return *original_; }

 private:
  void append(int32_t buffer, uint64_t source, uint64_t length);
  const Extent& extent_at(uint64_t offset) const;

  const Reader* original_ = nullptr;
  std::vector<Extent> extents_;
  std::vector<std::vector<uint8_t>> owned_;
  uint64_t size_ = 0;
};

struct Repair {
  Overlay overlay;
  bool changed = false;              // false: the overlay is the original, byte for byte
  std::vector<Finding> repaired;     // sites that were rewritten
  std::vector<Finding> remaining;    // findings that stay, with the reason in their message
  uint64_t added_activation_bytes = 0;  // upper bound over all graphs of the memory that temporaries add
};

// Rewrites each fixable site so that a stock delegate runs it. Deterministic; a repaired program is clean at those sites and
// repairs to itself. The result is opened and checked again before it is returned (kRecheckFailed names a bug, not a bad file).
ETVK_GUARD_API Error repair(const Program& program, Repair* into);

// Streams an overlay to `path`: writes to a sibling temporary, fsyncs, renames over `path`. `input_path` (may be nullptr) is the
// file that the overlay reads: a `path` that is the same file, also through a link, is refused (kOutputIsInput). Where `path` is
// a link, the file that it leads to is replaced. Permissions are those of the file that was there, else the input's. On failure
// no file is left behind.
ETVK_GUARD_API Error write_file(const Overlay& overlay, const char* path, const char* input_path);

}  // namespace etvk_guard
