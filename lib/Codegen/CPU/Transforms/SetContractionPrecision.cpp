//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass -kas-set-contraction-precision: chooses the types of contractions of
// floats. Sums are of f32, products of bf16 where the target's instructions for
// it
// (`vdpbf16ps`, `bfdot`) save time. It only changes types;
// `-kas-pack-dot-products` lays operands of bf16 out in VNNI groups afterwards.
//
//===----------------------------------------------------------------------===//

#include "../Strategy/ContractionTarget.h"
#include "../Strategy/DotProducts.h"
#include "../Strategy/MatchContraction.h"
#include "Packing.h"
#include "kas/Codegen/CPU/Passes.h"
#include "kas/Conversion/KasToLinalg.h"
#include "kas/Conversion/VerifiedConversion.h"
#include "kas/Dialect/Kas/Analysis/Contraction.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASSETCONTRACTIONPRECISIONPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

/// f16, bf16 and f32 in any direction but from one type of 16 bits to the
/// other.
static Value convertScalar(OpBuilder &builder, Location loc, Value value,
                           Type type) {
  unsigned from = value.getType().getIntOrFloatBitWidth();
  if (value.getType() == type)
    return value;
  if (from < type.getIntOrFloatBitWidth())
    return arith::ExtFOp::create(builder, loc, type, value);
  return arith::TruncFOp::create(builder, loc, type, value);
}

/// `tensor` with elements of `type`, before what pads it with a constant.
/// Padding and fills are converted rather than their results: contractions go
/// on to see a padded tensor, and less is converted.
static Value convert(OpBuilder &builder, Location loc, Value tensor,
                     Type type) {
  auto from = cast<RankedTensorType>(tensor.getType());
  if (from.getElementType() == type)
    return tensor;
  auto pad = tensor.getDefiningOp<tensor::PadOp>();
  if (Value border = pad ? pad.getConstantPaddingValue() : Value()) {
    Value inside = convert(builder, loc, pad.getSource(), type);
    return tensor::PadOp::create(builder, loc, from.clone(type), inside,
                                 pad.getMixedLowPad(), pad.getMixedHighPad(),
                                 convertScalar(builder, loc, border, type));
  }
  Value empty = tensor::EmptyOp::create(builder, loc, from.getShape(), type);
  // A fill of another type converts on its own.
  if (auto fill = tensor.getDefiningOp<linalg::FillOp>();
      fill && fill.getInputs().front().getType() == from.getElementType()) {
    Value value = convertScalar(builder, loc, fill.getInputs().front(), type);
    return linalg::FillOp::create(builder, loc, value, empty).getResult(0);
  }
  // Else element by element.
  AffineMap identity = builder.getMultiDimIdentityMap(from.getRank());
  SmallVector<utils::IteratorType> kinds(from.getRank(),
                                         utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, loc, empty.getType(), tensor, empty,
             ArrayRef{identity, identity}, kinds,
             [&](OpBuilder &inner, Location loc, ValueRange values) {
               Value converted = convertScalar(inner, loc, values[0], type);
               linalg::YieldOp::create(inner, loc, converted);
             })
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static bool isNarrow(Type type) { return type.isF16() || type.isBF16(); }

/// Whether `op` sums products of floats of 32 bits or less.
static bool isFloatContraction(linalg::LinalgOp op) {
  return op.hasPureTensorSemantics() && !op.hasDynamicShape() &&
         hasContractionBody(op) &&
         op.getMatchingIndexingMap(op.getDpsInitOperand(0))
             .isProjectedPermutation() &&
         llvm::all_of(op->getOperandTypes(), [](Type type) {
           Type element = getElementTypeOrSelf(type);
           return isa<RankedTensorType>(type) &&
                  (isNarrow(element) || element.isF32());
         });
}

/// Whether `loop` is, or becomes when a dimension is split, the index of one
/// dimension of an input. True for a loop `k` of extent 64 at the index `64 * i
/// + k`, which is split to `[i, k]`; false at `h + k`, a window, and where
/// several dimensions step with it.
static bool isPartOfDimension(const Contraction &contraction,
                              ArrayRef<AffineExpr> indices, unsigned loop) {
  int64_t extent = contraction.loops[loop].extent;
  unsigned count = 0;
  for (AffineExpr expr : indices) {
    if (!expr.isFunctionOfDim(loop))
      continue;
    ++count;
    for (unsigned other = 0; other < contraction.loops.size(); ++other) {
      std::optional<int64_t> step = getCoefficient(expr, other);
      // Nothing else may step within a block of `extent` elements.
      if (!step || (other == loop ? *step != 1 : *step % extent != 0))
        return false;
    }
  }
  return count == 1;
}

/// Whether some reduction could take a VNNI group if dimensions were split.
static bool hasVNNILoop(const Contraction &contraction) {
  for (auto [loop, entry] : llvm::enumerate(contraction.loops))
    if (entry.isReduction && entry.extent > 1 &&
        llvm::all_of(contraction.inputs, [&](const Contraction::Input &input) {
          return isPartOfDimension(contraction, input.indices, loop);
        }))
      return true;
  return false;
}

/// Whether instructions for dot products suit: of two inputs one steps with the
/// innermost dimension of the output.
static bool suitsDotProducts(const Contraction &contraction,
                             const Target &target) {
  if (target.bfloatDotBits == 0 || contraction.inputs.size() != 2)
    return false;
  // From the innermost dimension outwards, as dimensions of one element have no
  // vectors.
  for (AffineExpr expr : llvm::reverse(contraction.output)) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim)
      return false;
    if (contraction.loops[dim.getPosition()].extent == 1)
      continue;
    auto steps = [&](const Contraction::Input &input) {
      return llvm::any_of(input.indices, [&](AffineExpr index) {
        return index.isFunctionOfDim(dim.getPosition());
      });
    };
    // The one that does not is broadcast.
    return steps(contraction.inputs[0]) != steps(contraction.inputs[1]);
  }
  return false;
}

