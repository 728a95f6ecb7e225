//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products of tensor-core kernels, from workgroup memory to the result.
// Fragments are distributed over the 32 lanes of a warp as the PTX ISA says
// ("Matrix fragments for mma.m16n8k16", "mma.m16n8k8", "ldmatrix"). Of the
// sums, a lane holds of each 16x8 block
//
//    rows    lane / 4 and lane / 4 + 8
//    columns 2 * (lane % 4) and the one after it
//
//===----------------------------------------------------------------------===//

#include "TensorCoreKernel.h"
#include "kas/Codegen/GPU/Strategy/Device.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// ldmatrix reads four matrices of eight lines of 16 bytes; lane l says where
/// line l % 8 of matrix l / 8 begins. In a fragment of rows the first two
/// matrices are rows 0 to 7 and 8 to 15 at the first steps, in one of columns
/// the first two are the steps of columns 0 to 7.
void TensorCoreKernelEmitter::addFragmentAddresses() {
  for (unsigned number = 0; number < 2; ++number) {
    const TensorCorePart &part = parts[number];
    AffineExpr line = warp[number] * getTile(number);
    AffineExpr step = constant(0);
    if (!part.stepsFirst && unit == 4) {
      // One element for each lane, read without ldmatrix.
      line = line + lane.floorDiv(4);
      step = lane % 4;
    } else {
      AffineExpr low = lane.floorDiv(8) % 2, high = lane.floorDiv(16);
      // The A operand of `mma` wants rows before steps, B steps before columns.
      AffineExpr lineBlock = number == 0 ? low : high;
      AffineExpr stepBlock = number == 0 ? high : low;
      line = line + lineBlock * 8;
      step = stepBlock * unit;
      if (part.stepsFirst)
        line = line + lane % 8;
      else
        step = step + lane % 8;
    }
    // One value, hoisted out of the main loop: fragments differ by constants.
    fragment[number] = addValue(part.stepsFirst ? line * part.pitch + step
                                                : step * part.pitch + line,
                                part.size);
  }
}

/// 16 rows or columns from `line` on, at the steps of an instruction: four
/// registers, ordered as the matrices of ldmatrix.
Value TensorCoreKernelEmitter::emitFragment(unsigned number, int64_t line,
                                            int64_t step, Value buffer) {
  const TensorCorePart &part = parts[number];
  // The address of a fragment `lines` and `steps` from the warp's first one.
  auto at = [&](int64_t lines, int64_t steps) {
    int64_t offset = part.stepsFirst ? lines * part.pitch + steps
                                     : steps * part.pitch + lines;
    return addOffset(index.emit(fragment[number] + offset), buffer, part.size);
  };
  auto type = VectorType::get({4, 4 / (factorType.getIntOrFloatBitWidth() / 8)},
                              factorType);
  if (part.stepsFirst || unit == 8)
    return nvgpu::LdMatrixOp::create(b, type, part.memory,
                                     ValueRange(at(line, step)),
                                     /*transpose=*/!part.stepsFirst,
                                     /*numTiles=*/4);
  // Elements of 32 bits that must be transposed: `ldmatrix` transposes pairs of
  // 16 bits only.
  SmallVector<Value> registers;
  for (int64_t i = 0; i < 4; ++i) {
    int64_t low = i % 2, high = i / 2;
    Value address = at(line + 8 * (number == 0 ? low : high),
                       step + 4 * (number == 0 ? high : low));
    Value element = memref::LoadOp::create(b, part.memory, address);
    registers.push_back(vector::BroadcastOp::create(
        b, VectorType::get({1}, factorType), element));
  }
  return emitVector(registers);
}

/// The vector of `registers`, which are vectors.
Value TensorCoreKernelEmitter::emitVector(ArrayRef<Value> registers) {
  auto inner = cast<VectorType>(registers.front().getType());
  auto type = VectorType::get(
      {static_cast<int64_t>(registers.size()), inner.getDimSize(0)},
      factorType);
  Value result = arith::ConstantOp::create(b, b.getZeroAttr(type));
  for (auto [i, value] : llvm::enumerate(registers))
    result = vector::InsertOp::create(
        b, value, result, ArrayRef<int64_t>{static_cast<int64_t>(i)});
  return result;
}

