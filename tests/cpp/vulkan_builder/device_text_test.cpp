// SPDX-License-Identifier: Apache-2.0
#include "device_text.h"

#include <gtest/gtest.h>

namespace etvk_guard::vulkan {
namespace {

// As Adapter::stringize() of ET-VK prints it (a part).
constexpr const char* kText = R"({
  Physical Device Info {
    apiVersion:    1.3
    deviceName:    subgroupSize 7 GPU
    Physical Device Limits {
      maxImageDimension1D                 16384
      maxPushConstantsSize                256
      maxComputeSharedMemorySize          49152
      maxComputeWorkGroupCount            2147483647,65535,65534
      maxComputeWorkGroupInvocations      1024
      maxComputeWorkGroupSize             1023,512,64
    }
    16bit Storage Features {
      storageBuffer16BitAccess            1
      uniformAndStorageBuffer16BitAccess  0
    }
    Subgroup Properties {
      subgroupSize                        32
      computeSubgroupBasic                1
      computeSubgroupArithmetic           1
    }
  }
})";

std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(DeviceText, ReadsEveryLimit) {
  // The name must not be taken for a property: it is the first match of the word.
  const std::string text = with(kText, "subgroupSize 7 GPU", "A GPU");
  const kernels::DeviceLimits limits = parse_device_limits(text);
  EXPECT_EQ(limits.subgroup_size, 32u);
  EXPECT_TRUE(limits.subgroup_arithmetic);
  EXPECT_TRUE(limits.storage_16bit);
  EXPECT_EQ(limits.max_threads, 1024u);
  EXPECT_EQ(limits.max_size_x, 1023u);
  EXPECT_EQ(limits.max_size_y, 512u);
  EXPECT_EQ(limits.max_groups_x, 2147483647u);
}

TEST(DeviceText, DeviceNameIsNoProperty) { EXPECT_EQ(parse_device_limits(kText).subgroup_size, 32u); }

TEST(DeviceText, SubgroupsNeedBothFeatures) {
  EXPECT_FALSE(parse_device_limits(with(kText, "computeSubgroupArithmetic           1", "computeSubgroupArithmetic           0")).subgroup_arithmetic);
  EXPECT_FALSE(parse_device_limits(with(kText, "computeSubgroupBasic                1", "computeSubgroupBasic                0")).subgroup_arithmetic);
}

TEST(DeviceText, SixteenBitStorageIsNotThatOfUniforms) {
  EXPECT_FALSE(parse_device_limits(with(kText, "storageBuffer16BitAccess            1", "storageBuffer16BitAccess            0")).storage_16bit);
}

TEST(DeviceText, WhatIsMissingSuitsEveryDevice) {
  const kernels::DeviceLimits defaults;
  for (const char* text : {"", "{\n}\n", " subgroupSize", " subgroupSize x\n maxComputeWorkGroupSize ,\n", " subgroupSize 0"}) {
    const kernels::DeviceLimits limits = parse_device_limits(text);
    EXPECT_EQ(limits.subgroup_size, defaults.subgroup_size) << text;
    EXPECT_FALSE(limits.subgroup_arithmetic) << text;
    EXPECT_FALSE(limits.storage_16bit) << text;
    EXPECT_EQ(limits.max_threads, defaults.max_threads) << text;
    EXPECT_EQ(limits.max_size_x, defaults.max_size_x) << text;
    EXPECT_EQ(limits.max_groups_x, defaults.max_groups_x) << text;
  }
}

TEST(DeviceText, HugeNumbersAreClamped) {
  EXPECT_EQ(parse_device_limits(" maxComputeWorkGroupInvocations 99999999999999999999\n").max_threads, UINT32_MAX);
}

}  // namespace
}  // namespace etvk_guard::vulkan
