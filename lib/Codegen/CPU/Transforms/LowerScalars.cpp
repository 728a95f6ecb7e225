//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowers operations on numbers that few programs have, where there are any.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/CPU/Passes.h"
#include "mlir/Conversion/ComplexToLLVM/ComplexToLLVM.h"
#include "mlir/Conversion/ComplexToStandard/ComplexToStandard.h"
#include "mlir/Conversion/MathToFuncs/MathToFuncs.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"

namespace kas::codegen {
#define GEN_PASS_DEF_LOWERSCALARS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace mlir;

namespace {
struct LowerScalars : kas::codegen::impl::LowerScalarsBase<LowerScalars> {
  void runOnOperation() override {
    bool hasPowers = false, hasComplex = false;
    getOperation().walk([&](Operation *op) {
      hasPowers |= isa<math::IPowIOp, math::FPowIOp>(op);
      hasComplex |= isa<complex::ComplexDialect>(op->getDialect());
    });
    if (!hasPowers && !hasComplex)
      return markAllAnalysesPreserved();
    OpPassManager manager(ModuleOp::getOperationName());
    if (hasComplex)
      manager.addNestedPass<func::FuncOp>(createConvertComplexToStandardPass());
    if (hasPowers)
      manager.addPass(createConvertMathToFuncs());
    if (hasComplex)
      manager.addNestedPass<func::FuncOp>(createConvertComplexToLLVMPass());
    if (failed(runPipeline(manager, getOperation())))
      signalPassFailure();
  }
};
} // namespace
