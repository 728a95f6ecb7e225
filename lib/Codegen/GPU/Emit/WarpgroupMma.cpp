//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products of warpgroup kernels, from workgroup memory to the result.
// A descriptor names a matrix in swizzled lines of 128 bytes (PTX ISA, "Matrix
// descriptor format"; `kas_gpu.matrix_descriptor`). Sums are distributed as the
// fragments of wgmma.m64nNk16: warp w has rows 16 w to 16 w + 15, its lanes the
// same elements as with mma.m16n8.
//
//===----------------------------------------------------------------------===//

#include "WarpgroupKernel.h"
#include "kas/Codegen/GPU/Strategy/Device.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// The descriptor of the lines from `lines` on that the warpgroup multiplies.
/// `stride`: eight lines of memory take 1024 bytes. `leading`: where lines are
/// rows or columns, 64 steps have 64 lines, 8 KiB, before the next 64 rows or
/// columns; where lines are steps it is not read, and 16 is a valid value.
Value WarpgroupKernelEmitter::emitDescriptor(unsigned number, int64_t lines,
                                             Value buffer) {
  const Part &part = parts[number];
  Value first = index.emit((part.warpgroup + lines) * unit);
  Value offset = arith::AddIOp::create(
      b, arith::MulIOp::create(b, buffer, index.createConstant(part.size)),
      first);
  int64_t leading = view.sides[number].stepsFirst ? 16 : unit * unit * 2;
  return MatrixDescriptorOp::create(b, b.getI64Type(), part.memory, offset,
                                    leading, /*stride=*/1024);
}

/// Begins the products of one block of steps, as a group.
SmallVector<Value> WarpgroupKernelEmitter::emitProducts(ValueRange sums,
                                                        Value buffer) {
  SmallVector<Value> results(sums), rows;
  for (int64_t line = 0; line < getTile(0); line += 64)
    rows.push_back(emitDescriptor(0, line, buffer));
  Value columns = emitDescriptor(1, 0, buffer);
  // Steps are 16 elements of a line of memory, or 16 lines.
  auto move = [&](unsigned number, Value descriptor, int64_t step) -> Value {
    int64_t bytes = step * 2 * (view.sides[number].stepsFirst ? 1 : unit);
    if (bytes == 0)
      return descriptor;
    // The address of a descriptor counts units of 16 bytes.
    Value distance =
        arith::ConstantOp::create(b, b.getI64IntegerAttr(bytes / 16));
    return arith::AddIOp::create(b, descriptor, distance);
  };
  // Orders the registers of the sums before the products that update them.
  WarpgroupFenceOp::create(b);
  for (int64_t step = 0; step < unit; step += instructionSteps) {
    Value column = move(1, columns, step);
    for (auto [row, sum] : llvm::zip_equal(rows, results))
      sum = WarpgroupMmaOp::create(b, sum.getType(), move(0, row, step),
                                   parts[0].memory, column, parts[1].memory,
                                   sum, !view.sides[0].stepsFirst,
                                   !view.sides[1].stepsFirst);
  }
  WarpgroupCommitOp::create(b);
  return results;
}

/// Waits until at most `groups` groups of products are running. The sums go
/// through it, so that nothing reads them earlier.
SmallVector<Value> WarpgroupKernelEmitter::emitWait(ValueRange sums,
                                                    int64_t groups) {
  return WarpgroupWaitOp::create(b, sums.getTypes(), groups, sums)
      ->getResults();
}

/// Stores the sums of one row that a lane has: of every eight columns, two.
void WarpgroupKernelEmitter::emitRow(Value sums, unsigned half,
                                     AffineExpr row) {
  OpBuilder::InsertionGuard guard(b);
  if (Value exists = index.emitGuard({row, view.sides[0].numLines})) {
    auto branch = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  AffineExpr first = parts[1].begin + parts[1].warpgroup + lane % 4 * 2;
  for (int64_t column = 0; column < getTile(1); column += 8)
    for (int64_t i = 0; i < 2; ++i) {
      AffineExpr position = first + (column + i);
      OpBuilder::InsertionGuard guard(b);
      if (Value exists = index.emitGuard({position, view.sides[1].numLines})) {
        auto branch = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
        b.setInsertionPointToStart(branch.thenBlock());
      }
      Value value = vector::ExtractOp::create(
          b, sums, ArrayRef<int64_t>{column / 8, half, i});
      emitResult(value,
                 {{view.batches, batch},
                  {view.sides[0].axes,
                   delinearize(row, getExtents(view.sides[0].axes))},
                  {view.sides[1].axes,
                   delinearize(position, getExtents(view.sides[1].axes))}});
    }
}

void WarpgroupKernelEmitter::emitTile(ValueRange sums) {
  ResultTileEmitter results(*tile, b, index, tileMemory, output,
                            getGPUDevice(kernel));
  AffineExpr origin = getResultOffset(view.batches, batch);
  auto getFragment = [&](int64_t row, int64_t column) {
    return emitMean(vector::ExtractOp::create(b, sums[row / 64],
                                              ArrayRef<int64_t>{column / 8}));
  };
  // The warpgroup's number along the rows times its rows in a slab.
  AffineExpr line =
      parts[0].warpgroup.floorDiv(getTile(0)) * tile->slabRows + warp * 16;
  for (int64_t slab = 0; slab < tile->getNumSlabs(); ++slab) {
    // All products are done, and nothing is read of the slab before any more.
    gpu::BarrierOp::create(b);
    for (int64_t row = 0; row < tile->slabRows; row += 64)
      for (int64_t column = 0; column < getTile(1); column += 16) {
        int64_t first = slab * tile->slabRows + row;
        results.emitFragments(
            lane, line + row, parts[1].warpgroup + column,
            {getFragment(first, column), getFragment(first, column + 8)});
      }
    gpu::BarrierOp::create(b);
    auto finishRow = [&](Value values, AffineExpr row, AffineExpr column) {
      return emitEpilogue(
          values, getCoordinates(
                      {{view.batches, batch},
                       {view.sides[0].axes,
                        delinearize(row, getExtents(view.sides[0].axes))},
                       {view.sides[1].axes,
                        delinearize(column, getExtents(view.sides[1].axes))}}));
    };
    results.emitStores(
        {slab, origin, {parts[0].begin, parts[1].begin}, finishRow},
        {thread, launch.block[0]});
  }
}

/// Stores all sums: for each 64 rows of the tile, the two rows of a lane.
void WarpgroupKernelEmitter::finish(ValueRange sums) {
  if (tile)
    return emitTile(sums);
  for (auto [number, rows] : llvm::enumerate(sums))
    for (unsigned half = 0; half < 2; ++half)
      emitRow(rows, half,
              parts[0].begin + parts[0].warpgroup + warp * 16 +
                  lane.floorDiv(4) +
                  (static_cast<int64_t>(number) * 64 + 8 * half));
}
