//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels: rearrangement, operators, the output.
//
// A kernel is straight-line code: each op becomes tensor and linalg ops
// (`TensorSteps`) at one binding, with the batch as dimension 0. Dimensions of
// the kernel are counted without the batch, those here with it (`shiftDims`).
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kas;

using Shape = TensorSteps::Shape;

FailureOr<Value> KernelEmitter::run(ValueRange inputs, ValueRange weights) {
  for (Value value :
       llvm::concat<Value>(llvm::to_vector(inputs), llvm::to_vector(weights)))
    if (failed(checkElements(TensorSteps::getShape(value))))
      return failure();
  // `takeWeight` hands them out in program order.
  remaining = weights;
  Block &block = kernel.getBody().front();
  for (auto [argument, input] : llvm::zip_equal(block.getArguments(), inputs))
    values[argument] = input;
  for (Operation &op : block.without_terminator()) {
    // Every size of the step is known before anything is made of it.
    FailureOr<Shape> shape = getShape(op.getResult(0));
    if (failed(shape))
      return failure();
    FailureOr<Value> value = emitStep(&op, *shape);
    if (failed(value))
      return failure();
    values[op.getResult(0)] = *value;
  }
  return emitOutput();
}

//===----------------------------------------------------------------------===//
// Rearrangement
//===----------------------------------------------------------------------===//

FailureOr<Value> KernelEmitter::emitStep(Operation *op,
                                         ArrayRef<int64_t> shape) {
  return TypeSwitch<Operation *, FailureOr<Value>>(op)
      // The same elements in row-major order; dropout is the identity in
      // evaluation.
      .Case<DagGroupOp, DagGroupAllOp, DagDropoutOp>([&](auto op) {
        return FailureOr<Value>(steps.view(values[op.getInput()], shape));
      })
      .Case<DagShiftOp, DagUnfoldOp, DagTransposeOp, DagShuffleOp, DagReorderOp,
            DagAmplifyOp, DagFCOp, DagConvOp, DagMixOp, DagScaleOp, DagNormOp,
            DagUnaryOp, DagPoolOp, DagFoldOp, DagSoftmaxOp, DagBroadcastOp,
            DagMatMulOp, DagApplyOp, DagCumSumOp, DagScanOp>(
          [&](auto op) { return emit(op, shape); })
      .Default([](Operation *other) -> FailureOr<Value> {
        return other->emitOpError("has no lowering to linalg");
      });
}

/// Two slices that change places; if causal, a slice after zeros, since the
/// amount is negative then (D20).
FailureOr<Value> KernelEmitter::emit(DagShiftOp op, ArrayRef<int64_t> shape) {
  int64_t dim = op.getDim() + 1, extent = shape[dim];
  int64_t amount = op.getAmount();
  // The verifier knows the bindings of the kernel alone.
  if (amount >= extent || amount <= -extent)
    return op.emitOpError("requires a shift amount d with 0 < |d| < ")
           << extent << " (D4), got " << amount;
  if (op.getCausal()) {
    Shape low(shape.size(), 0), high(low);
    low[dim] = -amount;
    return steps.pad(steps.take(values[op.getInput()], dim, 0, extent + amount),
                     low, high);
  }
  int64_t start = amount < 0 ? amount + extent : amount;
  return steps.rearrange(
      values[op.getInput()], dim,
      {{start, 1, 0, 1, extent - start}, {0, 1, extent - start, 1, start}});
}

/// `input` with zeros around dimensions `dims`, enough for `windows`.
/// Result: dimension d longer by (window - 1) * dilation. Nothing wraps: sizes
/// and dilations may be any numbers of 64 bits.
FailureOr<Value> KernelEmitter::padForWindows(Value input,
                                              ArrayRef<int64_t> dims,
                                              ArrayRef<int64_t> windows,
                                              WindowPosition place) {
  Shape shape(TensorSteps::getShape(input)), low(shape.size(), 0), high(low);
  for (auto [dim, window] : llvm::zip_equal(dims, windows)) {
    // An even window has one element more before its position than after it.
    int64_t before = place.isCausal ? window - 1 : window / 2;
    int64_t after = window - 1 - before;
    if (llvm::MulOverflow(before, place.dilation, low[dim]) ||
        llvm::MulOverflow(after, place.dilation, high[dim]) ||
        llvm::AddOverflow(shape[dim], low[dim], shape[dim]) ||
        llvm::AddOverflow(shape[dim], high[dim], shape[dim]))
      return kernel.emitOpError("requires windows that fit, got dilation ")
             << place.dilation;
  }
  if (failed(checkElements(shape)))
    return failure();
  return steps.pad(input, low, high);
}

