//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Winograd's F(4x4, 3x3): tiles of 6x6 of the data and the windows of the
// weights are transformed, multiplied as 36 matrix products, and transformed
// back to 4x4 outputs. After Lavin and Gray, "Fast Algorithms for Convolutional
// Neural Networks", CVPR 2016, section 4.
//
//     Y = A^T [ (G g G^T) * (B^T d B) ] A
//
// where `*` multiplies the 36 elements one by one, `d` is a tile of 6x6, `g` a
// window of 3x3 and `Y` 4x4 outputs. Summed over channels, each of the 36
// elements (a point) is a matrix product of outputs by inputs and inputs by
// tiles, which is emitted like any contraction. WinogradMatch.cpp finds the
// convolutions; docs/internals/convolutions.md, "Winograd's error", says what
// it costs in accuracy.
//
//===----------------------------------------------------------------------===//

#include "../Strategy/MatchContraction.h"
#include "EmitContraction.h"
#include "Winograd.h"
#include "WinogradTransforms.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "llvm/ADT/Sequence.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

/// Emits one convolution.
class WinogradEmitter : WinogradTransforms {
public:
  WinogradEmitter(OpBuilder &builder, Operation *op,
                  const WinogradConvolution &conv,
                  const ContractionOptions &options)
      : WinogradTransforms(builder, op->getLoc(),
                           ContractionTarget(options.target).hasFMA),
        op(op), conv(conv), options(options), target(options.target),
        rowsOfTiles(llvm::divideCeil(conv.outHeight, tileOut)),
        columnsOfTiles(llvm::divideCeil(conv.outWidth, tileOut)),
        numTiles(rowsOfTiles * columnsOfTiles),
        threads(options.getThreads(getProductsTime())), images(getBlock()),
        joined(numTiles < minColumns ? images : 1),
        lanes(std::max<int64_t>(4, target.getLanes(columnsOfTiles))) {}

  /// Emits all of it before `op`; see `emitWinograd`.
  Value emit();

private:
  /// As many neighbouring tiles of a channel as a vector has lanes.
  struct TileVector {
    /// Where the channel begins, and which line of tiles it is.
    Value channelStart, line;
    /// The first tile of the line, and its place in a matrix.
    int64_t firstTile;
    Value place;
    /// The lanes that are tiles; null if all are.
    Value exist;
  };
  VectorType getType() { return getVectorType(lanes); }
  /// A loop from 0 below `extent`, shared by threads if it is the outermost.
  void loop(int64_t extent, bool shared, Body body) {
    if (shared && threads != 1)
      return sharedLoop(extent, body);
    serialLoop(extent, /*step=*/1, body)
        ->setAttr("loop_annotation", getFinishedLoop(builder.getContext()));
  }

  /// Of the products of all matrices, in halves of a cycle.
  int64_t getProductsTime() const {
    return conv.batches * conv.groups * conv.inputs * conv.outputs * numTiles *
           numPoints / target.lanes * target.getOperationTime(target.lanes);
  }
  /// Elements from the matrix of one point to that of the next, where it has
  /// the tiles of so many channels, those of all images of a block.
  int64_t getPointStride(int64_t channels) const {
    return getLineStride(channels * numTiles);
  }
  int64_t getBlock() const;
  LogicalResult emitBlock(Value weights, Value data, Value output);
  void loopOverTiles(int64_t channels, int64_t elements,
                     function_ref<void(const TileVector &)> body);
  Value transformWeights(Value weight);
  void transformData(Value data, Value transformed);
  Vectors loadRow(Value flat, Value start, int64_t firstTile, Value exists);
  void transformBack(Value products, Value output);
  void storeRow(Value flat, Value start, int64_t firstTile, Value exists,
                ValueRange phases);
  LogicalResult multiply(Value weights, Value data, Value products);

