//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ContractionEmitter.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

void ContractionEmitter::flattenBuffers() {
  output = flatten(contraction.output.buffer, contraction.output.size);
  for (const PackedAccess &input : contraction.vectorInputs)
    vectorInputs.push_back(flatten(input.buffer, input.size));
  for (const StridedAccess &input : contraction.scalarInputs)
    scalarInputs.push_back(flatten(input.buffer, input.size));
}

Value ContractionEmitter::tailMask(int64_t lanes, int64_t size) {
  auto type = VectorType::get({size}, builder.getI1Type());
  return vector::ConstantMaskOp::create(builder, loc, type,
                                        ArrayRef<int64_t>{lanes});
}

Value ContractionEmitter::loadSum(Value place, Piece piece, bool accumulates) {
  VectorType type = getVectorType(piece.lanes);
  if (accumulates && piece.active == piece.lanes)
    return vector::LoadOp::create(builder, loc, type, output, place);
  Value none = zeros(type);
  if (!accumulates)
    return none;
  return vector::MaskedLoadOp::create(builder, loc, type, output, place,
                                      tailMask(piece.active, piece.lanes),
                                      none);
}

void ContractionEmitter::storeSum(Value sum, Value place, Piece piece) {
  if (piece.active == piece.lanes)
    vector::StoreOp::create(builder, loc, sum, output, place);
  else
    vector::MaskedStoreOp::create(builder, loc, output, place,
                                  tailMask(piece.active, piece.lanes), sum);
}

Value ContractionEmitter::multiplyAdd(Value row, Value column, Value sum) {
  return LoopEmitter::multiplyAdd(row, column, sum, target.hasFMA);
}
