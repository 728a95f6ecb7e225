//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Text and verifiers of sequences of operators and of spaces of sequences
// (docs/reference/dialect.md).
// Constraints are J1 to J10. A sequence has stages (operators) with a step
// between each two; a space of sequences has a space per stage and widths to
// choose.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/IR/KasSequenceOps.h"
#include "KasSyntax.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace kas;

#include "kas/Dialect/Kas/IR/KasSequenceEnums.cpp.inc"

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// Nothing when the keyword is absent.
static OptionalParseResult parseVisibility(OpAsmParser &parser,
                                           StringAttr &visibility) {
  StringRef keyword;
  if (failed(parser.parseOptionalKeyword(&keyword,
                                         {"private", "public", "nested"})))
    return std::nullopt;
  visibility = parser.getBuilder().getStringAttr(keyword);
  return success();
}

static void printVisibility(OpAsmPrinter &printer, Operation *,
                            StringAttr visibility) {
  printer << visibility.getValue();
}

/// `[normalize_relu, none]`; `parallel`: with steps that are between parallel
/// operators.
static ParseResult parseSteps(OpAsmParser &parser,
                              SmallVectorImpl<int32_t> &values, bool parallel) {
  auto parseStep = [&]() -> ParseResult {
    StringRef keyword;
    SMLoc location = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword))
      return failure();
    std::optional<SequenceStep> step = symbolizeSequenceStep(keyword);
    if (!step || *step == SequenceStep::Join || (combines(*step) && !parallel))
      return parser.emitError(location)
             << "expected none, relu, normalize"
             << (parallel ? ", normalize_relu, add or multiply, got '"
                          : " or normalize_relu, got '")
             << keyword << "'";
    values.push_back(static_cast<int32_t>(*step));
    return success();
  };
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                        parseStep);
}

/// Only for verified ops: a number without a name would print as nothing.
static void printSteps(OpAsmPrinter &printer, ArrayRef<int32_t> steps) {
  printer << '[';
  llvm::interleaveComma(steps, printer, [&](int32_t step) {
    printer << stringifySequenceStep(static_cast<SequenceStep>(step));
  });
  printer << ']';
}

/// `@a add @b`: operators with the same data, and the steps between them.
static ParseResult parseParallel(OpAsmParser &parser,
                                 SmallVectorImpl<Attribute> &stages,
                                 SmallVectorImpl<int32_t> &steps) {
  StringRef keyword;
  do {
    if (!keyword.empty())
      steps.push_back(static_cast<int32_t>(*symbolizeSequenceStep(keyword)));
    FlatSymbolRefAttr stage;
    if (parser.parseAttribute(stage))
      return failure();
    stages.push_back(stage);
  } while (succeeded(
      parser.parseOptionalKeyword(&keyword, {"add", "multiply", "join"})));
  return success();
}

/// `[@a add @b, @c] between [relu]`: the steps are in one list, in the order of
/// the operators. J2 is for the verifier.
static ParseResult parseStagesAndSteps(OpAsmParser &parser, ArrayAttr &stages,
                                       DenseI32ArrayAttr &between) {
  SmallVector<Attribute> operators;
  SmallVector<SmallVector<int32_t>> groups;
  SmallVector<int32_t> given, steps;
  if (parser.parseCommaSeparatedList(
          AsmParser::Delimiter::Square,
          [&] {
            return parseParallel(parser, operators, groups.emplace_back());
          }) ||
      parser.parseKeyword("between") ||
      parseSteps(parser, given, /*parallel=*/false))
    return failure();
  ArrayRef<int32_t> rest = given;
  for (auto [number, group] : llvm::enumerate(groups)) {
    if (number > 0 && !rest.empty())
      steps.push_back(rest.consume_front());
    llvm::append_range(steps, group);
  }
  llvm::append_range(steps, rest);
  stages = parser.getBuilder().getArrayAttr(operators);
  between = parser.getBuilder().getDenseI32ArrayAttr(steps);
  return success();
}

