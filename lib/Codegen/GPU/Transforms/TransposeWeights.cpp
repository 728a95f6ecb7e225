//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Weights in the order in which kernels read them. PyTorch keeps a filter as
// [Cout, Cin, kH, kW], with the window innermost, while steps run along Cin:
// each element is read for itself, kH * kW elements from the next one. A kernel
// copies the weight to [Cout, kH, kW, Cin] first (research/reports/gpu.md,
// "What was learnt"): once for all calls where it depends on weights alone
// (`-kas-gpu-plan-buffers`), else where it pays in every call. Libraries take
// weights as they are, so what they compute in less time than such a kernel is
// left to them here.
//
//===----------------------------------------------------------------------===//

#include "../Strategy/LibraryChoice.h"
#include "../Strategy/MatrixView.h"
#include "../Strategy/PrepackedValues.h"
#include "../Strategy/ScheduleChoice.h"
#include "WeightCopies.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/Codegen/GPU/Strategy/Device.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASGPUTRANSPOSEWEIGHTSPASS
#include "kas/Codegen/GPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// The smallest depth of a block of steps that the cost model considers.
static constexpr int64_t depth = 8;

/// Of an element that a kernel reads for itself, beyond one of a vector; of one
/// more kernel. In cycles of a processor, as in the cost model.
static constexpr double farCycles = 0.5, kernelCycles = 4000;

/// The dimension of weight number `number` that steps run along and that
/// belongs last; nothing where it is last, or where a copy that `isRepeated` in
/// each call takes longer than kernels gain.
static std::optional<unsigned> getFarDimension(const GPUKernelProblem &problem,
                                               unsigned number, bool isRepeated,
                                               int64_t processors) {
  const Coordinates &coordinates = problem.coordinates;
  std::optional<MatrixView> view = MatrixView::get(coordinates);
  // Weights of the right side are read like the data.
  if (!view || !llvm::is_contained(view->left, number + 1))
    return std::nullopt;
  view->orderSteps(coordinates, depth);
  auto getExtent = [&](ArrayRef<unsigned> axes) {
    return MatrixView::getExtent(coordinates, axes);
  };
  auto getInner = [&](ArrayRef<unsigned> axes) -> AffineExpr {
    for (unsigned axis : llvm::reverse(axes))
      if (coordinates.axes[axis].extent > 1)
        return getAffineDimExpr(
            axis, coordinates.weights[number].front().getContext());
    return nullptr;
  };
  ArrayRef<AffineExpr> indices = coordinates.weights[number];
  ArrayRef<int64_t> shape = problem.weights[number];
  int64_t last = static_cast<int64_t>(indices.size()) - 1;
  // Unit dimensions at the end do not move anything.
  while (last >= 0 && shape[last] == 1)
    --last;
  AffineExpr step = indices.empty() ? AffineExpr() : getInner(view->steps);
  // Read along the steps or the rows already.
  if (last < 0 || !step || indices[last] == step ||
      indices[last] == getInner(view->rows))
    return std::nullopt;
  const auto *found = llvm::find(indices, step);
  // Narrow matrices are read by other kernels, from where they are.
  if (found == indices.end() || getExtent(view->rows) < 2 * depth)
    return std::nullopt;
  double elements = 1;
  for (int64_t size : shape)
    elements *= static_cast<double>(size);
  // Each block of columns reads all of the weight again; 128 columns are a
  // large block, so the gain is not overestimated.
  auto blocks =
      static_cast<double>(llvm::divideCeil(getExtent(view->columns), 128));
  double gain = farCycles * elements * blocks / static_cast<double>(processors);
  if (isRepeated && gain < kernelCycles)
    return std::nullopt;
  return found - indices.begin();
}

/// All dimensions but `dimension` in order, then that one.
static SmallVector<int64_t> getPermutation(size_t rank, unsigned dimension) {
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::rotate(permutation.begin() + dimension,
              permutation.begin() + dimension + 1, permutation.end());
  return permutation;
}

