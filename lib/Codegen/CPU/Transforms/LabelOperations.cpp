//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Numbers the operations of a function in their locations. Locations survive
// lowering, so that a loop nest or a remark can be related to the operations of
// the model that it was made of: MLIR fuses locations where operations are
// fused, and a label is the metadata of one part (docs/guide/profiling.md).
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/CPU/Passes.h"
#include "kas/Codegen/CPU/Profile.h"
#include "kas/Codegen/Common/OperationCost.h"
#include "kas/Dialect/Kas/IR/DataAttribute.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASLABELOPERATIONSPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// The entry of the dictionary that is the metadata of a fused location.
static constexpr llvm::StringLiteral labelName = "kas_cpu.operation";

/// `fused<{kas_cpu.operation = number}>[location]`.
static Location addLabel(Location location, unsigned number) {
  Builder b(location.getContext());
  auto label = b.getDictionaryAttr(
      b.getNamedAttr(labelName, b.getI64IntegerAttr(number)));
  return FusedLoc::get(location.getContext(), {location}, label);
}

SmallVector<unsigned> kas::codegen::getLabels(Location location) {
  SmallVector<unsigned> labels;
  // Fused operations have several.
  location->walk([&](Location part) {
    auto fused = dyn_cast<FusedLoc>(part);
    if (auto entries = dyn_cast_or_null<DictionaryAttr>(
            fused ? fused.getMetadata() : Attribute()))
      if (auto number = entries.getAs<IntegerAttr>(labelName))
        labels.push_back(number.getInt());
    return WalkResult::advance();
  });
  llvm::sort(labels);
  labels.erase(llvm::unique(labels), labels.end());
  return labels;
}

/// The names of what a body computes, each once.
static std::string getBodyKind(Block &body) {
  // Bodies that compute more end with `...`.
  constexpr size_t maxNames = 4;
  llvm::SetVector<StringRef> names;
  for (Operation &op : body)
    if (isFloatArithmetic(&op))
      names.insert(op.getName().stripDialect());
  // Only yields or converts what it reads.
  if (names.empty())
    return "copy";
  std::string kind = llvm::join(names.getArrayRef().take_front(maxNames), ", ");
  return names.size() > maxNames ? kind + ", ..." : kind;
}

/// See `ModelOperation::kind`.
static std::string getKind(Operation *op) {
  if (auto apply = dyn_cast<ApplyOp>(op))
    return ("kas.apply @" + apply.getOperator().getSymName()).str();
  if (auto call = dyn_cast<func::CallOp>(op))
    return ("call @" + call.getCallee()).str();
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return getBodyKind(*generic.getBody());
  if (isa<linalg::LinalgDialect>(op->getDialect()))
    return op->getName().stripDialect().str();
  return op->getName().getStringRef().str();
}

/// The argument of the function of which `value` is another view or a copy.
static BlockArgument getArgument(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    // Operations of tensor (slices, reshapes, padding) have what they view as
    // their first operand.
    bool isView = op->getNumOperands() > 0 &&
                  (isa<tensor::TensorDialect>(op->getDialect()) ||
                   isa<linalg::TransposeOp, linalg::BroadcastOp>(op));
    if (!isView)
      return {};
    value = op->getOperand(0);
  }
  return cast<BlockArgument>(value);
}

/// See `ModelOperation::layer`: the argument `conv1.weight` belongs to `conv1`.
static std::string getLayer(Operation *op, func::FuncOp function) {
  for (Value operand : op->getOperands()) {
    BlockArgument argument = getArgument(operand);
    // Data has a name, too, but is that of no layer.
    if (!argument || argument.getOwner() != &function.front() ||
        isData(argument))
      continue;
    if (auto name = function.getArgAttrOfType<StringAttr>(
            argument.getArgNumber(), KasDialect::argumentNameAttrName))
      return name.getValue().contains('.')
                 ? name.getValue().rsplit('.').first.str()
                 : name.getValue().str();
  }
  return "";
}

SmallVector<ModelOperation>
kas::codegen::labelOperations(func::FuncOp function) {
  SmallVector<ModelOperation> operations;
  if (function.isExternal())
    return operations;
  for (Operation &op : function.front().without_terminator()) {
    if (op.hasTrait<OpTrait::ConstantLike>() || isa<tensor::EmptyOp>(op))
      continue;
    unsigned number = operations.size();
    operations.push_back(
        {getKind(&op), getLayer(&op, function), op.getLoc(), countFlops(&op)});
    // Passes may take an operation out of a region without the one around it.
    op.walk([&](Operation *inner) {
      inner->setLoc(addLabel(inner->getLoc(), number));
    });
  }
  return operations;
}

namespace {
struct LabelOperations
    : kas::codegen::impl::KasLabelOperationsPassBase<LabelOperations> {
  void runOnOperation() override { labelOperations(getOperation()); }
};
} // namespace
