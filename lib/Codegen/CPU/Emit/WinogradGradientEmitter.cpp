//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The gradient of a convolution by its weight, by Winograd's F(4x4, 3x3):
//
//     dL/dg = G^T [ (A dL/dY A^T) * (B^T d B) ] G
//
// summed over all tiles, with the matrices of WinogradEmitter.cpp, whose `Y` is
// transposed by it. Each of the 36 points is a matrix product of inputs by
// tiles and tiles by outputs. Vectors are of channels: an image is transposed
// to lines of channels, in which a tile is loaded, transformed and stored by
// whole vectors, whatever the width of the image, and the product reads vectors
// of outputs and single inputs where they are.
//
//===----------------------------------------------------------------------===//

#include "../Strategy/MatchContraction.h"
#include "EmitContraction.h"
#include "Winograd.h"
#include "WinogradTransforms.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

/// The data, or the gradient by the output, and its tiles.
struct Side {
  /// The tensor's buffer, flat, and its shape; how many elements lie before it
  /// in the first tile.
  Value flat;
  int64_t channels, height, width;
  int64_t rowsBefore, columnsBefore;
  /// Elements of a tile along one axis.
  int64_t tileSize;
  /// The transformed tiles of a block, by point, image, tile and channel; where
  /// the next point is, and the channels with those that vectors add.
  Value tiles;
  int64_t pointStride, paddedChannels;
};

class WinogradGradientEmitter : WinogradTransforms {
public:
  WinogradGradientEmitter(OpBuilder &builder, Operation *op,
                          const WinogradGradient &gradient,
                          const ContractionOptions &options);

  /// Emits all of it before `op`; see `emitWinogradGradient`.
  Value emit();

private:
  VectorType getType() { return getVectorType(lanes); }
  int64_t getBlock() const;
  Side makeSide(Value tensor, ArrayRef<int64_t> shape, int64_t rowsBefore,
                int64_t columnsBefore, int64_t tileSize);
  int64_t getImageWidth(const Side &side) const {
    return (columnsOfTiles - 1) * tileOut + side.tileSize;
  }
  int64_t getImageSize(const Side &side) const {
    return ((rowsOfTiles - 1) * tileOut + side.tileSize) * getImageWidth(side) *
           lanes;
  }
  /// A loop from 0 below `extent` in which LLVM has nothing left to do.
  void loop(int64_t extent, int64_t step, Body body) {
    serialLoop(extent, step, body)
        ->setAttr("loop_annotation", getFinishedLoop(builder.getContext()));
  }
  void fillWithZeros(Value flat, int64_t size);
  void transformImages(const Side &side, Value firstImage);
  void transformChannels(const Side &side, Value image, Value place,
                         Value channel, int64_t count, Value lines);
  void moveChannels(const Side &side, Value start, int64_t count, Value lines);
  void movePixels(const Side &side, Value start, int64_t count, Value lines,
                  Value row, Value column, int64_t pixels);
  void transformTiles(const Side &side, Value place, Value lines);
  LogicalResult multiply(const Side &data, const Side &gradient);
  Value transformBack();

  const WinogradGradient &conv;
  const ContractionOptions &options;
  ContractionTarget target;
  RankedTensorType resultType;
  int64_t rowsOfTiles, columnsOfTiles, numTiles;
  int64_t lanes, threads;
  /// How many images are computed at a time.
  int64_t images;
  /// The sums, by point, input and output, with those that vectors add.
  Value sums;
  int64_t sumStride, paddedOutputs;
};

} // namespace

WinogradGradientEmitter::WinogradGradientEmitter(
    OpBuilder &builder, Operation *op, const WinogradGradient &gradient,
    const ContractionOptions &options)
    : WinogradTransforms(builder, op->getLoc(),
                         ContractionTarget(options.target).hasFMA),
      conv(gradient), options(options), target(options.target),
      resultType(cast<RankedTensorType>(op->getResult(0).getType())),
      rowsOfTiles(llvm::divideCeil(conv.outHeight, tileOut)),
      columnsOfTiles(llvm::divideCeil(conv.outWidth, tileOut)),
      numTiles(rowsOfTiles * columnsOfTiles), lanes(target.lanes),
      // Of all products, in halves of a cycle.
      threads(options.getThreads(conv.batches * conv.inputs * conv.outputs *
                                 numTiles * numPoints / target.lanes *
                                 target.getOperationTime(target.lanes))),
      images(getBlock()), paddedOutputs(llvm::alignTo(conv.outputs, lanes)) {
  sumStride = getLineStride(conv.inputs * paddedOutputs);
}

