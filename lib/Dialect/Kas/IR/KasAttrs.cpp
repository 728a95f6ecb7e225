//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attributes of the dialect: symbolic sizes, bindings, and their text form.
//
// A size is a monomial: an integer constant (numerator and denominator) times
// powers of symbols, as in `2*C*k/s` (docs/reference/dialect.md). The attribute
// has a normal form, symbols sorted by name, so equal sizes are one pointer.
//
//===----------------------------------------------------------------------===//

#include "KasSyntax.h"
#include "kas/Support/SizeGrammar.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kas;

#define GET_ATTRDEF_CLASSES
#include "kas/Dialect/Kas/IR/KasAttrs.cpp.inc"

void KasDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "kas/Dialect/Kas/IR/KasAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// SizeAttr
//===----------------------------------------------------------------------===//

/// `names` are those of the symbols that `value` counts by index; symbols with
/// exponent 0 are left out.
SizeAttr SizeAttr::getNormal(MLIRContext *context, const Size &value,
                             ArrayRef<StringRef> names) {
  SmallVector<unsigned> used;
  for (unsigned index = 0; index < SymbolSet::maxSymbols; ++index)
    if (value.getExponent(index) != 0)
      used.push_back(index);
  // By name: the order of declarations must not matter.
  llvm::sort(used, [&](unsigned a, unsigned b) { return names[a] < names[b]; });
  // Where each index of `value` goes among the sorted names.
  SmallVector<unsigned> positions(SymbolSet::maxSymbols, 0);
  SmallVector<StringAttr> sorted;
  for (auto [position, index] : llvm::enumerate(used)) {
    positions[index] = position;
    sorted.push_back(StringAttr::get(context, names[index]));
  }
  return get(context, sorted, value.remap(positions));
}

SizeAttr SizeAttr::getNormal(MLIRContext *context, const Size &value,
                             const SymbolSet &symbols) {
  SmallVector<StringRef> names;
  for (unsigned index = 0; index < symbols.size(); ++index)
    names.push_back(symbols.getName(index));
  return getNormal(context, value, names);
}

/// Null when `value` is no size (below 1, or above `Size::maxInteger`).
SizeAttr SizeAttr::getConstant(MLIRContext *context, int64_t value) {
  std::optional<Size> size = Size::constant(value);
  return size ? get(context, {}, *size) : SizeAttr();
}

SizeAttr SizeAttr::getSymbol(MLIRContext *context, StringRef name) {
  return get(context, {StringAttr::get(context, name)}, Size::symbol(0));
}

/// Combines two sizes over the union of their symbols; null when the result or
/// the union does not fit.
static SizeAttr
combine(SizeAttr left, SizeAttr right,
        llvm::function_ref<std::optional<Size>(const Size &, const Size &)>
            operation) {
  SmallVector<StringRef> names;
  auto position = [&](StringAttr name) -> unsigned {
    const auto *it = llvm::find(names, name.getValue());
    if (it == names.end()) {
      names.push_back(name.getValue());
      return names.size() - 1;
    }
    return it - names.begin();
  };
  // Both count their own symbols from 0; remapped, they count those of the
  // union.
  SmallVector<unsigned> ofLeft = llvm::map_to_vector(left.getNames(), position);
  SmallVector<unsigned> ofRight =
      llvm::map_to_vector(right.getNames(), position);
  if (names.size() > SymbolSet::maxSymbols)
    return {};
  std::optional<Size> result =
      operation(left.getValue().remap(ofLeft), right.getValue().remap(ofRight));
  if (!result)
    return {};
  return SizeAttr::getNormal(left.getContext(), *result, names);
}

/// `C * C/s` -> `C*C/s`. Null when an exponent or the constant overflows.
SizeAttr SizeAttr::multiply(SizeAttr other) const {
  return combine(*this, other,
                 [](const Size &a, const Size &b) { return a.multiply(b); });
}

/// Always a monomial, never checked for being an integer: that is a question of
/// bindings.
SizeAttr SizeAttr::divide(SizeAttr other) const {
  return combine(*this, other,
                 [](const Size &a, const Size &b) { return a.divide(b); });
}

/// Nothing for 3/2, too: no tensor has so many elements.
std::optional<int64_t> SizeAttr::getConstantValue() const {
  if (!getNames().empty() || !getValue().hasIntegerConstant())
    return std::nullopt;
  return getValue().getNumerator();
}

/// Nothing when a symbol is not in the set.
std::optional<Size> SizeAttr::toSize(const SymbolSet &symbols) const {
  SmallVector<unsigned> positions;
  for (StringAttr name : getNames()) {
    std::optional<unsigned> index = symbols.lookup(name.getValue());
    if (!index)
      return std::nullopt;
    positions.push_back(*index);
  }
  return getValue().remap(positions);
}

