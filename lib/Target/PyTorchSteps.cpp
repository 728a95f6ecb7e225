//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes, the order of steps, and steps that rearrange.
// `TorchSteps` (PyTorchSteps.h) keeps a name and a shape for each value of the
// kernel and writes one line for each step. Weights are taken in the order of
// the steps, which is that of `getKernelWeights`. Arithmetic without weights is
// in PyTorchArithmetic.cpp.
//
//===----------------------------------------------------------------------===//

#include "PyTorchSteps.h"
#include "PyTorchText.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace kas;
using namespace kas::target;
using namespace kas::torch;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Sizes and lines
//===----------------------------------------------------------------------===//

/// K3 holds at each binding of a space; a binding of the user may break it.
FailureOr<int64_t> TorchSteps::getSize(SizeAttr size) {
  std::optional<int64_t> value = kas::evaluate(size, symbols, binding);
  if (!value)
    return kernel.emitOpError("requires sizes that are integers (K3), got ")
           << size << " at this binding";
  return *value;
}

FailureOr<TorchSteps::Shape> TorchSteps::getSizes(ArrayRef<SizeAttr> sizes) {
  Shape shape;
  for (SizeAttr size : sizes) {
    FailureOr<int64_t> value = getSize(size);
    if (failed(value))
      return failure();
    shape.push_back(*value);
  }
  return shape;
}

FailureOr<TorchSteps::Shape> TorchSteps::getSizes(ArrayAttr sizes) {
  return getSizes(llvm::to_vector(sizes.getAsRange<SizeAttr>()));
}

/// The shape at the binding, without the batch; channels come before other
/// dimensions.
FailureOr<TorchSteps::Tensor> TorchSteps::makeTensor(Value value,
                                                     std::string name) {
  auto type = cast<SymbolicTensorType>(value.getType());
  FailureOr<Shape> shape = getSizes(type.getDims());
  if (failed(shape))
    return failure();
  return Tensor{std::move(name), *shape, type.getNumChannelDims()};
}

/// The next weight. The caller has as many as steps take.
std::string TorchSteps::takeWeight() {
  std::string weight = remainingWeights.front();
  remainingWeights = remainingWeights.drop_front();
  return weight;
}