/// A copy [N, C..., K... | H...] of the padded input, read at h + dilation * k.
/// Windows that only a layer reads have become part of it before
/// (`canonicalizeKernel`), so this copy is rare.
FailureOr<Value> KernelEmitter::emit(DagUnfoldOp op, ArrayRef<int64_t> shape) {
  FailureOr<Shape> windows = getSizes(op.getWindows());
  if (failed(windows))
    return failure();
  SmallVector<int64_t> dims = shiftDims(op.getDims());
  FailureOr<Value> padded =
      padForWindows(values[op.getInput()], dims, *windows,
                    {int64_t(op.getDilation()), op.getCausal()});
  if (failed(padded))
    return failure();
  // Batch and channels come before the windows, spatial dimensions after them.
  int64_t numFront = getNumChannelDims(op.getInput()) + 1;
  int64_t numWindows = dims.size();
  SmallVector<AffineExpr> sources;
  for (int64_t dim = 0, e = shape.size() - numWindows; dim < e; ++dim)
    sources.push_back(
        b.getAffineDimExpr(dim < numFront ? dim : dim + numWindows));
  for (auto [place, dim] : llvm::enumerate(dims))
    sources[dim] = sources[dim] + b.getAffineDimExpr(numFront + place) *
                                      int64_t(op.getDilation());
  return steps.map(shape, *padded, getMap(shape.size(), sources), yieldFirst);
}

FailureOr<Value> KernelEmitter::emit(DagTransposeOp op,
                                     ArrayRef<int64_t> shape) {
  SmallVector<int64_t> permutation = getRange(0, shape.size());
  std::swap(permutation[op.getDims()[0] + 1], permutation[op.getDims()[1] + 1]);
  return steps.permute(values[op.getInput()], permutation);
}

/// [groups, extent / groups] transposed, between two views.
FailureOr<Value> KernelEmitter::emit(DagShuffleOp op, ArrayRef<int64_t> shape) {
  FailureOr<int64_t> groups = getSize(op.getFactor());
  if (failed(groups))
    return failure();
  int64_t dim = op.getDim() + 1, extent = shape[dim];
  if (extent % *groups != 0)
    return op.emitOpError("requires groups that divide ")
           << extent << " (K3), got " << *groups;
  Shape split(shape);
  split[dim] = *groups;
  split.insert(split.begin() + dim + 1, extent / *groups);
  SmallVector<int64_t> permutation = getRange(0, split.size());
  std::swap(permutation[dim], permutation[dim + 1]);
  Value parts = steps.view(values[op.getInput()], split);
  return steps.view(steps.permute(parts, permutation), shape);
}

/// Slices {from, step, to, toStep, count}: even positions, then odd ones.
FailureOr<Value> KernelEmitter::emit(DagReorderOp op, ArrayRef<int64_t> shape) {
  int64_t dim = op.getDim() + 1, extent = shape[dim];
  int64_t numEven = (extent + 1) / 2, numOdd = extent - numEven;
  Value input = values[op.getInput()];
  if (op.getInverse())
    return steps.rearrange(input, dim,
                           {{0, 1, 0, 2, numEven}, {numEven, 1, 1, 2, numOdd}});
  return steps.rearrange(input, dim,
                         {{0, 2, 0, 1, numEven}, {1, 2, numEven, 1, numOdd}});
}

