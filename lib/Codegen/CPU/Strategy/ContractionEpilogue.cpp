//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the bias before a contraction and the elementwise operation after it
// that register tiles can compute while the sums are in registers (a fused
// epilogue). There are two ways in: `find` looks at the neighbours of an
// operation on buffers, `findReader` and `takeReader` at the only reader of a
// tensor. Each tile strategy then says by `suits...` whether it can compute
// what was found.
//
//===----------------------------------------------------------------------===//

#include "ContractionEpilogue.h"
#include "ContractionTarget.h"
#include "StridedContraction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// The buffer that `value` is with another shape: the sums of a convolution in
/// groups lie like a tensor in which groups and their channels are one
/// dimension.
static Value getUnshaped(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<memref::ExpandShapeOp, memref::CollapseShapeOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The operation before or after `op` that uses `buffer`, with nothing in
/// between but allocations, what has no effects and, after `op`, the end of
/// buffers that only it and what is before it may read; null if there is none.
template <typename Next>
static Operation *findNeighbour(Operation *op, Value buffer, Next next) {
  for (Operation *other = next(op); other; other = next(other)) {
    if (isa<memref::ExpandShapeOp, memref::CollapseShapeOp>(other))
      continue;
    if (llvm::is_contained(llvm::map_range(other->getOperands(), getUnshaped),
                           buffer))
      return other;
    bool isEnd = isa<memref::DeallocOp>(other) && op->isBeforeInBlock(other);
    if (!isEnd && !isa<memref::AllocOp>(other) && !isMemoryEffectFree(other))
      return nullptr;
  }
  return nullptr;
}

/// The buffer that `value` is all or part of. Two values with the same whole
/// buffer may alias.
static Value getWhole(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
    value = view.getViewSource();
  return value;
}

/// A buffer without holes, whose elements fit into the lanes of f32.
static bool isPlain(Value buffer) {
  auto type = dyn_cast<MemRefType>(buffer.getType());
  return type && type.hasStaticShape() && type.getLayout().isIdentity() &&
         (type.getElementType().isF32() || type.getElementType().isBF16() ||
          type.getElementType().isInteger(32) ||
          type.getElementType().isInteger(16) ||
          type.getElementType().isInteger(8));
}

/// How the loops step through a bias of one dimension, that of the output at
/// `position`; nothing if some loop steps through parts of it. With the output
/// `[N, C, H, W]` and `position` 1, a loop over all of N or along H and W stays
/// in one channel, or returns to it (stride 0). One over C has stride 1, one
/// over groups of four channels has stride 4; a loop that runs through part of
/// C and H as one has no stride.
static std::optional<SmallVector<int64_t>>
getBiasStrides(const StridedContraction &contraction, MemRefType output,
               int64_t position) {
  // Elements of the output that share one value of the bias and lie together.
  int64_t inner = 1;
  for (int64_t size : output.getShape().drop_front(position + 1))
    inner *= size;
  int64_t channels = output.getDimSize(position);
  SmallVector<int64_t> strides;
  for (auto [stride, loop] :
       llvm::zip_equal(contraction.output.strides, contraction.loops)) {
    int64_t range = stride * loop.extent;
    // In this order: within one channel, or over whole lists of channels; over
    // channels; across both.
    if (stride == 0 || range <= inner || stride % (inner * channels) == 0)
      strides.push_back(0);
    else if (stride % inner == 0 && range <= inner * channels)
      strides.push_back(stride / inner);
    else
      return std::nullopt;
  }
  return strides;
}

/// The dimension that a broadcast of one dimension fills with different values.
static int64_t getBiasPosition(linalg::BroadcastOp op) {
  int64_t position = 0;
  while (llvm::is_contained(op.getDimensions(), position))
    ++position;
  return position;
}

/// Rows must be the channels one by one: row vectors load consecutive elements
/// of the bias as one vector.
bool ContractionEpilogue::takeBias(Value buffer, int64_t position,
                                   const StridedContraction &contraction,
                                   MemRefType shape) {
  if (!shape)
    shape = cast<MemRefType>(contraction.output.buffer.getType());
  auto found = getBiasStrides(contraction, shape, position);
  if (!found || contraction.rows.size() > 1 ||
      (contraction.rows.size() == 1 && (*found)[contraction.rows.front()] != 1))
    return false;
  bias = buffer;
  biasStrides = *found;
  return true;
}

bool ContractionEpilogue::suitsRowVectors(
    const StridedContraction &contraction) const {
  // `takeBias` has looked at the rows that there are.
  bool hasChannels = bias || llvm::any_of(inputs, [](const Input &input) {
                       return !input.strides.empty();
                     });
  // With two loops of rows, or with none, nothing tells which lanes are which
  // channel.
  return !hasChannels || contraction.rows.size() == 1;
}

bool ContractionEpilogue::suitsDirectTiles(
    const StridedContraction &contraction, unsigned vectorLoop) const {
  // The factor multiplies the sums at the end, and with them a bias that they
  // began with.
  if (bias && (biasStrides[vectorLoop] != 0 || contraction.factor != 1))
    return false;
  return llvm::all_of(inputs, [&](const Input &input) {
    if (!input.buffer)
      return true;
    // A tile whose last vector begins earlier would read what it has
    // overwritten.
    return input.strides.empty() ? getWhole(input.buffer) != getWhole(result)
                                 : input.strides[vectorLoop] == 0;
  });
}

bool ContractionEpilogue::overwritesInput() const {
  return llvm::any_of(inputs, [&](const Input &input) {
    return input.buffer && input.strides.empty() &&
           getWhole(input.buffer) == getWhole(result);
  });
}

/// The broadcast of a vector that fills the output of `op` right before it;
/// null if something else does.
static linalg::BroadcastOp findBroadcast(linalg::LinalgOp op) {
  Value output = getUnshaped(op.getDpsInits().front());
  auto before = dyn_cast_or_null<linalg::BroadcastOp>(findNeighbour(
      op, output, [](Operation *at) { return at->getPrevNode(); }));
  if (!before || before.getInit() != output || !isPlain(before.getInput()) ||
      !isPlain(output) ||
      cast<MemRefType>(before.getInput().getType()).getRank() != 1)
    return nullptr;
  return before;
}

/// Whether tiles may compute exponentials, some twenty operations with as many
/// constants. On fewer registers than those of 512 bits a loop of its own takes
/// less time.
static bool mayComputeExp(Operation &op) {
  if (!op.getResult(0).getType().isF32())
    return false;
  Target target = getContractionTarget(op.getParentOfType<ModuleOp>(),
                                       /*vectorBits=*/0);
  return target.hasFMA && schedule::TileTarget(target).hasMaskRegisters;
}

/// An operation that can be done on vectors. Operations of arith have the same
/// name on vectors, so that `emit` can make them as they are; the accumulator's
/// argument must not be read, since it has no vector.
static bool isElementwiseBody(Block &body) {
  return body.getArguments().back().use_empty() &&
         llvm::all_of(body.without_terminator(), [](Operation &op) {
           return op.getNumResults() == 1 && op.getNumRegions() == 0 &&
                  (isa<arith::ConstantOp, math::RoundEvenOp>(op) ||
                   (isa<math::ExpOp>(op) && mayComputeExp(op)) ||
                   (isa<arith::ArithDialect>(op.getDialect()) &&
                    OpTrait::hasElementwiseMappableTraits(&op)));
         });
}

/// Whether nobody reads `buffer` after `op` before it is written again.
static bool isDeadAfter(Operation *op, Value buffer) {
  // Of an argument or a view nothing is known: the caller may read it.
  auto alloc = buffer.getDefiningOp<memref::AllocOp>();
  if (!alloc)
    return false;
  // The first use after `op` in its block decides, if it overwrites or frees
  // all of the buffer. Where the block may run again with the same buffer, as
  // the body of a loop that the allocation is outside of, the uses up to `op`
  // come after those that follow it.
  bool isOnce = alloc->getBlock() == op->getBlock();
  Operation *next = nullptr, *first = nullptr;
  SmallVector<Operation *> users(buffer.getUsers());
  for (size_t i = 0; i < users.size(); ++i) {
    Operation *user = users[i];
    if (isa<memref::ExpandShapeOp, memref::CollapseShapeOp>(user)) {
      llvm::append_range(users, user->getUsers());
      continue;
    }
    // What reads through another name of the buffer is no user of it.
    Operation *inBlock = op->getBlock()->findAncestorOpInBlock(*user);
    if (!inBlock ||
        llvm::any_of(user->getResultTypes(), llvm::IsaPred<BaseMemRefType>))
      return false;
    if (!first || inBlock->isBeforeInBlock(first))
      first = inBlock;
    if (op->isBeforeInBlock(inBlock) &&
        (!next || inBlock->isBeforeInBlock(next)))
      next = inBlock;
  }
  if (!next && !isOnce)
    next = first;
  if (!next || isa<memref::DeallocOp>(next))
    return true;
  if (auto fill = dyn_cast<linalg::FillOp>(next))
    return getUnshaped(fill.getOutputs().front()) == buffer;
  auto broadcast = dyn_cast<linalg::BroadcastOp>(next);
  return broadcast && getUnshaped(broadcast.getInput()) != buffer;
}

/// The one dimension that `map` has as result, or nothing.
static std::optional<unsigned> getOnlyDim(AffineMap map) {
  if (map.getNumResults() != 1)
    return std::nullopt;
  auto expr = dyn_cast<AffineDimExpr>(map.getResult(0));
  return expr ? std::optional(expr.getPosition()) : std::nullopt;
}

/// The elementwise operation on the output right after `op`, which tiles may
/// compute in its stead: it reads the sums once, at the same index, and nobody
/// needs the sums themselves afterwards. Null if there is none.
static linalg::GenericOp findElementwise(linalg::LinalgOp op) {
  Value output = getUnshaped(op.getDpsInits().front());
  auto next = dyn_cast_or_null<linalg::GenericOp>(findNeighbour(
      op, output, [](Operation *at) { return at->getNextNode(); }));
  if (!next || !isPlain(output) || next.getNumReductionLoops() != 0 ||
      next.getNumDpsInits() != 1 || !isElementwiseBody(*next.getBlock()))
    return nullptr;
  ArrayRef<int64_t> shape =
      cast<MemRefType>(next.getDpsInits().front().getType()).getShape();
  for (OpOperand &operand : next->getOpOperands()) {
    AffineMap map = next.getMatchingIndexingMap(&operand);
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (!isPlain(operand.get()) ||
        (map.isIdentity() ? type.getShape() != shape
                          : getUnshaped(operand.get()) == output ||
                                !next.isDpsInput(&operand) || !getOnlyDim(map)))
      return nullptr;
  }
  // Its other inputs must exist where the contraction is, which computes both.
  unsigned count = 0;
  for (Value input : next.getDpsInputs()) {
    if (getUnshaped(input) == output)
      ++count;
    else if (Operation *made = input.getDefiningOp();
             made && !made->isBeforeInBlock(op))
      return nullptr;
  }
  Value result = getUnshaped(next.getDpsInits().front());
  if (count != 1 || (result != output && !isDeadAfter(next, output)))
    return nullptr;
  // The result is written from now on: nobody may read it meanwhile, and its
  // buffer must be there.
  if (Operation *made = result.getDefiningOp(); result != output && made &&
                                                !made->isBeforeInBlock(op) &&
                                                !isa<memref::AllocOp>(made))
    return nullptr;
  // Tiles write results while others still read the contraction's inputs.
  for (Value input : op.getDpsInputs())
    if (getWhole(input) == getWhole(result))
      return nullptr;
  return next;
}

ContractionEpilogue
ContractionEpilogue::find(linalg::LinalgOp op,
                          const StridedContraction &contraction) {
  ContractionEpilogue epilogue;
  linalg::BroadcastOp before = findBroadcast(op);
  if (before &&
      epilogue.takeBias(before.getInput(), getBiasPosition(before), contraction,
                        cast<MemRefType>(before.getInit().getType())))
    epilogue.broadcast = before;
  if (linalg::GenericOp next = findElementwise(op)) {
    Value output = getUnshaped(op.getDpsInits().front());
    SmallVector<Value> buffers(next.getDpsInputs());
    for (Value &buffer : buffers)
      // `takeReader` takes null for the sums.
      if (getUnshaped(buffer) == output)
        buffer = Value();
    Value result = next.getDpsInits().front();
    if (epilogue.takeReader(next, buffers, contraction,
                            cast<MemRefType>(result.getType())))
      // Not with a shape that is made after `op`.
      epilogue.result = getUnshaped(result);
  }
  return epilogue;
}

linalg::GenericOp ContractionEpilogue::findReader(Value tensor) {
  if (!tensor.hasOneUse())
    return nullptr;
  auto reader = dyn_cast<linalg::GenericOp>(*tensor.getUsers().begin());
  if (!reader || reader->getBlock() != tensor.getParentBlock() ||
      !reader.hasPureTensorSemantics() || reader.getNumReductionLoops() != 0 ||
      reader.getNumDpsInits() != 1 ||
      reader.getResult(0).getType() != tensor.getType() ||
      !isElementwiseBody(*reader.getBlock()) ||
      !reader.getMatchingIndexingMap(reader.getDpsInitOperand(0)).isIdentity())
    return nullptr;
  for (OpOperand *input : reader.getDpsInputOperands()) {
    AffineMap map = reader.getMatchingIndexingMap(input);
    if (map.isIdentity() ? input->get().getType() != tensor.getType()
                         : input->get() == tensor || !getOnlyDim(map))
      return nullptr;
  }
  return reader;
}

bool ContractionEpilogue::takeReader(linalg::GenericOp reader,
                                     ValueRange buffers,
                                     const StridedContraction &contraction,
                                     MemRefType shape) {
  SmallVector<Input> found;
  for (auto [operand, buffer] :
       llvm::zip_equal(reader.getDpsInputOperands(), buffers)) {
    AffineMap map = reader.getMatchingIndexingMap(operand);
    Input input{buffer, {}};
    if (!map.isIdentity()) {
      // A value per channel steps through the loops exactly as a bias does.
      ContractionEpilogue channel;
      if (!channel.takeBias(buffer, *getOnlyDim(map), contraction, shape))
        return false;
      input.strides = channel.biasStrides;
    }
    found.push_back(std::move(input));
  }
  elementwise = reader;
  inputs = std::move(found);
  // The buffer of the contraction itself; `find` corrects it where the
  // operation writes to another one.
  result = contraction.output.buffer;
  return true;
}
