//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The computation of a function on tensors as linalg operations each of which
// is a kernel. Three steps with elementwise fusion between the last two:
// everything becomes `linalg.generic`; the initial values of contractions
// become additions after them, which fuse with biases and rectifiers; views
// that a reader cannot follow (see TensorAccess.h) are copied by kernels.
// Whatever remains between the arguments and the results is then a kernel, a
// view of a tensor or a constant.
//
//===----------------------------------------------------------------------===//

#include "../Strategy/ContractionProblem.h"
#include "kas/Codegen/Common/Passes.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/DebugLog.h"
#include "llvm/Support/MathExtras.h"

#define DEBUG_TYPE "kas-gpu-form-kernels"

namespace kas::codegen {
#define GEN_PASS_DEF_KASGPUFORMKERNELSPASS
#include "kas/Codegen/GPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

class KernelFormer {
public:
  explicit KernelFormer(func::FuncOp function)
      : function(function), rewriter(function.getContext()) {}

  /// Everything that computes becomes a `linalg.generic`.
  LogicalResult generalize();
  /// What contractions begin with is added after them.
  void splitContractions();
  /// Views that no kernel can read through become kernels.
  LogicalResult materialize();

private:
  /// Decomposes or generalizes one operation; views and generics are left
  /// alone.
  LogicalResult generalize(Operation *op);
  LogicalResult replaceInsertSlice(tensor::InsertSliceOp insert);
  /// Reports tensors that no kernel can have: of dynamic shape, empty, or of
  /// other elements than numbers.
  LogicalResult checkShapes();
  /// Lets each result be written by a kernel of its own.
  LogicalResult materializeReturned();
  /// Lets `op` read its operands, with copies where needed.
  LogicalResult materializeOperands(Operation *op);
  /// A copy of `value` that a kernel makes.
  Value createCopy(Location loc, Value value);
  Value createEmpty(Location loc, Value like);
  /// A `linalg.generic` of `inputs`, all of the shape of `like`.
  linalg::GenericOp createElementwise(
      Location loc, ValueRange inputs, Value like,
      function_ref<Value(OpBuilder &, Location, ValueRange)> emitBody);

  func::FuncOp function;
  IRRewriter rewriter;
};

} // namespace

//===----------------------------------------------------------------------===//
// Building blocks
//===----------------------------------------------------------------------===//

Value KernelFormer::createEmpty(Location loc, Value like) {
  auto type = cast<RankedTensorType>(like.getType());
  return tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                 type.getElementType());
}

