// SPDX-License-Identifier: Apache-2.0
#include "vulkan_functions.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace etvk_guard::harness {
namespace {

constexpr const char* kLibraries[] = {"libvulkan.so.1", "libvulkan.so", "libvulkan.1.dylib", "libMoltenVK.dylib"};

template <typename Function>
void resolve(VkInstance instance, const char* name, Function& function) {
  function = reinterpret_cast<Function>(vk().vkGetInstanceProcAddr(instance, name));
  if (function == nullptr) {
    throw std::runtime_error(std::string("Vulkan has no ") + name);
  }
}

}  // namespace

VulkanFunctions& vk() {
  static VulkanFunctions functions;
  return functions;
}

void load_vulkan() {
  if (vk().vkGetInstanceProcAddr != nullptr) {
    return;
  }
  void* library = nullptr;
  for (const char* name : kLibraries) {
    library = library == nullptr ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : library;
  }
  if (library == nullptr) {
    throw std::runtime_error("no Vulkan loader (libvulkan.so.1) on this machine");
  }
  vk().vkGetInstanceProcAddr =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  if (vk().vkGetInstanceProcAddr == nullptr) {
    throw std::runtime_error("the Vulkan loader has no vkGetInstanceProcAddr");
  }
#define ETVK_GUARD_RESOLVE(name) resolve(VK_NULL_HANDLE, #name, vk().name);
  ETVK_GUARD_VK_GLOBAL(ETVK_GUARD_RESOLVE)
#undef ETVK_GUARD_RESOLVE
}

void load_instance_functions(VkInstance instance) {
#define ETVK_GUARD_RESOLVE(name) resolve(instance, #name, vk().name);
  ETVK_GUARD_VK_INSTANCE(ETVK_GUARD_RESOLVE)
#undef ETVK_GUARD_RESOLVE
  vk().vkCreateDebugUtilsMessengerEXT = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
      vk().vkGetInstanceProcAddr(instance, "vkCreateDebugUtilsMessengerEXT"));
  vk().vkDestroyDebugUtilsMessengerEXT = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
      vk().vkGetInstanceProcAddr(instance, "vkDestroyDebugUtilsMessengerEXT"));
}

void check(VkResult result, const char* what) {
  if (result != VK_SUCCESS) {
    throw std::runtime_error(std::string(what) + " failed with VkResult " + std::to_string(static_cast<int>(result)));
  }
}

}  // namespace etvk_guard::harness
