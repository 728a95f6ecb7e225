//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The order of images within functions. A kernel whose result is an image
// writes it with the channels last, and a `linalg.transpose` gives it back in
// the order of before: a view, through which all kernels read
// (TensorAccess.h). So each image is changed by itself, and whatever set of
// them is changed, the function computes the same. Which set it is says the
// cost model, on copies of the module.
//
//===----------------------------------------------------------------------===//

#include "../Strategy/ContractionProblem.h"
#include "../Strategy/CostModel.h"
#include "../Strategy/Epilogue.h"
#include "../Strategy/LibraryChoice.h"
#include "../Strategy/LibraryProblem.h"
#include "../Strategy/PrepackedValues.h"
#include "../Strategy/ScheduleChoice.h"
#include "WeightCopies.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/Codegen/GPU/Strategy/Device.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "kas-gpu-channels-last"

namespace kas::codegen {
#define GEN_PASS_DEF_KASGPUCHANNELSLASTPASS
#include "kas/Codegen/GPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// From images, channels, height and width to channels last, and back.
static constexpr int64_t toLast[] = {0, 2, 3, 1}, toFirst[] = {0, 3, 1, 2};

/// What another order must gain at least.
static constexpr double leastGain = 0.05;

namespace {

/// The images of a function whose order may be another one.
class Images {
public:
  explicit Images(func::FuncOp function) : function(function) {}

  /// False: there is none.
  bool find();
  /// Changes them. `copiesEnds`: also arguments and results that convolutions
  /// read and write. The elements that kernels of their own copy for that.
  int64_t change(bool copiesEnds);

private:
  bool isImage(linalg::GenericOp op);
  void changeResult(linalg::GenericOp op);
  void changeFilter(linalg::GenericOp op);
  int64_t copyArguments();
  int64_t copyReturned();

  func::FuncOp function;
  PrepackedValues prepacked;
  /// Kernels that write images, and those of them whose image is returned.
  llvm::SetVector<Operation *> writers, returned;
  SmallVector<linalg::GenericOp> convolutions;
  /// What writes channels last.
  SmallPtrSet<Operation *, 16> changed;
};

} // namespace

//===----------------------------------------------------------------------===//
// Finding images
//===----------------------------------------------------------------------===//

/// Whether each dimension has more than one value where orders differ.
static bool hasTwoOrders(RankedTensorType type) {
  return type && type.hasStaticShape() && type.getRank() == 4 &&
         type.getDimSize(1) > 1 && type.getDimSize(2) * type.getDimSize(3) > 1;
}

/// What makes `value`, before paddings and transpositions; itself where that is
/// an argument.
static Value getSource(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto pad = dyn_cast<tensor::PadOp>(op))
      value = pad.getSource();
    else if (auto transpose = dyn_cast<linalg::TransposeOp>(op))
      value = transpose.getInput();
    else
      break;
  }
  return value;
}

/// Whether kernels alone read `value`, through views at most that leave
/// dimensions whole; `isReturned` becomes true where the function gives it.
static bool isReadByKernels(Value value, bool &isReturned) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (isa<func::ReturnOp>(user)) {
      isReturned = true;
      continue;
    }
    if (auto generic = dyn_cast<linalg::GenericOp>(user)) {
      if (generic.isDpsInit(&use))
        return false;
      continue;
    }
    bool ignored = false;
    if (!isa<tensor::PadOp>(user) ||
        !isReadByKernels(user->getResult(0), ignored) || ignored)
      return false;
  }
  return true;
}

bool Images::isImage(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || op->getNumResults() != 1 ||
      op.hasIndexSemantics())
    return false;
  Value result = op.getResult(0);
  OpOperand *init = op.getDpsInitOperand(0);
  AffineMap map = op.getMatchingIndexingMap(init);
  // What it begins with can be made again.
  auto fill = init->get().getDefiningOp<linalg::FillOp>();
  if (!hasTwoOrders(dyn_cast<RankedTensorType>(result.getType())) ||
      !map.isProjectedPermutation() || prepacked.contains(result) ||
      (!fill && op.payloadUsesValueFromOperand(init)))
    return false;
  bool isReturned = false;
  if (!isReadByKernels(result, isReturned))
    return false;
  if (isReturned)
    returned.insert(op);
  return true;
}

/// Example: (n, c, h + i, w + j) is an image, (o, c, i, j) is none.
/// The operand of a convolution with channels first that is the image; null:
/// `op` is none.
static OpOperand *findImage(linalg::GenericOp op) {
  if (!isContraction(op) ||
      cast<RankedTensorType>(op.getResult(0).getType()).getRank() != 4)
    return nullptr;
  auto isWindow = [](AffineExpr expr) { return !isa<AffineDimExpr>(expr); };
  OpOperand *found = nullptr;
  for (OpOperand *input : op.getDpsInputOperands()) {
    ArrayRef<AffineExpr> indices =
        op.getMatchingIndexingMap(input).getResults();
    if (indices.size() != 4 || isWindow(indices[0]) || isWindow(indices[1]) ||
        (!isWindow(indices[2]) && !isWindow(indices[3])))
      continue;
    if (found)
      return nullptr;
    found = input;
  }
  return found;
}

