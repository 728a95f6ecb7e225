//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Differentiation/Differentiate.h"
#include "kas/Differentiation/Passes.h"
#include "kas/Models/Site.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace kas {
#define GEN_PASS_DEF_KASDIFFERENTIATEPASS
#include "kas/Differentiation/Passes.h.inc"
} // namespace kas

using namespace mlir;
using namespace kas;

/// The position of the argument that `text` names or numbers.
static std::optional<unsigned> findArgument(func::FuncOp function,
                                            StringRef text) {
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    auto name =
        function.getArgAttrOfType<StringAttr>(index, argumentNameAttributeName);
    if (name && name.getValue() == text)
      return index;
  }
  unsigned number;
  if (text.getAsInteger(10, number) || number >= function.getNumArguments())
    return std::nullopt;
  return number;
}

namespace {

struct KasDifferentiatePass
    : kas::impl::KasDifferentiatePassBase<KasDifferentiatePass> {
  using KasDifferentiatePassBase::KasDifferentiatePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto target = module.lookupSymbol<func::FuncOp>(function);
    std::string name = function + "_gradient";
    if (!target || target.isDeclaration()) {
      module.emitError("option 'function' requires a function with a body, "
                       "got '")
          << function << "'";
      return signalPassFailure();
    }
    if (module.lookupSymbol(name)) {
      module.emitError("requires a module without '") << name << "'";
      return signalPassFailure();
    }
    SmallVector<unsigned> positions;
    for (const std::string &text : arguments) {
      std::optional<unsigned> position = findArgument(target, text);
      if (!position) {
        target.emitError("option 'arguments' requires names or numbers of "
                         "arguments, got '")
            << text << "'";
        return signalPassFailure();
      }
      positions.push_back(*position);
    }
    if (positions.empty())
      llvm::append_range(positions,
                         llvm::seq<unsigned>(target.getNumArguments()));
    auto gradient = makeGradientFunction(target, name, positions);
    if (failed(gradient))
      return signalPassFailure();
    // A body's derivative hardly needs all that the body has read.
    RewritePatternSet patterns(&getContext());
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    if (failed(applyPatternsGreedily(*gradient, std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
