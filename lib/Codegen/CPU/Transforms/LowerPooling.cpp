//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowers maximum and sum pooling to loops over the rows of the outputs with the
// window unrolled. Maxima read a padded image where it is. Where a maximum is
// quantized next, the image is, and the maxima are of bytes: that of f32 would
// be written and read in four times as much memory.
//
// For each plane (sample and channel) and each row of outputs: the outputs at
// the left and right padding one by one, those in between in vectors of 16, 8
// and 4 (bytes: of 32 first), what is left in a scalar loop.
//
//===----------------------------------------------------------------------===//

#include "../../Common/QuantizedArithmetic.h"
#include "../Strategy/ContractionTarget.h"
#include "kas/Codegen/CPU/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "kas-lower-pooling"

namespace kas::codegen {
#define GEN_PASS_DEF_KASLOWERPOOLINGPASS
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
  /// count as the nearest one inside, which is in the same window. Padding as
  /// large as the window, or windows that begin after the image, would see
  /// nothing of it.
  bool isUsual() const {
    return padding < window && (count - 1) * stride - padding < size;
  }
  /// The first window without points outside, and the first one after it that
  /// has some again. Of 8 elements with padding 1, window 3 and stride 2,
  /// outputs 1 to 3 are inside: these are 1 and 4 (output 0 has the padding on
  /// the left).
  int64_t getFirstInside() const {
    return std::min(count, (padding + stride - 1) / stride);
  }
  int64_t getFirstAfter() const {
    // The largest start of a window, from the start of the padding on, that
    // ends within the image.
    int64_t last = size + padding - window;
    return last < 0 ? getFirstInside()
                    : std::clamp(last / stride + 1, getFirstInside(), count);
  }
};

/// One `linalg.pooling_nchw_max` or `linalg.pooling_nchw_sum`.
struct Pooling {
  linalg::LinalgOp op;
  bool isSum = false;
  /// Without the padding.
  Value image;
  Axis height, width;
  /// What makes bytes of the result, and is applied to the image instead; null
  /// if nothing does.
  linalg::GenericOp quantization;

  static std::optional<Pooling> match(linalg::PoolingNchwMaxOp op);
  static std::optional<Pooling> match(linalg::PoolingNchwSumOp op);
  /// Of all windows. What `min-parallel-work` is compared with.
  int64_t countIterations() const {
    return cast<ShapedType>(op->getResult(0).getType()).getNumElements() *
           height.window * width.window;
  }
  void lower(int64_t threads);

private:
  Type getElementType() { return getElementTypeOrSelf(image); }
  void findQuantization();
  void quantizeImage(RewriterBase &rewriter);
  template <typename PoolingOp>
  static std::optional<Pooling> match(PoolingOp op, bool isSum);

  Value apply(OpBuilder &builder, AffineExpr expr, Value operand) {
    return affine::makeComposedAffineApply(builder, op.getLoc(),
                                           AffineMap::get(1, 0, expr),
                                           getAsOpFoldResult(operand));
  }
  /// Joins one more element with the result so far.
  Value combine(OpBuilder &builder, Value result, Value value);
  SmallVector<Value> loadRow(OpBuilder &builder, Value data,
                             ArrayRef<Value> plane, Value row, Value column,
                             int64_t lanes);
  SmallVector<Value> separatePoints(OpBuilder &builder, ArrayRef<Value> loaded);
  Value emitWindows(OpBuilder &builder, Value data, ArrayRef<Value> plane,
                    ArrayRef<Value> rows, Value column, int64_t lanes);
  int64_t emitVectors(OpBuilder &builder, Value data, Value output,
                      ArrayRef<Value> plane, Value line, ArrayRef<Value> rows);
  void emitRow(OpBuilder &builder, Value data, Value output, Value n, Value c,
               Value line);
  Value emitWindow(OpBuilder &builder, Value buffer, Value n, Value c,
                   ArrayRef<Value> rows, ArrayRef<Value> columns);
};

