//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowers operations on numbers that few programs have, where there are any:
// complex numbers, integer powers, tests of floats, and operations on `index`
// that upstream has for integers only. Looks at the module first: a pipeline of
// upstream's passes would cost each of the many modules without them.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/CPU/Passes.h"
#include "mlir/Conversion/ComplexToLLVM/ComplexToLLVM.h"
#include "mlir/Conversion/ComplexToStandard/ComplexToStandard.h"
#include "mlir/Conversion/MathToFuncs/MathToFuncs.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASLOWERSCALARSPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace mlir;

//===----------------------------------------------------------------------===//
// Operations that upstream's conversions to LLVM do not take
//===----------------------------------------------------------------------===//

/// `|x|` compared with `bound`, for scalars and vectors. Ordered predicates:
/// false for NaN.
static Value compareMagnitude(PatternRewriter &rewriter, Location loc, Value x,
                              arith::CmpFPredicate predicate,
                              const APFloat &bound) {
  Value magnitude = math::AbsFOp::create(rewriter, loc, x);
  return arith::CmpFOp::create(
      rewriter, loc, predicate, magnitude,
      createScalarOrSplatConstant(rewriter, loc, x.getType(), bound));
}

namespace {

/// `math.isinf`: the magnitude is infinity.
struct LowerIsInf : OpRewritePattern<math::IsInfOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::IsInfOp op,
                                PatternRewriter &rewriter) const override {
    Value x = op.getOperand();
    auto type = cast<FloatType>(getElementTypeOrSelf(x.getType()));
    rewriter.replaceOp(
        op,
        compareMagnitude(rewriter, op.getLoc(), x, arith::CmpFPredicate::OEQ,
                         APFloat::getInf(type.getFloatSemantics())));
    return success();
  }
};

/// `math.isnormal`: the magnitude is at least the smallest normal number, and
/// not infinity.
struct LowerIsNormal : OpRewritePattern<math::IsNormalOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::IsNormalOp op,
                                PatternRewriter &rewriter) const override {
    Value x = op.getOperand();
    auto type = cast<FloatType>(getElementTypeOrSelf(x.getType()));
    const llvm::fltSemantics &semantics = type.getFloatSemantics();
    Value isLarge =
        compareMagnitude(rewriter, op.getLoc(), x, arith::CmpFPredicate::OGE,
                         APFloat::getSmallestNormalized(semantics));
    Value isFinite =
        compareMagnitude(rewriter, op.getLoc(), x, arith::CmpFPredicate::OLT,
                         APFloat::getInf(semantics));
    rewriter.replaceOpWithNewOp<arith::AndIOp>(op, isLarge, isFinite);
    return success();
  }
};

/// Computes on integers of 64 bits what is on `index`.
template <typename OpTy>
struct LowerOnIndex : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!op->getResult(0).getType().isIndex())
      return failure();
    Type wide = rewriter.getI64Type();
    IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand, arith::IndexCastOp::create(rewriter, op.getLoc(),
                                                      wide, operand)
                               .getResult());
    // The clone keeps the attributes; only its first result is of `index`, the
    // overflow flag of `addui_extended` stays.
    Operation *made = rewriter.clone(*op, mapping);
    made->getResult(0).setType(wide);
    rewriter.setInsertionPointAfter(made);
    SmallVector<Value> results(made->getResults());
    results[0] = arith::IndexCastOp::create(
        rewriter, op.getLoc(), rewriter.getIndexType(), results[0]);
    rewriter.replaceOp(op, results);
    return success();
  }
};

struct LowerScalars
    : kas::codegen::impl::KasLowerScalarsPassBase<LowerScalars> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<LowerIsInf, LowerIsNormal, LowerOnIndex<math::IPowIOp>,
                 LowerOnIndex<arith::AddUIExtendedOp>>(&getContext());
    math::populateExpansionPatterns(patterns, {"clampf"});
    // One traversal of the module decides which of the passes have work.
    FrozenRewritePatternSet frozen(std::move(patterns));
    bool hasPowers = false, hasComplex = false, hasMore = false;
    getOperation().walk([&](Operation *op) {
      hasMore |= isa<math::IsInfOp, math::IsNormalOp, math::IPowIOp,
                     math::ClampFOp, arith::AddUIExtendedOp>(op);
      hasPowers |= isa<math::IPowIOp, math::FPowIOp>(op);
      hasComplex |= isa<complex::ComplexDialect>(op->getDialect());
    });
    if (!hasPowers && !hasComplex && !hasMore)
      return markAllAnalysesPreserved();
    if (hasMore)
      for (auto function : getOperation().getOps<func::FuncOp>())
        walkAndApplyPatterns(function, frozen);
    // Complex arithmetic becomes arithmetic on the parts, powers become calls
    // of generated functions, and complex numbers pairs in the end.
    OpPassManager manager(ModuleOp::getOperationName());
    // These run on the whole module, and only those that have work.
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
