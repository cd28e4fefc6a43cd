// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

#include "json.h"
#include "run_bench.h"
#include "run_tests.h"

namespace {

using namespace etvk_guard::harness;

constexpr const char* kUsage =
    "usage: etvk-guard-kernels --list | --test | --bench [options]\n"
    "  --list            the Vulkan devices of this machine\n"
    "  --test            run every kernel on guarded, poisoned tensors and compare with float64\n"
    "  --bench           time the kernels beside a plain scheme and a device copy\n"
    "  --device N|NAME   the device: its number in --list, or a part of its name (default 0)\n"
    "  --json            print JSON\n"
    "  --validate        with the Khronos validation layer; --test fails if it says anything\n"
    "  --verbose         with --test, a line for each case\n"
    "  --only TEXT       only the cases or norms whose line holds TEXT\n"
    "  --shape RxD       with --bench, only rows x width; may be repeated\n"
    "  --quick           with --bench, the first shapes only\n"
    "  --sweep           with --bench, also the fastest of all ways to dispatch\n"
    "  --chain N         with --bench, norms in a chain (default 129; 9 on a CPU)\n"
    "  --runs N          with --bench, runs of a chain, of which the fastest counts (default 30; 5 on a CPU)\n"
    "exit status: 0 passed, 1 failed, 2 wrong use or no such device\n";

struct Options {
  std::string action;
  std::string device = "0";
  bool validate = false;
  bool timing_given = false;
  TestOptions test;
  BenchOptions bench;
};

[[noreturn]] void wrong_use(const std::string& message) {
  std::fprintf(stderr, "etvk-guard-kernels: %s\n%s", message.c_str(), kUsage);
  std::exit(2);
}

int positive(const std::string& text) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (end == text.c_str() || *end != '\0' || value < 1 || value > 1 << 24) {
    wrong_use("not a positive number: " + text);
  }
  return static_cast<int>(value);
}

std::pair<std::int32_t, std::int32_t> shape_of(const std::string& text) {
  const std::size_t x = text.find('x');
  if (x == std::string::npos) {
    wrong_use("not a shape, such as 2048x4096: " + text);
  }
  return {positive(text.substr(0, x)), positive(text.substr(x + 1))};
}

// The options that take a value. False if `name` is none of them.
bool take_value(const std::string& name, const std::string& value, Options* options) {
  if (name == "--device") {
    options->device = value;
  } else if (name == "--only") {
    options->test.only = options->bench.only = value;
  } else if (name == "--shape") {
    options->bench.shapes.push_back(shape_of(value));
  } else if (name == "--chain") {
    options->bench.timing.chain = positive(value) < 2 ? 2 : positive(value);
    options->timing_given = true;
  } else if (name == "--runs") {
    options->bench.timing.runs = positive(value);
    options->timing_given = true;
  } else {
    return false;
  }
  return true;
}

bool take_flag(const std::string& name, Options* options) {
  if (name == "--list" || name == "--test" || name == "--bench") {
    options->action = name;
  } else if (name == "--json") {
    options->test.json = options->bench.json = true;
  } else if (name == "--validate") {
    options->validate = true;
  } else if (name == "--verbose") {
    options->test.verbose = true;
  } else if (name == "--quick") {
    options->bench.quick = true;
  } else if (name == "--sweep") {
    options->bench.sweep = true;
  } else {
    return false;
  }
  return true;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--help") {
      std::printf("%s", kUsage);
      std::exit(0);
    }
    if (take_flag(name, &options)) {
      continue;
    }
    if (i + 1 >= argc || !take_value(name, argv[i + 1], &options)) {
      wrong_use("unknown option, or one without its value: " + name);
    }
    ++i;
  }
  if (options.action.empty()) {
    wrong_use("one of --list, --test and --bench is needed");
  }
  return options;
}

VkPhysicalDevice find_device(const Instance& instance, const std::string& wanted) {
  const std::vector<VkPhysicalDevice> devices = instance.devices();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (std::to_string(i) == wanted || describe(devices[i]).name.find(wanted) != std::string::npos) {
      return devices[i];
    }
  }
  throw std::runtime_error("no Vulkan device \"" + wanted + "\" among " + std::to_string(devices.size()));
}

void list_devices(const Instance& instance, bool json) {
  std::vector<std::string> rows;
  int number = 0;
  for (const VkPhysicalDevice device : instance.devices()) {
    const DeviceInfo info = describe(device);
    rows.push_back(JsonObject()
                       .add("device", info.name)
                       .add("type", info.type)
                       .add("api_version", info.api_version)
                       .add("subgroup_size", static_cast<double>(info.limits.subgroup_size))
                       .add("subgroup_arithmetic", info.limits.subgroup_arithmetic)
                       .add("storage_16bit", info.limits.storage_16bit)
                       .add("max_threads", static_cast<double>(info.limits.max_threads))
                       .text());
    if (!json) {
      std::printf("%d  %s (%s), Vulkan %s, subgroups of %u%s, 16-bit storage %s\n", number, info.name.c_str(),
                  info.type.c_str(), info.api_version.c_str(), info.limits.subgroup_size,
                  info.limits.subgroup_arithmetic ? " with arithmetic" : "", info.limits.storage_16bit ? "yes" : "no");
    }
    ++number;
  }
  if (json) {
    std::printf("%s\n", json_array(rows).c_str());
  }
}

int run(Options options) {
  const Instance instance(options.validate);
  if (options.action == "--list") {
    list_devices(instance, options.bench.json);
    return 0;
  }
  const VkPhysicalDevice device = find_device(instance, options.device);
  if (options.action == "--test") {
    return run_tests(instance, device, options.test) ? 0 : 1;
  }
  if (!options.timing_given && describe(device).type == "cpu") {
    options.bench.timing = {9, 5, 0.0};
  }
  run_bench(instance, device, options.bench);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "etvk-guard-kernels: %s\n", error.what());
    return 2;
  }
}
