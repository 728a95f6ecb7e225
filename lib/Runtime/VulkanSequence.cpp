//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sequences of kas-rt on Vulkan: launches that are recorded once, in a
// secondary command buffer with descriptors of its own, which each run executes
// from the buffer of the device. And which launches wait for which.
//
//===----------------------------------------------------------------------===//

#include "VulkanDevice.h"

using namespace kas::rt;

//===----------------------------------------------------------------------===//
// Hazards
//===----------------------------------------------------------------------===//

bool VulkanHazards::needsBarrier(
    const std::vector<VulkanAccess> &accesses) const {
  for (const VulkanAccess &access : accesses)
    for (const VulkanAccess &before : pending)
      if (access.conflictsWith(before))
        return true;
  return false;
}

void VulkanHazards::add(const std::vector<VulkanAccess> &accesses) {
  pending.insert(pending.end(), accesses.begin(), accesses.end());
}

std::vector<VulkanAccess>
VulkanKernel::getAccesses(const KasRtArgument *arguments) const {
  std::vector<VulkanAccess> accesses;
  for (uint32_t i = 0; i < bufferCount; ++i) {
    auto *buffer = static_cast<VulkanBuffer *>(arguments[i].buffer);
    uint64_t begin = arguments[i].offset;
    accesses.push_back(
        {buffer->memory.buffer, begin,
         arguments[i].bytes ? begin + arguments[i].bytes : buffer->bytes,
         !readOnly.count(i)});
  }
  return accesses;
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

Status
VulkanDevice::createSequence(std::vector<KasRtLaunchImpl> launches,
                             std::unique_ptr<KasRtSequenceImpl> &sequence) {
  for (const KasRtLaunchImpl &one : launches)
    if (Status status =
            static_cast<VulkanKernel *>(one.kernel)->checkSize(one.size);
        status.isError())
      return status;
  auto created = std::make_unique<VulkanSequence>(*this, std::move(launches));
  Status status = created->recordLaunches();
  if (status.isError())
    created->destroy();
  else
    sequence = std::move(created);
  return status;
}

Status VulkanSequence::allocateSets(std::vector<VkDescriptorSet> &sets) {
  VulkanDevice &vulkan = asVulkan(device);
  std::vector<VkDescriptorSetLayout> layouts;
  VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 0};
  for (const KasRtLaunchImpl &one : launches) {
    layouts.push_back(static_cast<VulkanKernel *>(one.kernel)->setLayout);
    size.descriptorCount += one.kernel->bufferCount;
  }
  VkDescriptorPoolCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  create.maxSets = static_cast<uint32_t>(layouts.size());
  // A size of nothing is not allowed.
  create.poolSizeCount = size.descriptorCount != 0;
  create.pPoolSizes = &size;
  Status status = vulkan.check(vulkan.instance.vkCreateDescriptorPool(
                                   vulkan.handle, &create, nullptr, &pool),
                               "vkCreateDescriptorPool");
  if (status.isError()) {
    pool = VK_NULL_HANDLE;
    return status;
  }
  sets.resize(layouts.size());
  VkDescriptorSetAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  allocate.descriptorPool = pool;
  allocate.descriptorSetCount = create.maxSets;
  allocate.pSetLayouts = layouts.data();
  return vulkan.check(vulkan.instance.vkAllocateDescriptorSets(
                          vulkan.handle, &allocate, sets.data()),
                      "vkAllocateDescriptorSets");
}

Status VulkanSequence::begin() {
  VulkanDevice &vulkan = asVulkan(device);
  VkCommandBufferAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  allocate.commandPool = vulkan.sequencePool;
  allocate.level = VK_COMMAND_BUFFER_LEVEL_SECONDARY;
  allocate.commandBufferCount = 1;
  Status status = vulkan.check(vulkan.instance.vkAllocateCommandBuffers(
                                   vulkan.handle, &allocate, &handle),
                               "vkAllocateCommandBuffers");
  if (status.isError()) {
    handle = VK_NULL_HANDLE;
    return status;
  }
  VkCommandBufferInheritanceInfo inheritance{};
  inheritance.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO;
  VkCommandBufferBeginInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  // Several runs may be recorded before the device has done one.
  info.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  info.pInheritanceInfo = &inheritance;
  return vulkan.check(vulkan.instance.vkBeginCommandBuffer(handle, &info),
                      "vkBeginCommandBuffer");
}

Status VulkanSequence::recordLaunches() {
  VulkanDevice &vulkan = asVulkan(device);
  std::vector<VkDescriptorSet> sets;
  if (Status status = allocateSets(sets); status.isError())
    return status;
  if (Status status = begin(); status.isError())
    return status;
  VulkanHazards hazards;
  for (size_t i = 0; i < launches.size(); ++i) {
    auto &kernel = static_cast<VulkanKernel &>(*launches[i].kernel);
    const KasRtArgument *arguments = launches[i].arguments.data();
    std::vector<VulkanAccess> own = kernel.getAccesses(arguments);
    if (hazards.needsBarrier(own)) {
      vulkan.recordBarrier(handle);
      hazards.clear();
    }
    hazards.add(own);
    accesses.insert(accesses.end(), own.begin(), own.end());
    kernel.bind(sets[i], arguments);
    kernel.dispatch(handle, sets[i], launches[i].size);
  }
  return vulkan.check(vulkan.instance.vkEndCommandBuffer(handle),
                      "vkEndCommandBuffer");
}

Status VulkanSequence::launch() {
  VulkanDevice &vulkan = asVulkan(device);
  if (Status status =
          vulkan.record(accesses, static_cast<uint32_t>(launches.size()));
      status.isError())
    return status;
  vulkan.instance.vkCmdExecuteCommands(vulkan.commands, 1, &handle);
  return {};
}

void VulkanSequence::destroy() {
  VulkanDevice &vulkan = asVulkan(device);
  if (handle)
    vulkan.instance.vkFreeCommandBuffers(vulkan.handle, vulkan.sequencePool, 1,
                                         &handle);
  vulkan.instance.vkDestroyDescriptorPool(vulkan.handle, pool, nullptr);
}

Status VulkanSequence::release() {
  Status status = asVulkan(device).finish();
  destroy();
  return status;
}
