//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of linalg operations that are no contractions: a thread computes one
// element of the outputs, or a vector of them, reductions in loops. Views of
// operands are index arithmetic (TensorAccess.h), so padding, slices and
// transpositions between two operations need no kernel. Bodies are cloned, with
// operands replaced by loads.
//
//===----------------------------------------------------------------------===//

#include "LoopKernel.h"
#include "Epilogue.h"
#include "KernelEmitter.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

/// Emits the body of one kernel.
class LoopKernelEmitter {
public:
  LoopKernelEmitter(OpBuilder &builder, Location loc,
                    const LoopProblem &problem, const LaunchShape &launch,
                    int64_t width, ValueRange inputs, ValueRange outputs)
      : b(loc, builder), index(b), problem(problem), op(problem.op),
        launch(launch), width(width), inputs(inputs), outputs(outputs) {}

  void emit();
  /// In each block, for its own threads.
  void emitInBlock();

private:
  /// The values of all outputs at a point of the parallel loops.
  SmallVector<Value> emitPoint(AffineExpr point);
  /// Computes and stores a point.
  void emitResults(AffineExpr point);
  void emitStore(unsigned output, AffineExpr address, Value value);
  /// The reduction loops from loop `from` on around the body. `carried` are the
  /// accumulators, one per output; the result is their values after the loops.
  SmallVector<Value> emitReductions(unsigned from, ValueRange carried);
  /// One iteration: the values that the body yields, given the accumulators.
  SmallVector<Value> emitBody(ValueRange carried);
  /// What the body gets for an operand.
  Value emitOperand(unsigned number);
  AffineExpr substitute(AffineExpr expr) const {
    return index.simplify(expr.replaceDims(loops));
  }

  ImplicitLocOpBuilder b;
  IndexEmitter index;
  const LoopProblem &problem;
  linalg::GenericOp op;
  LaunchShape launch;
  int64_t width;
  ValueRange inputs, outputs;
  /// The value of each loop.
  SmallVector<AffineExpr> loops;
};

} // namespace

Value LoopKernelEmitter::emitOperand(unsigned number) {
  const TensorAccess &access = problem.accesses[number];
  Value buffer = access.source
                     ? inputs[llvm::find(problem.inputs, access.source) -
                              problem.inputs.begin()]
                     : Value();
  return emitAccess(b, index, access, buffer, loops,
                    getElementTypeOrSelf(op->getOperand(number).getType()));
}

SmallVector<Value> LoopKernelEmitter::emitBody(ValueRange carried) {
  IRMapping mapping;
  unsigned numInputs = op.getNumDpsInputs();
  Block *body = op.getBody();
  for (unsigned i = 0; i < numInputs; ++i)
    // An operand that the body does not use is not loaded: it may have no
    // source.
    if (!body->getArgument(i).use_empty())
      mapping.map(body->getArgument(i), emitOperand(i));
  for (auto [i, value] : llvm::enumerate(carried))
    if (value)
      mapping.map(body->getArgument(numInputs + i), value);
  for (Operation &inner : body->without_terminator()) {
    // `linalg.index` is the value of a loop.
    if (auto loop = dyn_cast<linalg::IndexOp>(inner)) {
      mapping.map(loop.getResult(), index.emit(loops[loop.getDim()]));
      continue;
    }
    b.clone(inner, mapping);
  }
  SmallVector<Value> results;
  for (Value value : body->getTerminator()->getOperands())
    results.push_back(mapping.lookupOrDefault(value));
  return results;
}

SmallVector<Value> LoopKernelEmitter::emitReductions(unsigned from,
                                                     ValueRange carried) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  for (unsigned loop = from; loop < extents.size(); ++loop) {
    // Parallel loops have their value from the thread's id.
    if (loops[loop])
      continue;
    if (extents[loop] == 1) {
      loops[loop] = b.getAffineConstantExpr(0);
      continue;
    }
    auto nest = scf::ForOp::create(b, index.createConstant(0),
                                   index.createConstant(extents[loop]),
                                   index.createConstant(1), carried);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(nest.getBody());
    loops[loop] = index.add(nest.getInductionVar(), {0, extents[loop] - 1});
    scf::YieldOp::create(b, emitReductions(loop + 1, nest.getRegionIterArgs()));
    return SmallVector<Value>(nest.getResults());
  }
  return emitBody(carried);
}

