//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GrowingKernel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <algorithm>
#include <cmath>

using namespace kas;
using namespace kas::test;
using namespace mlir;

namespace {

class RandomKernelBuilder : GrowingKernel {
public:
  using GrowingKernel::GrowingKernel;

  KernelOp make() {
    unsigned count = options.minSteps +
                     random.below(options.maxSteps - options.minSteps + 1);
    // Some draws are not possible; that so many are not does not happen.
    for (unsigned tries = 0; count > 0 && tries < 1000; ++tries)
      count -= addStep() ? 1 : 0;
    mergeLeaves();
    finish();
    return kernel;
  }

private:
  //===--------------------------------------------------------------------===//
  // Steps
  //===--------------------------------------------------------------------===//

  bool addStep() {
    if (options.redexPercent > 0 && random.below(100) < options.redexPercent)
      return addRedex();
    if (options.scanPercent > 0 && random.below(100) < options.scanPercent)
      return addScan(pickTensor());
    switch (random.below(7)) {
    case 0:
    case 1:
      return addRearrangement(pickTensor());
    case 2:
    case 3:
      return addLayer(pickTensor());
    case 4:
      return addFunction(pickTensor());
    case 5:
      return addFold(pickTensor());
    default:
      return addBlend();
    }
  }

  /// Two steps of which the second undoes the first, or joins it.
  bool addRedex() {
    Tensor input = tensors.back();
    int64_t rank = getRank(input), numChannels = input.numChannels;
    double same = input.magnitude;
    auto last = [&]() -> Tensor & { return tensors.back(); };
    auto addFunction = [&](DagUnaryKind kind) {
      return add<DagUnaryOp>({&last()}, same, kind, last().value);
    };
    if (rank == 0)
      return false;
    int64_t dim = random.below(rank);
    switch (random.below(11)) {
    case 0: {
      int64_t first = flip() ? 0 : numChannels;
      if ((first == 0 ? numChannels : rank) - first < 2)
        return false;
      SmallVector<int64_t> dims = {first, first + 1};
      return add<DagTransposeOp>({&last()}, same, last().value, dims) &&
             add<DagTransposeOp>({&last()}, same, last().value,
                                 ArrayRef<int64_t>{dims[1], dims[0]});
    }
    case 1: {
      bool inverse = flip();
      return add<DagReorderOp>({&last()}, same, last().value, dim, inverse) &&
             add<DagReorderOp>({&last()}, same, last().value, dim, !inverse);
    }
    case 2: {
      int64_t extent = input.shape[dim];
      if (extent < 2)
        return false;
      int64_t d = 1 + random.below(extent - 1),
              e = 1 + random.below(extent - 1);
      return add<DagShiftOp>({&last()}, same, last().value, dim, d) &&
             add<DagShiftOp>({&last()}, same, last().value, dim, -e);
    }
    case 3: {
      SizeAttr size = getType(input).getDims()[dim];
      SizeAttr factor = pick({1, 2}) == 1 ? symbol("G") : number(2);
      SizeAttr rest = size.divide(factor);
      return rest && input.shape[dim] % evaluate(factor) == 0 &&
             add<DagShuffleOp>({&last()}, same, last().value, dim, factor) &&
             add<DagShuffleOp>({&last()}, same, last().value, dim, rest);
    }
    case 4:
      return numChannels > 0 &&
             add<DagGroupOp>({&last()}, same, last().value, int64_t(0),
                             number(1)) &&
             add<DagGroupAllOp>({&last()}, same, last().value);
    case 5: {
      if (numChannels != 1)
        return false;
      SizeAttr size = getType(input).getDims()[0];
      SizeAttr copies = flip() ? symbol("G") : number(1);
      SizeAttr rest = size.divide(copies);
      return rest && input.shape[0] % evaluate(copies) == 0 &&
             add<DagAmplifyOp>({&last()}, same, last().value, copies, rest);
    }
    case 6:
    case 7: {
      SmallVector<int64_t> dims = pickDims(numChannels, rank);
      SmallVector<Attribute> windows(dims.size(), symbol("K"));
      if (dims.empty() || !add<DagUnfoldOp>({&last()}, same, last().value,
                                            ArrayRef<int64_t>(dims),
                                            builder.getArrayAttr(windows),
                                            1 + int64_t(random.below(2))))
        return false;
      int64_t groups = 0;
      if (numChannels > 0 && flip())
        groups = add<DagGroupOp>({&last()}, same, last().value, int64_t(0),
                                 number(1));
      return add<DagFCOp>({&last()}, 4 * same, last().value, groups,
                          symbol("C"));
    }
    case 8: {
      auto first = pick(ArrayRef<DagUnaryKind>{
          DagUnaryKind::ReLU, DagUnaryKind::Neg, DagUnaryKind::Abs});
      auto second = pick(ArrayRef<DagUnaryKind>{
          DagUnaryKind::ReLU, DagUnaryKind::Neg, DagUnaryKind::Abs});
      return addFunction(first) && addFunction(second);
    }
    case 9: {
      auto kind = static_cast<DagFoldKind>(random.below(3));
      if (rank < 2 || kind == DagFoldKind::Sum)
        return false;
      return add<DagFoldOp>({&last()}, same, kind, last().value,
                            ArrayRef<int64_t>{dim}) &&
             add<DagFoldOp>({&last()}, same, kind, last().value,
                            ArrayRef<int64_t>{rank - 2});
    }
    default: {
      auto kind = static_cast<DagFoldKind>(1 + random.below(2));
      SmallVector<int64_t> dims = pickDims(numChannels, rank);
      if (dims.empty())
        return false;
      SmallVector<Attribute> windows(dims.size(), number(1));
      if (input.shape[dims[0]] % 2 == 0)
        windows[0] = number(2);
      SmallVector<Attribute> ones(dims.size(), number(1));
      return add<DagPoolOp>({&last()}, same, kind, last().value,
                            ArrayRef<int64_t>(dims),
                            builder.getArrayAttr(windows)) &&
             add<DagPoolOp>({&last()}, same, kind, last().value,
                            ArrayRef<int64_t>(dims),
                            builder.getArrayAttr(ones));
    }
    }
  }

