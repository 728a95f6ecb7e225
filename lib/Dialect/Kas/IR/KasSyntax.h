//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Text forms shared by the ops, attributes and types of the dialect.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_DIALECT_KAS_IR_KASSYNTAX_H
#define KAS_LIB_DIALECT_KAS_IR_KASSYNTAX_H

#include "kas/Dialect/Kas/IR/Kas.h"

namespace kas {

/// Parses a bare size, e.g. `C*k/s`. `first` is its leading integer when that
/// has been taken already.
mlir::FailureOr<SizeAttr>
parseBareSize(mlir::AsmParser &parser,
              std::optional<int64_t> first = std::nullopt);
void printBareSize(mlir::AsmPrinter &printer, SizeAttr size);

/// The same as a custom directive of assembly formats.
mlir::ParseResult parseBareSize(mlir::OpAsmParser &parser, SizeAttr &size);
void printBareSize(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                   SizeAttr size);

/// `keyword {...}` on a line of its own; nothing for an empty dictionary.
void printDictionary(mlir::OpAsmPrinter &printer, llvm::StringRef keyword,
                     mlir::DictionaryAttr dictionary);

/// `<N = 1, k = 3>`, without a mnemonic; empty when `optional` and absent.
mlir::FailureOr<BindingAttr> parseBindingList(mlir::AsmParser &parser,
                                              bool optional = false);
void printBindingList(mlir::AsmPrinter &printer, BindingAttr binding);

/// `[C, KH | H, W]`: channel dimensions, then spatial ones.
mlir::FailureOr<SymbolicTensorType> parseTensorShape(mlir::AsmParser &parser);
void printTensorShape(mlir::AsmPrinter &printer, SymbolicTensorType type);

/// `[<N = 1, ...> x 4, <...>]`: bindings and how often each counts.
mlir::ParseResult parseBindings(mlir::AsmParser &parser,
                                mlir::ArrayAttr &bindings,
                                mlir::DenseI64ArrayAttr &multiplicities);
void printBindings(mlir::AsmPrinter &printer, mlir::ArrayAttr bindings,
                   llvm::ArrayRef<int64_t> multiplicities);

/// `<P1, P2 | c1, c2>`, or nothing when no symbol is declared.
mlir::ParseResult parseSymbols(mlir::AsmParser &parser,
                               mlir::ArrayAttr &primaries,
                               mlir::ArrayAttr &coefficients);
void printSymbols(mlir::AsmPrinter &printer, mlir::ArrayAttr primaries,
                  mlir::ArrayAttr coefficients);

/// `[N, C unordered, H]`.
mlir::ParseResult parseShape(mlir::AsmParser &parser, mlir::ArrayAttr &sizes,
                             mlir::DenseBoolArrayAttr &unordered);
void printShape(mlir::AsmPrinter &printer, mlir::ArrayAttr sizes,
                mlir::DenseBoolArrayAttr unordered);

/// Builds the set of declared symbols; the error says what is wrong with them.
llvm::Expected<SymbolSet> makeSymbolSet(mlir::ArrayAttr primaries,
                                        mlir::ArrayAttr coefficients);

/// Checks what can be known about `size` without a binding: its symbols are
/// declared, no primary has a negative exponent, a constant is an integer.
/// `what` names the size in the message, `constraint` its number.
mlir::LogicalResult verifySymbolicSize(SizeAttr size, const SymbolSet &symbols,
                                       llvm::StringRef what,
                                       llvm::StringRef constraint,
                                       EmitErrorFn emitError);

/// The custom form of `kas.yield` has no types, so its operands can only be
/// resolved once the whole body is known. Until then the primitives carry the
/// names of their results, and the yield those of its operands, in these
/// attributes; `kas.operator` takes them away again.
inline constexpr llvm::StringLiteral resultNamesAttr = "kas.parsed_results";
inline constexpr llvm::StringLiteral operandNamesAttr = "kas.parsed_operands";

} // namespace kas

#endif // KAS_LIB_DIALECT_KAS_IR_KASSYNTAX_H