SmallVector<Value> LoopKernelEmitter::emitPoint(AffineExpr point) {
  loops.assign(op.getNumLoops(), AffineExpr());
  for (auto [loop, digit] :
       llvm::zip_equal(problem.loops, delinearize(point, problem.extents))) {
    // Divisions once, not in every address.
    AffineExpr simple = index.simplify(digit);
    loops[loop] = isa<AffineBinaryOpExpr>(simple)
                      ? index.add(index.emit(simple), index.getRange(simple))
                      : simple;
  }
  unsigned numInputs = op.getNumDpsInputs();
  bool reduces = op.getNumReductionLoops() != 0;
  SmallVector<Value> carried;
  for (unsigned i = 0; i < op.getNumDpsInits(); ++i) {
    // An output that the body does not read needs no initial value, unless it
    // is an accumulator.
    bool isRead = !op.getBody()->getArgument(numInputs + i).use_empty();
    carried.push_back(isRead || reduces ? emitOperand(numInputs + i) : Value());
  }
  return reduces ? emitReductions(0, carried) : emitBody(carried);
}

void LoopKernelEmitter::emitStore(unsigned output, AffineExpr address,
                                  Value value) {
  auto type = dyn_cast<VectorType>(value.getType());
  if (!type) {
    memref::StoreOp::create(b, value, outputs[output], index.emit(address));
    return;
  }
  vector::StoreOp::create(
      b, value, outputs[output], ValueRange(index.emit(address)),
      /*nontemporal=*/false,
      llvm::MaybeAlign(width * type.getElementTypeBitWidth() / 8));
}

void LoopKernelEmitter::emit() {
  OpBuilder::InsertionGuard guard(b);
  int64_t threads = launch.block[0], numVectors = problem.numIterations / width;
  Value block = emitBlockId(b, index, launch);
  Value id = arith::AddIOp::create(
      b, arith::MulIOp::create(b, block, index.createConstant(threads)),
      gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  // The last block may have more threads than elements are left. There are no
  // barriers, so these threads simply skip the body.
  if (launch.getNumBlocks() * threads > numVectors) {
    Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, id,
                                         index.createConstant(numVectors));
    auto branch = scf::IfOp::create(b, inside, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  AffineExpr first = index.add(id, {0, numVectors - 1}) * width;
  if (width > 1) {
    // Results lie in the order of the points then.
    SmallVector<SmallVector<Value>> lanes(op->getNumResults());
    for (int64_t lane = 0; lane < width; ++lane)
      for (auto [i, value] : llvm::enumerate(emitPoint(first + lane)))
        lanes[i].push_back(value);
    for (auto [i, values] : llvm::enumerate(lanes))
      emitStore(
          i, first,
          vector::FromElementsOp::create(
              b, VectorType::get({width}, values.front().getType()), values));
    return;
  }
  emitResults(first);
}

void LoopKernelEmitter::emitResults(AffineExpr point) {
  for (auto [i, value] : llvm::enumerate(emitPoint(point))) {
    SmallVector<AffineExpr> indices;
    for (AffineExpr expr :
         op.getMatchingIndexingMap(op.getDpsInitOperand(i)).getResults())
      indices.push_back(substitute(expr));
    ArrayRef<int64_t> shape =
        cast<ShapedType>(op.getResult(i).getType()).getShape();
    if (problem.epilogue)
      value = emitEpilogue(b, index, *problem.epilogue, shape,
                           inputs.drop_front(problem.inputs.size()), value,
                           indices);
    emitStore(i, linearize(indices, shape, b.getContext()), value);
  }
}

void LoopKernelEmitter::emitInBlock() {
  OpBuilder::InsertionGuard guard(b);
  int64_t threads = launch.block[0], points = problem.numIterations;
  AffineExpr point = index.add(gpu::ThreadIdOp::create(b, gpu::Dimension::x),
                               {0, threads - 1});
  if (int64_t rounds = llvm::divideCeil(points, threads); rounds > 1) {
    auto loop = scf::ForOp::create(b, index.createConstant(0),
                                   index.createConstant(rounds),
                                   index.createConstant(1));
    b.setInsertionPointToStart(loop.getBody());
    point =
        point + index.add(loop.getInductionVar(), {0, rounds - 1}) * threads;
  }
  if (points % threads != 0) {
    auto branch = scf::IfOp::create(b, index.emitGuard({point, points}),
                                    /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
    point = index.add(index.emit(point), {0, points - 1});
  }
  emitResults(point);
}

void kas::codegen::emitPrologue(OpBuilder &builder, Location loc,
                                const LoopProblem &problem, int64_t numThreads,
                                ValueRange inputs, Value memory) {
  LaunchShape launch;
  launch.block[0] = numThreads;
  LoopKernelEmitter(builder, loc, problem, launch, /*width=*/1, inputs, memory)
      .emitInBlock();
  gpu::BarrierOp::create(builder, loc);
}

void kas::codegen::emitLoopKernel(OpBuilder &builder, Location loc,
                                  const LoopProblem &problem,
                                  const LaunchShape &launch, int64_t width,
                                  ValueRange arguments) {
  unsigned numOutputs = problem.op->getNumResults();
  LoopKernelEmitter(builder, loc, problem, launch, width,
                    arguments.drop_back(numOutputs),
                    arguments.take_back(numOutputs))
      .emit();
}