  Operation *op;
  const WinogradConvolution &conv;
  const ContractionOptions &options;
  ContractionTarget target;
  /// Tiles of one image: rows of tiles, tiles in a row, and all.
  int64_t rowsOfTiles, columnsOfTiles, numTiles;
  /// That share what is transformed.
  int64_t threads;
  /// With fewer tiles, those of several images are columns of one matrix.
  static constexpr int64_t minColumns = 16;
  /// How many images are computed at a time, how many of them are in one
  /// matrix, and the first of them; null if that is the first of all.
  int64_t images, joined;
  Value firstImage;
  /// Lanes of the vectors of tiles, at least 4.
  int64_t lanes;
};

} // namespace

/// The windows as 36 matrices, by group, outputs and inputs: once, where
/// weights are prepacked ahead.
Value WinogradEmitter::transformWeights(Value weight) {
  int64_t size = conv.groups * conv.outputs * conv.inputs;
  // The loop below is the first that touches it, so that both can be moved.
  int64_t stride = getLineStride(size);
  Value buffer = makeBuffer({numPoints * stride});
  auto outer =
      scf::ForOp::create(builder, loc, constant(0),
                         constant(conv.groups * conv.outputs), constant(1));
  builder.setInsertionPointToStart(outer.getBody());
  Value row = outer.getInductionVar(), perGroup = constant(conv.outputs);
  Value g = arith::DivUIOp::create(builder, loc, row, perGroup);
  Value k = arith::RemUIOp::create(builder, loc, row, perGroup);
  // LLVM makes vectors along the inputs, so that what is stored lies side by
  // side: the points of one window are far apart, in few sets of the cache.
  serialLoop(conv.inputs, /*step=*/1, [&](Value c) {
    auto load = [&](int64_t i, int64_t j) -> Value {
      SmallVector<Value> operands = {g, k, c, constant(i), constant(j)};
      SmallVector<Value> index;
      for (AffineExpr expr : conv.weightIndex)
        index.push_back(
            affine::expandAffineExpr(builder, loc, expr, operands, {}));
      return memref::LoadOp::create(builder, loc, weight, index);
    };
    // G g first, by columns, then (G g) G^T, by rows.
    Vectors columns[window];
    for (int64_t j = 0; j < window; ++j)
      columns[j] = transform(windowTransform,
                             Vectors{load(0, j), load(1, j), load(2, j)});
    Value place = add(scaled(row, conv.inputs), c);
    for (int64_t i = 0; i < tileIn; ++i) {
      Vectors line =
          transform(windowTransform,
                    Vectors{columns[0][i], columns[1][i], columns[2][i]});
      for (auto [j, value] : llvm::enumerate(line))
        memref::StoreOp::create(
            builder, loc, value, buffer,
            add(place, (i * tileIn + static_cast<int64_t>(j)) * stride));
    }
  });
  // The matrices are a view of the flat buffer, which the loop above has
  // filled.
  builder.setInsertionPointAfter(outer);
  SmallVector<int64_t> shape = {numPoints, stride};
  auto type = MemRefType::get(shape, builder.getF32Type());
  Value matrices = memref::ReinterpretCastOp::create(
      builder, loc, type, buffer, /*offset=*/0, shape,
      type.getStridesAndOffset().first);
  return matrices;
}

