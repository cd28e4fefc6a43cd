// SPDX-License-Identifier: Apache-2.0
//
// Vulkan through dlopen: the program starts, and can say that there is no Vulkan, on a machine without it.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#define ETVK_GUARD_VK_GLOBAL(X) \
  X(vkCreateInstance)           \
  X(vkEnumerateInstanceLayerProperties)

#define ETVK_GUARD_VK_INSTANCE(X)             \
  X(vkAllocateCommandBuffers)                 \
  X(vkAllocateDescriptorSets)                 \
  X(vkAllocateMemory)                         \
  X(vkBeginCommandBuffer)                     \
  X(vkBindBufferMemory)                       \
  X(vkBindImageMemory)                        \
  X(vkCmdBindDescriptorSets)                  \
  X(vkCmdBindPipeline)                        \
  X(vkCmdCopyBuffer)                          \
  X(vkCmdCopyBufferToImage)                   \
  X(vkCmdCopyImageToBuffer)                   \
  X(vkCmdDispatch)                            \
  X(vkCmdPipelineBarrier)                     \
  X(vkCmdPushConstants)                       \
  X(vkCmdResetQueryPool)                      \
  X(vkCmdWriteTimestamp)                      \
  X(vkCreateBuffer)                           \
  X(vkCreateCommandPool)                      \
  X(vkCreateComputePipelines)                 \
  X(vkCreateDescriptorPool)                   \
  X(vkCreateDescriptorSetLayout)              \
  X(vkCreateDevice)                           \
  X(vkCreateFence)                            \
  X(vkCreateImage)                            \
  X(vkCreateImageView)                        \
  X(vkCreatePipelineLayout)                   \
  X(vkCreateQueryPool)                        \
  X(vkCreateSampler)                          \
  X(vkCreateShaderModule)                     \
  X(vkDestroyBuffer)                          \
  X(vkDestroyCommandPool)                     \
  X(vkDestroyDescriptorPool)                  \
  X(vkDestroyDescriptorSetLayout)             \
  X(vkDestroyDevice)                          \
  X(vkDestroyFence)                           \
  X(vkDestroyImage)                           \
  X(vkDestroyImageView)                       \
  X(vkDestroyInstance)                        \
  X(vkDestroyPipeline)                        \
  X(vkDestroyPipelineLayout)                  \
  X(vkDestroyQueryPool)                       \
  X(vkDestroySampler)                         \
  X(vkDestroyShaderModule)                    \
  X(vkDeviceWaitIdle)                         \
  X(vkEndCommandBuffer)                       \
  X(vkEnumerateDeviceExtensionProperties)     \
  X(vkEnumeratePhysicalDevices)               \
  X(vkFreeCommandBuffers)                     \
  X(vkFreeMemory)                             \
  X(vkGetBufferMemoryRequirements)            \
  X(vkGetDeviceQueue)                         \
  X(vkGetImageMemoryRequirements)             \
  X(vkGetPhysicalDeviceFeatures2)             \
  X(vkGetPhysicalDeviceMemoryProperties)      \
  X(vkGetPhysicalDeviceProperties)            \
  X(vkGetPhysicalDeviceProperties2)           \
  X(vkGetPhysicalDeviceQueueFamilyProperties) \
  X(vkGetQueryPoolResults)                    \
  X(vkMapMemory)                              \
  X(vkQueueSubmit)                            \
  X(vkResetFences)                            \
  X(vkUnmapMemory)                            \
  X(vkUpdateDescriptorSets)                   \
  X(vkWaitForFences)

namespace etvk_guard::harness {

// The functions, by their Vulkan names without the "vk".
struct VulkanFunctions {
  PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr = nullptr;
  PFN_vkCreateDebugUtilsMessengerEXT vkCreateDebugUtilsMessengerEXT = nullptr;    // null without the extension
  PFN_vkDestroyDebugUtilsMessengerEXT vkDestroyDebugUtilsMessengerEXT = nullptr;  // likewise
#define ETVK_GUARD_DECLARE(name) PFN_##name name = nullptr;
  ETVK_GUARD_VK_GLOBAL(ETVK_GUARD_DECLARE)
  ETVK_GUARD_VK_INSTANCE(ETVK_GUARD_DECLARE)
#undef ETVK_GUARD_DECLARE
};

// One table for the process. Empty until load_vulkan() and load_instance_functions().
VulkanFunctions& vk();

// Opens the Vulkan loader library. Throws std::runtime_error if there is none.
void load_vulkan();

void load_instance_functions(VkInstance instance);

// Throws std::runtime_error, naming `what`, unless `result` is VK_SUCCESS.
void check(VkResult result, const char* what);

}  // namespace etvk_guard::harness
