//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_SCHEDULEINTERFACE_TD
#define KAS_DIALECT_KAS_IR_SCHEDULEINTERFACE_TD

include "mlir/IR/Interfaces.td"

def Kas_ScheduleAttrInterface : AttrInterface<"ScheduleAttrInterface"> {
  let cppNamespace = "::kas";
  let description = [{
    How an operation is cut for a device: a strategy and its knobs. The schedules
    that suit an operation, with what the cost model states for each, are a
    `ScheduleSpace`, which code generation for the device makes.
  }];
  let methods = [
    InterfaceMethod<[{
      The number of the strategy. Schedules of one strategy for one operation
      have the same knobs.
    }], "unsigned", "getStrategyNumber">,
    InterfaceMethod<[{
      The numbers that a tuner may change; those of an array have one name.
    }], "::llvm::SmallVector<::kas::ScheduleKnob>", "getKnobs">,
    InterfaceMethod<[{
      The point of `space`, that of another operation on the same device, that is
      nearest to this schedule.
    }], "::kas::AdaptedPoint", "adapt", (ins "const ::kas::ScheduleSpace &":$space)>,
    InterfaceMethod<[{
      What a learned model sees of this schedule, a point of `space` with this
      `cost`: as many numbers for all operations of a device.
    }], "::std::vector<float>", "getFeatures",
      (ins "const ::kas::ScheduleSpace &":$space, "::kas::ScheduleCost":$cost)>,
    InterfaceMethod<[{
      Those of `features` that tell the iterations of the operation's loops.
    }], "::llvm::ArrayRef<float>", "getLoopFeatures",
      (ins "::llvm::ArrayRef<float>":$features), "", [{
      return {};
    }]>
  ];
  let extraClassDeclaration = [{
    /// The text by which databases and remarks name the schedule; empty for
    /// null.
    std::string getText() const;
  }];
}

#endif // KAS_DIALECT_KAS_IR_SCHEDULEINTERFACE_TD
