// SPDX-License-Identifier: Apache-2.0
//
// Everything that may differ between ExecuTorch releases (checked against the sources of 1.3.1, 1.4.1, 1.5.1 and main of 2026-08-22), and the includes of
// its headers. The rest of the builder goes through this file.
#pragma once

#include <executorch/backends/vulkan/runtime/graph/ComputeGraph.h>
#include <executorch/backends/vulkan/runtime/graph/ops/DynamicDispatchNode.h>
#include <executorch/backends/vulkan/runtime/graph/ops/OperatorRegistry.h>
#include <executorch/backends/vulkan/runtime/graph/ops/impl/Staging.h>
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/platform/log.h>
#include <executorch/runtime/platform/runtime.h>

#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "norm_kernels.h"

// What the delegate calls for these ops. Declared here: they have external linkage, but no header of ExecuTorch names them.
namespace vkcompute {
void rms_norm(ComputeGraph& graph, const std::vector<ValueRef>& args);
void native_layer_norm(ComputeGraph& graph, const std::vector<ValueRef>& args);
void native_group_norm(ComputeGraph& graph, const std::vector<ValueRef>& args);
void native_batch_norm(ComputeGraph& graph, const std::vector<ValueRef>& args);
}  // namespace vkcompute

// Defined by a delegate that was built with ET_EVENT_TRACER_ENABLED, and by no other. That macro adds members to the delegate's classes.
std::size_t get_current_operator_count(const bool increment) __attribute__((weak));

namespace etvk_guard::vulkan::versions {

using OpFunction = std::function<void(vkcompute::ComputeGraph&, const std::vector<vkcompute::ValueRef>&)>;
using OpTable = std::unordered_map<std::string, const OpFunction>;

// register_op() only ever inserts, and an entry is const: to replace one, the table itself is needed, which is private. An explicit instantiation may
// name a private member ([temp.spec.general]/6), and hands it to a friend.
OpTable& table_of(vkcompute::OperatorRegistry& registry);
template <OpTable vkcompute::OperatorRegistry::*Table>
struct TableAccess {
  friend OpTable& table_of(vkcompute::OperatorRegistry& registry) { return registry.*Table; }
};
template struct TableAccess<&vkcompute::OperatorRegistry::table_>;

inline vkcompute::vkapi::ShaderInfo make_shader_info(const kernels::Kernel& kernel) {
  std::vector<VkDescriptorType> types;
  for (std::uint32_t i = 0; i < kernels::binding_count(kernel.key.norm); ++i) {
    switch (kernels::binding_kind(kernel.key, i)) {
      case kernels::BindingKind::kStorageBuffer: types.push_back(VK_DESCRIPTOR_TYPE_STORAGE_BUFFER); break;
      case kernels::BindingKind::kStorageImage: types.push_back(VK_DESCRIPTOR_TYPE_STORAGE_IMAGE); break;
      case kernels::BindingKind::kSampledImage: types.push_back(VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER); break;
    }
  }
  // The flags, in order: int16 arithmetic, 16-bit storage, 8-bit storage, integer dot product, int64, float64.
  return vkcompute::vkapi::ShaderInfo(kernel.name, kernel.words, static_cast<uint32_t>(kernel.word_count * sizeof(std::uint32_t)),
                                      std::move(types), vkcompute::utils::uvec3{1u, 1u, 1u}, false, kernel.needs_16bit_storage, false, false,
                                      false, false);
}

// sizeof(ComputeGraph) in the delegate that is loaded, 0 if it is not registered (yet). A delegate begins to load a program by asking for that much
// memory; one that gets none gives up at once, before it touches the program or a device.
inline std::size_t delegate_graph_bytes() {
  struct Recorder final : executorch::runtime::MemoryAllocator {
    Recorder() : MemoryAllocator(0, nullptr) {}
    void* allocate(std::size_t size, std::size_t) override {
      asked = asked == 0 ? size : asked;
      return nullptr;
    }
    std::size_t asked = 0;
  };
  executorch::runtime::BackendInterface* backend = executorch::runtime::get_backend_class("VulkanBackend");
  if (backend == nullptr) {
    return 0;
  }
  Recorder recorder;
  executorch::runtime::BackendInitContext context(&recorder);
  (void)backend->init(context, nullptr, {});
  return recorder.asked;
}

#ifdef ET_EVENT_TRACER_ENABLED
inline constexpr bool kEventTracer = true;
#else
inline constexpr bool kEventTracer = false;
#endif
inline bool delegate_has_event_tracer() { return &get_current_operator_count != nullptr; }

inline void log_line(const char* line, bool is_error) {
  executorch::runtime::runtime_init();  // logging before it would abort
  if (is_error) {
    ET_LOG(Error, "%s", line);
  } else {
    ET_LOG(Info, "%s", line);
  }
}

}  // namespace etvk_guard::vulkan::versions
