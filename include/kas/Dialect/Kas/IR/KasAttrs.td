//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_KASATTRS_TD
#define KAS_DIALECT_KAS_IR_KASATTRS_TD

include "kas/Dialect/Kas/IR/KasBase.td"

//===----------------------------------------------------------------------===//
// SizeAttr
//===----------------------------------------------------------------------===//

def Kas_SizeAttr : Kas_Attr<"Size", "size"> {
  let summary = "a symbolic size: a monomial of symbols times a rational constant";
  let description = [{
    `kas::Size` with the names of its symbols, so that it can be printed without
    the operator that declares them. The names are those in use, sorted; two
    equal sizes are one attribute. Inside `kas.operator` it is written bare.

    ```mlir
    #kas.size<C*k/s>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"::mlir::StringAttr">:$names, "::kas::Size":$value);
  let hasCustomAssemblyFormat = 1;
  let skipDefaultBuilders = 0;
  let extraClassDeclaration = [{
    /// The attribute of `value`, whose symbol i is called `names[i]`; brings it
    /// to normal form.
    static SizeAttr getNormal(::mlir::MLIRContext *context,
                              const ::kas::Size &value,
                              ::llvm::ArrayRef<::llvm::StringRef> names);
    static SizeAttr getNormal(::mlir::MLIRContext *context,
                              const ::kas::Size &value,
                              const ::kas::SymbolSet &symbols);
    /// The constant `value`, or null when it is below 1 or too large.
    static SizeAttr getConstant(::mlir::MLIRContext *context, int64_t value);
    static SizeAttr getSymbol(::mlir::MLIRContext *context,
                              ::llvm::StringRef name);

    /// Exact arithmetic; null when the result does not fit.
    SizeAttr multiply(SizeAttr other) const;
    SizeAttr divide(SizeAttr other) const;

    /// The value when no symbol occurs and the constant is an integer.
    std::optional<int64_t> getConstantValue() const;

    /// The size over the symbols of `symbols`, or nothing when one of its
    /// symbols is not declared there.
    std::optional<::kas::Size> toSize(const ::kas::SymbolSet &symbols) const;
  }];
}

//===----------------------------------------------------------------------===//
// BindingAttr
//===----------------------------------------------------------------------===//

def Kas_BindingAttr : Kas_Attr<"Binding", "binding"> {
  let summary = "values for symbols";
  let description = [{
    Gives symbols their values, each an integer of at least 1. Kept sorted by
    name; no name occurs twice.

    ```mlir
    #kas.binding<Cin = 64, k = 3>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"::mlir::StringAttr">:$names,
    ArrayRefParameter<"int64_t">:$values);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Sorts the entries by name. Names must be distinct and values positive.
    static BindingAttr getNormal(
        ::mlir::MLIRContext *context,
        ::llvm::ArrayRef<std::pair<::llvm::StringRef, int64_t>> entries);
    /// The value of `name`, if it has one here.
    std::optional<int64_t> lookup(::llvm::StringRef name) const;
    bool empty() const;
  }];
}

//===----------------------------------------------------------------------===//
// ReduceKind
//===----------------------------------------------------------------------===//

def Kas_ReduceKind : I32EnumAttr<"ReduceKind", "how a reduction combines", [
    I32EnumAttrCase<"Sum", 0, "sum">,
    I32EnumAttrCase<"Mean", 1, "mean">,
    I32EnumAttrCase<"Max", 2, "max">]> {
  let cppNamespace = "::kas";
  let genSpecializedAttr = 0;
}
def Kas_ReduceKindAttr : EnumAttr<Kas_Dialect, Kas_ReduceKind, "reduce_kind">;

#endif // KAS_DIALECT_KAS_IR_KASATTRS_TD
