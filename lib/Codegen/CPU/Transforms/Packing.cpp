//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowers one operation on tensors to register tiles on buffers: makes the
// buffers and the copies of weights, tries the strategies, and undoes all of it
// on failure. An undone operation is as it was, so that the next lowering in
// the pipeline finds it.
//
//===----------------------------------------------------------------------===//

#include "Packing.h"
#include "../Emit/EmitContraction.h"
#include "../Strategy/ContractionChoice.h"
#include "../Strategy/MatchContraction.h"
#include "kas/Dialect/Kas/Analysis/Coordinates.h"
#include "kas/Dialect/Kas/IR/DataAttribute.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "kas-pack-operators"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

Packing::Packing(Operation *op, const ContractionOptions &given)
    : op(op), options(given), loc(op->getLoc()), rewriter(op) {
  // Only tiles of weights packed ahead take one along.
  if (options.prepacked)
    reader = ContractionEpilogue::findReader(op->getResult(0));
  if (reader)
    rewriter.setInsertionPoint(reader);
}

/// A buffer of identity layout, since plans compute addresses from shapes.
/// Read-only: bufferization may then share it with other readers.
Value Packing::toBuffer(Value tensor) {
  auto type = bufferization::getMemRefTypeWithStaticIdentityLayout(
      cast<TensorType>(tensor.getType()));
  auto buffer = bufferization::ToBufferOp::create(rewriter, loc, type, tensor,
                                                  /*read_only=*/true);
  made.push_back(buffer);
  return buffer;
}

Value Packing::makeOutput() {
  return makeBuffer(cast<ShapedType>(op->getResult(0).getType()).getShape());
}

/// Of f32, aligned to a cache line.
Value Packing::makeBuffer(ArrayRef<int64_t> shape) {
  auto type = MemRefType::get(shape, rewriter.getF32Type());
  auto buffer = memref::AllocOp::create(rewriter, loc, type,
                                        rewriter.getI64IntegerAttr(64));
  made.push_back(buffer);
  return buffer;
}

SmallVector<Value> Packing::makeCopies(const Contraction &contraction,
                                       const Rearrangement &rearrangement) {
  return llvm::map_to_vector(
      rearrangement.copies, [&](const Rearrangement::Copy &copy) {
        return makeBuffer(getShape(contraction, copy.loops));
      });
}

void Packing::emitCopies(const Contraction &source,
                         const Rearrangement &rearrangement,
                         ValueRange copies) {
  codegen::emitCopies(rewriter, loc, source, rearrangement, copies);
}

void Packing::undo(size_t numKept) {
  for (Operation *buffer : llvm::reverse(ArrayRef(made).drop_front(numKept)))
    rewriter.eraseOp(buffer);
  made.truncate(numKept);
}

/// `epilogue` may have a bias already; the reader of the result is added where
/// it fits.
LogicalResult Packing::emit(const StridedContraction &contraction,
                            ContractionEpilogue epilogue,
                            function_ref<void(const Twine &)> emitReason) {
  // A reader that does not fit stays an operation of its own.
  if (reader) {
    SmallVector<Value> inputs;
    for (Value input : reader.getDpsInputs())
      inputs.push_back(input == op->getResult(0) ? Value() : toBuffer(input));
    epilogue.takeReader(reader, inputs, contraction);
  }
  options.epilogue = epilogue ? &epilogue : nullptr;
  bool tookEpilogue = false;
  if (failed(emitContraction(rewriter, loc, contraction, options, emitReason,
                             &tookEpilogue))) {
    undo();
    return failure();
  }
  LDBG() << loc << ": packed" << (tookEpilogue ? " with its epilogue" : "");
  // The result of the tiles is that of the last operation they compute.
  Operation *last =
      tookEpilogue && epilogue.elementwise ? epilogue.elementwise : op;
  replace(last, contraction.output.buffer);
  if (last != op)
    rewriter.eraseOp(op);
  return success();
}

/// `restrict` and `writable`: nobody else has this buffer, and what reads the
/// tensor may overwrite it.
void Packing::replace(Operation *last, Value buffer) {
  auto result = bufferization::ToTensorOp::create(
      rewriter, loc, op->getResult(0).getType(), buffer, /*restrict=*/true,
      /*writable=*/true);
  rewriter.replaceOp(last, result.getResult());
}

