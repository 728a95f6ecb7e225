//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_KASDAGINTERFACES_TD
#define KAS_DIALECT_KAS_IR_KASDAGINTERFACES_TD

include "mlir/IR/OpBase.td"

def Kas_DagOpInterface : OpInterface<"DagOpInterface"> {
  let cppNamespace = "::kas";
  let description = [{
    A step of a tensor-level kernel: one tensor from one or two others. Costs are
    those of one sample.
  }];
  let methods = [
    InterfaceMethod<[{
      What the rules that searches use, too, state for the op; nothing of one that
      implies no sizes and costs nothing.
    }], "::kas::DagRules::Step", "getStep", (ins), "", [{
      return {};
    }]>,
    InterfaceMethod<[{
      Sizes that are no dimension of a tensor but must be integers as well:
      channels per group, the block and the ratio of a broadcast. Null stands for
      one whose exponents or constant do not fit.
    }], "::llvm::SmallVector<::kas::SizeAttr>", "getImpliedSizes", (ins), "", [{
      return ::llvm::SmallVector<::kas::SizeAttr>($_op.getStep().implied);
    }]>,
    InterfaceMethod<[{
      The floating-point operations, two per multiply-add; those of an activation
      as the Canvas paper's implementation counts them.
    }], "::llvm::SmallVector<::kas::SizeProduct>", "getFlops", (ins), "", [{
      ::kas::DagRules::Step step = $_op.getStep();
      if (step.flopsFactor == 0)
        return {};
      return {{step.flopsFactor, step.flops}};
    }]>,
    InterfaceMethod<[{
      The learned parameters: a term per weight, whose sizes are its shape.
    }], "::llvm::SmallVector<::kas::SizeProduct>", "getParams", (ins), "", [{
      ::kas::DagRules::Step step = $_op.getStep();
      return ::llvm::SmallVector<::kas::SizeProduct>(
          step.numWeights, {1, step.weight});
    }]>
  ];
}

#endif // KAS_DIALECT_KAS_IR_KASDAGINTERFACES_TD
