//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Orders the loops of an operation such that neighbouring threads write
// neighbouring elements.
//
//===----------------------------------------------------------------------===//

#include "LoopProblem.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

LoopProblem LoopProblem::get(linalg::GenericOp op) {
  LoopProblem problem;
  problem.op = op;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  for (OpOperand &operand : op->getOpOperands()) {
    TensorAccess &access = problem.accesses.emplace_back();
    // Some only say how often the loops run.
    if (op.payloadUsesValueFromOperand(&operand))
      access = TensorAccess::get(operand);
    if (access.source && !llvm::is_contained(problem.inputs, access.source))
      problem.inputs.push_back(access.source);
  }
  // Neighbouring threads write neighbouring elements.
  auto addLoop = [&](unsigned loop) {
    if (!llvm::is_contained(problem.loops, loop)) {
      problem.loops.push_back(loop);
      problem.extents.push_back(extents[loop]);
    }
  };
  // Parallel loops in the order of the first output's dimensions, so that
  // consecutive threads store consecutive elements; then the others, of extent
  // 1 in outputs that `verify` accepts.
  for (AffineExpr expr :
       op.getMatchingIndexingMap(op.getDpsInitOperand(0)).getResults())
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      addLoop(dim.getPosition());
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::parallel)
      addLoop(loop);
  for (int64_t extent : problem.extents)
    problem.numIterations *= extent;
  return problem;
}

int64_t LoopProblem::getWidth() const {
  auto generic = const_cast<linalg::GenericOp &>(op);
  if (generic.getNumReductionLoops() != 0)
    return 1;
  // Numbers of 32 bits fill sectors of a warp as they are.
  for (OpOperand &output : generic.getDpsInitsMutable()) {
    auto type = cast<ShapedType>(output.get().getType());
    SmallVector<AffineExpr> points;
    for (unsigned loop : loops)
      points.push_back(getAffineDimExpr(loop, op->getContext()));
    // Of `index` the width is not known here.
    if (!type.getElementType().isIntOrFloat() ||
        type.getElementTypeBitWidth() != 16 ||
        type.getNumElements() != numIterations ||
        generic.getMatchingIndexingMap(&output).getResults() !=
            ArrayRef(points))
      return 1;
  }
  // 16 bytes.
  int64_t width = 8;
  while (numIterations % width != 0)
    width /= 2;
  return width;
}

// Checked before anything is emitted: a loop that an output does not depend on
// would let several threads write one element.
LogicalResult LoopProblem::verify() const {
  for (Value input : inputs)
    if (!isa<ShapedType>(input.getType()))
      return op->emitError() << "expected tensors and constants as inputs of a "
                                "kernel, got "
                             << input.getType();
  for (unsigned i = 0; i < op->getNumResults(); ++i) {
    AffineMap map = const_cast<linalg::GenericOp &>(op).getMatchingIndexingMap(
        const_cast<linalg::GenericOp &>(op).getDpsInitOperand(i));
    for (auto [loop, extent] : llvm::zip_equal(loops, extents))
      if (extent > 1 && !map.isFunctionOfDim(loop))
        return op->emitError()
               << "expected outputs that depend on each parallel loop, got "
               << AffineMapAttr::get(map);
  }
  return success();
}