std::string TorchSteps::assign(const Twine &expr) {
  std::string name = ("x" + Twine(numLines++)).str();
  os << "    " << name << " = " << expr << "\n";
  return name;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

LogicalResult TorchSteps::write(ArrayRef<std::string> inputs,
                                ArrayRef<std::string> weights) {
  remainingWeights = weights;
  Block &block = kernel.getBody().front();
  for (auto [argument, name] : llvm::zip_equal(block.getArguments(), inputs)) {
    FailureOr<Tensor> tensor = makeTensor(argument, name);
    if (failed(tensor))
      return failure();
    tensors.try_emplace(argument, std::move(*tensor));
  }
  // Every step has one result.
  for (Operation &op : block.without_terminator()) {
    FailureOr<Tensor> result = makeTensor(op.getResult(0), "");
    if (failed(result))
      return failure();
    FailureOr<std::string> expr = writeStep(&op, *result);
    if (failed(expr))
      return failure();
    // Steps that do nothing have no line.
    // An expression that is a name: the result is another name for its input.
    bool isName = llvm::all_of(*expr, [](char c) { return llvm::isAlnum(c); });
    result->name = isName ? *expr : assign(*expr);
    tensors.try_emplace(op.getResult(0), std::move(*result));
  }
  return writeOutput();
}

FailureOr<std::string> TorchSteps::writeStep(Operation *op,
                                             const Tensor &result) {
  using Text = FailureOr<std::string>;
  return TypeSwitch<Operation *, Text>(op)
      // Groups are another view of the same elements; dropout does nothing
      // outside of training.
      .Case<DagGroupOp, DagGroupAllOp>([&](auto view) -> Text {
        const Tensor &input = get(view.getInput());
        return reshape(input.name, input.shape, result.shape);
      })
      .Case(
          [&](DagDropoutOp same) -> Text { return get(same.getInput()).name; })
      .Case([&](DagShiftOp step) -> Text { return writeShift(step); })
      .Case([&](DagUnfoldOp step) { return writeUnfold(step); })
      .Case([&](DagTransposeOp step) -> Text { return writeTranspose(step); })
      .Case([&](DagShuffleOp step) { return writeShuffle(step); })
      .Case([&](DagReorderOp step) -> Text { return writeReorder(step); })
      .Case(
          [&](DagAmplifyOp step) -> Text { return writeAmplify(step, result); })
      .Case([&](DagFCOp step) -> Text {
        Text expr = writeFC(step);
        return failed(expr) ? expr : *expr + reshape(result.shape);
      })
      .Case([&](DagConvOp step) { return writeConv(step); })
      .Case([&](DagMixOp step) -> Text { return writeMix(step, result); })
      .Case([&](DagScaleOp step) -> Text { return writeScale(step); })
      .Case([&](DagNormOp step) -> Text { return writeNorm(step); })
      .Case([&](DagUnaryOp step) -> Text { return writeUnary(step); })
      .Case([&](DagPoolOp step) -> Text { return writePool(step, result); })
      .Case([&](DagFoldOp step) -> Text { return writeFold(step); })
      .Case([&](DagSoftmaxOp step) -> Text { return writeSoftmax(step); })
      .Case([&](DagCumSumOp step) -> Text { return writeCumSum(step); })
      .Case([&](DagScanOp step) -> Text { return writeScan(step); })
      .Case([&](DagBroadcastOp step) -> Text {
        Text expr = writeBroadcast(step);
        return failed(expr) ? expr : *expr + reshape(result.shape);
      })
      .Case([&](DagMatMulOp step) -> Text {
        Text expr = writeMatMul(step);
        return failed(expr) ? expr : *expr + reshape(result.shape);
      })
      .Case([&](DagApplyOp step) { return writeApply(step, result); })
      .Default([](Operation *other) -> Text {
        return other->emitOpError("has no PyTorch code");
      });
}

//===----------------------------------------------------------------------===//
// Rearrangement
//===----------------------------------------------------------------------===//

/// Cyclic (`roll`), or causal: zeros come in where the shift has left.
std::string TorchSteps::writeShift(DagShiftOp op) {
  if (op.getCausal()) {
    const Tensor &input = get(op.getInput());
    int64_t dim = op.getDim(), distance = -int64_t(op.getAmount());
    // F.pad counts from the last dimension; the low side of `dim` is the second
    // to last.
    SmallVector<int64_t> amounts(2 * (input.shape.size() - dim), 0);
    amounts[amounts.size() - 2] = distance;
    return "F.pad(" + input.name + ".narrow(" +
           listNumbers({dim + 1, 0, input.shape[dim] - distance}) + "), (" +
           listNumbers(amounts) + "))";
  }
  return "torch.roll(" + get(op.getInput()).name + ", " +
         std::to_string(-int64_t(op.getAmount())) + ", " +
         std::to_string(op.getDim() + 1) + ")";
}

/// Windows of a dimension: a dilation that no other element than the one at the
/// position can meet may be less.
/// `low` is how many elements of the window lie before the position.
static SmallVector<TorchWindow> getWindows(ArrayRef<int64_t> shape,
                                           ArrayRef<int64_t> dims,
                                           ArrayRef<int64_t> sizes,
                                           int64_t dilation, bool isCausal) {
  SmallVector<TorchWindow> windows;
  for (auto [dim, size] : llvm::zip_equal(dims, sizes))
    windows.push_back({dim, size, std::min(dilation, shape[dim]),
                       isCausal ? size - 1 : size / 2});
  return windows;
}

/// The window of each position as new channels: pads, then views.
FailureOr<std::string> TorchSteps::writeUnfold(DagUnfoldOp op) {
  const Tensor &input = get(op.getInput());
  FailureOr<Shape> sizes = getSizes(op.getWindows());
  if (failed(sizes))
    return failure();
  SmallVector<TorchWindow> windows = getWindows(
      input.shape, op.getDims(), *sizes, op.getDilation(), op.getCausal());
  return unfold(pad(input.name, input.shape.size(), windows), windows,
                input.numChannels);
}

std::string TorchSteps::writeTranspose(DagTransposeOp op) {
  return get(op.getInput()).name + ".transpose(" +
         listNumbers(shiftDims(op.getDims())) + ")";
}

/// ShuffleNet's: [g, c/g] -> [c/g, g].
FailureOr<std::string> TorchSteps::writeShuffle(DagShuffleOp op) {
  const Tensor &input = get(op.getInput());
  FailureOr<int64_t> groups = getSize(op.getFactor());
  if (failed(groups))
    return failure();
  int64_t dim = op.getDim(), extent = input.shape[dim];
  if (extent % *groups != 0)
    return op.emitOpError("requires groups that divide ")
           << extent << " (K3), got " << *groups;
  // (g, extent / g), transposed and merged.
  Shape split(input.shape);
  split[dim] = extent / *groups;
  split.insert(split.begin() + dim, *groups);
  return input.name + reshape(split) + ".transpose(" +
         listNumbers({dim + 1, dim + 2}) + ")" + reshape(input.shape);
}

/// Even positions before odd ones, or back.
std::string TorchSteps::writeReorder(DagReorderOp op) {
  const Tensor &input = get(op.getInput());
  int64_t dim = op.getDim(), extent = input.shape[dim];
  std::string front = "[";
  for (int64_t i = 0; i <= dim; ++i)
    front += ":, ";
  if (!op.getInverse())
    return "torch.cat((" + input.name + front + "0::2], " + input.name + front +
           "1::2]), " + std::to_string(dim + 1) + ")";
  // Position i comes from i/2 in the first half, or in the second one, which
  // begins at (extent + 1) / 2.
  return input.name + front + "[i // 2 if i % 2 == 0 else " +
         std::to_string((extent + 1) / 2) + " + i // 2 for i in range(" +
         std::to_string(extent) + ")]]";
}

/// All channels, blocks and points in a row, as often as needed.
/// Repeated to the wanted number, and cut.
std::string TorchSteps::writeAmplify(DagAmplifyOp op, const Tensor &result) {
  const Tensor &input = get(op.getInput());
  int64_t given = countElements(input.shape),
          wanted = countElements(result.shape);
  if (given == wanted)
    return reshape(input.name, input.shape, result.shape);
  std::string text = input.name + reshape({given}) + ".repeat(1, " +
                     std::to_string(llvm::divideCeil(wanted, given)) + ")";
  if (wanted % given != 0)
    text += "[:, :" + std::to_string(wanted) + "]";
  return text + reshape(result.shape);
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

/// [B, groups, perGroup, positions] times [groups, outputs / groups, perGroup];
/// p are all positions. The caller gives the result its shape.
std::string TorchSteps::writeLayer(StringRef input, int64_t groups,
                                   int64_t perGroup, int64_t points,
                                   int64_t outputs, StringRef weight) {
  if (groups == 1)
    return "torch.einsum(\"bcp,oc->bop\", " + input.str() +
           reshape({perGroup, points}) + ", " + weight.str() + ".reshape(" +
           listNumbers({outputs, perGroup}) + "))";
  return "torch.einsum(\"bgcp,goc->bgop\", " + input.str() +
         reshape({groups, perGroup, points}) + ", " + weight.str() +
         ".reshape(" + listNumbers({groups, outputs / groups, perGroup}) + "))";
}

/// K3 of layers.
template <typename LayerOp>
static LogicalResult verifyGroups(LayerOp op, int64_t groups, int64_t outputs) {
  if (outputs % groups != 0)
    return op.emitOpError("requires groups that divide ")
           << outputs << " (K3), got " << groups;
  return success();
}

FailureOr<std::string> TorchSteps::writeFC(DagFCOp op) {
  const Tensor &input = get(op.getInput());
  FailureOr<int64_t> outputs = getSize(op.getChannels());
  if (failed(outputs))
    return failure();
  // The first `getGroups()` dimensions of channels are groups, the others are
  // summed over.
  ArrayRef<int64_t> channels =
      ArrayRef(input.shape).take_front(input.numChannels);
  int64_t groups = countElements(channels.take_front(op.getGroups()));
  if (failed(verifyGroups(op, groups, *outputs)))
    return failure();
  return writeLayer(
      input.name, groups, countElements(channels.drop_front(op.getGroups())),
      countElements(ArrayRef(input.shape).drop_front(input.numChannels)),
      *outputs, takeWeight());
}

/// F.conv1d, 2d or 3d where it can be; else the windows as channels, and a
/// layer.
FailureOr<std::string> TorchSteps::writeConv(DagConvOp op) {
  const Tensor &input = get(op.getInput());
  FailureOr<int64_t> outputs = getSize(op.getChannels());
  FailureOr<Shape> sizes = getSizes(op.getWindows());
  if (failed(outputs) || failed(sizes))
    return failure();
  ArrayRef<int64_t> shape(input.shape);
  ArrayRef<int64_t> channels = shape.take_front(input.numChannels);
  ArrayRef<int64_t> points = shape.drop_front(input.numChannels);
  int64_t groups = countElements(channels.take_front(op.getGroups()));
  int64_t perGroup = countElements(channels.drop_front(op.getGroups()));
  if (failed(verifyGroups(op, groups, *outputs)))
    return failure();
  SmallVector<TorchWindow> windows =
      getWindows(shape, op.getDims(), *sizes, op.getDilation(), op.getCausal());
  std::string padded = pad(input.name, shape.size(), windows);
  Shape result(points);
  result.insert(result.begin(), *outputs);
  // No such function for four dimensions, nor for weights whose windows are in
  // another order.
  if (points.size() > 3 || !llvm::is_sorted(op.getDims()))
    return writeLayer(unfold(padded, windows, input.numChannels), groups,
                      perGroup * countElements(*sizes), countElements(points),
                      *outputs, takeWeight()) +
           reshape(result);
  // PyTorch has a window along every spatial dimension.
  Shape kernelShape{*outputs, perGroup}, dilations(points.size(), 1);
  kernelShape.append(points.size(), 1);
  // Channels become one dimension; padding has grown the others.
  Shape paddedShape{countElements(channels)};
  llvm::append_range(paddedShape, points);
  // Dimensions without a window keep the kernel size 1.
  for (const TorchWindow &window : windows) {
    int64_t place = window.dim - input.numChannels;
    kernelShape[2 + place] = window.size;
    dilations[place] = window.dilation;
    paddedShape[1 + place] += window.dilation * (window.size - 1);
  }
  return "F.conv" + std::to_string(points.size()) + "d(" + padded +
         (input.numChannels == 1 ? "" : reshape(paddedShape)) + ", " +
         takeWeight() + ".reshape(" + listNumbers(kernelShape) +
         "), dilation=(" + listNumbers(dilations, /*isTuple=*/true) +
         "), groups=" + std::to_string(groups) + ")";
}

/// Each dimension of `dims` is replaced by another through one weight [rows...,
/// columns...]: a product with matrices over several dimensions at once.
std::string TorchSteps::writeMix(DagMixOp op, const Tensor &result) {
  const Tensor &input = get(op.getInput());
  // Z is the batch; a new dimension is the capital of the old one.
  std::string from = "Z", to = "Z", weightFrom, weightTo;
  for (size_t dim = 0; dim < input.shape.size(); ++dim)
    from += char('a' + dim);
  to = from;
  Shape rows, columns;
  for (int64_t dim : op.getDims()) {
    to[dim + 1] = char('A' + dim);
    weightTo += char('A' + dim);
    weightFrom += char('a' + dim);
    rows.push_back(result.shape[dim]);
    columns.push_back(input.shape[dim]);
  }
  rows.append(columns);
  return "torch.einsum(\"" + from + "," + weightTo + weightFrom + "->" + to +
         "\", " + input.name + ", " + takeWeight() + ".reshape(" +
         listNumbers(rows) + "))";
}

/// An elementwise weight over `dims`, in the order in which they are written
/// there.
std::string TorchSteps::writeScale(DagScaleOp op) {
  const Tensor &input = get(op.getInput());
  SmallVector<int64_t> dims(op.getDims()), order;
  for (size_t place = 0; place < dims.size(); ++place)
    order.push_back(place);
  llvm::sort(order, [&](int64_t a, int64_t b) { return dims[a] < dims[b]; });
  std::string weight = takeWeight();
  // The weight has the dimensions in its own order; broadcasting wants the
  // tensor's.
  if (!llvm::is_sorted(order))
    weight += ".permute(" + listNumbers(order) + ")";
  Shape shape(input.shape.size(), 1);
  for (int64_t dim : dims)
    shape[dim] = input.shape[dim];
  return input.name + " * " + weight + ".reshape(" + listNumbers(shape) + ")";
}

/// By stored statistics, per channel: (x - mean) / sqrt(|variance| + e) *
/// factor + offset. The order of weights is that of `getKernelWeights`.
std::string TorchSteps::writeNorm(DagNormOp op) {
  const Tensor &input = get(op.getInput());
  Shape shape(ArrayRef(input.shape).take_front(input.numChannels));
  shape.append(input.shape.size() - input.numChannels, 1);
  // The weights have the channels' shape and are broadcast over positions.
  std::string view = ".reshape(" + listNumbers(shape) + ")";
  std::string factor = takeWeight() + view, offset = takeWeight() + view;
  std::string mean = takeWeight() + view, variance = takeWeight() + view;
  return "(" + input.name + " - " + mean + ") / torch.sqrt(torch.abs(" +
         variance + ") + " + printNumber(DagNormOp::epsilon) + ") * " + factor +
         " + " + offset;
}

//===----------------------------------------------------------------------===//
// Operators, output
//===----------------------------------------------------------------------===//

/// Operators have no batch: applied to each sample, and stacked.
FailureOr<std::string> TorchSteps::writeApply(DagApplyOp op,
                                              const Tensor &result) {
  FailureOr<AppliedOperator> applied = apply(op);
  if (failed(applied))
    return failure();
  std::string call = applied->function + "(sample.reshape(" +
                     listNumbers(applied->dataShape) + ")";
  for (unsigned i = 0, e = op.getParams().size(); i < e; ++i)
    call += ", " + takeWeight();
  return "torch.stack([" + call + ") for sample in " + get(op.getInput()).name +
         "])" + reshape(result.shape);
}

/// The mean over copies, if the kernel has any: block b of the result is the
/// mean of copies b, b + numBlocks, ...
LogicalResult TorchSteps::writeOutput() {
  DagOutputOp op = kernel.getOutput();
  const Tensor &given = get(op.getInput());
  FailureOr<Shape> shape =
      getSizes(cast<SymbolicTensorType>(kernel.getResultType()).getDims());
  if (failed(shape))
    return failure();
  int64_t numCopies = 1, numBlocks = 1;
  if (op.getCopies()) {
    FailureOr<int64_t> copies = getSize(*op.getCopies());
    FailureOr<int64_t> blocks = getSize(op.getNumBlocks());
    if (failed(copies) || failed(blocks))
      return failure();
    numCopies = *copies;
    numBlocks = *blocks;
  }
  os << "    return ";
  int64_t blockSize = countElements(*shape) / numBlocks;
  // One copy of each block: nothing to average.
  if (numCopies == numBlocks) {
    os << reshape(given.name, given.shape, *shape) << "\n";
  } else if (numCopies % numBlocks == 0) {
    os << given.name << reshape({numCopies / numBlocks, numBlocks, blockSize})
       << ".mean(1)" << reshape(*shape) << "\n";
  } else {
    // Some blocks have one copy more than others.
    os << "torch.stack([" << given.name << reshape({numCopies, blockSize})
       << "[:, block::" << numBlocks << "].mean(1) for block in range("
       << numBlocks << ")], 1)" << reshape(*shape) << "\n";
  }
  return success();
}
