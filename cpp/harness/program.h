// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device.h"
#include "norm_choose.h"
#include "tensor.h"

namespace etvk_guard::harness {

// What a pipeline is made from.
struct ProgramInfo {
  std::string name;
  const std::uint32_t* words = nullptr;
  std::size_t word_count = 0;
  std::vector<kernels::BindingKind> bindings;
  std::vector<std::uint32_t> spec;  // values of constant ids 0, 1, 2, ...: local size first
};

// The program that runs a plan. Throws std::runtime_error if there is no such kernel.
ProgramInfo program_of(const kernels::Plan& plan);

// A pipeline with its layouts.
class Program {
 public:
  Program(const Device& device, const ProgramInfo& info);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  VkPipeline pipeline() const { return pipeline_; }
  VkPipelineLayout layout() const { return layout_; }
  VkDescriptorSetLayout set_layout() const { return set_layout_; }
  const ProgramInfo& info() const { return info_; }

 private:
  void create_layouts();
  void create_pipeline();

  const Device& device_;
  ProgramInfo info_;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
};

// Programs by name and specialisation.
class ProgramCache {
 public:
  explicit ProgramCache(const Device& device) : device_(device) {}
  const Program& get(const ProgramInfo& info);
  std::size_t size() const { return programs_.size(); }

 private:
  const Device& device_;
  std::map<std::string, std::unique_ptr<Program>> programs_;
};

// Descriptor sets for one program; each names the tensors of one dispatch. The tensors must outlive the dispatches.
class Bindings {
 public:
  Bindings(const Device& device, const Program& program, std::uint32_t capacity);
  ~Bindings();
  Bindings(const Bindings&) = delete;
  Bindings& operator=(const Bindings&) = delete;

  VkDescriptorSet bind(const std::vector<const GpuTensor*>& tensors);

 private:
  const Device& device_;
  const Program& program_;
  VkDescriptorPool pool_ = VK_NULL_HANDLE;
};

struct Grid {
  std::uint32_t x;
  std::uint32_t y;
  std::uint32_t z;
};

void record_dispatch(VkCommandBuffer commands, const Program& program, VkDescriptorSet set,
                     const kernels::PushConstants& push, Grid groups);

}  // namespace etvk_guard::harness
