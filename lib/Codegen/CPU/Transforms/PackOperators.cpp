//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowers kas.apply on tensors to register tiles, and with it what networks do
// right before and after an operator.
//
//===----------------------------------------------------------------------===//

#include "../Emit/ContractionTail.h"
#include "../Strategy/InnerProductPlan.h"
#include "../Strategy/Rearrangement.h"
#include "PackOperations.h"
#include "kas/Codegen/CPU/Passes.h"
#include "kas/Conversion/KasGradient.h"
#include "kas/Conversion/KasToAffine.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "kas-pack-operators"

namespace kas::codegen {
#define GEN_PASS_DEF_PACKOPERATORS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

std::optional<SmallVector<int64_t>> kas::codegen::getZeros(tensor::PadOp op) {
  Value value = op.getConstantPaddingValue();
  std::optional<SmallVector<int64_t>> low =
      getConstantIntValues(op.getMixedLowPad());
  if (!value || !matchPattern(value, m_AnyZeroFloat()) || op.getNofold() ||
      !op.getSourceType().hasStaticShape() ||
      !op.getResultType().hasStaticShape())
    return std::nullopt;
  return low;
}

namespace {

/// One operation on tensors that becomes loops on buffers, with the elementwise
/// operation after it if that is done on the way.
class Packing {
public:
  Packing(Operation *op, const ContractionOptions &given)
      : op(op), options(given), loc(op->getLoc()), rewriter(op) {
    // Only tiles of weights packed ahead take one along.
    if (options.prepared)
      reader = ContractionTail::findReader(op->getResult(0));
    if (reader)
      rewriter.setInsertionPoint(reader);
  }

  Value toBuffer(Value tensor) {
    auto buffer = bufferization::ToBufferOp::create(
        rewriter, loc, getBufferType(tensor), tensor, /*read_only=*/true);
    made.push_back(buffer);
    return buffer;
  }
  Value makeOutput() {
    return makeBuffer(cast<ShapedType>(op->getResult(0).getType()).getShape());
  }
  Value makeBuffer(ArrayRef<int64_t> shape) {
    auto type = MemRefType::get(shape, rewriter.getF32Type());
    auto buffer = memref::AllocOp::create(rewriter, loc, type,
                                          rewriter.getI64IntegerAttr(64));
    made.push_back(buffer);
    return buffer;
  }
  /// The buffers of the weights' copies.
  SmallVector<Value> makeCopies(const Contraction &contraction,
                                const Rearrangement &rearrangement) {
    return llvm::map_to_vector(
        rearrangement.copies, [&](const Rearrangement::Copy &copy) {
          return makeBuffer(Rearrangement::getShape(contraction, copy.loops));
        });
  }
  /// Emits the loops and replaces the operation. Leaves all as it was on
  /// failure.
  LogicalResult emit(const StridedContraction &contraction,
                     ContractionTail tail,
                     function_ref<void(const Twine &)> emitReason);
  /// The same with the tensors of `source` in other layouts.
  LogicalResult emit(const Contraction &source, Value output,
                     const Rearrangement &rearrangement,
                     ArrayRef<bool> prepared,
                     function_ref<void(const Twine &)> emitReason);
  void emit(const InnerProductPlan &plan, Value output);
  void emitCopies(const Contraction &source, const Rearrangement &rearrangement,
                  ValueRange copies) {
    codegen::emitCopies(rewriter, loc, source, rearrangement, copies);
  }
  /// Removes the buffers again, but for the first ones.
  void undo(size_t numKept = 0) {
    for (Operation *buffer : llvm::reverse(ArrayRef(made).drop_front(numKept)))
      rewriter.eraseOp(buffer);
    made.truncate(numKept);
  }
  size_t getNumMade() const { return made.size(); }
  void setOptions(const ContractionOptions &given) { options = given; }

private:
  static BaseMemRefType getBufferType(Value tensor) {
    return bufferization::getMemRefTypeWithStaticIdentityLayout(
        cast<TensorType>(tensor.getType()));
  }

