//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parts of PyTorch code.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_TARGET_PYTORCH_H
#define LIB_TARGET_PYTORCH_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Reference/Evaluator.h"

namespace kas::target {

/// Writes the body of a function of `data`, `weight0`, ... as views, pads and
/// one einsum, each line indented by four spaces. Fails, having written
/// nothing, where the operator is no contraction (see `checkIsContraction`).
llvm::LogicalResult writeTorchContraction(OperatorOp op, llvm::raw_ostream &os);

/// The same for every operator: gathers the elements of all points of the
/// iteration space, multiplies, and reduces one axis after the other.
void writeTorchGather(OperatorOp op, llvm::raw_ostream &os);

/// Writes the function `name` of the concrete operator `op`. `description` is
/// the first line of its documentation, by default the formula.
void writeTorchFunction(OperatorOp op, llvm::StringRef name,
                        const reference::OperatorShapes &shapes,
                        llvm::StringRef description, llvm::raw_ostream &os);

/// `conv2d_grouped` as `Conv2dGrouped`; what is no identifier is left out.
std::string getTorchClassName(llvm::StringRef name);
/// Whether `name` is a keyword of Python or used by the code itself.
bool isTorchKeyword(llvm::StringRef name);
/// An identifier like `name` that is not reserved.
std::string getTorchFunctionName(llvm::StringRef name);

/// `2, 3`, or `2,` for one number where `isTuple`.
std::string listNumbers(llvm::ArrayRef<int64_t> numbers, bool isTuple = false);

} // namespace kas::target

#endif // LIB_TARGET_PYTORCH_H
