// SPDX-License-Identifier: Apache-2.0
//
// etvk_guard::loader: a DataLoader that repairs a program while ExecuTorch loads it.
//
//   auto file = FileDataLoader::from("model.pte");                    // or any other DataLoader
//   auto guarded = std::make_unique<etvk_guard::GuardedDataLoader>(
//       std::make_unique<FileDataLoader>(std::move(file.get())));
//   executorch::extension::Module module(std::move(guarded));         // or Program::load(guarded.get())
//
// At its first call it checks the program through the wrapped loader (headers and graphs are read, weights are not). If there
// is nothing to repair, all calls go to the wrapped loader from then on and nothing is kept in memory. Otherwise the program's
// flatbuffer and the blobs that had to change are served from memory, and every other byte comes from the wrapped loader: where
// a range lies wholly in such bytes, load() hands on the wrapped loader's own buffer. The file is not written to. It must not
// change meanwhile.
//
// Only ExecuTorch's public headers are used (runtime/core/data_loader.h). Build this library against the headers of the release
// that you link. It builds with -fno-exceptions -fno-rtti, throws nothing, and has no global state. The wrapped loader and the
// callback must not throw either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <etvk_guard/api.h>
#include <etvk_guard/pte.h>
#include <executorch/runtime/core/data_loader.h>

namespace etvk_guard {

// What to do about findings of severity kError: those that a stock delegate aborts on or computes wrongly. Others are only
// information, and never keep a program from loading.
enum class LoadPolicy : uint8_t {
  kRepair,          // repair what can be; what remains is in the report, and the program is served
  kRepairOrRefuse,  // the same, but if such a finding remains, every call fails
  kRefuse,          // repair nothing: with such a finding, every call fails
  kReport,          // every byte is served as it is, also of files that cannot be checked: the report says what was found
};

enum class LoadOutcome : uint8_t {
  kClean,        // nothing to repair, served as it is (`remaining` may hold information)
  kRepaired,     // at least one site was repaired
  kReported,     // served as it is, with findings or an error (kReport), or with none that can be repaired (kRepair)
  kRefused,      // refused for its findings
  kPassedOn,     // not a program, and passed on: a .ptd, or anything with `pass_unknown`
  kFailed,       // the wrapped loader failed, or the bytes are bad: see `error`
};

struct LoadReport {
  LoadOutcome outcome = LoadOutcome::kFailed;
  std::vector<Finding> repaired;        // sites that were rewritten in memory
  std::vector<Finding> remaining;       // all other findings
  uint64_t added_activation_bytes = 0;  // upper bound of the memory that a repair's temporaries add on the device
  Error error;                          // why the file could not be checked or repaired; false if it was
};

struct GuardedLoaderOptions {
  LoadPolicy policy = LoadPolicy::kRepair;
  // Bytes that are neither a program nor a .ptd file: pass them on untouched instead of failing. A .ptd file (external data,
  // identifier "FT01") is always passed on.
  bool pass_unknown = false;
  // Alignment in bytes of what is served from memory, a power of two. It is more where the offset in the file is more aligned,
  // up to a page, as it would be in a mapped file. What the wrapped loader serves is aligned as it aligns it.
  size_t alignment = alignof(std::max_align_t);
  // Called once a check is done, on the thread that did it, before that thread's own call returns. Once for each loader; again
  // only if the wrapped loader failed, or memory ran out, and the check was repeated. It may use the loader. The report lives
  // as long as the callback runs (report() for longer).
  void (*on_checked)(void* context, const LoadReport& report) = nullptr;
  void* context = nullptr;
};

// Thread-safe, as DataLoader asks: any calls may come from several threads, the first ones too (one of them checks, the others
// wait). The wrapped loader has to be thread-safe as well. Buffers own their memory: those served from memory may outlive this
// object, those of the wrapped loader live by its rules.
//
// Errors (nothing is thrown or leaked, and every call is checked):
//   the wrapped loader's own        it failed. A check that fails so, or for want of memory, is done again at the next call
//   AccessFailed                    the wrapped loader returned fewer bytes than asked for
//   InvalidProgram                  the bytes are no program, or not a sound one
//   NotSupported                    a program of a schema, or of a size, that cannot be checked or repaired
//   DelegateInvalidCompatibility    refused by the policy
//   InvalidArgument                 a range outside the (repaired) file, a null buffer, no loader to wrap, an odd alignment
//   MemoryAllocationFailed          no memory for what is served from memory
//   Internal                        a repair went wrong and was noticed: a bug
class ETVK_GUARD_API GuardedDataLoader final : public executorch::runtime::DataLoader {
 public:
  explicit GuardedDataLoader(std::unique_ptr<executorch::runtime::DataLoader> wrapped, GuardedLoaderOptions options = {});
  // Borrows: the wrapped loader has to outlive this object.
  explicit GuardedDataLoader(executorch::runtime::DataLoader* wrapped, GuardedLoaderOptions options = {});
  ~GuardedDataLoader() override;
  GuardedDataLoader(const GuardedDataLoader&) = delete;
  GuardedDataLoader& operator=(const GuardedDataLoader&) = delete;

  // `offset` counts in the repaired file. The wrapped loader gets the caller's segment_info, with the offset in its own file;
  // the check's reads have the type Program. A range of 0 bytes gives an empty buffer.
  executorch::runtime::Result<executorch::runtime::FreeableBuffer> load(size_t offset, size_t size,
                                                                        const SegmentInfo& segment_info) const override;
  // Works also where the wrapped loader has no load_into.
  executorch::runtime::Error load_into(size_t offset, size_t size, const SegmentInfo& segment_info,
                                       void* buffer) const override;
  // Bytes of the repaired file. After the first call that succeeded this does not fail.
  executorch::runtime::Result<size_t> size() const override;

  // Does the check now, if it is not done: Ok if the file will be served.
  executorch::runtime::Error check() const;
  // What the check found; nullptr until it is done. Lives as long as this object.
  const LoadReport* report() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace etvk_guard