  /// `last` is replaced by what is in `buffer`.
  void replace(Operation *last, Value buffer);

  Operation *op;
  ContractionOptions options;
  Location loc;
  IRRewriter rewriter;
  linalg::GenericOp reader;
  SmallVector<Operation *> made;
};

/// Whether a tensor is an argument of the function but the first, or made of
/// such alone: what is computed of it can be prepared.
bool isFromWeights(Value tensor) {
  // What several operations read is looked at once.
  SetVector<Value> sources;
  sources.insert(tensor);
  for (size_t i = 0; i < sources.size(); ++i) {
    if (auto argument = dyn_cast<BlockArgument>(sources[i])) {
      if (!isa<func::FuncOp>(argument.getOwner()->getParentOp()) ||
          argument.getArgNumber() == 0)
        return false;
      continue;
    }
    Operation *op = sources[i].getDefiningOp();
    if (!isMemoryEffectFree(op))
      return false;
    sources.insert_range(op->getOperands());
  }
  return true;
}

/// Removes the buffers that were made since, at its end.
class PackingScope {
public:
  explicit PackingScope(Packing &packing)
      : packing(packing), numBefore(packing.getNumMade()) {}
  ~PackingScope() { packing.undo(numBefore); }

private:
  Packing &packing;
  size_t numBefore;
};

/// Whether `op` on tensors sums products to a tensor of zeros.
bool beginsWithZeros(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || !isSumOfProducts(op))
    return false;
  auto fill = op.getDpsInits().front().getDefiningOp<linalg::FillOp>();
  return fill && matchPattern(fill.getInputs().front(), m_AnyZeroFloat());
}

/// Whether `op` on tensors adds to zeros, or to a bias of one dimension.
bool beginsWithBias(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumReductionLoops() == 0 ||
      op.getNumDpsInits() != 1)
    return false;
  Operation *init = op.getDpsInits().front().getDefiningOp();
  if (auto fill = dyn_cast_or_null<linalg::FillOp>(init))
    return matchPattern(fill.getInputs().front(), m_AnyZeroFloat());
  auto bias = dyn_cast_or_null<linalg::BroadcastOp>(init);
  return bias && cast<ShapedType>(bias.getInput().getType()).getRank() == 1;
}

struct PackOperators : kas::codegen::impl::PackOperatorsBase<PackOperators> {
  using PackOperatorsBase::PackOperatorsBase;

  void runOnOperation() override {
    SmallVector<ApplyOp> applies;
    SmallVector<ApplyGradientOp> gradients;
    SmallVector<linalg::LinalgOp> sums;
    getOperation()->walk([&](Operation *op) {
      if (auto apply = dyn_cast<ApplyOp>(op))
        applies.push_back(apply);
      else if (auto gradient = dyn_cast<ApplyGradientOp>(op))
        gradients.push_back(gradient);
      else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
               linalgOp &&
               (readsPadding(linalgOp) || maySumInnerProducts(linalgOp) ||
                mayCopyWeights(linalgOp)))
        sums.push_back(linalgOp);
    });
    // Before any of them is replaced.
    auto getFromWeights = [&](ValueRange tensors) {
      return llvm::map_to_vector<4>(tensors, [&](Value tensor) {
        return prepared && isFromWeights(tensor);
      });
    };
    auto fromWeights = llvm::map_to_vector(applies, [&](ApplyOp apply) {
      return getFromWeights(apply->getOperands());
    });
    auto sumsFromWeights = llvm::map_to_vector(sums, [&](linalg::LinalgOp op) {
      return getFromWeights(op.getDpsInputs());
    });
    for (auto [apply, isWeight] : llvm::zip_equal(applies, fromWeights))
      if (failed(lower(apply, isWeight)))
        return signalPassFailure();
    for (ApplyGradientOp gradient : gradients)
      lowerGradient(gradient);
    for (auto [op, isWeight] : llvm::zip_equal(sums, sumsFromWeights))
      lowerSum(op, isWeight);
  }

