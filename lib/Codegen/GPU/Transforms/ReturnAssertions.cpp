//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assertions on elements become kernels that write which one failed.
// A device cannot stop a launch, so the position of the first assertion that
// failed becomes a further result, an i32, which the caller reads
// (docs/internals/gpu.md, "The manifest", `status`). Positions are minimized
// over all elements, in two steps where a loop is long: one thread per element
// of the longest loop, then one thread over these.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/Common/Assertions.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/DebugLog.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASGPURETURNASSERTIONSPASS
#include "kas/Codegen/GPU/Passes.h.inc"
} // namespace kas::codegen

#define DEBUG_TYPE "kas-gpu-return-assertions"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// Stands for no assertion, and is larger than any position.
static constexpr int32_t noFailure = std::numeric_limits<int32_t>::max();

namespace {

/// Moves the assertions of one function.
class AssertionCollector {
public:
  explicit AssertionCollector(func::FuncOp function)
      : function(function), b(function.getLoc(), function.getContext()) {}

  LogicalResult run();

private:
  LogicalResult collect(linalg::GenericOp op);
  Value createMinimum(ValueRange inputs, ArrayRef<AffineMap> maps,
                      ArrayRef<int64_t> shape, unsigned numLoops,
                      function_ref<Value(ValueRange)> emitBody);
  Value reduce(Value failures);
  Value createI32(int32_t value) {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  }

  func::FuncOp function;
  ImplicitLocOpBuilder b;
  /// By position: text and location of each assertion.
  SmallVector<std::string> messages;
  /// Tensors of rank 0 with the least position that failed.
  SmallVector<Value> failures;
};

} // namespace

/// Loops that keep the least of what the body gives; the last of `maps` is that
/// of the result.
Value AssertionCollector::createMinimum(
    ValueRange inputs, ArrayRef<AffineMap> maps, ArrayRef<int64_t> shape,
    unsigned numLoops, function_ref<Value(ValueRange)> emitBody) {
  Value empty = tensor::EmptyOp::create(b, shape, b.getI32Type());
  Value init =
      linalg::FillOp::create(b, createI32(noFailure), empty).getResult(0);
  SmallVector<utils::IteratorType> loops(numLoops,
                                         utils::IteratorType::reduction);
  for (AffineExpr expr : maps.back().getResults())
    loops[cast<AffineDimExpr>(expr).getPosition()] =
        utils::IteratorType::parallel;
  return linalg::GenericOp::create(
             b, TypeRange(init.getType()), inputs, ValueRange(init), maps,
             loops,
             [&](OpBuilder &builder, Location loc, ValueRange arguments) {
               OpBuilder::InsertionGuard guard(b);
               b.setInsertionPointToEnd(builder.getInsertionBlock());
               Value least = arith::MinSIOp::create(b, emitBody(arguments),
                                                    arguments.back());
               linalg::YieldOp::create(b, ValueRange(least));
             })
      .getResult(0);
}

/// The least element of a tensor of rank 1.
Value AssertionCollector::reduce(Value values) {
  AffineMap all = b.getMultiDimIdentityMap(1);
  AffineMap none = AffineMap::get(1, 0, b.getContext());
  return createMinimum(values, {all, none}, {}, /*numLoops=*/1,
                       [](ValueRange arguments) { return arguments.front(); });
}

/// The operations of the body that compute the conditions.
static SetVector<Operation *> getSlice(linalg::GenericOp op,
                                       ArrayRef<cf::AssertOp> assertions) {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.omitBlockArguments = true;
  options.inclusive = true;
  // Not beyond the operation: the condition's inputs are its block arguments.
  options.filter = [&](Operation *at) { return op->isProperAncestor(at); };
  for (cf::AssertOp assertion : assertions)
    if (Operation *condition = assertion.getArg().getDefiningOp())
      (void)getBackwardSlice(condition, &slice, options);
  return slice;
}