namespace {
/// The tokens of an MLIR parser as a source for the grammar of sizes.
struct AsmSource {
  AsmParser &parser;
  /// An integer that the caller has taken already, the first token.
  std::optional<int64_t> first;
  /// In order of occurrence: index i of the size that is parsed.
  SmallVector<StringRef> names = {};
  /// A diagnostic was emitted: the grammar then stops without another one.
  bool failed = false;

  /// Takes the punctuation `c` if it is next: `*`, `/`, `(` or `)`.
  bool eat(char c) {
    switch (c) {
    case '*':
      return succeeded(parser.parseOptionalStar());
    case '/':
      return succeeded(parser.parseOptionalSlash());
    case '(':
      return succeeded(parser.parseOptionalLParen());
    default:
      return succeeded(parser.parseOptionalRParen());
    }
  }
  /// Whether an integer that fits 64 bits is next.
  bool integer(int64_t &value) {
    if (first) {
      value = *std::exchange(first, std::nullopt);
      return true;
    }
    OptionalParseResult result = parser.parseOptionalInteger(value);
    if (result.has_value() && mlir::failed(*result))
      failed = true;
    return result.has_value() && mlir::succeeded(*result);
  }
  /// Whether a name is next; a new one becomes the next symbol.
  bool symbol(Size &size) {
    StringRef name;
    if (failed || mlir::failed(parser.parseOptionalKeyword(&name)))
      return false;
    const auto *it = llvm::find(names, name);
    if (it == names.end() && names.size() == SymbolSet::maxSymbols) {
      error("a size may hold at most 12 symbols");
      return false;
    }
    if (it == names.end()) {
      names.push_back(name);
      it = std::prev(names.end());
    }
    size = Size::symbol(it - names.begin());
    return true;
  }
  std::nullopt_t error(StringRef message) {
    if (!failed)
      parser.emitError(parser.getCurrentLocation(), message);
    failed = true;
    return std::nullopt;
  }
};
} // namespace

/// The grammar reports what it does not accept, so failure has a diagnostic.
FailureOr<SizeAttr> kas::parseBareSize(AsmParser &parser,
                                       std::optional<int64_t> first) {
  AsmSource source{parser, first};
  std::optional<Size> size = parseSizeFrom(source);
  if (!size)
    return failure();
  return SizeAttr::getNormal(parser.getContext(), *size, source.names);
}

void kas::printBareSize(AsmPrinter &printer, SizeAttr size) {
  SmallVector<StringRef> names = llvm::map_to_vector(
      size.getNames(), [](StringAttr name) { return name.getValue(); });
  // `printSize` indexes by exponent, also those that are 0.
  names.resize(SymbolSet::maxSymbols);
  printSize(printer.getStream(), size.getValue(), names);
}

ParseResult kas::parseBareSize(OpAsmParser &parser, SizeAttr &size) {
  FailureOr<SizeAttr> parsed = parseBareSize(parser);
  if (failed(parsed))
    return failure();
  size = *parsed;
  return success();
}

void kas::printBareSize(OpAsmPrinter &printer, Operation *, SizeAttr size) {
  printBareSize(printer, size);
}

Attribute SizeAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<SizeAttr> size = parseBareSize(parser);
  if (failed(size) || parser.parseGreater())
    return {};
  return *size;
}

void SizeAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printBareSize(printer, *this);
  printer << '>';
}

Type CoordType::parse(AsmParser &parser) {
  if (parser.parseLess())
    return {};
  FailureOr<SizeAttr> size = parseBareSize(parser);
  if (failed(size) || parser.parseGreater())
    return {};
  return CoordType::get(parser.getContext(), *size);
}

void CoordType::print(AsmPrinter &printer) const {
  printer << '<';
  printBareSize(printer, getSize());
  printer << '>';
}

/// Sizes themselves are verified with the kernel, which declares their symbols.
LogicalResult SymbolicTensorType::verify(EmitErrorFn emitError,
                                         ArrayRef<SizeAttr> dims,
                                         unsigned numChannelDims) {
  if (numChannelDims > dims.size())
    return emitError() << "a tensor has at most as many channel dimensions as "
                          "dimensions ("
                       << dims.size() << "), got " << numChannelDims;
  return success();
}

/// `[]`, `[C]`, `[| H, W]`, `[C, KH | H, W]`.
FailureOr<SymbolicTensorType> kas::parseTensorShape(AsmParser &parser) {
  SmallVector<SizeAttr> dims;
  auto parseDims = [&]() -> ParseResult {
    do {
      FailureOr<SizeAttr> size = parseBareSize(parser);
      if (failed(size))
        return failure();
      dims.push_back(*size);
    } while (succeeded(parser.parseOptionalComma()));
    return success();
  };
  if (parser.parseLSquare())
    return failure();
  bool hasSpatial = succeeded(parser.parseOptionalVerticalBar());
  if (!hasSpatial) {
    if (succeeded(parser.parseOptionalRSquare()))
      return SymbolicTensorType::get(parser.getContext(), {}, 0);
    if (parseDims())
      return failure();
    hasSpatial = succeeded(parser.parseOptionalVerticalBar());
  }
  // Without a bar all dimensions are channels.
  unsigned numChannelDims = dims.size();
  if ((hasSpatial && parseDims()) || parser.parseRSquare())
    return failure();
  return SymbolicTensorType::get(parser.getContext(), dims, numChannelDims);
}

