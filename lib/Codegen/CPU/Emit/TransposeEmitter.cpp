//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits `linalg.transpose` of whole f32 buffers as transpositions of square
// blocks in vector registers: `lanes` vectors are loaded along the rows of the
// input, transposed by shuffles (`LoopEmitter::transpose`) and stored along the
// rows of the output, so that both sides are accessed by whole vectors only.
// docs/internals/code-generation.md, "Batch-innermost tensors", has the costs.
//
//===----------------------------------------------------------------------===//

#include "TransposeEmitter.h"
#include "LoopEmitter.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

/// `count` matrices of `rows` times `columns`, one after the other.
struct Matrices {
  int64_t count = 1, rows = 1, columns = 1;

  int64_t getSize() const { return count * rows * columns; }
};

class TransposeEmitter : LoopEmitter {
public:
  TransposeEmitter(OpBuilder &builder, Location loc, const Matrices &matrices,
                   int64_t lanes)
      : LoopEmitter(builder, loc), matrices(matrices), lanes(lanes) {}

  void emit(Value from, Value to, bool isParallel);

private:
  /// Calls `body` with where each block of `extent` begins; the last one begins
  /// early enough to be whole, and after the shared ones, some of which it
  /// writes again.
  void forEachBlock(int64_t extent, Body body, bool isParallel = false);
  void moveBlock(Value matrix, Value row, Value column);

  Matrices matrices;
  int64_t lanes;
  Value from, to;
};

} // namespace

void TransposeEmitter::forEachBlock(int64_t extent, Body body,
                                    bool isParallel) {
  if (isParallel)
    sharedLoop(extent / lanes,
               [&](Value block) { body(apply(dim(0) * lanes, {block})); });
  else
    serialLoop(extent - extent % lanes, lanes, body);
  // As the last block overlaps others, it must not run at the same time as
  // them: they write the same values, but unordered writes are a data race.
  if (extent % lanes != 0)
    body(constant(extent - lanes));
}

/// Moves the block at `row` and `column` of one matrix to `column` and `row` of
/// its transposed one.
void TransposeEmitter::moveBlock(Value matrix, Value row, Value column) {
  const auto &[count, rows, columns] = matrices;
  Value start = apply(dim(0) * (rows * columns), {matrix});
  SmallVector<Value> vectors;
  for (int64_t lane = 0; lane < lanes; ++lane)
    vectors.push_back(vector::LoadOp::create(
        builder, loc, getVectorType(lanes), from,
        apply(dim(0) + dim(1) * columns + dim(2) + lane * columns,
              {start, row, column})));
  vectors = transpose(vectors);
  for (int64_t lane = 0; lane < lanes; ++lane)
    vector::StoreOp::create(builder, loc, vectors[lane], to,
                            apply(dim(0) + dim(2) * rows + dim(1) + lane * rows,
                                  {start, row, column}));
}

/// `source` is `count` matrices of `rows` by `columns`, `result` those of
/// `columns` by `rows`.
void TransposeEmitter::emit(Value source, Value result, bool isParallel) {
  from = flatten(source, matrices.getSize());
  to = flatten(result, matrices.getSize());
  // Threads share the matrices, or the blocks of a single one.
  bool sharesBlocks = isParallel && matrices.count == 1;
  auto moveMatrix = [&](Value matrix) {
    auto moveRow = [&](Value row) {
      forEachBlock(matrices.columns,
                   [&](Value column) { moveBlock(matrix, row, column); });
    };
    auto moveColumn = [&](Value column) {
      forEachBlock(matrices.rows,
                   [&](Value row) { moveBlock(matrix, row, column); });
    };
    // Along the longer lines, which are so read or written in order.
    if (matrices.columns > matrices.rows)
      forEachBlock(matrices.rows, moveRow, sharesBlocks);
    else
      forEachBlock(matrices.columns, moveColumn, sharesBlocks);
  };
  if (sharesBlocks)
    moveMatrix(constant(0));
  else if (isParallel)
    sharedLoop(matrices.count, moveMatrix);
  else
    serialLoop(matrices.count, 1, moveMatrix);
}

/// What `op` transposes, where that is a number of matrices. The permutation
/// must be `0 .. kept-1`, then a rotation of the other dimensions: `[0, 2, 3,
/// 1]` moves dimension 1 past 2 and 3, and is one matrix of `size(1)` by
/// `size(2) * size(3)` for each index of dimension 0.
static std::optional<Matrices> getMatrices(linalg::TransposeOp op) {
  auto type = dyn_cast<MemRefType>(op.getInput().getType());
  auto result = dyn_cast<MemRefType>(op.getInit().getType());
  if (!type || !result || !type.hasStaticShape() ||
      !type.getElementType().isF32() || !type.getLayout().isIdentity() ||
      !result.getLayout().isIdentity())
    return std::nullopt;
  ArrayRef<int64_t> order = op.getPermutation();
  int64_t rank = order.size(), kept = 0;
  while (kept < rank && order[kept] == kept)
    ++kept;
  // The identity is a copy.
  if (kept == rank)
    return std::nullopt;
  int64_t split = order[kept];
  Matrices matrices;
  for (int64_t position = 0; position < rank; ++position) {
    int64_t size = type.getDimSize(position);
    if (position < kept) {
      matrices.count *= size;
      continue;
    }
    (position < split ? matrices.rows : matrices.columns) *= size;
    // The dimension of the input that the rotation puts here.
    int64_t moved = position + split - kept;
    if (order[position] != (moved < rank ? moved : moved - rank + kept))
      return std::nullopt;
  }
  return matrices;
}

LogicalResult kas::codegen::emitTranspose(OpBuilder &builder,
                                          linalg::TransposeOp op, int64_t lanes,
                                          bool isParallel) {
  std::optional<Matrices> matrices = getMatrices(op);
  if (!matrices || matrices->rows < lanes || matrices->columns < lanes)
    return failure();
  TransposeEmitter(builder, op.getLoc(), *matrices, lanes)
      .emit(op.getInput(), op.getInit(), isParallel);
  return success();
}
