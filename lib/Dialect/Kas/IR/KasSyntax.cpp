//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parsing and printing that several operations share: symbols, shapes,
// dictionaries.
// The grammar of sizes is `parseSizeFrom` (kas/Support/SizeGrammar.h), which
// reads the tokens of MLIR's parser here and plain text elsewhere.
//
//===----------------------------------------------------------------------===//

#include "KasSyntax.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace kas;

/// `<N, C | k>`, `<| k>` or nothing.
ParseResult kas::parseSymbols(AsmParser &parser, ArrayAttr &primaries,
                              ArrayAttr &coefficients) {
  Builder &builder = parser.getBuilder();
  SmallVector<Attribute> lists[2];
  if (succeeded(parser.parseOptionalLess())) {
    bool coefficient = succeeded(parser.parseOptionalVerticalBar());
    while (true) {
      StringRef name;
      if (parser.parseKeyword(&name))
        return failure();
      // List 0 before the bar, list 1 after it.
      lists[coefficient].push_back(builder.getStringAttr(name));
      if (succeeded(parser.parseOptionalComma()))
        continue;
      if (!coefficient && succeeded(parser.parseOptionalVerticalBar())) {
        coefficient = true;
        continue;
      }
      break;
    }
    if (parser.parseGreater())
      return failure();
  }
  primaries = builder.getArrayAttr(lists[0]);
  coefficients = builder.getArrayAttr(lists[1]);
  return success();
}

/// Nothing for an operator without symbols.
void kas::printSymbols(AsmPrinter &printer, ArrayAttr primaries,
                       ArrayAttr coefficients) {
  if (primaries.empty() && coefficients.empty())
    return;
  auto print = [&](Attribute name) {
    printer << cast<StringAttr>(name).getValue();
  };
  printer << '<';
  llvm::interleaveComma(primaries, printer, print);
  if (!coefficients.empty()) {
    printer << (primaries.empty() ? "| " : " | ");
    llvm::interleaveComma(coefficients, printer, print);
  }
  printer << '>';
}

/// `[N, C unordered, H]`: sizes and flags by position.
ParseResult kas::parseShape(AsmParser &parser, ArrayAttr &sizes,
                            DenseBoolArrayAttr &unordered) {
  SmallVector<Attribute> sizeList;
  SmallVector<bool> unorderedList;
  auto parseDimension = [&]() -> ParseResult {
    FailureOr<SizeAttr> size = parseBareSize(parser);
    if (failed(size))
      return failure();
    sizeList.push_back(*size);
    unorderedList.push_back(
        succeeded(parser.parseOptionalKeyword("unordered")));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     parseDimension))
    return failure();
  sizes = parser.getBuilder().getArrayAttr(sizeList);
  unordered = parser.getBuilder().getDenseBoolArrayAttr(unorderedList);
  return success();
}

/// "unordered" dimensions are channels: their order has no meaning.
void kas::printShape(AsmPrinter &printer, ArrayAttr sizes,
                     DenseBoolArrayAttr unordered) {
  printer << '[';
  llvm::interleaveComma(llvm::enumerate(sizes), printer, [&](auto entry) {
    printBareSize(printer, cast<SizeAttr>(entry.value()));
    if (unordered[entry.index()])
      printer << " unordered";
  });
  printer << ']';
}

void kas::printDictionary(OpAsmPrinter &printer, StringRef keyword,
                          DictionaryAttr dictionary) {
  if (dictionary.empty())
    return;
  printer.printNewline();
  printer << keyword;
  printer.printOptionalAttrDict(dictionary.getValue());
}

/// A name that the parser takes as one keyword, and that is not a word of the
/// size's surroundings.
/// What MLIR's lexer takes as a bare identifier, so that printed text parses.
static bool isSymbolName(StringRef name) {
  auto isFirst = [](char c) { return llvm::isAlpha(c) || c == '_'; };
  auto isRest = [](char c) {
    return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.';
  };
  return !name.empty() && isFirst(name.front()) &&
         llvm::all_of(name.drop_front(), isRest);
}

/// Attributes of generic text may hold any string, so names are checked, then
/// added; the set refuses duplicates and too many.
llvm::Expected<SymbolSet> kas::makeSymbolSet(ArrayAttr primaries,
                                             ArrayAttr coefficients) {
  SymbolSet symbols;
  auto add = [&](ArrayAttr names, SymbolKind kind) -> llvm::Error {
    for (Attribute attr : names) {
      StringRef name = cast<StringAttr>(attr).getValue();
      if (!isSymbolName(name))
        return llvm::createStringError("a symbol must be an identifier, got '" +
                                       name + "'");
      if (llvm::Error error = symbols.add(name, kind))
        return error;
    }
    return llvm::Error::success();
  };
  if (llvm::Error error = add(primaries, SymbolKind::Primary))
    return error;
  if (llvm::Error error = add(coefficients, SymbolKind::Coefficient))
    return error;
  return symbols;
}
