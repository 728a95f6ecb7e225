//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The structure of operations as a canonical text with its numbers apart: what
// makes two kernels the same, or of one class. Two texts. The structure has
// names of operations and attributes, types, and which value is which operand,
// with `#` for each number; the numbers follow in a list of their own. For
// example
//    arith.constant<value = #: i32>(%0: i32)      numbers: 7
// Kernels with both equal are measured once; kernels with the structure of the
// contraction equal are of one class, and schedules transfer between them. The
// text is written field by field and not printed by MLIR, so names of values
// and the forms of printers make no difference. It is kept in databases: a
// change of it makes stored times unfindable, so raise the schema version with
// it.
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/StructuralKey.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/SaveAndRestore.h"
#include "llvm/Support/xxhash.h"

using namespace kas;
using namespace kas::tuning;
using namespace mlir;

/// Names of discardable attributes begin with that of a dialect.
static bool isNote(NamedAttribute entry) {
  return entry.getName().strref().contains('.');
}

/// Enumerations that MLIR keeps as integers, and how many operands belong to a
/// segment.
static bool hasCodes(NamedAttribute entry) {
  return isa<DenseI32ArrayAttr>(entry.getValue()) ||
         llvm::is_contained({"predicate", "kind", "roundingmode"},
                            entry.getName().strref());
}

/// The number of `key` by its first occurrence.
/// Values, blocks and symbols become %0, %1, ... as they are met.
template <typename Key>
static size_t getIndex(llvm::DenseMap<Key, size_t> &indices, Key key) {
  return indices.try_emplace(key, indices.size()).first->second;
}

template <typename Range, typename Write>
void StructuralKey::writeList(llvm::StringRef delimiters, Range &&range,
                              Write &&write) {
  os << delimiters.front();
  llvm::interleaveComma(range, os, write);
  os << delimiters.back();
}

/// Numbering of values and symbols goes on: several operations make one key.
void StructuralKey::add(Operation *op) {
  // Values from outside `op` are written by their type only.
  llvm::SaveAndRestore restore(root, op);
  write(op);
  os << '\n';
}

/// name<attributes>(operands)[successors](results){regions}
void StructuralKey::write(Operation *op) {
  os << op->getName().getStringRef();
  writeAttributes(op);
  writeList("()", op->getOperands(), [&](Value value) { writeOperand(value); });
  if (op->getNumSuccessors())
    writeList("[]", op->getSuccessors(),
              [&](Block *block) { os << '^' << getIndex(blocks, block); });
  if (op->getNumResults())
    writeList("()", op->getResults(),
              [&](Value value) { writeDefinition(value); });
  for (Region &region : op->getRegions())
    write(region);
}

/// Blocks with their arguments, and operations separated by `;`.
void StructuralKey::write(Region &region) {
  os << '{';
  for (Block &block : region) {
    os << '^' << getIndex(blocks, &block);
    writeList("()", block.getArguments(),
              [&](Value value) { writeDefinition(value); });
    for (Operation &op : block) {
      write(&op);
      os << ';';
    }
  }
  os << '}';
}

/// Properties and discardable attributes look alike in the text: which of the
/// two holds an attribute is a detail of the operation's definition.
void StructuralKey::writeAttributes(Operation *op) {
  llvm::SmallVector<NamedAttribute> entries;
  Attribute properties = op->getPropertiesAsAttribute();
  if (auto dictionary = dyn_cast_if_present<DictionaryAttr>(properties))
    llvm::append_range(entries, dictionary);
  else if (properties)
    write(properties);
  llvm::append_range(entries, op->getRawDictionaryAttrs());
  llvm::erase_if(entries, [](NamedAttribute entry) {
    return isNote(entry) ||
           // A function has the same code if others can call it.
           entry.getName() == SymbolTable::getVisibilityAttrName();
  });
  if (!entries.empty())
    writeList("<>", entries, [&](NamedAttribute entry) { write(entry); });
}

/// A value of the root by its number. A value from outside by its type, and
/// whether it is padded, which decides how windows are read.
void StructuralKey::writeOperand(Value value) {
  if (root->isAncestor(value.getParentBlock()->getParentOp())) {
    os << '%' << getIndex(values, value);
    return;
  }
  if (value.getDefiningOp<tensor::PadOp>())
    os << "padded ";
  write(value.getType());
}

