//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Epilogues of vectors read other tensors as widely as they are stored: a
// residual as a vector, a bias that is the same for all lanes once.
//
//===----------------------------------------------------------------------===//

#include "Epilogue.h"
#include "../Strategy/KernelProblem.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

Value kas::codegen::emitAccess(ImplicitLocOpBuilder &b, IndexEmitter &index,
                               const TensorAccess &access, Value buffer,
                               ArrayRef<AffineExpr> coordinates, Type type) {
  // A tensor that nothing has initialized is zero, as good as any value.
  auto createFill = [&]() -> Value {
    Attribute fill = access.fill ? access.fill : b.getZeroAttr(type);
    return arith::ConstantOp::create(b, cast<TypedAttr>(fill));
  };
  if (!access.source)
    return createFill();
  auto substitute = [&](AffineExpr expr) {
    return index.simplify(expr.replaceDims(coordinates));
  };
  SmallVector<AffineExpr> indices =
      llvm::map_to_vector(access.indices, substitute);
  ArrayRef<int64_t> shape =
      cast<ShapedType>(access.source.getType()).getShape();
  Value condition;
  for (const Guard &guard : access.guards) {
    Value holds = index.emitGuard({substitute(guard.expr), guard.extent});
    if (holds)
      condition =
          condition ? Value(arith::AndIOp::create(b, condition, holds)) : holds;
  }
  Value address = index.emit(linearize(indices, shape, b.getContext()));
  // Some element is read in any case, one of the tensor's.
  if (condition)
    address =
        arith::SelectOp::create(b, condition, address, index.createConstant(0));
  Value value = memref::LoadOp::create(b, buffer, address);
  // Padding has its own value, not that of the element at address 0.
  if (condition)
    value = arith::SelectOp::create(b, condition, value, createFill());
  return value;
}

namespace {

class EpilogueEmitter {
public:
  EpilogueEmitter(ImplicitLocOpBuilder &b, IndexEmitter &index,
                  const Epilogue &epilogue, ValueRange inputs,
                  AffineExpr address, ArrayRef<AffineExpr> coordinates,
                  int64_t numLanes)
      : b(b), index(index), epilogue(epilogue), op(epilogue.op), inputs(inputs),
        address(address), coordinates(coordinates), numLanes(numLanes) {}

  SmallVector<Value> emit(ArrayRef<Value> sums);

private:
  /// Operand `number` in each lane.
  SmallVector<Value> emitOperand(unsigned number);
  /// The lanes of a vector that is read at the address of the result.
  SmallVector<Value> emitVector(Value buffer);
  /// Whether all lanes read the same element.
  bool isUniform(const TensorAccess &access) const;
  Value emitBody(ArrayRef<Value> operands);
  Value getBuffer(const TensorAccess &access) const {
    return inputs[llvm::find(epilogue.inputs, access.source) -
                  epilogue.inputs.begin()];
  }

  ImplicitLocOpBuilder &b;
  IndexEmitter &index;
  const Epilogue &epilogue;
  linalg::GenericOp op;
  ValueRange inputs;
  /// Of the first lane.
  AffineExpr address;
  SmallVector<AffineExpr> coordinates;
  int64_t numLanes;
};

} // namespace

// Lanes stay within the last dimensions together whose elements their number
// divides.
bool EpilogueEmitter::isUniform(const TensorAccess &access) const {
  ArrayRef<int64_t> shape = epilogue.getShape();
  int64_t elements = 1;
  for (size_t i = shape.size(); i-- > 0 && elements % numLanes != 0;) {
    elements *= shape[i];
    auto depends = [&](AffineExpr expr) { return expr.isFunctionOfDim(i); };
    if (llvm::any_of(access.indices, depends) ||
        llvm::any_of(access.guards,
                     [&](const Guard &guard) { return depends(guard.expr); }))
      return false;
  }
  return true;
}

