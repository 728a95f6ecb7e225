//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_KASINTERFACES_TD
#define KAS_DIALECT_KAS_IR_KASINTERFACES_TD

include "mlir/IR/OpBase.td"

def Kas_PrimitiveOpInterface : OpInterface<"PrimitiveOpInterface"> {
  let cppNamespace = "::kas";
  let description = [{
    A primitive of the coordinate level: its operands are the bottom coordinates
    (output side), its results the top coordinates (input side). Source: the
    Syno paper, section 5, table of primitives.
  }];
  let methods = [
    InterfaceMethod<[{
      The sizes that this primitive names besides those of its operands and
      results (a block, a stride, a lower padding).
    }], "::llvm::SmallVector<::kas::SizeAttr>", "getParameterSizes", (ins), "", [{
      return {};
    }]>,
    InterfaceMethod<[{
      Checks what needs numbers: given the value of every size at one binding,
      emits a diagnostic on this op when its constraint does not hold. All sizes
      are integers of at least 1 already.
    }], "::llvm::LogicalResult", "verifyAtBinding",
      (ins "::llvm::function_ref<int64_t(::kas::SizeAttr)>":$valueOf,
           "::llvm::function_ref<::mlir::InFlightDiagnostic()>":$emitError), "", [{
      return ::mlir::success();
    }]>,
    InterfaceMethod<[{
      The top coordinates as affine expressions of the bottom ones, in a concrete
      operator (all sizes constant). When the primitive clips, `guard` is set to
      the expression that must lie in [0, `extent`) for the point to exist; it is
      null otherwise.
    }], "void", "getTopExpressions",
      (ins "::llvm::ArrayRef<::mlir::AffineExpr>":$bottoms,
           "::llvm::SmallVectorImpl<::mlir::AffineExpr> &":$tops,
           "::mlir::AffineExpr &":$guard, "int64_t &":$extent)>
  ];
}

#endif // KAS_DIALECT_KAS_IR_KASINTERFACES_TD