/// Adds the products of one block of steps. Sums are ordered by rows, each
/// those of 16 rows and 8 columns.
SmallVector<Value> TensorCoreKernelEmitter::emitProducts(ValueRange sums,
                                                         Value buffer) {
  SmallVector<Value> results(sums);
  int64_t perRow = getTile(1) / 8;
  SmallVector<int64_t> rounded;
  for (unsigned number = 0; number < 2 && unit == 4; ++number)
    if (isRounded(number))
      rounded.push_back(number);
  for (int64_t step = 0; step < depth; step += instructionSteps) {
    SmallVector<Value> rows, columns;
    for (int64_t row = 0; row < getTile(0); row += 16)
      rows.push_back(emitFragment(0, row, step, buffer));
    // One ldmatrix reads the columns of two instructions (8 each).
    for (int64_t column = 0; column < getTile(1); column += 16) {
      Value both = emitFragment(1, column, step, buffer);
      for (int64_t half = 0; half < 2; ++half) {
        Value first =
            vector::ExtractOp::create(b, both, ArrayRef<int64_t>{2 * half});
        Value second =
            vector::ExtractOp::create(b, both, ArrayRef<int64_t>{2 * half + 1});
        columns.push_back(emitVector({first, second}));
      }
    }
    for (auto [i, row] : llvm::enumerate(rows))
      for (auto [j, column] : llvm::enumerate(columns)) {
        Value &sum = results[i * perRow + j];
        auto product = nvgpu::MmaSyncOp::create(
            b, row, column, sum, ArrayRef<int64_t>{16, 8, instructionSteps},
            /*tf32Enabled=*/unit == 4);
        if (!rounded.empty())
          product->setAttr(KasGPUDialect::roundedName,
                           b.getDenseI64ArrayAttr(rounded));
        sum = product;
      }
  }
  return results;
}

/// Stores the two neighbours of `sums` in row `row`, from `column` on.
void TensorCoreKernelEmitter::emitPair(Value sums, unsigned half,
                                       AffineExpr row, AffineExpr column) {
  bool isVector =
      getResultWidth(view.batches, parts[0].axes, parts[1].axes) > 1;
  for (int64_t i = 0; i < 2; ++i) {
    OpBuilder::InsertionGuard guard(b);
    // A vector exists as a whole.
    if (Value exists = index.emitGuard({column + i, parts[1].numLines})) {
      auto branch = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    Value value =
        isVector
            ? vector::ExtractOp::create(b, sums, ArrayRef<int64_t>{half})
            : vector::ExtractOp::create(b, sums, ArrayRef<int64_t>{half, i});
    emitResult(
        value,
        {{view.batches, batch},
         {parts[0].axes, delinearize(row, getExtents(parts[0].axes))},
         {parts[1].axes, delinearize(column + i, getExtents(parts[1].axes))}});
    if (isVector)
      return;
  }
}

void TensorCoreKernelEmitter::emitFragments(ArrayRef<Value> sums) {
  auto getFirst = [&](unsigned number) {
    return getBegin(number) + warp[number] * getTile(number);
  };
  for (int64_t row = 0; row < getTile(0); row += 16)
    for (int64_t column = 0; column < getTile(1); column += 8) {
      for (unsigned half = 0; half < 2; ++half) {
        AffineExpr line = getFirst(0) + lane.floorDiv(4) + (row + 8 * half);
        AffineExpr position = getFirst(1) + lane % 4 * 2 + column;
        OpBuilder::InsertionGuard guard(b);
        if (Value exists = index.emitGuard({line, parts[0].numLines})) {
          auto branch = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
          b.setInsertionPointToStart(branch.thenBlock());
        }
        emitPair(sums.front(), half, line, position);
      }
      sums = sums.drop_front();
    }
}

void TensorCoreKernelEmitter::emitTile(ArrayRef<Value> sums) {
  ResultTileEmitter results(*tile, b, index, tileMemory, output,
                            getGPUDevice(kernel));
  AffineExpr origin = getResultOffset(view.batches, batch);
  int64_t perRow = getTile(1) / 8;
  for (int64_t slab = 0; slab < tile->getNumSlabs(); ++slab) {
    // Nothing is read of the matrices, or of the slab before, any more.
    gpu::BarrierOp::create(b);
    AffineExpr line = warp[0] * tile->slabRows;
    for (int64_t row = 0; row < tile->slabRows; row += 16)
      for (int64_t column = 0; column < getTile(1); column += 16) {
        int64_t first =
            (slab * tile->slabRows + row) / 16 * perRow + column / 8;
        results.emitFragments(
            lane, line + row, warp[1] * getTile(1) + column,
            {emitMean(sums[first]), emitMean(sums[first + 1])});
      }
    gpu::BarrierOp::create(b);
    auto finishRow = [&](Value values, AffineExpr row, AffineExpr column) {
      return emitEpilogue(
          values,
          getCoordinates(
              {{view.batches, batch},
               {parts[0].axes, delinearize(row, getExtents(parts[0].axes))},
               {parts[1].axes,
                delinearize(column, getExtents(parts[1].axes))}}));
    };
    results.emitStores({slab, origin, {getBegin(0), getBegin(1)}, finishRow},
                       {thread, launch.block[0]});
  }
}

void TensorCoreKernelEmitter::finish(ArrayRef<Value> sums) {
  if (tile)
    emitTile(sums);
  else
    emitFragments(sums);
}
