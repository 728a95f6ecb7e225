//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The text form of `kas.operator` and `kas.yield`.
//
// `kas.yield` has no types in its text, so its operands are resolved when the
// parser of `kas.operator` has seen the whole body: until then names travel in
// the attributes of KasSyntax.h, which never leave the parser.
//
//===----------------------------------------------------------------------===//

#include "KasSyntax.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace kas;

//===----------------------------------------------------------------------===//
// YieldOp
//===----------------------------------------------------------------------===//

namespace {
/// Collects the operands of a `kas.yield` as names with locations.
/// Each entry is `[name#number, location]`.
struct YieldOperands {
  OpAsmParser &parser;
  SmallVector<Attribute> names = {};

  /// `(%a, %b)`; returns how many there are.
  FailureOr<int32_t> parseList() {
    int32_t count = 0;
    auto parseOperand = [&]() -> ParseResult {
      OpAsmParser::UnresolvedOperand operand;
      if (parser.parseOperand(operand))
        return failure();
      Builder &builder = parser.getBuilder();
      StringRef name = operand.name;
      name.consume_front("%");
      names.push_back(builder.getArrayAttr(
          {builder.getStringAttr(name + "#" + Twine(operand.number)),
           cast<Attribute>(
               LocationAttr(parser.getEncodedSourceLoc(operand.location)))}));
      ++count;
      return success();
    };
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren,
                                       parseOperand))
      return failure();
    return count;
  }
};
} // namespace

/// `kas.yield data(%a, %b) weight(%c) weight(%d)`.
ParseResult YieldOp::parse(OpAsmParser &parser, OperationState &result) {
  YieldOperands operands{parser};
  if (parser.parseKeyword("data"))
    return failure();
  FailureOr<int32_t> dataCount = operands.parseList();
  if (failed(dataCount))
    return failure();
  SmallVector<int32_t> weightCounts;
  while (succeeded(parser.parseOptionalKeyword("weight"))) {
    FailureOr<int32_t> count = operands.parseList();
    if (failed(count))
      return failure();
    weightCounts.push_back(*count);
  }
  if (parser.parseOptionalAttrDict(result.attributes))
    return failure();
  Builder &builder = parser.getBuilder();
  auto &properties = result.getOrAddProperties<YieldOp::Properties>();
  properties.weight_segments = builder.getDenseI32ArrayAttr(weightCounts);
  // No operands yet: `resolveYield` adds them.
  properties.operandSegmentSizes = {0, 0};
  result.addAttribute(
      operandNamesAttr,
      builder.getArrayAttr({builder.getI32IntegerAttr(*dataCount),
                            builder.getArrayAttr(operands.names)}));
  return success();
}

/// Segments are the parentheses, so their attributes are not printed.
void YieldOp::print(OpAsmPrinter &printer) {
  auto list = [&](StringRef keyword, OperandRange operands) {
    printer << ' ' << keyword << '(';
    printer.printOperands(operands);
    printer << ')';
  };
  list("data", getData());
  for (OperandRange weight : getWeights())
    list("weight", weight);
  printer.printOptionalAttrDict(
      (*this)->getAttrs(),
      {getWeightSegmentsAttrName(), getOperandSegmentSizesAttrName()});
}

//===----------------------------------------------------------------------===//
// Resolving the operands of the yield
//===----------------------------------------------------------------------===//

using ValueNames = llvm::StringMap<Value>;

/// Takes the result names that the primitives left, and adds them to `values`.
/// Operations without the attribute are in generic form, or not primitives: the
/// verifier reports them.
static void collectResultNames(Block &block, ValueNames &values) {
  for (Operation &op : block) {
    auto names = dyn_cast_or_null<ArrayAttr>(op.removeAttr(resultNamesAttr));
    if (!names || names.size() != op.getNumResults())
      continue;
    for (auto [name, result] : llvm::zip_equal(names, op.getResults()))
      if (auto text = dyn_cast<StringAttr>(name))
        values[text.getValue()] = result;
  }
}

/// Gives a yield parsed in custom form its operands.
/// Text in generic form has operands, and no such attribute: nothing to do. The
/// attribute may also be forged, so its form is checked.
static LogicalResult resolveYield(YieldOp yield, const ValueNames &values) {
  auto parsed = dyn_cast_or_null<ArrayAttr>(yield->getAttr(operandNamesAttr));
  if (!parsed || parsed.size() != 2)
    return success();
  auto dataCount = dyn_cast<IntegerAttr>(parsed[0]);
  auto names = dyn_cast<ArrayAttr>(parsed[1]);
  if (!dataCount || !names)
    return success();
  yield->removeAttr(operandNamesAttr);
  SmallVector<Value> operands;
  for (Attribute entry : names) {
    auto pair = dyn_cast<ArrayAttr>(entry);
    if (!pair || pair.size() != 2 || !isa<StringAttr>(pair[0]) ||
        !isa<LocationAttr>(pair[1]))
      return yield.emitOpError("has malformed operand names");
    StringRef name = cast<StringAttr>(pair[0]).getValue();
    Value value = values.lookup(name);
    if (!value) {
      auto [base, number] = name.rsplit('#');
      // At the operand in the text, as MLIR's own parser reports it.
      return emitError(cast<LocationAttr>(pair[1]))
             << "use of undeclared coordinate '%" << base
             << (number == "0" ? "" : "#" + number.str()) << "'";
    }
    operands.push_back(value);
  }
  int32_t dataSegment = dataCount.getInt();
  if (dataSegment < 0 || dataSegment > static_cast<int64_t>(operands.size()))
    return yield.emitOpError("has malformed operand names");
  yield->setOperands(operands);
  yield.getProperties().operandSegmentSizes = {
      dataSegment, static_cast<int32_t>(operands.size()) - dataSegment};
  return success();
}

