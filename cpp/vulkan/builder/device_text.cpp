// SPDX-License-Identifier: Apache-2.0
#include "device_text.h"

#include <cstdlib>

namespace etvk_guard::vulkan {
namespace {

// Where the value of a line "      name            value" begins; npos if there is none. The name must be the first word of its line: a
// device may be called anything.
size_t find_value(const std::string& text, const std::string& name) {
  const std::string word = " " + name + " ";
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const size_t before = text.find_last_not_of(' ', at);
    if (before == std::string::npos || text[before] == '\n') {
      return at + word.size();
    }
  }
  return std::string::npos;
}

// The numbers after the line's name: "      maxComputeWorkGroupCount            65535,65535,65535".
bool find_numbers(const std::string& text, const std::string& name, unsigned count, std::uint32_t* numbers) {
  size_t at = find_value(text, name);
  if (at == std::string::npos) {
    return false;
  }
  for (unsigned i = 0; i < count; ++i) {
    char* end = nullptr;
    const unsigned long value = std::strtoul(text.c_str() + at, &end, 10);
    const auto next = static_cast<size_t>(end - text.c_str());
    if (next == at) {
      return false;
    }
    numbers[i] = value > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(value);
    at = next + (text[next] == ',' ? 1 : 0);
  }
  return true;
}

bool is_set(const std::string& text, const std::string& name) {
  std::uint32_t value = 0;
  return find_numbers(text, name, 1, &value) && value != 0;
}

}  // namespace

kernels::DeviceLimits parse_device_limits(const std::string& text) {
  kernels::DeviceLimits limits;
  std::uint32_t numbers[2];
  if (find_numbers(text, "subgroupSize", 1, numbers) && numbers[0] != 0) {
    limits.subgroup_size = numbers[0];
  }
  limits.subgroup_arithmetic = is_set(text, "computeSubgroupBasic") && is_set(text, "computeSubgroupArithmetic");
  limits.storage_16bit = is_set(text, "storageBuffer16BitAccess");
  if (find_numbers(text, "maxComputeWorkGroupInvocations", 1, numbers)) {
    limits.max_threads = numbers[0];
  }
  if (find_numbers(text, "maxComputeWorkGroupSize", 2, numbers)) {
    limits.max_size_x = numbers[0];
    limits.max_size_y = numbers[1];
  }
  if (find_numbers(text, "maxComputeWorkGroupCount", 1, numbers)) {
    limits.max_groups_x = numbers[0];
  }
  return limits;
}

}  // namespace etvk_guard::vulkan
