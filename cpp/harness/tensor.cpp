// SPDX-License-Identifier: Apache-2.0
#include "tensor.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "half.h"

namespace etvk_guard::harness {
namespace {

constexpr std::size_t kGuardBytes = 256;
constexpr std::size_t kTexelElements = 4;

VkFormat format_of(kernels::Dtype dtype) {
  return dtype == kernels::Dtype::kHalf ? VK_FORMAT_R16G16B16A16_SFLOAT : VK_FORMAT_R32G32B32A32_SFLOAT;
}

VkExtent3D extent_of(const Layout& layout) { return {layout.extents[0], layout.extents[1], layout.extents[2]}; }

VkBufferImageCopy whole_image(const Layout& layout) {
  VkBufferImageCopy region{};
  region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
  region.imageExtent = extent_of(layout);
  return region;
}

VkBuffer make_buffer(VkDevice device, std::size_t bytes, VkBufferUsageFlags usage) {
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = bytes;
  info.usage = usage | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  VkBuffer buffer = VK_NULL_HANDLE;
  check(vk().vkCreateBuffer(device, &info, nullptr, &buffer), "vkCreateBuffer");
  return buffer;
}

// Host-visible memory for one transfer.
class Staging {
 public:
  Staging(const Device& device, std::size_t bytes) : device_(device) {
    buffer_ = make_buffer(device.handle(), bytes, 0);
    VkMemoryRequirements needs{};
    vk().vkGetBufferMemoryRequirements(device.handle(), buffer_, &needs);
    memory_ = device.allocate(needs, true);
    check(vk().vkBindBufferMemory(device.handle(), buffer_, memory_, 0), "vkBindBufferMemory");
    void* mapped = nullptr;
    check(vk().vkMapMemory(device.handle(), memory_, 0, VK_WHOLE_SIZE, 0, &mapped), "vkMapMemory");
    bytes_ = static_cast<std::uint8_t*>(mapped);
  }
  ~Staging() {
    vk().vkUnmapMemory(device_.handle(), memory_);
    vk().vkDestroyBuffer(device_.handle(), buffer_, nullptr);
    vk().vkFreeMemory(device_.handle(), memory_, nullptr);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  VkBuffer buffer() const { return buffer_; }
  std::uint8_t* bytes() const { return bytes_; }

 private:
  const Device& device_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  std::uint8_t* bytes_ = nullptr;
};

}  // namespace

Layout::Layout(const DeviceInfo& device, kernels::Storage storage_, kernels::Dtype dtype_, const Sizes& sizes_,
               bool guarded)
    : storage(storage_),
      dtype(dtype_),
      sizes(sizes_),
      element_bytes(dtype_ == kernels::Dtype::kHalf ? 2 : 4),
      extents{} {
  if (storage == kernels::Storage::kBuffer) {
    guard_bytes = guarded ? std::max(kGuardBytes, static_cast<std::size_t>(device.min_offset_alignment)) : 0;
    byte_count = 2 * guard_bytes + (element_count(sizes) * element_bytes + 3) / 4 * 4;
    return;
  }
  const std::uint32_t more = guarded ? 1 : 0;
  extents = {(static_cast<std::uint32_t>(sizes[0]) + 3) / 4 + more, static_cast<std::uint32_t>(sizes[1]) + more,
             static_cast<std::uint32_t>(sizes[2] * sizes[3]) + more};
  byte_count = std::size_t{extents[0]} * extents[1] * extents[2] * kTexelElements * element_bytes;
}

std::size_t Layout::offset_of(std::size_t row, std::size_t w) const {
  if (storage == kernels::Storage::kBuffer) {
    return guard_bytes + (row * static_cast<std::size_t>(sizes[0]) + w) * element_bytes;
  }
  const auto height = static_cast<std::size_t>(sizes[1]);
  const std::size_t texel = w / kTexelElements + extents[0] * (row % height + extents[1] * (row / height));
  return (texel * kTexelElements + w % kTexelElements) * element_bytes;
}

HostTensor::HostTensor(const Layout& layout, std::uint8_t guard, std::uint8_t fill)
    : layout_(layout), bytes_(layout.byte_count, guard) {
  if (guard == fill) {
    return;
  }
  for (std::size_t row = 0; row < row_count(layout_.sizes); ++row) {
    for (std::size_t w = 0; w < static_cast<std::size_t>(layout_.sizes[0]); ++w) {
      std::memset(&bytes_[layout_.offset_of(row, w)], fill, layout_.element_bytes);
    }
  }
}

void HostTensor::set(std::size_t row, std::size_t w, float value) {
  std::uint8_t* at = &bytes_[layout_.offset_of(row, w)];
  if (layout_.dtype == kernels::Dtype::kHalf) {
    const std::uint16_t bits = half_from_float(value);
    std::memcpy(at, &bits, sizeof(bits));
  } else {
    std::memcpy(at, &value, sizeof(value));
  }
}

float HostTensor::get(std::size_t row, std::size_t w) const {
  const std::uint8_t* at = &bytes_[layout_.offset_of(row, w)];
  if (layout_.dtype == kernels::Dtype::kHalf) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, at, sizeof(bits));
    return float_from_half(bits);
  }
  float value = 0.0f;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

std::string HostTensor::broken_guard(std::uint8_t guard) const {
  HostTensor elements(layout_, 0, 1);  // 1 where an element's bytes are
  const auto width = static_cast<std::size_t>(layout_.sizes[0]);
  if (layout_.storage == kernels::Storage::kTexture3d) {  // and 2 where they only fill up a texel
    const std::size_t padded = (width + kTexelElements - 1) / kTexelElements * kTexelElements;
    for (std::size_t row = 0; row < row_count(layout_.sizes); ++row) {
      for (std::size_t w = width; w < padded; ++w) {
        std::memset(&elements.bytes()[layout_.offset_of(row, w)], 2, layout_.element_bytes);
      }
    }
  }
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    const std::uint8_t kind = elements.bytes()[i];
    if ((kind == 0 && bytes_[i] != guard) || (kind == 2 && bytes_[i] != 0)) {
      return "byte " + std::to_string(i) + " of " + std::to_string(bytes_.size()) + " was overwritten";
    }
  }
  return "";
}

