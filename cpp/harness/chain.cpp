// SPDX-License-Identifier: Apache-2.0
#include "chain.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>

namespace etvk_guard::harness {
namespace {

class TimestampPair {
 public:
  explicit TimestampPair(const Device& device) : device_(device) {
    VkQueryPoolCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = 2;
    check(vk().vkCreateQueryPool(device_.handle(), &info, nullptr, &pool_), "vkCreateQueryPool");
  }
  ~TimestampPair() { vk().vkDestroyQueryPool(device_.handle(), pool_, nullptr); }
  TimestampPair(const TimestampPair&) = delete;
  TimestampPair& operator=(const TimestampPair&) = delete;

  void reset(VkCommandBuffer commands) const { vk().vkCmdResetQueryPool(commands, pool_, 0, 2); }
  void write(VkCommandBuffer commands, std::uint32_t index) const {
    vk().vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool_, index);
  }
  double microseconds() const {
    std::array<std::uint64_t, 2> ticks{};
    check(vk().vkGetQueryPoolResults(device_.handle(), pool_, 0, 2, sizeof(ticks), ticks.data(), sizeof(ticks[0]),
                                     VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
          "vkGetQueryPoolResults");
    return static_cast<double>(ticks[1] - ticks[0]) * device_.info().timestamp_ns / 1e3;
  }

 private:
  const Device& device_;
  VkQueryPool pool_ = VK_NULL_HANDLE;
};

double host_microseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()) / 1e3;
}

VkCommandBuffer record_chain(const Device& device, const TimestampPair& stamps, int length, const RecordStep& record) {
  const VkCommandBuffer commands = device.begin();
  if (device.info().timestamps) {
    stamps.reset(commands);
  }
  full_barrier(commands);
  if (device.info().timestamps) {
    stamps.write(commands, 0);
  }
  for (int i = 0; i < length; ++i) {
    record(commands, i);
  }
  if (device.info().timestamps) {
    stamps.write(commands, 1);
  }
  check(vk().vkEndCommandBuffer(commands), "vkEndCommandBuffer");
  return commands;
}

double run_once(const Device& device, const TimestampPair& stamps, VkCommandBuffer commands) {
  const double start = host_microseconds();
  device.submit_and_wait(commands);
  return device.info().timestamps ? stamps.microseconds() : host_microseconds() - start;
}

}  // namespace

Timing time_chain(const Device& device, const TimingOptions& options, const RecordStep& record) {
  const TimestampPair stamps(device);
  const VkCommandBuffer short_chain = record_chain(device, stamps, 1, record);
  const VkCommandBuffer long_chain = record_chain(device, stamps, options.chain, record);
  double shortest = std::numeric_limits<double>::infinity();
  double longest = std::numeric_limits<double>::infinity();
  for (double warm = 0.0; warm <= options.warm_up_us;) {
    const double start = host_microseconds();
    run_once(device, stamps, long_chain);
    warm += host_microseconds() - start;
  }
  for (int run = 0; run < options.runs; ++run) {
    shortest = std::min(shortest, run_once(device, stamps, short_chain));
    longest = std::min(longest, run_once(device, stamps, long_chain));
  }
  device.free(short_chain);
  device.free(long_chain);
  return {(longest - shortest) / (options.chain - 1), shortest};
}

}  // namespace etvk_guard::harness