private:
  ContractionOptions getOptions(Operation *op) {
    ContractionOptions options{getNumThreads(op, threads),
                               getContractionTarget(getOperation(), vectorBits),
                               /*deallocate=*/false,
                               prepared,
                               /*tail=*/nullptr,
                               getSchedule(op)};
    options.algorithm = algorithm;
    options.minParallelTime = minParallelTime;
    return options;
  }

  /// Weights that are packed ahead suit other tiles.
  bool maySumInnerProducts(linalg::LinalgOp op) {
    return beginsWithZeros(op) &&
           !(prepared && llvm::any_of(op.getDpsInputs(), isFromWeights));
  }

  /// A layer of one pixel steps with its weights alone: these are copied ahead.
  bool mayCopyWeights(linalg::LinalgOp op) {
    return prepared && beginsWithBias(op) && isSumOfProducts(op) &&
           !getSchedule(op) && algorithm == ConvolutionAlgorithm::Auto &&
           llvm::any_of(op.getDpsInputs(), isFromWeights);
  }

  LogicalResult lower(ApplyOp apply, ArrayRef<bool> fromWeights);
  void lowerGradient(ApplyGradientOp apply);
  void lowerSum(linalg::LinalgOp op, ArrayRef<bool> fromWeights);
  bool emitInnerProducts(const Contraction &source, Value output,
                         Packing &packing, const ContractionOptions &options,
                         std::optional<int64_t> time);
};

} // namespace

LogicalResult Packing::emit(const StridedContraction &contraction,
                            ContractionTail tail,
                            function_ref<void(const Twine &)> emitReason) {
  if (reader) {
    SmallVector<Value> inputs;
    for (Value input : reader.getDpsInputs())
      inputs.push_back(input == op->getResult(0) ? Value() : toBuffer(input));
    tail.takeReader(reader, inputs, contraction);
  }
  options.tail = tail ? &tail : nullptr;
  bool tookTail = false;
  if (failed(emitContraction(rewriter, loc, contraction, options, emitReason,
                             &tookTail))) {
    undo();
    return failure();
  }
  LDBG() << loc << ": packed" << (tookTail ? " with its tail" : "");
  Operation *last = tookTail && tail.elementwise ? tail.elementwise : op;
  replace(last, contraction.output.buffer);
  if (last != op)
    rewriter.eraseOp(op);
  return success();
}

void Packing::replace(Operation *last, Value buffer) {
  auto result = bufferization::ToTensorOp::create(
      rewriter, loc, op->getResult(0).getType(), buffer, /*restrict=*/true,
      /*writable=*/true);
  rewriter.replaceOp(last, result.getResult());
}

LogicalResult Packing::emit(const Contraction &source, Value output,
                            const Rearrangement &rearrangement,
                            ArrayRef<bool> prepared,
                            function_ref<void(const Twine &)> emitReason) {
  SmallVector<Value> copies = makeCopies(source, rearrangement);
  Value sums = output;
  if (!rearrangement.outputLoops.empty())
    sums =
        makeBuffer(Rearrangement::getShape(source, rearrangement.outputLoops));
  Contraction rearranged = rearrangement.apply(source, copies);
  FailureOr<StridedContraction> contraction =
      StridedContraction::get(rearranged, sums, emitReason, prepared);
  if (failed(contraction))
    return failure();
  emitCopies(source, rearrangement, copies);
  if (failed(emitContraction(rewriter, loc, *contraction, options, emitReason)))
    llvm_unreachable("it had a time");
  if (sums != output)
    // An element takes about a cycle.
    emitTransposition(
        rewriter, loc, source, rearrangement, sums, output,
        options.getThreads(
            2 * cast<MemRefType>(output.getType()).getNumElements()));
  remark::passed(loc,
                 remark::RemarkOpts::name("Rearranged").category(panelRemarks))
      << remark::metric("copiedWeights", rearrangement.copies.size())
      << remark::metric("transposedOutput", sums != output);
  replace(op, output);
  return success();
}

