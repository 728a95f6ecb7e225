//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The back end on Vulkan's compute queues.
//
// Commands are recorded until something must be waited for, then submitted as a
// whole; a barrier is between each two, so they run in order.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_VULKANDEVICE_H
#define LIB_RUNTIME_VULKANDEVICE_H

#include "Device.h"
#include "SpirvModule.h"
#include "VulkanDriver.h"

namespace kas::rt {

/// Memory with the buffer that covers it.
struct VulkanMemory {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  /// Where the host sees it; null when it does not.
  char *mapped = nullptr;
};

struct VulkanDevice final : KasRtDeviceImpl {
  Status open(int32_t index);
  Status close() override;
  Status synchronize() override { return finish(); }
  Status createBuffer(uint64_t bytes,
                      std::unique_ptr<KasRtBufferImpl> &buffer) override;
  Status loadModule(const void *data, size_t bytes,
                    std::unique_ptr<KasRtModuleImpl> &module) override;
  Status createEvent(std::unique_ptr<KasRtEventImpl> &event) override;
  Status takeMessages() override { return instance.takeMessages(); }

  /// Success, or the error of a call on this device.
  Status check(VkResult result, const std::string &what) const {
    return checkVulkan(result, what + " on " + label);
  }

  /// Begins to record unless that is under way.
  Status record();
  /// To be called after each recorded command: what follows sees its effects.
  void recordBarrier();
  /// Submits what is recorded and waits for it.
  Status finish();
  /// Sets of descriptors that live until the recorded commands are done.
  Status allocateDescriptors(VkDescriptorSetLayout layout, uint32_t bufferCount,
                             VkDescriptorSet &set);

  /// Memory of a kind: in sight of the host, or as near to the device as can
  /// be, which is in sight of the host as well where both are one.
  Status allocate(uint64_t bytes, bool forHost, VulkanMemory &memory);
  void free(VulkanMemory &memory);
  /// The memory through which buffers out of the host's sight are copied.
  Status getStaging(VulkanMemory *&staging);

  static constexpr uint64_t stagingBytes = 4 << 20;

  VulkanInstance instance;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice handle = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  VkPhysicalDeviceMemoryProperties memoryTypes = {};
  /// Nanoseconds of a tick and valid bits of the device's clock.
  double tickNanoseconds = 0;
  uint32_t timestampBits = 0;
  VkCommandPool commandPool = VK_NULL_HANDLE;
  VkCommandBuffer commands = VK_NULL_HANDLE;

private:
  Status createDevice(uint32_t family);
  void readLimits();
  Status submit();
  /// Throws away what is recorded.
  Status reset();

  VkFence fence = VK_NULL_HANDLE;
  bool isRecording = false;
  uint32_t recordedCommands = 0;
  struct Pool {
    VkDescriptorPool handle;
    uint32_t sets, buffers;
  };
  std::vector<Pool> pools;
  size_t currentPool = 0;
  VulkanMemory staging;
};

inline VulkanDevice &asVulkan(KasRtDeviceImpl &device) {
  return static_cast<VulkanDevice &>(device);
}

struct VulkanBuffer final : KasRtBufferImpl {
  using KasRtBufferImpl::KasRtBufferImpl;
  Status release() override;
  Status write(uint64_t offset, const void *source, uint64_t count) override;
  Status read(uint64_t offset, void *destination, uint64_t count) override;
  Status fill(uint32_t word) override;

  VulkanMemory memory;
};

} // namespace kas::rt

#endif // LIB_RUNTIME_VULKANDEVICE_H
