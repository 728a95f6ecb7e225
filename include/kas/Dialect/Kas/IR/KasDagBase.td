//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What tensor-level ops have in common.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_KASDAGBASE_TD
#define KAS_DIALECT_KAS_IR_KASDAGBASE_TD

include "kas/Dialect/Kas/IR/KasDagEnums.td"
include "kas/Dialect/Kas/IR/KasDagInterfaces.td"
include "kas/Dialect/Kas/IR/KasKernelOp.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Kas_DagOp<string mnemonic, list<string> methods = []>
    : Kas_Op<"dag." # mnemonic, [
        Pure, HasParent<"KernelOp">, InferTypeOpAdaptor,
        DeclareOpInterfaceMethods<Kas_DagOpInterface, methods>]> {
  let results = (outs Kas_SymbolicTensorType:$result);
}

/// An op with one operand, whose shape the result has. `demand` is a function
/// of KasDagShapes.h that checks the operand and the attributes.
class Kas_DagSameShapeOp<string mnemonic, string demand,
                         list<string> methods = []>
    : Kas_DagOp<mnemonic, methods> {
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *, std::optional<::mlir::Location> location,
        Adaptor adaptor, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      SymbolicTensorType type = getTensorType(adaptor.getInput());
      types.push_back(type);
      return }] # demand # [{(adaptor, type, location);
    }
  }];
}

#endif // KAS_DIALECT_KAS_IR_KASDAGBASE_TD
