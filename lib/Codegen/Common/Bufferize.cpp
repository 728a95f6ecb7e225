//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tensors to buffers by MLIR's one-shot bufferization, prepared so that results
// need no copy and what is made of weights alone keeps a buffer of its own.
// Order: tensors that would be shared are separated, one-shot bufferization
// decides in-place by use-def chains, then results become arguments of the
// function ("out params"), for which each result must be an allocation of its
// own in the shape of the result.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/Common/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "mlir/Transforms/RegionUtils.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASBUFFERIZEPASS
#include "kas/Codegen/Common/Passes.h.inc"
} // namespace kas::codegen

using namespace mlir;

namespace {

/// Copies as linalg, which the pipeline vectorizes; the default, `memref.copy`,
/// calls a library for layouts that it does not know.
LogicalResult createCopy(OpBuilder &builder, Location loc, Value from,
                         Value to) {
  linalg::CopyOp::create(builder, loc, from, to);
  return success();
}

/// Lets a function that returns one buffer twice return a copy of it: making
/// results arguments erases the allocation of each.
void separateResults(func::ReturnOp op) {
  OpBuilder builder(op);
  llvm::SmallPtrSet<Value, 8> seen;
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (!type || !type.hasStaticShape() || seen.insert(operand.get()).second)
      continue;
    Value copy = memref::AllocOp::create(builder, op.getLoc(), type);
    linalg::CopyOp::create(builder, op.getLoc(), operand.get(), copy);
    operand.set(copy);
  }
}

/// Gives each operation that writes over a filled tensor one of its own: a
/// shared one would be filled once and copied for each, which takes longer.
void separateFills(linalg::FillOp fill) {
  if (!fill.hasPureTensorSemantics())
    return;
  Value tensor = fill.getResult(0);
  OpBuilder builder(fill->getContext());
  for (OpOperand &use : llvm::make_early_inc_range(tensor.getUses())) {
    auto writer = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
    if (tensor.hasOneUse() || !writer || !writer.isDpsInit(&use))
      continue;
    auto type = cast<RankedTensorType>(tensor.getType());
    if (!type.hasStaticShape())
      continue;
    builder.setInsertionPoint(writer);
    Value empty = tensor::EmptyOp::create(
        builder, fill.getLoc(), type.getShape(), type.getElementType());
    use.set(
        linalg::FillOp::create(builder, fill.getLoc(), fill.getInputs(), empty)
            .getResult(0));
  }
}

/// Lets an operation begin with a tensor of its own, which may be filled: a sum
/// or a maximum begins so.
void separateInit(OpOperand &init) {
  OpOperand *shared = &init;
  if (auto fill = init.get().getDefiningOp<linalg::FillOp>();
      fill && fill->hasOneUse())
    shared = &fill.getOutputsMutable()[0];
  auto empty = shared->get().getDefiningOp<tensor::EmptyOp>();
  if (!empty || empty->hasOneUse())
    return;
  OpBuilder builder(shared->getOwner());
  shared->set(builder.clone(*empty)->getResult(0));
}

/// Gives what is made of weights alone, such as a transpose, a tensor of its
/// own: in a shared one the next weight would take its place, and neither
/// could be made ahead. Weights are the arguments after the data.
void separateWeights(func::FuncOp function) {
  if (function.isExternal() || function.getNumArguments() == 0)
    return;
  DenseSet<Value> weights;
  weights.insert_range(function.getArguments().drop_front());
  // In order: an operation is of weights if all that it reads is.
  for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
    SetVector<Value> values;
    getUsedValuesDefinedAbove(op.getRegions(), values);
    values.insert_range(op.getOperands());
    if (!isMemoryEffectFree(&op) ||
        !llvm::all_of(values, [&](Value v) { return weights.contains(v); }))
      continue;
    weights.insert_range(op.getResults());
    auto writer = dyn_cast<linalg::LinalgOp>(op);
    if (!writer || isa<linalg::FillOp>(op))
      continue;
    for (OpOperand &init : writer.getDpsInitsMutable())
      separateInit(init);
  }
}

/// Returns the buffer that is filled, in the shape of the result, and not a
/// view of it: that would be copied to where the caller wants the result.
void shapeResults(func::ReturnOp op) {
  OpBuilder builder(op);
  for (OpOperand &operand : op->getOpOperands()) {
    // From the buffer to the last view.
    SmallVector<Operation *> views;
    Value source = operand.get();
    while (isa_and_nonnull<memref::ExpandShapeOp, memref::CollapseShapeOp>(
        source.getDefiningOp())) {
      views.push_back(source.getDefiningOp());
      source = views.back()->getOperand(0);
    }
    auto buffer = source.getDefiningOp<memref::AllocOp>();
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (views.empty() || !buffer || !type.hasStaticShape() ||
        !buffer.getType().hasStaticShape() || !type.getLayout().isIdentity() ||
        !buffer.getType().getLayout().isIdentity())
      continue;
    builder.setInsertionPoint(buffer);
    Value shaped = memref::AllocOp::create(builder, buffer.getLoc(), type,
                                           buffer.getAlignmentAttr());
    // The users see the flat shape as before, as a view of the new buffer.
    Value flat = memref::ReinterpretCastOp::create(
        builder, buffer.getLoc(), buffer.getType(), shaped, /*offset=*/0,
        buffer.getType().getShape(),
        buffer.getType().getStridesAndOffset().first);
    buffer.replaceAllUsesWith(flat);
    buffer.erase();
    operand.set(shaped);
  }
}

