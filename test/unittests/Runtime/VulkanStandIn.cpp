//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stand-in for Vulkan's loader: it hands all over to the real one, so that
// kernels run and the validation layer looks on, but lets calls fail and can
// make a device look like one without a clock or with memory of its own.
//
//===----------------------------------------------------------------------===//

#include "StandIn.h"
#include <cstring>
#include <dlfcn.h>
#include <set>
#include <string>
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

// The functions that can fail.
#define KAS_FALLIBLE_FUNCTIONS(X)                                              \
  X(vkCreateInstance)                                                          \
  X(vkEnumerateInstanceLayerProperties)                                        \
  X(vkCreateDebugUtilsMessengerEXT)                                            \
  X(vkEnumeratePhysicalDevices)                                                \
  X(vkEnumerateDeviceExtensionProperties)                                      \
  X(vkCreateDevice)                                                            \
  X(vkDeviceWaitIdle)                                                          \
  X(vkCreateCommandPool)                                                       \
  X(vkResetCommandPool)                                                        \
  X(vkAllocateCommandBuffers)                                                  \
  X(vkBeginCommandBuffer)                                                      \
  X(vkEndCommandBuffer)                                                        \
  X(vkQueueSubmit)                                                             \
  X(vkCreateFence)                                                             \
  X(vkWaitForFences)                                                           \
  X(vkResetFences)                                                             \
  X(vkCreateBuffer)                                                            \
  X(vkAllocateMemory)                                                          \
  X(vkBindBufferMemory)                                                        \
  X(vkMapMemory)                                                               \
  X(vkCreateShaderModule)                                                      \
  X(vkCreateDescriptorSetLayout)                                               \
  X(vkCreatePipelineLayout)                                                    \
  X(vkCreateComputePipelines)                                                  \
  X(vkCreateDescriptorPool)                                                    \
  X(vkResetDescriptorPool)                                                     \
  X(vkAllocateDescriptorSets)                                                  \
  X(vkCreateQueryPool)                                                         \
  X(vkGetQueryPoolResults)

// Those of which the calls are counted.
#define KAS_COUNTED_FUNCTIONS(X)                                               \
  X(vkCmdDispatch)                                                             \
  X(vkCmdExecuteCommands)                                                      \
  X(vkCmdPipelineBarrier)

namespace {

struct State : StandInCalls {
  bool isDiscrete = false, hasClock = true, hasDevices = true, hasMemory = true;
  size_t initialPipelineBytes = 0;
  std::set<std::string> hidden;
};

State state;

/// The result that a call must give instead of its own, or success.
VkResult enter(const char *function) {
  return static_cast<VkResult>(state.count(function));
}

enum Index {
#define KAS_INDEX(name) Index_##name,
  KAS_FALLIBLE_FUNCTIONS(KAS_INDEX) KAS_COUNTED_FUNCTIONS(KAS_INDEX)
#undef KAS_INDEX
};

/// Is called instead of the real function.
template <int index, typename Pointer>
struct Wrapper;
template <int index, typename... Arguments>
struct Wrapper<index, VkResult(VKAPI_PTR *)(Arguments...)> {
  static inline VkResult(VKAPI_PTR *real)(Arguments...) = nullptr;
  static inline const char *name = nullptr;
  static VKAPI_ATTR VkResult VKAPI_CALL call(Arguments... arguments) {
    if (VkResult result = enter(name); result != VK_SUCCESS)
      return result;
    return real(arguments...);
  }
};

template <int index, typename... Arguments>
struct Wrapper<index, void(VKAPI_PTR *)(Arguments...)> {
  static inline void(VKAPI_PTR *real)(Arguments...) = nullptr;
  static inline const char *name = nullptr;
  static VKAPI_ATTR void VKAPI_CALL call(Arguments... arguments) {
    ++state.calls[name];
    real(arguments...);
  }
};

PFN_vkCreatePipelineCache realCreateCache;
VKAPI_ATTR VkResult VKAPI_CALL
createCache(VkDevice device, const VkPipelineCacheCreateInfo *info,
            const VkAllocationCallbacks *callbacks, VkPipelineCache *cache) {
  if (VkResult result = enter("vkCreatePipelineCache"); result != VK_SUCCESS)
    return result;
  state.initialPipelineBytes = info->initialDataSize;
  // Lavapipe keeps nothing; what it gets is not looked at.
  return realCreateCache(device, info, callbacks, cache);
}

/// Pipelines of 100 bytes after the header.
PFN_vkGetPipelineCacheData realCacheData;
VKAPI_ATTR VkResult VKAPI_CALL getCacheData(VkDevice device,
                                            VkPipelineCache cache, size_t *size,
                                            void *data) {
  if (VkResult result = enter("vkGetPipelineCacheData"); result != VK_SUCCESS)
    return result;
  size_t header = sizeof(VkPipelineCacheHeaderVersionOne);
  if (data) {
    VkResult result = realCacheData(device, cache, &header, data);
    std::memset(static_cast<char *>(data) + header, 'p', 100);
    *size = header + 100;
    return result;
  }
  *size = header + 100;
  return VK_SUCCESS;
}

PFN_vkGetPhysicalDeviceMemoryProperties realMemoryProperties;
PFN_vkGetPhysicalDeviceQueueFamilyProperties realQueueProperties;
PFN_vkEnumeratePhysicalDevices realEnumerate;

/// As a graphics card: the same memory once for itself, once for the host.
VKAPI_ATTR void VKAPI_CALL getMemoryProperties(
    VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties *properties) {
  realMemoryProperties(device, properties);
  if (!state.isDiscrete)
    return;
  VkMemoryType type = properties->memoryTypes[0];
  properties->memoryTypeCount = 2;
  type.propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  properties->memoryTypes[0] = type;
  type.propertyFlags = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                       VK_MEMORY_PROPERTY_HOST_COHERENT_BIT |
                       VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  properties->memoryTypes[1] = type;
}

PFN_vkGetBufferMemoryRequirements realRequirements;
VKAPI_ATTR void VKAPI_CALL getRequirements(VkDevice device, VkBuffer buffer,
                                           VkMemoryRequirements *needs) {
  realRequirements(device, buffer, needs);
  if (state.isDiscrete)
    needs->memoryTypeBits = 3;
  if (!state.hasMemory)
    needs->memoryTypeBits = 0;
}

PFN_vkAllocateMemory realAllocate;
VKAPI_ATTR VkResult VKAPI_CALL
allocateMemory(VkDevice device, const VkMemoryAllocateInfo *info,
               const VkAllocationCallbacks *callbacks, VkDeviceMemory *memory) {
  if (VkResult result = enter("vkAllocateMemory"); result != VK_SUCCESS)
    return result;
  VkMemoryAllocateInfo real = *info;
  if (state.isDiscrete)
    real.memoryTypeIndex = 0;
  return realAllocate(device, &real, callbacks, memory);
}

VKAPI_ATTR void VKAPI_CALL
getQueueProperties(VkPhysicalDevice device, uint32_t *count,
                   VkQueueFamilyProperties *properties) {
  realQueueProperties(device, count, properties);
  for (uint32_t i = 0; properties && !state.hasClock && i < *count; ++i)
    properties[i].timestampValidBits = 0;
}

VKAPI_ATTR VkResult VKAPI_CALL enumerateDevices(VkInstance instance,
                                                uint32_t *count,
                                                VkPhysicalDevice *devices) {
  if (VkResult result = enter("vkEnumeratePhysicalDevices");
      result != VK_SUCCESS)
    return result;
  VkResult result = realEnumerate(instance, count, devices);
  if (!state.hasDevices)
    *count = 0;
  return result;
}

} // namespace

