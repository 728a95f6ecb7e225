//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Collects what contractions are cut for: the numbers of a target, of a
// schedule, of an algorithm, and the threads that may share the work.
//
//===----------------------------------------------------------------------===//

#include "ContractionTarget.h"
#include "kas/Dialect/KasCPU/IR/ModuleTarget.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

ContractionTarget::ContractionTarget(const Target &target)
    : TileTarget(target), hasFMA(target.hasFMA) {}

/// The tiles that an algorithm names, if any.
static std::optional<schedule::TileStrategy>
getStrategy(ConvolutionAlgorithm algorithm) {
  switch (algorithm) {
  case ConvolutionAlgorithm::Direct:
    return schedule::TileStrategy::Direct;
  case ConvolutionAlgorithm::Im2col:
    return schedule::TileStrategy::Panels;
  case ConvolutionAlgorithm::SpatialPack:
    return schedule::TileStrategy::RowVectors;
  case ConvolutionAlgorithm::Auto:
  case ConvolutionAlgorithm::Winograd:
    return std::nullopt;
  }
  llvm_unreachable("all algorithms are above");
}

schedule::TileNumbers kas::codegen::getTileNumbers(CPUScheduleAttr schedule) {
  return {schedule.getRows(), schedule.getColumns(), schedule.getVectors(),
          schedule.getTile(), schedule.getDepth()};
}

schedule::TileOptions ContractionOptions::getTileOptions() const {
  kas::schedule::TileOptions result;
  // As for many, where their number is not known.
  constexpr int64_t usualThreads = 8;
  result.threads = threads ? threads : usualThreads;
  result.prepacked = prepacked;
  result.strategy = getStrategy(algorithm);
  result.givesWay = !readsUnpadded;
  if (schedule) {
    static_assert(
        static_cast<unsigned>(CPUStrategy::RowVectors) ==
        static_cast<unsigned>(kas::schedule::TileStrategy::RowVectors));
    result.strategy =
        static_cast<kas::schedule::TileStrategy>(schedule.getStrategy());
    result.givesWay = false;
    result.given = getTileNumbers(schedule);
  }
  return result;
}

int64_t kas::codegen::getNumThreads(Operation *op, int64_t threads) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    function = op->getParentOfType<FunctionOpInterface>();
  return function && function->hasAttr(KasCPUDialect::serialName) ? 1 : threads;
}

Target kas::codegen::getContractionTarget(Operation *op, int64_t vectorBits) {
  Target target;
  // Without a target: what most have.
  target.vectorBits = 256;
  target.hasFMA = true;
  target = getModuleTarget(op).value_or(target);
  if (vectorBits == 0)
    return target;
  target.vectorBits = vectorBits;
  // AVX-512 doubles the number of registers, too.
  if (vectorBits >= 512)
    target.vectorRegisters = 32;
  return target;
}

CPUScheduleAttr kas::codegen::getSchedule(Operation *op) {
  return op->getAttrOfType<CPUScheduleAttr>(KasCPUDialect::scheduleName);
}

void kas::codegen::remarkNotPacked(Operation *op, StringRef name,
                                   const Twine &reason) {
  // A schedule is an order: not to follow it is an error, not a remark.
  if (CPUScheduleAttr schedule = getSchedule(op))
    op->emitError() << "expected an operation that suits " << schedule << ": "
                    << reason;
  remark::missed(op->getLoc(),
                 remark::RemarkOpts::name("NotPacked").category(panelRemarks))
      << remark::metric("operation", name.str())
      << remark::reason("{0}", reason.str());
}
