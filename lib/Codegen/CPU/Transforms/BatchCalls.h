//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Calls of functions that compute a part of a batch, on plain pointers.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_TRANSFORMS_BATCHCALLS_H
#define LIB_CODEGEN_CPU_TRANSFORMS_BATCHCALLS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kas::codegen {

/// Whether the function has a body, takes pointers and returns nothing or a
/// pointer: the message of an assertion that failed.
bool isOnPointers(mlir::LLVM::LLVMFuncOp function);

/// Whether the function, which is on pointers, returns messages.
bool hasMessages(mlir::LLVM::LLVMFuncOp function);

/// What is called for parts of a batch, one after the other.
struct PartCalls {
  mlir::LLVM::LLVMFuncOp part;
  /// What the first part takes.
  llvm::SmallVector<mlir::Value> arguments;
  /// How far the next part is from it in each argument; 0, or none at the end,
  /// where all parts take the same.
  llvm::ArrayRef<int64_t> bytes;
  /// The number of parts, at least 1.
  mlir::Value count;
  /// Threads that share the parts; 1: a serial loop, 0: unknown.
  int64_t threads;
  /// Room for a message of each part, where it returns one.
  mlir::Value messages;

  /// Emits the calls; the builder continues after them. Returns the first
  /// message in the order of parts, or null where there are none.
  mlir::Value emit(mlir::ImplicitLocOpBuilder &b) const;

private:
  void emitParallel(mlir::ImplicitLocOpBuilder &b) const;
  void emitCall(mlir::ImplicitLocOpBuilder &b, mlir::Value number) const;
  mlir::Value emitFirstMessage(mlir::ImplicitLocOpBuilder &b) const;
};

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_TRANSFORMS_BATCHCALLS_H