void Packing::emit(const InnerProductPlan &plan, Value output) {
  emitInnerProducts(rewriter, loc, plan, output,
                    ContractionTarget(options.target),
                    options.getThreads(plan.time));
  remark::passed(
      loc, remark::RemarkOpts::name("InnerProducts").category(panelRemarks))
      << remark::metric("registerSums", plan.getNumSums())
      << remark::metric("lanes", plan.lanes)
      << remark::metric("block", plan.block);
  replace(op, output);
}

/// The rearrangement in which `source` takes the least time; nothing where that
/// is no less than `time`, that of how it is.
static std::optional<Rearrangement>
chooseRearrangement(const Contraction &source, Packing &packing, Value output,
                    ArrayRef<bool> prepared, const ContractionOptions &options,
                    std::optional<int64_t> time) {
  // Others are not even looked at where tiles are about as fast as they can be.
  ContractionTarget target(options.target);
  int64_t points = 1;
  for (const Contraction::Loop &loop : source.loops)
    points *= loop.extent;
  int64_t ideal = points / target.lanes * target.getOperationTime(target.lanes);
  std::optional<Rearrangement> best;
  if (time && *time * 5 <= 6 * ideal)
    return best;
  auto type = cast<MemRefType>(output.getType());
  for (Rearrangement &tried : getRearrangements(source, type, prepared)) {
    PackingScope scope(packing);
    Contraction rearranged =
        tried.apply(source, packing.makeCopies(source, tried));
    Value sums = tried.outputLoops.empty()
                     ? output
                     : packing.makeBuffer(
                           Rearrangement::getShape(source, tried.outputLoops));
    FailureOr<StridedContraction> contraction = StridedContraction::get(
        rearranged, sums, [](const Twine &) {}, prepared);
    if (failed(contraction))
      continue;
    std::optional<int64_t> found = getContractionTime(*contraction, options);
    if (!found)
      continue;
    *found += tried.getTime(source);
    if (time && *found >= *time)
      continue;
    time = found;
    best = std::move(tried);
  }
  return best;
}

LogicalResult PackOperators::lower(ApplyOp apply, ArrayRef<bool> fromWeights) {
  OperatorOp op = apply.getOperator();
  if (!op || !op.isConcrete())
    return success();
  ContractionOptions options = getOptions(apply);
  Packing packing(apply, options);
  auto emitReason = [&](const Twine &reason) {
    remarkNotPacked(apply, op.getSymName(), reason);
  };
  auto inputs = llvm::map_to_vector(apply->getOperands(), [&](Value tensor) {
    return packing.toBuffer(tensor);
  });
  Value output = packing.makeOutput();
  FailureOr<Contraction> source =
      Contraction::match(getCoordinates(op), inputs, emitReason);
  if (failed(source)) {
    packing.undo();
    return failure(options.schedule != nullptr);
  }
  std::string reason;
  FailureOr<StridedContraction> contraction = StridedContraction::get(
      *source, output, [&](const Twine &text) { reason = text.str(); },
      fromWeights);
  if (!options.schedule && algorithm == ConvolutionAlgorithm::Auto) {
    std::optional<int64_t> time;
    if (succeeded(contraction))
      time = getContractionTime(*contraction, options);
    if (auto rearrangement = chooseRearrangement(*source, packing, output,
                                                 fromWeights, options, time)) {
      ++numPacked;
      return packing.emit(*source, output, *rearrangement, fromWeights,
                          emitReason);
    }
  }
  if (failed(contraction)) {
    emitReason(reason);
    packing.undo();
    return failure(options.schedule != nullptr);
  }
  if (failed(packing.emit(*contraction, {}, emitReason)))
    return failure(options.schedule != nullptr);
  ++numPacked;
  return success();
}

