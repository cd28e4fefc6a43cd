// SPDX-License-Identifier: Apache-2.0
//
// Loads a program that may be faulty, says what was repaired, and runs it.
//
//   example MODEL.pte [--data WEIGHTS.ptd] [--input FILE]... [--output PREFIX]
//
// ETVK_GUARD_BACKEND names the library of the Vulkan delegate, where that is not linked. Inputs are raw little-endian values,
// one file for each; without them there is nothing to run. Output i goes to PREFIXi.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <etvk_guard/loader.h>
#include <executorch/extension/data_loader/file_data_loader.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

using etvk_guard::GuardedDataLoader;
using executorch::extension::FileDataLoader;
using executorch::extension::Module;
using executorch::extension::TensorPtr;
using executorch::runtime::EValue;

namespace {

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "error: %s\n", why.c_str());
  std::exit(1);
}

// Called once, when the program has been checked.
void say(void*, const etvk_guard::LoadReport& report) {
  for (const etvk_guard::Finding& finding : report.repaired) {
    std::printf("repaired: method %s, op %d (%s): %s\n", finding.where.method.c_str(), finding.where.op_index,
                finding.where.op.c_str(), finding.message.c_str());
  }
  for (const etvk_guard::Finding& finding : report.remaining) {
    std::printf("remains: method %s: %s\n", finding.where.method.c_str(), finding.message.c_str());
  }
  if (report.error) {
    std::printf("cannot be checked: %s\n", report.error.message.c_str());
  }
}

std::unique_ptr<GuardedDataLoader> guarded(const std::string& path) {
  auto file = FileDataLoader::from(path.c_str());
  if (!file.ok()) {
    stop("cannot open " + path);
  }
  etvk_guard::GuardedLoaderOptions options;
  options.on_checked = say;
  return std::make_unique<GuardedDataLoader>(std::make_unique<FileDataLoader>(std::move(file.get())), options);
}

std::vector<EValue> read_inputs(Module& module, const std::vector<std::string>& files, std::vector<TensorPtr>* tensors) {
  const auto meta = module.method_meta("forward");
  if (!meta.ok() || meta->num_inputs() != files.size()) {
    stop("forward takes another number of inputs");
  }
  for (size_t i = 0; i < files.size(); ++i) {
    const auto info = meta->input_tensor_meta(i);
    std::ifstream file(files[i], std::ios::binary);
    std::vector<uint8_t> bytes(std::istreambuf_iterator<char>(file), {});
    if (!info.ok() || bytes.size() != info->nbytes()) {
      stop(files[i] + " is not of the right size");
    }
    const std::vector<executorch::aten::SizesType> sizes(info->sizes().begin(), info->sizes().end());
    tensors->push_back(executorch::extension::make_tensor_ptr(sizes, std::move(bytes), info->scalar_type()));
  }
  return std::vector<EValue>(tensors->begin(), tensors->end());
}

void write_outputs(const std::vector<EValue>& outputs, const std::string& prefix) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& tensor = outputs[i].toTensor();
    std::ofstream file(prefix + std::to_string(i), std::ios::binary);
    file.write(static_cast<const char*>(tensor.const_data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string model, data, output;
  std::vector<std::string> inputs;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("--", 0) != 0) {
      model = word;
    } else if (++i == argc) {
      stop(word + " needs a value");
    } else if (word == "--input") {
      inputs.push_back(argv[i]);
    } else {
      (word == "--data" ? data : word == "--output" ? output : (stop("unknown option " + word), output)) = argv[i];
    }
  }
  const char* backend = std::getenv("ETVK_GUARD_BACKEND");
  if (backend != nullptr && dlopen(backend, RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    stop(dlerror());
  }
  Module module(guarded(model), nullptr, nullptr, nullptr, data.empty() ? nullptr : guarded(data));
  if (const auto error = module.load(); error != executorch::runtime::Error::Ok) {
    stop("the program does not load: error " + std::to_string(static_cast<int>(error)));
  }
  if (inputs.empty()) {
    return 0;
  }
  std::vector<TensorPtr> tensors;
  const auto outputs = module.forward(read_inputs(module, inputs, &tensors));
  if (!outputs.ok()) {
    stop("forward fails: error " + std::to_string(static_cast<int>(outputs.error())));
  }
  write_outputs(*outputs, output);
  return 0;
}
