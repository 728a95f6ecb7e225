//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a compiled function takes and returns, read off its declaration.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_EXECUTIONENGINE_SIGNATURE_H
#define KAS_EXECUTIONENGINE_SIGNATURE_H

#include "kas/ExecutionEngine/Npy.h"
#include "kas/ExecutionEngine/Tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kas::execution {

/// One argument or result.
struct TensorSignature {
  /// The value of `kas.name`, or `arg0`, `arg1`, ... and `result0`, ...
  std::string name;
  llvm::SmallVector<int64_t> shape;
  /// The type of the elements, as MLIR writes it.
  std::string type = "f32";
  /// How to fill it when no file does; from `kas.init`, else positive(1) where
  /// the function takes the square root of it or asserts that it is positive
  /// (variances), else normal(1) for the first argument, else by the shape.
  Initializer initializer;
  /// Whether it is data and no weight: the first argument, and those that say
  /// `kas.data`.
  bool isData = false;

  /// Of an element in memory; those of i1 have a byte each.
  unsigned getElementBytes() const;
  /// Of all elements.
  uint64_t getNumBytes() const;
};

/// The types that elements of arguments and results may have.
enum class ElementTypes : uint8_t {
  F32,
  /// f16, bf16, f32, f64, i1, i8, i16, i32 and i64, the integers of any sign.
  Any
};

/// A function on statically shaped tensors.
struct FunctionSignature {
  std::string name;
  llvm::SmallVector<TensorSignature> arguments, results;

  /// The signature of the function `name` in `module`, before lowering. An
  /// error says what prevents it: no such function, no body, another
  /// type than a static tensor of `types`, a malformed attribute, a name given
  /// twice.
  static llvm::Expected<FunctionSignature>
  get(mlir::ModuleOp module, llvm::StringRef name,
      ElementTypes types = ElementTypes::F32);

  /// Whether all elements are f32.
  bool isF32() const;

  /// The tensors for all arguments: from `given` by name, where the shapes must
  /// agree, else made by the initializer with a stream of its own for `seed`
  /// and the name, so that equal names have equal values in all functions.
  llvm::Expected<llvm::SmallVector<Tensor>>
  makeArguments(const NamedTensors &given, uint64_t seed) const;

  /// Zeros for all results.
  llvm::Expected<llvm::SmallVector<Tensor>> makeResults() const;
};

} // namespace kas::execution

#endif // KAS_EXECUTIONENGINE_SIGNATURE_H
