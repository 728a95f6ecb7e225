//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_KASBASE_TD
#define KAS_DIALECT_KAS_IR_KASBASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Kas_Dialect : Dialect {
  let name = "kas";
  let cppNamespace = "::kas";
  let summary = "Neural-network operators as graphs of fine-grained primitives";
  let description = [{
    An operator is written down as a graph of primitives over symbolic sizes.
    The values are *coordinates*, loop index expressions with a symbolic domain
    size; the ops are the primitives, read from the output to the input: block
    arguments are the output coordinates, `kas.yield` says which coordinates
    index the data and the weights.

    ```
    kas.space --(kas-search)--> kas.operator --(kas.apply in a function)-->
      kas-specialize --> kas-to-linalg / kas-to-affine --> kas-cpu-pipeline
    ```

    Source: the primitive graphs (pGraph) of the Syno paper, sections 4 and 5.
    The specification, with every numbered constraint, is `docs/reference/dialect.md`.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    /// Names of discardable attributes of arguments of functions.
    static constexpr ::llvm::StringLiteral argumentNameAttrName = "kas.name";
    static constexpr ::llvm::StringLiteral initializerAttrName = "kas.init";

    void registerAttributes();
  }];
}

class Kas_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Kas_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

class Kas_Type<string name, string typeMnemonic, list<Trait> traits = []>
    : TypeDef<Kas_Dialect, name, traits> {
  let mnemonic = typeMnemonic;
}

class Kas_Op<string mnemonic, list<Trait> traits = []>
    : Op<Kas_Dialect, mnemonic, traits>;

#endif // KAS_DIALECT_KAS_IR_KASBASE_TD
