//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contractions on buffers, as plain strides: what the strategies for CPUs
// need to know about a contraction.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_STRATEGY_STRIDEDCONTRACTION_H
#define LIB_CODEGEN_CPU_STRATEGY_STRIDEDCONTRACTION_H

#include "kas/Codegen/CPU/Algorithm.h"
#include "kas/Dialect/Kas/Analysis/Contraction.h"
#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "kas/Schedule/TileChoice.h"
#include "kas/Support/Target.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>

namespace kas::codegen {

/// A buffer and the address of its element at each point of the loops:
/// `base + sum of stride * index`, in elements from the start of the
/// allocation.
struct StridedAccess {
  mlir::Value buffer;
  int64_t base = 0;
  /// One per loop.
  llvm::SmallVector<int64_t> strides;
  /// One more than the largest address of the buffer.
  int64_t size = 0;
  /// Whether a copy is made ahead of the calls where weights are prepacked.
  bool isPrepacked = true;
};

/// A buffer and the address of its element as any expression of the loops: for
/// inputs that are copied before they are multiplied.
struct PackedAccess {
  mlir::Value buffer;
  mlir::AffineExpr address;
  int64_t size = 0;
  /// The address by dimensions, and their sizes, where they are known.
  llvm::SmallVector<mlir::AffineExpr> index = {};
  llvm::SmallVector<int64_t> shape = {};
  /// Whether a copy may be made ahead of the calls.
  bool isPrepacked = false;
};

/// The innermost columns at which some guards hold; at these, everything is
/// linear in them. A shift around the end of a line makes two segments.
struct ColumnSegment {
  /// The address of each vector input.
  llvm::SmallVector<mlir::AffineExpr> addresses;
  /// The guards of the contraction, and those that hold in the segment only: no
  /// column is in two of them.
  llvm::SmallVector<Guard> guards;
};

/// F32, or VNNI groups of two bf16 or of four int8. Of an input that steps with
/// the innermost dimension of the output and one that does not, one has
/// unsigned bytes, the other signed ones.
enum class ElementKind { F32, BFloats, UnsignedVectorInt8, UnsignedScalarInt8 };

/// `output += product of inputs`, summed over the reduction loops.
struct StridedContraction {
  llvm::SmallVector<Contraction::Loop> loops;
  StridedAccess output;
  /// Those that step with the innermost dimension of the output, and the
  /// others.
  llvm::SmallVector<PackedAccess> vectorInputs;
  llvm::SmallVector<StridedAccess> scalarInputs;
  /// Where one of these does not hold, the vector inputs count as zero and are
  /// not read. Their expressions are of the loops.
  llvm::SmallVector<Guard> guards;
  /// What the products are multiplied with; 1 for VNNI groups.
  double factor = 1;
  /// What an element is multiplied as: f32, or a VNNI group, whose products
  /// with another VNNI group are added to a sum of f32, or of i32 for int8.
  ElementKind elements = ElementKind::F32;
  /// Whether the output holds values that the sums are added to; else they
  /// replace whatever it holds.
  bool accumulates = true;

  /// Loops by what steps with them: batches by both kinds of inputs (or none),
  /// rows by scalar inputs only, columns by vector inputs only. The columns are
  /// sorted, the last one is contiguous in the output.
  llvm::SmallVector<unsigned> batches, rows, columns, reductions;

  /// All innermost columns; none if there is no small number of segments.
  llvm::SmallVector<ColumnSegment> segments;

  int64_t getExtent(llvm::ArrayRef<unsigned> dims) const {
    int64_t extent = 1;
    for (unsigned dim : dims)
      extent *= loops[dim].extent;
    return extent;
  }

  bool isOfVNNIGroups() const { return elements != ElementKind::F32; }
  bool isOfInt8() const {
    return isOfVNNIGroups() && elements != ElementKind::BFloats;
  }
  /// The type of sums, which VNNI groups are read as: f32, or i32 for int8.
  mlir::Type getElementType() const;

  /// What `op` computes, if it is such a sum of f32 on buffers of static shape
  /// and layout with sums of loops as indices, or one of int8 or bf16 whose
  /// innermost reduction takes a VNNI group; else why it is none.
  static mlir::FailureOr<StridedContraction>
  match(mlir::linalg::LinalgOp op, Contraction::EmitReasonFn emitReason);

  /// `source` on buffers of identity layout, of which some are `prepacked`, or
  /// all. It does not accumulate.
  static mlir::FailureOr<StridedContraction>
  get(const Contraction &source, mlir::Value output,
      Contraction::EmitReasonFn emitReason,
      llvm::ArrayRef<bool> prepacked = {});

  /// The buffer that holds a tensor.
  using ToBufferFn = llvm::function_ref<mlir::Value(mlir::Value)>;

  /// What `apply` of a concrete operator computes.
  static mlir::FailureOr<StridedContraction>
  get(ApplyOp apply, ToBufferFn toBuffer, mlir::Value output,
      Contraction::EmitReasonFn emitReason);

  /// The same of what `matchUnpadded` gives for `op` on tensors.
  static mlir::FailureOr<StridedContraction>
  getUnpadded(mlir::linalg::LinalgOp op, ToBufferFn toBuffer,
              mlir::Value output);

