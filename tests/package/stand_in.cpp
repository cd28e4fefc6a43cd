// SPDX-License-Identifier: Apache-2.0
//
// A backend "VulkanBackend" that computes nothing. In the folder ETVK_GUARD_STAND_IN it leaves what a delegate is given:
//   blob-N      the N-th delegate's processed blob
//   named-N-KEY  the program's named data, as that delegate would read them
//   calls       a line for each execution: the number of arguments
#include <cstdio>
#include <cstdlib>
#include <string>

#include <executorch/runtime/backend/interface.h>

namespace {

using executorch::runtime::ArrayRef;
using executorch::runtime::BackendExecutionContext;
using executorch::runtime::BackendInitContext;
using executorch::runtime::CompileSpec;
using executorch::runtime::DelegateHandle;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::FreeableBuffer;
using executorch::runtime::Result;
using executorch::runtime::Span;

bool append(const std::string& name, const void* data, size_t size) {
  const char* folder = std::getenv("ETVK_GUARD_STAND_IN");
  std::FILE* file = folder == nullptr ? nullptr : std::fopen((std::string(folder) + "/" + name).c_str(), "ab");
  if (file == nullptr) {
    return false;
  }
  const bool written = std::fwrite(data, 1, size, file) == size;
  return std::fclose(file) == 0 && written;
}

class StandIn final : public executorch::runtime::BackendInterface {
 public:
  bool is_available() const override { return true; }

  Result<DelegateHandle*> init(BackendInitContext& context, FreeableBuffer* processed, ArrayRef<CompileSpec>) const override {
    const std::string number = std::to_string(delegates_++);
    if (!append("blob-" + number, processed->data(), processed->size())) {
      return Error::AccessFailed;
    }
    const auto* data = context.get_named_data_map();
    const uint32_t count = data == nullptr ? 0 : data->get_num_keys().get();
    for (uint32_t i = 0; i < count; ++i) {
      const char* key = data->get_key(i).get();
      const Result<FreeableBuffer> value = data->get_data(key);
      if (!value.ok() || !append("named-" + number + "-" + key, value->data(), value->size())) {
        return Error::AccessFailed;
      }
    }
    return reinterpret_cast<DelegateHandle*>(const_cast<StandIn*>(this));
  }

  Error execute(BackendExecutionContext&, DelegateHandle*, Span<EValue*> args) const override {
    const std::string line = std::to_string(args.size()) + "\n";
    return append("calls", line.data(), line.size()) ? Error::Ok : Error::AccessFailed;
  }

 private:
  mutable int delegates_ = 0;
};

StandIn stand_in;
const Error registered = executorch::runtime::register_backend({"VulkanBackend", &stand_in});

}  // namespace