bool Images::find() {
  // Where kernels have been tuned they are kept as they are.
  bool isTuned = false;
  SmallVector<linalg::GenericOp> kernels;
  function.walk([&](Operation *op) {
    isTuned |= op->hasAttr(KasGPUDialect::scheduleName);
    if (auto generic = dyn_cast<linalg::GenericOp>(op))
      kernels.push_back(generic);
  });
  if (isTuned)
    return false;
  llvm::EquivalenceClasses<Operation *> connected;
  for (linalg::GenericOp op : kernels)
    if (isImage(op)) {
      connected.insert(op);
      for (OpOperand *input : op.getDpsInputOperands())
        if (Operation *source = getSource(input->get()).getDefiningOp();
            source && connected.contains(source))
          connected.unionSets(op, source);
    }
  // Only what is connected with a convolution.
  SmallPtrSet<Operation *, 4> leaders;
  for (linalg::GenericOp op : kernels) {
    OpOperand *image = findImage(op);
    if (!image)
      continue;
    convolutions.push_back(op);
    for (Operation *each :
         {op.getOperation(), getSource(image->get()).getDefiningOp()})
      if (each && connected.contains(each))
        leaders.insert(connected.getLeaderValue(each));
  }
  for (linalg::GenericOp op : kernels)
    if (connected.contains(op) &&
        leaders.contains(connected.getLeaderValue(op.getOperation())))
      writers.insert(op);
  return !writers.empty();
}

//===----------------------------------------------------------------------===//
// Changing them
//===----------------------------------------------------------------------===//

static Value createEmpty(OpBuilder &builder, Location loc,
                         RankedTensorType type, ArrayRef<int64_t> permutation) {
  return tensor::EmptyOp::create(builder, loc,
                                 applyPermutation(type.getShape(), permutation),
                                 type.getElementType());
}

/// Lets all other uses of `last`, a tensor with channels last, or of `instead`
/// read a view of it in the former order.
static void replaceByView(OpBuilder &builder, Value last, Value instead,
                          RankedTensorType type) {
  Location loc = last.getLoc();
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  auto view = linalg::TransposeOp::create(builder, loc, last, empty, toFirst);
  SmallPtrSet<Operation *, 2> kept{view, last.getDefiningOp()};
  instead.replaceAllUsesExcept(view->getResult(0), kept);
}

void Images::changeResult(linalg::GenericOp op) {
  OpBuilder builder(op);
  auto type = cast<RankedTensorType>(op.getResult(0).getType());
  OpOperand *init = op.getDpsInitOperand(0);
  Value empty = createEmpty(builder, op.getLoc(), type, toLast);
  if (auto fill = init->get().getDefiningOp<linalg::FillOp>())
    empty =
        linalg::FillOp::create(builder, op.getLoc(), fill.getInputs(), empty)
            .getResult(0);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap &map = maps[init->getOperandNumber()];
  map = AffineMap::get(map.getNumDims(), 0,
                       applyPermutation(map.getResults(), toLast),
                       op.getContext());
  init->set(empty);
  op.setIndexingMapsAttr(builder.getAffineMapArrayAttr(maps));
  op.getResult(0).setType(cast<RankedTensorType>(empty.getType()));
  builder.setInsertionPointAfter(op);
  replaceByView(builder, op.getResult(0), op.getResult(0), type);
}

// Filters are read along the channels, as images are; a library has one order
// for both.
void Images::changeFilter(linalg::GenericOp op) {
  OpOperand *image = findImage(op);
  if (!changed.contains(getSource(image->get()).getDefiningOp()))
    return;
  for (OpOperand *input : op.getDpsInputOperands()) {
    auto type = cast<RankedTensorType>(input->get().getType());
    AffineMap map = op.getMatchingIndexingMap(input);
    if (input == image || !hasTwoOrders(type) ||
        !map.isProjectedPermutation() || !prepacked.contains(input->get()))
      continue;
    OpBuilder builder(op);
    input->set(
        createTransposedCopy(builder, op.getLoc(), input->get(), toLast));
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    maps[input->getOperandNumber()] = AffineMap::get(
        map.getNumDims(), 0, applyPermutation(map.getResults(), toLast),
        op.getContext());
    op.setIndexingMapsAttr(builder.getAffineMapArrayAttr(maps));
  }
}

int64_t Images::copyArguments() {
  int64_t copied = 0;
  llvm::SetVector<Value> arguments;
  for (linalg::GenericOp op : convolutions)
    if (Value source = getSource(findImage(op)->get());
        isa<BlockArgument>(source) && !prepacked.contains(source) &&
        hasTwoOrders(dyn_cast<RankedTensorType>(source.getType())))
      arguments.insert(source);
  OpBuilder builder(function.getContext());
  for (Value argument : arguments) {
    auto type = cast<RankedTensorType>(argument.getType());
    builder.setInsertionPointToStart(&function.getBody().front());
    Value last =
        createTransposedCopy(builder, argument.getLoc(), argument, toLast);
    replaceByView(builder, last, argument, type);
    changed.insert(last.getDefiningOp());
    copied += type.getNumElements();
  }
  return copied;
}

