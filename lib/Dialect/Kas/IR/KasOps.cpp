//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Custom directives of the assembly formats of the dialect's operations.
// They are static functions in namespace kas, where the generated code calls
// them.
//
//===----------------------------------------------------------------------===//

#include "KasSyntax.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace kas;

//===----------------------------------------------------------------------===//
// Custom directives of the assembly formats
//===----------------------------------------------------------------------===//

namespace kas {

/// The size of a coordinate stands for its type: `: C*k`.
static ParseResult parseCoordSize(OpAsmParser &parser, Type &type) {
  FailureOr<SizeAttr> size = parseBareSize(parser);
  if (failed(size))
    return failure();
  type = CoordType::get(parser.getContext(), *size);
  return success();
}

static void printCoordSize(OpAsmPrinter &printer, Operation *, Type type) {
  printBareSize(printer, cast<CoordType>(type).getSize());
}

/// A plain integer with a sign, without the type that an attribute prints.
static ParseResult parseAmount(OpAsmParser &parser, IntegerAttr &amount) {
  int64_t value = 0;
  if (parser.parseInteger(value))
    return failure();
  amount = parser.getBuilder().getI64IntegerAttr(value);
  return success();
}

static void printAmount(OpAsmPrinter &printer, Operation *,
                        IntegerAttr amount) {
  printer << amount.getInt();
}

/// `low` is an integer (zero is no size, but a legal padding) or a size; a
/// constant size is kept as an integer. `causal` stands for the largest one.
static ParseResult parseLow(OpAsmParser &parser, Attribute &low) {
  Builder &builder = parser.getBuilder();
  if (succeeded(parser.parseOptionalKeyword("causal"))) {
    low = builder.getUnitAttr();
    return success();
  }
  if (failed(parser.parseOptionalKeyword("low")))
    return success();
  int64_t value = 0;
  OptionalParseResult integer = parser.parseOptionalInteger(value);
  if (integer.has_value() && (failed(*integer) || value < 1)) {
    low = builder.getI64IntegerAttr(value);
    return *integer;
  }
  FailureOr<SizeAttr> size = kas::parseBareSize(
      parser,
      integer.has_value() ? std::optional<int64_t>(value) : std::nullopt);
  if (failed(size))
    return failure();
  if (std::optional<int64_t> constant = size->getConstantValue())
    low = builder.getI64IntegerAttr(*constant);
  else
    low = *size;
  return success();
}

static void printLow(OpAsmPrinter &printer, Operation *, Attribute low) {
  if (!low)
    return;
  if (isa<UnitAttr>(low)) {
    printer << " causal";
    return;
  }
  printer << " low ";
  if (auto integer = dyn_cast<IntegerAttr>(low))
    printer << integer.getInt();
  else
    kas::printBareSize(printer, cast<SizeAttr>(low));
}

static ParseResult parseBareReduceKind(OpAsmParser &parser,
                                       ReduceKindAttr &kind) {
  StringRef keyword;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<ReduceKind> parsed = symbolizeReduceKind(keyword);
  if (!parsed)
    return parser.emitError(location)
           << "a reduction must be 'sum', 'mean' or 'max', got '" << keyword
           << "'";
  kind = ReduceKindAttr::get(parser.getContext(), *parsed);
  return success();
}

static void printBareReduceKind(OpAsmPrinter &printer, Operation *,
                                ReduceKindAttr kind) {
  printer << stringifyReduceKind(kind.getValue());
}

/// An attribute dictionary; also leaves the names of the results for the
/// `kas.operator` around (see `resultNamesAttr`).
static ParseResult parsePrimitiveAttributes(OpAsmParser &parser,
                                            NamedAttrList &attributes) {
  if (parser.parseOptionalAttrDict(attributes))
    return failure();
  Builder &builder = parser.getBuilder();
  SmallVector<Attribute> names;
  // No primitive has more than two results. A text may declare 2^63 of them:
  // the parser rejects that, but only after this.
  for (size_t i = 0, e = std::min<size_t>(parser.getNumResults(), 2); i < e;
       ++i) {
    auto [name, number] = parser.getResultName(i);
    names.push_back(builder.getStringAttr(name + "#" + Twine(number)));
  }
  attributes.set(resultNamesAttr, builder.getArrayAttr(names));
  return success();
}

static void printPrimitiveAttributes(OpAsmPrinter &printer, Operation *op,
                                     DictionaryAttr attributes) {
  printer.printOptionalAttrDict(
      attributes.getValue(),
      {"kind", "size", "block", "factor", "amount", "low"});
}

/// Nothing where types alone give all symbols a value.
static ParseResult parseApplyBinding(OpAsmParser &parser,
                                     BindingAttr &binding) {
  FailureOr<BindingAttr> parsed = parseBindingList(parser, /*optional=*/true);
  if (failed(parsed))
    return failure();
  binding = *parsed;
  return success();
}

static void printApplyBinding(OpAsmPrinter &printer, Operation *,
                              BindingAttr binding) {
  if (!binding.empty())
    printBindingList(printer, binding);
}

} // namespace kas

#define GET_OP_CLASSES
#include "kas/Dialect/Kas/IR/KasOps.cpp.inc"
