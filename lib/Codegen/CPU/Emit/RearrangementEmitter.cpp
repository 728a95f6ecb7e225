//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops that copy weights before a contraction, and transpose its output
// after it. Rearrangement.cpp decides which ones;
// docs/internals/code-generation.md, "Other layouts", says when they pay.
//
//===----------------------------------------------------------------------===//

#include "EmitContraction.h"
#include "LoopEmitter.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

/// Emits plain loops with scalar loads and stores: LLVM vectorizes those that
/// have consecutive elements.
class RearrangementEmitter : LoopEmitter {
public:
  RearrangementEmitter(OpBuilder &builder, Location loc,
                       const Contraction &contraction, int64_t threads)
      : LoopEmitter(builder, loc), contraction(contraction), threads(threads),
        indices(contraction.loops.size()) {}

  void emitCopy(const Contraction::Input &input, ArrayRef<unsigned> loops,
                Value copied);
  void emitTransposition(ArrayRef<unsigned> loops, Value from, Value to);

private:
  /// Loops over `loops`, outermost first.
  void enter(ArrayRef<unsigned> loops, function_ref<void()> body);
  /// Calls `body` with the size of each block of `loop`, whose index is where
  /// the block begins.
  void enterBlocks(unsigned loop, int64_t blockSize,
                   function_ref<void(int64_t)> body);
  /// Loops over the block that begins at the index of `loop`.
  void enterBlock(unsigned loop, int64_t size, function_ref<void()> body);
  SmallVector<Value> getIndices(ArrayRef<AffineExpr> exprs);
  /// The element of `input` at the indices of the loops, zero beyond its ends:
  /// there the guards of the contraction say that it counts as that.
  Value loadOrZero(const Contraction::Input &input);
  SmallVector<Value> getIndices(ArrayRef<unsigned> loops) {
    return llvm::map_to_vector(loops,
                               [&](unsigned loop) { return indices[loop]; });
  }

  const Contraction &contraction;
  int64_t threads;
  /// By loop, those around the builder.
  SmallVector<Value> indices;
};

} // namespace

void RearrangementEmitter::enter(ArrayRef<unsigned> loops,
                                 function_ref<void()> body) {
  if (loops.empty())
    return body();
  serialLoop(contraction.loops[loops.front()].extent, 1, [&](Value index) {
    indices[loops.front()] = index;
    enter(loops.drop_front(), body);
  });
}

SmallVector<Value>
RearrangementEmitter::getIndices(ArrayRef<AffineExpr> exprs) {
  SmallVector<AffineExpr> dims;
  SmallVector<OpFoldResult> operands;
  for (Value index : indices) {
    // Loops that are not around have one iteration.
    dims.push_back(index ? builder.getAffineDimExpr(operands.size())
                         : builder.getAffineConstantExpr(0));
    if (index)
      operands.push_back(index);
  }
  return llvm::map_to_vector(exprs, [&](AffineExpr expr) -> Value {
    AffineMap map = AffineMap::get(operands.size(), 0, expr.replaceDims(dims));
    return affine::makeComposedAffineApply(builder, loc, map, operands);
  });
}

Value RearrangementEmitter::loadOrZero(const Contraction::Input &input) {
  SmallVector<Value> indices = getIndices(input.indices);
  SmallVector<Interval> ranges = contraction.getRanges();
  Value exists;
  for (auto [expr, size, index] : llvm::zip_equal(
           input.indices, cast<MemRefType>(input.value.getType()).getShape(),
           indices)) {
    // No test for a dimension whose index is always inside.
    Interval interval = getInterval(expr, ranges);
    if (interval.lower >= 0 && interval.upper < size)
      continue;
    // A negative number is a large one without its sign.
    Value isInside = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ult, index, constant(size));
    exists = exists ? arith::AndIOp::create(builder, loc, exists, isInside)
                    : isInside;
  }
  auto load = [&](OpBuilder &inner) -> Value {
    return memref::LoadOp::create(inner, loc, input.value, indices);
  };
  if (!exists)
    return load(builder);
  return scf::IfOp::create(
             builder, loc, exists,
             [&](OpBuilder &inner, Location) {
               scf::YieldOp::create(inner, loc, load(inner));
             },
             [&](OpBuilder &inner, Location) {
               Value zero = arith::ConstantOp::create(
                   inner, loc, inner.getZeroAttr(elementType));
               scf::YieldOp::create(inner, loc, zero);
             })
      .getResult(0);
}