/// Makes a sum over a whole image, too long to be unrolled, a reduction, whose
/// two loops are one. Others stay.
void reduceImage(linalg::PoolingNchwSumOp op) {
  if (!op.hasPureTensorSemantics())
    return;
  auto type = cast<RankedTensorType>(op.getInputs().front().getType());
  auto result = cast<RankedTensorType>(op.getResult(0).getType());
  auto window = cast<RankedTensorType>(op.getInputs()[1].getType());
  if (!type.hasStaticShape() || !result.hasStaticShape() ||
      type.getShape().drop_front(2) != window.getShape() ||
      result.getShape().drop_front(2) != ArrayRef<int64_t>({1, 1}) ||
      type.getElementType() != result.getElementType() ||
      !isa<FloatType>(type.getElementType()))
    return;
  IRRewriter rewriter(op);
  AffineExpr n = rewriter.getAffineDimExpr(0), c = rewriter.getAffineDimExpr(1),
             zero = rewriter.getAffineConstantExpr(0);
  SmallVector<AffineMap> maps{
      rewriter.getMultiDimIdentityMap(4),
      AffineMap::get(4, 0, {n, c, zero, zero}, op.getContext())};
  SmallVector<utils::IteratorType> kinds(4, utils::IteratorType::parallel);
  kinds[2] = kinds[3] = utils::IteratorType::reduction;
  auto attributes = llvm::to_vector(op->getDiscardableAttrs());
  rewriter.replaceOpWithNewOp<linalg::GenericOp>(
      op, result, op.getInputs().front(), op.getOutputs().front(), maps, kinds,
      [](OpBuilder &inner, Location loc, ValueRange values) {
        Value sum = arith::AddFOp::create(inner, loc, values[1], values[0]);
        linalg::YieldOp::create(inner, loc, sum);
      },
      attributes);
}

struct LowerPooling
    : kas::codegen::impl::KasLowerPoolingPassBase<LowerPooling> {
  using KasLowerPoolingPassBase::KasLowerPoolingPassBase;

  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (isa<linalg::PoolingNchwMaxOp, linalg::PoolingNchwSumOp>(op))
        ops.push_back(op);
    });
    for (linalg::LinalgOp op : ops) {
      // Only now: what one reads may be what the one before has been.
      auto max = dyn_cast<linalg::PoolingNchwMaxOp>(op.getOperation());
      std::optional<Pooling> pooling =
          max ? Pooling::match(max)
              : Pooling::match(
                    cast<linalg::PoolingNchwSumOp>(op.getOperation()));
      LDBG() << op.getLoc() << ": " << (pooling ? "lowered" : "not lowered");
      // A window that is too large may still be the whole image.
      if (!pooling && !max)
        reduceImage(cast<linalg::PoolingNchwSumOp>(op.getOperation()));
      if (pooling)
        pooling->lower(pooling->countIterations() < minParallelWork
                           ? 1
                           : getNumThreads(getOperation(), threads));
    }
  }
};

} // namespace

/// Of an image that is not padded, or as it is with its padding.
template <typename PoolingOp>
std::optional<Pooling> Pooling::match(PoolingOp op, bool isSum) {
  auto fill = op.getOutputs().front().template getDefiningOp<linalg::FillOp>();
  auto type = dyn_cast<RankedTensorType>(op.getInputs().front().getType());
  if (!op.hasPureTensorSemantics() || !type || !type.hasStaticShape() ||
      !type.getElementType().isF32() || !fill ||
      // Sums begin with zeros and maxima with minus infinity: anything else
      // would have to be combined with the results.
      (isSum ? !matchPattern(fill.getInputs().front(), m_AnyZeroFloat())
             : !matchPattern(fill.getInputs().front(), m_NegInfFloat())) ||
      llvm::any_of(op.getDilations().template getValues<int64_t>(),
                   [](int64_t dilation) { return dilation != 1; }))
    return std::nullopt;
  ArrayRef<int64_t> image = type.getShape();
  ArrayRef<int64_t> window =
      cast<RankedTensorType>(op.getInputs()[1].getType()).getShape();
  ArrayRef<int64_t> output =
      cast<RankedTensorType>(op.getResult(0).getType()).getShape();
  auto strides = op.getStrides().template getValues<int64_t>();
  return Pooling{op,
                 isSum,
                 op.getInputs().front(),
                 {image[2], output[2], window[0], strides[0], 0},
                 {image[3], output[3], window[1], strides[1], 0},
                 {}};
}

