//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Recognizes contractions that are named linalg operations: convolutions,
// pooling and matrix products, with weights transposed if needed.
//
// Named ops are what other compilers' patterns know (IREE, torch-mlir); code
// generation of kas reads both forms (Analysis/Contraction.h). Convolutions
// match letter by letter against a table of layouts, NCHW only, as operators
// have it.
//
//===----------------------------------------------------------------------===//

#include "Contraction.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace kas;

//===----------------------------------------------------------------------===//
// Convolutions and pooling
//===----------------------------------------------------------------------===//

namespace {
/// Named convolutions and poolings have one signature, so a table of functions
/// stands for a switch over op types.
using CreateFn = Value (*)(ImplicitLocOpBuilder &b, ValueRange inputs,
                           Value init, Attribute strides, Attribute dilations);

template <typename Op>
Value create(ImplicitLocOpBuilder &b, ValueRange inputs, Value init,
             Attribute strides, Attribute dilations) {
  return Op::create(b, TypeRange(init.getType()), inputs, ValueRange(init),
                    strides, dilations)
      ->getResult(0);
}

/// A named op on windows, one letter per dimension. `h` and `w` of the output
/// are the places of windows, `p` and `q` the places in them; `H` and `W` of
/// the data are `stride * h + dilation * p` and `stride * w + dilation * q`.
struct WindowOp {
  StringRef data, weight, output;
  bool isMax;
  CreateFn create;
};
} // namespace

/// Without a weight the second operand only gives the shape of the window.
/// The first match wins. Weights may have their dimensions in any order.
static const WindowOp windowOps[] = {
    {"ncHW", "fcpq", "nfhw", false, create<linalg::Conv2DNchwFchwOp>},
    {"ngcHW", "gfcpq", "ngfhw", false, create<linalg::Conv2DNgchwGfchwOp>},
    {"ncHW", "cpq", "nchw", false, create<linalg::DepthwiseConv2DNchwChwOp>},
    {"ncW", "fcq", "nfw", false, create<linalg::Conv1DNcwFcwOp>},
    {"ncW", "cq", "ncw", false, create<linalg::DepthwiseConv1DNcwCwOp>},
    {"ncHW", "", "nchw", false, create<linalg::PoolingNchwSumOp>},
    {"ncHW", "", "nchw", true, create<linalg::PoolingNchwMaxOp>},
    {"ncW", "", "ncw", false, create<linalg::PoolingNcwSumOp>},
    {"ncW", "", "ncw", true, create<linalg::PoolingNcwMaxOp>},
};

namespace {
/// Determines whether a contraction is one named op on windows.
class WindowMatcher {
public:
  WindowMatcher(const StageContraction &contraction, const WindowOp &op)
      : contraction(contraction), op(op) {}

  /// Outputs bind their letters first, then the data's dimensions bind those of
  /// the reductions, then the weight must have exactly these. Nothing may be
  /// left.
  bool match(const LabelledTensor &data, const LabelledTensor *weight) {
    if (op.isMax != contraction.isMax || op.weight.empty() != !weight ||
        data.dims.size() != op.data.size() ||
        contraction.outputs.size() != op.output.size())
      return false;
    for (auto [letter, output] :
         llvm::zip_equal(op.output, contraction.outputs))
      coordinates[letter] = output;
    for (auto [letter, label] : llvm::zip_equal(op.data, data.dims))
      if (!matchData(letter, label))
        return false;
    return coordinates.size() ==
               contraction.outputs.size() + contraction.reductions.size() &&
           (!weight || matchWeight(*weight));
  }

  /// The order of the weight's dimensions that the op wants.
  ArrayRef<int64_t> getPermutation() const { return permutation; }

  SmallVector<int64_t> getWindow() const {
    SmallVector<int64_t> window;
    for (char letter : StringRef("pq"))
      if (Value coordinate = coordinates.lookup(letter))
        window.push_back(getConcreteSize(coordinate));
    return window;
  }

  SmallVector<int64_t> strides, dilations;

private:
  /// A reduction for a letter that is not bound yet, or what it is bound to.
  bool bind(char letter, Value coordinate) {
    Value &bound = coordinates[letter];
    if (bound)
      return bound == coordinate;
    bound = coordinate;
    return llvm::is_contained(contraction.reductions, coordinate);
  }

  /// `H` needs a sum of two coordinates, place and window; the others one
  /// alone.
  bool matchData(char letter, const Label &label) {
    if (letter != 'H' && letter != 'W') {
      Value coordinate = label.begin()->first;
      return isSole(label, coordinate) && bind(letter, coordinate);
    }
    Value place = coordinates.lookup(letter == 'H' ? 'h' : 'w');
    if (label.size() != 2 || !label.contains(place))
      return false;
    for (auto [coordinate, coefficient] : label) {
      if (coordinate == place) {
        strides.push_back(coefficient);
      } else {
        dilations.push_back(coefficient);
        if (!bind(letter == 'H' ? 'p' : 'q', coordinate))
          return false;
      }
    }
    return true;
  }