  /// What the planners need of it.
  schedule::TileNest getNest() const;

  /// The same with a loop of one row, for tiles that need one.
  StridedContraction withOneRow() const;
};

/// What `op` on tensors computes, where inputs that are padded with zeros are
/// read as they were before.
mlir::FailureOr<Contraction>
matchUnpadded(mlir::linalg::LinalgOp op,
              StridedContraction::ToBufferFn toBuffer);

/// The product of several scalar inputs, summed over the reductions that no
/// vector input steps with, can be computed once, before the columns come into
/// play: for a stack of weights far fewer multiplications.
class CombinedInputs {
public:
  /// What remains of `contraction` when its scalar inputs have been combined;
  /// nothing if there is only one and it needs no sum, or nothing remains.
  static std::optional<CombinedInputs>
  get(const StridedContraction &contraction);

  /// Emits the buffer with the combined inputs and the loops that fill it.
  void emit(mlir::OpBuilder &builder, mlir::Location loc);

  const StridedContraction &getRemainder() const { return remainder; }
  mlir::Value getBuffer() const {
    return remainder.scalarInputs.front().buffer;
  }

private:
  llvm::SmallVector<StridedAccess> inputs;
  schedule::CombinedInputs combined;
  StridedContraction remainder;
};

/// `source`, whose output has the shape `output`, as plain data. Inputs that
/// are `prepacked` are packed ahead; where nothing is known of that, what does
/// not step with the vectors is.
schedule::LoopNest getLoopNest(const Contraction &source,
                               llvm::ArrayRef<int64_t> output,
                               llvm::ArrayRef<bool> prepacked);

/// The coefficient of `dim` in `expr`, if `expr` is linear in it.
std::optional<int64_t> getCoefficient(mlir::AffineExpr expr, unsigned dim);

/// What a target offers to contractions.
struct ContractionTarget : schedule::TileTarget {
  explicit ContractionTarget(const Target &target);

  bool hasFMA;
};

struct ContractionEpilogue;

/// The numbers that `schedule` gives.
schedule::TileNumbers getTileNumbers(CPUScheduleAttr schedule);

/// What contractions are cut for.
struct ContractionOptions {
  /// 1: no parallel loop, 0: unknown.
  int64_t threads = 0;
  Target target;
  /// Free buffers after the loops; not where a pass does so later.
  bool deallocate = true;
  /// What rearranges weights runs once, not at each call.
  bool prepacked = false;
  /// What may be computed together with the contraction, or null.
  const ContractionEpilogue *epilogue = nullptr;
  /// What the operation says itself, or null.
  CPUScheduleAttr schedule = nullptr;
  /// The input is read where it is, and not padded: emit nothing unless
  /// vectors along the rows are the cheapest, or direct tiles where a copy
  /// would be read for one output only and nothing is added to.
  bool readsUnpadded = false;
  /// The tiles that it is to be cut into where they suit; an operation's
  /// schedule comes first.
  ConvolutionAlgorithm algorithm = ConvolutionAlgorithm::Auto;
  /// Cycles that a loop takes at least that threads share: to wake them and to
  /// wait for them takes longer than all that they take off of a shorter one.
  int64_t minParallelTime = 0;

  /// What tiles are chosen for where nothing follows and nothing is added to.
  kas::schedule::TileOptions getTileOptions() const;

  /// The threads for what takes one thread `time`, in halves of a cycle.
  int64_t getThreads(int64_t time) const {
    return time < 2 * minParallelTime ? 1 : threads;
  }
};

using schedule::DirectPlan;
using schedule::PanelPlan;
using schedule::RowVectorPlan;

/// Emits `contraction` as `plan` cuts it.
void emitPanels(mlir::OpBuilder &builder, mlir::Location loc,
                const StridedContraction &contraction, const PanelPlan &plan,
                const ContractionTarget &target,
                const ContractionOptions &options);
void emitDirect(mlir::OpBuilder &builder, mlir::Location loc,
                const StridedContraction &contraction, const DirectPlan &plan,
                const ContractionTarget &target,
                const ContractionOptions &options);
/// A loop that packs the weights, and those that multiply.
void emitRowVectors(mlir::OpBuilder &builder, mlir::Location loc,
                    const StridedContraction &contraction,
                    const RowVectorPlan &plan, const ContractionTarget &target,
                    const ContractionOptions &options);

/// Emits `contraction` as loops over register tiles at the builder's insertion
/// point, by the strategy that takes the least time according to the plans, or
/// nothing, and fails, if none suits. A remark says how it was cut;
/// `tookEpilogue` gets whether the epilogue of the options was computed with
/// it.
mlir::LogicalResult
emitContraction(mlir::OpBuilder &builder, mlir::Location loc,
                const StridedContraction &contraction,
                const ContractionOptions &options,
                llvm::function_ref<void(const llvm::Twine &)> emitReason,
                bool *tookEpilogue = nullptr);

/// The time that `emitContraction` goes by, in halves of a cycle; nothing where
/// it fails.
std::optional<int64_t> getContractionTime(const StridedContraction &contraction,
                                          const ContractionOptions &options);

/// The category of the remarks on panels.
constexpr llvm::StringLiteral panelRemarks = "kas-panels";

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_STRATEGY_STRIDEDCONTRACTION_H
