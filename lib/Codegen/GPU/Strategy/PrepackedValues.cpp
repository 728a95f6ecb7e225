//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Goes from a value to the arguments that it is computed of.
//
//===----------------------------------------------------------------------===//

#include "PrepackedValues.h"
#include "kas/Dialect/Kas/IR/DataAttribute.h"
#include "mlir/IR/Operation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

bool PrepackedValues::contains(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return !isData(argument);
  if (auto entry = known.find(value); entry != known.end())
    return entry->second;
  Operation *op = value.getDefiningOp();
  bool isPrepacked = isMemoryEffectFree(op) &&
                     llvm::all_of(op->getOperands(), [&](Value operand) {
                       return contains(operand);
                     });
  known[value] = isPrepacked;
  return isPrepacked;
}