  bool addRearrangement(Tensor &input) {
    int64_t rank = getRank(input), numChannels = input.numChannels;
    double same = input.magnitude;
    switch (random.below(8)) {
    case 0: {
      if (numChannels == 0)
        return false;
      SizeAttr factor = flip() ? symbol("G") : number(1 + random.below(3));
      int64_t dim = random.below(numChannels);
      return input.shape[dim] % evaluate(factor) == 0 &&
             getType(input).getDims()[dim].divide(factor) &&
             add<DagGroupOp>({&input}, same, input.value, dim, factor);
    }
    case 1:
      return numChannels > 0 && add<DagGroupAllOp>({&input}, same, input.value);
    case 2: {
      if (rank == 0)
        return false;
      int64_t dim = random.below(rank), extent = input.shape[dim];
      if (extent < 2)
        return false;
      int64_t amount = 1 + random.below(extent - 1);
      return add<DagShiftOp>({&input}, same, input.value, dim,
                             flip() ? amount : -amount);
    }
    case 3: {
      SmallVector<int64_t> dims = pickDims(numChannels, rank);
      SmallVector<Attribute> windows;
      for (size_t i = 0; i < dims.size(); ++i)
        windows.push_back(pickWindow());
      return !dims.empty() && add<DagUnfoldOp>({&input}, same, input.value,
                                               ArrayRef<int64_t>(dims),
                                               builder.getArrayAttr(windows),
                                               1 + int64_t(random.below(3)));
    }
    case 4: {
      int64_t first = flip() ? 0 : numChannels;
      int64_t last = first == 0 ? numChannels : rank;
      if (last - first < 2)
        return false;
      int64_t one = first + random.below(last - first - 1);
      return add<DagTransposeOp>({&input}, same, input.value,
                                 ArrayRef<int64_t>{one + 1, one});
    }
    case 5: {
      if (rank == 0)
        return false;
      int64_t dim = random.below(rank);
      SizeAttr factor = flip() ? symbol("G") : number(1 + random.below(3));
      return input.shape[dim] % evaluate(factor) == 0 &&
             add<DagShuffleOp>({&input}, same, input.value, dim, factor);
    }
    case 6:
      return rank > 0 && add<DagReorderOp>({&input}, same, input.value,
                                           int64_t(random.below(rank)), flip());
    default: {
      if (numChannels == 0)
        return false;
      // Any divisor of the channels, and at least as many copies as blocks.
      int64_t channels = product(ArrayRef(input.shape).take_front(numChannels));
      int64_t block = 1 + random.below(channels);
      return channels % block == 0 &&
             add<DagAmplifyOp>({&input}, same, input.value,
                               number(channels / block + random.below(3)),
                               number(block));
    }
    }
  }