/// As many images as leave the matrices of their tiles in the cache, or are as
/// large as the sums, which each block reads and writes. Several threads share
/// all images.
int64_t WinogradGradientEmitter::getBlock() const {
  if (threads != 1)
    return conv.batches;
  int64_t elements = numPoints * (conv.inputs + conv.outputs) * numTiles;
  int64_t most =
      std::max(target.l2Elements, 2 * numPoints * conv.inputs * conv.outputs);
  int64_t block = std::clamp<int64_t>(most / elements, 1, conv.batches);
  while (conv.batches % block != 0)
    --block;
  return block;
}

/// `shape` is channels, lines and columns.
Side WinogradGradientEmitter::makeSide(Value tensor, ArrayRef<int64_t> shape,
                                       int64_t rowsBefore,
                                       int64_t columnsBefore,
                                       int64_t tileSize) {
  int64_t padded = llvm::alignTo(shape[0], lanes);
  int64_t stride = getLineStride(images * numTiles * padded);
  Side side{flatten(toBuffer(tensor)),
            shape[0],
            shape[1],
            shape[2],
            rowsBefore,
            columnsBefore,
            tileSize,
            makeBuffer({numPoints, stride}),
            stride,
            padded};
  return side;
}

void WinogradGradientEmitter::fillWithZeros(Value flat, int64_t size) {
  loop(size, lanes, [&](Value place) {
    vector::StoreOp::create(builder, loc, zeros(getType()), flat, place);
  });
}

//===----------------------------------------------------------------------===//
// Transforms
//===----------------------------------------------------------------------===//

/// All tiles of a block.
void WinogradGradientEmitter::transformImages(const Side &side,
                                              Value firstImage) {
  int64_t blocks = side.paddedChannels / lanes, size = getImageSize(side);
  int64_t rest = side.channels % lanes;
  // What is beyond the image stays zero.
  int64_t copies = threads == 1 ? 1 : images * blocks;
  Value lines = flatten(makeBuffer({copies * size}));
  fillWithZeros(lines, copies * size);
  auto emitImage = [&](Value number, Value block, int64_t count, Value own) {
    Value image = firstImage ? add(firstImage, number) : number;
    Value place = add(scaled(number, numTiles * side.paddedChannels),
                      scaled(block, lanes));
    transformChannels(side, image, place, scaled(block, lanes), count, own);
  };
  if (threads == 1) {
    loop(images, 1, [&](Value number) {
      loop(side.channels / lanes, 1,
           [&](Value block) { emitImage(number, block, lanes, lines); });
      if (rest)
        emitImage(number, constant(blocks - 1), rest, lines);
    });
    return;
  }
  // Each item has lines of its own.
  auto share = [&](int64_t first, int64_t count, int64_t channels) {
    if (count == 0)
      return;
    sharedLoop(images * count, [&](Value item) {
      Value number = apply(dim(0).floorDiv(count), {item});
      Value block = apply(dim(0) % count + first, {item});
      Value begin = apply((dim(0) * blocks + dim(1)) * size, {number, block});
      auto type =
          MemRefType::get({size}, builder.getF32Type(),
                          StridedLayoutAttr::get(builder.getContext(),
                                                 ShapedType::kDynamic, {1}));
      Value own = memref::ReinterpretCastOp::create(
          builder, loc, type, lines, OpFoldResult(begin),
          ArrayRef<OpFoldResult>{builder.getIndexAttr(size)},
          ArrayRef<OpFoldResult>{builder.getIndexAttr(1)});
      emitImage(number, block, channels, own);
    });
  };
  share(0, side.channels / lanes, lanes);
  share(blocks - 1, rest ? 1 : 0, rest);
}

