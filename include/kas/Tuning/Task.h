//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is tuned: the kernels of a network, each as a function of its own.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TUNING_TASK_H
#define KAS_TUNING_TASK_H

#include "kas/Tuning/TuningDevice.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>
#include <vector>

namespace kas::tuning {

/// The name of the function of a task.
constexpr llvm::StringLiteral taskFunctionName = "kernel";

/// One kernel of a network: a sum of products that is cut into register tiles,
/// with the padding and the first values that it reads and one elementwise
/// operation after it. Several operations of a network may be the same kernel.
struct TuningTask {
  /// The structure of the sum of products (`StructuralKey`), without sizes,
  /// strides, dilations and padding: all kernels of a class have the same text.
  /// What is done before and after is not part of it, but that an input is
  /// padded is.
  std::string classText;
  /// The types of the tensors, for people.
  std::string tensors;
  /// The numbers of the whole kernel, and a hash of its structure. Class and
  /// shape together say what is computed.
  std::string shape;
  /// A module with the function `kernel`, for the target of the network.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// The operation in it that a schedule is set on, and those of the network
  /// that it stands for.
  mlir::Operation *anchor = nullptr;
  std::vector<mlir::Operation *> uses;
  ScheduleSpace space;

  /// 16 hexadecimal digits for `classText`.
  std::string getClassKey() const;
  /// A seed for what is random about this kernel, of one for all.
  uint64_t getSeed(uint64_t seed) const;
};

/// The kernels of a function of a module that `device` has prepared, in the
/// order of their first use. Operations without schedules there are left out.
llvm::Expected<std::vector<TuningTask>> findTasks(mlir::func::FuncOp function,
                                                  const TuningDevice &device);

} // namespace kas::tuning

#endif // KAS_TUNING_TASK_H