  bool addLayer(Tensor &input) {
    int64_t rank = getRank(input), numChannels = input.numChannels;
    double sum = 4 * input.magnitude;
    int64_t groups = random.below(numChannels + 1);
    SizeAttr outputs = pickSize();
    for (SizeAttr size : getType(input).getDims().take_front(groups))
      if (!outputs || !(outputs = outputs.multiply(size)))
        return false;
    SmallVector<int64_t> dims;
    SmallVector<Attribute> sizes;
    switch (random.below(7)) {
    case 0:
    case 1:
      return add<DagFCOp>({&input}, sum, input.value, groups, outputs);
    case 2:
      dims = pickDims(numChannels, rank);
      for (size_t i = 0; i < dims.size(); ++i)
        sizes.push_back(pickWindow());
      return !dims.empty() &&
             add<DagConvOp>({&input}, sum, input.value, groups,
                            ArrayRef<int64_t>(dims),
                            builder.getArrayAttr(sizes),
                            1 + int64_t(random.below(2)), outputs);
    case 3:
      dims = pickDims(0, rank);
      for (size_t i = 0; i < dims.size(); ++i)
        sizes.push_back(flip() ? number(1 + random.below(4)) : symbol("W"));
      return !dims.empty() &&
             add<DagMixOp>({&input}, sum, input.value, ArrayRef<int64_t>(dims),
                           builder.getArrayAttr(sizes));
    case 4:
      dims = pickDims(0, rank);
      return !dims.empty() &&
             add<DagScaleOp>({&input}, input.magnitude, input.value,
                             ArrayRef<int64_t>(dims));
    case 5:
      // A variance near zero would enlarge what came before.
      return numChannels > 0 && input.magnitude <= 4 &&
             add<DagNormOp>({&input}, 20, input.value);
    default:
      return addApply(input, outputs);
    }
  }

  /// Operators of images.
  bool addApply(Tensor &input, SizeAttr outputs) {
    ArrayRef<SizeAttr> dims = getType(input).getDims();
    if (dims.size() != 3 || input.numChannels != 1)
      return false;
    bool isPointwise = flip();
    SmallVector<StringRef> names;
    SmallVector<Attribute> sizes = {number(1), dims[0]};
    SmallVector<SizeAttr> result(dims);
    if (isPointwise) {
      names = {"N", "I", "O", "H", "W"};
      sizes.push_back(outputs);
      result[0] = outputs;
    } else {
      names = {"N", "C", "H", "W", "k"};
    }
    sizes.append({dims[1], dims[2]});
    if (!isPointwise)
      sizes.push_back(pickWindow());
    return add<DagApplyOp>({&input}, 4 * input.magnitude,
                           SymbolicTensorType::get(context, result, 1),
                           isPointwise ? "pointwise" : "rows",
                           builder.getStrArrayAttr(names),
                           builder.getArrayAttr(sizes), input.value);
  }

  bool addFunction(Tensor &input) {
    double size = input.magnitude;
    auto kind = static_cast<DagUnaryKind>(random.below(10));
    switch (kind) {
    case DagUnaryKind::ReLU:
    case DagUnaryKind::GELU:
    case DagUnaryKind::Abs:
    case DagUnaryKind::Neg:
      break;
    case DagUnaryKind::Sigmoid:
    case DagUnaryKind::TanH:
    case DagUnaryKind::Sin:
      if (size > 20)
        return false;
      size = 1;
      break;
    case DagUnaryKind::Exp:
      if (size > 4)
        return false;
      size = std::exp(size);
      break;
    case DagUnaryKind::Sqrt:
      size = std::max(1.0, std::sqrt(size));
      break;
    case DagUnaryKind::Sqr:
      size = size * size;
      break;
    }
    if (random.below(8) == 0)
      return add<DagDropoutOp>({&input}, input.magnitude, input.value,
                               builder.getF64FloatAttr(0.25));
    return add<DagUnaryOp>({&input}, size, kind, input.value);
  }