GpuTensor::GpuTensor(const Device& device, const Layout& layout) : device_(device), layout_(layout) {
  if (layout_.storage == kernels::Storage::kBuffer) {
    create_buffer();
  } else {
    create_image();
  }
}

GpuTensor::GpuTensor(GpuTensor&& other) noexcept
    : device_(other.device_), layout_(other.layout_), memory_(other.memory_), buffer_(other.buffer_),
      image_(other.image_), view_(other.view_) {
  other.memory_ = VK_NULL_HANDLE;
  other.buffer_ = VK_NULL_HANDLE;
  other.image_ = VK_NULL_HANDLE;
  other.view_ = VK_NULL_HANDLE;
}

GpuTensor::~GpuTensor() {
  vk().vkDestroyImageView(device_.handle(), view_, nullptr);
  vk().vkDestroyImage(device_.handle(), image_, nullptr);
  vk().vkDestroyBuffer(device_.handle(), buffer_, nullptr);
  vk().vkFreeMemory(device_.handle(), memory_, nullptr);
}

void GpuTensor::create_buffer() {
  buffer_ = make_buffer(device_.handle(), layout_.byte_count, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
  VkMemoryRequirements needs{};
  vk().vkGetBufferMemoryRequirements(device_.handle(), buffer_, &needs);
  memory_ = device_.allocate(needs, false);
  check(vk().vkBindBufferMemory(device_.handle(), buffer_, memory_, 0), "vkBindBufferMemory");
}

void GpuTensor::create_image() {
  VkImageCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO;
  info.imageType = VK_IMAGE_TYPE_3D;
  info.format = format_of(layout_.dtype);
  info.extent = extent_of(layout_);
  info.mipLevels = 1;
  info.arrayLayers = 1;
  info.samples = VK_SAMPLE_COUNT_1_BIT;
  info.usage = VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_STORAGE_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT |
               VK_IMAGE_USAGE_TRANSFER_DST_BIT;
  check(vk().vkCreateImage(device_.handle(), &info, nullptr, &image_), "vkCreateImage");
  VkMemoryRequirements needs{};
  vk().vkGetImageMemoryRequirements(device_.handle(), image_, &needs);
  memory_ = device_.allocate(needs, false);
  check(vk().vkBindImageMemory(device_.handle(), image_, memory_, 0), "vkBindImageMemory");
  VkImageViewCreateInfo view{};
  view.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO;
  view.image = image_;
  view.viewType = VK_IMAGE_VIEW_TYPE_3D;
  view.format = info.format;
  view.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  check(vk().vkCreateImageView(device_.handle(), &view, nullptr, &view_), "vkCreateImageView");
}

namespace {

// From undefined: the whole image is written next.
void to_general_layout(VkCommandBuffer commands, VkImage image) {
  VkImageMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER;
  barrier.dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.oldLayout = VK_IMAGE_LAYOUT_UNDEFINED;
  barrier.newLayout = VK_IMAGE_LAYOUT_GENERAL;
  barrier.srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
  barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
  barrier.image = image;
  barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  vk().vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, nullptr,
                            0, nullptr, 1, &barrier);
}

}  // namespace