/// The tiles of `count` channels of an image, the first of which is `channel`,
/// to `place` of the matrices.
void WinogradGradientEmitter::transformChannels(const Side &side, Value image,
                                                Value place, Value channel,
                                                int64_t count, Value lines) {
  Value start =
      apply((dim(0) * side.channels + dim(1)) * side.height * side.width,
            {image, channel});
  moveChannels(side, start, count, lines);
  transformTiles(side, place, lines);
}

/// Transposes `count` channels from `start` on to lines of pixels, which have
/// `lanes` channels each.
void WinogradGradientEmitter::moveChannels(const Side &side, Value start,
                                           int64_t count, Value lines) {
  auto move = [&](Value row, Value column, int64_t pixels) {
    movePixels(side, start, count, lines, row, column, pixels);
  };
  int64_t rows = lanes / side.width;
  // Some whole lines at a time.
  if (lanes % side.width == 0 && side.height % rows == 0)
    return loop(side.height, rows,
                [&](Value row) { move(row, constant(0), lanes); });
  loop(side.height, 1, [&](Value row) {
    int64_t whole = side.width / lanes * lanes;
    if (whole)
      loop(whole, lanes, [&](Value column) { move(row, column, lanes); });
    if (whole < side.width)
      move(row, constant(whole), side.width - whole);
  });
}

/// The same of `pixels`, at most `lanes`, which follow one another in the
/// image, from a place of it on.
void WinogradGradientEmitter::movePixels(const Side &side, Value start,
                                         int64_t count, Value lines, Value row,
                                         Value column, int64_t pixels) {
  Vectors vectors;
  SmallVector<bool> exist(lanes, false);
  std::fill_n(exist.begin(), pixels, true);
  for (int64_t lane = 0; lane < lanes; ++lane) {
    if (lane >= count) {
      vectors.push_back(zeros(getType()));
      continue;
    }
    Value place = apply(dim(0) + dim(1) * side.width + dim(2) +
                            lane * side.height * side.width,
                        {start, row, column});
    if (pixels == lanes)
      vectors.push_back(
          vector::LoadOp::create(builder, loc, getType(), side.flat, place));
    else
      vectors.push_back(vector::MaskedLoadOp::create(
          builder, loc, getType(), side.flat, place, getMask(exist),
          zeros(getType())));
  }
  vectors = transpose(vectors);
  int64_t width = getImageWidth(side);
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    int64_t offset = (side.rowsBefore + pixel / side.width) * width +
                     side.columnsBefore + pixel % side.width;
    vector::StoreOp::create(
        builder, loc, vectors[pixel], lines,
        apply((dim(0) * width + dim(1) + offset) * lanes, {row, column}));
  }
}

/// All tiles of `lines` to `place` of the matrices.
void WinogradGradientEmitter::transformTiles(const Side &side, Value place,
                                             Value lines) {
  int64_t width = getImageWidth(side);
  Value result = flatten(side.tiles);
  loop(rowsOfTiles, 1, [&](Value line) {
    loop(columnsOfTiles, 1, [&](Value tile) {
      Value first =
          apply((dim(0) * width + dim(1)) * (tileOut * lanes), {line, tile});
      Value to = apply(dim(0) + (dim(1) * columnsOfTiles + dim(2)) *
                                    side.paddedChannels,
                       {place, line, tile});
      auto at = [&](int64_t i, int64_t j) -> Value {
        return vector::LoadOp::create(builder, loc, getType(), lines,
                                      add(first, (i * width + j) * lanes));
      };
      auto store = [&](int64_t i, ValueRange values) {
        for (auto [j, value] : llvm::enumerate(values))
          vector::StoreOp::create(
              builder, loc, value, result,
              add(to,
                  (i * tileIn + static_cast<int64_t>(j)) * side.pointStride));
      };
      if (side.tileSize == tileIn)
        transformTile(dataTransform, at, store);
      else
        transformTile(outputGradient, at, store);
    });
  });
}