  bool addFold(Tensor &input) {
    int64_t rank = getRank(input);
    auto kind = static_cast<DagFoldKind>(random.below(3));
    SmallVector<int64_t> dims = pickDims(0, rank);
    if (dims.empty())
      return false;
    int64_t count = 1;
    switch (random.below(3)) {
    case 0:
      if (input.magnitude > 20)
        return false;
      return add<DagSoftmaxOp>({&input}, 1, input.value,
                               ArrayRef<int64_t>(dims));
    case 1: {
      dims = pickDims(input.numChannels, rank);
      SmallVector<Attribute> windows;
      for (int64_t dim : dims) {
        int64_t window = 1 + random.below(3);
        if (input.shape[dim] % window != 0)
          return false;
        count *= window;
        windows.push_back(number(window));
      }
      double factor = kind == DagFoldKind::Sum ? double(count) : 1;
      return !dims.empty() &&
             add<DagPoolOp>({&input}, factor * input.magnitude, kind,
                            input.value, ArrayRef<int64_t>(dims),
                            builder.getArrayAttr(windows));
    }
    default:
      for (int64_t dim : dims)
        count *= input.shape[dim];
      return add<DagFoldOp>({&input},
                            kind == DagFoldKind::Sum
                                ? std::sqrt(double(count)) * input.magnitude
                                : input.magnitude,
                            kind, input.value, ArrayRef<int64_t>(dims));
    }
  }

  /// The factors of a scan are between 0 and 1.
  bool addScan(Tensor &input) {
    int64_t rank = getRank(input);
    if (rank == 0 || input.magnitude > 20)
      return false;
    int64_t dim = random.below(rank);
    double size = double(input.shape[dim]) * input.magnitude;
    Value value = input.value;
    switch (random.below(4)) {
    case 0:
      return add<DagCumSumOp>({&input}, size, value, dim);
    case 1:
      return add<DagUnaryOp>({&input}, 1, DagUnaryKind::Sigmoid, value) &&
             add<DagScanOp>({&tensors.back()}, size, tensors.back().value,
                            value, dim);
    case 2:
      return input.shape[dim] > 1 &&
             add<DagShiftOp>({&input}, input.magnitude, value, dim,
                             -1 - int64_t(random.below(input.shape[dim] - 1)),
                             /*causal=*/true);
    default:
      return addCausalWindow(input);
    }
  }

  bool addCausalWindow(Tensor &input) {
    SmallVector<int64_t> dims = pickDims(input.numChannels, getRank(input));
    SmallVector<Attribute> windows;
    for (size_t i = 0; i < dims.size(); ++i)
      windows.push_back(pickWindow());
    int64_t dilation = 1 + random.below(3);
    if (dims.empty())
      return false;
    if (flip())
      return add<DagUnfoldOp>({&input}, input.magnitude, input.value,
                              ArrayRef<int64_t>(dims),
                              builder.getArrayAttr(windows), dilation,
                              /*causal=*/true);
    return add<DagConvOp>({&input}, 4 * input.magnitude, input.value,
                          int64_t(0), ArrayRef<int64_t>(dims),
                          builder.getArrayAttr(windows), dilation, pickSize(),
                          /*causal=*/true);
  }

  bool addBlend() {
    Tensor &left = pickTensor(), &right = pickTensor();
    return random.below(4) == 0 ? addMatMul(left, right)
                                : addBroadcast(left, right);
  }

