//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/KasCPU/IR/ModuleTarget.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace kas;
using namespace mlir;

static constexpr StringRef deviceName = "CPU";
/// Where a target has no such instructions, these are left out.
static constexpr StringRef byteDotKey = "byte_dot_width",
                           bfloatDotKey = "bfloat_dot_width";

/// The numbers of a target by their keys; the first and the caches are those
/// that upstream uses.
template <typename Callback>
static void forEachNumber(Target &target, Callback callback) {
  callback("max_vector_op_width", target.vectorBits);
  callback("arithmetic_vector_width", target.arithmeticBits);
  callback("vector_registers", target.vectorRegisters);
  callback("L1_cache_size_in_bytes", target.l1Bytes);
  callback("L2_cache_size_in_bytes", target.l2Bytes);
}

void kas::setModuleTarget(ModuleOp module, const Target &target) {
  Builder builder(module.getContext());
  LLVM::TargetFeaturesAttr features;
  if (!target.features.empty())
    features =
        LLVM::TargetFeaturesAttr::get(module.getContext(), target.features);
  module->setAttr(LLVM::LLVMDialect::getTargetAttrName(),
                  LLVM::TargetAttr::get(
                      module.getContext(), builder.getStringAttr(target.triple),
                      builder.getStringAttr(target.cpu), features));
  SmallVector<DataLayoutEntryInterface> entries;
  auto add = [&](StringRef key, Attribute value) {
    entries.push_back(
        DataLayoutEntryAttr::get(builder.getStringAttr(key), value));
  };
  Target copy = target;
  forEachNumber(copy, [&](StringRef key, int64_t value) {
    add(key, builder.getI64IntegerAttr(value));
  });
  add("fused_multiply_add", builder.getBoolAttr(target.hasFMA));
  if (target.byteDotBits > 0)
    add(byteDotKey, builder.getI64IntegerAttr(target.byteDotBits));
  if (target.bfloatDotBits > 0)
    add(bfloatDotKey, builder.getI64IntegerAttr(target.bfloatDotBits));
  DataLayoutEntryInterface device = DataLayoutEntryAttr::get(
      builder.getStringAttr(deviceName),
      TargetDeviceSpecAttr::get(module.getContext(), entries));
  module->setAttr(DLTIDialect::kTargetSystemDescAttrName,
                  TargetSystemSpecAttr::get(module.getContext(), {device}));
}

std::optional<Target> kas::getModuleTarget(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  auto names = module ? module->getAttrOfType<LLVM::TargetAttr>(
                            LLVM::LLVMDialect::getTargetAttrName())
                      : nullptr;
  if (!names)
    return std::nullopt;
  Target target;
  target.triple = names.getTriple().str();
  target.cpu = names.getChip().str();
  if (names.getFeatures())
    target.features = names.getFeatures().getFeaturesString();
  auto query = [&](StringRef key) -> Attribute {
    return dlti::query(module, ArrayRef<StringRef>{deviceName, key})
        .value_or(Attribute());
  };
  forEachNumber(target, [&](StringRef key, int64_t &value) {
    if (auto number = dyn_cast_or_null<IntegerAttr>(query(key)))
      value = number.getInt();
  });
  if (auto fma = dyn_cast_or_null<BoolAttr>(query("fused_multiply_add")))
    target.hasFMA = fma.getValue();
  if (auto bits = dyn_cast_or_null<IntegerAttr>(query(byteDotKey)))
    target.byteDotBits = bits.getInt();
  if (auto bits = dyn_cast_or_null<IntegerAttr>(query(bfloatDotKey)))
    target.bfloatDotBits = bits.getInt();
  return target;
}
