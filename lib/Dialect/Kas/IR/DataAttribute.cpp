//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tells the arguments of a function that are data from its weights.
// Weights may be packed once, ahead of the calls; data may not.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/IR/DataAttribute.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

bool kas::isData(BlockArgument argument) {
  Block *block = argument.getOwner();
  auto function = dyn_cast_or_null<FunctionOpInterface>(block->getParentOp());
  // Arguments of other blocks (loops, say) change from iteration to iteration.
  // By convention the first argument of a network is its input.
  return !function || !block->isEntryBlock() || argument.getArgNumber() == 0 ||
         function.getArgAttr(argument.getArgNumber(), dataAttrName);
}