// Canonicalization leaves a generic operation alone.
Value kas::codegen::createTransposedCopy(OpBuilder &builder, Location loc,
                                         Value value,
                                         ArrayRef<int64_t> permutation) {
  auto type = cast<RankedTensorType>(value.getType());
  Value empty = tensor::EmptyOp::create(
      builder, loc, applyPermutation(type.getShape(), permutation),
      type.getElementType());
  // Loops are those of the result: neighbouring threads write neighbours.
  AffineMap reads = inversePermutation(
      AffineMap::getPermutationMap(permutation, builder.getContext()));
  AffineMap writes =
      AffineMap::getMultiDimIdentityMap(type.getRank(), builder.getContext());
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  auto copy = linalg::GenericOp::create(
      builder, loc, empty.getType(), value, empty,
      ArrayRef<AffineMap>{reads, writes}, loops,
      [](OpBuilder &nested, Location place, ValueRange values) {
        linalg::YieldOp::create(nested, place, values.front());
      });
  return copy.getResult(0);
}

namespace {

/// For each weight the dimension that belongs last, if any.
using Dimensions = SmallVector<std::optional<unsigned>>;

} // namespace

/// Leaves `op` to a library that is expected to be faster than its kernel with
/// transposed weights. Whether there is one.
static bool leaveToLibrary(Operation *op, GPUKernelProblem problem,
                           ValueRange inputs, const Dimensions &dimensions,
                           const KernelTarget &target) {
  // What has a schedule keeps to its kernel.
  if (target.libraries == GPULibraries::None ||
      !isNVIDIADevice(target.device) ||
      op->hasAttr(KasGPUDialect::scheduleName) ||
      !llvm::any_of(dimensions, [](auto dimension) { return !!dimension; }))
    return false;
  for (auto [number, dimension] : llvm::enumerate(dimensions)) {
    if (!dimension)
      continue;
    auto &shape = problem.weights[number];
    auto &indices = problem.coordinates.weights[number];
    auto permutation = getPermutation(shape.size(), *dimension);
    shape = applyPermutation(ArrayRef<int64_t>(shape), permutation);
    indices = applyPermutation(ArrayRef<AffineExpr>(indices), permutation);
  }
  ScheduleChoice kernel =
      chooseSchedule(problem, getInputType(inputs), target.device,
                     target.strategy, target.precision);
  Attribute library = chooseLibrary(op, target.libraries, target.precision,
                                    target.device, kernel.cycles);
  if (library)
    op->setAttr(KasGPUDialect::libraryName, library);
  return library != nullptr;
}

/// The operand that is weight `number`; null: views change it.
static OpOperand *getWeight(linalg::GenericOp op,
                            const ContractionProblem &contraction,
                            unsigned number) {
  auto *operand = llvm::find_if(op->getOpOperands(), [&](OpOperand &each) {
    return each.get() == contraction.inputs[number + 1];
  });
  // Each dimension of the weight is one loop: a copy permutes both.
  return operand != op->getOpOperands().end() &&
                 op.getMatchingIndexingMap(&*operand).isProjectedPermutation()
             ? &*operand
             : nullptr;
}

/// Lets a contraction read transposed weights.
static void transposeWeights(linalg::GenericOp op, PrepackedValues &prepacked,
                             const KernelTarget &target) {
  auto contraction = ContractionProblem::get(op);
  if (!contraction)
    return;
  OpBuilder builder(op);
  Dimensions dimensions;
  for (unsigned number = 0; number < contraction->problem.weights.size();
       ++number) {
    OpOperand *operand = getWeight(op, *contraction, number);
    dimensions.push_back(
        operand ? getFarDimension(contraction->problem, number,
                                  !prepacked.contains(operand->get()),
                                  target.device.getProcessors())
                : std::nullopt);
  }
  if (leaveToLibrary(op, contraction->problem, contraction->inputs, dimensions,
                     target))
    return;
  for (auto [number, dimension] : llvm::enumerate(dimensions)) {
    if (!dimension)
      continue;
    OpOperand *operand = getWeight(op, *contraction, number);
    auto permutation =
        getPermutation(contraction->problem.weights[number].size(), *dimension);
    operand->set(createTransposedCopy(builder, op.getLoc(), operand->get(),
                                      permutation));
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    AffineMap &map = maps[operand->getOperandNumber()];
    map = AffineMap::get(map.getNumDims(), 0,
                         applyPermutation(map.getResults(), permutation),
                         op.getContext());
    op.setIndexingMapsAttr(builder.getAffineMapArrayAttr(maps));
  }
}

