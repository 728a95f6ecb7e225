//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions of Vulkan that the runtime calls, found at run time.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_VULKANDRIVER_H
#define LIB_RUNTIME_VULKANDRIVER_H

#include "Library.h"
#include <vector>
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

namespace kas::rt {

#define KAS_VULKAN_GLOBAL_FUNCTIONS(X)                                         \
  X(vkCreateInstance)                                                          \
  X(vkEnumerateInstanceLayerProperties)

#define KAS_VULKAN_FUNCTIONS(X)                                                \
  X(vkDestroyInstance)                                                         \
  X(vkEnumeratePhysicalDevices)                                                \
  X(vkGetPhysicalDeviceProperties2)                                            \
  X(vkGetPhysicalDeviceFeatures2)                                              \
  X(vkGetPhysicalDeviceQueueFamilyProperties)                                  \
  X(vkGetPhysicalDeviceMemoryProperties)                                       \
  X(vkEnumerateDeviceExtensionProperties)                                      \
  X(vkCreateDevice)                                                            \
  X(vkDestroyDevice)                                                           \
  X(vkGetDeviceQueue)                                                          \
  X(vkDeviceWaitIdle)                                                          \
  X(vkCreateCommandPool)                                                       \
  X(vkDestroyCommandPool)                                                      \
  X(vkResetCommandPool)                                                        \
  X(vkAllocateCommandBuffers)                                                  \
  X(vkFreeCommandBuffers)                                                      \
  X(vkBeginCommandBuffer)                                                      \
  X(vkEndCommandBuffer)                                                        \
  X(vkQueueSubmit)                                                             \
  X(vkCreateFence)                                                             \
  X(vkDestroyFence)                                                            \
  X(vkWaitForFences)                                                           \
  X(vkResetFences)                                                             \
  X(vkCreateBuffer)                                                            \
  X(vkDestroyBuffer)                                                           \
  X(vkGetBufferMemoryRequirements)                                             \
  X(vkAllocateMemory)                                                          \
  X(vkFreeMemory)                                                              \
  X(vkBindBufferMemory)                                                        \
  X(vkMapMemory)                                                               \
  X(vkCreateShaderModule)                                                      \
  X(vkDestroyShaderModule)                                                     \
  X(vkCreateDescriptorSetLayout)                                               \
  X(vkDestroyDescriptorSetLayout)                                              \
  X(vkCreatePipelineLayout)                                                    \
  X(vkDestroyPipelineLayout)                                                   \
  X(vkCreateComputePipelines)                                                  \
  X(vkCreatePipelineCache)                                                     \
  X(vkDestroyPipelineCache)                                                    \
  X(vkGetPipelineCacheData)                                                    \
  X(vkDestroyPipeline)                                                         \
  X(vkCreateDescriptorPool)                                                    \
  X(vkDestroyDescriptorPool)                                                   \
  X(vkResetDescriptorPool)                                                     \
  X(vkAllocateDescriptorSets)                                                  \
  X(vkUpdateDescriptorSets)                                                    \
  X(vkCreateQueryPool)                                                         \
  X(vkDestroyQueryPool)                                                        \
  X(vkGetQueryPoolResults)                                                     \
  X(vkCmdBindPipeline)                                                         \
  X(vkCmdBindDescriptorSets)                                                   \
  X(vkCmdDispatch)                                                             \
  X(vkCmdExecuteCommands)                                                      \
  X(vkCmdPipelineBarrier)                                                      \
  X(vkCmdCopyBuffer)                                                           \
  X(vkCmdFillBuffer)                                                           \
  X(vkCmdResetQueryPool)                                                       \
  X(vkCmdWriteTimestamp)

/// The library, an instance of Vulkan and the functions of both.
struct VulkanInstance {
  VulkanInstance() = default;
  VulkanInstance(const VulkanInstance &) = delete;
  ~VulkanInstance();

  /// Loads the library and makes the instance; with the validation layer where
  /// the environment asks for it.
  Status open();
  /// Destroys the instance; what its destruction reports is a message, too.
  void close();
  /// The devices with compute queues and Vulkan 1.1, in the loader's order.
  Status listDevices(std::vector<VkPhysicalDevice> &devices) const;
  /// The messages of the validation layer since the last call.
  Status takeMessages();

  Library library;
  VkInstance handle = VK_NULL_HANDLE;
  PFN_vkGetInstanceProcAddr getFunction = nullptr;
#define KAS_DECLARE(name) PFN_##name name = nullptr;
  KAS_VULKAN_GLOBAL_FUNCTIONS(KAS_DECLARE)
  KAS_VULKAN_FUNCTIONS(KAS_DECLARE)
#undef KAS_DECLARE
  std::vector<std::string> messages;

private:
  Status loadLibrary();
  Status createInstance(bool validate);

  bool isValidating = false;
  VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
};

/// Success, or the error `result` of the call `what`.
Status checkVulkan(VkResult result, const std::string &what);

/// The family of queues that computes, or none: compute only where there is
/// one, as graphics does not get in its way there.
bool findComputeQueue(const VulkanInstance &instance, VkPhysicalDevice device,
                      uint32_t &family, uint32_t &timestampBits);

} // namespace kas::rt

#endif // LIB_RUNTIME_VULKANDRIVER_H
