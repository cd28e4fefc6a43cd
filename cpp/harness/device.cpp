// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <cstring>
#include <stdexcept>

namespace etvk_guard::harness {
namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

bool has_layer(const char* name) {
  std::uint32_t count = 0;
  check(vk().vkEnumerateInstanceLayerProperties(&count, nullptr), "vkEnumerateInstanceLayerProperties");
  std::vector<VkLayerProperties> layers(count);
  check(vk().vkEnumerateInstanceLayerProperties(&count, layers.data()), "vkEnumerateInstanceLayerProperties");
  for (const VkLayerProperties& layer : layers) {
    if (std::strcmp(layer.layerName, name) == 0) {
      return true;
    }
  }
  return false;
}

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  static_cast<std::vector<std::string>*>(user)->emplace_back(data->pMessage);
  return VK_FALSE;
}

VkDebugUtilsMessengerCreateInfoEXT messenger_info(std::vector<std::string>* messages) {
  VkDebugUtilsMessengerCreateInfoEXT info{};
  info.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  info.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  info.pfnUserCallback = on_message;
  info.pUserData = messages;
  return info;
}

std::string type_name(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return "integrated";
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return "discrete";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return "virtual";
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return "cpu";
    default:
      return "other";
  }
}

std::string version_text(std::uint32_t v) {
  return std::to_string(VK_API_VERSION_MAJOR(v)) + "." + std::to_string(VK_API_VERSION_MINOR(v)) + "." +
         std::to_string(VK_API_VERSION_PATCH(v));
}

// The first family that can compute, and its properties.
std::uint32_t compute_family(VkPhysicalDevice device, VkQueueFamilyProperties* properties) {
  std::uint32_t count = 0;
  vk().vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vk().vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  for (std::uint32_t i = 0; i < count; ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0) {
      *properties = families[i];
      return i;
    }
  }
  throw std::runtime_error("the device has no compute queue");
}

bool storage_16bit(VkPhysicalDevice device) {
  VkPhysicalDevice16BitStorageFeatures storage{};
  storage.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &storage;
  vk().vkGetPhysicalDeviceFeatures2(device, &features);
  return storage.storageBuffer16BitAccess == VK_TRUE;
}

kernels::DeviceLimits limits_of(const VkPhysicalDeviceLimits& limits, const VkPhysicalDeviceSubgroupProperties& subgroup,
                                bool has_16bit) {
  kernels::DeviceLimits out;
  out.subgroup_size = subgroup.subgroupSize;
  out.subgroup_arithmetic = (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
                            (subgroup.supportedOperations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT) != 0;
  out.storage_16bit = has_16bit;
  out.max_threads = limits.maxComputeWorkGroupInvocations;
  out.max_size_x = limits.maxComputeWorkGroupSize[0];
  out.max_size_y = limits.maxComputeWorkGroupSize[1];
  out.max_groups_x = limits.maxComputeWorkGroupCount[0];
  out.max_groups_y = limits.maxComputeWorkGroupCount[1];
  return out;
}

}  // namespace

Instance::Instance(bool validate) {
  load_vulkan();
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "etvk-guard-kernels";
  application.apiVersion = VK_API_VERSION_1_1;
  const char* extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  const VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info(&messages_);
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  if (validate) {
    if (!has_layer(kValidationLayer)) {
      throw std::runtime_error(std::string(kValidationLayer) + " is not installed");
    }
    info.pNext = &messenger;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &kValidationLayer;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = &extension;
  }
  check(vk().vkCreateInstance(&info, nullptr, &instance_), "vkCreateInstance");
  load_instance_functions(instance_);
  if (validate) {
    check(vk().vkCreateDebugUtilsMessengerEXT(instance_, &messenger, nullptr, &messenger_),
          "vkCreateDebugUtilsMessengerEXT");
  }
}

Instance::~Instance() {
  if (messenger_ != VK_NULL_HANDLE) {
    vk().vkDestroyDebugUtilsMessengerEXT(instance_, messenger_, nullptr);
  }
  vk().vkDestroyInstance(instance_, nullptr);
}

std::vector<VkPhysicalDevice> Instance::devices() const {
  std::uint32_t count = 0;
  check(vk().vkEnumeratePhysicalDevices(instance_, &count, nullptr), "vkEnumeratePhysicalDevices");
  std::vector<VkPhysicalDevice> devices(count);
  check(vk().vkEnumeratePhysicalDevices(instance_, &count, devices.data()), "vkEnumeratePhysicalDevices");
  return devices;
}

