//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Recomputes elementwise operations in each of their readers where that moves
// less memory than storing the result.
// The unit is whole tensors that are read or written. Example: y = x + 1 with
// two readers that read x anyway: storing y writes one tensor and reads it
// twice, repeating it reads nothing more. Runs between rounds of fusion, which
// merges each copy with its reader.
//
//===----------------------------------------------------------------------===//

#include "RepeatElementwise.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

bool kas::codegen::isSumInAnyOrder(linalg::GenericOp op) {
  if (op.getNumReductionLoops() == 0)
    return false;
  Block *body = op.getBody();
  return llvm::all_of(
      llvm::zip_equal(body->getTerminator()->getOperands(),
                      body->getArguments().take_back(op.getNumDpsInits())),
      [](auto result) {
        auto [value, old] = result;
        auto add = value.template getDefiningOp<arith::AddFOp>();
        // Nothing else reads the accumulator, and the addition may be
        // reassociated.
        return add && llvm::is_contained(add->getOperands(), old) &&
               old.hasOneUse() &&
               arith::bitEnumContainsAll(add.getFastmath(),
                                         arith::FastMathFlags::reassoc);
      });
}

namespace {

/// Whether computing an element of `op` costs less than a read of it from
/// memory.
bool isCheap(linalg::GenericOp op) {
  // Some arithmetic overlaps with the loads of its operands; a division takes
  // longer.
  constexpr size_t maxOperations = 12;
  Block *body = op.getBody();
  return op.hasPureTensorSemantics() && op->getNumResults() == 1 &&
         op.getNumReductionLoops() == 0 &&
         op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity() &&
         body->getArguments().back().use_empty() &&
         body->getOperations().size() <= maxOperations &&
         llvm::all_of(body->without_terminator(), [](Operation &inner) {
           return isa<arith::ArithDialect>(inner.getDialect()) &&
                  !isa<arith::DivFOp>(inner);
         });
}

/// The inputs of `op` that have an element for each of its points.
SmallVector<Value> getWholeInputs(linalg::GenericOp op) {
  SmallVector<Value> inputs;
  for (OpOperand *input : op.getDpsInputOperands())
    if (op.getMatchingIndexingMap(input).isIdentity() &&
        !llvm::is_contained(inputs, input->get()))
      inputs.push_back(input->get());
  return inputs;
}

/// Whether `use` reads one element for each point of an operation that can
/// compute it.
bool isElementRead(OpOperand &use) {
  auto reader = dyn_cast<linalg::GenericOp>(use.getOwner());
  return reader && reader.hasPureTensorSemantics() && reader.isDpsInput(&use) &&
         reader.getMatchingIndexingMap(&use).isIdentity() &&
         (reader.getNumReductionLoops() == 0 || isSumInAnyOrder(reader));
}

/// How many tensors the reader of `use` would read besides what it reads, if it
/// computed the elements of `op`.
size_t countNewInputs(linalg::GenericOp op, OpOperand &use) {
  SmallVector<Value> known =
      getWholeInputs(cast<linalg::GenericOp>(use.getOwner()));
  return llvm::count_if(getWholeInputs(op), [&](Value input) {
    return !llvm::is_contained(known, input);
  });
}

/// Gives the reader of `use` a copy of `op` of its own, which fusion merges
/// with it.
void repeatFor(linalg::GenericOp op, OpOperand &use) {
  OpBuilder builder(use.getOwner());
  use.set(builder.clone(*op)->getResult(0));
}

/// Copies of `op` for those that read it.
bool repeat(linalg::GenericOp op) {
  if (!isCheap(op))
    return false;
  auto uses = llvm::map_to_vector(op->getResult(0).getUses(),
                                  [](OpOperand &use) { return &use; });
  if (uses.size() < 2)
    return false;
  // Without `op` nothing writes its result, and its inputs are read for each
  // reader.
  auto isRead = [](OpOperand *use) { return isElementRead(*use); };
  if (llvm::all_of(uses, isRead)) {
    // Reads of the inputs, one write of the result, one read by each reader.
    size_t now = getWholeInputs(op).size() + 1 + uses.size(), then = 0;
    for (OpOperand *use : uses)
      then += countNewInputs(op, *use);
    if (then < now) {
      for (OpOperand *use : uses)
        repeatFor(op, *use);
      op.erase();
      return true;
    }
  }
  // Who reads all of its inputs anyway has no need of the result.
  bool hasChanged = false;
  for (OpOperand *use : uses)
    if (isElementRead(*use) && countNewInputs(op, *use) == 0) {
      repeatFor(op, *use);
      hasChanged = true;
    }
  return hasChanged;
}

} // namespace

bool kas::codegen::repeatElementwise(func::FuncOp function) {
  // Collected first: copies need no visit.
  SmallVector<linalg::GenericOp> ops;
  function.walk([&](linalg::GenericOp op) { ops.push_back(op); });
  bool hasChanged = false;
  for (linalg::GenericOp op : ops)
    hasChanged |= repeat(op);
  return hasChanged;
}
