//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The operations around a new operator that substitution needs: reshapes, the
// initial value of the accumulator, old weights in the layout of the new one.
// An operator computes the layer alone: data and result may have channels split
// into groups, the accumulator may start from a bias, and weights may be kept,
// reshaped and transposed, where an operator has the same weight with its
// dimensions in another order.
//
//===----------------------------------------------------------------------===//

#include "Rewriting.h"
#include "Matching.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace kas;
using namespace kas::networks;

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// [N, C, ...] -> [N, g, C/g, ...] is an expansion of dimension 1 into two.
Value kas::networks::lookThroughChannelSplit(Value value) {
  auto expand = value.getDefiningOp<tensor::ExpandShapeOp>();
  if (!expand ||
      expand.getSrcType().getRank() + 1 != expand.getResultType().getRank())
    return value;
  return expand.getReassociationIndices()[1].size() == 2 ? expand.getSrc()
                                                         : value;
}

/// Null where the shapes are no grouping of each other's dimensions.
Value kas::networks::reshape(OpBuilder &builder, Location loc, Value value,
                             ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getShape() == shape)
    return value;
  auto target = type.clone(shape);
  auto reassociation = getReassociationIndicesForReshape(type, target);
  if (!reassociation)
    return nullptr;
  if (type.getRank() > target.getRank())
    return tensor::CollapseShapeOp::create(builder, loc, target, value,
                                           *reassociation);
  return tensor::ExpandShapeOp::create(builder, loc, target, value,
                                       *reassociation);
}

//===----------------------------------------------------------------------===//
// The start of the accumulator
//===----------------------------------------------------------------------===//

static bool isZero(Value value) {
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    return matchPattern(fill.value(), m_AnyZeroFloat());
  return matchPattern(value, m_AnyZeroFloat());
}

/// `value + addend`, whose dimensions are `positions` of those of `value`.
static Value addElementwise(OpBuilder &builder, Location loc, Value value,
                            Value addend, ArrayRef<int64_t> positions) {
  auto type = cast<RankedTensorType>(value.getType());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<AffineExpr> exprs =
      llvm::map_to_vector(positions, [&](int64_t position) -> AffineExpr {
        return builder.getAffineDimExpr(position);
      });
  AffineMap addendMap =
      AffineMap::get(type.getRank(), 0, exprs, builder.getContext());
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  auto add = linalg::GenericOp::create(
      builder, loc, type, ValueRange{value, addend}, ValueRange{empty},
      ArrayRef<AffineMap>{identity, addendMap, identity}, iterators,
      [](OpBuilder &builder, Location loc, ValueRange args) {
        Value sum = arith::AddFOp::create(builder, loc, args[0], args[1]);
        linalg::YieldOp::create(builder, loc, sum);
      });
  return add.getResult(0);
}

/// A layer computes start + products. A bias that is broadcast is added by its
/// map, and never materialized in the shape of the result.
Value kas::networks::addAccumulatorStart(OpBuilder &builder, const Site &site,
                                         Value value) {
  Location loc = site.op->getLoc();
  linalg::LinalgOp op = site.op;
  Value start = op.getDpsInits()[0];
  if (site.hasSplitChannels)
    start = lookThroughChannelSplit(start);
  if (isZero(start))
    return value;
  int64_t rank = cast<ShapedType>(value.getType()).getRank();
  // Of the result, those that the start has.
  SmallVector<int64_t> positions = llvm::to_vector(llvm::seq<int64_t>(rank));
  auto broadcast = start.getDefiningOp<linalg::BroadcastOp>();
  if (broadcast && broadcast.getResultTypes()[0] == value.getType()) {
    start = broadcast.getInput();
    llvm::erase_if(positions, [&](int64_t position) {
      return llvm::is_contained(broadcast.getDimensions(), position);
    });
  } else {
    start = reshape(builder, loc, start, site.resultShape);
  }
  return addElementwise(builder, loc, value, start, positions);
}

//===----------------------------------------------------------------------===//
// The old weights
//===----------------------------------------------------------------------===//

namespace {

/// Writes the sizes of an operator with the symbols of the layer it replaces.
/// Two operators may call one size differently: `Cin` of the layer is `C` of an
/// operator whose data has dimension [N, C, ...].
class SizeTranslator {
public:
  SizeTranslator(const Site &site, OperatorOp op)
      : context(op.getContext()), kind(site.kind) {
    for (StringRef name : kind.primaries)
      // The names of a kind are distinct and few.
      llvm::cantFail(symbols.add(name, SymbolKind::Primary));
    for (StringRef name : kind.coefficients) {
      llvm::cantFail(symbols.add(name, SymbolKind::Coefficient));
      // Coefficients mean the same everywhere.
      translations[name] = SizeAttr::getSymbol(context, name);
    }
    addTranslations(op.getDataSizes(), kind.inputSizes);
    addTranslations(op.getOutputSizes(), kind.outputSizes);
  }

  SizeAttr parse(StringRef text) const {
    Size size = llvm::cantFail(parseSize(text, symbols));
    return SizeAttr::getNormal(context, size, symbols);
  }