static void printStagesAndSteps(OpAsmPrinter &printer, SequenceOp op,
                                ArrayAttr stages, DenseI32ArrayAttr between) {
  SmallVector<int32_t> steps;
  printer << '[';
  for (auto [number, stage] : llvm::enumerate(stages)) {
    if (number > 0) {
      SequenceStep step = op.getStep(number - 1);
      if (combines(step)) {
        printer << ' ' << stringifySequenceStep(step) << ' ';
      } else {
        printer << ", ";
        steps.push_back(static_cast<int32_t>(step));
      }
    }
    printer << stage;
  }
  printer << "] between ";
  printSteps(printer, steps);
}

/// `[relu] widths {M = [C, 2*C]}`, or only the steps.
static ParseResult parseStepsAndWidths(OpAsmParser &parser,
                                       DenseI32ArrayAttr &steps,
                                       DictionaryAttr &widths) {
  NamedAttrList entries;
  auto parseEntry = [&]() -> ParseResult {
    std::string name;
    SmallVector<Attribute> sizes;
    SMLoc location = parser.getCurrentLocation();
    auto parseSize = [&]() -> ParseResult {
      FailureOr<SizeAttr> size = parseBareSize(parser);
      if (failed(size))
        return failure();
      sizes.push_back(*size);
      return success();
    };
    if (parser.parseKeywordOrString(&name) || parser.parseEqual() ||
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseSize))
      return failure();
    // A dictionary with a name twice would trip an assertion of MLIR.
    if (entries.get(name))
      return parser.emitError(location)
             << "expected each width once, got '" << name << "' again";
    entries.append(name, parser.getBuilder().getArrayAttr(sizes));
    return success();
  };
  SmallVector<int32_t> values;
  if (parseSteps(parser, values, /*parallel=*/true) ||
      (succeeded(parser.parseOptionalKeyword("widths")) &&
       parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces,
                                      parseEntry)))
    return failure();
  steps = parser.getBuilder().getDenseI32ArrayAttr(values);
  widths = entries.getDictionary(parser.getContext());
  return success();
}

static void printStepsAndWidths(OpAsmPrinter &printer, Operation *,
                                DenseI32ArrayAttr steps,
                                DictionaryAttr widths) {
  printSteps(printer, steps);
  if (widths.empty())
    return;
  printer << " widths {";
  llvm::interleaveComma(widths, printer, [&](NamedAttribute entry) {
    printer.printKeywordOrString(entry.getName());
    printer << " = [";
    llvm::interleaveComma(
        cast<ArrayAttr>(entry.getValue()).getAsRange<SizeAttr>(), printer,
        [&](SizeAttr size) { printBareSize(printer, size); });
    printer << ']';
  });
  printer << '}';
}

//===----------------------------------------------------------------------===//
// Sizes and symbols
//===----------------------------------------------------------------------===//

/// One power per round: M^2 takes two.
SizeAttr kas::substituteSymbol(SizeAttr size, StringAttr name, SizeAttr width) {
  SizeAttr symbol = SizeAttr::getSymbol(size.getContext(), name.getValue());
  // Ends because `width` does not have the symbol; negative exponents do not
  // occur, since widths are primary symbols.
  while (size && llvm::is_contained(size.getNames(), name)) {
    size = size.divide(symbol);
    if (size)
      size = size.multiply(width);
  }
  return size;
}

/// Only of equal monomials: their constants are added.
SizeAttr kas::addSizes(SizeAttr a, SizeAttr b) {
  SizeAttr ratio = a.divide(b);
  if (!ratio || !ratio.getNames().empty())
    return nullptr;
  Size value = ratio.getValue();
  std::optional<Size> sum = Size::constant(
      value.getNumerator() + value.getDenominator(), value.getDenominator());
  return sum ? b.multiply(SizeAttr::getNormal(b.getContext(), *sum,
                                              ArrayRef<StringRef>()))
             : nullptr;
}

