//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_KASDAGENUMS_TD
#define KAS_DIALECT_KAS_IR_KASDAGENUMS_TD

include "mlir/IR/EnumAttr.td"

def Kas_DagUnaryKind : I32EnumAttr<"DagUnaryKind", "element-wise function", [
    I32EnumAttrCase<"ReLU", 0, "relu">,
    I32EnumAttrCase<"GELU", 1, "gelu">,
    I32EnumAttrCase<"Sigmoid", 2, "sigmoid">,
    I32EnumAttrCase<"TanH", 3, "tanh">,
    I32EnumAttrCase<"Abs", 4, "abs">,
    I32EnumAttrCase<"Exp", 5, "exp">,
    I32EnumAttrCase<"Neg", 6, "neg">,
    I32EnumAttrCase<"Sin", 7, "sin">,
    I32EnumAttrCase<"Sqrt", 8, "sqrt">,
    I32EnumAttrCase<"Sqr", 9, "sqr">]> {
  let cppNamespace = "::kas";
}

def Kas_DagFoldKind : I32EnumAttr<"DagFoldKind", "how a fold combines", [
    I32EnumAttrCase<"Sum", 0, "sum">,
    I32EnumAttrCase<"Mean", 1, "mean">,
    I32EnumAttrCase<"Max", 2, "max">]> {
  let cppNamespace = "::kas";
}

def Kas_DagBroadcastKind : I32EnumAttr<"DagBroadcastKind", "how two tensors blend", [
    I32EnumAttrCase<"Add", 0, "add">,
    I32EnumAttrCase<"Sub", 1, "sub">,
    I32EnumAttrCase<"Mul", 2, "mul">,
    I32EnumAttrCase<"Min", 3, "min">,
    I32EnumAttrCase<"Max", 4, "max">]> {
  let cppNamespace = "::kas";
}

#endif // KAS_DIALECT_KAS_IR_KASDAGENUMS_TD