std::optional<Pooling> Pooling::match(linalg::PoolingNchwMaxOp op) {
  std::optional<Pooling> pooling = match(op, /*isSum=*/false);
  if (!pooling)
    return std::nullopt;
  auto type = cast<RankedTensorType>(pooling->image.getType());
  if (auto pad = pooling->image.getDefiningOp<tensor::PadOp>()) {
    Value value = pad.getConstantPaddingValue();
    auto low = getConstantIntValues(pad.getMixedLowPad());
    RankedTensorType source = pad.getSourceType();
    // Padding of height and width alone, with what a maximum never takes.
    if (value && matchPattern(value, m_NegInfFloat()) && low &&
        source.hasStaticShape() &&
        source.getShape().take_front(2) == type.getShape().take_front(2)) {
      pooling->image = pad.getSource();
      pooling->height.size = source.getDimSize(2);
      pooling->width.size = source.getDimSize(3);
      pooling->height.padding = (*low)[2];
      pooling->width.padding = (*low)[3];
    }
  }
  if (!pooling->height.isUsual() || !pooling->width.isUsual())
    return std::nullopt;
  pooling->findQuantization();
  return pooling;
}

/// Only where the image is the result of an elementwise operation that nobody
/// else reads, which then makes the bytes.
void Pooling::findQuantization() {
  auto made = image.getDefiningOp<linalg::GenericOp>();
  Value result = op->getResult(0);
  if (!made || made.getNumReductionLoops() != 0 || !image.hasOneUse() ||
      !result.hasOneUse())
    return;
  auto reader = dyn_cast<linalg::GenericOp>(*result.user_begin());
  if (reader && reader->getBlock() == op->getBlock() &&
      reader.hasPureTensorSemantics() && isRisingQuantization(reader))
    quantization = reader;
}

/// Makes bytes of the image, where the operation was that makes them of the
/// result.
void Pooling::quantizeImage(RewriterBase &rewriter) {
  Location loc = quantization.getLoc();
  Value empty = tensor::EmptyOp::create(
      rewriter, loc, cast<RankedTensorType>(image.getType()).getShape(),
      rewriter.getI8Type());
  IRMapping map;
  map.map(quantization.getInputs().front(), image);
  map.map(quantization.getOutputs().front(), empty);
  Operation *made = rewriter.clone(*quantization, map);
  made->getResult(0).setType(cast<RankedTensorType>(empty.getType()));
  image = made->getResult(0);
}

std::optional<Pooling> Pooling::match(linalg::PoolingNchwSumOp op) {
  // Larger windows, such as those of whole images, are too long to be unrolled.
  constexpr int64_t largest = 16;
  std::optional<Pooling> pooling = match(op, /*isSum=*/true);
  if (pooling && pooling->height.window * pooling->width.window > largest)
    return std::nullopt;
  return pooling;
}

/// The largest, or the sum, of the points where `rows` and `columns` meet.
Value Pooling::emitWindow(OpBuilder &builder, Value buffer, Value n, Value c,
                          ArrayRef<Value> rows, ArrayRef<Value> columns) {
  Location loc = op.getLoc();
  Value result;
  for (Value row : rows)
    for (Value column : columns) {
      Value value = memref::LoadOp::create(builder, loc, buffer,
                                           ValueRange{n, c, row, column});
      result = combine(builder, result, value);
    }
  return result;
}

