//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fragments of sums give a lane two neighbours of each of many rows: stored as
// they are, a warp writes pieces of 16 bytes, each thread two at a time. In
// workgroup memory they become lines, of which each thread stores 16 bytes.
//
// Source: PTX ISA, "Matrix fragments for mma.m16n8k16" (what a lane holds),
// "Warp-level matrix store instruction: stmatrix".
//
//===----------------------------------------------------------------------===//

#include "ResultTile.h"
#include "../Strategy/KernelProblem.h"
#include "kas/Codegen/GPU/Strategy/Device.h"
#include "kas/Dialect/KasGPU/IR/KasGPUOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Places in the result
//===----------------------------------------------------------------------===//

void ResultSide::add(int64_t extent, int64_t stride) {
  if (extent == 1)
    return;
  if (!extents.empty() && strides.back() == extent * stride) {
    extents.back() *= extent;
    strides.back() = stride;
    return;
  }
  extents.push_back(extent);
  strides.push_back(stride);
}

AffineExpr ResultSide::getOffset(AffineExpr number) const {
  AffineExpr offset = getAffineConstantExpr(0, number.getContext());
  for (auto [digit, stride] :
       llvm::zip_equal(delinearize(number, extents), strides))
    offset = offset + digit * stride;
  return offset;
}

int64_t ResultSide::getAlignment(int64_t most) const {
  int64_t alignment = most;
  for (int64_t stride : strides)
    while (stride % alignment != 0)
      alignment /= 2;
  return alignment;
}

int64_t ResultSide::getWidth(int64_t most) const {
  if (!isContiguous())
    return 1;
  int64_t width = most;
  while (extents.back() % width != 0)
    width /= 2;
  ResultSide outer(*this);
  outer.strides.pop_back();
  return outer.getAlignment(width);
}

//===----------------------------------------------------------------------===//
// Through workgroup memory
//===----------------------------------------------------------------------===//

std::optional<ResultTile> GPUKernelEmitter::planTile(ArrayRef<unsigned> batches,
                                                     ArrayRef<unsigned> rows,
                                                     ArrayRef<unsigned> columns,
                                                     int64_t group) const {
  ResultTile tile;
  int64_t bytes = elementType.getIntOrFloatBitWidth() / 8;
  std::array<ArrayRef<unsigned>, 2> axes{rows, columns};
  for (unsigned i = 0; i < 2; ++i) {
    tile.block[i] = schedule.getBlock()[i];
    tile.part[i] = schedule.getTile()[i];
    tile.sides[i] = getResultSide(axes[i]);
    tile.counts[i] = 1;
    for (unsigned axis : axes[i])
      tile.counts[i] *= problem.coordinates.axes[axis].extent;
  }
  if (bytes != 2 || !tile.sides[1].isContiguous())
    return std::nullopt;
  tile.elementType = getExchangeType();
  // 16 bytes: lines of eight rows begin in different banks. With 32 bits those
  // of four rows do, which half a warp writes at once.
  tile.pitch = tile.block[1] + 8;
  tile.width = getResultWidth(batches, rows, columns);
  for (tile.slabRows = tile.part[0]; tile.slabRows >= group;
       tile.slabRows -= group)
    if (tile.part[0] % tile.slabRows == 0 &&
        tile.getBytes() <= schedule.getSharedBytes())
      return tile;
  return std::nullopt;
}

void ResultTileEmitter::emitFragments(AffineExpr lane, AffineExpr line,
                                      AffineExpr column,
                                      ArrayRef<Value> fragments) {
  Type type = tile.elementType;
  auto pair = VectorType::get({2}, type);
  auto getPair = [&](Value fragment, int64_t half) -> Value {
    Value sums =
        vector::ExtractOp::create(b, fragment, ArrayRef<int64_t>{half});
    return sums.getType() == pair
               ? sums
               : Value(arith::TruncFOp::create(b, pair, sums));
  };
  // Matrix stores are of 16 bits.
  if (hasMatrixStores(device) && fragments.size() == 2 && getBytes() == 2) {
    // Four matrices of 8x8: the upper and the lower rows of the first columns,
    // then those of the others.
    auto all = VectorType::get({4, 2}, type);
    Value registers = arith::ConstantOp::create(b, b.getZeroAttr(all));
    for (int64_t i = 0; i < 4; ++i)
      registers = vector::InsertOp::create(b, getPair(fragments[i / 2], i % 2),
                                           registers, ArrayRef<int64_t>{i});
    AffineExpr address =
        (line + lane % 16) * tile.pitch + column + lane.floorDiv(16) * 8;
    StoreMatrixOp::create(b, registers, memory, index.emit(address));
    return;
  }
  for (auto [number, fragment] : llvm::enumerate(fragments))
    for (int64_t half = 0; half < 2; ++half) {
      AffineExpr address = (line + lane.floorDiv(4) + 8 * half) * tile.pitch +
                           column + lane % 4 * 2 +
                           8 * static_cast<int64_t>(number);
      vector::StoreOp::create(
          b, getPair(fragment, half), memory, ValueRange(index.emit(address)),
          /*nontemporal=*/false, llvm::MaybeAlign(2 * getBytes()));
    }
}

void ResultTileEmitter::emitStores(int64_t slab, AffineExpr thread,
                                   int64_t numThreads, AffineExpr origin,
                                   std::array<AffineExpr, 2> begin,
                                   Finish finish) {
  int64_t across = tile.block[1] / tile.width;
  int64_t down = tile.block[0] / tile.part[0] * tile.slabRows;
  int64_t total = down * across;
  auto type = VectorType::get({tile.width}, tile.elementType);
  int64_t bytes = std::min<int64_t>(tile.width * getBytes(), 16);
  for (int64_t first = 0; first < total; first += numThreads) {
    OpBuilder::InsertionGuard guard(b);
    AffineExpr number = thread + first;
    auto emitIf = [&](Guard condition) {
      Value exists = index.emitGuard(condition);
      if (!exists)
        return;
      auto branch = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    };
    if (first + numThreads > total)
      emitIf({number, total});
    // Values of their own: what is divided is divided once.
    AffineExpr line = addValue(number.floorDiv(across), down);
    AffineExpr column = addValue(number % across, across) * tile.width;
    AffineExpr row = line.floorDiv(tile.slabRows) * tile.part[0] +
                     line % tile.slabRows + slab * tile.slabRows;
    row = row + begin[0];
    emitIf({row, tile.counts[0]});
    // A vector exists as a whole: its width divides the extent of its
    // dimension.
    AffineExpr position = begin[1] + column;
    emitIf({position, tile.counts[1]});
    Value values = vector::LoadOp::create(
        b, type, memory, ValueRange(index.emit(line * tile.pitch + column)),
        /*nontemporal=*/false, llvm::MaybeAlign(bytes));
    values = finish(values, row, position);
    AffineExpr target = origin + tile.sides[0].getOffset(row) +
                        tile.sides[1].getOffset(position);
    // 16 bits each.
    vector::StoreOp::create(b, values, output, ValueRange(index.emit(target)),
                            /*nontemporal=*/false,
                            llvm::MaybeAlign(tile.width * 2));
  }
}