/// How far `loop` moves from its first to its second value in the memory of
/// `input`.
static int64_t getFirstStep(const Contraction &contraction,
                            const Contraction::Input &input, unsigned loop) {
  MLIRContext *context = input.indices.front().getContext();
  auto getAddress = [&](int64_t value) {
    SmallVector<AffineExpr> point(contraction.loops.size(),
                                  getAffineConstantExpr(0, context));
    point[loop] = getAffineConstantExpr(value, context);
    int64_t address = 0;
    ArrayRef<int64_t> shape =
        cast<ShapedType>(input.value.getType()).getShape();
    for (auto [index, size] : llvm::zip_equal(input.indices, shape))
      address = address * size +
                cast<AffineConstantExpr>(index.replaceDims(point)).getValue();
    return address;
  };
  return std::abs(getAddress(1) - getAddress(0));
}

/// Puts the reductions in the order of memory, the longest steps outermost: a
/// gradient has them in the order in which its indices were solved.
static void orderReductions(Contraction &contraction, MLIRContext *context) {
  SmallVector<unsigned> order, reductions;
  SmallVector<int64_t> steps(contraction.loops.size(), 0);
  for (unsigned loop = 0; loop < contraction.loops.size(); ++loop) {
    if (!contraction.loops[loop].isReduction) {
      order.push_back(loop);
      continue;
    }
    reductions.push_back(loop);
    for (const Contraction::Input &input : contraction.inputs)
      if (!input.indices.empty() && contraction.loops[loop].extent > 1)
        steps[loop] =
            std::max(steps[loop], getFirstStep(contraction, input, loop));
  }
  llvm::sort(reductions, [&](unsigned a, unsigned b) {
    return std::pair(-steps[a], a) < std::pair(-steps[b], b);
  });
  llvm::append_range(order, reductions);
  SmallVector<Contraction::Loop> loops;
  SmallVector<AffineExpr> places(order.size());
  for (auto [place, loop] : llvm::enumerate(order)) {
    loops.push_back(contraction.loops[loop]);
    places[loop] = getAffineDimExpr(place, context);
  }
  contraction.loops = std::move(loops);
  contraction.transform(
      [&](AffineExpr expr) { return expr.replaceDims(places); });
}

/// Emits `source`, whose reductions are ordered, as inner products where these
/// take less than `time`, that of other tiles, if any suit.
bool PackOperators::emitInnerProducts(const Contraction &source, Value output,
                                      Packing &packing,
                                      const ContractionOptions &options,
                                      std::optional<int64_t> time) {
  auto plan = makeInnerProductPlan(source, cast<MemRefType>(output.getType()),
                                   ContractionTarget(options.target));
  if (options.schedule || !plan || (time && *time <= plan->time))
    return false;
  packing.emit(*plan, output);
  ++numPacked;
  return true;
}

/// The gradient of a sum of products is one itself.
void PackOperators::lowerGradient(ApplyGradientOp apply) {
  ContractionOptions options = getOptions(apply);
  Packing packing(apply, options);
  auto emitReason = [&](const Twine &reason) {
    remarkNotPacked(apply, apply.getCallee(), reason);
  };
  GradientNest nest = getGradient(apply);
  SmallVector<Value> inputs = llvm::map_to_vector(
      nest.inputs, [&](Value tensor) { return packing.toBuffer(tensor); });
  FailureOr<Contraction> source =
      Contraction::match(nest.coordinates, inputs, emitReason);
  if (failed(source))
    return packing.undo();
  orderReductions(*source, &getContext());
  Value output = packing.makeOutput();
  FailureOr<StridedContraction> contraction =
      StridedContraction::get(*source, output, emitReason);
  std::optional<int64_t> time;
  if (succeeded(contraction))
    time = getContractionTime(*contraction, options);
  if (emitInnerProducts(*source, output, packing, options, time))
    return;
  if (auto rearrangement =
          chooseRearrangement(*source, packing, output,
                              /*prepared=*/{}, options, time)) {
    ++numPacked;
    (void)packing.emit(*source, output, *rearrangement, /*prepared=*/{},
                       emitReason);
    return;
  }
  if (failed(contraction))
    return packing.undo();
  if (succeeded(packing.emit(*contraction, {}, emitReason)))
    ++numPacked;
}

