//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What operations compute, as a key for databases.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TUNING_STRUCTURALKEY_H
#define KAS_TUNING_STRUCTURALKEY_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace kas {
class SizeAttr;
} // namespace kas

namespace kas::tuning {

/// The structure of operations as a canonical text, written field by field:
/// names of operations, attributes, types, regions, and which value is which
/// operand. Numbers are apart from it: sizes of dimensions, integers in
/// attributes, and constants of affine maps and of `kas` sizes. Operations with
/// equal structures and numbers compute the same.
///
/// Part of the structure, and no numbers: ranks and lengths of arrays, widths
/// of element types, floating-point numbers, enumerations, and how many
/// operands belong to a segment. Floating-point tensors and resources are part
/// of it by their hash. The symbols of `kas` sizes keep their names; operators
/// of kernels are concrete and have none.
///
/// Part of neither: names of values and symbols, visibility, locations, flags
/// of the printer, and attributes with the name of a dialect (`kas.layer`,
/// schedules, what linalg memoizes), which are notes about an operation.
///
/// Attributes and types that are not known here, such as the enumerations of
/// dialects, are part of the structure by their textual form, digits included.
class StructuralKey {
public:
  /// Appends an operation with its regions. Of an operand that is defined
  /// outside of it, only the type is written, and whether it is padded
  /// (`tensor.pad`).
  void add(mlir::Operation *op);

  /// Has `#` for each number.
  const std::string &getStructure() const { return structure; }
  /// Separated by commas, in the order of the structure.
  const std::string &getNumbers() const { return numbers; }

private:
  void write(mlir::Operation *op);
  void write(mlir::Region &region);
  void write(mlir::NamedAttribute entry);
  void write(mlir::Attribute attribute);
  void write(mlir::DenseIntOrFPElementsAttr attribute);
  void write(mlir::AffineMap map);
  void write(mlir::AffineExpr expr);
  void write(mlir::Type type);
  void write(mlir::ShapedType type, llvm::StringRef name);
  void write(SizeAttr size);
  void writeAttributes(mlir::Operation *op);
  void writeOperand(mlir::Value value);
  void writeDefinition(mlir::Value value);
  void writeNumber(const llvm::APInt &value);
  void writeNumber(int64_t value);
  void addNumber(const llvm::APInt &value);
  void writeHash(llvm::ArrayRef<char> data);
  void writeString(llvm::StringRef prefix, llvm::StringRef text);
  template <typename Range, typename Write>
  void writeList(llvm::StringRef delimiters, Range &&range, Write &&write);

  mlir::Operation *root = nullptr;
  /// By first occurrence.
  llvm::DenseMap<mlir::Value, size_t> values;
  llvm::DenseMap<mlir::Block *, size_t> blocks;
  llvm::DenseMap<mlir::StringAttr, size_t> symbols;
  /// Integers of the attribute at hand are codes, and so are structure.
  bool areCodes = false;
  std::string structure, numbers;
  llvm::raw_string_ostream os{structure};
};

} // namespace kas::tuning

#endif // KAS_TUNING_STRUCTURALKEY_H