void kas::printTensorShape(AsmPrinter &printer, SymbolicTensorType type) {
  auto print = [&](SizeAttr size) { printBareSize(printer, size); };
  printer << '[';
  llvm::interleaveComma(type.getChannelDims(), printer, print);
  if (!type.getSpatialDims().empty()) {
    printer << (type.getNumChannelDims() == 0 ? "| " : " | ");
    llvm::interleaveComma(type.getSpatialDims(), printer, print);
  }
  printer << ']';
}

Type SymbolicTensorType::parse(AsmParser &parser) {
  if (parser.parseLess())
    return {};
  FailureOr<SymbolicTensorType> type = parseTensorShape(parser);
  if (failed(type) || parser.parseGreater())
    return {};
  return *type;
}

void SymbolicTensorType::print(AsmPrinter &printer) const {
  printer << '<';
  printTensorShape(printer, *this);
  printer << '>';
}

//===----------------------------------------------------------------------===//
// BindingAttr
//===----------------------------------------------------------------------===//

/// For entries that are known to be legal; text goes through `getChecked`.
BindingAttr
BindingAttr::getNormal(MLIRContext *context,
                       ArrayRef<std::pair<StringRef, int64_t>> entries) {
  SmallVector<std::pair<StringRef, int64_t>> sorted(entries);
  llvm::sort(sorted);
  SmallVector<StringAttr> names;
  SmallVector<int64_t> values;
  for (auto [name, value] : sorted) {
    names.push_back(StringAttr::get(context, name));
    values.push_back(value);
  }
  return get(context, names, values);
}

bool BindingAttr::empty() const { return getNames().empty(); }

/// Linear: at most 12 symbols.
std::optional<int64_t> BindingAttr::lookup(StringRef name) const {
  for (auto [key, value] : llvm::zip_equal(getNames(), getValues()))
    if (key.getValue() == name)
      return value;
  return std::nullopt;
}

LogicalResult BindingAttr::verify(EmitErrorFn emitError,
                                  ArrayRef<StringAttr> names,
                                  ArrayRef<int64_t> values) {
  if (names.size() != values.size())
    return emitError() << "a binding needs one value per name";
  for (auto [index, name] : llvm::enumerate(names)) {
    // Sorted, so that a repeated name is next to itself.
    if (index > 0 && !(names[index - 1].getValue() < name.getValue()))
      return emitError() << "symbol '" << name.getValue()
                         << "' is bound more than once";
    if (values[index] < 1)
      return emitError() << "the value of a symbol must be at least 1, got "
                         << name.getValue() << " = " << values[index];
  }
  return success();
}

FailureOr<BindingAttr> kas::parseBindingList(AsmParser &parser, bool optional) {
  SmallVector<std::pair<StringRef, int64_t>> entries;
  SMLoc location = parser.getCurrentLocation();
  auto parseEntry = [&]() -> ParseResult {
    StringRef name;
    int64_t value = 0;
    if (parser.parseKeyword(&name) || parser.parseEqual() ||
        parser.parseInteger(value))
      return failure();
    entries.emplace_back(name, value);
    return success();
  };
  auto delimiter = optional ? AsmParser::Delimiter::OptionalLessGreater
                            : AsmParser::Delimiter::LessGreater;
  if (parser.parseCommaSeparatedList(delimiter, parseEntry))
    return failure();
  llvm::sort(entries);
  SmallVector<StringAttr> names;
  SmallVector<int64_t> values;
  for (auto [name, value] : entries) {
    names.push_back(StringAttr::get(parser.getContext(), name));
    values.push_back(value);
  }
  // Checked: text may bind a symbol twice or to 0.
  auto binding =
      BindingAttr::getChecked([&] { return parser.emitError(location); },
                              parser.getContext(), names, values);
  if (!binding)
    return failure();
  return binding;
}

void kas::printBindingList(AsmPrinter &printer, BindingAttr binding) {
  printer << '<';
  llvm::interleaveComma(
      llvm::zip_equal(binding.getNames(), binding.getValues()), printer,
      [&](auto entry) {
        printer << std::get<0>(entry).getValue() << " = " << std::get<1>(entry);
      });
  printer << '>';
}

Attribute BindingAttr::parse(AsmParser &parser, Type) {
  FailureOr<BindingAttr> binding = parseBindingList(parser);
  return succeeded(binding) ? *binding : BindingAttr();
}

void BindingAttr::print(AsmPrinter &printer) const {
  printBindingList(printer, *this);
}