/// The six columns of `lanes` tiles, from `firstTile` on, of the line whose
/// first element is at `start`; zeros outside of the image, or if `exists` is
/// false. Lane `l` of column `c` is element `4 (firstTile + l) + c` of the row,
/// before which `columnsBefore` elements of padding lie: a transposition of
/// `lanes` by 4 consecutive elements, by shuffles of pairs, and two columns
/// that overlap the next tile.
SmallVector<Value> WinogradEmitter::loadRow(Value flat, Value start,
                                            int64_t firstTile, Value exists) {
  int64_t first = firstTile * tileOut - conv.columnsBefore;
  Vectors parts;
  auto maskType = VectorType::get({lanes}, builder.getI1Type());
  Value line = vector::BroadcastOp::create(builder, loc, maskType, exists);
  // What the last tile reads beyond its outputs is in a vector more.
  for (int64_t part = 0; part <= tileOut; ++part) {
    SmallVector<bool> inside;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      int64_t column = first + part * lanes + lane;
      // Of the additional vector only the first two elements are needed.
      bool isRead = part < tileOut || lane < tileIn - tileOut;
      inside.push_back(isRead && column >= 0 && column < conv.width);
    }
    if (!llvm::is_contained(inside, true)) {
      parts.push_back(zeros(getType()));
      continue;
    }
    Value mask = arith::AndIOp::create(builder, loc, getMask(inside), line);
    parts.push_back(vector::MaskedLoadOp::create(
        builder, loc, getType(), flat, add(start, first + part * lanes), mask,
        zeros(getType())));
  }
  // Every other element of two vectors, twice.
  auto pick = [&](Value a, Value b, int64_t from) -> Value {
    SmallVector<int64_t> every;
    for (int64_t lane = 0; lane < lanes; ++lane)
      every.push_back(2 * lane + from);
    return vector::ShuffleOp::create(builder, loc, a, b, every);
  };
  // Even elements are columns 0 and 2, odd ones 1 and 3; doing it again
  // separates these.
  Vectors halves[2];
  for (int64_t from : {0, 1})
    for (int64_t pair : {0, 2})
      halves[from].push_back(pick(parts[pair], parts[pair + 1], from));
  Vectors columns;
  for (int64_t column = 0; column < tileOut; ++column)
    columns.push_back(
        pick(halves[column % 2][0], halves[column % 2][1], column / 2));
  // The first columns of the next tile.
  for (int64_t column = 0; column < tileIn - tileOut; ++column) {
    SmallVector<int64_t> next = llvm::to_vector(llvm::seq<int64_t>(1, lanes));
    next.push_back(lanes + column);
    columns.push_back(vector::ShuffleOp::create(builder, loc, columns[column],
                                                parts.back(), next));
  }
  return columns;
}

/// As many images as leave the matrices of their tiles in the cache, if one
/// thread computes all.
int64_t WinogradEmitter::getBlock() const {
  // The cache of a core, or as much as the transformed windows take, which are
  // read for each block.
  int64_t maxElements = std::max(
      target.l2Elements, numPoints * conv.groups * conv.inputs * conv.outputs);
  // All images at once give several threads the most to share.
  if (threads != 1)
    return conv.batches;
  // Of the transformed data and of the products of one image.
  int64_t elements =
      numPoints * conv.groups * (conv.inputs + conv.outputs) * numTiles;
  int64_t block = std::clamp<int64_t>(maxElements / elements, 1, conv.batches);
  while (conv.batches % block != 0)
    --block;
  return block;
}

/// All tiles of a block, of so many channels of each image, which have so many
/// elements.
void WinogradEmitter::loopOverTiles(
    int64_t channels, int64_t elements,
    function_ref<void(const TileVector &)> body) {
  Value first = firstImage ? scaled(firstImage, channels * elements) : Value();
  loop(images * channels, true, [&](Value channel) {
    loop(rowsOfTiles, false, [&](Value line) {
      Value channelStart = scaled(channel, elements);
      if (first)
        channelStart = add(channelStart, first);
      // The matrices of a point have the tiles of a channel in a row. Where
      // images are joined, those of all images follow one another within the
      // channel's row: `[channel][image][tile]` instead of
      // `[image][channel][tile]`.
      Value place = channel;
      if (joined > 1) {
        Value perImage = constant(channels);
        Value image = arith::DivUIOp::create(builder, loc, channel, perImage);
        place =
            add(scaled(arith::RemUIOp::create(builder, loc, channel, perImage),
                       joined),
                image);
      }
      place = add(scaled(place, numTiles), scaled(line, columnsOfTiles));
      // Unrolled: rows of tiles are short, and masks at their ends are
      // constants.
      for (int64_t tile = 0; tile < columnsOfTiles; tile += lanes) {
        SmallVector<bool> exist(lanes, false);
        int64_t count = std::min(lanes, columnsOfTiles - tile);
        std::fill_n(exist.begin(), count, true);
        body({channelStart, line, tile, add(place, tile),
              count == lanes ? nullptr : getMask(exist)});
      }
    });
  });
}