int64_t Images::copyReturned() {
  int64_t copied = 0;
  OpBuilder builder(function.getContext());
  for (Operation *op : returned) {
    if (!writers.contains(op))
      continue;
    Operation *end = function.getBody().front().getTerminator();
    builder.setInsertionPoint(end);
    for (OpOperand &use : end->getOpOperands())
      if (auto view = use.get().getDefiningOp<linalg::TransposeOp>();
          view && view.getInput().getDefiningOp() == op) {
        use.set(createTransposedCopy(builder, op->getLoc(), view.getInput(),
                                     toFirst));
        copied += cast<RankedTensorType>(use.get().getType()).getNumElements();
      }
  }
  return copied;
}

int64_t Images::change(bool copiesEnds) {
  // Without copies results are written as they are to be returned.
  if (!copiesEnds)
    for (Operation *op : returned)
      writers.remove(op);
  for (Operation *op : writers) {
    changeResult(cast<linalg::GenericOp>(op));
    changed.insert(op);
  }
  int64_t copied = copiesEnds ? copyArguments() + copyReturned() : 0;
  for (linalg::GenericOp op : convolutions)
    changeFilter(op);
  return copied;
}

//===----------------------------------------------------------------------===//
// The decision
//===----------------------------------------------------------------------===//

/// Cycles of the contractions of a function, each computed by what is expected
/// to be fastest.
static double estimate(func::FuncOp function, const KernelTarget &target) {
  llvm::SmallPtrSet<Operation *, 16> epilogues;
  function.walk([&](Operation *op) {
    if (std::optional<Epilogue> epilogue = Epilogue::get(op))
      epilogues.insert(epilogue->op);
  });
  double cycles = 0;
  function.walk([&](linalg::GenericOp op) {
    if (epilogues.contains(op) || !hasTensorsOfStaticShape(op))
      return;
    ScheduleChoice kernel =
        chooseSchedule(op, target.device, target.strategy, target.precision);
    chooseLibrary(op, target.libraries, target.precision, target.device,
                  kernel.cycles);
    cycles += kernel.cycles;
  });
  return cycles;
}

/// The same of `function` in another order, and of copies.
static double estimate(ModuleOp module, func::FuncOp function, GPULayout layout,
                       const KernelTarget &target) {
  OwningOpRef<ModuleOp> clone = module.clone();
  auto cloned = clone->lookupSymbol<func::FuncOp>(function.getSymNameAttr());
  double cycles = 0;
  if (layout != GPULayout::AsIs) {
    Images images(cloned);
    images.find();
    bool copiesEnds = layout == GPULayout::Whole;
    int64_t copied = images.change(copiesEnds);
    // Read and written once, with four bytes for each element.
    if (copied)
      cycles = CostModel::launchCycles +
               8.0 * static_cast<double>(copied) / bytesPerCycle /
                   static_cast<double>(target.device.getProcessors());
  }
  transposeWeights(*clone, target);
  cycles += estimate(cloned, target);
  LDBG() << function.getSymName() << ": " << static_cast<unsigned>(layout)
         << " takes " << cycles << " cycles";
  return cycles;
}

static GPULayout choose(ModuleOp module, func::FuncOp function,
                        const KernelTarget &target) {
  double asIs = estimate(module, function, GPULayout::AsIs, target);
  GPULayout best = GPULayout::AsIs;
  double least = asIs * (1 - leastGain);
  for (GPULayout layout : {GPULayout::Inside, GPULayout::Whole})
    if (double cycles = estimate(module, function, layout, target);
        cycles < least) {
      best = layout;
      least = cycles;
    }
  return best;
}

namespace {
struct GPUChannelsLast
    : kas::codegen::impl::KasGPUChannelsLastPassBase<GPUChannelsLast> {
  using KasGPUChannelsLastPassBase::KasGPUChannelsLastPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    GPUDeviceAttr named = getGPUDevice(module, device);
    if (!named)
      return signalPassFailure();
    // The model was fitted to these alone.
    if (layout == GPULayout::AsIs || !isNVIDIADevice(named))
      return;
    KernelTarget target = {named, getStrategy(strategy), precision, libraries};
    for (func::FuncOp function : module.getOps<func::FuncOp>()) {
      if (function.isExternal() || !function.getBody().hasOneBlock())
        continue;
      Images images(function);
      if (!images.find())
        continue;
      GPULayout chosen = layout == GPULayout::Auto
                             ? choose(module, function, target)
                             : layout.getValue();
      if (chosen != GPULayout::AsIs)
        images.change(chosen == GPULayout::Whole);
    }
  }
};
} // namespace
