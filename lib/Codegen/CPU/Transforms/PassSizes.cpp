//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Buffers of dynamic shape cross functions as plain pointers and sizes:
// compiled functions have a C interface, in which upstream passes a buffer of
// static shape as a pointer, but one of dynamic shape as a descriptor. Runs
// after bufferization, before the conversion to the LLVM dialect.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/CPU/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASPASSSIZESPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace mlir;

/// Upstream passes only buffers of constant, positive steps as pointers.
static bool isPassedWithSizes(Type type) {
  auto buffer = dyn_cast<MemRefType>(type);
  // A dimension of size 0 makes strides of 0, which are not positive.
  return buffer &&
         (!buffer.hasStaticShape() || llvm::is_contained(buffer.getShape(), 0));
}

/// A memref of rank 0, whose descriptor has nothing but the pointer.
static MemRefType getPointerType(MemRefType type) {
  return MemRefType::get({}, type.getElementType(), MemRefLayoutAttrInterface(),
                         type.getMemorySpace());
}

/// The types as they are passed: pointers for buffers, then all dynamic sizes.
/// `(memref<?x8xf32>, f32, memref<?x?xf32>)` becomes `(memref<f32>, f32,
/// memref<f32>, index, index, index)`.
static SmallVector<Type> getPassedTypes(TypeRange types, Builder &b) {
  SmallVector<Type> passed, sizes;
  for (Type type : types) {
    bool isPointer = isPassedWithSizes(type);
    passed.push_back(isPointer ? getPointerType(cast<MemRefType>(type)) : type);
    if (isPointer)
      sizes.append(cast<MemRefType>(type).getNumDynamicDims(),
                   b.getIndexType());
  }
  llvm::append_range(passed, sizes);
  return passed;
}

/// The buffer of `type` at `pointer`.
static Value createBuffer(ImplicitLocOpBuilder &b, Value pointer,
                          MemRefType type, ArrayRef<Value> dynamicSizes) {
  // Row-major strides, from the last dimension on; constants as far as they are
  // known, so that addresses fold.
  SmallVector<OpFoldResult> sizes, steps(type.getRank());
  for (int64_t size : type.getShape()) {
    if (!ShapedType::isDynamic(size)) {
      sizes.push_back(b.getIndexAttr(size));
      continue;
    }
    sizes.push_back(dynamicSizes.front());
    dynamicSizes = dynamicSizes.drop_front();
  }
  OpFoldResult step = b.getIndexAttr(1);
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    steps[dim] = step;
    auto constant = getConstantIntValue(step);
    auto size = getConstantIntValue(sizes[dim]);
    if (constant && size) {
      step = b.getIndexAttr(*constant * *size);
      continue;
    }
    auto getValue = [&](OpFoldResult value) -> Value {
      if (auto known = dyn_cast<Value>(value))
        return known;
      return arith::ConstantIndexOp::create(b, *getConstantIntValue(value));
    };
    step = arith::MulIOp::create(b, getValue(step), getValue(sizes[dim]))
               .getResult();
  }
  auto [staticSteps, ignored] = decomposeMixedValues(steps);
  auto [shape, ignoredSizes] = decomposeMixedValues(sizes);
  auto strided = MemRefType::get(
      shape, type.getElementType(),
      StridedLayoutAttr::get(b.getContext(), /*offset=*/0, staticSteps),
      type.getMemorySpace());
  // The cast goes back to `type`, which has the identity layout.
  Value buffer = memref::ReinterpretCastOp::create(
      b, strided, pointer, OpFoldResult(b.getIndexAttr(0)), sizes, steps);
  return memref::CastOp::create(b, type, buffer);
}