/// Block a of the result is block a mod (number of blocks) of the input.
FailureOr<Value> KernelEmitter::emit(DagAmplifyOp op, ArrayRef<int64_t> shape) {
  FailureOr<int64_t> blocks = getSize(op.getImpliedSizes().front());
  if (failed(blocks))
    return failure();
  Value input = values[op.getInput()];
  int64_t copies = shape[1];
  if (*blocks > copies)
    return op.emitOpError("requires at most as many blocks as copies, ")
           << copies << " (D15), got " << *blocks;
  if (*blocks == copies)
    return steps.view(input, shape);
  // Whole rounds of all blocks, then cut to the number of copies.
  int64_t rounds = llvm::divideCeil(copies, *blocks);
  Shape once(shape);
  once[1] = *blocks;
  Shape repeated(once);
  repeated.insert(repeated.begin() + 1, rounds);
  if (failed(checkElements(repeated)))
    return failure();
  SmallVector<int64_t> read = getRange(0, repeated.size());
  read.erase(read.begin() + 1);
  Value result = steps.map(repeated, steps.view(input, once),
                           getMap(repeated.size(), read), yieldFirst);
  once[1] *= rounds;
  return steps.take(steps.view(result, once), 1, 0, copies);
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

/// The first dimension of data and output is the same symbol and nothing else
/// is made of it.
/// Returns the number of that symbol. Such an operator does the same for every
/// sample, so the symbol may take the value of the batch.
static std::optional<unsigned> findBatchSymbol(OperatorOp op) {
  SmallVector<SizeAttr> data = op.getDataSizes(), output = op.getOutputSizes();
  if (data.empty() || output.empty() || data[0] != output[0] ||
      data[0].getNames().size() != 1)
    return std::nullopt;
  StringRef name = data[0].getNames().front().getValue();
  if (data[0] != SizeAttr::getSymbol(op.getContext(), name))
    return std::nullopt;
  auto isElsewhere = [&](ArrayRef<SizeAttr> sizes) {
    return llvm::any_of(sizes, [&](SizeAttr size) {
      return llvm::is_contained(size.getNames(), data[0].getNames().front());
    });
  };
  if (isElsewhere(ArrayRef(data).drop_front()) ||
      isElsewhere(ArrayRef(output).drop_front()))
    return std::nullopt;
  for (const SmallVector<SizeAttr> &weight : op.getWeightSizes())
    if (isElsewhere(weight))
      return std::nullopt;
  return op.getSymbolSet().lookup(name);
}

/// A `kas.apply` with a binding; later passes specialize and lower it as any
/// other.
FailureOr<Value> KernelEmitter::emit(DagApplyOp op, ArrayRef<int64_t> shape) {
  OperatorOp callee = op.getOperator();
  std::optional<Binding> inner =
      callee ? op.getBinding(callee, symbols, binding) : std::nullopt;
  if (!inner)
    return op.emitOpError(
               "requires an operator with sizes that are integers (D16), "
               "got '@")
           << op.getCallee() << "'";
  if (std::optional<unsigned> symbol = findBatchSymbol(callee);
      symbol && (*inner)[*symbol] == 1)
    (*inner)[*symbol] = batch;
  else if (batch != 1)
    return op.emitOpError("requires an operator with a batch dimension of 1 "
                          "to lower ")
           << batch << " samples, got '@" << op.getCallee() << "'";
  // The batch is new to the operator: its sizes may have a limit that counts
  // it.
  if (failed(verifyBinding(callee, *inner, [&] { return op.emitOpError(); })))
    return failure();
  SymbolSet names = callee.getSymbolSet();
  auto getConcrete = [&](ArrayRef<SizeAttr> sizes) {
    return llvm::map_to_vector(sizes, [&](SizeAttr size) {
      return *kas::evaluate(size, names, *inner);
    });
  };
  SmallVector<std::pair<StringRef, int64_t>> entries;
  for (auto [index, value] : llvm::enumerate(*inner))
    entries.emplace_back(names.getName(index), value);
  Value data =
      steps.view(values[op.getInput()], getConcrete(callee.getDataSizes()));
  SmallVector<Value> weights;
  for (unsigned i = 0; i < callee.getNumWeights(); ++i)
    weights.push_back(takeWeight());
  auto type = cast<RankedTensorType>(data.getType())
                  .clone(getConcrete(callee.getOutputSizes()));
  Value result = ApplyOp::create(
      b, type, op.getCallee(), BindingAttr::getNormal(b.getContext(), entries),
      data, weights);
  return steps.view(result, shape);
}

//===----------------------------------------------------------------------===//
// Output
//===----------------------------------------------------------------------===//

/// A view of the last tensor; with `average`, the mean of its copies.
FailureOr<Value> KernelEmitter::emitOutput() {
  DagOutputOp op = kernel.getOutput();
  FailureOr<Shape> shape =
      getSizes(cast<SymbolicTensorType>(kernel.getResultType()).getDims());
  FailureOr<Shape> viewed = getSizes(op.getViewedDims());
  if (failed(shape) || failed(viewed))
    return failure();
  shape->insert(shape->begin(), batch);
  viewed->insert(viewed->begin(), batch);
  if (failed(checkElements(*shape)) || failed(checkElements(*viewed)))
    return failure();
  Value input = values[op.getInput()];
  if (int64_t elements = getProduct(TensorSteps::getShape(input));
      elements != getProduct(*viewed))
    return op.emitOpError("requires ")
           << getProduct(*viewed) / batch
           << " elements in the output (K4), got " << elements / batch;
  if (!op.getCopies())
    return steps.view(input, *shape);
  FailureOr<int64_t> blocks = getSize(op.getNumBlocks());
  if (failed(blocks))
    return failure();
  int64_t copies = (*viewed)[1];
  if (*blocks > copies)
    return op.emitOpError("requires at most as many blocks as copies, ")
           << copies << " (D15), got " << *blocks;
  return steps.view(average(steps.view(input, *viewed), *blocks), *shape);
}

/// Block j is the mean of those blocks of dimension 1 that are j modulo
/// `blocks`.
/// [N, copies, ...] -> [N, blocks, ...]. For 5 copies to 2 blocks: block 0 is
/// the mean of 0, 2, 4 and block 1 that of 1, 3; padding makes 5 copies 6.
Value KernelEmitter::average(Value input, int64_t blocks) {
  Shape shape(TensorSteps::getShape(input));
  int64_t copies = shape[1], rounds = llvm::divideCeil(copies, blocks);
  if (rounds == 1)
    return input;
  Shape low(shape.size(), 0), high(low);
  high[1] = rounds * blocks - copies;
  shape[1] = rounds;
  shape.insert(shape.begin() + 2, blocks);
  Value sums = steps.reduce(steps.view(steps.pad(input, low, high), shape), {1},
                            /*isMax=*/false);
  if (high[1] == 0)
    return steps.scale(sums, 1 / double(rounds));
  // Padding adds zeros to the last blocks, which divide by one less.
  SmallVector<float> factors;
  for (int64_t block = 0; block < blocks; ++block)
    factors.push_back(1.0f /
                      float(rounds - (block >= blocks - high[1] ? 1 : 0)));
  shape.erase(shape.begin() + 1);
  AffineMap maps[] = {b.getMultiDimIdentityMap(shape.size()),
                      getMap(shape.size(), ArrayRef<int64_t>{1})};
  return steps.map(shape, {sums, steps.constant(factors)}, maps,
                   [](OpBuilder &nested, Location loc, ValueRange arguments) {
                     return arith::MulFOp::create(nested, loc, arguments[0],
                                                  arguments[1]);
                   });
}

FailureOr<Value> kas::emitKernel(OpBuilder &builder, Location loc,
                                 KernelOp kernel, const Binding &binding,
                                 ValueRange inputs, ValueRange weights,
                                 const KernelToLinalgOptions &options) {
  int64_t batch =
      inputs.empty() ? options.batch : TensorSteps::getShape(inputs[0])[0];
  ImplicitLocOpBuilder b(loc, builder);
  return KernelEmitter(b, kernel, binding, batch, options).run(inputs, weights);
}
