// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "device.h"
#include "norm_kernels.h"

namespace etvk_guard::harness {

using Sizes = std::array<std::int32_t, 4>;  // width, height, channels, batch

inline std::size_t row_count(const Sizes& sizes) {
  return static_cast<std::size_t>(sizes[1]) * static_cast<std::size_t>(sizes[2]) * static_cast<std::size_t>(sizes[3]);
}
inline std::size_t element_count(const Sizes& sizes) { return row_count(sizes) * static_cast<std::size_t>(sizes[0]); }

// Where the elements of a tensor lie in the memory object that holds it, guards included. A guarded buffer has a zone before
// and after the tensor; a guarded texture has one more texel in each direction than the tensor needs.
struct Layout {
  Layout(const DeviceInfo& device, kernels::Storage storage, kernels::Dtype dtype, const Sizes& sizes, bool guarded);

  std::size_t offset_of(std::size_t row, std::size_t w) const;  // bytes

  kernels::Storage storage;
  kernels::Dtype dtype;
  Sizes sizes;
  std::size_t element_bytes;
  std::size_t guard_bytes = 0;           // buffers: before, and at least as much after
  std::array<std::uint32_t, 3> extents;  // textures: texels
  std::size_t byte_count;                // of the whole object
};

// The bytes of such an object on the host.
class HostTensor {
 public:
  // Everything is `guard`, except that the elements are `fill` (both are bytes, repeated).
  HostTensor(const Layout& layout, std::uint8_t guard, std::uint8_t fill);

  void set(std::size_t row, std::size_t w, float value);
  float get(std::size_t row, std::size_t w) const;

  // "" if everything that is no element is still `guard`; the unused components of a row's last texel may be 0 instead.
  std::string broken_guard(std::uint8_t guard) const;

  const Layout& layout() const { return layout_; }
  std::vector<std::uint8_t>& bytes() { return bytes_; }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  Layout layout_;
  std::vector<std::uint8_t> bytes_;
};

// The object on the device.
class GpuTensor {
 public:
  GpuTensor(const Device& device, const Layout& layout);
  ~GpuTensor();
  GpuTensor(GpuTensor&& other) noexcept;
  GpuTensor(const GpuTensor&) = delete;
  GpuTensor& operator=(const GpuTensor&) = delete;
  GpuTensor& operator=(GpuTensor&&) = delete;

  void upload(const HostTensor& tensor) const;
  HostTensor download() const;

  const Layout& layout() const { return layout_; }
  VkDescriptorBufferInfo buffer_info() const;
  VkDescriptorImageInfo image_info() const;

 private:
  void create_buffer();
  void create_image();
  void record_transfer(VkCommandBuffer commands, VkBuffer staging, bool to_device) const;
  void run_transfer(VkBuffer staging, bool to_device) const;

  const Device& device_;
  Layout layout_;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkImage image_ = VK_NULL_HANDLE;
  VkImageView view_ = VK_NULL_HANDLE;
};

}  // namespace etvk_guard::harness