/// `copied` has the extents of `loops` as its shape, in their order.
void RearrangementEmitter::emitCopy(const Contraction::Input &input,
                                    ArrayRef<unsigned> loops, Value copied) {
  enter(loops, [&] {
    Value element = loadOrZero(input);
    memref::StoreOp::create(builder, loc, element, copied, getIndices(loops));
  });
}

void RearrangementEmitter::enterBlocks(unsigned loop, int64_t blockSize,
                                       function_ref<void(int64_t)> body) {
  int64_t extent = contraction.loops[loop].extent;
  // Whole blocks in a loop, then what is left.
  int64_t block = std::min(extent, blockSize);
  serialLoop(extent / block * block, block, [&](Value start) {
    indices[loop] = start;
    body(block);
  });
  if (int64_t rest = extent % block) {
    indices[loop] = constant(extent - rest);
    body(rest);
  }
}

void RearrangementEmitter::enterBlock(unsigned loop, int64_t size,
                                      function_ref<void()> body) {
  Value start = indices[loop];
  serialLoop(size, 1, [&](Value rest) {
    indices[loop] = arith::AddIOp::create(builder, loc, start, rest);
    body();
  });
  indices[loop] = start;
}

/// In blocks of the last dimension of `from` and, if it is another loop, of
/// that of `to`. Loops that step little in `to` are inside of the former, so
/// that a block touches few lines of both. `loops` are the dimensions of
/// `from`, outermost first.
void RearrangementEmitter::emitTransposition(ArrayRef<unsigned> loops,
                                             Value from, Value to) {
  // Elements of f32: 16 are a cache line, 256 are a quarter of a page.
  constexpr int64_t smallStep = 256, blockSize = 16;
  // Lines at multiples of this (half of what a way of the first-level cache
  // holds) are in one set or two: a whole block of them would not stay there.
  constexpr int64_t setStep = 512, narrowBlock = 4;
  int64_t lineBlock = blockSize;
  ArrayRef<int64_t> shape = cast<MemRefType>(to.getType()).getShape();
  unsigned line = loops.back();
  std::optional<unsigned> last;
  SmallVector<unsigned> outer, inner;
  for (unsigned loop : loops) {
    // How far the loop steps in `to`: Horner's rule from the last dimension.
    int64_t stride = 0, size = 1;
    for (auto [expr, extent] : llvm::zip_equal(
             llvm::reverse(contraction.output), llvm::reverse(shape))) {
      stride += *getCoefficient(expr, loop) * size;
      size *= extent;
    }
    if (loop == line) {
      lineBlock = stride % setStep == 0 ? narrowBlock : blockSize;
      continue;
    }
    // The loop along the rows of `to`.
    if (stride == 1)
      last = loop;
    else
      (stride < smallStep ? inner : outer).push_back(loop);
  }
  auto move = [&] {
    Value element =
        memref::LoadOp::create(builder, loc, from, getIndices(loops));
    memref::StoreOp::create(builder, loc, element, to,
                            getIndices(contraction.output));
  };
  // Blocks of the rows of `from`, inside of them all loops with small steps,
  // then blocks of the rows of `to`. The innermost loop runs along `to`, so
  // that stores fill whole cache lines.
  auto moveBlocks = [&] {
    enterBlocks(line, lineBlock, [&](int64_t lines) {
      enter(inner, [&] {
        if (!last)
          return enterBlock(line, lines, move);
        enterBlocks(*last, blockSize, [&](int64_t size) {
          enterBlock(line, lines, [&] { enterBlock(*last, size, move); });
        });
      });
    });
  };
  // Only a loop over far apart parts of `to` is shared: threads do not write to
  // the same cache lines.
  if (outer.empty() || threads == 1)
    return enter(outer, moveBlocks);
  sharedLoop(contraction.loops[outer.front()].extent, [&](Value index) {
    indices[outer.front()] = index;
    enter(ArrayRef(outer).drop_front(), moveBlocks);
  });
}

void kas::codegen::emitCopies(OpBuilder &builder, Location loc,
                              const Contraction &contraction,
                              const Rearrangement &rearrangement,
                              ValueRange copied) {
  RearrangementEmitter emitter(builder, loc, contraction, /*threads=*/1);
  for (auto [copy, value] : llvm::zip_equal(rearrangement.copies, copied))
    emitter.emitCopy(contraction.inputs[copy.input], copy.loops, value);
}

void kas::codegen::emitTransposition(OpBuilder &builder, Location loc,
                                     const Contraction &contraction,
                                     const Rearrangement &rearrangement,
                                     Value from, Value to, int64_t threads) {
  RearrangementEmitter(builder, loc, contraction, threads)
      .emitTransposition(rearrangement.outputLoops, from, to);
}
