// SPDX-License-Identifier: Apache-2.0
//
// What the kernels need to know of the device, from the text in which ET-VK's Adapter describes itself (Adapter::stringize()). The text and not the
// object: it is the same whatever the layout of that class in a release.
#pragma once

#include <string>

#include "norm_choose.h"

namespace etvk_guard::vulkan {

// A property that the text does not have keeps its default, which suits every device.
kernels::DeviceLimits parse_device_limits(const std::string& text);

}  // namespace etvk_guard::vulkan
