//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A Vulkan device of kas-rt: limits, features, and command buffers that record
// and are submitted.
// A device owns an instance of its own, one compute queue, one command buffer
// and one fence. Work is recorded and submitted as late as possible (`finish`),
// which saves a round trip to the queue per launch.
// A call on a device:
//    record(accesses)  begins the command buffer unless one is open; a barrier
//                      where an earlier command must be done
//    vkCmd...          the launch, fill or copy
//    finish()          if the host needs the result: submits and waits
//
//===----------------------------------------------------------------------===//

#include "VulkanDevice.h"
#include <algorithm>
#include <cstring>
#include <tuple>

using namespace kas::rt;

/// Most commands between two submissions: bounds the memory that a command
/// buffer takes and how long the device stays idle.
static constexpr uint32_t maxRecordedCommands = 1024;
/// Sets and descriptors of one pool.
static constexpr uint32_t poolSets = 64, poolBuffers = 512;

Status kas::rt::openVulkanDevice(int32_t index,
                                 std::unique_ptr<KasRtDeviceImpl> &device) {
  auto opened = std::make_unique<VulkanDevice>();
  Status status = opened->open(index);
  // Of the creation itself: with the validation layer a message is an error.
  status += opened->takeMessages();
  if (status.isError())
    (void)opened->close();
  else
    device = std::move(opened);
  return status;
}

//===----------------------------------------------------------------------===//
// Opening and closing
//===----------------------------------------------------------------------===//

