//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels on one sample, and steps that rearrange.
//
// Every op of a kernel is evaluated in program order into a dense tensor of
// doubles (KernelEvaluation.h); here are those that move elements. Meaning:
// docs/reference/tensor-level.md.
//
//===----------------------------------------------------------------------===//

#include "kas/Reference/KernelEvaluator.h"
#include "KernelEvaluation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kas;
using namespace kas::reference;

using Shape = KernelShape;

LogicalResult KernelEvaluation::run(ArrayRef<ReferenceTensor> inputs,
                                    ArrayRef<ReferenceTensor> weights,
                                    MutableArrayRef<float> output) {
  // Ops take their weights off the front, in program order.
  remaining = weights;
  Block &block = kernel.getBody().front();
  for (auto [argument, input] : llvm::zip_equal(block.getArguments(), inputs)) {
    Dense dense{Shape(input.shape)};
    llvm::copy(input.values, dense.values.begin());
    tensors.try_emplace(argument, std::move(dense));
  }
  for (Operation &op : block.without_terminator())
    if (failed(evaluateStep(&op)))
      return failure();
  return writeOutput(get(kernel.getOutput().getInput()), output);
}

LogicalResult KernelEvaluation::writeOutput(const Dense &result,
                                            MutableArrayRef<float> output) {
  DagOutputOp op = kernel.getOutput();
  // Without `average` one copy, one block: the output is the result, reshaped.
  int64_t numCopies = 1, numBlocks = 1;
  if (op.getCopies()) {
    FailureOr<int64_t> copies = sizes.get(*op.getCopies());
    FailureOr<int64_t> blocks = sizes.get(op.getNumBlocks());
    if (failed(copies) || failed(blocks))
      return failure();
    numCopies = *copies;
    numBlocks = *blocks;
  }
  int64_t blockSize = int64_t(output.size()) / numBlocks;
  for (int64_t offset = 0, e = output.size(); offset < e; ++offset) {
    double sum = 0;
    int64_t count = 0;
    for (int64_t block = offset / blockSize; block < numCopies;
         block += numBlocks, ++count)
      sum += result.values[block * blockSize + offset % blockSize];
    output[offset] = static_cast<float>(sum / double(count));
  }
  return success();
}

LogicalResult KernelEvaluation::evaluateStep(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      // Views keep elements in row-major order. Dropout is the identity:
      // networks are evaluated, not trained, here.
      .Case<DagGroupOp, DagGroupAllOp, DagDropoutOp>([&](auto view) {
        return fill(view.getResult(), [&](ArrayRef<int64_t>, int64_t offset) {
          return get(view.getInput()).values[offset];
        });
      })
      .Case<DagShiftOp, DagUnfoldOp, DagTransposeOp, DagShuffleOp, DagReorderOp,
            DagAmplifyOp, DagFCOp, DagConvOp, DagMixOp, DagScaleOp, DagNormOp,
            DagUnaryOp, DagPoolOp, DagFoldOp, DagSoftmaxOp, DagBroadcastOp,
            DagMatMulOp, DagApplyOp, DagCumSumOp, DagScanOp>(
          [&](auto step) { return evaluate(step); })
      .Default([&](Operation *other) {
        return sizes.emitError()
               << "requires an op with a meaning, got " << other->getName();
      });
}

//===----------------------------------------------------------------------===//
// Rearrangement
//===----------------------------------------------------------------------===//

/// A rotation along `dim`, or, if causal, a move to later positions with zeros
/// before the first. The amount is below the extent (D4).
LogicalResult KernelEvaluation::evaluate(DagShiftOp op) {
  int64_t dim = op.getDim(), extent = get(op.getInput()).shape[dim];
  int64_t amount = op.getAmount();
  if (op.getCausal())
    return fill(op.getResult(), [&](ArrayRef<int64_t> index, int64_t) {
      Shape from(index);
      from[dim] += amount;
      return from[dim] < 0 ? 0.0 : get(op.getInput()).at(from);
    });
  return moveAlong(op.getInput(), op.getResult(), dim,
                   [&](int64_t i) { return (i + extent + amount) % extent; });
}

