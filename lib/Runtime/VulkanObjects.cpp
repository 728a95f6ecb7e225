//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Buffers, modules, kernels and events of kas-rt on Vulkan.
// Objects are used by commands that are recorded but not yet submitted, so each
// `release` finishes them first. Creation is all or nothing: what exists when a
// step fails is destroyed.
//
//===----------------------------------------------------------------------===//

#include "VulkanDevice.h"
#include <algorithm>
#include <cmath>
#include <cstring>

using namespace kas::rt;

namespace {

/// A query for one timestamp of the device's clock.
struct VulkanEvent final : KasRtEventImpl {
  using KasRtEventImpl::KasRtEventImpl;
  Status release() override;
  Status record() override;
  Status elapsedSince(KasRtEventImpl &start, double &milliseconds) override;
  /// The device's clock at the event, which has been waited for.
  Status getTicks(uint64_t &ticks);

  VkQueryPool handle = VK_NULL_HANDLE;
};

} // namespace

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

Status VulkanDevice::createBuffer(uint64_t bytes,
                                  std::unique_ptr<KasRtBufferImpl> &buffer) {
  auto created = std::make_unique<VulkanBuffer>(*this, bytes);
  // Near the device, and mapped if the host sees that memory as well.
  Status status = allocate(bytes, false, created->memory);
  if (!status.isError())
    buffer = std::move(created);
  return status;
}

Status VulkanBuffer::release() {
  VulkanDevice &vulkan = asVulkan(device);
  Status status = vulkan.finish();
  vulkan.free(memory);
  return status;
}

Status VulkanBuffer::write(uint64_t offset, const void *source,
                           uint64_t count) {
  VulkanDevice &vulkan = asVulkan(device);
  // Kernels that were recorded before may still read what is overwritten.
  if (Status status = vulkan.finish(); status.isError())
    return status;
  // Memory that the host sees is written at once, without a command.
  if (memory.mapped) {
    std::memcpy(memory.mapped + offset, source, count);
    return {};
  }
  // In parts of 4 MiB, each waited for: the staging memory is reused.
  VulkanMemory *staging;
  if (Status status = vulkan.getStaging(staging); status.isError())
    return status;
  for (uint64_t done = 0; done < count;) {
    uint64_t part = std::min(count - done, VulkanDevice::stagingBytes);
    std::memcpy(staging->mapped, static_cast<const char *>(source) + done,
                part);
    std::vector<VulkanAccess> accesses = {{staging->buffer, 0, part, false},
                                          getAccess(offset + done, part, true)};
    if (Status status = vulkan.record(accesses); status.isError())
      return status;
    // From the start of the staging memory to the part of the buffer.
    VkBufferCopy region = {0, offset + done, part};
    vulkan.instance.vkCmdCopyBuffer(vulkan.commands, staging->buffer,
                                    memory.buffer, 1, &region);
    if (Status status = vulkan.finish(); status.isError())
      return status;
    done += part;
  }
  return {};
}

// Kernels that write the buffer were recorded before: `finish`, or the
// submission of the first part, runs them.
Status VulkanBuffer::read(uint64_t offset, void *destination, uint64_t count) {
  VulkanDevice &vulkan = asVulkan(device);
  if (memory.mapped) {
    Status status = vulkan.finish();
    if (!status.isError())
      std::memcpy(destination, memory.mapped + offset, count);
    return status;
  }
  VulkanMemory *staging;
  if (Status status = vulkan.getStaging(staging); status.isError())
    return status;
  for (uint64_t done = 0; done < count;) {
    uint64_t part = std::min(count - done, VulkanDevice::stagingBytes);
    std::vector<VulkanAccess> accesses = {getAccess(offset + done, part, false),
                                          {staging->buffer, 0, part, true}};
    if (Status status = vulkan.record(accesses); status.isError())
      return status;
    // The other way round; the staging memory is read after the wait.
    VkBufferCopy region = {offset + done, 0, part};
    vulkan.instance.vkCmdCopyBuffer(vulkan.commands, memory.buffer,
                                    staging->buffer, 1, &region);
    if (Status status = vulkan.finish(); status.isError())
      return status;
    std::memcpy(static_cast<char *>(destination) + done, staging->mapped, part);
    done += part;
  }
  return {};
}

