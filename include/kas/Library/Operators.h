//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library of named operators: convolutions, pooling, rearrangements and
// operators of the literature, as text in the dialect's own form, compiled in.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIBRARY_OPERATORS_H
#define KAS_LIBRARY_OPERATORS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace kas::library {

/// An operator or a kernel of the library. `text` is the whole file: a comment
/// with a title, the formula and its source, then one `kas.operator @name` or
/// `kas.kernel @name`.
struct NamedOperator {
  llvm::StringRef name;
  llvm::StringRef text;

  /// The title, one sentence or two.
  std::string getTitle() const;
  /// What the operator computes, as plain text; data outside its shape counts
  /// nothing, weights are W or W1, W2, ... in the operator's order.
  std::string getFormula() const;
  /// Where the operator comes from.
  std::string getSource() const;
};

/// All operators of the library, sorted by name.
llvm::ArrayRef<NamedOperator> getNamedOperators();

/// The operator called `name`, which may be spelled `kas.conv2d` as on command
/// lines, or `conv2d` as its symbol. Null when there is none.
const NamedOperator *lookupNamedOperator(llvm::StringRef name);

/// A module with the one operator called `name` (spelled as above), or null
/// when there is none. Loads the dialect into `context`.
mlir::OwningOpRef<mlir::ModuleOp> parseNamedOperator(mlir::MLIRContext *context,
                                                     llvm::StringRef name);

/// A module with all operators of the library, in the order of
/// `getNamedOperators`. Loads the dialect into `context`.
mlir::OwningOpRef<mlir::ModuleOp>
parseNamedOperators(mlir::MLIRContext *context);

/// All kernels of the library, sorted by name: images [C | H, W] to images,
/// over symbols without bindings.
llvm::ArrayRef<NamedOperator> getNamedKernels();

/// The kernel called `name`, spelled as an operator. Null when there is none.
const NamedOperator *lookupNamedKernel(llvm::StringRef name);

/// A module with the one kernel called `name`, or null when there is none.
/// Loads the dialect into `context`.
mlir::OwningOpRef<mlir::ModuleOp> parseNamedKernel(mlir::MLIRContext *context,
                                                   llvm::StringRef name);

} // namespace kas::library

#endif // KAS_LIBRARY_OPERATORS_H