/// The tiles of 6x6, which overlap by two, as 36 matrices: of each group the
/// inputs by tiles.
void WinogradEmitter::transformData(Value data, Value transformed) {
  Value flat = flatten(data), result = flatten(transformed);
  int64_t perImage = conv.groups * conv.inputs, channels = images * perImage;
  loopOverTiles(perImage, conv.height * conv.width, [&](const TileVector &at) {
    SmallVector<Vectors> lines;
    for (int64_t i = 0; i < tileIn; ++i) {
      // The row of the image; rows at the padding are zeros.
      Value number = add(scaled(at.line, tileOut), i - conv.rowsBefore);
      // A negative number is a large one without its sign.
      Value exists =
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, number,
                                constant(conv.height));
      lines.push_back(loadRow(flat,
                              add(scaled(number, conv.width), at.channelStart),
                              at.firstTile, exists));
    }
    auto element = [&](int64_t i, int64_t j) { return lines[i][j]; };
    transformTile(dataTransform, element, [&](int64_t i, ValueRange values) {
      for (auto [j, value] : llvm::enumerate(values)) {
        // Point by point: each matrix is contiguous, and what one tile stores
        // is far apart.
        int64_t point = i * tileIn + static_cast<int64_t>(j);
        Value place = add(at.place, point * getPointStride(channels));
        if (at.exist)
          vector::MaskedStoreOp::create(builder, loc, result, place, at.exist,
                                        value);
        else
          vector::StoreOp::create(builder, loc, value, result, place);
      }
    });
  });
}

/// Stores the four columns of `lanes` tiles one after another. The inverse of
/// `loadRow`, with four columns: `phases[c]` has column `c` of each tile.
/// Columns and rows beyond the output are not stored.
void WinogradEmitter::storeRow(Value flat, Value start, int64_t firstTile,
                               Value exists, ValueRange phases) {
  // The lanes of `a` and of `b` alternately: the first or the second half of
  // them.
  auto zip = [&](Value a, Value b, int64_t half) -> Value {
    SmallVector<int64_t> turns;
    for (int64_t lane = 0; lane < lanes; ++lane)
      turns.push_back((half * lanes + lane) / 2 + (lane % 2 ? lanes : 0));
    return vector::ShuffleOp::create(builder, loc, a, b, turns);
  };
  Vectors parts;
  for (int64_t half : {0, 1}) {
    Value even = zip(phases[0], phases[2], half);
    Value odd = zip(phases[1], phases[3], half);
    for (int64_t part : {0, 1})
      parts.push_back(zip(even, odd, part));
  }
  auto maskType = VectorType::get({lanes}, builder.getI1Type());
  Value line = vector::BroadcastOp::create(builder, loc, maskType, exists);
  for (auto [part, value] : llvm::enumerate(parts)) {
    int64_t first = firstTile * tileOut + static_cast<int64_t>(part) * lanes;
    SmallVector<bool> inside;
    for (int64_t lane = 0; lane < lanes; ++lane)
      inside.push_back(first + lane < conv.outWidth);
    // The tiles that are left do not exist.
    if (!inside.front())
      break;
    Value mask = arith::AndIOp::create(builder, loc, getMask(inside), line);
    vector::MaskedStoreOp::create(builder, loc, flat, add(start, first), mask,
                                  value);
  }
}

