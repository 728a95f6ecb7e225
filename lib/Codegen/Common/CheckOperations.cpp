//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations that the pipeline for CPUs does not take are errors at its head,
// and what it left is one at its end. Upstream's conversions say "failed to
// legalize operation" without a cause, and some crash on types that they do not
// expect. Both checks name the operation or type instead, with the pass that
// would lower it (LoweringHints.cpp).
//
//===----------------------------------------------------------------------===//

#include "LoweringHints.h"
#include "kas/Codegen/Common/Passes.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/MathExtras.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASCHECKOPERATIONSPASS
#define GEN_PASS_DEF_KASCHECKLOWEREDPASS
#include "kas/Codegen/Common/Passes.h.inc"
} // namespace kas::codegen

using namespace kas::codegen;
using namespace mlir;

/// Of which the pipeline lowers all operations, or those that have an
/// interface for that.
static constexpr StringLiteral dialects[] = {
    "affine", "arith", "bufferization", "cf",     "complex", "func",
    "index",  "kas",   "kas_cpu",       "llvm",   "linalg",  "math",
    "memref", "omp",   "scf",           "tensor", "ub",      "vector"};

static bool isOfLoweredDialect(Operation *op) {
  return llvm::is_contained(dialects, op->getName().getDialectNamespace());
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Whether conversions to LLVM take elements of `type`.
static bool isElement(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    type = vector.getElementType();
  if (auto complex = dyn_cast<ComplexType>(type))
    type = complex.getElementType();
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.getWidth() > 0 && integer.getWidth() <= 128;
  return type.isIndex() || type.isF16() || type.isBF16() || type.isF32() ||
         type.isF64();
}

/// Whether the bytes of a tensor of `shape` can be counted.
static bool isCountable(ShapedType type) {
  // 16: the largest element, an integer of 128 bits or two f64.
  int64_t bytes = 16;
  for (int64_t size : type.getShape())
    if (!ShapedType::isDynamic(size) && size != 0 &&
        llvm::MulOverflow(bytes, size, bytes))
      return false;
  return true;
}

/// What is required of `type` and does not hold; empty: it is fine.
static StringRef findFault(Type type) {
  if (isa<UnrankedTensorType, UnrankedMemRefType>(type))
    return "a rank";
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped)
    return isa<FloatType, IntegerType, ComplexType>(type) && !isElement(type)
               ? "f16, bf16, f32, f64, integers of at most 128 bits, or "
                 "complex "
                 "numbers of them"
               : "";
  if (!isElement(shaped.getElementType()) &&
      !isa<MemRefType>(shaped.getElementType()))
    return "elements of f16, bf16, f32, f64, integers of at most 128 bits, or "
           "complex numbers of them";
  if (!isCountable(shaped))
    return "less than 2^59 elements";
  // Vectors are unrolled into scalars or registers.
  if (isa<VectorType>(type) && shaped.getNumElements() > 65536)
    return "vectors of at most 65536 elements";
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.getEncoding() ? "no encoding" : "";
  if (auto buffer = dyn_cast<MemRefType>(type))
    return buffer.isStrided() ? "" : "a strided layout";
  return "";
}

//===----------------------------------------------------------------------===//
// The head
//===----------------------------------------------------------------------===//

/// Whether bufferization has to do with `op`.
static bool isOnTensors(Operation *op) {
  return llvm::any_of(op->getOperandTypes(), llvm::IsaPred<TensorType>) ||
         llvm::any_of(op->getResultTypes(), llvm::IsaPred<TensorType>);
}

/// Operators, spaces and kernels beside functions are text to the pipeline.
static bool isDeclaration(Operation *op) {
  return op->getName().getDialectNamespace() == "kas" &&
         isa_and_present<ModuleOp>(op->getParentOp());
}

/// Whether bufferization takes an operation on tensors, and what follows takes
/// it then.
static bool isLowered(Operation *op) {
  // A module is the root only; nested ones have no lowering.
  if (!op->isRegistered() || !isOfLoweredDialect(op))
    return isa<ModuleOp>(op) && !op->getParentOp();
  // Left by `-kas-decompose`: a softmax of integers, or on buffers.
  if (isa<linalg::AggregatedOpInterface>(op))
    return false;
  if (op->getName().getDialectNamespace() == "kas" ||
      op->hasTrait<OpTrait::IsTerminator>() || !isOnTensors(op) ||
      isa<tensor::ConcatOp>(op))
    return true;
  return isa<bufferization::BufferizableOpInterface>(op);
}

