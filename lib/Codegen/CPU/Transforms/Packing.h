//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How operations on tensors become register tiles on buffers: what the passes
// that plan and emit them share.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_TRANSFORMS_PACKING_H
#define LIB_CODEGEN_CPU_TRANSFORMS_PACKING_H

#include "../Strategy/ContractionEpilogue.h"
#include "../Strategy/ContractionTarget.h"
#include "../Strategy/InnerProductPlan.h"
#include "../Strategy/Rearrangement.h"
#include "../Strategy/StridedContraction.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"
#include <optional>

namespace kas::codegen {

/// One operation on tensors that becomes loops on buffers, with the elementwise
/// operation after it if that is done on the way.
class Packing {
public:
  Packing(mlir::Operation *op, const ContractionOptions &given);

  /// The buffer of a tensor, to read.
  mlir::Value toBuffer(mlir::Value tensor);
  /// The buffer of the result.
  mlir::Value makeOutput();
  mlir::Value makeBuffer(llvm::ArrayRef<int64_t> shape);
  /// The buffers of the weights' copies.
  llvm::SmallVector<mlir::Value> makeCopies(const Contraction &contraction,
                                            const Rearrangement &rearrangement);
  /// Emits the loops and replaces the operation. Leaves all as it was on
  /// failure.
  mlir::LogicalResult
  emit(const StridedContraction &contraction, ContractionEpilogue epilogue,
       llvm::function_ref<void(const llvm::Twine &)> emitReason);
  /// The same with the tensors of `source` in other layouts.
  mlir::LogicalResult
  emit(const Contraction &source, mlir::Value output,
       const Rearrangement &rearrangement, llvm::ArrayRef<bool> prepacked,
       llvm::function_ref<void(const llvm::Twine &)> emitReason);
  void emit(const InnerProductPlan &plan, mlir::Value output);
  void emitCopies(const Contraction &source, const Rearrangement &rearrangement,
                  mlir::ValueRange copies);
  /// Removes the buffers again, but for the first ones.
  void undo(size_t numKept = 0);
  size_t getNumMade() const { return made.size(); }
  void setOptions(const ContractionOptions &given) { options = given; }

private:
  /// `last` is replaced by what is in `buffer`.
  void replace(mlir::Operation *last, mlir::Value buffer);

  mlir::Operation *op;
  ContractionOptions options;
  mlir::Location loc;
  mlir::IRRewriter rewriter;
  mlir::linalg::GenericOp reader;
  llvm::SmallVector<mlir::Operation *> made;
};

/// Removes the buffers that were made since, at its end.
class PackingScope {
public:
  explicit PackingScope(Packing &packing)
      : packing(packing), numBefore(packing.getNumMade()) {}
  ~PackingScope() { packing.undo(numBefore); }

private:
  Packing &packing;
  size_t numBefore;
};

/// Whether a tensor is a weight of the function, or made of such alone: what is
/// computed of it can be prepacked.
bool isFromWeights(mlir::Value tensor);

/// The rearrangement in which `source` takes the least time; nothing where that
/// is no less than `time`, that of how it is. `time` becomes the least one.
std::optional<Rearrangement>
chooseRearrangement(const Contraction &source, mlir::MemRefType output,
                    llvm::ArrayRef<bool> prepacked,
                    const ContractionOptions &options,
                    std::optional<int64_t> &time);

/// How an operator on buffers is to be packed.
struct OperatorPlan {
  mlir::FailureOr<Contraction> source = mlir::failure();
  /// As it is.
  mlir::FailureOr<StridedContraction> contraction = mlir::failure();
  /// Where that takes less time.
  std::optional<Rearrangement> rearrangement;
  /// By the cost model, in halves of a cycle; nothing where no tiles suit.
  std::optional<int64_t> time;
  /// Why it is none that can be packed as it is.
  std::string reason;
};

/// Plans the concrete operator `op`. Inputs that are `prepacked` are packed
/// ahead.
OperatorPlan planOperator(OperatorOp op, mlir::ValueRange inputs,
                          mlir::Value output, llvm::ArrayRef<bool> prepacked,
                          Packing &packing, const ContractionOptions &options);

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_TRANSFORMS_PACKING_H
