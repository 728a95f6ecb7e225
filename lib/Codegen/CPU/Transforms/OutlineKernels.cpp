//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Splits large functions on buffers into one function for each loop nest, equal
// ones into one function. LLVM takes more than linear time for a function, and
// `compileForCPU` caches and compiles kernels in parallel
// (docs/internals/code-generation.md, "Large functions").
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/CPU/OutlineKernels.h"
#include "kas/Codegen/CPU/Passes.h"
#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASOUTLINEKERNELSPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Candidates for functions
//===----------------------------------------------------------------------===//

namespace {

/// Buffers that are distinct from all others, and plain pointers at calls.
bool isPlainBuffer(Value value) {
  auto type = dyn_cast<MemRefType>(value.getType());
  if (!type || !type.hasStaticShape() || !type.getLayout().isIdentity())
    return false;
  Operation *op = value.getDefiningOp();
  // No operation: an argument of the function, which public functions' callers
  // keep apart.
  return !op || isa<memref::AllocOp, memref::AllocaOp, memref::GetGlobalOp>(op);
}

/// Operations that become one function, with what they need from outside.
struct Kernel {
  SmallVector<Operation *> ops;
  /// Constants and views, which the function has itself, so that its arguments
  /// are whole buffers; in the order of their uses.
  SetVector<Operation *> copied;
  SetVector<Value> arguments;
  /// Copied views at constant places of a buffer, such as weights that are
  /// packed ahead. The places are arguments as well: equal layers differ in
  /// them alone.
  SmallVector<memref::ViewOp> views;

  /// All that a call passes.
  SmallVector<Value> getOperands() const {
    SmallVector<Value> operands(arguments.getArrayRef());
    for (memref::ViewOp view : views)
      operands.push_back(view.getByteShift());
    return operands;
  }

