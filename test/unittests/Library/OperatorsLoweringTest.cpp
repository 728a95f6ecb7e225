//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The Presburger library proves that each lowering of the named operators
// computes them.
//
//===----------------------------------------------------------------------===//

#include "OperatorsTestUtil.h"
#include "kas/Conversion/KasToAffine.h"
#include "kas/Conversion/KasToLinalg.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/Dialect/Kas/Analysis/VerifyLowering.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/Library/Operators.h"
#include "kas/Pipelines/CPU.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

using namespace kas;
using namespace kas::library;
using namespace mlir;

namespace {
class OperatorLowerings : public testing::TestWithParam<formulas::Formula> {
protected:
  OperatorLowerings() {
    DialectRegistry registry;
    registry.insert<KasDialect>();
    registerCPUPipelineDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  static void TearDownTestSuite() {
    llvm::sort(milliseconds);
    if (!milliseconds.empty())
      llvm::outs() << milliseconds.size() << " lowerings of named operators, "
                   << "median "
                   << std::to_string(milliseconds[milliseconds.size() / 2])
                   << " ms, largest " << std::to_string(milliseconds.back())
                   << " ms\n";
  }

  /// Lowers the named operator at each of its bindings and compares.
  void check(llvm::function_ref<LogicalResult(RewriterBase &, ApplyOp)> lower) {
    for (const formulas::Sizes &sizes : GetParam().bindings) {
      OwningOpRef<ModuleOp> parsed =
          parseNamedOperator(&context, GetParam().name);
      auto op = parsed->lookupSymbol<OperatorOp>(GetParam().name);
      OpBuilder builder(op);
      FailureOr<OperatorOp> concrete =
          specialize(builder, op, getTestBinding(op, sizes), "concrete",
                     [&] { return op.emitError(); });
      ASSERT_TRUE(succeeded(concrete));
      OwningOpRef<ModuleOp> module = createOperatorModule(*concrete);
      auto function = module->lookupSymbol<func::FuncOp>(operatorFunctionName);
      auto apply = *function.getOps<ApplyOp>().begin();
      OperatorOp callee = apply.getOperator();
      IRRewriter rewriter(&context);
      ASSERT_TRUE(succeeded(lower(rewriter, apply)));
      auto start = std::chrono::steady_clock::now();
      LoweringResult result = compareLowering(
          callee, function.getArguments(),
          function.getBody().front().getTerminator()->getOperand(0));
      std::chrono::duration<double, std::milli> time =
          std::chrono::steady_clock::now() - start;
      milliseconds.push_back(time.count());
      EXPECT_EQ(result.verdict, LoweringVerdict::Equal) << result.message;
    }
  }

  MLIRContext context;
  static std::vector<double> milliseconds;
};

std::vector<double> OperatorLowerings::milliseconds;
} // namespace

TEST_P(OperatorLowerings, AffineLoopsAreProven) {
  check([](RewriterBase &rewriter, ApplyOp apply) {
    return convertToAffine(rewriter, apply);
  });
}

TEST_P(OperatorLowerings, LinalgIsProven) {
  for (bool namedOps : {true, false})
    check([&](RewriterBase &rewriter, ApplyOp apply) {
      LinalgOptions options;
      options.namedOps = namedOps;
      std::string reason;
      return convertToLinalg(rewriter, apply, options, reason);
    });
}

TEST_P(OperatorLowerings, StagesAreProven) {
  check([](RewriterBase &, ApplyOp apply) {
    auto module = apply->getParentOfType<ModuleOp>();
    PassManager manager(module.getContext(), ModuleOp::getOperationName());
    manager.addPass(createKasRFactorPass());
    return manager.run(module);
  });
}

INSTANTIATE_TEST_SUITE_P(All, OperatorLowerings,
                         testing::ValuesIn(formulas::getFormulas()), getName);
