//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a driver of Vulkan has compiled, kept on disk for the next process.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_VULKANPIPELINECACHE_H
#define LIB_RUNTIME_VULKANPIPELINECACHE_H

#include "VulkanDriver.h"

namespace kas::rt {

/// A cache of pipelines with a file of its own for each device and version of
/// its driver, in the folder of what kas has compiled (`KAS_CACHE_DIR`). It
/// only saves time: without a folder, and whatever is wrong with the file,
/// kernels are compiled anew, and no call fails.
class VulkanPipelineCache {
public:
  /// Makes the driver's cache, of what is in the file where that is whole and
  /// was written by this driver for this device.
  void open(const VulkanInstance &driver, VkPhysicalDevice physical,
            VkDevice device);
  /// Writes the file where pipelines were added, and destroys the driver's
  /// cache. `isUsable`: the device has not been lost.
  void close(bool isUsable);

  /// Null: there is none.
  VkPipelineCache get() const { return handle; }

private:
  void save() const;

  const VulkanInstance *driver = nullptr;
  VkDevice device = VK_NULL_HANDLE;
  VkPipelineCache handle = VK_NULL_HANDLE;
  /// The file, and what it has; both empty where there is none.
  std::string path, known;
};

} // namespace kas::rt

#endif // LIB_RUNTIME_VULKANPIPELINECACHE_H