/// Copies a result to where the caller wants it, whose dynamic sizes it has to
/// know.
LogicalResult copyResult(OpBuilder &builder, Location loc, Value from,
                         Value to) {
  auto type = cast<MemRefType>(to.getType());
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    if (!type.isDynamicDim(dim))
      continue;
    Value size = memref::DimOp::create(builder, loc, from, dim);
    Value given = memref::DimOp::create(builder, loc, to, dim);
    Value isSame = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                         size, given);
    cf::AssertOp::create(
        builder, loc, isSame,
        ("requires memory of the size of the result for it, got another "
         "dimension " +
         Twine(dim))
            .str());
  }
  return createCopy(builder, loc, from, to);
}

/// Whether a tensor's size is known at run time only.
bool isDynamicTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && !tensor.hasStaticShape();
}

/// Whether a call has a result whose memory its caller cannot provide.
bool hasDynamicCalls(ModuleOp module) {
  return module
      .walk([](func::CallOp call) {
        return llvm::any_of(call.getResultTypes(), isDynamicTensor)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Lets a function without a body store its tensors to memory of the caller,
/// as functions of the module do.
LogicalResult passExternalResults(func::FuncOp function, ModuleOp module) {
  auto isBuffer = llvm::IsaPred<BaseMemRefType>;
  if (!function.isExternal() ||
      llvm::none_of(function.getResultTypes(), isBuffer))
    return success();
  // `kept`: results that are no buffers, and stay results.
  SmallVector<Type> arguments(function.getArgumentTypes()), kept;
  SmallVector<MemRefType> buffers;
  for (auto [index, type] : llvm::enumerate(function.getResultTypes())) {
    auto buffer = dyn_cast<MemRefType>(type);
    if (!isa<BaseMemRefType>(type)) {
      kept.push_back(type);
      continue;
    }
    if (!buffer || !buffer.hasStaticShape())
      return emitError(function.getLoc())
             << "requires static shapes of the results of functions without a "
                "body, for result "
             << index << " of '@" << function.getSymName() << "' got " << type;
    buffers.push_back(buffer);
  }
  llvm::append_range(arguments, buffers);
  SmallVector<func::CallOp> calls;
  auto uses = SymbolTable::getSymbolUses(function, module);
  for (SymbolTable::SymbolUse use : uses.value_or(SymbolTable::UseRange({}))) {
    auto call = dyn_cast<func::CallOp>(use.getUser());
    if (!call)
      return emitError(use.getUser()->getLoc())
             << "requires calls as the only uses of functions without a body "
                "that return tensors, got '"
             << use.getUser()->getName() << "'";
    calls.push_back(call);
  }
  // Attributes of results and arguments are lists by position: they follow the
  // new type.
  function.removeResAttrsAttr();
  SmallVector<DictionaryAttr> attributes;
  function.getAllArgAttrs(attributes);
  attributes.resize(arguments.size(),
                    DictionaryAttr::get(function.getContext()));
  // Declaration and calls are changed together: in between the module is
  // invalid.
  function.setFunctionType(
      FunctionType::get(function.getContext(), arguments, kept));
  function.setAllArgAttrs(attributes);
  for (func::CallOp call : calls) {
    OpBuilder b(call);
    SmallVector<Value> operands(call.getOperands());
    for (MemRefType buffer : buffers)
      operands.push_back(memref::AllocOp::create(b, call.getLoc(), buffer));
    auto updated = func::CallOp::create(b, call.getLoc(), function, operands);
    // Results in order: buffers that were allocated above, or results of the
    // call.
    auto *made = operands.end() - buffers.size();
    auto plain = updated->result_begin();
    for (OpResult result : call->getResults())
      result.replaceAllUsesWith(isBuffer(result.getType()) ? *made++
                                                           : Value(*plain++));
    call.erase();
  }
  return success();
}

struct Bufferize : kas::codegen::impl::KasBufferizePassBase<Bufferize> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    // Inlined, since the callee alone knows the size of its result.
    if (hasDynamicCalls(module)) {
      OpPassManager inliner(ModuleOp::getOperationName());
      inliner.addPass(createInlinerPass());
      if (failed(runPipeline(inliner, module)))
        return signalPassFailure();
    }
    // Callers keep their arguments; callees inside the module may reuse them.
    auto writable = StringAttr::get(
        &getContext(), bufferization::BufferizationDialect::kWritableAttrName);
    for (auto function : module.getOps<func::FuncOp>())
      if (function.isPublic() && !function.isExternal())
        for (unsigned i = 0; i < function.getNumArguments(); ++i)
          if (isa<TensorType>(function.getArgument(i).getType()))
            function.setArgAttr(i, writable,
                                BoolAttr::get(&getContext(), false));

    // On tensors, where sharing is visible as uses of one value.
    module.walk(separateFills);
    module.walk(separateWeights);
    bufferization::OneShotBufferizationOptions options;
    options.bufferizeFunctionBoundaries = true;
    options.allowReturnAllocsFromLoops = true;
    // Callers pass contiguous row-major memory.
    options.setFunctionBoundaryTypeConversion(
        bufferization::LayoutMapOption::IdentityLayoutMap);
    options.memCpyFn = createCopy;
    bufferization::BufferizationState state;
    if (failed(
            bufferization::runOneShotModuleBufferize(module, options, state)))
      return signalPassFailure();

    for (auto function : module.getOps<func::FuncOp>())
      if (failed(passExternalResults(function, module)))
        return signalPassFailure();
    // On buffers, before results become arguments.
    module.walk(separateResults);
    module.walk(shapeResults);
    bufferization::BufferResultsToOutParamsOpts results;
    results.memCpyFn = copyResult;
    // The caller's memory takes the place of the allocation, so nothing is
    // copied.
    results.hoistStaticAllocs = true;
    results.modifyPublicFunctions = true;
    if (failed(bufferization::promoteBufferResultsToOutParams(module, results)))
      return signalPassFailure();
  }
};

} // namespace
