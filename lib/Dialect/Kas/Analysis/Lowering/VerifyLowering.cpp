//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The entry of the proof that lowered code computes an operator, and the pass
// that runs it (docs/internals/proving-lowerings.md).
// Files: TensorCode.cpp and ScalarCode.cpp read the code, Terms.cpp has values
// and regions, Matching.cpp guesses which loops are which reductions,
// Comparison.cpp decides.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Analysis/VerifyLowering.h"
#include "Comparison.h"
#include "LoweredCode.h"
#include "kas/Dialect/Kas/Analysis/Passes.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace kas;
using namespace kas::lowering;
using namespace mlir;

namespace kas {
#define GEN_PASS_DEF_KASVERIFYLOWERINGPASS
#include "kas/Dialect/Kas/Analysis/Passes.h.inc"
} // namespace kas

/// Whether `value` is a tensor of these sizes.
static bool hasShape(Type type, ArrayRef<SizeAttr> sizes) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() == int64_t(sizes.size()) &&
         llvm::all_of(llvm::zip_equal(tensor.getShape(), sizes),
                      [](const auto &pair) {
                        auto &[extent, size] = pair;
                        return extent == *size.getConstantValue();
                      });
}

/// The sizes of the data and of the weights.
static SmallVector<SmallVector<SizeAttr>> getInputSizes(OperatorOp op) {
  SmallVector<SmallVector<SizeAttr>> sizes{op.getDataSizes()};
  for (ArrayRef<SizeAttr> weight : op.getWeightSizes())
    sizes.emplace_back(weight);
  return sizes;
}

/// The element at symbolic output indices is requested once; its terms stand
/// for all outputs.
LoweringResult kas::compareLowering(OperatorOp op, ValueRange inputs,
                                    Value result) {
  assert(op.isConcrete() && "access relations need a concrete operator");
  assert(inputs.size() == op.getNumWeights() + 1 && "each tensor has an input");
  if (!hasShape(result.getType(), op.getOutputSizes()) ||
      !llvm::all_of(llvm::zip_equal(inputs, getInputSizes(op)),
                    [](const auto &pair) {
                      auto &[input, sizes] = pair;
                      return hasShape(input.getType(), sizes);
                    }))
    return {LoweringVerdict::Different,
            "requires tensors of its shapes, got others"};
  // Both begin with the outputs, then each side adds its own reductions.
  Dims operatorDims, dims;
  SmallVector<AffineExpr> outputs;
  for (Value output : op.getOutputs()) {
    int64_t extent = getConcreteSize(output);
    outputs.push_back(
        getAffineDimExpr(operatorDims.add(extent), op.getContext()));
    dims.add(extent);
  }
  Term required = getOperatorTerm(op, inputs, outputs, operatorDims);
  LoweredCode code(inputs, dims);
  FailureOr<Terms> got = code.getElement(result, outputs);
  if (failed(got))
    return {LoweringVerdict::Undecided, code.getReason()};
  return Comparison(op, inputs, operatorDims, required, dims, std::move(*got))
      .run();
}

/// "Undecided" is an error, too: nothing counts as right without a proof.
LogicalResult kas::verifyLowering(OperatorOp op, ValueRange inputs,
                                  Value result, Location loc) {
  LoweringResult compared = compareLowering(op, inputs, result);
  if (compared.verdict == LoweringVerdict::Equal) {
    remark::passed(loc,
                   remark::RemarkOpts::name("Proven").category(loweringRemarks))
        << remark::metric("operator", op.getSymName().str());
    return success();
  }
  InFlightDiagnostic error = emitError(loc);
  error << "lowering of operator '@" << op.getSymName() << "' ";
  if (compared.verdict == LoweringVerdict::Undecided)
    error << "cannot be compared with it: ";
  return error << compared.message;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Reports shapes of `function` that are not those of `op`.
/// With a diagnostic at the function; `compareLowering` only says that they
/// differ.
static LogicalResult checkShapes(FunctionOpInterface function, OperatorOp op) {
  SmallVector<SmallVector<SizeAttr>> sizes = getInputSizes(op);
  if (function.getNumResults() != 1 ||
      function.getNumArguments() != sizes.size())
    return function.emitError()
           << "requires " << sizes.size()
           << " arguments and a result, as operator '@" << op.getSymName()
           << "', got " << function.getNumArguments() << " and "
           << function.getNumResults();
  sizes.push_back(op.getOutputSizes());
  SmallVector<Type> types(function.getArgumentTypes());
  llvm::append_range(types, function.getResultTypes());
  for (auto [type, size] : llvm::zip_equal(types, sizes)) {
    if (hasShape(type, size))
      continue;
    InFlightDiagnostic error = function.emitError()
                               << "requires a tensor of shape [";
    llvm::interleaveComma(
        size, error, [&](SizeAttr attr) { error << *attr.getConstantValue(); });
    return error << "] for operator '@" << op.getSymName() << "', got " << type;
  }
  return success();
}

namespace {
struct KasVerifyLoweringPass
    : public kas::impl::KasVerifyLoweringPassBase<KasVerifyLoweringPass> {
  using KasVerifyLoweringPassBase::KasVerifyLoweringPassBase;

  void runOnOperation() override {
    if (lowered.empty()) {
      getOperation().emitError(
          "requires the option lowered=FUNCTION:OPERATOR, got none");
      return signalPassFailure();
    }
    // All of them are compared, so that one run shows all that differ.
    for (StringRef pair : lowered)
      if (failed(verify(pair)))
        signalPassFailure();
  }

  LogicalResult verify(StringRef pair) {
    auto [functionName, operatorName] = pair.split(':');
    auto function = SymbolTable::lookupNearestSymbolFrom<FunctionOpInterface>(
        getOperation(), StringAttr::get(&getContext(), functionName));
    auto op = SymbolTable::lookupNearestSymbolFrom<OperatorOp>(
        getOperation(), StringAttr::get(&getContext(), operatorName));
    if (!function || !op)
      return getOperation().emitError()
             << "requires names of a function and of an operator in lowered, "
                "got '"
             << pair << "'";
    if (!op.isConcrete())
      return op.emitError() << "requires a concrete operator (see "
                               "-kas-specialize), got '@"
                            << operatorName << "'";
    if (!function.getFunctionBody().hasOneBlock())
      return function.emitError("requires a body of one block, got ")
             << function.getFunctionBody().getBlocks().size() << " blocks";
    if (failed(checkShapes(function, op)))
      return failure();
    Operation *end = function.getFunctionBody().front().getTerminator();
    ++numCompared;
    return verifyLowering(op, function.getArguments(), end->getOperand(0),
                          end->getLoc());
  }
};
} // namespace