// Recorded like a launch; the host does not wait.
Status VulkanBuffer::fill(uint32_t word) {
  VulkanDevice &vulkan = asVulkan(device);
  if (Status status = vulkan.record({getAccess(0, bytes, true)});
      status.isError())
    return status;
  vulkan.instance.vkCmdFillBuffer(vulkan.commands, memory.buffer, 0, bytes,
                                  word);
  return {};
}

//===----------------------------------------------------------------------===//
// Modules and kernels
//===----------------------------------------------------------------------===//

Status VulkanDevice::loadModule(const void *data, size_t bytes,
                                std::unique_ptr<KasRtModuleImpl> &module) {
  auto created = std::make_unique<VulkanModule>(*this);
  // Checked first: drivers trust the words that they get.
  if (Status status = created->spirv.read(data, bytes); status.isError())
    return status;
  VkShaderModuleCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  create.codeSize = bytes;
  create.pCode = created->spirv.words.data();
  Status status = check(
      instance.vkCreateShaderModule(handle, &create, nullptr, &created->handle),
      "loading a module of " + std::to_string(bytes) + " bytes");
  if (!status.isError())
    module = std::move(created);
  return status;
}

Status VulkanModule::release() {
  VulkanDevice &vulkan = asVulkan(device);
  Status status = vulkan.finish();
  for (auto &kernel : kernels)
    static_cast<VulkanKernel &>(*kernel).destroy();
  vulkan.instance.vkDestroyShaderModule(vulkan.handle, handle, nullptr);
  return status;
}

// The limits that Vulkan leaves to the caller are checked with what the module
// says, since exceeding them is undefined behaviour and not an error.
Status VulkanModule::createKernel(const std::string &name, uint32_t bufferCount,
                                  const std::vector<KasRtTensorMap> &maps,
                                  std::unique_ptr<KasRtKernelImpl> &kernel) {
  // Descriptors of tensors belong to the copy engine of Hopper.
  if (!maps.empty())
    return invalidArgument("expected no tensor maps for kernel '" + name +
                           "' on " + device.label + ", got " +
                           std::to_string(maps.size()));
  const SpirvKernel *known = spirv.find(name);
  if (!known)
    return {
        KAS_RT_ERROR_NOT_FOUND,
        "expected a kernel of the module, which has '" +
            spirv.kernels.front().name + "'" +
            (spirv.kernels.size() > 1
                 ? " and " + std::to_string(spirv.kernels.size() - 1) + " more"
                 : "") +
            ", got '" + makeOneLine(name) + "'"};
  // More buffers than the kernel reaches are fine: those are not read.
  if (known->bufferCount > bufferCount)
    return invalidArgument("expected at least " +
                           std::to_string(known->bufferCount) +
                           " buffers for kernel '" + name + "', got " +
                           std::to_string(bufferCount));
  uint64_t threads =
      uint64_t(known->block[0]) * known->block[1] * known->block[2];
  if (threads > device.info.maxThreadsPerBlock)
    return {KAS_RT_ERROR_LIMIT,
            "expected at most " +
                std::to_string(device.info.maxThreadsPerBlock) +
                " threads of a block, the limit of " + device.label + ", got " +
                std::to_string(threads) + " in kernel '" + name + "'"};
  if (known->sharedBytes > device.info.maxSharedBytes)
    return {KAS_RT_ERROR_LIMIT,
            "expected at most " + std::to_string(device.info.maxSharedBytes) +
                " bytes of workgroup memory, the limit of " + device.label +
                ", got " + std::to_string(known->sharedBytes) + " in kernel '" +
                name + "'"};
  // Until all has been created the kernel is ours to destroy.
  auto created = std::make_unique<VulkanKernel>(*this, name, bufferCount);
  created->block = known->block;
  created->readOnly = known->readOnly;
  Status status = created->create();
  if (status.isError())
    created->destroy();
  else
    kernel = std::move(created);
  return status;
}