static const StandInControls controls = {
    [] { state = State(); },
    [](const char *function, int nth, int error) {
      state.fail(function, nth, error);
    },
    [] { return state.hasFailed; },
    [](const char *function) { state.hidden.insert(function); },
    [](const char *function) { return state.calls[function]; },
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    [](bool discrete) { state.isDiscrete = discrete; },
    [](bool clock) { state.hasClock = clock; },
    [](bool devices) { state.hasDevices = devices; },
    [](bool memory) { state.hasMemory = memory; },
    [] { return state.initialPipelineBytes; }};

extern "C" {
__attribute__((visibility("default"))) const StandInControls *standInControls =
    &controls;

__attribute__((visibility("default"))) PFN_vkVoidFunction VKAPI_CALL
vkGetInstanceProcAddr(VkInstance instance, const char *name) {
  static void *loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!loader || state.hidden.count(name))
    return nullptr;
  auto getFunction = reinterpret_cast<PFN_vkGetInstanceProcAddr>(
      dlsym(loader, "vkGetInstanceProcAddr"));
  PFN_vkVoidFunction real = getFunction(instance, name);
#define KAS_REPLACE(function, original, replacement)                           \
  if (real && std::strcmp(name, #function) == 0) {                             \
    original = reinterpret_cast<PFN_##function>(real);                         \
    return reinterpret_cast<PFN_vkVoidFunction>(replacement);                  \
  }
  KAS_REPLACE(vkGetPhysicalDeviceMemoryProperties, realMemoryProperties,
              getMemoryProperties)
  KAS_REPLACE(vkGetBufferMemoryRequirements, realRequirements, getRequirements)
  KAS_REPLACE(vkAllocateMemory, realAllocate, allocateMemory)
  KAS_REPLACE(vkGetPhysicalDeviceQueueFamilyProperties, realQueueProperties,
              getQueueProperties)
  KAS_REPLACE(vkEnumeratePhysicalDevices, realEnumerate, enumerateDevices)
  KAS_REPLACE(vkCreatePipelineCache, realCreateCache, createCache)
  KAS_REPLACE(vkGetPipelineCacheData, realCacheData, getCacheData)
#undef KAS_REPLACE
#define KAS_WRAP(function)                                                     \
  if (real && std::strcmp(name, #function) == 0) {                             \
    using Wrapped = Wrapper<Index_##function, PFN_##function>;                 \
    Wrapped::real = reinterpret_cast<PFN_##function>(real);                    \
    Wrapped::name = #function;                                                 \
    return reinterpret_cast<PFN_vkVoidFunction>(&Wrapped::call);               \
  }
  KAS_FALLIBLE_FUNCTIONS(KAS_WRAP)
  KAS_COUNTED_FUNCTIONS(KAS_WRAP)
#undef KAS_WRAP
  return real;
}
}
