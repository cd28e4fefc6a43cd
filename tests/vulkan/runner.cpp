// SPDX-License-Identifier: Apache-2.0
//
// Runs programs on the Vulkan delegate without Python: for devices that have none. It is linked to ExecuTorch's runtime and loads the delegate and
// the op builder itself. The cases and what eager torch makes of them come from tests/vulkan/make_cases.py.
//
//   runner [--backend LIB] [--builder LIB] [--guard builder|off] [--soak N] [--skip NAMES] [--loads N] [--threads N] [--time N] FOLDER
//
// --skip: comma-separated cases that the soak leaves out. On Mesa's CPU driver a linear layer grows by 111 KB at each inference, on a stock delegate as
// well: "large,large_faulty".
// FOLDER/cases.txt has a line for each case; sizes are "2x8x64", or "-" for rank 0; files are raw little-endian values:
//   case NAME PROGRAM.pte TOLERANCE
//   input DTYPE SIZES FILE
//   output DTYPE SIZES FILE
// Prints a line for each case: its largest error relative to the largest expected value. Exit code 0: all are right. With --guard off a case that the
// delegate throws on counts as wrong.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include "gpu_times.h"

namespace {

using executorch::aten::ScalarType;
using executorch::extension::Module;
using executorch::extension::TensorPtr;
using executorch::runtime::EValue;

struct Value {
  std::string dtype;
  std::vector<executorch::aten::SizesType> sizes;
  std::vector<uint8_t> bytes;
};

struct Case {
  std::string name, program;
  double tolerance = 0;
  std::vector<Value> inputs, outputs;
};

struct Options {
  std::string backend, builder, guard = "builder", folder, skip;
  int soak = 0, loads = 0, threads = 0, time = 0;
};

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "error: %s\n", why.c_str());
  std::exit(2);
}

std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    stop("cannot read " + path);
  }
  return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {});
}

ScalarType scalar_type(const std::string& dtype) {
  if (dtype == "float32") {
    return ScalarType::Float;
  }
  if (dtype == "float16") {
    return ScalarType::Half;
  }
  return dtype == "int64" ? ScalarType::Long : dtype == "int32" ? ScalarType::Int : (stop("dtype " + dtype), ScalarType::Byte);
}

Value read_value(std::istringstream& line, const std::string& folder) {
  Value value;
  std::string sizes, file, size;
  line >> value.dtype >> sizes >> file;
  std::istringstream parts(sizes);
  while (sizes != "-" && std::getline(parts, size, 'x')) {
    value.sizes.push_back(std::stoi(size));
  }
  value.bytes = read_file(folder + "/" + file);
  return value;
}

std::vector<Case> read_cases(const std::string& folder) {
  std::ifstream list(folder + "/cases.txt");
  if (!list) {
    stop("cannot read " + folder + "/cases.txt");
  }
  std::vector<Case> cases;
  for (std::string text; std::getline(list, text);) {
    std::istringstream line(text);
    std::string word;
    line >> word;
    if (word == "case") {
      cases.emplace_back();
      line >> cases.back().name >> cases.back().program >> cases.back().tolerance;
    } else if (!word.empty() && !cases.empty()) {
      (word == "input" ? cases.back().inputs : cases.back().outputs).push_back(read_value(line, folder));
    }
  }
  return cases;
}

double half_to_double(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = (bits & 1023) / 1024.0;
  const double size = exponent == 31 ? (fraction == 0 ? INFINITY : NAN) : exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
  return (bits & 0x8000) != 0 ? -size : size;
}

double number_at(const uint8_t* bytes, ScalarType type, size_t i) {
  if (type == ScalarType::Half) {
    uint16_t bits;
    std::memcpy(&bits, bytes + 2 * i, 2);
    return half_to_double(bits);
  }
  if (type == ScalarType::Float) {
    float value;
    std::memcpy(&value, bytes + 4 * i, 4);
    return static_cast<double>(value);
  }
  int64_t value = 0;
  std::memcpy(&value, bytes + (type == ScalarType::Long ? 8 : 4) * i, type == ScalarType::Long ? 8 : 4);
  return type == ScalarType::Long ? static_cast<double>(value) : static_cast<double>(static_cast<int32_t>(value));
}

