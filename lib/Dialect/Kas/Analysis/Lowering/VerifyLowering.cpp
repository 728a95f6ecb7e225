//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Analysis/VerifyLowering.h"
#include "Comparison.h"
#include "LoweredCode.h"
#include "kas/Dialect/Kas/Analysis/Passes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace kas;
using namespace kas::lowering;
using namespace mlir;

namespace kas {
#define GEN_PASS_DEF_KASVERIFYLOWERINGPASS
#include "kas/Dialect/Kas/Analysis/Passes.h.inc"
} // namespace kas

LoweringResult kas::compareLowering(OperatorOp op, ValueRange inputs,
                                    Value result) {
  assert(op.isConcrete() && "access relations need a concrete operator");
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

LogicalResult kas::verifyLowering(OperatorOp op, ValueRange inputs,
                                  Value result, EmitErrorFn emitError) {
  LoweringResult compared = compareLowering(op, inputs, result);
  switch (compared.verdict) {
  case LoweringVerdict::Equal:
    return success();
  case LoweringVerdict::Different:
    return emitError() << "lowering of operator '@" << op.getSymName() << "' "
                       << compared.message;
  case LoweringVerdict::Undecided:
    return emitError() << "lowering of operator '@" << op.getSymName()
                       << "' cannot be compared with it: " << compared.message;
  }
  llvm_unreachable("unknown verdict");
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Reports shapes of `function` that are not those of `op`.
static LogicalResult checkShapes(FunctionOpInterface function, OperatorOp op) {
  SmallVector<SmallVector<SizeAttr>> sizes{op.getDataSizes()};
  for (ArrayRef<SizeAttr> weight : op.getWeightSizes())
    sizes.emplace_back(weight);
  sizes.push_back(op.getOutputSizes());
  SmallVector<Type> types(function.getArgumentTypes());
  llvm::append_range(types, function.getResultTypes());
  if (function.getNumResults() != 1 || types.size() != sizes.size())
    return function.emitError()
           << "requires " << sizes.size() - 1
           << " arguments and a result, as operator '@" << op.getSymName()
           << "', got " << function.getNumArguments() << " and "
           << function.getNumResults();
  for (auto [type, size] : llvm::zip_equal(types, sizes)) {
    SmallVector<int64_t> shape = llvm::map_to_vector(
        size, [](SizeAttr attr) { return *attr.getConstantValue(); });
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (tensor && tensor.getShape() == ArrayRef(shape))
      continue;
    InFlightDiagnostic error = function.emitError() << "requires a tensor of ";
    error << "shape [";
    llvm::interleaveComma(shape, error);
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
                          [&] { return end->emitError(); });
  }
};
} // namespace