/// Adds the loops of `op` that compute conditions and keep the first one that
/// fails, and takes the assertions off `op`.
LogicalResult AssertionCollector::collect(linalg::GenericOp op) {
  SmallVector<cf::AssertOp> assertions(op.getBody()->getOps<cf::AssertOp>());
  SetVector<Operation *> slice = getSlice(op, assertions);
  ArrayRef<BlockArgument> outputs = op.getRegionOutputArgs();
  for (cf::AssertOp assertion : assertions) {
    auto isOutput = [&](Value value) {
      return llvm::is_contained(outputs, value);
    };
    // Outputs of the loops that are added are other tensors.
    if (isOutput(assertion.getArg()) || llvm::any_of(slice, [&](Operation *at) {
          return llvm::any_of(at->getOperands(), isOutput);
        }))
      return assertion.emitError()
             << "expected assertions on inputs of linalg.generic for a GPU, "
                "got one on an output";
  }
  LDBG() << assertions.size() << " assertions of " << op.getLoc();

  b.setLoc(op.getLoc());
  b.setInsertionPoint(op);
  // Along the longest loop there is one thread for each point.
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  unsigned longest = std::distance(extents.begin(), llvm::max_element(extents));
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<AffineExpr> kept;
  SmallVector<int64_t> shape;
  if (!extents.empty()) {
    kept.push_back(b.getAffineDimExpr(longest));
    shape.push_back(extents[longest]);
  }
  maps.push_back(AffineMap::get(extents.size(), 0, kept, b.getContext()));
  Value found = createMinimum(
      op->getOperands(), maps, shape, extents.size(),
      [&](ValueRange arguments) {
        IRMapping mapping;
        mapping.map(op.getBody()->getArguments(), arguments.drop_back());
        // Only what the condition needs is computed again; the operation itself
        // goes on without its assertions and can fuse.
        for (Operation &at : op.getBody()->without_terminator())
          if (slice.contains(&at))
            b.clone(at, mapping);
        Value least;
        for (cf::AssertOp assertion : assertions) {
          Value number = createI32(static_cast<int32_t>(messages.size()));
          messages.push_back(
              getAssertionText(assertion.getLoc(), assertion.getMsg()));
          Value failure = arith::SelectOp::create(
              b, mapping.lookupOrDefault(assertion.getArg()),
              createI32(noFailure), number);
          least = least ? Value(arith::MinSIOp::create(b, least, failure))
                        : failure;
        }
        return least;
      });
  failures.push_back(shape.empty() ? found : reduce(found));
  for (cf::AssertOp assertion : assertions)
    assertion.erase();
  return success();
}

/// Whether the condition is known; an assertion that never holds is an error.
static FailureOr<bool> isKnown(cf::AssertOp op) {
  if (matchPattern(op.getArg(), m_One()))
    return true;
  if (!matchPattern(op.getArg(), m_Zero()))
    return false;
  return op.emitError() << "expected an assertion that can hold, got one that "
                           "always fails: "
                        << op.getMsg();
}

LogicalResult AssertionCollector::run() {
  SmallVector<linalg::GenericOp> ops;
  WalkResult result = function.walk([&](cf::AssertOp op) {
    FailureOr<bool> known = isKnown(op);
    if (failed(known))
      return WalkResult::interrupt();
    if (*known) {
      op.erase();
      return WalkResult::advance();
    }
    auto loops = dyn_cast<linalg::GenericOp>(op->getParentOp());
    if (!loops || loops->getParentOp() != function ||
        !loops.hasPureTensorSemantics() ||
        ShapedType::isDynamicShape(loops.getStaticLoopRanges())) {
      op.emitError() << "expected assertions on constants, or in a "
                        "linalg.generic on tensors of static shapes, for a "
                        "GPU, got another";
      return WalkResult::interrupt();
    }
    if (!llvm::is_contained(ops, loops))
      ops.push_back(loops);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  for (linalg::GenericOp op : ops)
    if (failed(collect(op)))
      return failure();
  if (messages.empty())
    return success();

  Operation *end = function.getBody().front().getTerminator();
  b.setLoc(end->getLoc());
  b.setInsertionPoint(end);
  SmallVector<AffineMap> maps(failures.size() + 1,
                              AffineMap::get(0, 0, b.getContext()));
  // The first one in program order that failed on any element.
  Value least = createMinimum(
      failures, maps, {}, /*numLoops=*/0, [&](ValueRange arguments) {
        Value minimum = arguments.front();
        for (Value other : arguments.drop_front().drop_back())
          minimum = arith::MinSIOp::create(b, minimum, other);
        return minimum;
      });
  end->insertOperands(end->getNumOperands(), least);
  (void)function.insertResult(function.getNumResults(), least.getType(), {});
  function->setAttr(KasGPUDialect::assertionsName,
                    b.getStrArrayAttr(llvm::to_vector_of<StringRef>(messages)));
  return success();
}

namespace {
struct GPUReturnAssertions
    : kas::codegen::impl::KasGPUReturnAssertionsPassBase<GPUReturnAssertions> {
  LogicalResult initialize(MLIRContext *context) override {
    folding = OpPassManager(func::FuncOp::getOperationName());
    folding.addPass(createCanonicalizerPass());
    return success();
  }

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    auto hasAssertion = [&] {
      return function.walk([](cf::AssertOp) { return WalkResult::interrupt(); })
          .wasInterrupted();
    };
    if (!hasAssertion())
      return;
    // What is computed from shapes is known here.
    if (failed(runPipeline(folding, function)))
      return signalPassFailure();
    if (!hasAssertion())
      return;
    // A caller within the module would have to pass the status on.
    if (!function.getBody().hasOneBlock() || function.isPrivate()) {
      function.emitError() << "expected a public function of one block with "
                              "assertions for a GPU, got another";
      return signalPassFailure();
    }
    if (failed(AssertionCollector(function).run()))
      signalPassFailure();
  }

  OpPassManager folding;
};
} // namespace