SmallVector<Value> EpilogueEmitter::emitVector(Value buffer) {
  Type type = cast<MemRefType>(buffer.getType()).getElementType();
  int64_t bytes = numLanes * type.getIntOrFloatBitWidth() / 8;
  Value values = vector::LoadOp::create(
      b, VectorType::get({numLanes}, type), buffer,
      ValueRange(index.emit(address)),
      /*nontemporal=*/false, llvm::MaybeAlign(std::min<int64_t>(bytes, 16)));
  SmallVector<Value> lanes;
  for (int64_t i = 0; i < numLanes; ++i)
    lanes.push_back(vector::ExtractOp::create(b, values, ArrayRef<int64_t>{i}));
  return lanes;
}

SmallVector<Value> EpilogueEmitter::emitOperand(unsigned number) {
  const TensorAccess &access = epilogue.accesses[number];
  Type type = getElementTypeOrSelf(op->getOperand(number).getType());
  Value buffer = access.source ? getBuffer(access) : Value();
  if (numLanes == 1 || isUniform(access))
    return SmallVector<Value>(
        numLanes, emitAccess(b, index, access, buffer, coordinates, type));
  // Narrower elements have no address of their own in a vector.
  if (epilogue.isWhole[number] && type.getIntOrFloatBitWidth() % 8 == 0)
    return emitVector(buffer);
  SmallVector<Value> lanes;
  for (int64_t i = 0; i < numLanes; ++i)
    lanes.push_back(emitAccess(b, index, access, buffer,
                               delinearize(address + i, epilogue.getShape()),
                               type));
  return lanes;
}

Value EpilogueEmitter::emitBody(ArrayRef<Value> operands) {
  IRMapping mapping;
  Block *body = op.getBody();
  for (auto [argument, value] : llvm::zip_equal(body->getArguments(), operands))
    if (value)
      mapping.map(argument, value);
  for (Operation &inner : body->without_terminator())
    b.clone(inner, mapping);
  return mapping.lookupOrDefault(body->getTerminator()->getOperand(0));
}

SmallVector<Value> EpilogueEmitter::emit(ArrayRef<Value> sums) {
  unsigned numOperands = op->getNumOperands();
  // By lane.
  SmallVector<SmallVector<Value>> operands(numLanes,
                                           SmallVector<Value>(numOperands));
  for (unsigned number = 0; number < numOperands; ++number) {
    BlockArgument argument = op.getBody()->getArgument(number);
    if (argument.use_empty())
      continue;
    SmallVector<Value> lanes =
        epilogue.isSum[number] ? SmallVector<Value>(sums) : emitOperand(number);
    for (auto [list, value] : llvm::zip_equal(operands, lanes)) {
      // Results of operators on 16 bits are rounded before others read them.
      if (value.getType() != argument.getType())
        value = arith::TruncFOp::create(b, argument.getType(), value);
      list[number] = value;
    }
  }
  return llvm::map_to_vector(
      operands, [&](ArrayRef<Value> list) { return emitBody(list); });
}

Value kas::codegen::emitEpilogue(ImplicitLocOpBuilder &b, IndexEmitter &index,
                                 const Epilogue &epilogue,
                                 ArrayRef<int64_t> shape, ValueRange inputs,
                                 Value value,
                                 ArrayRef<AffineExpr> coordinates) {
  auto type = dyn_cast<VectorType>(value.getType());
  int64_t numLanes = type ? type.getNumElements() : 1;
  AffineExpr address =
      index.simplify(linearize(coordinates, shape, b.getContext()));
  // Through a reshape the coordinates are others.
  SmallVector<AffineExpr> own(coordinates);
  if (shape != epilogue.getShape())
    own = delinearize(address, epilogue.getShape());
  SmallVector<Value> sums;
  for (int64_t i = 0; i < numLanes; ++i)
    sums.push_back(
        type ? Value(vector::ExtractOp::create(b, value, ArrayRef<int64_t>{i}))
             : value);
  SmallVector<Value> results =
      EpilogueEmitter(b, index, epilogue, inputs, address, own, numLanes)
          .emit(sums);
  if (!type)
    return results.front();
  return vector::FromElementsOp::create(
      b, VectorType::get({numLanes}, results.front().getType()), results);
}