bool kas::codegen::readsPadding(linalg::LinalgOp op) {
  return beginsWithBias(op) && llvm::any_of(op.getDpsInputs(), [](Value input) {
           auto pad = input.getDefiningOp<tensor::PadOp>();
           return pad && getZeros(pad);
         });
}

/// Adds the bias that `op` begins with to a sum that begins with zeros, which
/// is returned.
static linalg::LinalgOp splitBias(linalg::LinalgOp op) {
  IRRewriter rewriter(op);
  Value bias = op.getDpsInits().front();
  auto type = cast<RankedTensorType>(bias.getType());
  Value zero = arith::ConstantOp::create(
      rewriter, op.getLoc(), rewriter.getZeroAttr(type.getElementType()));
  Value empty = tensor::EmptyOp::create(rewriter, op.getLoc(), type.getShape(),
                                        type.getElementType());
  auto zeros = linalg::FillOp::create(rewriter, op.getLoc(), zero, empty);
  auto sum = cast<linalg::LinalgOp>(rewriter.clone(*op));
  sum.getDpsInitsMutable()[0].set(zeros.getResult(0));
  rewriter.replaceOpWithNewOp<linalg::AddOp>(
      op, ValueRange{sum->getResult(0), bias}, ValueRange{empty});
  return sum;
}

/// Reads what is padded where it is, has vectors along a reduction, or copies
/// weights ahead, if that is the cheapest.
void PackOperators::lowerSum(linalg::LinalgOp op, ArrayRef<bool> fromWeights) {
  auto bias = op.getDpsInits().front().getDefiningOp<linalg::BroadcastOp>();
  ContractionOptions options = getOptions(op);
  Packing packing(op, options);
  FailureOr<Contraction> source =
      matchUnpadded(op, [&](Value tensor) { return packing.toBuffer(tensor); });
  if (failed(source))
    return packing.undo();
  Value output = packing.makeOutput();
  FailureOr<StridedContraction> contraction = StridedContraction::get(
      *source, output, [](const Twine &) {}, fromWeights);
  std::optional<int64_t> time;
  if (succeeded(contraction))
    time = getContractionTime(*contraction, options);
  if (maySumInnerProducts(op)) {
    orderReductions(*source, &getContext());
    if (emitInnerProducts(*source, output, packing, options, time))
      return;
  }
  std::optional<Rearrangement> rearrangement;
  SmallVector<Value> copies;
  if (!time && mayCopyWeights(op)) {
    rearrangement = chooseRearrangement(*source, packing, output, fromWeights,
                                        options, time);
    if (!rearrangement || !rearrangement->outputLoops.empty())
      return packing.undo();
    // No tiles begin with a bias that differs from lane to lane.
    if (bias) {
      packing.undo();
      return lowerSum(splitBias(op), fromWeights);
    }
    copies = packing.makeCopies(*source, *rearrangement);
    contraction = StridedContraction::get(
        rearrangement->apply(*source, copies), output, [](const Twine &) {},
        fromWeights);
  } else if (!readsPadding(op)) {
    return packing.undo();
  }
  if (failed(contraction))
    return packing.undo();
  // Weights that were packed ahead suit padded images just as well, and panels
  // do not begin with a bias.
  options.readsUnpadded = !rearrangement && (prepared || bias);
  packing.setOptions(options);
  ContractionTail tail;
  if (bias) {
    int64_t position = 0;
    while (llvm::is_contained(bias.getDimensions(), position))
      ++position;
    if (!tail.takeBias(packing.toBuffer(bias.getInput()), position,
                       *contraction))
      return packing.undo();
  }
  if (rearrangement)
    packing.emitCopies(*source, *rearrangement, copies);
  if (succeeded(packing.emit(*contraction, tail, [](const Twine &) {})))
    ++numPacked;
  else if (rearrangement)
    llvm_unreachable("it had a time");
}
