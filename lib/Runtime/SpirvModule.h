//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The facts about a SPIR-V module that the runtime needs before a driver sees
// it: its kernels, what each binds and how large its workgroups are. The
// structure is checked on the way; the rest is spirv-val's task.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_SPIRVMODULE_H
#define LIB_RUNTIME_SPIRVMODULE_H

#include "Status.h"
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace kas::rt {

struct SpirvKernel {
  std::string name;
  /// Threads of a workgroup; zeros when the module does not fix them.
  std::array<uint32_t, 3> block = {0, 0, 0};
  /// One more than the largest binding that the kernel reaches.
  uint32_t bufferCount = 0;
  /// Bindings of buffers that the module says it does not write (NonWritable).
  std::set<uint32_t> readOnly;
  /// Bytes of the workgroup memory that it reaches.
  uint64_t sharedBytes = 0;
};

struct SpirvModule {
  std::vector<uint32_t> words;
  std::vector<SpirvKernel> kernels;

  Status read(const void *data, size_t bytes);
  const SpirvKernel *find(const std::string &name) const;
};

} // namespace kas::rt

#endif // LIB_RUNTIME_SPIRVMODULE_H