void GpuTensor::record_transfer(VkCommandBuffer commands, VkBuffer staging, bool to_device) const {
  const VkBufferCopy buffer_region{0, 0, layout_.byte_count};
  const VkBufferImageCopy image_region = whole_image(layout_);
  if (buffer_ != VK_NULL_HANDLE) {
    vk().vkCmdCopyBuffer(commands, to_device ? staging : buffer_, to_device ? buffer_ : staging, 1, &buffer_region);
  } else if (to_device) {
    to_general_layout(commands, image_);
    vk().vkCmdCopyBufferToImage(commands, staging, image_, VK_IMAGE_LAYOUT_GENERAL, 1, &image_region);
  } else {
    vk().vkCmdCopyImageToBuffer(commands, image_, VK_IMAGE_LAYOUT_GENERAL, staging, 1, &image_region);
  }
}

void GpuTensor::run_transfer(VkBuffer staging, bool to_device) const {
  const VkCommandBuffer commands = device_.begin();
  full_barrier(commands);
  record_transfer(commands, staging, to_device);
  full_barrier(commands);
  host_barrier(commands);
  check(vk().vkEndCommandBuffer(commands), "vkEndCommandBuffer");
  device_.submit_and_wait(commands);
  device_.free(commands);
}

void GpuTensor::upload(const HostTensor& tensor) const {
  if (tensor.bytes().size() != layout_.byte_count) {
    throw std::invalid_argument("upload of a tensor of another layout");
  }
  const Staging staging(device_, layout_.byte_count);
  std::memcpy(staging.bytes(), tensor.bytes().data(), layout_.byte_count);
  run_transfer(staging.buffer(), true);
}

HostTensor GpuTensor::download() const {
  HostTensor tensor(layout_, 0, 0);
  const Staging staging(device_, layout_.byte_count);
  run_transfer(staging.buffer(), false);
  std::memcpy(tensor.bytes().data(), staging.bytes(), layout_.byte_count);
  return tensor;
}

VkDescriptorBufferInfo GpuTensor::buffer_info() const {
  return {buffer_, layout_.guard_bytes, element_count(layout_.sizes) * layout_.element_bytes};
}

VkDescriptorImageInfo GpuTensor::image_info() const { return {device_.sampler(), view_, VK_IMAGE_LAYOUT_GENERAL}; }

}  // namespace etvk_guard::harness