/// `value` alone where there is no result yet.
Value Pooling::combine(OpBuilder &builder, Value result, Value value) {
  if (!result)
    return value;
  if (isSum)
    return arith::AddFOp::create(builder, op.getLoc(), result, value);
  if (quantization)
    return arith::MaxUIOp::create(builder, op.getLoc(), result, value);
  // Which of two zeros is the larger is not seen, and would take half of the
  // instructions.
  return LLVM::MaximumOp::create(builder, op.getLoc(), result, value,
                                 LLVM::FastmathFlags::nsz);
}

/// Vectors of a row that have the points of the windows of `lanes` outputs from
/// `column` on: with stride 2 those of two neighbours alternate in them.
SmallVector<Value> Pooling::loadRow(OpBuilder &builder, Value data,
                                    ArrayRef<Value> plane, Value row,
                                    Value column, int64_t lanes) {
  Location loc = op.getLoc();
  AffineExpr d0 = builder.getAffineDimExpr(0);
  SmallVector<Value> loaded;
  auto load = [&](int64_t offset) {
    Value place =
        apply(builder, d0 * width.stride + (offset - width.padding), column);
    loaded.push_back(vector::LoadOp::create(
        builder, loc, VectorType::get(width.stride * lanes, getElementType()),
        data, ValueRange{plane[0], plane[1], row, place}));
  };
  // With stride 1 one vector per position of the window; with stride 2 one
  // vector of twice the lanes for each pair of positions.
  for (int64_t i = 0; i + width.stride <= width.window; i += width.stride)
    load(i);
  // The last one without a second: nothing after its window is read.
  if (width.window % width.stride)
    // It overlaps the one before it by one element.
    load(width.window - 2);
  return loaded;
}

/// The points of the window in their order, each a vector of those of all
/// outputs, from what `loadRow` has loaded. With stride 2, window 3 and four
/// outputs, from the elements `0 .. 8`:
///
///     loaded   0 1 2 3 4 5 6 7     1 2 3 4 5 6 7 8
///     points   0 2 4 6   1 3 5 7   (1 3 5 7)   2 4 6 8
SmallVector<Value> Pooling::separatePoints(OpBuilder &builder,
                                           ArrayRef<Value> loaded) {
  if (width.stride == 1)
    return SmallVector<Value>(loaded);
  SmallVector<Value> points;
  for (Value both : loaded)
    llvm::append_range(
        points, vector::DeinterleaveOp::create(builder, op.getLoc(), both)
                    .getResults());
  // The first half of the last one is of the point before.
  if (width.window % 2)
    points.erase(points.end() - 2);
  return points;
}

/// The largest, or the sums, of the points of the windows of `lanes` outputs
/// from `column` on.
Value Pooling::emitWindows(OpBuilder &builder, Value data,
                           ArrayRef<Value> plane, ArrayRef<Value> rows,
                           Value column, int64_t lanes) {
  Value result;
  auto add = [&](ArrayRef<Value> loaded) {
    for (Value point : separatePoints(builder, loaded))
      result = combine(builder, result, point);
  };
  // Maxima have any order: what alternates is separated once, and not by rows.
  // A sum must be in the order of the rows, so that it does not depend on the
  // vectors.
  SmallVector<Value> largest;
  for (Value row : rows) {
    SmallVector<Value> loaded =
        loadRow(builder, data, plane, row, column, lanes);
    if (isSum) {
      add(loaded);
      continue;
    }
    largest.resize(loaded.size());
    for (auto [whole, part] : llvm::zip_equal(largest, loaded))
      whole = combine(builder, whole, part);
  }
  if (!isSum)
    add(largest);
  return result;
}