/// Whether to round an element of `input` and to lay it out again, if it is of
/// f32, takes no longer than the products that it is a factor of save.
static bool paysRounding(const Contraction &contraction,
                         const Contraction::Input &input) {
  // As many products of f32 as take twice as long; more, where it is padded in
  // addition, as windows mostly are. Short loops have nothing to save.
  constexpr int64_t leastReads = 48, leastReadsOfWindows = 96,
                    leastProducts = 1 << 18;
  int64_t products = 1;
  for (const Contraction::Loop &loop : contraction.loops)
    products *= loop.extent;
  bool hasWindows = false;
  for (auto [loop, entry] : llvm::enumerate(contraction.loops))
    hasWindows |= entry.isReduction && entry.extent > 1 &&
                  !isPartOfDimension(contraction, input.indices, loop);
  // How often an element is multiplied: its conversion is paid once.
  int64_t reads =
      products / cast<ShapedType>(input.value.getType()).getNumElements();
  return products >= leastProducts &&
         reads >= (hasWindows ? leastReadsOfWindows : leastReads);
}

namespace {
struct SetContractionPrecision
    : kas::codegen::impl::KasSetContractionPrecisionPassBase<
          SetContractionPrecision> {
  using KasSetContractionPrecisionPassBase::KasSetContractionPrecisionPassBase;

  void runOnOperation() override {
    Target target = getContractionTarget(getOperation(), /*vectorBits=*/0);
    // By default only tensors that are of bf16 already are multiplied so, and
    // operators are on f32.
    if (precision != ContractionPrecision::F32 &&
        failed(lowerOperators(target)))
      return signalPassFailure();
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (isFloatContraction(op))
        ops.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : ops) {
      FailureOr<Contraction> contraction =
          Contraction::match(op, [](const Twine &) {});
      if (failed(contraction))
        continue;
      // The type of both factors. f32 for all others: widening is exact.
      Type factor = chooseVNNILoop(*contraction, /*size=*/2) &&
                            mayRound(*contraction, target)
                        ? Type(BFloat16Type::get(&getContext()))
                        : Float32Type::get(&getContext());
      // Already as it should be: sums and factors of f32.
      bool stays = llvm::all_of(op->getOperandTypes(), [&](Type type) {
        return getElementTypeOrSelf(type).isF32();
      });
      if (!stays || !factor.isF32())
        rewrite(rewriter, op, factor);
    }
  }