/// Whether upstream can tell which dimensions of size 1 a view drops: it
/// compares strides without the steps, and crashes where they differ.
static bool hasClearDimensions(memref::SubViewOp op) {
  int64_t numDropped = op.getSourceType().getRank() - op.getType().getRank();
  return numDropped == 0 || llvm::count(op.getStaticSizes(), 1) == numDropped ||
         llvm::all_of(op.getStaticStrides(), [](int64_t s) { return s == 1; });
}

/// Whether `-symbol-dce` erases `op` later, such as the seed of random numbers
/// that torch-mlir writes.
static bool isUnused(Operation *op) {
  auto symbol = dyn_cast<SymbolOpInterface>(op);
  return symbol && symbol.isPrivate() &&
         SymbolTable::symbolKnownUseEmpty(op, op->getParentOp());
}

namespace {
struct CheckOperations
    : kas::codegen::impl::KasCheckOperationsPassBase<CheckOperations> {
  using KasCheckOperationsPassBase::KasCheckOperationsPassBase;

  void runOnOperation() override {
    // Of the module before.
    seen.clear();
    // Before the regions: a declaration or a symbol that is erased may hold
    // what no pass takes.
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isDeclaration(op) || (!onlyRanks && !isLowered(op) && isUnused(op)))
        return WalkResult::skip();
      if (succeeded(check(op)))
        return WalkResult::advance();
      signalPassFailure();
      return WalkResult::interrupt();
    });
    markAllAnalysesPreserved();
  }

  LogicalResult check(Operation *op) {
    if (!onlyRanks && !isLowered(op))
      return emitError(op->getLoc())
             << "the pipeline for CPUs requires "
             << (op->isRegistered() ? "an operation that it lowers, got '"
                                    : "registered operations, got '")
             << op->getName() << "'" << getLoweringHint(op);
    if (auto view = dyn_cast<memref::SubViewOp>(op);
        view && !hasClearDimensions(view))
      return view.emitOpError("that drops some of its dimensions of size 1 "
                              "requires strides of 1, got [")
             << ArrayRef(view.getStaticStrides()) << "]";
    auto checkType = [&](Type type, Location loc) -> LogicalResult {
      // A type is checked once, where it occurs first.
      if (!seen.insert(type).second)
        return success();
      bool isChecked =
          !onlyRanks || isa<UnrankedTensorType, UnrankedMemRefType>(type);
      if (StringRef fault = isChecked ? findFault(type) : ""; !fault.empty())
        return emitError(loc)
               << "the pipeline for " << (onlyRanks ? "GPUs" : "CPUs")
               << " requires " << fault << ", got " << type << " in '"
               << op->getName() << "'";
      return success();
    };
    for (Type type : op->getResultTypes())
      if (failed(checkType(type, op->getLoc())))
        return failure();
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        if (failed(checkType(argument.getType(), argument.getLoc())))
          return failure();
    // A declaration has no block arguments: its types are in its signature.
    if (auto function = dyn_cast<FunctionOpInterface>(op))
      for (Type type : llvm::concat<const Type>(function.getArgumentTypes(),
                                                function.getResultTypes()))
        if (failed(checkType(type, op->getLoc())))
          return failure();
    return success();
  }

  DenseSet<Type> seen;
};

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

struct CheckLowered
    : kas::codegen::impl::KasCheckLoweredPassBase<CheckLowered> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    module.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isDeclaration(op))
        return WalkResult::skip();
      StringRef dialect = op->getName().getDialectNamespace();
      if (op == module || dialect == "llvm" || dialect == "omp")
        return WalkResult::advance();
      emitError(op->getLoc())
          << "the pipeline for CPUs requires operations that it lowers to the "
             "LLVM dialect, got '"
          << op->getName() << "'" << getLoweringHint(op);
      signalPassFailure();
      return WalkResult::interrupt();
    });
    markAllAnalysesPreserved();
  }
};
} // namespace
