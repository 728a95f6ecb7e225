//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/Common/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kas::codegen {
#define GEN_PASS_DEF_CHECKSHAPES
#include "kas/Codegen/Common/Passes.h.inc"
} // namespace kas::codegen

using namespace mlir;

static bool isDynamic(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  return shaped && !shaped.hasStaticShape();
}

/// Upstream does not lower functions on buffers with steps of 0, and says
/// nothing.
static bool hasEmptyRows(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  return shaped && shaped.hasStaticShape() && shaped.getRank() > 1 &&
         llvm::is_contained(shaped.getShape().drop_front(), 0);
}

namespace {
struct CheckShapes : kas::codegen::impl::CheckShapesBase<CheckShapes> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    // Not an error of the op: it may be long, and would be printed.
    auto fail = [&](Location loc, const Twine &what, Type type) {
      emitError(loc) << "expected "
                     << (isDynamic(type) ? "static shapes"
                                         : "rows with elements")
                     << " of the arguments and results of compiled functions, "
                        "for "
                     << what << " of '@" << function.getSymName() << "' got "
                     << type;
      signalPassFailure();
    };
    auto isRefused = [](Type type) {
      return isDynamic(type) || hasEmptyRows(type);
    };
    for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
      if (isRefused(type))
        return fail(function.isExternal()
                        ? function.getLoc()
                        : function.getArgument(index).getLoc(),
                    "argument " + Twine(index), type);
    for (auto [index, type] : llvm::enumerate(function.getResultTypes()))
      if (isRefused(type))
        return fail(function.getLoc(), "result " + Twine(index), type);
  }
};
} // namespace