Status VulkanKernel::createLayouts() {
  VulkanDevice &vulkan = asVulkan(module.device);
  // Buffer i of the launch is binding i of set 0.
  std::vector<VkDescriptorSetLayoutBinding> bindings;
  for (uint32_t i = 0; i < bufferCount; ++i)
    // One descriptor per binding, seen by the compute stage.
    bindings.push_back({i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                        VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
  VkDescriptorSetLayoutCreateInfo set{};
  set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set.bindingCount = bufferCount;
  set.pBindings = bindings.data();
  Status status = vulkan.check(vulkan.instance.vkCreateDescriptorSetLayout(
                                   vulkan.handle, &set, nullptr, &setLayout),
                               "vkCreateDescriptorSetLayout");
  if (status.isError()) {
    setLayout = VK_NULL_HANDLE;
    return status;
  }
  // No push constants: kernels take buffers only.
  VkPipelineLayoutCreateInfo layout{};
  layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout.setLayoutCount = 1;
  layout.pSetLayouts = &setLayout;
  status = vulkan.check(vulkan.instance.vkCreatePipelineLayout(
                            vulkan.handle, &layout, nullptr, &pipelineLayout),
                        "vkCreatePipelineLayout");
  if (status.isError())
    pipelineLayout = VK_NULL_HANDLE;
  return status;
}

// Here the driver compiles the shader, which takes most of the time of a first
// launch.
Status VulkanKernel::create() {
  if (Status status = createLayouts(); status.isError())
    return status;
  VulkanDevice &vulkan = asVulkan(module.device);
  VkComputePipelineCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  create.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  create.stage.module = static_cast<VulkanModule &>(module).handle;
  // A module has several entry points; the name chooses one.
  create.stage.pName = name.c_str();
  create.layout = pipelineLayout;
  Status status = vulkan.check(vulkan.instance.vkCreateComputePipelines(
                                   vulkan.handle, vulkan.pipelines.get(), 1,
                                   &create, nullptr, &pipeline),
                               "compiling kernel '" + name + "'");
  if (status.isError())
    pipeline = VK_NULL_HANDLE;
  return status;
}

void VulkanKernel::destroy() {
  VulkanDevice &vulkan = asVulkan(module.device);
  const VulkanInstance &instance = vulkan.instance;
  instance.vkDestroyPipeline(vulkan.handle, pipeline, nullptr);
  instance.vkDestroyPipelineLayout(vulkan.handle, pipelineLayout, nullptr);
  instance.vkDestroyDescriptorSetLayout(vulkan.handle, setLayout, nullptr);
}

// A part of a buffer is an offset and a range; without bytes it goes to the
// end.
void VulkanKernel::bind(VkDescriptorSet set,
                        const KasRtArgument *arguments) const {
  const VulkanDevice &vulkan = asVulkan(module.device);
  std::vector<VkDescriptorBufferInfo> buffers;
  for (uint32_t i = 0; i < bufferCount; ++i) {
    auto *buffer = static_cast<VulkanBuffer *>(arguments[i].buffer);
    buffers.push_back(
        {buffer->memory.buffer, arguments[i].offset,
         arguments[i].bytes ? arguments[i].bytes : VK_WHOLE_SIZE});
  }
  VkWriteDescriptorSet write{};
  write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
  write.dstSet = set;
  write.descriptorCount = bufferCount;
  // A Vulkan descriptor has no type of its elements: bytes are bytes.
  write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  write.pBufferInfo = buffers.data();
  // One write fills consecutive bindings.
  if (bufferCount)
    vulkan.instance.vkUpdateDescriptorSets(vulkan.handle, 1, &write, 0,
                                           nullptr);
}

Status VulkanKernel::checkSize(const KasRtLaunchSize &size) const {
  if (size.dynamicSharedBytes)
    return invalidArgument("expected 0 dynamic bytes of workgroup memory on "
                           "Vulkan, got " +
                           std::to_string(size.dynamicSharedBytes));
  for (int axis = 0; axis < 3; ++axis)
    // The number of threads is part of the module in Vulkan and cannot be
    // chosen at the launch.
    if (block[axis] && size.block[axis] != block[axis])
      return invalidArgument(
          "expected the " + std::to_string(block[axis]) + " threads along " +
          "xyz"[axis] + " that kernel '" + name + "' is compiled for, got " +
          std::to_string(size.block[axis]));
  return {};
}

void VulkanKernel::dispatch(VkCommandBuffer commands, VkDescriptorSet set,
                            const KasRtLaunchSize &size) const {
  const VulkanInstance &instance = asVulkan(module.device).instance;
  instance.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                             pipeline);
  instance.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                                   pipelineLayout, 0, 1, &set, 0, nullptr);
  instance.vkCmdDispatch(commands, size.grid[0], size.grid[1], size.grid[2]);
}

