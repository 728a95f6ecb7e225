//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random kernels for tests: legal by construction, small at their binding, with
// branches and all steps of the tensor level.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_RANDOMKERNEL_H
#define KAS_TEST_LIB_RANDOMKERNEL_H

#include "kas/Dialect/Kas/IR/KasDag.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace kas::test {

struct RandomKernelOptions {
  unsigned minSteps = 2, maxSteps = 12;
  /// Of any tensor between steps.
  int64_t maxElements = 2048;
  /// How many of a hundred steps are two that a canonical rewrite takes away or
  /// moves.
  unsigned redexPercent = 0;
  /// How many of a hundred steps look back: a `cumsum`, a `scan`, or a causal
  /// shift, unfold or convolution.
  unsigned scanPercent = 0;
};

/// Adds kernel number `seed`, called `name`, to `module`, and the operators it
/// applies when they are not there. It is solved, over symbols with one
/// binding. Steps that would lose the precision of f32 for reasons of their own
/// (powers of large numbers, differences of equal ones) are not made, so
/// strategies may be compared with a tolerance relative to the largest
/// magnitude; weights are to be in [-1, 1). The same seed gives the same kernel
/// on every machine.
KernelOp addRandomKernel(mlir::ModuleOp module, llvm::StringRef name,
                         uint64_t seed,
                         const RandomKernelOptions &options = {});

} // namespace kas::test

#endif // KAS_TEST_LIB_RANDOMKERNEL_H
