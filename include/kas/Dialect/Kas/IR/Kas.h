//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kas dialect: one include for its attributes, types, interfaces and ops.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_KAS_H
#define KAS_DIALECT_KAS_IR_KAS_H

#include "kas/Support/Size.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace kas {
/// For the uniquing of attributes only; never part of a result.
inline llvm::hash_code hash_value(const Size &size) { return size.hash(); }
class OperatorOp;
class YieldOp;
} // namespace kas

#include "kas/Dialect/Kas/IR/KasDialect.h.inc"
#include "kas/Dialect/Kas/IR/KasEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "kas/Dialect/Kas/IR/KasAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "kas/Dialect/Kas/IR/KasTypes.h.inc"

#include "kas/Dialect/Kas/IR/KasInterfaces.h.inc"

#define GET_OP_CLASSES
#include "kas/Dialect/Kas/IR/KasOps.h.inc"

namespace kas {

/// The size of a coordinate.
inline SizeAttr getSize(mlir::Value coordinate) {
  return llvm::cast<CoordType>(coordinate.getType()).getSize();
}

/// The size of a coordinate of a concrete operator.
inline int64_t getConcreteSize(mlir::Value coordinate) {
  return *getSize(coordinate).getConstantValue();
}

/// The reductions in program order, the outermost first.
llvm::SmallVector<ReduceOp> getReductions(OperatorOp op);

using EmitErrorFn = llvm::function_ref<mlir::InFlightDiagnostic()>;

/// Checks everything about `op` that needs numbers: at `binding` (in the order
/// of `getSymbolSet`) every size is an integer from 1 to `Size::maxInteger`, C3
/// and C5 hold, and no tensor has 2^63 elements or more. Diagnostics are made
/// by `emitError`.
mlir::LogicalResult verifyBinding(OperatorOp op, const Binding &binding,
                                  EmitErrorFn emitError);

/// The binding of `op`'s symbols that `attr` gives. Reports values for symbols
/// that are not declared, and declared symbols that are in use but have no
/// value (unused ones are bound to 1).
mlir::FailureOr<Binding> getBinding(OperatorOp op, BindingAttr attr,
                                    EmitErrorFn emitError);

/// The binding that `apply` gives to the symbols of `op`, from its types and
/// its `<...>`; reports whatever does not fit together.
mlir::FailureOr<Binding> inferBinding(ApplyOp apply, OperatorOp op,
                                      EmitErrorFn emitError);

/// The binding of the symbols of `op` when it is applied to data of type `data`
/// with a result of type `result` and with `attr` in its `<...>`; reports
/// whatever does not fit together. Shapes must be static.
mlir::FailureOr<Binding> inferBinding(OperatorOp op, mlir::ShapedType data,
                                      mlir::ShapedType result, BindingAttr attr,
                                      EmitErrorFn emitError);

/// Parses `N=1,Cin=64` (any order, spaces allowed) as given on command lines.
llvm::Expected<BindingAttr> parseBinding(mlir::MLIRContext *context,
                                         llvm::StringRef text);

/// The value of `size` (over `symbols`) at `binding`, or nothing.
std::optional<int64_t> evaluate(SizeAttr size, const SymbolSet &symbols,
                                const Binding &binding);

} // namespace kas

#endif // KAS_DIALECT_KAS_IR_KAS_H