LogicalResult Packing::emit(const Contraction &source, Value output,
                            const Rearrangement &rearrangement,
                            ArrayRef<bool> prepacked,
                            function_ref<void(const Twine &)> emitReason) {
  SmallVector<Value> copies = makeCopies(source, rearrangement);
  // The tiles write to a buffer in another order of dimensions where the output
  // is transposed.
  Value sums = output;
  if (!rearrangement.outputLoops.empty())
    sums = makeBuffer(getShape(source, rearrangement.outputLoops));
  Contraction rearranged = rearrange(source, rearrangement, copies);
  FailureOr<StridedContraction> contraction =
      getStridedContraction(rearranged, sums, emitReason, prepacked);
  if (failed(contraction))
    return failure();
  emitCopies(source, rearrangement, copies);
  if (failed(emitContraction(rewriter, loc, *contraction, options, emitReason)))
    llvm_unreachable("it had a time");
  if (sums != output)
    // An element takes about a cycle.
    emitTransposition(
        rewriter, loc, source, rearrangement, sums, output,
        options.getThreads(
            2 * cast<MemRefType>(output.getType()).getNumElements()));
  remark::passed(loc,
                 remark::RemarkOpts::name("Rearranged").category(panelRemarks))
      << remark::metric("copiedWeights", rearrangement.copies.size())
      << remark::metric("transposedOutput", sums != output);
  replace(op, output);
  return success();
}

/// Inner products take no epilogue: a reader of the result stays as it is.
void Packing::emit(const InnerProductPlan &plan, Value output) {
  emitInnerProducts(rewriter, loc, plan, output,
                    ContractionTarget(options.target),
                    options.getThreads(plan.time));
  remark::passed(
      loc, remark::RemarkOpts::name("InnerProducts").category(panelRemarks))
      << remark::metric("registerSums", plan.getNumSums())
      << remark::metric("lanes", plan.lanes)
      << remark::metric("block", plan.block);
  replace(op, output);
}

std::optional<Rearrangement> kas::codegen::chooseRearrangement(
    const Contraction &source, MemRefType output, ArrayRef<bool> prepacked,
    const ContractionOptions &options, std::optional<int64_t> &time) {
  // Copies are of f32.
  if (!llvm::all_of(source.inputs, [](const Contraction::Input &input) {
        return getElementTypeOrSelf(input.value).isF32();
      }))
    return std::nullopt;
  return schedule::chooseRearrangement(
      getLoopNest(source, output.getShape(), prepacked),
      ContractionTarget(options.target), options.getTileOptions(), time);
}

bool kas::codegen::isFromWeights(Value tensor) {
  // What several operations read is looked at once.
  SetVector<Value> sources;
  sources.insert(tensor);
  for (size_t i = 0; i < sources.size(); ++i) {
    if (auto argument = dyn_cast<BlockArgument>(sources[i])) {
      if (isData(argument))
        return false;
      continue;
    }
    Operation *op = sources[i].getDefiningOp();
    // What has effects cannot be moved to another function.
    if (!isMemoryEffectFree(op))
      return false;
    sources.insert_range(op->getOperands());
  }
  return true;
}

/// `inputs` are the operator's data and weights, `output` its result, in
/// buffers made for the trial. Another layout is considered only if neither a
/// schedule nor an algorithm says how.
OperatorPlan kas::codegen::planOperator(OperatorOp op, ValueRange inputs,
                                        Value output, ArrayRef<bool> prepacked,
                                        Packing &packing,
                                        const ContractionOptions &options) {
  OperatorPlan plan;
  auto setReason = [&](const Twine &text) { plan.reason = text.str(); };
  plan.source = Contraction::match(getCoordinates(op), inputs, setReason);
  if (failed(plan.source))
    return plan;
  plan.contraction =
      getStridedContraction(*plan.source, output, setReason, prepacked);
  if (succeeded(plan.contraction))
    plan.time = getContractionTime(*plan.contraction, options);
  if (!options.schedule && options.algorithm == ConvolutionAlgorithm::Auto)
    plan.rearrangement =
        chooseRearrangement(*plan.source, cast<MemRefType>(output.getType()),
                            prepacked, options, plan.time);
  return plan;
}
