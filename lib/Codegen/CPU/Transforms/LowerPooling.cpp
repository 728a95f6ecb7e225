//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowers maximum pooling to loops that read a padded image where it is.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/CPU/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "kas-lower-pooling"

namespace kas::codegen {
#define GEN_PASS_DEF_LOWERPOOLING
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

/// Height or width: `padding` points before an image of `size`, of which each
/// of `count` windows takes `window`, a `stride` from one another.
struct Axis {
  int64_t size, count, window, stride, padding;

  /// Whether each window has a point of the image: a point outside may then
  /// count as the nearest one inside, which is in the same window.
  bool isUsual() const {
    return padding < window && (count - 1) * stride - padding < size;
  }
  /// The first window without points outside, and the first one after it that
  /// has some again.
  int64_t getFirstInside() const {
    return std::min(count, (padding + stride - 1) / stride);
  }
  int64_t getFirstAfter() const {
    int64_t last = size + padding - window;
    return last < 0 ? getFirstInside()
                    : std::clamp(last / stride + 1, getFirstInside(), count);
  }
};

/// One `linalg.pooling_nchw_max`.
struct Pooling {
  linalg::PoolingNchwMaxOp op;
  /// Without the padding.
  Value image;
  Axis height, width;

  static std::optional<Pooling> match(linalg::PoolingNchwMaxOp op);
  void lower(int64_t threads);

private:
  Value apply(OpBuilder &builder, AffineExpr expr, Value operand) {
    return affine::makeComposedAffineApply(builder, op.getLoc(),
                                           AffineMap::get(1, 0, expr),
                                           getAsOpFoldResult(operand));
  }
  void emitLine(OpBuilder &builder, Value data, Value output, Value n, Value c,
                Value line);
  Value emitWindow(OpBuilder &builder, Value buffer, Value n, Value c,
                   ArrayRef<Value> rows, ArrayRef<Value> columns);
};

struct LowerPooling : kas::codegen::impl::LowerPoolingBase<LowerPooling> {
  using LowerPoolingBase::LowerPoolingBase;

  void runOnOperation() override {
    SmallVector<linalg::PoolingNchwMaxOp> ops;
    getOperation().walk(
        [&](linalg::PoolingNchwMaxOp op) { ops.push_back(op); });
    for (linalg::PoolingNchwMaxOp op : ops) {
      // Only now: what one reads may be what the one before has been.
      std::optional<Pooling> pooling = Pooling::match(op);
      LDBG() << op.getLoc() << ": " << (pooling ? "lowered" : "left as it is");
      if (pooling)
        pooling->lower(threads);
    }
  }
};

} // namespace

std::optional<Pooling> Pooling::match(linalg::PoolingNchwMaxOp op) {
  auto fill = op.getOutputs().front().getDefiningOp<linalg::FillOp>();
  auto type = dyn_cast<RankedTensorType>(op.getInputs().front().getType());
  if (!op.hasPureTensorSemantics() || !type || !type.hasStaticShape() ||
      !type.getElementType().isF32() || !fill ||
      !matchPattern(fill.getInputs().front(), m_NegInfFloat()) ||
      llvm::any_of(op.getDilations().getValues<int64_t>(),
                   [](int64_t dilation) { return dilation != 1; }))
    return std::nullopt;
  Pooling pooling{op, op.getInputs().front(), {}, {}};
  SmallVector<int64_t> low(4, 0);
  if (auto pad = pooling.image.getDefiningOp<tensor::PadOp>()) {
    Value value = pad.getConstantPaddingValue();
    auto zeros = getConstantIntValues(pad.getMixedLowPad());
    if (value && matchPattern(value, m_NegInfFloat()) && zeros &&
        pad.getSourceType().hasStaticShape() &&
        pad.getSourceType().getShape().take_front(2) ==
            type.getShape().take_front(2)) {
      low = *zeros;
      pooling.image = pad.getSource();
    }
  }
  ArrayRef<int64_t> image =
      cast<RankedTensorType>(pooling.image.getType()).getShape();
  ArrayRef<int64_t> window =
      cast<RankedTensorType>(op.getInputs()[1].getType()).getShape();
  ArrayRef<int64_t> output =
      cast<RankedTensorType>(op.getResult(0).getType()).getShape();
  auto strides = op.getStrides().getValues<int64_t>();
  pooling.height = {image[2], output[2], window[0], strides[0], low[2]};
  pooling.width = {image[3], output[3], window[1], strides[1], low[3]};
  if (!pooling.height.isUsual() || !pooling.width.isUsual())
    return std::nullopt;
  return pooling;
}

