//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What kernels for GPUs move and multiply, counted in their code before it is
// lowered, and a time that is modelled from it: nothing is measured.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TOOLS_KASBENCH_KERNELMODEL_H
#define KAS_TOOLS_KASBENCH_KERNELMODEL_H

#include "kas/Pipelines/GPU/GPU.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace kas {

struct KernelModel {
  std::string name;
  int64_t blocks = 0, threads = 0;
  /// Of all threads, to and from global memory, whatever a cache keeps.
  double readBytes = 0, writtenBytes = 0;
  /// Instructions of warps that do so, and those of them with two bytes or
  /// less for each lane.
  double loads = 0, narrowLoads = 0, stores = 0, narrowStores = 0;
  /// Cycles of one processor's units for all products.
  double productCycles = 0;
  /// `cuBLASLt` or `cuDNN` where it is left to one.
  llvm::StringRef library;

  /// On a device of so many processors, in microseconds.
  double getTime(int64_t processors) const;
};

/// Those of the kernels that the front half makes of a copy of `module`.
llvm::Expected<std::vector<KernelModel>>
modelKernels(mlir::ModuleOp module, const GPUFrontOptions &options);

} // namespace kas

#endif // KAS_TOOLS_KASBENCH_KERNELMODEL_H
