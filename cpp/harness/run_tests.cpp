// SPDX-License-Identifier: Apache-2.0
#include "run_tests.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "cases.h"
#include "json.h"

namespace etvk_guard::harness {
namespace {

struct KernelTally {
  int cases = 0;
  int failed = 0;
  double worst_error = 0.0;
};

struct Outcome {
  std::map<std::string, KernelTally> kernels;
  std::vector<std::string> failures;
  std::vector<std::string> messages;  // of the validation layer, each with its case
  std::size_t pipelines = 0;
  int cases = 0;
  int skipped = 0;  // over the device's limits
};

bool can_run(const kernels::Kernel& kernel, const kernels::DeviceLimits& limits) {
  const bool subgroups = limits.subgroup_arithmetic && limits.subgroup_size >= 4;
  return (kernel.key.reduction == kernels::Reduction::kShared || subgroups) &&
         (!kernel.needs_16bit_storage || limits.storage_16bit);
}

void keep_messages(const Instance& instance, std::size_t before, const std::string& where, Outcome* outcome) {
  for (std::size_t i = before; i < instance.messages().size(); ++i) {
    outcome->messages.push_back(where + ": " + instance.messages()[i]);
  }
}

void run_one(const Device& device, ProgramCache& programs, const NormCase& test, bool verbose, Outcome* outcome) {
  const std::optional<kernels::Plan> plan = plan_of(test, device.info());
  if (!plan) {
    ++outcome->skipped;
    return;
  }
  const CaseResult result = run_case(device, programs, test, *plan);
  KernelTally& tally = outcome->kernels[result.kernel];
  ++tally.cases;
  ++outcome->cases;
  tally.worst_error = std::max(tally.worst_error, result.worst_error);
  if (!result.passed) {
    ++tally.failed;
    outcome->failures.push_back(result.kernel + ": " + describe(test) + ": " + result.message);
  }
  if (verbose) {
    std::fprintf(stderr, "%s %.3f %s (%ux%u, chunks %u)\n", result.passed ? "ok  " : "FAIL", result.worst_error,
                 describe(test).c_str(), plan->local_size[0], plan->local_size[1], plan->spec.chunks);
  }
}

void add_kernels_not_run(const kernels::DeviceLimits& limits, Outcome* outcome) {
  const kernels::KernelTable table = kernels::kernel_table();
  for (std::size_t i = 0; i < table.count; ++i) {
    const kernels::Kernel& kernel = table.kernels[i];
    if (can_run(kernel, limits) && outcome->kernels.count(kernel.name) == 0) {
      outcome->failures.push_back(std::string(kernel.name) + ": no case ran it");
    }
  }
}

void print_json(const DeviceInfo& info, const Outcome& outcome) {
  std::vector<std::string> rows;
  for (const auto& [name, tally] : outcome.kernels) {
    rows.push_back(JsonObject()
                       .add("kernel", name)
                       .add("cases", static_cast<double>(tally.cases))
                       .add("failed", static_cast<double>(tally.failed))
                       .add("worst_error", tally.worst_error)
                       .text());
  }
  std::vector<std::string> failures;
  std::transform(outcome.failures.begin(), outcome.failures.end(), std::back_inserter(failures), json_string);
  std::vector<std::string> said;
  std::transform(outcome.messages.begin(), outcome.messages.end(), std::back_inserter(said), json_string);
  std::printf("%s\n", JsonObject()
                          .add("device", info.name)
                          .add("pipelines", static_cast<double>(outcome.pipelines))
                          .add("cases", static_cast<double>(outcome.cases))
                          .add("skipped", static_cast<double>(outcome.skipped))
                          .add_json("kernels", json_array(rows))
                          .add_json("failures", json_array(failures))
                          .add_json("validation_messages", json_array(said))
                          .text()
                          .c_str());
}

void print_text(const DeviceInfo& info, const Outcome& outcome) {
  for (const auto& [name, tally] : outcome.kernels) {
    std::printf("%-60s %4d cases, worst error %.3f of what is allowed%s\n", name.c_str(), tally.cases, tally.worst_error,
                tally.failed > 0 ? "  FAILED" : "");
  }
  for (const std::string& failure : outcome.failures) {
    std::printf("FAILED %s\n", failure.c_str());
  }
  for (const std::string& message : outcome.messages) {
    std::printf("VALIDATION %s\n", message.c_str());
  }
  std::printf("%s: %zu kernels in %zu pipelines, %d cases, %zu failures, %d over the device's limits, %zu validation messages\n",
              info.name.c_str(), outcome.kernels.size(), outcome.pipelines, outcome.cases, outcome.failures.size(), outcome.skipped,
              outcome.messages.size());
}

}  // namespace

bool run_tests(const Instance& instance, VkPhysicalDevice physical, const TestOptions& options) {
  std::size_t said = instance.messages().size();
  Outcome outcome;
  DeviceInfo info;
  {
    const Device device(instance, physical);
    info = device.info();
    ProgramCache programs(device);
    for (const NormCase& test : all_cases(info.limits.subgroup_size)) {
      if (describe(test).find(options.only) == std::string::npos) {
        continue;
      }
      run_one(device, programs, test, options.verbose, &outcome);
      keep_messages(instance, said, describe(test), &outcome);
      said = instance.messages().size();
    }
    outcome.pipelines = programs.size();
  }
  keep_messages(instance, said, "at the end", &outcome);
  if (options.only.empty()) {
    add_kernels_not_run(info.limits, &outcome);
  }
  if (options.json) {
    print_json(info, outcome);
  } else {
    print_text(info, outcome);
  }
  return outcome.failures.empty() && outcome.messages.empty();
}

}  // namespace etvk_guard::harness