DeviceInfo describe(VkPhysicalDevice device) {
  VkPhysicalDeviceSubgroupProperties subgroup{};
  subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &subgroup;
  vk().vkGetPhysicalDeviceProperties2(device, &properties);
  const VkPhysicalDeviceProperties& core = properties.properties;
  VkQueueFamilyProperties family{};
  compute_family(device, &family);
  DeviceInfo info;
  info.name = core.deviceName;
  info.type = type_name(core.deviceType);
  info.api_version = version_text(core.apiVersion);
  info.driver_version = core.driverVersion;
  info.timestamps = family.timestampValidBits > 0;
  info.timestamp_ns = static_cast<double>(core.limits.timestampPeriod);
  info.max_buffer_range = core.limits.maxStorageBufferRange;
  info.min_offset_alignment = core.limits.minStorageBufferOffsetAlignment;
  info.max_texture_extent = core.limits.maxImageDimension3D;
  info.limits = limits_of(core.limits, subgroup, storage_16bit(device));
  return info;
}

Device::Device(const Instance&, VkPhysicalDevice physical) : physical_(physical), info_(describe(physical)) {
  vk().vkGetPhysicalDeviceMemoryProperties(physical_, &memory_);
  create_device();
  create_pool_and_sampler();
}

void Device::create_device() {
  VkQueueFamilyProperties family{};
  queue_family_ = compute_family(physical_, &family);
  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = queue_family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkPhysicalDevice16BitStorageFeatures storage{};
  storage.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES;
  storage.storageBuffer16BitAccess = info_.limits.storage_16bit ? VK_TRUE : VK_FALSE;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &storage;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  check(vk().vkCreateDevice(physical_, &info, nullptr, &device_), "vkCreateDevice");
  vk().vkGetDeviceQueue(device_, queue_family_, 0, &queue_);
}

void Device::create_pool_and_sampler() {
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.queueFamilyIndex = queue_family_;
  check(vk().vkCreateCommandPool(device_, &pool, nullptr, &pool_), "vkCreateCommandPool");
  VkFenceCreateInfo fence{};
  fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  check(vk().vkCreateFence(device_, &fence, nullptr, &fence_), "vkCreateFence");
  VkSamplerCreateInfo sampler{};
  sampler.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO;
  sampler.borderColor = VK_BORDER_COLOR_FLOAT_TRANSPARENT_BLACK;
  check(vk().vkCreateSampler(device_, &sampler, nullptr, &sampler_), "vkCreateSampler");
}

Device::~Device() {
  vk().vkDeviceWaitIdle(device_);
  vk().vkDestroySampler(device_, sampler_, nullptr);
  vk().vkDestroyFence(device_, fence_, nullptr);
  vk().vkDestroyCommandPool(device_, pool_, nullptr);
  vk().vkDestroyDevice(device_, nullptr);
}

VkDeviceMemory Device::allocate(const VkMemoryRequirements& needs, bool host_visible) const {
  const VkMemoryPropertyFlags wanted =
      host_visible ? VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
                   : VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  for (std::uint32_t i = 0; i < memory_.memoryTypeCount; ++i) {
    const bool allowed = (needs.memoryTypeBits & (1u << i)) != 0;
    if (allowed && (memory_.memoryTypes[i].propertyFlags & wanted) == wanted) {
      VkMemoryAllocateInfo info{};
      info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
      info.allocationSize = needs.size;
      info.memoryTypeIndex = i;
      VkDeviceMemory memory = VK_NULL_HANDLE;
      check(vk().vkAllocateMemory(device_, &info, nullptr, &memory), "vkAllocateMemory");
      return memory;
    }
  }
  throw std::runtime_error("the device has no memory of the kind needed");
}

VkCommandBuffer Device::begin() const {
  VkCommandBufferAllocateInfo allocate_info{};
  allocate_info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  allocate_info.commandPool = pool_;
  allocate_info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocate_info.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  check(vk().vkAllocateCommandBuffers(device_, &allocate_info, &commands), "vkAllocateCommandBuffers");
  VkCommandBufferBeginInfo begin_info{};
  begin_info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  check(vk().vkBeginCommandBuffer(commands, &begin_info), "vkBeginCommandBuffer");
  return commands;
}

void Device::submit_and_wait(VkCommandBuffer commands) const {
  VkSubmitInfo submit{};
  submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands;
  check(vk().vkQueueSubmit(queue_, 1, &submit, fence_), "vkQueueSubmit");
  check(vk().vkWaitForFences(device_, 1, &fence_, VK_TRUE, UINT64_MAX), "vkWaitForFences");
  check(vk().vkResetFences(device_, 1, &fence_), "vkResetFences");
}

void Device::free(VkCommandBuffer commands) const { vk().vkFreeCommandBuffers(device_, pool_, 1, &commands); }

void full_barrier(VkCommandBuffer commands) {
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                          VK_ACCESS_TRANSFER_WRITE_BIT;
  const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  vk().vkCmdPipelineBarrier(commands, stages, stages, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

void compute_barrier(VkCommandBuffer commands) {
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  vk().vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1,
                            &barrier, 0, nullptr, 0, nullptr);
}

void host_barrier(VkCommandBuffer commands) {
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  vk().vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0,
                            nullptr, 0, nullptr);
}

}  // namespace etvk_guard::harness