// Largest difference, relative to the largest expected value; infinite on any mismatch of dtype or sizes, and on NaN.
double error_of(const executorch::aten::Tensor& result, const Value& expected) {
  const ScalarType type = scalar_type(expected.dtype);
  const auto sizes = result.sizes();
  if (result.scalar_type() != type || !std::equal(sizes.begin(), sizes.end(), expected.sizes.begin(), expected.sizes.end())) {
    return INFINITY;
  }
  double difference = 0, scale = 0;
  const auto* got = static_cast<const uint8_t*>(result.const_data_ptr());
  for (size_t i = 0; i < static_cast<size_t>(result.numel()); ++i) {
    const double want = number_at(expected.bytes.data(), type, i);
    const double off = std::fabs(number_at(got, type, i) - want);
    difference = std::isnan(off) ? INFINITY : std::max(difference, off);
    scale = std::max(scale, std::fabs(want));
  }
  return difference / (scale == 0 ? 1 : scale);
}

double cpu_microseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

class Program {
 public:
  // With `times`, the delegate's timestamps are kept.
  Program(const Case& which, const std::string& folder, bool times)
      : case_(which), times_(times ? new GpuTimes : nullptr),
        module_(folder + "/" + which.program, Module::LoadMode::File, std::unique_ptr<executorch::runtime::EventTracer>(times_)) {
    for (const Value& input : case_.inputs) {
      tensors_.push_back(executorch::extension::make_tensor_ptr(input.sizes, input.bytes, scalar_type(input.dtype)));
    }
  }
  // Empty if it worked.
  std::string load() {
    const auto status = module_.load_method("forward");
    return status == executorch::runtime::Error::Ok ? "" : "loading failed: error " + std::to_string(static_cast<int>(status));
  }
  // One inference, inputs and outputs copied: microseconds; those of a norm by the delegate's timestamps, 0 if it takes none; and those of this process
  // on CPUs, which is what counts with a CPU driver on a busy machine.
  std::array<double, 3> time() {
    times_->restart();
    const auto start = std::chrono::steady_clock::now();
    const double cpu_start = cpu_microseconds();
    (void)execute();
    const double cpu = cpu_microseconds() - cpu_start;
    const double all = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
    return {all, times_->norms == 0 ? 0.0 : static_cast<double>(times_->nanoseconds) / 1e3 / times_->norms, cpu};
  }
  double run() {
    const auto results = execute();
    if (!results.ok() || results->size() != case_.outputs.size()) {
      return INFINITY;
    }
    double error = 0;
    for (size_t i = 0; i < case_.outputs.size(); ++i) {
      error = std::max(error, error_of((*results)[i].toTensor(), case_.outputs[i]));
    }
    return error;
  }

 private:
  executorch::runtime::Result<std::vector<EValue>> execute() {
    return module_.execute("forward", std::vector<EValue>(tensors_.begin(), tensors_.end()));
  }

  const Case& case_;
  GpuTimes* times_;  // owned by module_
  Module module_;
  std::vector<TensorPtr> tensors_;
};

// The error, and why it could not run, if so.
std::pair<double, std::string> try_case(const Case& which, const Options& options, std::unique_ptr<Program>* keep = nullptr) {
  try {
    auto program = std::make_unique<Program>(which, options.folder, options.time > 0);
    if (const std::string why = program->load(); !why.empty()) {
      return {INFINITY, why};
    }
    const double error = program->run();
    if (keep != nullptr) {
      *keep = std::move(program);
    }
    return {error, ""};
  } catch (const std::exception& problem) {
    return {INFINITY, problem.what()};
  }
}

int run_all(const std::vector<Case>& cases, const Options& options) {
  int wrong = 0;
  for (const Case& which : cases) {
    std::unique_ptr<Program> program;
    const auto [error, why] = try_case(which, options, &program);
    const bool right = error <= which.tolerance;
    wrong += right ? 0 : 1;
    std::printf("%-5s %-28s error %9.2e of %7.0e %s\n", right ? "right" : "WRONG", which.name.c_str(), error, which.tolerance, why.substr(0, 300).c_str());
    if (options.time > 0 && program != nullptr) {
      std::array<double, 3> least{INFINITY, INFINITY, INFINITY};
      for (int i = 0; i < options.time; ++i) {
        const std::array<double, 3> times = program->time();
        std::transform(least.begin(), least.end(), times.begin(), least.begin(), [](double a, double b) { return std::min(a, b); });
      }
      std::printf("time  %-28s %.1f us, of which %.2f us a norm, %.1f us of CPU; the least of %d\n", which.name.c_str(), least[0], least[1], least[2],
                  options.time);
    }
  }
  std::printf("%zu cases, %d wrong\n", cases.size(), wrong);
  return wrong;
}

