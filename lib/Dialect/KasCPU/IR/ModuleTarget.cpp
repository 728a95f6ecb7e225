//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The target of a module as upstream's attributes `llvm.target` and `dlti`:
// written, read and verified.
// A module carries its target, so that `kas-opt` on a text and the in-process
// compiler plan alike, and cross compilation needs no flags.
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

/// The key of the device in `dlti.target_system_spec`, as upstream has it.
static constexpr StringRef deviceName = "CPU";
/// Where a target has no such instructions, these are left out.
static constexpr StringRef byteDotKey = "byte_dot_width",
                           bfloatDotKey = "bfloat_dot_width",
                           shortDotKey = "short_dot_width";

/// The numbers of a target by their keys; the first and the caches are those
/// that upstream uses.
/// Widths in bits, caches in bytes. Reading, writing and verifying share the
/// list.
template <typename Callback>
static void forEachNumber(Target &target, Callback callback) {
  callback("max_vector_op_width", target.vectorBits);
  callback("arithmetic_vector_width", target.arithmeticBits);
  callback("vector_registers", target.vectorRegisters);
  callback("L1_cache_size_in_bytes", target.l1Bytes);
  callback("L2_cache_size_in_bytes", target.l2Bytes);
}

/// Whether a processor can have such a number under this key. Others would
/// make plans of nothing.
/// Bounds: 8 to 4096 registers, powers of two from 64 to 65536 bits, 1 KiB to 1
/// TiB.
static bool isPossible(StringRef key, const APInt &number) {
  if (number.getSignificantBits() > 64 || number.isNegative())
    return false;
  int64_t value = number.getSExtValue();
  if (key == "vector_registers")
    return value >= 8 && value <= 4096;
  if (key.ends_with("_width"))
    return value >= 64 && value <= 65536 && llvm::isPowerOf2_64(value);
  return value >= 1024 && value <= int64_t(1) << 40;
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
  // `forEachNumber` takes references that readers write to.
  Target copy = target;
  forEachNumber(copy, [&](StringRef key, int64_t value) {
    add(key, builder.getI64IntegerAttr(value));
  });
  add("fused_multiply_add", builder.getBoolAttr(target.hasFMA));
  // 0 means that the processor has none: the key is left out.
  if (target.byteDotBits > 0)
    add(byteDotKey, builder.getI64IntegerAttr(target.byteDotBits));
  if (target.bfloatDotBits > 0)
    add(bfloatDotKey, builder.getI64IntegerAttr(target.bfloatDotBits));
  if (target.shortDotBits > 0)
    add(shortDotKey, builder.getI64IntegerAttr(target.shortDotBits));
  DataLayoutEntryInterface device = DataLayoutEntryAttr::get(
      builder.getStringAttr(deviceName),
      TargetDeviceSpecAttr::get(module.getContext(), entries));
  module->setAttr(DLTIDialect::kTargetSystemDescAttrName,
                  TargetSystemSpecAttr::get(module.getContext(), {device}));
}

/// The attribute of the module's device under this key, or null.
static Attribute queryDevice(ModuleOp module, StringRef key) {
  return dlti::query(module, ArrayRef<StringRef>{deviceName, key})
      .value_or(Attribute());
}

/// A key that is missing is no error: it has a default.
LogicalResult kas::verifyModuleTarget(ModuleOp module) {
  Target target;
  SmallVector<StringRef> keys = {byteDotKey, bfloatDotKey, shortDotKey};
  forEachNumber(target, [&](StringRef key, int64_t) { keys.push_back(key); });
  for (StringRef key : keys) {
    Attribute value = queryDevice(module, key);
    auto number = dyn_cast_or_null<IntegerAttr>(value);
    if (value && (!number || !isPossible(key, number.getValue())))
      return emitError(module.getLoc())
             << "expected a number that processors can have as '" << key
             << "' of the device '" << deviceName << "', got " << value;
  }
  return success();
}

/// Impossible numbers are ignored here, as the defaults are safe;
/// `verifyModuleTarget` is what reports them.
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
  auto query = [&](StringRef key) { return queryDevice(module, key); };
  auto queryNumber = [&](StringRef key, int64_t &value) {
    auto number = dyn_cast_or_null<IntegerAttr>(query(key));
    if (number && isPossible(key, number.getValue()))
      value = number.getInt();
  };
  forEachNumber(target, queryNumber);
  if (auto fma = dyn_cast_or_null<BoolAttr>(query("fused_multiply_add")))
    target.hasFMA = fma.getValue();
  queryNumber(byteDotKey, target.byteDotBits);
  queryNumber(bfloatDotKey, target.bfloatDotBits);
  queryNumber(shortDotKey, target.shortDotBits);
  return target;
}
