//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What tests of lowered functions share: a context, and the way to the CPU.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_UNITTESTS_CONVERSION_LOWERINGTEST_H
#define KAS_TEST_UNITTESTS_CONVERSION_LOWERINGTEST_H

#include "kas/ExecutionEngine/JIT.h"
#include "mlir/IR/BuiltinOps.h"
#include "gtest/gtest.h"
#include <memory>

namespace kas::test {

class LoweringTest : public testing::Test {
protected:
  /// Loads all dialects of the strategy to the CPU.
  LoweringTest();

  mlir::MLIRContext context;
};

/// Runs `module`, which is lowered to linalg or affine and changes, through the
/// pipeline for one thread, and compiles it without optimizing.
void compile(mlir::ModuleOp module,
             std::unique_ptr<execution::CompiledModule> &compiled);

} // namespace kas::test

#endif // KAS_TEST_UNITTESTS_CONVERSION_LOWERINGTEST_H