//===----------------------------------------------------------------------===//
// OperatorOp
//===----------------------------------------------------------------------===//

/// `(%a: SIZE [unordered], ...)`
static ParseResult parseOutputs(OpAsmParser &parser,
                                SmallVectorImpl<OpAsmParser::Argument> &outputs,
                                SmallVectorImpl<bool> &unordered) {
  auto parseOutput = [&]() -> ParseResult {
    OpAsmParser::Argument &output = outputs.emplace_back();
    if (parser.parseArgument(output) || parser.parseColon())
      return failure();
    FailureOr<SizeAttr> size = parseBareSize(parser);
    if (failed(size))
      return failure();
    output.type = CoordType::get(parser.getContext(), *size);
    unordered.push_back(succeeded(parser.parseOptionalKeyword("unordered")));
    return success();
  };
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren,
                                        parseOutput);
}

/// `kas.operator @name<N, C | k>(%n: N, %c: C unordered) from [N, C unordered]
/// { ... }`
ParseResult OperatorOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  auto &properties = result.getOrAddProperties<OperatorOp::Properties>();
  StringRef visibility;
  if (succeeded(parser.parseOptionalKeyword(&visibility,
                                            {"private", "public", "nested"})))
    properties.sym_visibility = builder.getStringAttr(visibility);
  SmallVector<OpAsmParser::Argument> outputs;
  SmallVector<bool> unordered;
  if (parser.parseSymbolName(properties.sym_name) ||
      parseSymbols(parser, properties.primaries, properties.coefficients) ||
      parseOutputs(parser, outputs, unordered) || parser.parseKeyword("from") ||
      parseShape(parser, properties.input_sizes, properties.input_unordered) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  properties.output_unordered = builder.getDenseBoolArrayAttr(unordered);

  Region *body = result.addRegion();
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseRegion(*body, outputs))
    return failure();
  if (body->empty())
    return parser.emitError(location, "expected a body that ends in kas.yield");
  // Output coordinates first, then results of primitives.
  ValueNames values;
  for (auto [output, argument] :
       llvm::zip_equal(outputs, body->front().getArguments())) {
    StringRef name = output.ssaName.name;
    name.consume_front("%");
    values[(name + "#" + Twine(output.ssaName.number)).str()] = argument;
  }
  for (Block &block : *body)
    collectResultNames(block, values);
  for (Block &block : *body)
    for (auto yield : block.getOps<YieldOp>())
      if (failed(resolveYield(yield, values)))
        return failure();
  return success();
}

void OperatorOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  if (std::optional<StringRef> visibility = getSymVisibility())
    printer << *visibility << ' ';
  printer.printSymbolName(getSymName());
  printSymbols(printer, getPrimaries(), getCoefficients());
  printer << '(';
  llvm::interleaveComma(llvm::enumerate(getBody().getArguments()), printer,
                        [&](auto entry) {
                          printer.printOperand(entry.value());
                          printer << ": ";
                          printBareSize(printer, kas::getSize(entry.value()));
                          if (getOutputUnordered()[entry.index()])
                            printer << " unordered";
                        });
  printer << ") from ";
  printShape(printer, getInputSizes(), getInputUnorderedAttr());
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getSymNameAttrName(), getSymVisibilityAttrName(), getPrimariesAttrName(),
       getCoefficientsAttrName(), getOutputUnorderedAttrName(),
       getInputSizesAttrName(), getInputUnorderedAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/true);
}

/// Verified: the names are legal and distinct.
SymbolSet OperatorOp::getSymbolSet() {
  return llvm::cantFail(makeSymbolSet(getPrimaries(), getCoefficients()));
}

SmallVector<SizeAttr> OperatorOp::getOutputSizes() {
  return llvm::map_to_vector(getBody().getArguments(),
                             [](Value v) { return kas::getSize(v); });
}

SmallVector<SizeAttr> OperatorOp::getDataSizes() {
  return llvm::to_vector(getInputSizes().getAsRange<SizeAttr>());
}

/// A weight has no declared shape: it is what its coordinates say.
SmallVector<SmallVector<SizeAttr>> OperatorOp::getWeightSizes() {
  SmallVector<SmallVector<SizeAttr>> sizes;
  for (OperandRange weight : getYield().getWeights())
    sizes.push_back(
        llvm::map_to_vector(weight, [](Value v) { return kas::getSize(v); }));
  return sizes;
}

unsigned OperatorOp::getNumWeights() {
  return getYield().getWeightSegments().size();
}

YieldOp OperatorOp::getYield() {
  return cast<YieldOp>(getBody().front().getTerminator());
}

SmallVector<ReduceOp> kas::getReductions(OperatorOp op) {
  return llvm::to_vector(op.getBody().getOps<ReduceOp>());
}
