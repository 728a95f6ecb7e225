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

    Passes write discardable attributes of this dialect. Those of operations:

    | attribute | value | on |
    | --- | --- | --- |
    | `kas.site` | a dictionary: the `space` or the `kernel` of a layer, its `binding`, its `name` if it has one, and `attention` for heads of attention | linalg operations |
    | `kas.layer` | the name of a layer, by which a transform script knows it | linalg operations |
    | `kas.named_operator` | the operator of the library that computes the layers of a space | `kas.space` |
    | `kas.score` | a dictionary: the metrics of a candidate | results of searches |
    | `kas.origin` | the name of the space that was searched | results of searches |
    | `kas.candidate` | the candidate's number in the database | results of searches |
    | `kas.front` | a unit: the candidate is on the Pareto front | results of searches |
    | `kas.programs` | a dictionary: for layers by name, the steps that transformed them | functions |
    | `kas.layers`, `kas.parameters` | names of what the results of the function are for, in their order | functions |
    | `kas.read` | a number that keeps reads apart | `bufferization.to_buffer` |
    | `kas.full_rank_at` | the numbers of the bindings of the space at which a rank is full: there it is the same as an operator with a weight less | results of searches |

    Those of arguments of functions: `kas.name`, the name by which files and other functions refer to the
    argument, such as `conv1.weight`; `kas.init`, how to fill it when no file does: `zeros`, `ones`,
    `constant(V)`, `normal(S)`, `uniform(B)`, `positive(V)` or `kaiming(F)`; and for `-kas-training-step`
    `kas.weight_decay`, how much of it a step takes away, `kas.momentum`, the weight of a batch in running statistics, and
    `kas.constant`, that it is not trained. For
    `-kas-mark-dropout` it has `kas.dropout`, a probability. Results of functions have `kas.name`, too.
    `kas.unsigned` on an argument or a result says that its integers, which have no sign in MLIR, are unsigned
    ones: those who call the function take and give elements of `uint8`, `uint16`, `uint32` or `uint64`.
    `kas.data` says that an argument which is not the first is data, too, and no weight: nothing is packed from it ahead
    of the calls.

    Constraints:
    - A1: an operation has no attribute of this dialect but those of the table, a function's argument none but
      `kas.name`, `kas.init`, `kas.weight_decay`, `kas.constant`, `kas.dropout`, `kas.unsigned`,
      `kas.momentum` and `kas.data`, a function's result none but `kas.name` and `kas.unsigned`.
    - A2: `kas.site` is a dictionary of one symbol, `space` or `kernel`, a `binding` of type `i64`, and optionally
      a string `name` and a unit `attention`, on a linalg operation.
    - A3: `kas.layer` is a string, on a linalg operation.
    - A4: `kas.named_operator` is a string, on a `kas.space`.
    - A5: `kas.score` is a dictionary of numbers, of type `i64` or `f64`, on an operation that defines a symbol.
    - A6: `kas.origin` is a string, on an operation that defines a symbol.
    - A7: `kas.candidate` is a number of type `i64`, on an operation that defines a symbol.
    - A8: `kas.front` is a unit, on an operation that defines a symbol.
    - A9: `kas.programs` is a dictionary of strings, on a function.
    - A10: `kas.layers` is an array of strings, on a function.
    - A11: `kas.parameters` is an array of strings, on a function.
    - A12: `kas.read` is a number of type `i64`, on a `bufferization.to_buffer`.
    - A13: `kas.name` is a string.
    - A14: `kas.init` is one of the texts above.
    - A15: `kas.full_rank_at` is an array of numbers of bindings, from 0 on, on a `kas.operator`.
    - A16: `kas.weight_decay` is a finite floating-point number of at least 0.
    - A17: `kas.constant` is a unit attribute.
    - A18: `kas.dropout` is a floating-point number of at least 0 and less than 1.
    - A19: `kas.unsigned` is a unit attribute, on a tensor of integers without a sign, of 8 bits at least.
    - A20: `kas.momentum` is a floating-point number from 0 to 1.
    - A21: `kas.data` is a unit attribute.

    Bytecode has the version of the dialect, which is 1.0; what was written before there was a version is read,
    and what a newer major version wrote is refused.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Names of discardable attributes of operations.
    static constexpr ::llvm::StringLiteral siteAttrName = "kas.site";
    static constexpr ::llvm::StringLiteral layerAttrName = "kas.layer";
    static constexpr ::llvm::StringLiteral namedOperatorAttrName =
        "kas.named_operator";
    static constexpr ::llvm::StringLiteral scoreAttrName = "kas.score";
    static constexpr ::llvm::StringLiteral originAttrName = "kas.origin";
    static constexpr ::llvm::StringLiteral candidateAttrName = "kas.candidate";
    static constexpr ::llvm::StringLiteral frontAttrName = "kas.front";
    static constexpr ::llvm::StringLiteral programsAttrName = "kas.programs";
    static constexpr ::llvm::StringLiteral layersAttrName = "kas.layers";
    static constexpr ::llvm::StringLiteral parametersAttrName =
        "kas.parameters";
    static constexpr ::llvm::StringLiteral readAttrName = "kas.read";
    /// Names of discardable attributes of arguments of functions.
    static constexpr ::llvm::StringLiteral argumentNameAttrName = "kas.name";
    static constexpr ::llvm::StringLiteral initializerAttrName = "kas.init";

  private:
    void registerAttributes();
    void registerBytecode();

  public:
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
