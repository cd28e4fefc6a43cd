// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "device.h"

namespace etvk_guard::harness {

struct TimingOptions {
  int chain = 129;  // dispatches in the long chain; the short one has 1
  int runs = 30;    // of each chain; the fastest counts
  double warm_up_us = 300e3;  // a GPU that has been idle takes a while to reach its clock
};

struct Timing {
  double each_us = 0.0;    // GPU time of one dispatch in a chain of dependent ones: (long - short) / (chain - 1)
  double single_us = 0.0;  // between timestamps around a chain of one
};

// Records dispatch or copy `i` of a chain, and the barrier that the next one needs.
using RecordStep = std::function<void(VkCommandBuffer commands, int i)>;

// Times chains by GPU timestamps; by the host's clock where the queue has none.
Timing time_chain(const Device& device, const TimingOptions& options, const RecordStep& record);

}  // namespace etvk_guard::harness