  bool addBroadcast(Tensor &left, Tensor &right) {
    ArrayRef<SizeAttr> l = getType(left).getDims(),
                       r = getType(right).getDims();
    int64_t most = std::min(l.size(), r.size()), first = 0, last = 0;
    while (first < most && l[first] == r[first] && random.below(4) != 0)
      ++first;
    while (last < most - first &&
           l[l.size() - 1 - last] == r[r.size() - 1 - last])
      ++last;
    auto getBlock = [&](const Tensor &tensor) {
      return product(ArrayRef(tensor.shape).drop_front(first).drop_back(last));
    };
    auto kind = static_cast<DagBroadcastKind>(random.below(5));
    // What is left of equal values has no digits that are right.
    if (getBlock(right) % getBlock(left) != 0 ||
        (kind == DagBroadcastKind::Sub && left.value == right.value))
      return false;
    double a = left.magnitude, b = right.magnitude;
    double size = std::max(a, b);
    if (kind == DagBroadcastKind::Add || kind == DagBroadcastKind::Sub)
      size = a + b;
    if (kind == DagBroadcastKind::Mul)
      size = a * b;
    return add<DagBroadcastOp>({&left, &right}, size, kind, left.value,
                               right.value, ArrayRef<int64_t>{first, last});
  }

  bool addMatMul(Tensor &left, Tensor &right) {
    int64_t most = std::min(left.numChannels, right.numChannels);
    int64_t batch = random.below(most + 1);
    ArrayRef<SizeAttr> l = getType(left).getDims(),
                       r = getType(right).getDims();
    if (l.take_front(batch) != r.take_front(batch))
      return false;
    bool swapsLeft = flip(), swapsRight = flip();
    auto getInner = [&](const Tensor &tensor, bool isChannels) {
      ArrayRef<SizeAttr> sizes = getType(tensor).getDims();
      return getProduct(
          context, isChannels ? sizes.slice(batch, tensor.numChannels - batch)
                              : sizes.drop_front(tensor.numChannels));
    };
    SizeAttr inner = getInner(left, swapsLeft);
    if (!inner || inner != getInner(right, !swapsRight))
      return false;
    bool scaled = flip();
    double terms = double(evaluate(inner));
    double size =
        left.magnitude * right.magnitude * (scaled ? std::sqrt(terms) : terms);
    return add<DagMatMulOp>({&left, &right}, size, left.value, right.value,
                            batch, swapsLeft, swapsRight, scaled);
  }

  //===--------------------------------------------------------------------===//
  // Output
  //===--------------------------------------------------------------------===//

  /// Blends what nothing reads into the last tensor.
  void mergeLeaves() {
    for (size_t i = 0, e = tensors.size(); i + 1 < e; ++i) {
      if (tensors[i].isUsed)
        continue;
      Tensor last = tensors.back();
      Tensor leaf = tensors[i];
      if (product(last.shape) % product(leaf.shape) != 0) {
        SmallVector<int64_t> dims =
            llvm::to_vector(llvm::seq<int64_t>(0, leaf.shape.size()));
        leaf = describe(DagFoldOp::create(builder, builder.getUnknownLoc(),
                                          DagFoldKind::Mean, leaf.value, dims),
                        leaf.magnitude);
      }
      tensors.push_back(
          describe(DagBroadcastOp::create(builder, builder.getUnknownLoc(),
                                          DagBroadcastKind::Add, leaf.value,
                                          last.value, ArrayRef<int64_t>{0, 0}),
                   leaf.magnitude + last.magnitude));
    }
  }

  /// The result has the shape of the last tensor, its channels as one dimension
  /// or as one of fewer blocks.
  void finish() {
    Tensor last = tensors.back();
    auto type = cast<SymbolicTensorType>(last.value.getType());
    SizeAttr channels = getProduct(context, type.getChannelDims());
    SizeAttr copies, block;
    if (type.getNumChannelDims() > 1 && flip()) {
      copies = type.getDims()[0];
      block = getProduct(context, type.getChannelDims().drop_front());
      int64_t most = evaluate(copies);
      channels =
          block ? block.multiply(number(1 + random.below(most))) : SizeAttr();
    }
    SmallVector<SizeAttr> dims = {channels};
    llvm::append_range(dims, type.getSpatialDims());
    auto result = SymbolicTensorType::get(context, dims, 1);
    if (!channels)
      result = type, copies = block = {};
    kernel.setResultTypeAttr(TypeAttr::get(result));
    DagOutputOp::create(builder, builder.getUnknownLoc(), last.value, copies,
                        block);
  }
};
} // namespace

KernelOp kas::test::addRandomKernel(ModuleOp module, StringRef name,
                                    uint64_t seed,
                                    const RandomKernelOptions &options) {
  return RandomKernelBuilder(module, name, seed, options).make();
}
