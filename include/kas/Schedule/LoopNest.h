//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A contraction as loops and indices, and what tiles of it see: the plain
// data that plans are made of.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SCHEDULE_LOOPNEST_H
#define KAS_SCHEDULE_LOOPNEST_H

#include "kas/Schedule/IndexExpr.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Twine.h"

namespace kas::schedule {

struct Loop {
  int64_t extent = 1;
  bool isReduction = false;
};

/// 0 <= expr < extent.
struct Guard {
  IndexExpr expr;
  int64_t extent = 1;
};

/// At each point of the loops at which all guards hold, the product of one
/// element of each input is added to an element of the output. The first input
/// is the data.
struct LoopNest {
  /// A dense tensor and the index of each of its dimensions.
  struct Tensor {
    llvm::SmallVector<IndexExpr, 4> indices;
    llvm::SmallVector<int64_t, 4> shape;
    /// Whether a copy is made ahead of the calls.
    bool isPrepacked = false;

    int64_t getNumElements() const;
    IndexExpr getAddress() const;
  };

  llvm::SmallVector<Loop, 12> loops;
  Tensor output;
  llvm::SmallVector<Tensor, 3> inputs;
  llvm::SmallVector<Guard, 4> guards;
  /// Whether inputs that do not step with the vectors count as prepacked,
  /// whatever they are.
  bool packsScalars = false;

  llvm::SmallVector<Interval, 12> getRanges() const;
  int64_t getNumPoints() const;
  /// Makes two loops of one that indices divide: what depends on one of them
  /// only, such as the data of a grouped convolution, says so.
  void splitLoops();
};

/// Strides by loop.
struct StridedTensor {
  llvm::SmallVector<int64_t, 12> strides;
  /// One more than the largest address.
  int64_t size = 0;
  bool isPrepacked = true;
};

/// An address that is any function of the loops.
struct IndexedTensor {
  IndexExpr address;
  int64_t size = 0;
  /// By dimensions, where they are known.
  llvm::SmallVector<IndexExpr, 4> index;
  llvm::SmallVector<int64_t, 4> shape;
  bool isPrepacked = false;
};

/// The innermost columns at which some guards hold; at these, everything is
/// linear in them. A shift around the end of a line makes two segments.
struct ColumnSegment {
  /// The address of each vector input.
  llvm::SmallVector<IndexExpr, 2> addresses;
  /// The guards of the nest, and those that hold in the segment only: no column
  /// is in two of them.
  llvm::SmallVector<Guard, 4> guards;
};

/// A contraction as the strategies for CPUs see it: loops by what steps
/// with them. Loops of one iteration are left out.
struct TileNest {
  llvm::SmallVector<Loop, 12> loops;
  StridedTensor output;
  /// Those that step with the innermost dimension of the output, and the
  /// others.
  llvm::SmallVector<IndexedTensor, 2> vectorInputs;
  llvm::SmallVector<StridedTensor, 2> scalarInputs;
  /// Where one of these does not hold, the vector inputs count as zero and are
  /// not read.
  llvm::SmallVector<Guard, 4> guards;
  /// Whether elements are words of several narrow ones.
  bool isOfVNNIGroups = false;
  /// Whether these are of i16, which are multiplied as they are.
  bool isOfInt16 = false;
  /// Whether the output holds values that the sums are added to.
  bool accumulates = false;
  /// Batches step with both kinds of inputs (or none), rows with scalar inputs
  /// only, columns with vector inputs only. The columns are sorted, the last
  /// one is contiguous in the output.
  llvm::SmallVector<unsigned> batches, rows, columns, reductions;
  /// All innermost columns; none if there is no small number of segments.
  llvm::SmallVector<ColumnSegment, 1> segments;

  /// What `nest` is to tiles, or why it is nothing to them.
  static std::optional<TileNest>
  get(const LoopNest &nest,
      llvm::function_ref<void(const llvm::Twine &)> emitReason);

  int64_t getExtent(llvm::ArrayRef<unsigned> dims) const {
    int64_t extent = 1;
    for (unsigned dim : dims)
      extent *= loops[dim].extent;
    return extent;
  }
  /// Whether there are segments, and all addresses of vector inputs step by one
  /// of `allowed` from column to column.
  bool hasStrides(llvm::ArrayRef<int64_t> allowed) const;
  /// Whether a vector input, or that it exists, depends on `loop`.
  bool stridesVectors(unsigned loop) const;
  /// Whether all vector inputs may be copied ahead of the calls.
  bool hasPrepackedVectors() const;
  /// Sets the roles of loops and the segments; false where no input steps with
  /// the output's last dimension.
  bool classify();
  /// The same with a loop of one row, for tiles that need one.
  TileNest withOneRow() const;

private:
  /// Sets `segments`.
  void findSegments();
};

/// The product of several scalar inputs, summed over the reductions that no
/// vector input steps with, can be computed once, before the columns come into
/// play: for a stack of weights far fewer multiplications.
struct CombinedInputs {
  /// The loops of the combined input, and those that are summed over.
  llvm::SmallVector<unsigned> loops, sums;
  /// Of the combined input.
  StridedTensor input;
  /// The reductions that remain.
  llvm::SmallVector<unsigned> reductions;

  /// Nothing if there is only one and it needs no sum, or nothing remains.
  static std::optional<CombinedInputs> get(const TileNest &nest);
  /// What remains of `nest`.
  TileNest getRemainder(const TileNest &nest) const;
};

} // namespace kas::schedule

#endif // KAS_SCHEDULE_LOOPNEST_H