/// Vectors of the outputs of a line whose windows are inside. Returns the first
/// column after them. `plane` is sample and channel, `rows` are the rows of the
/// image that the windows take.
int64_t Pooling::emitVectors(OpBuilder &builder, Value data, Value output,
                             ArrayRef<Value> plane, Value line,
                             ArrayRef<Value> rows) {
  // Vectors; more become a loop, so that code stays short.
  constexpr int64_t mostUnrolled = 4;
  Location loc = op.getLoc();
  int64_t begin = width.getFirstInside(), end = width.getFirstAfter();
  int64_t first = begin;
  // Vectors are separated by twos, and windows leave no gaps.
  if (width.stride > 2 || width.window < width.stride)
    return first;
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto emit = [&](Value column, int64_t lanes) {
    Value result = emitWindows(builder, data, plane, rows, column, lanes);
    vector::StoreOp::create(builder, loc, result, output,
                            ValueRange{plane[0], plane[1], line, column});
  };
  // Each size takes what the one before has left; LLVM splits vectors that are
  // larger than those of the target.
  for (int64_t lanes : {32, 16, 8, 4}) {
    if (lanes == 32 && !quantization)
      continue;
    int64_t count = (end - first) / lanes, last = first + count * lanes;
    if (count > mostUnrolled) {
      auto loop = scf::ForOp::create(builder, loc, constant(first),
                                     constant(last), constant(lanes));
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(loop.getBody());
      emit(loop.getInductionVar(), lanes);
    } else {
      for (int64_t column = first; column < last; column += lanes)
        emit(constant(column), lanes);
    }
    first = last;
    // The last one may compute some outputs again.
    if (first < end && end - begin >= lanes) {
      emit(constant(end - lanes), lanes);
      return end;
    }
  }
  return first;
}

/// The outputs of one line.
void Pooling::emitRow(OpBuilder &builder, Value data, Value output, Value n,
                      Value c, Value line) {
  Location loc = op.getLoc();
  AffineExpr d0 = builder.getAffineDimExpr(0);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  // A row outside of the image counts as the nearest one inside, which a
  // maximum takes twice without harm. Sums have no padding here.
  SmallVector<Value> rows;
  for (int64_t i = 0; i < height.window; ++i) {
    Value row = apply(builder, d0 * height.stride + (i - height.padding), line);
    if (!isSum) {
      row = arith::MaxSIOp::create(builder, loc, row, constant(0));
      row =
          arith::MinSIOp::create(builder, loc, row, constant(height.size - 1));
    }
    rows.push_back(row);
  }
  auto store = [&](Value column, ArrayRef<Value> columns) {
    Value value = emitWindow(builder, data, n, c, rows, columns);
    memref::StoreOp::create(builder, loc, value, output,
                            ValueRange{n, c, line, column});
  };
  // Unrolled, with the columns that each window has.
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
  int64_t first = emitVectors(builder, data, output, {n, c}, line, rows);
  if (first == width.getFirstAfter())
    return;
  auto inside =
      scf::ForOp::create(builder, loc, constant(first),
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

/// Emits the loops before what they replace: `op`, or what quantizes its
/// result, whose constants are there.
void Pooling::lower(int64_t threads) {
  Operation *replaced = quantization ? quantization.getOperation() : op;
  IRRewriter rewriter(replaced);
  Location loc = op.getLoc();
  if (quantization)
    quantizeImage(rewriter);
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
  MemRefType type = getBuffer(replaced->getResult(0));
  Value output = memref::AllocOp::create(rewriter, loc, type,
                                         rewriter.getI64IntegerAttr(64));
  // Threads share the planes: each is read and written by one of them.
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
  emitRow(rewriter, data, output, n, c, lines.getInductionVar());
  rewriter.setInsertionPointAfter(outer);
  rewriter.replaceOpWithNewOp<bufferization::ToTensorOp>(
      replaced, replaced->getResult(0).getType(), output, /*restrict=*/true,
      /*writable=*/true);
  if (replaced != op)
    rewriter.eraseOp(op);
}
