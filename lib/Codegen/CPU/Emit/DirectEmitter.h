//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contractions as register tiles that read the inputs where they are. A tile is
// some rows times some columns times some vectors of sums; what several of its
// products read is loaded once. Points that do not exist are lanes of masked
// loads, or left out where that is known beforehand.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_EMIT_DIRECTEMITTER_H
#define LIB_CODEGEN_CPU_EMIT_DIRECTEMITTER_H

#include "ContractionEmitter.h"
#include <map>

namespace kas::codegen {

class StepLoads;

/// The loops over tiles and, in each, the looped reductions.
class DirectEmitter : ContractionEmitter {
  friend class StepLoads;

public:
  DirectEmitter(mlir::OpBuilder &builder, mlir::Location loc,
                const StridedContraction &contraction, const DirectPlan &plan,
                const ContractionTarget &target,
                const ContractionOptions &options)
      : ContractionEmitter(builder, loc, contraction, target, options),
        plan(plan), ranges(contraction.loops.size(), Interval{0, 0}) {}

  void emit();

private:
  void emitItem(mlir::Value item);
  void emitBlocks(std::optional<unsigned> loop, mlir::Value groupStart,
                  int64_t groups, int64_t block,
                  llvm::function_ref<void()> body);
  bool hasEdges(unsigned loop) const;
  void emitEdges(unsigned loop, int64_t end, int64_t block, bool hasLast,
                 llvm::function_ref<void()> body);
  void emitVectors();
  llvm::SmallVector<Piece> getRest(int64_t start) const;
  mlir::Value loadChannel(mlir::Value buffer, llvm::ArrayRef<int64_t> strides,
                          int64_t row, int64_t column, int64_t lanes);
  mlir::Value emitEpilogue(mlir::Value sums, mlir::Value place, int64_t row,
                           int64_t column, Piece piece);
  void emitTile(llvm::ArrayRef<Piece> pieces);
  bool exchangesQuarters(Piece piece) const;
  static llvm::SmallVector<int64_t>
  exchangeQuarters(llvm::ArrayRef<int64_t> numbers);
  mlir::Value exchangeQuarters(mlir::Value values);
  llvm::SmallVector<mlir::Value> emitReduction(llvm::ArrayRef<unsigned> loops,
                                               mlir::ValueRange sums,
                                               llvm::ArrayRef<Piece> pieces);

  void emitProducts(StepLoads &loads, llvm::MutableArrayRef<mlir::Value> sums,
                    llvm::ArrayRef<Piece> pieces);
  llvm::SmallVector<std::pair<int64_t, int64_t>>
  getStepsByLine(int64_t columns, int64_t steps) const;
  void forEachProduct(
      llvm::function_ref<void(int64_t, int64_t, int64_t, int64_t)> body);
  llvm::SmallVector<mlir::Value> emitStep(mlir::ValueRange start,
                                          llvm::ArrayRef<Piece> pieces);

  const DirectPlan &plan;
  /// What the indices may be, without the offsets of the tile.
  llvm::SmallVector<Interval> ranges;
};

/// What one step of the looped reductions reads, each vector once.
class StepLoads {
public:
  StepLoads(DirectEmitter &tile, llvm::ArrayRef<Piece> pieces);

  /// What the tile and the unrolled reductions add to the index of `loop` in
  /// what is loaded next.
  void setOffset(unsigned loop, int64_t offset) { offsets[loop] = offset; }

  /// The product of the vector inputs for one piece, with zeros where it does
  /// not exist; null if it exists nowhere.
  mlir::Value loadVector(unsigned number);
  /// The product of the scalar inputs as a vector; null if there are none.
  mlir::Value loadScalar(int64_t lanes);
  /// Fetches into the first cache what a tile further along the columns reads
  /// at this step.
  void fetchAhead();

private:
  /// A guard that must be tested: its expression at the first lane is that of
  /// the tile plus `offset`.
  struct Test {
    unsigned guard;
    int64_t offset;
    bool operator<(const Test &other) const {
      return std::tie(guard, offset) < std::tie(other.guard, other.offset);
    }
  };
  /// One vector of data at a segment, if its tests hold.
  struct Part {
    unsigned segment;
    llvm::SmallVector<Test> tests;
  };
  /// A part of a line whose elements several places of the window share: the
  /// elements of one piece for all of these.
  struct Line {
    unsigned input, number;
    /// Of its first element.
    int64_t offset;
    /// Its guards at the first element.
    llvm::SmallVector<Test> guards;

    std::vector<int64_t> getKey(int64_t part) const;
  };

  int64_t getOffset(mlir::AffineExpr expr, int64_t pieceOffset) const;
  std::optional<llvm::SmallVector<Test>> getTests(Piece piece,
                                                  unsigned segment) const;
  mlir::Value getStart(unsigned guard);
  mlir::Value getVectorStart(unsigned input, unsigned segment);
  bool isFar(Test test, mlir::AffineExpr address) const;
  mlir::Value getVectorStart(unsigned input, unsigned segment,
                             llvm::ArrayRef<Test> tests);
  mlir::Value getMask(Piece piece, llvm::ArrayRef<Test> tests);
  mlir::Value testLanes(Piece piece, Test test, int64_t coefficient);
  mlir::Value testScalar(Test test);
  mlir::Value loadSegment(unsigned input, unsigned number, const Part &part,
                          mlir::Value others);

  Line getLine(unsigned input, unsigned number);
  int64_t getLastElement(Piece piece, unsigned input) const;
  mlir::Value getElementMask(const Line &line, int64_t first, int64_t lanes,
                             llvm::SmallVectorImpl<Test> &tests);
  mlir::Value loadElements(const Line &line, int64_t first, int64_t lanes);
  mlir::Value loadOnce(const Line &line, int64_t first, int64_t lanes);
  mlir::Value loadParity(const Line &line, int64_t parity, int64_t start = 0);
  mlir::Value loadMovedParity(const Line &line, int64_t moved);
  mlir::Value loadEverySecond(unsigned input, unsigned number);

  DirectEmitter &tile;
  mlir::OpBuilder &builder;
  mlir::Location loc;
  const StridedContraction &contraction;
  llvm::ArrayRef<Piece> pieces;
  llvm::SmallVector<int64_t> offsets;
  /// The guards of all segments, and where those of each begin.
  llvm::SmallVector<Guard> guards;
  llvm::SmallVector<unsigned> firstGuards;
  /// Values at offsets of zero, made when they are needed.
  llvm::SmallVector<mlir::Value> vectorStarts, scalarStarts, guardStarts;
  /// What has been loaded, by what it depends on.
  std::map<std::vector<int64_t>, mlir::Value> vectors, scalars, elements,
      parities;
  std::map<std::pair<unsigned, llvm::SmallVector<Test>>, mlir::Value> masks;
  /// By input, segment and the tests that decide.
  std::map<std::tuple<unsigned, unsigned, llvm::SmallVector<Test>>, mlir::Value>
      chosenStarts;
};

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_EMIT_DIRECTEMITTER_H
