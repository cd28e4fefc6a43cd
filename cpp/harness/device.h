// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "norm_choose.h"
#include "vulkan_functions.h"

namespace etvk_guard::harness {

// The Vulkan instance, with the Khronos validation layer where asked for. Not copyable; one at a time.
class Instance {
 public:
  // Throws std::runtime_error where there is no Vulkan, or `validate` is set and there is no validation layer.
  explicit Instance(bool validate);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  VkInstance handle() const { return instance_; }
  std::vector<VkPhysicalDevice> devices() const;

  // What the validation layer has said so far, warnings and errors.
  const std::vector<std::string>& messages() const { return messages_; }

 private:
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::vector<std::string> messages_;
};

struct DeviceInfo {
  std::string name;
  std::string type;         // "discrete", "integrated", "virtual", "cpu" or "other"
  std::string api_version;  // "1.3.230"
  std::uint32_t driver_version = 0;
  bool timestamps = false;
  double timestamp_ns = 0.0;  // nanoseconds a tick
  std::uint64_t max_buffer_range = 0;
  std::uint64_t min_offset_alignment = 1;
  std::uint32_t max_texture_extent = 0;
  kernels::DeviceLimits limits;
};

DeviceInfo describe(VkPhysicalDevice device);

// A logical device with one compute queue, and what its resources are made with. Vulkan 1.1; the only feature switched on is
// storageBuffer16BitAccess, where there is one.
class Device {
 public:
  Device(const Instance& instance, VkPhysicalDevice physical);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  VkDevice handle() const { return device_; }
  const DeviceInfo& info() const { return info_; }
  VkSampler sampler() const { return sampler_; }

  VkDeviceMemory allocate(const VkMemoryRequirements& needs, bool host_visible) const;

  VkCommandBuffer begin() const;
  void submit_and_wait(VkCommandBuffer commands) const;
  void free(VkCommandBuffer commands) const;

 private:
  void create_device();
  void create_pool_and_sampler();

  VkPhysicalDevice physical_;
  DeviceInfo info_;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::uint32_t queue_family_ = 0;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
  VkSampler sampler_ = VK_NULL_HANDLE;
  VkPhysicalDeviceMemoryProperties memory_{};
};

// Compute shader and copy writes before it are seen by the shaders and copies after it.
void full_barrier(VkCommandBuffer commands);

// Compute shader writes before it are seen by the compute shaders after it.
void compute_barrier(VkCommandBuffer commands);

// Copy writes before it are seen by the host once the commands are done.
void host_barrier(VkCommandBuffer commands);

}  // namespace etvk_guard::harness
