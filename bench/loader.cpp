// SPDX-License-Identifier: Apache-2.0
//
// loader FILE.pte file|mmap [--plain]: loads a program and all its named data through ExecuTorch, with the guarded loader or
// (--plain) without it, and prints what it took as one JSON object. Run by bench/loader.py. Times in ms, memory in bytes.
#include <malloc.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <etvk_guard/loader.h>
#include <executorch/extension/data_loader/file_data_loader.h>
#include <executorch/extension/data_loader/mmap_data_loader.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/runtime.h>

namespace {

using executorch::extension::FileDataLoader;
using executorch::extension::MmapDataLoader;
using executorch::runtime::DataLoader;
using executorch::runtime::FreeableBuffer;
using executorch::runtime::Program;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }

// A line of /proc/self/status, in bytes.
long long status(const char* name) {
  long long value = -1;
  std::FILE* file = std::fopen("/proc/self/status", "r");
  for (char line[256]; file != nullptr && std::fgets(line, sizeof(line), file) != nullptr;) {
    if (std::strncmp(line, name, std::strlen(name)) == 0) {
      value = std::atoll(line + std::strlen(name) + 1) * 1024;
    }
  }
  std::fclose(file);
  return value;
}

// Bytes of the heap in use, large blocks as well.
long long heap() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<long long>(info.uordblks + info.hblkhd);
}

template <typename Loader>
std::unique_ptr<DataLoader> owned(executorch::runtime::Result<Loader> loader) {
  if (!loader.ok()) {
    std::exit(1);
  }
  return std::make_unique<Loader>(std::move(loader.get()));
}

// All of it is read, as a delegate does that copies it to the device. The sum keeps the compiler from leaving that out.
unsigned long long load(DataLoader* loader) {
  const auto program = Program::load(loader);
  if (!program.ok()) {
    std::exit(2);
  }
  const auto data = program->get_named_data_map();
  unsigned long long sum = 0;
  for (uint32_t i = 0; data.ok() && i < (*data)->get_num_keys().get(); ++i) {
    const auto value = (*data)->get_data((*data)->get_key(i).get());
    if (!value.ok()) {
      std::exit(3);
    }
    for (size_t at = 0; at < value->size(); at += 512) {
      sum += static_cast<const uint8_t*>(value->data())[at];
    }
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    return 64;
  }
  executorch::runtime::runtime_init();
  const bool plain = argc > 3;
  std::unique_ptr<DataLoader> loader = std::strcmp(argv[2], "mmap") == 0
                                           ? owned(MmapDataLoader::from(argv[1], MmapDataLoader::MlockConfig::NoMlock))
                                           : owned(FileDataLoader::from(argv[1]));
  const long long resident = status("VmRSS:");
  const long long used = heap();
  const auto start = Clock::now();
  double check = 0;
  long long kept = 0, peak = 0;
  if (!plain) {
    auto guarded = std::make_unique<etvk_guard::GuardedDataLoader>(std::move(loader));
    if (guarded->check() != executorch::runtime::Error::Ok ||
        guarded->report()->outcome != etvk_guard::LoadOutcome::kClean) {
      return 4;
    }
    check = since(start);
    kept = heap() - used;
    peak = status("VmHWM:") - resident;
    loader = std::move(guarded);
  }
  const auto loading = Clock::now();
  const unsigned long long sum = load(loader.get());
  std::printf("{\"check_ms\": %.4f, \"load_ms\": %.4f, \"kept\": %lld, \"peak\": %lld, \"sum\": %llu}\n", check, since(loading), kept,
              peak, sum);
  return 0;
}