  /// Operators whose products may be of bf16 become linalg operations.
  LogicalResult lowerOperators(const Target &target) {
    SmallVector<ApplyOp> applies;
    getOperation().walk([&](ApplyOp apply) {
      OperatorOp op = apply.getOperator();
      if (!op || !op.isConcrete())
        return;
      FailureOr<Contraction> contraction = Contraction::match(
          getCoordinates(op), apply->getOperands(), [](const Twine &) {});
      if (succeeded(contraction) && hasVNNILoop(*contraction) &&
          mayRound(*contraction, target))
        applies.push_back(apply);
    });
    IRRewriter rewriter(&getContext());
    for (ApplyOp apply : applies) {
      rewriter.setInsertionPoint(apply);
      std::string reason;
      // With `verify-lowering` a failure without a reason is a lowering that
      // was disproved.
      auto lower = [&] { return convertToLinalg(rewriter, apply, {}, reason); };
      // What cannot be lowered stays; what is wrong has been reported.
      if (!verifyLowering)
        (void)lower();
      else if (failed(convertAndVerify(rewriter, apply, lower)) &&
               reason.empty())
        return failure();
    }
    return success();
  }

  /// Whether the factors are, or may be rounded to, bf16. Elements of f32 may
  /// be rounded if the option allows it and, for each input, it costs nothing
  /// at a call (weights) or less than it saves.
  bool mayRound(const Contraction &contraction, const Target &target) {
    return suitsDotProducts(contraction, target) &&
           llvm::all_of(contraction.inputs,
                        [&](const Contraction::Input &input) {
                          Type element = getElementTypeOrSelf(input.value);
                          if (element.isBF16())
                            return true;
                          return element.isF32() &&
                                 precision != ContractionPrecision::F32 &&
                                 (roundAll ||
                                  (prepacked && isFromWeights(input.value)) ||
                                  paysRounding(contraction, input));
                        });
  }

  /// The factors are of type `factor`; the result is rounded once, at the end.
  void rewrite(RewriterBase &rewriter, linalg::LinalgOp op, Type factor) {
    rewriter.setInsertionPoint(op);
    Location loc = op.getLoc();
    Type wide = rewriter.getF32Type();
    SmallVector<Value> inputs;
    for (Value input : op.getDpsInputs())
      inputs.push_back(convert(rewriter, loc, input, factor));
    Value output = op.getDpsInitOperand(0)->get();
    // What the sums begin with, such as a bias, is widened, too.
    Value start = convert(rewriter, loc, output, wide);
    auto product = linalg::GenericOp::create(
        rewriter, loc, start.getType(), inputs, start,
        op.getIndexingMapsArray(), op.getIteratorTypesArray(),
        [&](OpBuilder &builder, Location loc, ValueRange values) {
          Value result;
          for (Value value : values.drop_back()) {
            Value next = convertScalar(builder, loc, value, wide);
            result = result ? arith::MulFOp::create(builder, loc, result, next)
                                  .getResult()
                            : next;
          }
          result = arith::AddFOp::create(builder, loc, values.back(), result);
          linalg::YieldOp::create(builder, loc, result);
        });
    // Schedules among others.
    product->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    rewriter.replaceOp(op, convert(rewriter, loc, product.getResult(0),
                                   getElementTypeOrSelf(output)));
  }
};
} // namespace
