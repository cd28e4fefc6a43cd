// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <array>
#include <stdexcept>

namespace etvk_guard::harness {
namespace {

using kernels::BindingKind;

VkDescriptorType descriptor_type(BindingKind kind) {
  switch (kind) {
    case BindingKind::kStorageBuffer:
      return VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    case BindingKind::kStorageImage:
      return VK_DESCRIPTOR_TYPE_STORAGE_IMAGE;
    case BindingKind::kSampledImage:
      return VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER;
  }
  throw std::logic_error("unknown kind of binding");
}

std::string cache_key(const ProgramInfo& info) {
  std::string key = info.name;
  for (const std::uint32_t value : info.spec) {
    key += "," + std::to_string(value);
  }
  return key;
}

}  // namespace

ProgramInfo program_of(const kernels::Plan& plan) {
  const kernels::Kernel* kernel = kernels::find_kernel(plan.key);
  if (kernel == nullptr) {
    throw std::runtime_error("a plan names a kernel that does not exist");
  }
  ProgramInfo info;
  info.name = kernel->name;
  info.words = kernel->words;
  info.word_count = kernel->word_count;
  for (std::uint32_t i = 0; i < kernels::binding_count(plan.key.norm); ++i) {
    info.bindings.push_back(kernels::binding_kind(plan.key, i));
  }
  const kernels::SpecConstants& spec = plan.spec;
  info.spec = {plan.local_size[0],
               plan.local_size[1],
               1,
               spec.chunks,
               static_cast<std::uint32_t>(spec.weight),
               static_cast<std::uint32_t>(spec.shift),
               spec.rows,
               static_cast<std::uint32_t>(spec.early),
               spec.split,
               spec.each};
  return info;
}

Program::Program(const Device& device, const ProgramInfo& info) : device_(device), info_(info) {
  create_layouts();
  create_pipeline();
}

void Program::create_layouts() {
  std::vector<VkDescriptorSetLayoutBinding> bindings(info_.bindings.size());
  for (std::uint32_t i = 0; i < bindings.size(); ++i) {
    bindings[i].binding = i;
    bindings[i].descriptorType = descriptor_type(info_.bindings[i]);
    bindings[i].descriptorCount = 1;
    bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  }
  VkDescriptorSetLayoutCreateInfo set_info{};
  set_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set_info.bindingCount = static_cast<std::uint32_t>(bindings.size());
  set_info.pBindings = bindings.data();
  check(vk().vkCreateDescriptorSetLayout(device_.handle(), &set_info, nullptr, &set_layout_),
        "vkCreateDescriptorSetLayout");
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(kernels::PushConstants)};
  VkPipelineLayoutCreateInfo layout_info{};
  layout_info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout_info.setLayoutCount = 1;
  layout_info.pSetLayouts = &set_layout_;
  layout_info.pushConstantRangeCount = 1;
  layout_info.pPushConstantRanges = &range;
  check(vk().vkCreatePipelineLayout(device_.handle(), &layout_info, nullptr, &layout_), "vkCreatePipelineLayout");
}

void Program::create_pipeline() {
  VkShaderModuleCreateInfo module_info{};
  module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module_info.codeSize = info_.word_count * sizeof(std::uint32_t);
  module_info.pCode = info_.words;
  VkShaderModule module = VK_NULL_HANDLE;
  check(vk().vkCreateShaderModule(device_.handle(), &module_info, nullptr, &module), "vkCreateShaderModule");
  std::vector<VkSpecializationMapEntry> entries;
  for (std::uint32_t i = 0; i < info_.spec.size(); ++i) {
    entries.push_back({i, i * 4u, 4u});
  }
  const VkSpecializationInfo spec{static_cast<std::uint32_t>(entries.size()), entries.data(), info_.spec.size() * 4,
                                  info_.spec.data()};
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &spec;
  info.layout = layout_;
  const VkResult result =
      vk().vkCreateComputePipelines(device_.handle(), VK_NULL_HANDLE, 1, &info, nullptr, &pipeline_);
  vk().vkDestroyShaderModule(device_.handle(), module, nullptr);
  check(result, ("vkCreateComputePipelines of " + info_.name).c_str());
}

Program::~Program() {
  vk().vkDestroyPipeline(device_.handle(), pipeline_, nullptr);
  vk().vkDestroyPipelineLayout(device_.handle(), layout_, nullptr);
  vk().vkDestroyDescriptorSetLayout(device_.handle(), set_layout_, nullptr);
}

const Program& ProgramCache::get(const ProgramInfo& info) {
  std::unique_ptr<Program>& program = programs_[cache_key(info)];
  if (program == nullptr) {
    program = std::make_unique<Program>(device_, info);
  }
  return *program;
}

Bindings::Bindings(const Device& device, const Program& program, std::uint32_t capacity)
    : device_(device), program_(program) {
  const auto each = static_cast<std::uint32_t>(program.info().bindings.size()) * capacity;
  const std::array<VkDescriptorPoolSize, 3> sizes{{{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, each},
                                                   {VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, each},
                                                   {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, each}}};
  VkDescriptorPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  info.maxSets = capacity;
  info.poolSizeCount = static_cast<std::uint32_t>(sizes.size());
  info.pPoolSizes = sizes.data();
  check(vk().vkCreateDescriptorPool(device_.handle(), &info, nullptr, &pool_), "vkCreateDescriptorPool");
}

Bindings::~Bindings() { vk().vkDestroyDescriptorPool(device_.handle(), pool_, nullptr); }

VkDescriptorSet Bindings::bind(const std::vector<const GpuTensor*>& tensors) {
  const VkDescriptorSetLayout set_layout = program_.set_layout();
  VkDescriptorSetAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  allocate.descriptorPool = pool_;
  allocate.descriptorSetCount = 1;
  allocate.pSetLayouts = &set_layout;
  VkDescriptorSet set = VK_NULL_HANDLE;
  check(vk().vkAllocateDescriptorSets(device_.handle(), &allocate, &set), "vkAllocateDescriptorSets");
  const std::size_t count = program_.info().bindings.size();
  std::vector<VkDescriptorBufferInfo> buffers(count);
  std::vector<VkDescriptorImageInfo> images(count);
  std::vector<VkWriteDescriptorSet> writes(count);
  for (std::size_t i = 0; i < count; ++i) {
    const BindingKind kind = program_.info().bindings[i];
    buffers[i] = tensors.at(i)->buffer_info();
    images[i] = tensors.at(i)->image_info();
    writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    writes[i].dstSet = set;
    writes[i].dstBinding = static_cast<std::uint32_t>(i);
    writes[i].descriptorCount = 1;
    writes[i].descriptorType = descriptor_type(kind);
    writes[i].pBufferInfo = &buffers[i];
    writes[i].pImageInfo = &images[i];
  }
  vk().vkUpdateDescriptorSets(device_.handle(), static_cast<std::uint32_t>(count), writes.data(), 0, nullptr);
  return set;
}

void record_dispatch(VkCommandBuffer commands, const Program& program, VkDescriptorSet set,
                     const kernels::PushConstants& push, Grid groups) {
  vk().vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, program.pipeline());
  vk().vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, program.layout(), 0, 1, &set, 0, nullptr);
  vk().vkCmdPushConstants(commands, program.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(push), &push);
  vk().vkCmdDispatch(commands, groups.x, groups.y, groups.z);
}

}  // namespace etvk_guard::harness