/// `%3: tensor<#x#xf32>`
void StructuralKey::writeDefinition(Value value) {
  os << '%' << getIndex(values, value) << ": ";
  write(value.getType());
}

/// A code (an enumeration in disguise) changes what is computed, so it stays in
/// the structure.
void StructuralKey::writeNumber(const llvm::APInt &value) {
  if (areCodes) {
    value.print(os, /*isSigned=*/true);
    return;
  }
  os << '#';
  addNumber(value);
}

/// Numbers are decimal and separated by commas, in the order of their `#`.
void StructuralKey::addNumber(const llvm::APInt &value) {
  if (!numbers.empty())
    numbers += ',';
  numbers += llvm::toString(value, /*Radix=*/10, /*Signed=*/true);
}

void StructuralKey::writeNumber(int64_t value) {
  writeNumber(llvm::APInt(64, value, /*isSigned=*/true));
}

/// Contents of weights may be megabytes; equal contents have equal hashes.
void StructuralKey::writeHash(llvm::ArrayRef<char> data) {
  os << llvm::format_hex(
      llvm::xxh3_64bits(llvm::StringRef(data.data(), data.size())), 18);
}

/// Quoted, so that no text can look like structure.
void StructuralKey::writeString(llvm::StringRef prefix, llvm::StringRef text) {
  os << prefix << '"';
  llvm::printEscapedString(text, os);
  os << '"';
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

void StructuralKey::write(NamedAttribute entry) {
  os << entry.getName().strref() << " = ";
  auto name = dyn_cast<StringAttr>(entry.getValue());
  // The names of functions and operators are numbered like values.
  if (name && entry.getName() == SymbolTable::getSymbolAttrName()) {
    os << '@' << getIndex(symbols, name);
    return;
  }
  llvm::SaveAndRestore restore(areCodes, areCodes || hasCodes(entry));
  write(entry.getValue());
}

/// Attributes that are not listed are written as MLIR prints them, which is
/// stable within one version.
void StructuralKey::write(Attribute attribute) {
  auto writeInteger = [&](int64_t value) { writeNumber(value); };
  auto writeEach = [&](auto part) { write(part); };
  llvm::TypeSwitch<Attribute>(attribute)
      .Case(
          [&](BoolAttr value) { os << (value.getValue() ? "true" : "false"); })
      .Case([&](IntegerAttr value) {
        writeNumber(value.getValue());
        os << ": ";
        write(value.getType());
      })
      // By bits: NaN and -0.0 are distinguished, and nothing is rounded.
      .Case([&](FloatAttr value) {
        os << llvm::toString(value.getValue().bitcastToAPInt(), /*Radix=*/16,
                             /*Signed=*/false, /*formatAsCLiteral=*/true)
           << ": ";
        write(value.getType());
      })
      .Case([&](StringAttr value) { writeString("", value.getValue()); })
      .Case([&](SymbolRefAttr value) {
        os << '@' << getIndex(symbols, value.getRootReference());
        for (FlatSymbolRefAttr nested : value.getNestedReferences())
          os << "::@" << getIndex(symbols, nested.getAttr());
      })
      .Case([&](TypeAttr value) { write(value.getValue()); })
      .Case([&](ArrayAttr value) { writeList("[]", value, writeEach); })
      .Case([&](DictionaryAttr value) { writeList("<>", value, writeEach); })
      .Case<DenseI64ArrayAttr, DenseI32ArrayAttr>([&](auto value) {
        writeList("[]", value.asArrayRef(), writeInteger);
      })
      .Case([&](DenseBoolArrayAttr value) {
        writeList("[]", value.asArrayRef(), [&](bool bit) { os << bit; });
      })
      .Case([&](DenseIntOrFPElementsAttr value) { write(value); })
      .Case([&](DenseResourceElementsAttr value) {
        // The name of a resource is that of its first user.
        const AsmResourceBlob *blob = value.getRawHandle().getBlob();
        os << "dense(";
        write(value.getType());
        os << ") ";
        writeHash(blob ? blob->getData() : llvm::ArrayRef<char>());
      })
      .Case([&](AffineMapAttr value) { write(value.getValue()); })
      .Case([&](SizeAttr value) { write(value); })
      .Case([&](BindingAttr value) {
        writeList("<>", llvm::zip_equal(value.getNames(), value.getValues()),
                  [&](auto entry) {
                    auto [name, number] = entry;
                    os << name.strref() << " = ";
                    writeNumber(number);
                  });
      })
      .Default([&](Attribute value) {
        std::string text;
        llvm::raw_string_ostream(text) << value;
        writeString("attribute", text);
      });
}

/// Integers are numbers, and so is how many there are, of equal ones one.
void StructuralKey::write(DenseIntOrFPElementsAttr attribute) {
  os << "dense(";
  write(attribute.getType());
  os << ") ";
  auto integers = dyn_cast<DenseIntElementsAttr>(attribute);
  if (!integers)
    return writeHash(attribute.getRawData());
  os << '#';
  int64_t count = integers.getNumElements();
  if (integers.isSplat())
    count = std::min<int64_t>(count, 1);
  addNumber(llvm::APInt(64, count));
  auto begin = integers.value_begin<llvm::APInt>();
  for (const llvm::APInt &value : llvm::make_range(begin, begin + count))
    addNumber(value);
}

/// The symbols belong to the structure, the constant to the numbers: H/2 and
/// H/4 are of one class.
void StructuralKey::write(SizeAttr attribute) {
  const Size &size = attribute.getValue();
  os << "size(";
  writeNumber(size.getNumerator());
  os << '/';
  writeNumber(size.getDenominator());
  for (auto [index, name] : llvm::enumerate(attribute.getNames()))
    os << " * " << name.strref() << "**" << size.getExponent(index);
  os << ')';
}

/// Coefficients are numbers, so strides and dilations do not change the class.
void StructuralKey::write(AffineMap map) {
  os << "map(" << map.getNumDims() << ", " << map.getNumSymbols() << ')';
  writeList("[]", map.getResults(), [&](AffineExpr expr) { write(expr); });
}

static llvm::StringRef getOperator(AffineExprKind kind) {
  switch (kind) {
  case AffineExprKind::Add:
    return " + ";
  case AffineExprKind::Mul:
    return " * ";
  case AffineExprKind::Mod:
    return " mod ";
  case AffineExprKind::FloorDiv:
    return " floordiv ";
  case AffineExprKind::CeilDiv:
    return " ceildiv ";
  default:
    llvm_unreachable("not a binary expression");
  }
}

/// With parentheses around every sum and product: no precedence is needed.
void StructuralKey::write(AffineExpr expr) {
  llvm::TypeSwitch<AffineExpr>(expr)
      .Case([&](AffineDimExpr dim) { os << 'd' << dim.getPosition(); })
      .Case([&](AffineSymbolExpr symbol) { os << 's' << symbol.getPosition(); })
      .Case([&](AffineConstantExpr number) { writeNumber(number.getValue()); })
      .Case([&](AffineBinaryOpExpr binary) {
        os << '(';
        write(binary.getLHS());
        os << getOperator(binary.getKind());
        write(binary.getRHS());
        os << ')';
      });
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Types with sizes are written by parts, others as MLIR prints them.
void StructuralKey::write(Type type) {
  auto writeEach = [&](Type part) { write(part); };
  llvm::TypeSwitch<Type>(type)
      // Each has one name.
      .Case<IntegerType, FloatType, IndexType>(
          [&](Type scalar) { os << scalar; })
      .Case([&](RankedTensorType tensor) {
        write(tensor, "tensor");
        if (Attribute encoding = tensor.getEncoding())
          write(encoding);
      })
      .Case([&](VectorType vector) {
        write(vector, "vector");
        if (vector.isScalable())
          writeList("[]", vector.getScalableDims(),
                    [&](bool isScalable) { os << isScalable; });
      })
      .Case([&](FunctionType function) {
        writeList("()", function.getInputs(), writeEach);
        writeList("()", function.getResults(), writeEach);
      })
      .Case([&](CoordType coord) { write(coord.getSize()); })
      .Default([&](Type other) {
        std::string text;
        llvm::raw_string_ostream(text) << other;
        writeString("type", text);
      });
}

/// Extents are numbers: `tensor<#x#xf32>` is every matrix.
void StructuralKey::write(ShapedType type, llvm::StringRef name) {
  os << name << '<';
  for (int64_t size : type.getShape()) {
    if (ShapedType::isDynamic(size))
      os << '?';
    else
      writeNumber(size);
    os << 'x';
  }
  write(type.getElementType());
  os << '>';
}
