//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which commands of Vulkan must wait for those before them: two that access the
// same bytes, of which one writes them. All others may overlap.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_VULKANHAZARDS_H
#define LIB_RUNTIME_VULKANHAZARDS_H

#include "VulkanDriver.h"

namespace kas::rt {

/// The bytes from `begin` to `end` of a buffer, and whether they are written.
struct VulkanAccess {
  VkBuffer buffer;
  uint64_t begin, end;
  bool isWrite;

  bool conflictsWith(const VulkanAccess &other) const {
    return buffer == other.buffer && begin < other.end && other.begin < end &&
           (isWrite || other.isWrite);
  }
};

/// What commands have accessed since the last barrier.
class VulkanHazards {
public:
  /// Whether a command with these accesses must wait for one before it.
  bool needsBarrier(const std::vector<VulkanAccess> &accesses) const;
  void add(const std::vector<VulkanAccess> &accesses);
  /// After a barrier, which everything later waits for.
  void clear() { pending.clear(); }
  bool empty() const { return pending.empty(); }

private:
  std::vector<VulkanAccess> pending;
};

} // namespace kas::rt

#endif // LIB_RUNTIME_VULKANHAZARDS_H