// Order: check, begin to record, take a descriptor set, record. `record` may
// submit what is there, which frees the sets of earlier launches.
Status VulkanKernel::launch(const KasRtLaunchSize &size,
                            const KasRtArgument *arguments) {
  VulkanDevice &vulkan = asVulkan(module.device);
  if (Status status = checkSize(size); status.isError())
    return status;
  if (Status status = vulkan.record(getAccesses(arguments)); status.isError())
    return status;
  // A set of its own for each launch: an earlier one is in use until it ran.
  VkDescriptorSet set;
  if (Status status = vulkan.allocateDescriptors(setLayout, bufferCount, set);
      status.isError())
    return status;
  bind(set, arguments);
  dispatch(vulkan.commands, set, size);
  return {};
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

Status VulkanDevice::createEvent(std::unique_ptr<KasRtEventImpl> &event) {
  // A queue without valid bits has no clock.
  if (!timestampBits)
    return {KAS_RT_ERROR_LIMIT,
            "expected a device with a clock to time kernels, got " + label};
  auto created = std::make_unique<VulkanEvent>(*this);
  VkQueryPoolCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
  create.queryType = VK_QUERY_TYPE_TIMESTAMP;
  // A pool of one: events are few, and live for different times.
  create.queryCount = 1;
  Status status = check(
      instance.vkCreateQueryPool(handle, &create, nullptr, &created->handle),
      "vkCreateQueryPool");
  if (!status.isError())
    event = std::move(created);
  return status;
}

Status VulkanEvent::release() {
  VulkanDevice &vulkan = asVulkan(device);
  Status status = vulkan.finish();
  vulkan.instance.vkDestroyQueryPool(vulkan.handle, handle, nullptr);
  return status;
}

Status VulkanEvent::record() {
  VulkanDevice &vulkan = asVulkan(device);
  if (Status status = vulkan.record({}); status.isError())
    return status;
  vulkan.recordBarrier();
  // A query must be reset before it is written again.
  vulkan.instance.vkCmdResetQueryPool(vulkan.commands, handle, 0, 1);
  // After all commands before it, and before those that follow the barriers.
  vulkan.instance.vkCmdWriteTimestamp(
      vulkan.commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, handle, 0);
  vulkan.recordBarrier(vulkan.commands);
  return {};
}

Status VulkanEvent::getTicks(uint64_t &ticks) {
  VulkanDevice &vulkan = asVulkan(device);
  return vulkan.check(vulkan.instance.vkGetQueryPoolResults(
                          vulkan.handle, handle, 0, 1, sizeof(ticks), &ticks,
                          sizeof(ticks), VK_QUERY_RESULT_64_BIT),
                      "vkGetQueryPoolResults");
}

Status VulkanEvent::elapsedSince(KasRtEventImpl &start, double &milliseconds) {
  VulkanDevice &vulkan = asVulkan(device);
  if (Status status = vulkan.finish(); status.isError())
    return status;
  uint64_t first = 0, last = 0;
  if (Status status = static_cast<VulkanEvent &>(start).getTicks(first);
      status.isError())
    return status;
  if (Status status = getTicks(last); status.isError())
    return status;
  // The clock may have wrapped around; a stop before the start gives less than
  // nothing.
  // Moved up to the sign bit and back: a difference modulo 2^timestampBits
  // becomes a signed number.
  uint32_t unused = 64 - vulkan.timestampBits;
  int64_t ticks = static_cast<int64_t>((last - first) << unused) >> unused;
  milliseconds = double(ticks) * vulkan.tickNanoseconds * 1e-6;
  return {};
}