  bool matchWeight(const LabelledTensor &weight) {
    if (weight.dims.size() != op.weight.size())
      return false;
    for (char letter : op.weight) {
      std::optional<unsigned> dim = weight.findSole(coordinates.lookup(letter));
      if (!dim)
        return false;
      permutation.push_back(*dim);
    }
    return true;
  }

  const StageContraction &contraction;
  const WindowOp &op;
  llvm::SmallMapVector<char, Value, 8> coordinates;
  SmallVector<int64_t> permutation;
};
} // namespace

/// Nothing to do for the identity.
static Value transpose(ImplicitLocOpBuilder &b, Value value,
                       ArrayRef<int64_t> permutation) {
  if (llvm::is_sorted(permutation))
    return value;
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation)
    shape.push_back(type.getDimSize(dim));
  Value init = tensor::EmptyOp::create(b, shape, type.getElementType());
  return linalg::TransposeOp::create(b, value, init, permutation)->getResult(0);
}

static Value emitWindowOp(ImplicitLocOpBuilder &b,
                          const StageContraction &contraction, Value init) {
  ArrayRef<LabelledTensor> operands = contraction.operands;
  if (operands.size() > 2)
    return {};
  const LabelledTensor *weight = operands.size() == 2 ? &operands[1] : nullptr;
  for (const WindowOp &op : windowOps) {
    WindowMatcher matcher(contraction, op);
    if (!matcher.match(operands[0], weight))
      continue;
    Value second =
        weight
            ? transpose(b, weight->value, matcher.getPermutation())
            : tensor::EmptyOp::create(b, matcher.getWindow(),
                                      getElementTypeOrSelf(operands[0].value));
    return op.create(b, {operands[0].value, second}, init,
                     b.getI64TensorAttr(matcher.strides),
                     b.getI64TensorAttr(matcher.dilations));
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

/// Matches [batch] m k, [batch] k n -> [batch] m n, with each operand's last
/// two dimensions in either order, and the operands in either order.
static Value emitMatmul(ImplicitLocOpBuilder &b,
                        const StageContraction &contraction, Value init) {
  size_t rank = contraction.outputs.size();
  if (contraction.isMax || contraction.operands.size() != 2 ||
      contraction.reductions.size() != 1 || rank < 2 || rank > 3)
    return {};
  bool hasBatch = rank == 3;
  Value m = contraction.outputs[rank - 2], n = contraction.outputs[rank - 1];
  Value k = contraction.reductions[0];
  // The positions of `first` and `second` in an operand that has just them (and
  // the batch first); whether they are swapped.
  auto match = [&](const LabelledTensor &operand, Value first,
                   Value second) -> std::optional<bool> {
    if (operand.dims.size() != rank ||
        (hasBatch && operand.findSole(contraction.outputs[0]) != 0u))
      return std::nullopt;
    std::optional<unsigned> i = operand.findSole(first);
    std::optional<unsigned> j = operand.findSole(second);
    if (!i || !j)
      return std::nullopt;
    return *i > *j;
  };
  // Transposed operands are a matter of indexing maps, which linalg.matmul has.
  for (bool swapped : {false, true}) {
    const LabelledTensor &left = contraction.operands[swapped];
    const LabelledTensor &right = contraction.operands[!swapped];
    std::optional<bool> leftSwapped = match(left, m, k);
    std::optional<bool> rightSwapped = match(right, k, n);
    if (!leftSwapped || !rightSwapped)
      continue;
    MLIRContext *context = b.getContext();
    auto getMap = [&](unsigned i, unsigned j, bool swap) {
      SmallVector<unsigned> dims;
      if (hasBatch)
        dims.push_back(0);
      unsigned first = hasBatch ? 1 : 0;
      dims.push_back(first + (swap ? j : i));
      dims.push_back(first + (swap ? i : j));
      return AffineMapAttr::get(
          AffineMap::getMultiDimMapWithTargets(rank + 1, dims, context));
    };
    // Iterators: m, n, k.
    ArrayAttr maps =
        b.getArrayAttr({getMap(0, 2, *leftSwapped), getMap(2, 1, *rightSwapped),
                        getMap(0, 1, false)});
    NamedAttribute attribute = b.getNamedAttr("indexing_maps", maps);
    SmallVector<Value> inputs{left.value, right.value};
    if (hasBatch)
      return linalg::BatchMatmulOp::create(b, inputs, init, attribute)
          .getResult(0);
    return linalg::MatmulOp::create(b, inputs, init, attribute).getResult(0);
  }
  return {};
}

Value kas::emitNamedOp(ImplicitLocOpBuilder &b,
                       const StageContraction &contraction, Value init) {
  if (Value result = emitMatmul(b, contraction, init))
    return result;
  return emitWindowOp(b, contraction, init);
}
