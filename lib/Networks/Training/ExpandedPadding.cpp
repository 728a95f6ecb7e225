//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Moves the expansion of dimensions before padding, so that grouped
// convolutions read padded tensors of their own shape.
// Exporters pad [N, C, H, W] and then split the channels into groups. Split
// first, a convolution sees its padding directly, and its gradient can leave
// the padding out (WindowGradient.cpp).
//
//===----------------------------------------------------------------------===//

#include "ExpandedPadding.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

/// What comes before or after each dimension of the expanded tensor; nothing
/// where one of several that were one would be padded.
static std::optional<SmallVector<OpFoldResult>>
expandPadding(Builder &builder, tensor::ExpandShapeOp expand,
              ArrayRef<int64_t> padding) {
  SmallVector<OpFoldResult> expanded;
  for (auto [group, elements] :
       llvm::zip_equal(expand.getReassociationIndices(), padding)) {
    // Of a padded dimension that is split, the padding would belong to a part.
    if (group.size() > 1 && elements != 0)
      return std::nullopt;
    expanded.append(group.size(), builder.getIndexAttr(elements));
  }
  return expanded;
}

/// Does nothing where the padding is not before the expansion, or is not
/// static.
static void expandBeforePadding(IRRewriter &rewriter,
                                tensor::ExpandShapeOp expand) {
  auto pad = expand.getSrc().getDefiningOp<tensor::PadOp>();
  Value value = pad ? pad.getConstantPaddingValue() : nullptr;
  if (!value || !pad.getSourceType().hasStaticShape() ||
      !expand.getResultType().hasStaticShape())
    return;
  // Static amounts alone can be moved to other dimensions.
  auto low = getConstantIntValues(pad.getMixedLowPad());
  auto high = getConstantIntValues(pad.getMixedHighPad());
  if (!low || !high)
    return;
  auto before = expandPadding(rewriter, expand, *low);
  auto after = expandPadding(rewriter, expand, *high);
  if (!before || !after)
    return;
  // The shape before the padding.
  SmallVector<int64_t> shape(expand.getResultType().getShape());
  for (auto [size, first, last] : llvm::zip_equal(shape, *before, *after))
    size -= *getConstantIntValue(first) + *getConstantIntValue(last);
  rewriter.setInsertionPoint(expand);
  Value source = tensor::ExpandShapeOp::create(
      rewriter, expand.getLoc(), expand.getResultType().clone(shape),
      pad.getSource(), expand.getReassociationIndices());
  rewriter.replaceOpWithNewOp<tensor::PadOp>(expand, expand.getResultType(),
                                             source, *before, *after, value,
                                             pad.getNofold());
  if (pad->use_empty())
    rewriter.eraseOp(pad);
}

/// For example
///    %p = tensor.pad %x [0, 0, 1, 1]                : 1x8x6x6 -> 1x8x8x8
///    %e = tensor.expand_shape %p [[0], [1, 2], ...] : 1x2x4x8x8
/// becomes the expansion of %x to 1x2x4x6x6, padded in its last two dimensions.
void kas::networks::expandBeforePadding(func::FuncOp function) {
  IRRewriter rewriter(function.getContext());
  SmallVector<tensor::ExpandShapeOp> expansions;
  function.walk([&](tensor::ExpandShapeOp op) { expansions.push_back(op); });
  for (tensor::ExpandShapeOp expand : expansions)
    ::expandBeforePadding(rewriter, expand);
}