/// The entries of `binding` that the stage declares: others would be an error.
BindingAttr kas::getStageBinding(OperatorOp stage, BindingAttr binding) {
  SymbolSet symbols = stage.getSymbolSet();
  SmallVector<std::pair<StringRef, int64_t>> entries;
  for (unsigned symbol = 0; symbol < symbols.size(); ++symbol)
    if (std::optional<int64_t> value = binding.lookup(symbols.getName(symbol)))
      entries.emplace_back(symbols.getName(symbol), *value);
  return BindingAttr::getNormal(stage.getContext(), entries);
}

/// `constraint`: symbols of one name are of one kind in `first` and `second`.
/// One binding serves all stages, so a name must mean one kind of symbol.
static LogicalResult verifyKinds(Operation *op, StringRef constraint,
                                 const SymbolSet &first,
                                 const SymbolSet &second) {
  for (unsigned symbol = 0; symbol < first.size(); ++symbol) {
    std::optional<unsigned> other = second.lookup(first.getName(symbol));
    if (other && first.getKind(symbol) != second.getKind(*other))
      return op->emitOpError(constraint)
             << ": requires symbols of one name to be all primary or all "
                "coefficients, got both for '"
             << first.getName(symbol) << "'";
  }
  return success();
}

/// The property is an array of i32, which may hold anything.
static LogicalResult verifySteps(Operation *op, StringRef constraint,
                                 ArrayRef<int32_t> steps) {
  for (int32_t step : steps)
    if (!symbolizeSequenceStep(static_cast<uint32_t>(step)))
      return op->emitOpError(constraint)
             << ": requires steps that there are, got number " << step;
  return success();
}

/// J5. `sizes` are those between two stages.
static LogicalResult verifyNormalized(Operation *op, ArrayRef<int32_t> steps,
                                      size_t rank) {
  bool isNormalized = llvm::any_of(steps, [](int32_t step) {
    return normalizes(static_cast<SequenceStep>(step));
  });
  if (isNormalized && rank < 2)
    return op->emitOpError("J5: requires samples and channels to normalize, "
                           "got a tensor of rank ")
           << rank;
  return success();
}

//===----------------------------------------------------------------------===//
// SequenceOp
//===----------------------------------------------------------------------===//

/// In the order of the stages; only of a verified op, whose symbols resolve.
SmallVector<OperatorOp> SequenceOp::getOperators() {
  return llvm::map_to_vector(
      getStages().getAsRange<FlatSymbolRefAttr>(), [&](FlatSymbolRefAttr name) {
        return SymbolTable::lookupNearestSymbolFrom<OperatorOp>(*this, name);
      });
}

/// Only joining changes sizes.
SmallVector<SizeAttr> SequenceOp::getOutputSizes() {
  SmallVector<SizeAttr> sizes;
  for (auto [index, stage] : llvm::enumerate(getOperators())) {
    SmallVector<SizeAttr> own = stage.getOutputSizes();
    if (isParallel(index) && getStep(index - 1) == SequenceStep::Join)
      own[1] = addSizes(sizes[1], own[1]);
    sizes = std::move(own);
  }
  return sizes;
}

/// J1 and J2, which need no symbols of other ops.
LogicalResult SequenceOp::verify() {
  if (getStages().empty())
    return emitOpError("J1: requires an operator at least, got none");
  if (getBetween().size() + 1 != getStages().size())
    return emitOpError("J2: requires one step between each two of ")
           << getStages().size() << " stages, got " << getBetween().size();
  return verifySteps(*this, "J2", getBetween());
}

