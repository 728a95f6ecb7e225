//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which output dimensions each weight of an operator depends on: whether it is
// translation equivariant.
// A forward data flow of bit sets, one bit per output dimension.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Analysis/WeightOutputs.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace kas;

SmallVector<SmallVector<unsigned>> kas::getWeightOutputs(OperatorOp op) {
  Block &block = op.getBody().front();
  // Operands come before their users.
  llvm::DenseMap<Value, llvm::SmallBitVector> outputs;
  for (BlockArgument argument : block.getArguments()) {
    llvm::SmallBitVector &bits = outputs[argument];
    bits.resize(block.getNumArguments());
    bits.set(argument.getArgNumber());
  }
  // A result depends on all that its operands depend on; reductions on nothing.
  for (Operation &primitive : block.without_terminator()) {
    llvm::SmallBitVector bits(block.getNumArguments());
    for (Value operand : primitive.getOperands())
      bits |= outputs[operand];
    for (Value result : primitive.getResults())
      outputs[result] = bits;
  }
  SmallVector<SmallVector<unsigned>> result;
  for (OperandRange weight : op.getYield().getWeights()) {
    llvm::SmallBitVector bits(block.getNumArguments());
    for (Value coordinate : weight)
      bits |= outputs[coordinate];
    result.emplace_back(bits.set_bits());
  }
  return result;
}
