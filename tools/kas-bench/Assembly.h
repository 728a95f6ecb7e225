//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Facts about the speed of kernels for NVIDIA's GPUs from their machine code,
// without such a GPU.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TOOLS_KASBENCH_ASSEMBLY_H
#define KAS_TOOLS_KASBENCH_ASSEMBLY_H

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace kas {

/// The loop with the most products. Cycles are those of a whole processor for
/// one warp, if nothing else were to be done.
struct KernelLoop {
  /// All that is issued, and the multiply-adds among it: FFMA of f32, or matrix
  /// instructions.
  int64_t instructions = 0, products = 0, matrixProducts = 0;
  /// Of the units that multiply; of the four schedulers; of the workgroup
  /// memory at 128 bytes per cycle, without conflicts.
  double productCycles = 0, issueCycles = 0, memoryCycles = 0;

  /// The share of the time for which products could be computed at most.
  double getBound() const;
};

/// Instructions that access global memory with two bytes or less for a thread.
struct NarrowAccesses {
  int64_t loads = 0, stores = 0;
};

struct KernelAssembly {
  std::string name;
  int64_t registers = 0, spilledBytes = 0, sharedBytes = 0;
  /// Whether products of warpgroups wait for each other, as ptxas warns.
  bool isSerialized = false;
  KernelLoop loop;
  /// Nothing where there was no disassembler.
  std::optional<NarrowAccesses> narrow;

  /// Threads of a processor that run at once, as a share of what it holds.
  double getOccupancy(int64_t threads) const;
};

/// Those of each kernel of a text in PTX, by its name.
llvm::StringMap<NarrowAccesses> readNarrowAccesses(llvm::StringRef ptx);

/// Assembles `ptx` for `chip` with the `ptxas` of the CUDA toolkit, and reads
/// the code with `nvdisasm`, which is looked for beside it and in PATH, or is
/// `disassembler` if that is not empty. Without one, loops are empty.
llvm::Expected<std::vector<KernelAssembly>>
readAssembly(llvm::StringRef ptx, llvm::StringRef chip,
             llvm::StringRef disassembler);

} // namespace kas

#endif // KAS_TOOLS_KASBENCH_ASSEMBLY_H