/// Adds one channel dimension per window: [C | H] with a window of 3 -> [C, 3 |
/// H]; zero outside of the input.
LogicalResult KernelEvaluation::evaluate(DagUnfoldOp op) {
  const Dense &input = get(op.getInput());
  auto type = cast<SymbolicTensorType>(op.getInput().getType());
  unsigned numChannels = type.getNumChannelDims();
  ArrayRef<int64_t> dims = op.getDims();
  FailureOr<Shape> windows =
      sizes.get(llvm::to_vector(op.getWindows().getAsRange<SizeAttr>()));
  if (failed(windows))
    return failure();
  int64_t dilation = op.getDilation();
  return fill(op.getResult(), [&](ArrayRef<int64_t> index, int64_t) {
    Shape from(index.take_front(numChannels));
    // The index into the input: the new dimensions are left out.
    llvm::append_range(from, index.drop_front(numChannels + dims.size()));
    for (auto [place, dim] : llvm::enumerate(dims)) {
      // In 128 bits: the dilation may be any number.
      __int128 position =
          from[dim] +
          __int128(dilation) * (index[numChannels + place] -
                                getLow((*windows)[place], op.getCausal()));
      if (position < 0 || position >= input.shape[dim])
        return 0.0;
      from[dim] = static_cast<int64_t>(position);
    }
    return input.at(from);
  });
}

LogicalResult KernelEvaluation::evaluate(DagTransposeOp op) {
  return fill(op.getResult(), [&](ArrayRef<int64_t> index, int64_t) {
    Shape from(index);
    std::swap(from[op.getDims()[0]], from[op.getDims()[1]]);
    return get(op.getInput()).at(from);
  });
}

/// As in ShuffleNet: the dimension as [groups, extent / groups], transposed.
LogicalResult KernelEvaluation::evaluate(DagShuffleOp op) {
  FailureOr<int64_t> groups = sizes.get(op.getFactor());
  if (failed(groups))
    return failure();
  int64_t dim = op.getDim(), extent = get(op.getInput()).shape[dim];
  if (extent % *groups != 0)
    return sizes.emitError() << "requires groups that divide " << extent
                             << " (K3), got " << *groups;
  return moveAlong(op.getInput(), op.getResult(), dim, [&](int64_t i) {
    return i % *groups * (extent / *groups) + i / *groups;
  });
}

/// Even positions first, then odd ones, or back: 0 1 2 3 4 <-> 0 2 4 1 3.
LogicalResult KernelEvaluation::evaluate(DagReorderOp op) {
  int64_t dim = op.getDim(), extent = get(op.getInput()).shape[dim];
  int64_t numEven = (extent + 1) / 2;
  return moveAlong(op.getInput(), op.getResult(), dim, [&](int64_t i) {
    if (op.getInverse())
      return i % 2 == 0 ? i / 2 : numEven + i / 2;
    return i < numEven ? 2 * i : 2 * (i - numEven) + 1;
  });
}

/// Copies of the whole input, one after the other along the first dimension.
LogicalResult KernelEvaluation::evaluate(DagAmplifyOp op) {
  const Dense &input = get(op.getInput());
  return fill(op.getResult(), [&](ArrayRef<int64_t>, int64_t offset) {
    return input.values[offset % int64_t(input.values.size())];
  });
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Reports tensors that are not those of `shapes`.
static LogicalResult verifyTensors(ArrayRef<ReferenceTensor> tensors,
                                   ArrayRef<Shape> shapes, StringRef what,
                                   EmitErrorFn emitError) {
  if (tensors.size() != shapes.size())
    return emitError() << "requires " << shapes.size() << ' ' << what
                       << "s, got " << tensors.size();
  for (auto [index, tensor] : llvm::enumerate(tensors))
    if (tensor.shape != ArrayRef(shapes[index]) ||
        int64_t(tensor.values.size()) != product(shapes[index]))
      return emitError() << "requires " << what << ' ' << index << " of shape ["
                         << shapes[index] << "], got [" << tensor.shape
                         << "] with " << tensor.values.size() << " values";
  return success();
}

// Everything is checked before the first step, so steps read without checks.
LogicalResult kas::reference::evaluateKernel(
    KernelOp kernel, const Binding &binding, ArrayRef<ReferenceTensor> inputs,
    ArrayRef<ReferenceTensor> weights, MutableArrayRef<float> output,
    EmitErrorFn emitError, StepPrecision precision) {
  FailureOr<KernelShapes> shapes = getShapes(kernel, binding, emitError);
  if (failed(shapes) ||
      failed(verifyTensors(inputs, shapes->inputs, "input", emitError)) ||
      failed(verifyTensors(weights, shapes->weights, "weight", emitError)))
    return failure();
  if (int64_t(output.size()) != product(shapes->output))
    return emitError() << "requires an output of " << product(shapes->output)
                       << " elements, got " << output.size();
  return KernelEvaluation(kernel, binding, emitError, precision)
      .run(inputs, weights, output);
}