/// The products of 36 points as tiles of 4x4 outputs.
void WinogradEmitter::transformBack(Value products, Value output) {
  Value flat = flatten(products), result = flatten(output);
  int64_t perImage = conv.groups * conv.outputs, channels = images * perImage;
  auto load = [&](const TileVector &at, int64_t point) -> Value {
    Value place = add(at.place, point * getPointStride(channels));
    if (at.exist)
      return vector::MaskedLoadOp::create(builder, loc, getType(), flat, place,
                                          at.exist, zeros(getType()));
    return vector::LoadOp::create(builder, loc, getType(), flat, place);
  };
  int64_t elements = conv.outHeight * conv.outWidth;
  loopOverTiles(perImage, elements, [&](const TileVector &at) {
    auto element = [&](int64_t i, int64_t j) {
      return load(at, i * tileIn + j);
    };
    transformTile(outputTransform, element, [&](int64_t i, ValueRange phases) {
      Value number = add(scaled(at.line, tileOut), i);
      Value exists =
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, number,
                                constant(conv.outHeight));
      storeRow(result, add(scaled(number, conv.outWidth), at.channelStart),
               at.firstTile, exists, phases);
    });
  });
}

/// The matrix products: for each point and group, outputs by tiles.
LogicalResult WinogradEmitter::multiply(Value weights, Value data,
                                        Value products) {
  // `products[p, m, g, k, t] = sum over c of weights[p, g, k, c] * data[p, m,
  // g, c, t]`, with `m` the image, or 0 where all of them are joined.
  Contraction product;
  // Points, images, groups, outputs, tiles, inputs.
  int64_t tiles = joined * numTiles;
  for (int64_t extent : {numPoints, images / joined, conv.groups, conv.outputs,
                         tiles, conv.inputs})
    product.loops.push_back({extent, product.loops.size() == 5});
  SmallVector<AffineExpr> dims;
  for (unsigned i : llvm::seq(6u))
    dims.push_back(getAffineDimExpr(i, builder.getContext()));
  // The place in the matrix of a point, which has so many channels.
  auto place = [&](int64_t channels, AffineExpr channel) {
    AffineExpr group = dims[1] * conv.groups + dims[2];
    return (group * channels + channel) * tiles + dims[4];
  };
  product.output = {dims[0], place(conv.outputs, dims[3])};
  product.inputs = {
      {weights,
       {dims[0], (dims[2] * conv.outputs + dims[3]) * conv.inputs + dims[5]}},
      {data, {dims[0], place(conv.inputs, dims[5])}}};
  auto ignore = [](const Twine &) {};
  FailureOr<StridedContraction> contraction =
      getStridedContraction(product, products, ignore);
  if (failed(contraction))
    return failure();
  return emitContraction(builder, loc, *contraction, options, ignore);
}

/// `images` images from `firstImage` on. The buffers of a block are allocated
/// inside of the loop over blocks and have the same size in each.
LogicalResult WinogradEmitter::emitBlock(Value weights, Value data,
                                         Value output) {
  auto makeMatrices = [&](int64_t channels) {
    return makeBuffer(
        {numPoints, getPointStride(images * conv.groups * channels)});
  };
  Value transformed = makeMatrices(conv.inputs);
  Value products = makeMatrices(conv.outputs);
  transformData(data, transformed);
  if (failed(multiply(weights, transformed, products)))
    return failure();
  transformBack(products, output);
  return success();
}

/// The result; null if the products cannot be cut into register tiles.
Value WinogradEmitter::emit() {
  Value weight = toBuffer(conv.weight), data = toBuffer(conv.data);
  auto outType = cast<RankedTensorType>(op->getResult(0).getType());
  Value output = makeBuffer(outType.getShape());
  Value weights = transformWeights(weight);
  LogicalResult emitted = success();
  if (images == conv.batches)
    emitted = emitBlock(weights, data, output);
  else
    serialLoop(conv.batches, images, [&](Value image) {
      firstImage = image;
      emitted = emitBlock(weights, data, output);
    });
  if (failed(emitted))
    return Value();
  return bufferization::ToTensorOp::create(builder, loc, outType, output,
                                           /*restrict=*/true,
                                           /*writable=*/true);
}

Value kas::codegen::emitWinograd(Operation *op, const WinogradConvolution &conv,
                                 const ContractionOptions &options) {
  OpBuilder builder(op);
  return WinogradEmitter(builder, op, conv, options).emit();
}