  /// Null when a symbol of `size` means nothing to the layer.
  SizeAttr translate(SizeAttr size) const {
    Size value = size.getValue();
    SizeAttr result = SizeAttr::getConstant(context, value.getNumerator());
    // Negative exponents and the denominator are collected in the divisor.
    SizeAttr divisor = SizeAttr::getConstant(context, value.getDenominator());
    for (auto [index, name] : llvm::enumerate(size.getNames())) {
      SizeAttr factor = translations.lookup(name.getValue());
      if (!factor)
        return nullptr;
      int exponent = value.getExponent(index);
      for (int count = 0; count < std::abs(exponent); ++count) {
        SizeAttr &target = exponent > 0 ? result : divisor;
        target = target ? target.multiply(factor) : nullptr;
      }
    }
    return result && divisor ? result.divide(divisor) : nullptr;
  }

private:
  /// The primaries that are bare dimensions of the operator's shape.
  /// `texts` are the layer's sizes of the same dimensions.
  void addTranslations(ArrayRef<SizeAttr> sizes, ArrayRef<std::string> texts) {
    for (auto [size, text] : llvm::zip(sizes, texts))
      if (size.getNames().size() == 1) {
        StringRef name = size.getNames().front().getValue();
        if (size == SizeAttr::getSymbol(context, name))
          translations.try_emplace(name, parse(text));
      }
  }

  MLIRContext *context;
  const LayerKind &kind;
  SymbolSet symbols;
  llvm::StringMap<SizeAttr> translations;
};

} // namespace

/// For each dimension of the operator's weight (`sizes`, with the extents
/// `shape`) the dimension of the layer's that it is, or -1 for one of size 1
/// that the layer does not have. Sizes are compared as symbols: Cin = Cout = 64
/// must not be mixed up.
static FailureOr<SmallVector<int64_t>>
matchDimensions(const Site &site, OperatorOp op, ArrayRef<SizeAttr> sizes,
                ArrayRef<int64_t> shape, std::string &reason) {
  SizeTranslator translator(site, op);
  ArrayRef<int64_t> oldShape =
      cast<ShapedType>(site.weight.getType()).getShape();
  SmallVector<bool> used(oldShape.size(), false);
  SmallVector<int64_t> result;
  // In the order of the operator's weight, which is that of the result.
  for (auto [size, extent] : llvm::zip_equal(sizes, shape)) {
    SizeAttr translated = translator.translate(size);
    int64_t found = -1;
    for (auto [index, text] : llvm::enumerate(site.weightSizes))
      // The first one of several with equal symbols: their order is kept.
      if (found < 0 && !used[index] && oldShape[index] == extent &&
          translator.parse(text) == translated)
        found = index;
    if (found < 0 && extent != 1)
      return miss(reason, "requires the dimensions of the old weight (",
                  llvm::join(site.weightSizes, ", "), "), got one of size ",
                  extent);
    if (found >= 0)
      used[found] = true;
    result.push_back(found);
  }
  // All of the old weight must be used.
  for (auto [index, extent] : llvm::enumerate(oldShape))
    if (!used[index] && extent != 1)
      return miss(reason, "requires a weight with dimension ",
                  site.weightSizes[index], " of the old one, got none");
  return result;
}

/// Null with a reason.
Value kas::networks::adaptWeight(OpBuilder &builder, const Site &site,
                                 OperatorOp op, const Binding &binding,
                                 std::string &reason) {
  if (op.getNumWeights() != 1) {
    (void)miss(reason, "requires one weight to keep the old one, got ",
               op.getNumWeights());
    return nullptr;
  }
  SymbolSet symbols = op.getSymbolSet();
  SmallVector<SizeAttr> sizes = op.getWeightSizes().front();
  SmallVector<int64_t> shape;
  for (SizeAttr size : sizes)
    shape.push_back(*kas::evaluate(size, symbols, binding));
  FailureOr<SmallVector<int64_t>> dimensions =
      matchDimensions(site, op, sizes, shape, reason);
  if (failed(dimensions))
    return nullptr;

  // Dimensions of size 1 that only one side has are dropped, the others put in
  // order, then those of size 1 are added.
  Location loc = site.op->getLoc();
  auto oldType = cast<RankedTensorType>(site.weight.getType());
  SmallVector<int64_t> kept, keptShape, permutation;
  llvm::copy_if(*dimensions, std::back_inserter(kept),
                [](int64_t dimension) { return dimension >= 0; });
  SmallVector<int64_t> sorted = kept;
  llvm::sort(sorted);
  for (int64_t dimension : sorted)
    keptShape.push_back(oldType.getDimSize(dimension));
  // Where each kept dimension is among those in order.
  for (int64_t dimension : kept)
    permutation.push_back(llvm::find(sorted, dimension) - sorted.begin());
  Value weight = reshape(builder, loc, site.weight, keptShape);
  if (weight && !llvm::is_sorted(permutation)) {
    Value empty = tensor::EmptyOp::create(
        builder, loc, applyPermutation<int64_t>(keptShape, permutation),
        oldType.getElementType());
    weight =
        linalg::TransposeOp::create(builder, loc, weight, empty, permutation)
            ->getResult(0);
  }
  weight = weight ? reshape(builder, loc, weight, shape) : nullptr;
  if (!weight)
    (void)miss(reason, "requires a weight that is a reshape of the old one");
  return weight;
}

/// `op` must have no users; producers that are used by nothing else follow.
void kas::networks::eraseWithDeadOperands(Operation *op) {
  SmallVector<Operation *> worklist{op};
  while (!worklist.empty()) {
    Operation *dead = worklist.pop_back_val();
    llvm::SmallSetVector<Operation *, 4> producers;
    // What the region of a padding reads counts, too.
    dead->walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        if (Operation *producer = operand.getDefiningOp())
          if (!dead->isAncestor(producer))
            producers.insert(producer);
    });
    dead->erase();
    for (Operation *producer : producers)
      if (isOpTriviallyDead(producer))
        worklist.push_back(producer);
  }
}