/// J11.
/// The sizes of what `op` makes of results of these sizes, of which stage
/// `index` has the second.
static FailureOr<SmallVector<SizeAttr>>
combineSizes(SequenceOp op, unsigned index, ArrayRef<SizeAttr> first,
             ArrayRef<SizeAttr> second, Attribute stage) {
  SequenceStep step = op.getStep(index - 1);
  if (step != SequenceStep::Join) {
    if (first == second)
      return llvm::to_vector(first);
    return op.emitOpError("J11: requires results of the same sizes to ")
           << stringifySequenceStep(step) << ", got others of " << stage;
  }
  SmallVector<SizeAttr> sizes(first);
  if (first.size() < 2 || first.size() != second.size())
    return op.emitOpError("J11: requires samples and channels of one rank to "
                          "join, got ranks ")
           << first.size() << " and " << second.size();
  sizes[1] = second[1];
  if (ArrayRef(sizes) != second)
    return op.emitOpError("J11: requires results of the same sizes but for "
                          "dimension 1 to join, got others of ")
           << stage;
  sizes[1] = addSizes(first[1], second[1]);
  if (!sizes[1])
    return op.emitOpError("J11: requires channels to join whose sum is a size, "
                          "got ")
           << first[1] << " and " << second[1];
  return sizes;
}