long resident_kib() {
  long pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

int soak(const std::vector<Case>& all, const Options& options) {
  std::vector<Case> cases;
  std::copy_if(all.begin(), all.end(), std::back_inserter(cases),
               [&](const Case& which) { return ("," + options.skip + ",").find("," + which.name + ",") == std::string::npos; });
  std::vector<std::unique_ptr<Program>> programs(cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    try_case(cases[i], options, &programs[i]);
  }
  long warm = 0;
  int wrong = 0, done = 0;
  for (int step = 0; done < options.soak; ++step) {
    for (size_t i = 0; i < cases.size(); ++i, ++done) {
      wrong += programs[i] != nullptr && programs[i]->run() <= cases[i].tolerance ? 0 : 1;
    }
    warm = done < options.soak / 5 || warm == 0 ? resident_kib() : warm;
  }
  const long grown = resident_kib() - warm;
  std::printf("soak: %d inferences, %d wrong, resident memory grew by %ld KiB\n", done, wrong, grown);
  return wrong + (grown > 4096 ? 1 : 0);
}

int load_and_unload(const std::vector<Case>& cases, const Options& options) {
  long warm = 0;
  int wrong = 0;
  for (int i = 0; i < options.loads; ++i) {
    const Case& which = cases[static_cast<size_t>(i) % cases.size()];
    wrong += try_case(which, options).first <= which.tolerance ? 0 : 1;
    warm = i == options.loads / 4 ? resident_kib() : warm;
  }
  const long grown = resident_kib() - warm;
  std::printf("loads: %d, %d wrong, resident memory grew by %ld KiB\n", options.loads, wrong, grown);
  return wrong + (grown > 16384 ? 1 : 0);
}

int in_threads(const std::vector<Case>& cases, const Options& options) {
  std::atomic<int> wrong{0}, runs{0};
  std::mutex printing;
  std::vector<std::thread> threads;
  for (int t = 0; t < options.threads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = static_cast<size_t>(t); i < cases.size() * 3; i += static_cast<size_t>(options.threads)) {
        const Case& which = cases[i % cases.size()];
        const auto [error, why] = try_case(which, options);
        ++runs;
        if (!(error <= which.tolerance) && wrong++ < 3) {
          const std::lock_guard<std::mutex> lock(printing);
          std::printf("WRONG %-28s error %9.2e, in thread %d: %s\n", which.name.c_str(), error, t, why.substr(0, 300).c_str());
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::printf("threads: %d, %d loads and runs, %d wrong\n", options.threads, runs.load(), wrong.load());
  return wrong;
}

void* open_library(const std::string& path) {
  void* library = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!path.empty() && library == nullptr) {
    stop(dlerror());
  }
  return library;
}

void print_status(void* library) {
  using Status = size_t (*)(char*, size_t);
  const auto status = library == nullptr ? nullptr : reinterpret_cast<Status>(dlsym(library, "etvk_guard_vulkan_status"));
  if (status != nullptr) {
    std::string text(status(nullptr, 0), '\0');
    status(text.data(), text.size() + 1);
    std::printf("builder: %s\n", text.c_str());
  }
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name.rfind("--", 0) != 0) {
      options.folder = name;
      continue;
    }
    if (i + 1 == argc) {
      stop(name + " needs a value");
    }
    const std::string value = argv[++i];
    std::string* const text = name == "--backend" ? &options.backend : name == "--builder" ? &options.builder : name == "--guard" ? &options.guard
                              : name == "--skip"  ? &options.skip
                                                  : nullptr;
    int* const number = name == "--soak"      ? &options.soak
                        : name == "--loads"   ? &options.loads
                        : name == "--threads" ? &options.threads
                        : name == "--time"    ? &options.time
                                              : nullptr;
    if (text == nullptr && number == nullptr) {
      stop("unknown option " + name);
    }
    text != nullptr ? void(*text = value) : void(*number = std::stoi(value));
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const Options options = parse(argc, argv);
  void* backend = open_library(options.backend);
  void* builder = options.builder.empty() ? backend : open_library(options.builder);
  if (options.guard == "off" && builder != nullptr) {
    if (const auto uninstall = reinterpret_cast<int (*)()>(dlsym(builder, "etvk_guard_vulkan_uninstall")); uninstall != nullptr) {
      uninstall();
    }
  }
  const std::vector<Case> cases = read_cases(options.folder);
  int wrong = run_all(cases, options);
  wrong += options.soak > 0 ? soak(cases, options) : 0;
  wrong += options.loads > 0 ? load_and_unload(cases, options) : 0;
  wrong += options.threads > 0 ? in_threads(cases, options) : 0;
  print_status(builder);
  return wrong == 0 ? 0 : 1;
}
