//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The plain data that planners take of a contraction, and its other forms: with
// a loop of one row, and with its scalar inputs combined.
//
//===----------------------------------------------------------------------===//

#include "StridedContraction.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

Type StridedContraction::getElementType() const {
  MLIRContext *context = output.buffer.getContext();
  return isOfIntegers() ? Type(IntegerType::get(context, 32))
                        : Float32Type::get(context);
}

static SmallVector<schedule::Guard, 4> getGuards(ArrayRef<Guard> guards) {
  SmallVector<schedule::Guard, 4> result;
  for (const Guard &guard : guards)
    result.push_back({getIndexExpr(guard.expr), guard.extent});
  return result;
}

schedule::TileNest StridedContraction::getNest() const {
  schedule::TileNest nest;
  for (const Contraction::Loop &loop : loops)
    nest.loops.push_back({loop.extent, loop.isReduction});
  auto getTensor = [](const StridedAccess &access) {
    schedule::StridedTensor tensor;
    tensor.strides.assign(access.strides.begin(), access.strides.end());
    tensor.size = access.size;
    tensor.isPrepacked = access.isPrepacked;
    return tensor;
  };
  nest.output = getTensor(output);
  for (const StridedAccess &input : scalarInputs)
    nest.scalarInputs.push_back(getTensor(input));
  for (const PackedAccess &input : vectorInputs) {
    schedule::IndexedTensor &tensor = nest.vectorInputs.emplace_back();
    tensor.address = getIndexExpr(input.address);
    tensor.size = input.size;
    for (AffineExpr index : input.index)
      tensor.index.push_back(getIndexExpr(index));
    tensor.shape.assign(input.shape.begin(), input.shape.end());
    tensor.isPrepacked = input.isPrepacked;
  }
  nest.guards = getGuards(guards);
  nest.isOfVNNIGroups = isOfVNNIGroups();
  nest.isOfInt16 = elements == ElementKind::Int16;
  nest.accumulates = accumulates;
  nest.batches.assign(batches.begin(), batches.end());
  nest.rows.assign(rows.begin(), rows.end());
  nest.columns.assign(columns.begin(), columns.end());
  nest.reductions.assign(reductions.begin(), reductions.end());
  for (const ColumnSegment &segment : segments) {
    schedule::ColumnSegment &part = nest.segments.emplace_back();
    for (AffineExpr address : segment.addresses)
      part.addresses.push_back(getIndexExpr(address));
    part.guards = getGuards(segment.guards);
  }
  return nest;
}

StridedContraction StridedContraction::withOneRow() const {
  StridedContraction result = *this;
  result.rows.push_back(result.loops.size());
  result.loops.push_back({/*extent=*/1, /*isReduction=*/false});
  result.output.strides.push_back(0);
  for (StridedAccess &access : result.scalarInputs)
    access.strides.push_back(0);
  return result;
}

std::optional<int64_t> kas::codegen::getCoefficient(AffineExpr expr,
                                                    unsigned dim) {
  if (auto position = dyn_cast<AffineDimExpr>(expr))
    return position.getPosition() == dim;
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return 0;
  if (binary.getKind() == AffineExprKind::Add) {
    auto left = getCoefficient(binary.getLHS(), dim);
    auto right = getCoefficient(binary.getRHS(), dim);
    if (left && right)
      return *left + *right;
    return std::nullopt;
  }
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  auto scaled = getCoefficient(binary.getLHS(), dim);
  if (binary.getKind() == AffineExprKind::Mul && factor && scaled)
    return *scaled * factor.getValue();
  if (expr.isFunctionOfDim(dim))
    return std::nullopt;
  return 0;
}

std::optional<CombinedInputs>
CombinedInputs::get(const StridedContraction &contraction) {
  auto found = schedule::CombinedInputs::get(contraction.getNest());
  if (!found)
    return std::nullopt;
  CombinedInputs result;
  result.inputs = contraction.scalarInputs;
  result.combined = *found;
  result.remainder = contraction;
  result.remainder.reductions.assign(found->reductions.begin(),
                                     found->reductions.end());
  StridedAccess access;
  access.strides.assign(found->input.strides.begin(),
                        found->input.strides.end());
  access.size = found->input.size;
  result.remainder.scalarInputs = {access};
  return result;
}
