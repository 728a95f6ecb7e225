//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The shapes of the tensors of a kernel at a binding.
// Legality that only numbers show (K3, K4, D4, D15) is reported here, once,
// before the evaluator allocates anything.
//
//===----------------------------------------------------------------------===//

#include "KernelSizes.h"

using namespace mlir;
using namespace kas;
using namespace kas::reference;

using Shape = KernelShape;

/// D15: no more blocks than copies.
static LogicalResult verifyBlocks(KernelOp kernel, const SizeValues &sizes) {
  auto verify = [&](SizeAttr numBlocks, SizeAttr numCopies) -> LogicalResult {
    FailureOr<int64_t> blocks = sizes.get(numBlocks);
    FailureOr<int64_t> copies = sizes.get(numCopies);
    if (failed(blocks) || failed(copies))
      return failure();
    if (*blocks > *copies)
      return sizes.emitError() << "requires at most as many blocks as copies, "
                               << *copies << " (D15), got " << *blocks;
    return success();
  };
  for (auto amplify : kernel.getBody().getOps<DagAmplifyOp>())
    if (failed(verify(amplify.getImpliedSizes().front(), amplify.getCopies())))
      return failure();
  DagOutputOp output = kernel.getOutput();
  return output.getCopies() ? verify(output.getNumBlocks(), *output.getCopies())
                            : success();
}

/// D4: a shift by less than the extent.
static LogicalResult verifyShifts(KernelOp kernel, const SizeValues &sizes) {
  for (auto shift : kernel.getBody().getOps<DagShiftOp>()) {
    FailureOr<Shape> shape = sizes.get(shift.getInput().getType());
    if (failed(shape))
      return failure();
    int64_t extent = (*shape)[shift.getDim()], amount = shift.getAmount();
    if (amount >= extent || amount <= -extent)
      return sizes.emitError() << "requires a shift amount d with 0 < |d| < "
                               << extent << " (D4), got " << amount;
  }
  return success();
}

FailureOr<KernelShapes> kas::reference::getShapes(KernelOp kernel,
                                                  const Binding &binding,
                                                  EmitErrorFn emitError) {
  if (binding.size() < kernel.getSymbolSet().size())
    return emitError() << "requires a value for each of "
                       << kernel.getSymbolSet().size() << " symbols, got "
                       << binding.size();
  SizeValues sizes{kernel.getSymbolSet(), binding, emitError};
  KernelShapes shapes;
  Block &block = kernel.getBody().front();
  // `SizeValues::get` reports sizes that are no integers, and tensors above
  // 2^28 elements.
  for (BlockArgument input : block.getArguments()) {
    FailureOr<Shape> shape = sizes.get(input.getType());
    if (failed(shape))
      return failure();
    shapes.inputs.push_back(*shape);
  }
  for (auto step : block.getOps<DagOpInterface>())
    for (const SizeProduct &weight : step.getParams()) {
      FailureOr<Shape> shape = sizes.get(weight.sizes);
      if (failed(shape))
        return failure();
      shapes.weights.push_back(*shape);
    }
  // K4 is checked on numbers: the result is a reshape of what `kas.dag.output`
  // views.
  FailureOr<Shape> output = sizes.get(kernel.getResultType());
  DagOutputOp op = kernel.getOutput();
  FailureOr<Shape> given = sizes.get(op.getInput().getType());
  FailureOr<Shape> viewed = sizes.get(op.getViewedDims());
  if (failed(output) || failed(given) || failed(viewed) ||
      failed(verifyBlocks(kernel, sizes)) ||
      failed(verifyShifts(kernel, sizes)))
    return failure();
  if (product(*viewed) != product(*given))
    return emitError() << "requires " << product(*viewed)
                       << " elements in the output (K4), got "
                       << product(*given);
  shapes.output = *output;
  return shapes;
}