/// The sums as windows, by input, line and column of the window, and output.
Value WinogradGradientEmitter::transformBack() {
  Value flat = flatten(sums);
  Value buffer = makeBuffer({conv.inputs, window, window, conv.outputs});
  Value result = flatten(buffer);
  auto emitOutputs = [&](Value input, Value output, int64_t count) {
    Value from = apply(dim(0) * paddedOutputs + dim(1), {input, output});
    Value to = apply(dim(0) * (window * window * conv.outputs) + dim(1),
                     {input, output});
    SmallVector<bool> exist(lanes, false);
    std::fill_n(exist.begin(), count, true);
    auto at = [&](int64_t i, int64_t j) -> Value {
      return vector::LoadOp::create(builder, loc, getType(), flat,
                                    add(from, (i * tileIn + j) * sumStride));
    };
    transformTile(windowGradient, at, [&](int64_t i, ValueRange values) {
      for (auto [j, value] : llvm::enumerate(values)) {
        Value place =
            add(to, (i * window + static_cast<int64_t>(j)) * conv.outputs);
        if (count == lanes)
          vector::StoreOp::create(builder, loc, value, result, place);
        else
          vector::MaskedStoreOp::create(builder, loc, result, place,
                                        getMask(exist), value);
      }
    });
  };
  auto emitInput = [&](Value input) {
    int64_t whole = conv.outputs / lanes * lanes;
    loop(whole, lanes,
         [&](Value output) { emitOutputs(input, output, lanes); });
    if (whole < conv.outputs)
      emitOutputs(input, constant(whole), conv.outputs - whole);
  };
  if (threads == 1)
    loop(conv.inputs, 1, emitInput);
  else
    sharedLoop(conv.inputs, emitInput);
  auto type = RankedTensorType::get({conv.inputs, window, window, conv.outputs},
                                    builder.getF32Type());
  Value transposed = bufferization::ToTensorOp::create(
      builder, loc, type, buffer, /*restrict=*/true, /*writable=*/true);
  Value empty = tensor::EmptyOp::create(builder, loc, resultType.getShape(),
                                        builder.getF32Type());
  return linalg::TransposeOp::create(builder, loc, transposed, empty,
                                     ArrayRef<int64_t>{3, 0, 1, 2})
      ->getResult(0);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Adds the products of the tiles of a block to the sums: for each point,
/// `sums[c, k] += sum over t of data[t, c] * gradient[t, k]`.
LogicalResult WinogradGradientEmitter::multiply(const Side &data,
                                                const Side &gradient) {
  Contraction product;
  // Points, inputs, outputs, tiles.
  for (int64_t extent :
       {numPoints, conv.inputs, paddedOutputs, images * numTiles})
    product.loops.push_back({extent, product.loops.size() == 3});
  SmallVector<AffineExpr> dims;
  for (unsigned i = 0; i < 4; ++i)
    dims.push_back(dim(i));
  product.output = {dims[0], dims[1] * paddedOutputs + dims[2]};
  product.inputs = {
      {gradient.tiles, {dims[0], dims[3] * gradient.paddedChannels + dims[2]}},
      {data.tiles, {dims[0], dims[3] * data.paddedChannels + dims[1]}}};
  auto ignore = [](const Twine &) {};
  FailureOr<StridedContraction> contraction =
      getStridedContraction(product, sums, ignore, {false, false});
  if (failed(contraction))
    return failure();
  contraction->accumulates = images != conv.batches;
  return emitContraction(builder, loc, *contraction, options, ignore);
}

Value WinogradGradientEmitter::emit() {
  Side data = makeSide(conv.data, {conv.inputs, conv.height, conv.width},
                       conv.rowsBefore, conv.columnsBefore, tileIn);
  Side gradient =
      makeSide(conv.gradient, {conv.outputs, conv.outHeight, conv.outWidth}, 0,
               0, tileOut);
  sums = makeBuffer({numPoints, sumStride});
  LogicalResult emitted = success();
  auto emitBlock = [&](Value firstImage) {
    transformImages(data, firstImage);
    transformImages(gradient, firstImage);
    emitted = multiply(data, gradient);
  };
  if (images == conv.batches) {
    emitBlock(Value());
  } else {
    fillWithZeros(flatten(sums), numPoints * sumStride);
    serialLoop(conv.batches, images, emitBlock);
  }
  return succeeded(emitted) ? transformBack() : Value();
}

Value kas::codegen::emitWinogradGradient(Operation *op,
                                         const WinogradGradient &gradient,
                                         const ContractionOptions &options) {
  OpBuilder builder(op);
  return WinogradGradientEmitter(builder, op, gradient, options).emit();
}
