//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loads, stores and multiply-adds of vectors that all strategies for
// contractions share, with masks for the lanes beyond the end of a dimension.
//
// Buffers are viewed as one dimension (`flatten`), since plans give addresses
// as `base + sum of stride * index`. Sums are f32, or i32 for int8 inputs; bf16
// and int8 inputs are read as VNNI groups of 32 bits, the VNNI groups of two or
// four elements that one instruction multiplies and adds up.
//
//===----------------------------------------------------------------------===//

#include "ContractionEmitter.h"
#include "../Strategy/ContractionEpilogue.h"
#include "kas/Dialect/KasCPU/IR/KasCPUOps.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

void ContractionEmitter::flattenBuffers() {
  // The largest addresses (`size`) rather than shapes: the output may be a view
  // with strides.
  output = flatten(contraction.output.buffer, contraction.output.size);
  // `output` is where sums are read from, `result` where they are stored; they
  // differ where an elementwise operation writes to another buffer.
  result = output;
  for (const PackedAccess &input : contraction.vectorInputs)
    vectorInputs.push_back(flattenInput(input.buffer, input.size));
  for (const StridedAccess &input : contraction.scalarInputs)
    scalarInputs.push_back(flattenInput(input.buffer, input.size));
}

void ContractionEmitter::flattenEpilogue() {
  result = output;
  if (!options.epilogue)
    return;
  auto getSize = [](Value buffer) {
    return cast<MemRefType>(buffer.getType()).getNumElements();
  };
  const ContractionEpilogue &epilogue = *options.epilogue;
  if (epilogue.bias)
    bias = flatten(epilogue.bias, getSize(epilogue.bias));
  if (!epilogue.elementwise)
    return;
  for (const ContractionEpilogue::Input &input : epilogue.inputs)
    epilogueInputs.push_back(
        input.buffer ? flatten(input.buffer, getSize(input.buffer)) : Value());
  result = flatten(epilogue.result, contraction.output.size);
}

Value ContractionEmitter::tailMask(int64_t lanes, int64_t size) {
  // A constant mask: LLVM makes `active` scalar accesses without branches of it
  // where the target has no masked ones.
  auto type = VectorType::get({size}, builder.getI1Type());
  return vector::ConstantMaskOp::create(builder, loc, type,
                                        ArrayRef<int64_t>{lanes});
}

Value ContractionEmitter::loadSum(Value place, Piece piece, bool accumulates) {
  return accumulates ? loadPiece(output, place, piece)
                     : zeros(getVectorType(piece.lanes));
}

Value ContractionEmitter::loadPiece(Value buffer, Value place, Piece piece) {
  VectorType type = getVectorType(buffer, piece.lanes);
  if (piece.active == piece.lanes)
    return vector::LoadOp::create(builder, loc, type, buffer, place);
  return vector::MaskedLoadOp::create(builder, loc, type, buffer, place,
                                      tailMask(piece.active, piece.lanes),
                                      zeros(type));
}

void ContractionEmitter::storeSum(Value sum, Value place, Piece piece) {
  if (piece.active == piece.lanes) {
    vector::StoreOp::create(builder, loc, sum, result, place);
    return;
  }
  if (target.hasMaskRegisters) {
    vector::MaskedStoreOp::create(builder, loc, result, place,
                                  tailMask(piece.active, piece.lanes), sum);
    return;
  }
  // In parts of 4, 2 and 1 elements, each of which one instruction stores.
  for (int64_t start = 0, size = piece.lanes; start < piece.active; size /= 2) {
    if (start + size > piece.active)
      continue;
    Value part = vector::ExtractStridedSliceOp::create(builder, loc, sum, start,
                                                       size, /*strides=*/1);
    vector::StoreOp::create(builder, loc, part, result,
                            apply(dim(0) + start, {place}));
    start += size;
  }
}

Value ContractionEmitter::multiplyAdd(Value row, Value column, Value sum) {
  if (!contraction.isOfVNNIGroups())
    return LoopEmitter::multiplyAdd(row, column, sum, target.hasFMA);
  int64_t lanes = cast<VectorType>(sum.getType()).getDimSize(0);
  VectorType type;
  switch (contraction.elements) {
  case ElementKind::BFloats:
    type = VectorType::get({2 * lanes}, builder.getBF16Type());
    break;
  case ElementKind::Int16:
    type = VectorType::get({2 * lanes}, builder.getI16Type());
    break;
  default:
    type = VectorType::get({4 * lanes}, builder.getI8Type());
  }
  // From 32-bit VNNI groups to the elements of their VNNI groups:
  // `vector<8xi32>` is `vector<32xi8>` or `vector<16xbf16>`.
  row = vector::BitCastOp::create(builder, loc, type, row);
  column = vector::BitCastOp::create(builder, loc, type, column);
  // `kas_cpu.dot` takes the unsigned operand first, as `vpdpbusd` does.
  if (contraction.elements == ElementKind::UnsignedVectorInt8)
    std::swap(row, column);
  return DotOp::create(builder, loc, sum.getType(), row, column, sum);
}
