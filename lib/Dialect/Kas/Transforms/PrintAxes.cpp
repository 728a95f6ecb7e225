//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Prints the properties of operators along their axes.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Analysis/AxisProperties.h"
#include "kas/Dialect/Kas/IR/NamedOperator.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace kas;

namespace kas {
#define GEN_PASS_DEF_KASPRINTAXESPASS
#include "kas/Dialect/Kas/Transforms/Passes.h.inc"
} // namespace kas

static InFlightDiagnostic emitRemark(OperatorOp op, const SpaceAxis &axis) {
  return op.emitRemark() << "axis " << axis.output << " of '" << op.getSymName()
                         << "': ";
}

namespace {
struct KasPrintAxesPass
    : public kas::impl::KasPrintAxesPassBase<KasPrintAxesPass> {
  using KasPrintAxesPassBase::KasPrintAxesPassBase;

  /// The options `operator` and `bind`.
  LogicalResult printNamed() {
    std::string text = llvm::join(bind, ",");
    auto named = getNamedOperator(getOperation(), operatorName, text);
    if (failed(named))
      return failure();
    auto [op, binding] = *named;
    auto emitError = [op = op]() mutable { return op.emitError(); };
    OpBuilder builder(op);
    FailureOr<OperatorOp> concrete =
        specialize(builder, op, binding, op.getSymName(), emitError);
    if (failed(concrete))
      return failure();
    LogicalResult result = success();
    for (const SpaceAxis &axis : getOperatorAxes(op)) {
      FailureOr<AxisProperties> properties =
          getAxisProperties(*concrete, axis.output, axis.input, emitError);
      if (failed(properties)) {
        result = failure();
        break;
      }
      emitRemark(op, axis) << "reads " << properties->fewestRead << " to "
                           << properties->mostRead << " of " << properties->size
                           << " positions at " << text << ", translations "
                           << kas::toString(properties->translations);
    }
    concrete->erase();
    return result;
  }

  void runOnOperation() override {
    getOperation()->walk([](OperatorOp op) {
      if (!op.isConcrete())
        for (const SpaceAxis &axis : getOperatorAxes(op))
          emitRemark(op, axis)
              << "weights fit "
              << (fitsAnyGrid(op, axis) ? "any grid" : "one grid");
    });
    if (!operatorName.empty() && failed(printNamed()))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
