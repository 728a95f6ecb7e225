//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Registers the dialect kas_cpu and verifies its schedules and attributes.
// What does not depend on the target is verified here (C1 to C9, A1 and A2 of
// the attributes' descriptions); what does is checked by the planners of code
// generation.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/IR/AttributeErrors.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace kas;
using namespace mlir;

#include "kas/Dialect/KasCPU/IR/KasCPUDialect.cpp.inc"
#include "kas/Dialect/KasCPU/IR/KasCPUEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "kas/Dialect/KasCPU/IR/KasCPUAttrs.cpp.inc"

void KasCPUDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "kas/Dialect/KasCPU/IR/KasCPUAttrs.cpp.inc"
      >();
  addKasCPUOps();
}

/// 0 leaves a number to the planner. C2: only numbers that a strategy has.
LogicalResult
CPUScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        CPUStrategy strategy, int64_t rows, int64_t columns,
                        int64_t vectors, int64_t tile, int64_t depth) {
  std::pair<StringRef, int64_t> numbers[] = {{"rows", rows},
                                             {"columns", columns},
                                             {"vectors", vectors},
                                             {"tile", tile},
                                             {"depth", depth}};
  for (auto [name, number] : numbers)
    if (number < 0) // C1
      return emitError() << "expected " << name << " of at least 0, got "
                         << number;
  if (strategy == CPUStrategy::Panels && columns != 0) // C2
    return emitError() << "expected no columns for panels, got " << columns;
  StringRef name =
      strategy == CPUStrategy::Direct ? "direct tiles" : "row vectors";
  if (strategy != CPUStrategy::Panels && tile != 0) // C2
    return emitError() << "expected no tile for " << name << ", got " << tile;
  if (strategy != CPUStrategy::Panels && depth != 0) // C2
    return emitError() << "expected no depth for " << name << ", got " << depth;
  if (strategy == CPUStrategy::RowVectors && rows != 0) // C2
    return emitError() << "expected no rows for row vectors, got " << rows;
  return success();
}

/// `bytes` are those of one part of each pointer, 0 for what all parts share.
LogicalResult
BatchPartsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                       int64_t count, ArrayRef<int64_t> bytes) {
  if (count < 2) // C5
    return emitError() << "expected at least 2 parts, got " << count;
  for (int64_t size : bytes)
    if (size < 0) // C5
      return emitError() << "expected bytes of at least 0, got " << size;
  return success();
}

/// A version computes `samples` samples at a time; `most` of them are divided
/// among versions at once.
LogicalResult
BatchVersionAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                         StringRef, int64_t samples, int64_t most,
                         int64_t cycles, ArrayRef<int64_t> bytes) {
  if (samples < 1) // C8
    return emitError() << "expected at least 1 sample, got " << samples;
  if (most < samples) // C8
    return emitError() << "expected most of at least " << samples << ", got "
                       << most;
  if (most > BatchVersionAttr::mostSamples) // C8
    return emitError() << "expected most of at most "
                       << BatchVersionAttr::mostSamples << ", got " << most;
  if (cycles < 0) // C8
    return emitError() << "expected cycles of at least 0, got " << cycles;
  for (int64_t size : bytes)
    if (size < 0) // C8
      return emitError() << "expected bytes of at least 0, got " << size;
  return success();
}

/// Value first, then the place, then what excludes each other.
static LogicalResult verifyFunctionAttribute(Operation *op,
                                             NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == KasCPUDialect::batchPartsName &&
      !isa<BatchPartsAttr>(attribute.getValue()))
    return emitAttributeValueError(op, "a #kas_cpu.batch_parts", // C6
                                   attribute);
  if (name == KasCPUDialect::batchVersionName &&
      !isa<BatchVersionAttr>(attribute.getValue()))
    return emitAttributeValueError(op, "a #kas_cpu.batch_version", // C9
                                   attribute);
  if (name == KasCPUDialect::serialName && !isa<UnitAttr>(attribute.getValue()))
    return emitAttributeValueError(op, "a unit attribute", attribute); // A2
  if (!isa<FunctionOpInterface>(op)) // C7, C9, A2
    return emitAttributePositionError(op, "a function", attribute);
  if (name == KasCPUDialect::batchVersionName &&
      op->hasAttr(KasCPUDialect::batchPartsName)) // C9
    return op->emitError() << "expected " << name << " without "
                           << KasCPUDialect::batchPartsName << ", got both";
  return success();
}

/// For each attribute `kas_cpu.*` of any operation; unknown ones are errors.
LogicalResult
KasCPUDialect::verifyOperationAttribute(Operation *op,
                                        NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == batchPartsName || name == batchVersionName || name == serialName)
    return verifyFunctionAttribute(op, attribute);
  if (name != scheduleName) // A1
    return op->emitError() << "expected no attribute of this dialect but "
                           << scheduleName << ", " << batchPartsName << ", "
                           << batchVersionName << " and " << serialName
                           << ", got " << name;
  if (!isa<CPUScheduleAttr>(attribute.getValue())) // C3
    return emitAttributeValueError(op, "a #kas_cpu.schedule", attribute);
  // Either form of a contraction.
  if (!isa<ApplyOp, linalg::LinalgOp>(op)) // C4
    return emitAttributePositionError(op, "a kas.apply or a linalg operation",
                                      attribute);
  return success();
}

/// The dialect has none for arguments, nor for results.
LogicalResult KasCPUDialect::verifyRegionArgAttribute(
    Operation *op, unsigned, unsigned argument, NamedAttribute attribute) {
  return emitNoAttributeError(op, "argument", argument, attribute); // A1
}

LogicalResult KasCPUDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned result, NamedAttribute attribute) {
  return emitNoAttributeError(op, "result", result, attribute); // A1
}