  /// Adds `op`, and what it uses to the arguments. False if something cannot be
  /// passed or copied; the kernel is of no use then.
  bool add(Operation *op) {
    SetVector<Value> used(op->operand_begin(), op->operand_end());
    getUsedValuesDefinedAbove(op->getRegions(), used);
    ops.push_back(op);
    return llvm::all_of(used, [&](Value value) { return add(value); });
  }

private:
  /// Decides how the kernel gets `value`: copied (constants and views,
  /// recursively) or passed.
  bool add(Value value) {
    Operation *op = value.getDefiningOp();
    if (auto view = dyn_cast_or_null<memref::ViewOp>(op);
        view && view.getSizes().empty() &&
        matchPattern(view.getByteShift(), m_Constant())) {
      if (!add(view.getSource()))
        return false;
      // The view is copied, but the place where it begins is an argument, so
      // that the weights of two layers need not make two kernels.
      if (copied.insert(view))
        views.push_back(view);
      return true;
    }
    bool isCopied =
        op && op->getNumRegions() == 0 &&
        (op->hasTrait<OpTrait::ConstantLike>() || isa<ViewLikeOpInterface>(op));
    if (isCopied) {
      for (Value operand : op->getOperands())
        if (!add(operand))
          return false;
      copied.insert(op);
      return true;
    }
    // Views of unknown origin may overlap other arguments.
    if (!value.getType().isIntOrIndexOrFloat() && !isPlainBuffer(value))
      return false;
    arguments.insert(value);
    return true;
  }
};

/// Loops and linalg operations. Assertions stay where they can end the
/// function.
bool isLoopNest(Operation &op) {
  if (!isa<LoopLikeOpInterface, linalg::LinalgOp>(op) || op.getNumResults())
    return false;
  return !op.walk([](Operation *inner) {
              return isa<cf::AssertOp, CallOpInterface>(inner)
                         ? WalkResult::interrupt()
                         : WalkResult::advance();
            }).wasInterrupted();
}

/// The kernels of a block in order. What fills a buffer belongs to the loop
/// nest after it that works on that buffer.
SmallVector<Kernel> findKernels(Block &block) {
  SmallVector<Kernel> kernels;
  // A fill that waits for its loop nest; what writes memory in between ends the
  // wait.
  linalg::FillOp fill;
  auto finish = [&](ArrayRef<Operation *> ops) {
    Kernel kernel;
    if (llvm::all_of(ops, [&](Operation *op) { return kernel.add(op); }))
      kernels.push_back(std::move(kernel));
  };
  for (Operation &op : block) {
    if (isLoopNest(op)) {
      if (fill && llvm::is_contained(op.getOperands(), fill.getOutputs()[0]) &&
          !isa<linalg::FillOp>(op)) {
        finish({fill, &op});
        fill = nullptr;
        continue;
      }
      if (fill)
        finish({fill});
      fill = dyn_cast<linalg::FillOp>(op);
      if (!fill)
        finish({&op});
      continue;
    }
    if (fill && !isa<memref::AllocOp>(op) && !isMemoryEffectFree(&op)) {
      finish({fill});
      fill = nullptr;
    }
  }
  if (fill)
    finish({fill});
  return kernels;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// Makes the functions of a module, one for equal kernels.
class Outliner {
public:
  explicit Outliner(ModuleOp module)
      : symbols(module), builder(module.getContext()) {}

  /// Replaces `kernel` in `caller` by a call of a function that has its
  /// operations.
  void outline(const Kernel &kernel, func::FuncOp caller) {
    // Made before it is compared: equality is that of the finished functions.
    func::FuncOp function = create(kernel, caller);
    llvm::hash_code hash = computeHash(function);
    SmallVector<func::FuncOp> &candidates = byHash[hash];
    auto *known = llvm::find_if(candidates, [&](func::FuncOp other) {
      return isEquivalent(function, other);
    });
    if (known != candidates.end()) {
      // It was never part of the module.
      function->destroy();
      function = *known;
    } else {
      symbols.insert(function, caller->getIterator());
      candidates.push_back(function);
      functions.push_back(function);
    }
    // Where the loop nest was: what the fill waited for has been allocated by
    // then.
    builder.setInsertionPoint(kernel.ops.back());
    func::CallOp::create(builder, kernel.ops.back()->getLoc(), function,
                         kernel.getOperands());
    for (Operation *op : kernel.ops)
      op->erase();
  }

  SmallVector<func::FuncOp> takeFunctions() { return std::move(functions); }

private:
  /// The function of `kernel`, not yet in the module. Its arguments are those
  /// of `Kernel::getOperands`, all distinct buffers (`noalias`).
  func::FuncOp create(const Kernel &kernel, func::FuncOp caller) {
    auto types = llvm::map_to_vector(
        kernel.getOperands(), [](Value value) { return value.getType(); });
    auto function = func::FuncOp::create(kernel.ops.back()->getLoc(),
                                         (caller.getName() + "_kernel").str(),
                                         builder.getFunctionType(types, {}));
    function.setPrivate();
    // What is inlined would be compiled for each call.
    function.setNoInline(true);
    // Later passes must not make its loops parallel either.
    if (Attribute serial = caller->getAttr(KasCPUDialect::serialName))
      function->setAttr(KasCPUDialect::serialName, serial);
    Block *body = function.addEntryBlock();
    IRMapping mapping;
    for (auto [i, value] : llvm::enumerate(kernel.arguments)) {
      mapping.map(value, body->getArgument(i));
      if (isa<MemRefType>(value.getType()))
        function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                            builder.getUnitAttr());
    }
    builder.setInsertionPointToStart(body);
    for (Operation *op : kernel.copied)
      builder.clone(*op, mapping);
    for (auto [view, place] : llvm::zip_equal(
             ArrayRef(kernel.views),
             body->getArguments().drop_front(kernel.arguments.size())))
      // The copy had the constant of this caller.
      mapping.lookup(view)
          .getDefiningOp<memref::ViewOp>()
          .getByteShiftMutable()
          .assign(place);
    for (Operation *op : kernel.ops)
      builder.clone(*op, mapping);
    func::ReturnOp::create(builder, function.getLoc());
    return function;
  }

  /// Of the operations without their operands, results and locations: a filter
  /// before the exact comparison.
  static llvm::hash_code computeHash(func::FuncOp function) {
    llvm::hash_code hash = hash_value(function.getFunctionType());
    function.getBody().walk([&](Operation *op) {
      hash = llvm::hash_combine(hash,
                                OperationEquivalence::computeHash(
                                    op, OperationEquivalence::ignoreHashValue,
                                    OperationEquivalence::ignoreHashValue,
                                    OperationEquivalence::IgnoreLocations));
    });
    return hash;
  }

  /// Equal up to locations and the names of values.
  static bool isEquivalent(func::FuncOp lhs, func::FuncOp rhs) {
    StringRef serial = KasCPUDialect::serialName;
    return lhs.getFunctionType() == rhs.getFunctionType() &&
           lhs->hasAttr(serial) == rhs->hasAttr(serial) &&
           OperationEquivalence::isRegionEquivalentTo(
               &lhs.getBody(), &rhs.getBody(),
               OperationEquivalence::IgnoreLocations);
  }

  SymbolTable symbols;
  OpBuilder builder;
  llvm::DenseMap<size_t, SmallVector<func::FuncOp>> byHash;
  SmallVector<func::FuncOp> functions;
};

} // namespace

SmallVector<func::FuncOp> kas::codegen::outlineKernels(ModuleOp module,
                                                       unsigned minKernels) {
  if (minKernels == 0)
    return {};
  Outliner outliner(module);
  for (auto function :
       llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
    // Arguments of other functions may overlap.
    if (!function.isPublic() || !function.getBody().hasOneBlock())
      continue;
    SmallVector<Kernel> kernels = findKernels(function.getBody().front());
    if (kernels.size() < minKernels)
      continue;
    for (const Kernel &kernel : kernels)
      outliner.outline(kernel, function);
  }
  return outliner.takeFunctions();
}

namespace {
struct OutlineKernels
    : kas::codegen::impl::KasOutlineKernelsPassBase<OutlineKernels> {
  using Base::Base;
  void runOnOperation() override {
    numKernels = outlineKernels(getOperation(), minKernels).size();
  }
};
} // namespace
