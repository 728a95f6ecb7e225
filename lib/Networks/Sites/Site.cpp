//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matches one linalg operation as a layer that can be replaced: types, counts,
// and where its weight comes from.
// `matchSite` is the entrance: it checks what all kinds of layers share and
// hands over to Convolution.cpp or Contraction.cpp. A failure with a reason is
// a near miss, which the passes tell; without one the operation is no layer at
// all.
//
//===----------------------------------------------------------------------===//

#include "Matching.h"
#include "kas/Dialect/Kas/Analysis/Contraction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kas;
using namespace kas::networks;

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

static StringAttr getArgumentName(BlockArgument argument) {
  auto function =
      dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  if (!function)
    return nullptr;
  return function.getArgAttrOfType<StringAttr>(
      argument.getArgNumber(), KasDialect::argumentNameAttrName);
}

/// Null for data: a result of any other operation, or the argument "input".
Value kas::networks::traceWeight(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<arith::ConstantOp>(op))
      return value;
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp,
             linalg::TransposeOp>(op))
      return nullptr;
    value = op->getOperand(0);
  }
  auto argument = cast<BlockArgument>(value);
  if (!argument.getOwner()->isEntryBlock() ||
      !isa<FunctionOpInterface>(argument.getOwner()->getParentOp()))
    return nullptr;
  StringAttr name = getArgumentName(argument);
  // The name that importers give the data of a network.
  return name && name.getValue() == "input" ? nullptr : value;
}

/// Two dimensions whose sizes do not tell them apart change their order.
/// For example a transposition of a square matrix: looking through it would
/// lose it.
static bool reordersEqualSizes(ArrayRef<int64_t> permutation,
                               ArrayRef<std::string> sizes) {
  for (unsigned second = 0; second < sizes.size(); ++second)
    for (unsigned first = 0; first < second; ++first)
      if (sizes[first] == sizes[second] &&
          permutation[first] > permutation[second])
        return true;
  return false;
}

/// `sizes` are the symbols of the operand's dimensions. The weight of the site
/// is the value before transpositions, so that files with weights keep their
/// layout.
LogicalResult kas::networks::setWeight(Site &site, Value operand,
                                       ArrayRef<std::string> sizes,
                                       std::string &reason) {
  Value root = traceWeight(operand);
  if (!root) {
    Operation *producer = operand.getDefiningOp();
    return miss(reason,
                "requires a weight that is an argument of the function or a "
                "constant, got ",
                producer ? "a result of '" : "the data",
                producer ? producer->getName().getStringRef() : "",
                producer ? "'" : "");
  }
  site.weight = operand;
  site.weightSizes.assign(sizes.begin(), sizes.end());
  // Sizes are permuted back with each transposition.
  while (auto transpose = site.weight.getDefiningOp<linalg::TransposeOp>()) {
    if (reordersEqualSizes(transpose.getPermutation(), site.weightSizes))
      break;
    SmallVector<std::string, 5> before(site.weightSizes.size());
    for (auto [position, source] : llvm::enumerate(transpose.getPermutation()))
      before[source] = site.weightSizes[position];
    site.weightSizes = before;
    site.weight = transpose.getInput();
  }
  // Null for a constant in the module.
  site.weightArgument = dyn_cast<BlockArgument>(root);
  site.parameters = cast<ShapedType>(root.getType()).getNumElements();
  if (!site.weightArgument)
    return success();
  if (StringAttr name = getArgumentName(site.weightArgument)) {
    StringRef layer = name.getValue();
    layer.consume_back(".weight");
    site.name = layer.str();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// matchSite
//===----------------------------------------------------------------------===//

/// One floating-point element type, static shapes, tensors.
static LogicalResult checkTypes(linalg::LinalgOp op, std::string &reason) {
  if (!op.hasPureTensorSemantics())
    return miss(reason, "requires tensors, got buffers");
  Type elementType;
  for (Value operand : op->getOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (!type)
      return miss(reason, "requires tensors, got ", operand.getType());
    if (!type.hasStaticShape())
      return miss(reason, "requires static shapes, got ", type);
    if (llvm::is_contained(type.getShape(), 0))
      return miss(reason, "requires dimensions of at least 1, got ", type);
    if (!isa<FloatType>(type.getElementType()))
      return miss(reason, "requires floating-point elements, got ",
                  type.getElementType());
    if (elementType && type.getElementType() != elementType)
      return miss(reason, "requires one element type, got ", elementType,
                  " and ", type.getElementType());
    elementType = type.getElementType();
  }
  return success();
}

/// As many points as an operator may have, too.
/// Costs are counted in 64 bits, with factors.
static LogicalResult checkCount(linalg::LinalgOp op, std::string &reason) {
  constexpr int64_t limit = int64_t(1) << 58;
  int64_t count = 1;
  for (int64_t size : op.getStaticLoopRanges())
    if (llvm::MulOverflow(count, size, count) || count >= limit)
      return miss(reason, "requires fewer than 2^58 points");
  return success();
}

/// Convolutions are contractions, too, when their window is 1x1: those with
/// spatial dimensions go first.
FailureOr<Site> kas::networks::matchSite(linalg::LinalgOp op,
                                         std::string &reason,
                                         int64_t stemChannels) {
  reason.clear();
  // Elementwise operations and the like, without a remark.
  if (op.getNumReductionLoops() == 0 || op.getNumDpsInits() != 1)
    return failure();
  if (op.getNumDpsInputs() != 2) {
    // Quantized convolutions have zero points as operands more.
    if (isa<linalg::ConvolutionOpInterface>(*op))
      return miss(reason, "requires data and a weight as operands, got ",
                  op.getNumDpsInputs(), " operands");
    return failure();
  }
  if (!hasContractionBody(op))
    return failure();
  if (failed(checkTypes(op, reason)))
    return failure();
  if (failed(checkCount(op, reason)))
    return failure();
  FailureOr<linalg::ConvolutionDimensions> convolution =
      linalg::inferConvolutionDims(op);
  if (succeeded(convolution) && !convolution->outputImage.empty())
    return matchConvolution(op, *convolution, stemChannels, reason);
  FailureOr<linalg::ContractionDimensions> contraction =
      linalg::inferContractionDims(op);
  if (failed(contraction) || contraction->k.empty())
    return failure();
  return matchContraction(op, *contraction, reason);
}

/// Only within functions: bodies of other operations are theirs.
std::vector<Site> kas::networks::findSites(ModuleOp module,
                                           NearMissFn onNearMiss,
                                           int64_t stemChannels) {
  std::vector<Site> sites;
  module.walk([&](linalg::LinalgOp op) {
    if (!op->getParentOfType<func::FuncOp>())
      return;
    std::string reason;
    FailureOr<Site> site = matchSite(op, reason, stemChannels);
    if (succeeded(site))
      sites.push_back(std::move(*site));
    else if (!reason.empty())
      onNearMiss(op, reason);
  });
  return sites;
}

std::string Site::getDescription() const {
  return name.empty() ? "a layer without a name" : "layer '" + name + "'";
}