/// A copy of `op` that reads the dimensions of weight number `number` in
/// another order.
static OperatorOp cloneTransposed(OperatorOp op, SymbolTable &symbols,
                                  unsigned number,
                                  ArrayRef<int64_t> permutation) {
  OpBuilder builder(op);
  auto clone = cast<OperatorOp>(builder.clone(*op));
  symbols.insert(clone);
  YieldOp yield = clone.getYield();
  MutableOperandRange weight = yield.getWeightsMutable()[number];
  auto coordinates = llvm::to_vector(OperandRange(weight));
  weight.assign(applyPermutation(ArrayRef<Value>(coordinates), permutation));
  return clone;
}

/// Lets an operator read transposed weights.
static void transposeWeights(ApplyOp apply, SymbolTable &symbols,
                             PrepackedValues &prepacked,
                             const KernelTarget &target) {
  OperatorOp op = apply.getOperator();
  if (!op || !op.isConcrete())
    return;
  OpBuilder builder(apply);
  GPUKernelProblem problem = GPUKernelProblem::get(op);
  Dimensions dimensions;
  for (auto [number, weight] : llvm::enumerate(apply.getWeights()))
    dimensions.push_back(getFarDimension(problem, number,
                                         !prepacked.contains(weight),
                                         target.device.getProcessors()));
  if (leaveToLibrary(apply, problem, apply->getOperands(), dimensions, target))
    return;
  for (auto [number, dimension] : llvm::enumerate(dimensions)) {
    if (!dimension)
      continue;
    Value weight = apply.getWeights()[number];
    auto permutation =
        getPermutation(problem.weights[number].size(), *dimension);
    OperatorOp clone = cloneTransposed(op, symbols, number, permutation);
    apply.getWeightsMutable()[number].set(
        createTransposedCopy(builder, apply.getLoc(), weight, permutation));
    apply.setCalleeAttr(FlatSymbolRefAttr::get(clone.getSymNameAttr()));
    // The next weight is transposed in the clone.
    op = clone;
  }
}

void kas::codegen::transposeWeights(ModuleOp module,
                                    const KernelTarget &target) {
  // Nothing is gained where all memory is alike.
  if (isHostDevice(target.device))
    return;
  SymbolTable symbols(module);
  PrepackedValues prepacked;
  SmallVector<Operation *> kernels;
  module->walk([&](Operation *op) {
    if (isa<ApplyOp>(op) ||
        (isa<linalg::GenericOp>(op) &&
         cast<linalg::GenericOp>(op).hasPureTensorSemantics()))
      kernels.push_back(op);
  });
  for (Operation *op : kernels) {
    if (auto apply = dyn_cast<ApplyOp>(op))
      ::transposeWeights(apply, symbols, prepacked, target);
    else
      ::transposeWeights(cast<linalg::GenericOp>(op), prepacked, target);
  }
}

namespace {
struct GPUTransposeWeights
    : kas::codegen::impl::KasGPUTransposeWeightsPassBase<GPUTransposeWeights> {
  using KasGPUTransposeWeightsPassBase::KasGPUTransposeWeightsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    GPUDeviceAttr named = getGPUDevice(module, device);
    if (!named)
      return signalPassFailure();
    transposeWeights(module,
                     {named, getStrategy(strategy), precision, libraries});
  }
};
} // namespace