void VulkanDevice::readLimits() {
  // Properties are a chain of structures that the driver fills.
  VkPhysicalDeviceSubgroupProperties subgroup{};
  subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
  VkPhysicalDeviceMaintenance3Properties allocation{};
  allocation.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
  allocation.pNext = &subgroup;
  // Subgroups and the largest allocation are properties of Vulkan 1.1, in
  // structures that hang on this one.
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &allocation;
  instance.vkGetPhysicalDeviceProperties2(physical, &properties);
  instance.vkGetPhysicalDeviceMemoryProperties(physical, &memoryTypes);

  const VkPhysicalDeviceProperties &device = properties.properties;
  const VkPhysicalDeviceLimits &limits = device.limits;
  info.backend = KAS_RT_VULKAN;
  copyName(info.name, device.deviceName);
  copyName(info.architecture,
           std::to_string(VK_VERSION_MAJOR(device.apiVersion)) + "." +
               std::to_string(VK_VERSION_MINOR(device.apiVersion)));
  info.maxThreadsPerBlock = limits.maxComputeWorkGroupInvocations;
  for (int axis = 0; axis < 3; ++axis) {
    info.maxBlock[axis] = limits.maxComputeWorkGroupSize[axis];
    info.maxGrid[axis] = limits.maxComputeWorkGroupCount[axis];
  }
  info.maxSharedBytes = limits.maxComputeSharedMemorySize;
  // All buffers of a kernel come from one pool.
  info.maxBuffers = std::min({limits.maxPerStageDescriptorStorageBuffers,
                              limits.maxDescriptorSetStorageBuffers,
                              limits.maxPerStageResources, poolBuffers});
  info.warpSize = subgroup.subgroupSize;
  // Lavapipe and the like: schedules for processors are others.
  info.isHost = device.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  // A buffer is one allocation and is bound as a whole.
  info.maxBufferBytes = std::min<uint64_t>(limits.maxStorageBufferRange,
                                           allocation.maxMemoryAllocationSize);
  // The largest heap near the device; on a processor that is all memory.
  for (uint32_t i = 0; i < memoryTypes.memoryHeapCount; ++i)
    if (memoryTypes.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
      info.memoryBytes =
          std::max(info.memoryBytes, memoryTypes.memoryHeaps[i].size);
  tickNanoseconds = limits.timestampPeriod;
  label += std::string(" (") + info.name + ")";
}

/// Whether the device has an extension.
/// `has` is left alone after an error.
static Status hasExtension(const VulkanDevice &device, const char *name,
                           bool &has) {
  auto list = [&](uint32_t &count, VkExtensionProperties *extensions) {
    return device.check(device.instance.vkEnumerateDeviceExtensionProperties(
                            device.physical, nullptr, &count, extensions),
                        "vkEnumerateDeviceExtensionProperties");
  };
  uint32_t count = 0;
  // The usual two calls of Vulkan: the number, then the list.
  Status status = list(count, nullptr);
  if (status.isError())
    return status;
  std::vector<VkExtensionProperties> extensions(count);
  status = list(count, extensions.data());
  has = false;
  for (const VkExtensionProperties &extension : extensions)
    has |= std::strcmp(extension.extensionName, name) == 0;
  return status;
}

Status VulkanDevice::createDevice(uint32_t family) {
  // Core since Vulkan 1.2 only; the extension serves 1.1.
  const char *float16Name = VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME;
  // Requested only where the device has it: an unknown extension is an error.
  bool hasFloat16 = false;
  if (Status status = hasExtension(*this, float16Name, hasFloat16);
      status.isError())
    return status;

  VkPhysicalDeviceShaderFloat16Int8Features float16{};
  float16.sType =
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
  VkPhysicalDevice16BitStorageFeatures storage16{};
  storage16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES;
  // A structure of an extension that is not there must not be in the chain.
  storage16.pNext = hasFloat16 ? &float16 : nullptr;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &storage16;
  instance.vkGetPhysicalDeviceFeatures2(physical, &features);
  readLimits();
  info.hasFloat16 = float16.shaderFloat16 && storage16.storageBuffer16BitAccess;

  // Only what kernels may use is switched on.
  VkPhysicalDeviceFeatures wanted{};
  wanted.shaderInt64 = features.features.shaderInt64;
  wanted.shaderFloat64 = features.features.shaderFloat64;
  wanted.shaderInt16 = features.features.shaderInt16;
  features.features = wanted;
  storage16 = {
      storage16.sType, storage16.pNext, storage16.storageBuffer16BitAccess,
      VK_FALSE,        VK_FALSE,        VK_FALSE};
  float priority = 1;
  VkDeviceQueueCreateInfo queues{};
  queues.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queues.queueFamilyIndex = family;
  queues.queueCount = 1;
  queues.pQueuePriorities = &priority;
  VkDeviceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  create.pNext = &features;
  create.queueCreateInfoCount = 1;
  create.pQueueCreateInfos = &queues;
  create.enabledExtensionCount = hasFloat16;
  create.ppEnabledExtensionNames = &float16Name;
  Status status =
      check(instance.vkCreateDevice(physical, &create, nullptr, &handle),
            "vkCreateDevice");
  // A failed call may leave anything in its result, which `close` would
  // destroy.
  if (status.isError()) {
    handle = VK_NULL_HANDLE;
    return status;
  }
  // Belongs to the device: nothing to destroy.
  instance.vkGetDeviceQueue(handle, family, 0, &queue);

  pipelines.open(instance, physical, handle);
  return createPools(family);
}

Status VulkanDevice::createPools(uint32_t family) {
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.queueFamilyIndex = family;
  Status status;
  for (VkCommandPool *made : {&commandPool, &sequencePool}) {
    status = check(instance.vkCreateCommandPool(handle, &pool, nullptr, made),
                   "vkCreateCommandPool");
    if (status.isError()) {
      *made = VK_NULL_HANDLE;
      return status;
    }
  }
  VkCommandBufferAllocateInfo buffers{};
  buffers.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  buffers.commandPool = commandPool;
  buffers.commandBufferCount = 1;
  status = check(instance.vkAllocateCommandBuffers(handle, &buffers, &commands),
                 "vkAllocateCommandBuffers");
  if (status.isError())
    return status;
  VkFenceCreateInfo fenceInfo{};
  fenceInfo.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  status = check(instance.vkCreateFence(handle, &fenceInfo, nullptr, &fence),
                 "vkCreateFence");
  if (status.isError())
    fence = VK_NULL_HANDLE;
  return status;
}

Status VulkanDevice::open(int32_t index) {
  label = "vulkan:" + std::to_string(index);
  std::vector<VkPhysicalDevice> devices;
  if (Status status = instance.open(); status.isError())
    return status;
  if (Status status = instance.listDevices(devices); status.isError())
    return status;
  if (index >= static_cast<int64_t>(devices.size()))
    return {KAS_RT_ERROR_NO_DEVICE,
            "no device " + label +
                ": looked for devices with compute queues "
                "and Vulkan 1.1 through " +
                instance.library.getName() + ", got " +
                std::to_string(devices.size())};
  // `listDevices` has found a compute queue on it.
  physical = devices[index];
  uint32_t family = 0;
  findComputeQueue(instance, physical, family, timestampBits);
  return createDevice(family);
}

Status VulkanDevice::close() {
  Status status;
  if (handle) {
    // What is recorded still runs, as the calls that recorded it succeeded.
    if (!isLost)
      status += finish();
    status += check(instance.vkDeviceWaitIdle(handle), "vkDeviceWaitIdle");
    free(staging);
    for (Pool &pool : pools)
      instance.vkDestroyDescriptorPool(handle, pool.handle, nullptr);
    instance.vkDestroyFence(handle, fence, nullptr);
    instance.vkDestroyCommandPool(handle, commandPool, nullptr);
    instance.vkDestroyCommandPool(handle, sequencePool, nullptr);
    pipelines.close(!isLost);
    instance.vkDestroyDevice(handle, nullptr);
    handle = VK_NULL_HANDLE;
  }
  instance.close();
  return status;
}

//===----------------------------------------------------------------------===//
// Recording and submitting
//===----------------------------------------------------------------------===//

Status VulkanDevice::record(const std::vector<VulkanAccess> &accesses,
                            uint32_t count) {
  // One command may be many, but never none of those that are allowed.
  if (recordedCommands != 0 && recordedCommands + count > maxRecordedCommands)
    if (Status status = finish(); status.isError())
      return status;
  if (!isRecording) {
    VkCommandBufferBeginInfo begin{};
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    // Each recording is submitted once, then reset.
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    if (Status status = check(instance.vkBeginCommandBuffer(commands, &begin),
                              "vkBeginCommandBuffer");
        status.isError())
      return status;
    isRecording = true;
  }
  if (hazards.needsBarrier(accesses))
    recordBarrier();
  hazards.add(accesses);
  recordedCommands += count;
  return {};
}

void VulkanDevice::recordBarrier() {
  if (!hazards.empty())
    recordBarrier(commands);
  hazards.clear();
}

// One barrier for all memory: who waits does so for every command before.
void VulkanDevice::recordBarrier(VkCommandBuffer buffer) const {
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  // Everything that wrote before, everything that may read or write after, the
  // host included.
  barrier.srcAccessMask =
      VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask =
      VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
      VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT |
      VK_ACCESS_HOST_READ_BIT;
  VkPipelineStageFlags device =
      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  instance.vkCmdPipelineBarrier(buffer, device,
                                device | VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                                &barrier, 0, nullptr, 0, nullptr);
}

/// Submits the recorded commands and waits; the fence is usable again
/// afterwards.
Status VulkanDevice::submit() {
  // The host sees what was written, and so does the next submission.
  recordBarrier();
  Status status =
      check(instance.vkEndCommandBuffer(commands), "vkEndCommandBuffer");
  if (status.isError())
    return status;
  VkSubmitInfo submission{};
  submission.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submission.commandBufferCount = 1;
  submission.pCommandBuffers = &commands;
  status = check(instance.vkQueueSubmit(queue, 1, &submission, fence),
                 "vkQueueSubmit");
  if (status.isError())
    return status;
  status =
      check(instance.vkWaitForFences(handle, 1, &fence, VK_TRUE, UINT64_MAX),
            "waiting for the kernels");
  // Whatever failed, nothing may be in use when this returns.
  if (status.isError())
    (void)instance.vkDeviceWaitIdle(handle);
  status += check(instance.vkResetFences(handle, 1, &fence), "vkResetFences");
  return status;
}

// Everything that recorded commands held is free again: descriptor sets too.
Status VulkanDevice::reset() {
  isRecording = false;
  recordedCommands = 0;
  hazards.clear();
  currentPool = 0;
  Status status = check(instance.vkResetCommandPool(handle, commandPool, 0),
                        "vkResetCommandPool");
  for (Pool &pool : pools) {
    status += check(instance.vkResetDescriptorPool(handle, pool.handle, 0),
                    "vkResetDescriptorPool");
    // Resetting a pool frees its sets.
    pool.sets = poolSets;
    pool.buffers = poolBuffers;
  }
  return status;
}

// Reset even after an error: the recorded commands are not run twice.
Status VulkanDevice::finish() {
  if (!isRecording)
    return {};
  Status status = submit();
  status += reset();
  return status;
}

// Pools are filled one after the other and kept for the next submission.
Status VulkanDevice::allocateDescriptors(VkDescriptorSetLayout layout,
                                         uint32_t bufferCount,
                                         VkDescriptorSet &set) {
  // A pool that lacks sets or descriptors is left for good until the reset.
  while (currentPool < pools.size() &&
         (!pools[currentPool].sets || pools[currentPool].buffers < bufferCount))
    ++currentPool;
  if (currentPool == pools.size()) {
    VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                 poolBuffers};
    VkDescriptorPoolCreateInfo create{};
    create.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    create.maxSets = poolSets;
    create.poolSizeCount = 1;
    create.pPoolSizes = &size;
    Pool pool = {VK_NULL_HANDLE, poolSets, poolBuffers};
    if (Status status = check(instance.vkCreateDescriptorPool(
                                  handle, &create, nullptr, &pool.handle),
                              "vkCreateDescriptorPool");
        status.isError())
      return status;
    pools.push_back(pool);
  }
  VkDescriptorSetAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  allocate.descriptorPool = pools[currentPool].handle;
  allocate.descriptorSetCount = 1;
  allocate.pSetLayouts = &layout;
  Status status =
      check(instance.vkAllocateDescriptorSets(handle, &allocate, &set),
            "vkAllocateDescriptorSets");
  if (!status.isError()) {
    --pools[currentPool].sets;
    pools[currentPool].buffers -= bufferCount;
  }
  return status;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// A buffer, memory for it and, where the host sees that, its mapping. After an
/// error `memory` is empty.
Status VulkanDevice::allocate(uint64_t bytes, bool forHost,
                              VulkanMemory &memory) {
  VkBufferCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  create.size = bytes;
  // Any buffer may be an argument, filled, and copied both ways.
  create.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                 VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  std::string what = " for " + std::to_string(bytes) + " bytes";
  Status status =
      check(instance.vkCreateBuffer(handle, &create, nullptr, &memory.buffer),
            "vkCreateBuffer" + what);
  if (status.isError()) {
    memory.buffer = VK_NULL_HANDLE;
    return status;
  }
  // The driver says which types of memory suit, and may need more bytes.
  VkMemoryRequirements needs;
  instance.vkGetBufferMemoryRequirements(handle, memory.buffer, &needs);

  // Coherent memory needs no flushes.
  constexpr VkMemoryPropertyFlags seen = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                         VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  // The type with the highest score. For the host: cached, then not the
  // device's, which may be small. For the device: near it, then seen by the
  // host and cached, so that copies need no staging.
  uint32_t best = UINT32_MAX;
  int bestScore = -1;
  for (uint32_t i = 0; i < memoryTypes.memoryTypeCount; ++i) {
    VkMemoryPropertyFlags flags = memoryTypes.memoryTypes[i].propertyFlags;
    bool isSeen = (flags & seen) == seen;
    bool isLocal = flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    bool isCached = flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    if (!(needs.memoryTypeBits >> i & 1) || (forHost && !isSeen))
      continue;
    // The host reads uncached memory over the bus word by word: copies through
    // cached memory are faster than to look at the device's.
    int score = forHost ? 2 * isCached + !isLocal
                        : 4 * isLocal + 2 * (isSeen && isCached) + !isSeen;
    if (score > bestScore)
      std::tie(best, bestScore) = std::pair(i, score);
  }
  if (best == UINT32_MAX)
    status = {KAS_RT_ERROR_DRIVER, label + " has no memory for buffers"};
  VkMemoryAllocateInfo allocation{};
  allocation.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocation.allocationSize = needs.size;
  allocation.memoryTypeIndex = best;
  if (!status.isError()) {
    status = check(
        instance.vkAllocateMemory(handle, &allocation, nullptr, &memory.memory),
        "vkAllocateMemory of " + std::to_string(bytes) + " bytes");
    if (status.isError())
      memory.memory = VK_NULL_HANDLE;
  }
  if (!status.isError())
    status = check(
        instance.vkBindBufferMemory(handle, memory.buffer, memory.memory, 0),
        "vkBindBufferMemory");
  void *mapped = nullptr;
  if (!status.isError()) {
    // Mapped for as long as it lives, which Vulkan allows.
    VkMemoryPropertyFlags flags = memoryTypes.memoryTypes[best].propertyFlags;
    if ((flags & seen) == seen &&
        (forHost || flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT))
      status = check(instance.vkMapMemory(handle, memory.memory, 0,
                                          VK_WHOLE_SIZE, 0, &mapped),
                     "vkMapMemory" + what);
  }
  if (status.isError())
    free(memory);
  else
    memory.mapped = static_cast<char *>(mapped);
  return status;
}

void VulkanDevice::free(VulkanMemory &memory) {
  instance.vkDestroyBuffer(handle, memory.buffer, nullptr);
  // This unmaps it as well.
  instance.vkFreeMemory(handle, memory.memory, nullptr);
  memory = {};
}

// Allocated when first needed: many devices never do.
Status VulkanDevice::getStaging(VulkanMemory *&result) {
  result = &staging;
  return staging.mapped ? Status() : allocate(stagingBytes, true, staging);
}