/// J3 compares sizes as symbols: they must agree at every binding.
LogicalResult SequenceOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  SmallVector<OperatorOp> stages;
  for (auto name : getStages().getAsRange<FlatSymbolRefAttr>()) {
    auto stage = symbolTable.lookupNearestSymbolFrom<OperatorOp>(*this, name);
    if (!stage)
      return emitOpError("J1: requires kas.operators as stages, got ") << name;
    stages.push_back(stage);
  }
  SmallVector<SizeAttr> data = stages[0].getDataSizes();
  SmallVector<SizeAttr> result = stages[0].getOutputSizes();
  for (unsigned index = 1; index < stages.size(); ++index) {
    OperatorOp stage = stages[index];
    StringAttr name = stage.getSymNameAttr();
    bool hasSameData = isParallel(index);
    if (hasSameData && stage.getDataSizes() != data)
      return emitOpError("J11: requires parallel operators with data of the "
                         "same sizes, got others of ")
             << name;
    if (!hasSameData && stage.getDataSizes() != result)
      return emitOpError("J3: requires a stage whose data has the sizes of "
                         "the result before it, got ")
             << name << " after " << stages[index - 1].getSymNameAttr();
    for (unsigned before = 0; before < index; ++before)
      if (failed(verifyKinds(*this, "J4", stages[before].getSymbolSet(),
                             stage.getSymbolSet())))
        return failure();
    if (!hasSameData) {
      if (failed(verifyNormalized(*this, getBetween().slice(index - 1, 1),
                                  result.size())))
        return failure();
      data = std::exchange(result, stage.getOutputSizes());
      continue;
    }
    auto combined =
        combineSizes(*this, index, result, stage.getOutputSizes(), name);
    if (failed(combined))
      return failure();
    result = std::move(*combined);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// SequenceSpaceOp
//===----------------------------------------------------------------------===//

SpaceOp SequenceSpaceOp::getLayerSpace() {
  return SymbolTable::lookupNearestSymbolFrom<SpaceOp>(*this, getLayersAttr());
}

SmallVector<SpaceOp> SequenceSpaceOp::getStageSpaces() {
  return llvm::map_to_vector(
      getStages().getAsRange<FlatSymbolRefAttr>(), [&](FlatSymbolRefAttr name) {
        return SymbolTable::lookupNearestSymbolFrom<SpaceOp>(*this, name);
      });
}

/// J6, J9 and J10 as far as the op itself tells.
LogicalResult SequenceSpaceOp::verify() {
  if (getStages().empty())
    return emitOpError("J6: requires a stage at least, got none");
  if (getStages().size() > 1 && getBetween().empty())
    return emitOpError("J10: requires a step at least between two stages, got "
                       "none");
  if (llvm::is_contained(getBetween(),
                         static_cast<int32_t>(SequenceStep::Join)))
    return emitOpError("J10: requires steps that keep sizes, got 'join'");
  llvm::SmallSet<int32_t, 4> steps;
  for (int32_t step : getBetween())
    if (!steps.insert(step).second)
      return emitOpError("J10: requires each step once, got several '")
             << stringifySequenceStep(static_cast<SequenceStep>(step)) << "'";
  for (NamedAttribute width : getWidths()) {
    auto sizes = dyn_cast<ArrayAttr>(width.getValue());
    if (!sizes || sizes.empty() ||
        !llvm::all_of(sizes, llvm::IsaPred<SizeAttr>))
      return emitOpError("J9: requires a list of sizes for width '")
             << width.getName().getValue() << "', got " << width.getValue();
    // Equal sizes are one pointer: a choice twice would count candidates twice.
    llvm::SmallPtrSet<Attribute, 4> distinct(sizes.begin(), sizes.end());
    if (distinct.size() != sizes.size())
      return emitOpError("J9: requires each size once for width '")
             << width.getName().getValue() << "', got " << sizes;
  }
  return verifySteps(*this, "J10", getBetween());
}

/// J7.
/// The stages are a chain from the input to the output of the layers, or may be
/// parallel, or both.
static LogicalResult verifyShapes(SequenceSpaceOp op, SpaceOp layers,
                                  ArrayRef<SpaceOp> stages) {
  auto isCombination = [](int32_t step) {
    return combines(static_cast<SequenceStep>(step));
  };
  bool someParallel = llvm::any_of(op.getBetween(), isCombination);
  bool allParallel =
      someParallel && llvm::all_of(op.getBetween(), isCombination);
  ArrayAttr sizes = layers.getInputSizes();
  auto reportInputs = [&](SpaceOp stage, ArrayAttr sizes) {
    return op.emitOpError("J7: requires inputs of the sizes ")
           << sizes << " for stage " << stage.getSymNameAttr() << ", got "
           << stage.getInputSizes();
  };
  for (size_t index = 0; index < stages.size(); ++index) {
    SpaceOp stage = stages[index];
    if ((index == 0 || !allParallel) && stage.getInputSizes() != sizes)
      return reportInputs(stage, sizes);
    if (index > 0 && someParallel) {
      SpaceOp before = stages[index - 1];
      if (stage.getInputSizes() != before.getInputSizes())
        return reportInputs(stage, before.getInputSizes());
      if (stage.getOutputSizes() != before.getOutputSizes())
        return op.emitOpError("J7: requires outputs of the sizes ")
               << before.getOutputSizes() << " for stage "
               << stage.getSymNameAttr() << ", which may be parallel, got "
               << stage.getOutputSizes();
    }
    sizes = stage.getOutputSizes();
    bool isLast = index + 1 == stages.size();
    if (!isLast && failed(verifyNormalized(op, op.getBetween(), sizes.size())))
      return failure();
  }
  if (sizes != layers.getOutputSizes())
    return op.emitOpError("J7: requires outputs of the sizes ")
           << layers.getOutputSizes() << " of the last stage, got " << sizes;
  return success();
}

/// J8.
/// A stage is searched at the layers' bindings: the same number of them, in the
/// same order, with the same values for common symbols.
static LogicalResult verifyStage(SequenceSpaceOp op, SpaceOp layers,
                                 SpaceOp stage) {
  auto emitError = [&]() -> InFlightDiagnostic {
    return op.emitOpError("J8: requires ");
  };
  if (stage.getMultiplicities() != layers.getMultiplicities())
    return emitError() << "the bindings of " << layers.getSymNameAttr()
                       << " with their multiplicities in stage "
                       << stage.getSymNameAttr() << ", got others";
  SymbolSet symbols = stage.getSymbolSet(), known = layers.getSymbolSet();
  if (failed(verifyKinds(op, "J8", known, symbols)))
    return failure();
  for (unsigned symbol = 0; symbol < symbols.size(); ++symbol) {
    StringRef name = symbols.getName(symbol);
    // A symbol of the stage alone is a width.
    if (!known.lookup(name)) {
      if (!op.getWidths().contains(name))
        return emitError() << "symbols of " << layers.getSymNameAttr()
                           << " and widths in stage " << stage.getSymNameAttr()
                           << ", got '" << name << "'";
      continue;
    }
    for (auto [expected, found] :
         llvm::zip_equal(layers.getBindings().getAsRange<BindingAttr>(),
                         stage.getBindings().getAsRange<BindingAttr>()))
      if (expected.lookup(name) != found.lookup(name))
        return emitError() << name << " = " << *expected.lookup(name)
                           << " as in the binding of "
                           << layers.getSymNameAttr() << " in stage "
                           << stage.getSymNameAttr() << ", got "
                           << *found.lookup(name);
  }
  return success();
}

/// J9, for one size of the width `name`.
/// A size over the layers' symbols, legal at all of their bindings, and known
/// in every stage that has the width.
static LogicalResult verifyWidth(SequenceSpaceOp op, StringRef name,
                                 SizeAttr size, SpaceOp layers,
                                 ArrayRef<SpaceOp> stages) {
  SymbolSet known = layers.getSymbolSet();
  auto emitError = [&]() -> InFlightDiagnostic {
    return op.emitOpError("J9: requires ");
  };
  std::optional<Size> value = size.toSize(known);
  if (!value)
    return emitError() << "symbols of " << layers.getSymNameAttr()
                       << " in width '" << name << "', got " << size;
  if (!value->isLegal(layers.getBindingValues()))
    return emitError() << "integers of at least 1 at every binding for width '"
                       << name << "', got " << size;
  for (SpaceOp stage : stages) {
    SymbolSet symbols = stage.getSymbolSet();
    if (symbols.lookup(name) && !size.toSize(symbols))
      return emitError() << "the symbols of width '" << name << "' in stage "
                         << stage.getSymNameAttr() << ", got " << size;
  }
  return success();
}

/// J9.
static LogicalResult verifyWidths(SequenceSpaceOp op, SpaceOp layers,
                                  ArrayRef<SpaceOp> stages) {
  for (NamedAttribute width : op.getWidths()) {
    StringRef name = width.getName();
    // A width that the layers know would have a value already.
    bool isFree = !layers.getSymbolSet().lookup(name);
    bool isUsed = llvm::any_of(stages, [&](SpaceOp stage) {
      SymbolSet symbols = stage.getSymbolSet();
      std::optional<unsigned> symbol = symbols.lookup(name);
      return symbol && symbols.getKind(*symbol) == SymbolKind::Primary;
    });
    if (!isFree || !isUsed)
      return op.emitOpError("J9: requires widths that are primary symbols of "
                            "a stage and none of the layers, got '")
             << name << "'";
    for (auto size : cast<ArrayAttr>(width.getValue()).getAsRange<SizeAttr>())
      if (failed(verifyWidth(op, name, size, layers, stages)))
        return failure();
  }
  return success();
}

LogicalResult
SequenceSpaceOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  // Resolves a name to a space, or reports J6.
  auto lookup = [&](FlatSymbolRefAttr name, SpaceOp &space) -> LogicalResult {
    space = symbolTable.lookupNearestSymbolFrom<SpaceOp>(*this, name);
    if (space)
      return success();
    return emitOpError("J6: requires kas.spaces, got ") << name;
  };
  SpaceOp layers;
  if (failed(lookup(getLayersAttr(), layers)))
    return failure();
  SmallVector<SpaceOp> stages;
  for (auto name : getStages().getAsRange<FlatSymbolRefAttr>())
    if (failed(lookup(name, stages.emplace_back())))
      return failure();
  for (SpaceOp stage : stages)
    if (failed(verifyStage(*this, layers, stage)))
      return failure();
  return failure(failed(verifyShapes(*this, layers, stages)) ||
                 failed(verifyWidths(*this, layers, stages)));
}

#define GET_OP_CLASSES
#include "kas/Dialect/Kas/IR/KasSequenceOps.cpp.inc"
