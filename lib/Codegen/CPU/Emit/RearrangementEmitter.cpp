//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops that copy weights before a contraction, and transpose its output
// after it.
//
//===----------------------------------------------------------------------===//

#include "../Strategy/Rearrangement.h"
#include "ContractionEmitter.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

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
  SmallVector<Value> getIndices(ArrayRef<AffineExpr> exprs);
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

void RearrangementEmitter::emitCopy(const Contraction::Input &input,
                                    ArrayRef<unsigned> loops, Value copied) {
  enter(loops, [&] {
    Value element = memref::LoadOp::create(builder, loc, input.value,
                                           getIndices(input.indices));
    memref::StoreOp::create(builder, loc, element, copied, getIndices(loops));
  });
}

/// In blocks of the loop that steps along the last dimension of `to`, in which
/// lines of `from` are read until they are used up.
void RearrangementEmitter::emitTransposition(ArrayRef<unsigned> loops,
                                             Value from, Value to) {
  constexpr int64_t blockSize = 16;
  unsigned line = loops.back();
  std::optional<unsigned> last;
  for (unsigned loop : loops)
    if (contraction.output.back().isFunctionOfDim(loop) &&
        getCoefficient(contraction.output.back(), loop) == 1)
      last = loop;
  SmallVector<unsigned> outer = llvm::filter_to_vector(
      loops, [&](unsigned loop) { return loop != line && loop != last; });
  auto move = [&] {
    Value element =
        memref::LoadOp::create(builder, loc, from, getIndices(loops));
    memref::StoreOp::create(builder, loc, element, to,
                            getIndices(contraction.output));
  };
  auto moveBlocks = [&] {
    if (!last)
      return enter(line, move);
    int64_t extent = contraction.loops[*last].extent;
    int64_t block = std::min(extent, blockSize);
    auto moveBlock = [&](Value start, int64_t size) {
      serialLoop(contraction.loops[line].extent, 1, [&](Value place) {
        indices[line] = place;
        serialLoop(size, 1, [&](Value rest) {
          indices[*last] = arith::AddIOp::create(builder, loc, start, rest);
          move();
        });
      });
    };
    serialLoop(extent / block * block, block,
               [&](Value start) { moveBlock(start, block); });
    if (int64_t rest = extent % block)
      moveBlock(constant(extent - rest), rest);
  };
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