/// The pointers and sizes to pass for `values`.
static SmallVector<Value> createPassed(ImplicitLocOpBuilder &b,
                                       ValueRange values) {
  SmallVector<Value> passed, sizes;
  for (Value value : values) {
    if (!isPassedWithSizes(value.getType())) {
      passed.push_back(value);
      continue;
    }
    auto type = cast<MemRefType>(value.getType());
    // Offset 0: `check` has made sure that buffers begin at their pointer.
    passed.push_back(memref::ReinterpretCastOp::create(
        b, getPointerType(type), value, OpFoldResult(b.getIndexAttr(0)),
        ArrayRef<OpFoldResult>(), ArrayRef<OpFoldResult>()));
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (type.isDynamicDim(dim))
        sizes.push_back(memref::DimOp::create(b, value, dim));
  }
  llvm::append_range(passed, sizes);
  return passed;
}

/// Refuses what cannot be passed as pointers and sizes: results whose buffers
/// the caller would have to know the size of, and arguments with strides.
static LogicalResult check(func::FuncOp function) {
  for (auto [index, type] : llvm::enumerate(function.getResultTypes()))
    if (isPassedWithSizes(type))
      return emitError(function.getLoc())
             << "requires results of static shape and with elements of "
                "functions that are called, for result "
             << index << " of '@" << function.getSymName() << "' got " << type;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
    if (auto buffer = dyn_cast<MemRefType>(type);
        buffer && !buffer.getLayout().isIdentity())
      return emitError(function.getLoc())
             << "requires rows that follow each other of the arguments of "
                "compiled functions, for argument "
             << index << " of '@" << function.getSymName() << "' got " << type;
  return success();
}

/// Changes the signature of `function` and makes buffers of the new arguments
/// at its begin.
static void rewriteArguments(func::FuncOp function) {
  SmallVector<Type> types(function.getArgumentTypes());
  Builder builder(function.getContext());
  SmallVector<Type> passed = getPassedTypes(types, builder);
  SmallVector<DictionaryAttr> attributes;
  function.getAllArgAttrs(attributes);
  // The sizes have no attributes.
  attributes.resize(passed.size(), builder.getDictionaryAttr({}));
  function.setFunctionType(FunctionType::get(
      function.getContext(), passed, function.getFunctionType().getResults()));
  function.setAllArgAttrs(attributes);
  if (function.isExternal())
    return;
  Block &entry = function.front();
  ImplicitLocOpBuilder b(function.getLoc(), function.getContext());
  b.setInsertionPointToStart(&entry);
  SmallVector<Value> sizes;
  for (Type type : ArrayRef(passed).drop_front(types.size()))
    sizes.push_back(entry.addArgument(type, function.getLoc()));
  ArrayRef<Value> left = sizes;
  for (auto [index, type] : llvm::enumerate(types)) {
    if (!isPassedWithSizes(type))
      continue;
    auto buffer = cast<MemRefType>(type);
    BlockArgument argument = entry.getArgument(index);
    argument.setType(passed[index]);
    if (argument.use_empty() && buffer.getNumDynamicDims() == 0)
      continue;
    unsigned count = buffer.getNumDynamicDims();
    Value made = createBuffer(b, argument, buffer, left.take_front(count));
    left = left.drop_front(count);
    // The operation that reads the pointer itself: `made` is a cast of its
    // result.
    Operation *first = made.getDefiningOp()->getOperand(0).getDefiningOp();
    argument.replaceAllUsesExcept(made, first);
  }
}

namespace {
struct PassSizes : kas::codegen::impl::KasPassSizesPassBase<PassSizes> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    // All functions change before the calls: a call must see the new type of
    // its callee.
    DenseSet<StringRef> changed;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (failed(check(function)))
        return signalPassFailure();
      if (llvm::any_of(function.getArgumentTypes(), isPassedWithSizes))
        changed.insert(function.getSymName());
    }
    if (changed.empty())
      return markAllAnalysesPreserved();
    for (auto function : module.getOps<func::FuncOp>())
      if (changed.contains(function.getSymName()))
        rewriteArguments(function);
    SmallVector<func::CallOp> calls;
    module.walk([&](func::CallOp call) {
      if (changed.contains(call.getCallee()))
        calls.push_back(call);
    });
    for (func::CallOp call : calls) {
      ImplicitLocOpBuilder b(call.getLoc(), call);
      call.getOperandsMutable().assign(createPassed(b, call.getOperands()));
    }
  }
};
} // namespace