linalg::GenericOp KernelFormer::createElementwise(
    Location loc, ValueRange inputs, Value like,
    function_ref<Value(OpBuilder &, Location, ValueRange)> emitBody) {
  unsigned rank = cast<RankedTensorType>(like.getType()).getRank();
  SmallVector<AffineMap> maps(inputs.size() + 1,
                              rewriter.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  return linalg::GenericOp::create(
      rewriter, loc, TypeRange(like.getType()), inputs,
      ValueRange(createEmpty(loc, like)), maps, loops,
      [&](OpBuilder &builder, Location bodyLoc, ValueRange arguments) {
        linalg::YieldOp::create(builder, bodyLoc,
                                emitBody(builder, bodyLoc, arguments));
      });
}

Value KernelFormer::createCopy(Location loc, Value value) {
  return createElementwise(loc, value, value,
                           [](OpBuilder &, Location, ValueRange arguments) {
                             return arguments.front();
                           })
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// To linalg.generic
//===----------------------------------------------------------------------===//

/// Whether kernels can load, store and compute with `type`.
static bool isNumber(Type type) {
  return type.isF16() || type.isBF16() || type.isF32() || type.isF64() ||
         (type.isInteger() && type.getIntOrFloatBitWidth() <= 64);
}

/// Whether the bytes of such a tensor can be counted.
static bool isCountable(ArrayRef<int64_t> shape) {
  int64_t bytes = 8;
  return llvm::all_of(shape, [&](int64_t size) {
    return !llvm::MulOverflow(bytes, size, bytes);
  });
}

LogicalResult KernelFormer::checkShapes() {
  auto check = [](Operation *op, TypeRange types) -> LogicalResult {
    for (Type type : types) {
      auto shaped = dyn_cast<ShapedType>(type);
      if (!shaped)
        continue;
      if (!shaped.hasStaticShape())
        return op->emitError()
               << "expected static shapes for kernels of a GPU, got " << type;
      if (llvm::is_contained(shaped.getShape(), 0) ||
          !isCountable(shaped.getShape()))
        return op->emitError() << "expected tensors of at least one and less "
                                  "than 2^60 elements for kernels of a GPU, "
                                  "got "
                               << type;
      if (!isNumber(shaped.getElementType()))
        return op->emitError() << "expected elements of f16, bf16, f32, f64 or "
                                  "integers of at most 64 bits for kernels of "
                                  "a GPU, got "
                               << type;
    }
    return success();
  };
  if (failed(check(function, function.getArgumentTypes())))
    return failure();
  WalkResult result = function.walk([&](Operation *op) {
    return failed(check(op, op->getResultTypes())) ? WalkResult::interrupt()
                                                   : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// A kernel that selects: `insert(source, dest)` is the source, padded to the
/// shape of the result, where the index is inside of it, else the destination.
LogicalResult KernelFormer::replaceInsertSlice(tensor::InsertSliceOp insert) {
  Location loc = insert.getLoc();
  if (llvm::any_of(insert.getStaticOffsets(), ShapedType::isDynamic) ||
      llvm::any_of(insert.getStaticStrides(),
                   [](int64_t stride) { return stride != 1; }))
    return insert.emitError() << "expected constant offsets and strides of 1 "
                                 "for kernels of a GPU, got others";
  auto sizes = insert.getStaticSizes();
  // The source with all dimensions of the destination.
  auto type =
      RankedTensorType::get(sizes, insert.getSourceType().getElementType());
  Value source = insert.getSource();
  // A rank-reducing insertion: unit dimensions are added first.
  if (type != source.getType()) {
    auto groups =
        getReassociationIndicesForReshape(insert.getSourceType(), type);
    if (!groups)
      return insert.emitError() << "expected a source that expands to " << type
                                << ", got " << source.getType();
    source =
        tensor::ExpandShapeOp::create(rewriter, loc, type, source, *groups);
  }
  auto whole = cast<RankedTensorType>(insert.getType());
  SmallVector<int64_t> low(insert.getStaticOffsets()), high;
  for (auto [total, offset, size] :
       llvm::zip_equal(whole.getShape(), low, sizes))
    high.push_back(total - offset - size);
  // Never read: outside of the source the destination is selected.
  Value zero = arith::ConstantOp::create(
      rewriter, loc, rewriter.getZeroAttr(whole.getElementType()));
  auto toResults = [&](ArrayRef<int64_t> amounts) {
    return getAsIndexOpFoldResult(rewriter.getContext(), amounts);
  };
  Value padded = tensor::PadOp::create(rewriter, loc, whole, source,
                                       toResults(low), toResults(high), zero);
  auto merged = createElementwise(
      loc, {insert.getDest(), padded}, insert.getResult(),
      [&](OpBuilder &builder, Location bodyLoc, ValueRange arguments) {
        Value inside;
        for (auto [i, offset, size] : llvm::enumerate(low, sizes)) {
          // Along this dimension everything is inside.
          if (size == whole.getDimSize(i))
            continue;
          auto constant = [&](int64_t value) {
            return arith::ConstantIndexOp::create(builder, bodyLoc, value);
          };
          Value index = linalg::IndexOp::create(builder, bodyLoc, i);
          Value shifted =
              arith::SubIOp::create(builder, bodyLoc, index, constant(offset));
          Value isIn =
              arith::CmpIOp::create(builder, bodyLoc, arith::CmpIPredicate::ult,
                                    shifted, constant(size));
          inside =
              inside
                  ? Value(arith::AndIOp::create(builder, bodyLoc, inside, isIn))
                  : isIn;
        }
        if (!inside)
          return arguments[1];
        return Value(arith::SelectOp::create(builder, bodyLoc, inside,
                                             arguments[1], arguments[0]));
      });
  rewriter.replaceOp(insert, merged.getResults());
  return success();
}

LogicalResult KernelFormer::generalize(Operation *op) {
  rewriter.setInsertionPoint(op);
  if (auto concat = dyn_cast<tensor::ConcatOp>(op)) {
    FailureOr<SmallVector<Value>> parts = concat.decomposeOperation(rewriter);
    if (failed(parts))
      return op->emitError() << "expected a tensor.concat that can be "
                                "decomposed, got another";
    rewriter.replaceOp(op, *parts);
    return success();
  }
  // Softmax and the like.
  if (auto aggregate = dyn_cast<linalg::AggregatedOpInterface>(op)) {
    // Upstream begins with the least float, whatever the type.
    if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op);
        softmax &&
        !isa<FloatType>(softmax.getInputOperandType().getElementType()))
      return op->emitError() << "expected a softmax of floats for kernels of a "
                                "GPU, got "
                             << softmax.getInputOperandType();
    FailureOr<SmallVector<Value>> parts =
        aggregate.decomposeOperation(rewriter);
    if (failed(parts))
      return op->emitError() << "expected an operation that can be decomposed "
                                "for kernels of a GPU, got "
                             << op->getName();
    rewriter.replaceOp(op, *parts);
    return success();
  }
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    return replaceInsertSlice(insert);
  if (isTensorView(op) || isa<linalg::GenericOp>(op))
    return success();
  // Other operations are checked by `materializeOperands`, if they are read.
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp)
    return success();
  if (failed(linalg::generalizeNamedOp(rewriter, linalgOp)))
    return op->emitError() << "expected an operation that is a linalg.generic "
                              "for kernels of a GPU, got "
                           << op->getName();
  return success();
}

/// What the body reads from outside is computed there.
static LogicalResult sinkConstants(linalg::GenericOp op) {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op.getRegion(), captured);
  for (Value value : captured) {
    Operation *constant = value.getDefiningOp();
    if (!constant || !constant->hasTrait<OpTrait::ConstantLike>())
      return op.emitError() << "expected constants only of what the body reads "
                               "from outside, got "
                            << value;
    OpBuilder builder = OpBuilder::atBlockBegin(op.getBody());
    Value copy = builder.clone(*constant)->getResult(0);
    value.replaceUsesWithIf(copy, [&](OpOperand &use) {
      return op->isProperAncestor(use.getOwner());
    });
  }
  return success();
}

LogicalResult KernelFormer::generalize() {
  if (failed(checkShapes()))
    return failure();
  // Decomposed operations are decomposed again.
  for (bool changed = true; changed;) {
    changed = false;
    SmallVector<Operation *> ops;
    for (Operation &op : function.getBody().front())
      if (isa<linalg::AggregatedOpInterface, tensor::ConcatOp,
              tensor::InsertSliceOp, linalg::LinalgOp>(op) &&
          !isTensorView(&op) && !isa<linalg::GenericOp>(op))
        ops.push_back(&op);
    for (Operation *op : ops) {
      if (failed(generalize(op)))
        return failure();
      changed = true;
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

void KernelFormer::splitContractions() {
  SmallVector<linalg::GenericOp> ops(function.getOps<linalg::GenericOp>());
  for (linalg::GenericOp op : ops) {
    if (!isContraction(op))
      continue;
    OpOperand &init = *op.getDpsInitOperand(0);
    if (TensorAccess::get(init).isZero())
      continue;
    Location loc = op.getLoc();
    LDBG() << loc << ": what the sum begins with is added after it";
    rewriter.setInsertionPoint(op);
    // `init + sum` becomes `0 + sum`, then `+ init`, since a kernel writes its
    // sums and cannot begin with a tensor.
    Value value = init.get();
    Value zero = arith::ConstantOp::create(
        rewriter, loc,
        rewriter.getZeroAttr(
            cast<ShapedType>(value.getType()).getElementType()));
    Value zeros =
        linalg::FillOp::create(rewriter, loc, zero, createEmpty(loc, value))
            .getResult(0);
    init.set(zeros);
    rewriter.setInsertionPointAfter(op);
    auto sum = createElementwise(
        loc, {op.getResult(0), value}, value,
        [](OpBuilder &builder, Location bodyLoc, ValueRange arguments) {
          return Value(arith::AddFOp::create(builder, bodyLoc, arguments[0],
                                             arguments[1]));
        });
    rewriter.replaceAllUsesExcept(op.getResult(0), sum.getResult(0), sum);
  }
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

/// Whether `op` becomes a launch.
static bool isKernel(Operation *op) {
  return isa_and_present<linalg::GenericOp, ApplyOp>(op);
}

LogicalResult KernelFormer::materializeReturned() {
  Operation *end = function.getBody().front().getTerminator();
  rewriter.setInsertionPoint(end);
  llvm::SmallPtrSet<Value, 4> taken;
  for (OpOperand &operand : end->getOpOperands()) {
    if (!isa<TensorType>(operand.get().getType()))
      continue;
    // A result is a buffer of its own.
    if (isKernel(operand.get().getDefiningOp()) &&
        taken.insert(operand.get()).second)
      continue;
    LDBG() << operand.get().getLoc() << ": copied to be returned";
    operand.set(createCopy(end->getLoc(), operand.get()));
  }
  return success();
}

LogicalResult KernelFormer::materializeOperands(Operation *op) {
  for (OpOperand &operand : op->getOpOperands()) {
    Value source = operand.get();
    if (!isa<ShapedType>(source.getType()))
      continue;
    if (isa<linalg::GenericOp>(op)) {
      // What is not read is not computed.
      if (!cast<linalg::GenericOp>(op).payloadUsesValueFromOperand(&operand))
        continue;
      source = TensorAccess::get(operand).source;
      if (!source)
        continue;
    } else {
      // A `kas.apply` reads whole buffers; a reshape of one is the same buffer.
      while (isReshape(source.getDefiningOp()))
        source = source.getDefiningOp()->getOperand(0);
    }
    Operation *producer = source.getDefiningOp();
    if (!producer || isKernel(producer) ||
        producer->hasTrait<OpTrait::ConstantLike>())
      continue;
    if (!isTensorView(producer))
      return producer->emitError()
             << "expected linalg operations, views of tensors and kas.apply "
                "for kernels of a GPU, got "
             << producer->getName();
    // A copy must be able to read through the view.
    auto type = cast<RankedTensorType>(source.getType());
    if (TensorAccess::get(source,
                          rewriter.getMultiDimIdentityMap(type.getRank()),
                          type.getShape())
            .source == source)
      return producer->emitError()
             << "expected constants as numbers and values of "
             << producer->getName() << " for kernels of a GPU, got others";
    LDBG() << producer->getLoc() << ": " << producer->getName()
           << " copied, because " << op->getName() << " cannot read through it";
    rewriter.setInsertionPointAfter(producer);
    Value copy = createCopy(producer->getLoc(), source);
    rewriter.replaceUsesWithIf(source, copy, [&](OpOperand &use) {
      return use.getOwner() != copy.getDefiningOp();
    });
  }
  return success();
}

LogicalResult KernelFormer::materialize() {
  if (failed(materializeReturned()))
    return failure();
  // From the last one: what a copy reads comes before it.
  Block &block = function.getBody().front();
  for (Operation *op = &block.back(); op;) {
    if (isKernel(op)) {
      // Dead operations would get copies of their operands.
      if (isOpTriviallyDead(op)) {
        Operation *dead = op;
        op = op->getPrevNode();
        rewriter.eraseOp(dead);
        continue;
      }
      if (failed(materializeOperands(op)))
        return failure();
    }
    op = op->getPrevNode();
  }
  for (auto op : function.getOps<linalg::GenericOp>())
    if (failed(sinkConstants(op)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct GPUFormKernels
    : kas::codegen::impl::KasGPUFormKernelsPassBase<GPUFormKernels> {
  LogicalResult initialize(MLIRContext *context) override {
    fusion = OpPassManager(func::FuncOp::getOperationName());
    fusion.addPass(createKasFuseElementwisePass());
    // Equal operations, such as two paddings of one tensor, become one kernel.
    fusion.addPass(createCSEPass());
    return success();
  }

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    if (!function.getBody().hasOneBlock()) {
      function.emitError() << "expected a function of one block for kernels of "
                              "a GPU, got several";
      return signalPassFailure();
    }
    WalkResult asserts = function.walk([](cf::AssertOp op) {
      op.emitError() << "expected no assertion in kernels of a GPU, which "
                        "-kas-gpu-return-assertions makes a result, got one";
      return WalkResult::interrupt();
    });
    if (asserts.wasInterrupted())
      return signalPassFailure();
    KernelFormer former(function);
    if (failed(former.generalize()))
      return signalPassFailure();
    former.splitContractions();
    if (failed(runPipeline(fusion, function)) || failed(former.materialize()))
      return signalPassFailure();
  }

  OpPassManager fusion;
};
} // namespace
