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
// whole. A barrier is between two where one writes what the other accesses, so
// they run as if in order.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_VULKANDEVICE_H
#define LIB_RUNTIME_VULKANDEVICE_H

#include "Device.h"
#include "SpirvModule.h"
#include "VulkanDriver.h"
#include "VulkanHazards.h"
#include "VulkanPipelineCache.h"
#include <set>

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
  Status createSequence(std::vector<KasRtLaunchImpl> launches,
                        std::unique_ptr<KasRtSequenceImpl> &sequence) override;
  Status takeMessages() override { return instance.takeMessages(); }

  /// Success, or the error of a call on this device.
  Status check(VkResult result, const std::string &what) const {
    return checkVulkan(result, what + " on " + label);
  }

  /// To be called before each command, or before `count` of them, with all that
  /// they access: begins to record unless that is under way, and lets them wait
  /// for those before them where they must.
  Status record(const std::vector<VulkanAccess> &accesses, uint32_t count = 1);
  /// What follows in `commands` waits for all before, and sees its effects.
  void recordBarrier(VkCommandBuffer commands) const;
  /// The same for what is recorded, where anything is.
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
  /// Of sequences, whose commands stay.
  VkCommandPool sequencePool = VK_NULL_HANDLE;
  VulkanPipelineCache pipelines;

private:
  Status createDevice(uint32_t family);
  Status createPools(uint32_t family);
  void readLimits();
  Status submit();
  /// Throws away what is recorded.
  Status reset();

  VkFence fence = VK_NULL_HANDLE;
  bool isRecording = false;
  uint32_t recordedCommands = 0;
  /// Of the recorded commands.
  VulkanHazards hazards;
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

  /// An access of `count` bytes from `offset` on.
  VulkanAccess getAccess(uint64_t offset, uint64_t count, bool isWrite) const {
    return {memory.buffer, offset, offset + count, isWrite};
  }

  VulkanMemory memory;
};

/// A shader module, and what was read of its words (SpirvModule.h).
struct VulkanModule final : KasRtModuleImpl {
  using KasRtModuleImpl::KasRtModuleImpl;
  Status release() override;
  Status createKernel(const std::string &name, uint32_t bufferCount,
                      const std::vector<KasRtTensorMap> &maps,
                      std::unique_ptr<KasRtKernelImpl> &kernel) override;

  SpirvModule spirv;
  VkShaderModule handle = VK_NULL_HANDLE;
};

/// A compute pipeline with the layout of its descriptors.
struct VulkanKernel final : KasRtKernelImpl {
  using KasRtKernelImpl::KasRtKernelImpl;
  Status launch(const KasRtLaunchSize &size,
                const KasRtArgument *arguments) override;
  /// Compiles the kernel: layouts of its buffers, then the pipeline.
  Status create();
  /// Also after a `create` that failed half-way: null handles are ignored by
  /// Vulkan.
  void destroy();

  /// An error unless a launch of this size is what the module says.
  Status checkSize(const KasRtLaunchSize &size) const;
  std::vector<VulkanAccess> getAccesses(const KasRtArgument *arguments) const;
  /// Points the descriptors of `set` at the buffers of a launch.
  void bind(VkDescriptorSet set, const KasRtArgument *arguments) const;
  /// Records a launch, and nothing that it waits for.
  void dispatch(VkCommandBuffer commands, VkDescriptorSet set,
                const KasRtLaunchSize &size) const;

  /// Threads that the module is compiled for; zeros when it fixes none.
  std::array<uint32_t, 3> block = {0, 0, 0};
  /// The buffers that it does not write.
  std::set<uint32_t> readOnly;
  VkDescriptorSetLayout setLayout = VK_NULL_HANDLE;
  VkPipelineLayout pipelineLayout = VK_NULL_HANDLE;
  VkPipeline pipeline = VK_NULL_HANDLE;

private:
  Status createLayouts();
};

/// Launches that are recorded once.
struct VulkanSequence final : KasRtSequenceImpl {
  using KasRtSequenceImpl::KasRtSequenceImpl;
  Status recordLaunches();
  Status launch() override;
  Status release() override;
  /// Also after a `recordLaunches` that failed half-way.
  void destroy();

  /// A secondary command buffer, and the descriptors of its launches.
  VkCommandBuffer handle = VK_NULL_HANDLE;
  VkDescriptorPool pool = VK_NULL_HANDLE;
  /// Of all launches together.
  std::vector<VulkanAccess> accesses;

private:
  Status allocateSets(std::vector<VkDescriptorSet> &sets);
  Status begin();
};

} // namespace kas::rt

#endif // LIB_RUNTIME_VULKANDEVICE_H