/// The largest of the points where `rows` and `columns` meet.
Value Pooling::emitWindow(OpBuilder &builder, Value buffer, Value n, Value c,
                          ArrayRef<Value> rows, ArrayRef<Value> columns) {
  Location loc = op.getLoc();
  Value largest;
  for (Value row : rows)
    for (Value column : columns) {
      Value value = memref::LoadOp::create(builder, loc, buffer,
                                           ValueRange{n, c, row, column});
      largest = largest
                    ? arith::MaximumFOp::create(builder, loc, largest, value)
                    : value;
    }
  return largest;
}

/// The outputs of one line.
void Pooling::emitLine(OpBuilder &builder, Value data, Value output, Value n,
                       Value c, Value line) {
  Location loc = op.getLoc();
  AffineExpr d0 = builder.getAffineDimExpr(0);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  SmallVector<Value> rows;
  for (int64_t i = 0; i < height.window; ++i) {
    Value row = apply(builder, d0 * height.stride + (i - height.padding), line);
    row = arith::MaxSIOp::create(builder, loc, row, constant(0));
    rows.push_back(
        arith::MinSIOp::create(builder, loc, row, constant(height.size - 1)));
  }
  auto store = [&](Value column, ArrayRef<Value> columns) {
    Value value = emitWindow(builder, data, n, c, rows, columns);
    memref::StoreOp::create(builder, loc, value, output,
                            ValueRange{n, c, line, column});
  };
  auto emitBorder = [&](int64_t from, int64_t to) {
    for (int64_t column = from; column < to; ++column) {
      SmallVector<Value> columns;
      int64_t start = column * width.stride - width.padding;
      for (int64_t i = std::max<int64_t>(start, 0);
           i < std::min(start + width.window, width.size); ++i)
        columns.push_back(constant(i));
      store(constant(column), columns);
    }
  };
  emitBorder(0, width.getFirstInside());
  emitBorder(width.getFirstAfter(), width.count);
  auto inside =
      scf::ForOp::create(builder, loc, constant(width.getFirstInside()),
                         constant(width.getFirstAfter()), constant(1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(inside.getBody());
  Value column = inside.getInductionVar();
  SmallVector<Value> columns;
  for (int64_t i = 0; i < width.window; ++i)
    columns.push_back(
        apply(builder, d0 * width.stride + (i - width.padding), column));
  store(column, columns);
}

void Pooling::lower(int64_t threads) {
  IRRewriter rewriter(op);
  Location loc = op.getLoc();
  auto getBuffer = [](Value tensor) {
    return cast<MemRefType>(
        bufferization::getMemRefTypeWithStaticIdentityLayout(
            cast<TensorType>(tensor.getType())));
  };
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  Value data = bufferization::ToBufferOp::create(
      rewriter, loc, getBuffer(image), image, /*read_only=*/true);
  MemRefType type = getBuffer(op.getResult(0));
  Value output = memref::AllocOp::create(rewriter, loc, type,
                                         rewriter.getI64IntegerAttr(64));
  int64_t planes = type.getDimSize(0) * type.getDimSize(1);
  Operation *outer;
  Value plane;
  if (threads == 1) {
    auto loop = scf::ForOp::create(rewriter, loc, constant(0), constant(planes),
                                   constant(1));
    plane = loop.getInductionVar();
    outer = loop;
  } else {
    auto loop = scf::ParallelOp::create(rewriter, loc, ValueRange{constant(0)},
                                        ValueRange{constant(planes)},
                                        ValueRange{constant(1)});
    plane = loop.getInductionVars().front();
    outer = loop;
  }
  rewriter.setInsertionPointToStart(plane.getParentBlock());
  AffineExpr d0 = rewriter.getAffineDimExpr(0);
  Value n = apply(rewriter, d0.floorDiv(type.getDimSize(1)), plane);
  Value c = apply(rewriter, d0 % type.getDimSize(1), plane);
  auto lines = scf::ForOp::create(rewriter, loc, constant(0),
                                  constant(height.count), constant(1));
  rewriter.setInsertionPointToStart(lines.getBody());
  emitLine(rewriter, data, output, n, c, lines.getInductionVar());
  rewriter.setInsertionPointAfter(outer);
  rewriter.replaceOpWithNewOp<bufferization::ToTensorOp>(
      op, op.getResult(0).getType(), output, /*restrict=*/true,
      /*writable=*/true);
}
