//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `kas.kernel`: text, verifier, and what it says to the solvers.
// Constraints are K1 to K7 of docs/reference/tensor-level.md, section 1; K5 is
// Theorem 1 of the Canvas paper (section 6.2).
//
//===----------------------------------------------------------------------===//

#include "KasSyntax.h"
#include "kas/Dialect/Kas/IR/KasDag.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace kas;
using namespace kas::solver;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// `<P1, P2 | c1 | x1, x2>`: any list may be empty, trailing ones absent.
/// Primaries, coefficients, then variables, whose values a solver finds.
static ParseResult parseKernelSymbols(OpAsmParser &parser,
                                      KernelOp::Properties &properties) {
  Builder &builder = parser.getBuilder();
  SmallVector<Attribute> lists[3];
  if (succeeded(parser.parseOptionalLess())) {
    unsigned list = 0;
    while (failed(parser.parseOptionalGreater())) {
      if (succeeded(parser.parseOptionalVerticalBar())) {
        if (++list == 3)
          return parser.emitError(parser.getCurrentLocation(),
                                  "expected at most three lists of symbols");
        continue;
      }
      StringRef name;
      if ((!lists[list].empty() && parser.parseComma()) ||
          parser.parseKeyword(&name))
        return failure();
      lists[list].push_back(builder.getStringAttr(name));
    }
  }
  properties.primaries = builder.getArrayAttr(lists[0]);
  properties.coefficients = builder.getArrayAttr(lists[1]);
  properties.variables = builder.getArrayAttr(lists[2]);
  return success();
}

/// Empty lists at the end are not printed; an empty one before another is a
/// bar.
static void printKernelSymbols(OpAsmPrinter &printer, KernelOp op) {
  ArrayAttr lists[] = {op.getPrimaries(), op.getCoefficients(),
                       op.getVariables()};
  unsigned last = 3;
  while (last > 0 && lists[last - 1].empty())
    --last;
  if (last == 0)
    return;
  printer << '<';
  for (unsigned list = 0; list < last; ++list) {
    if (list > 0)
      printer << (lists[list - 1].empty() ? "| " : " | ");
    llvm::interleaveComma(lists[list].getAsRange<StringAttr>(), printer,
                          [&](StringAttr name) { printer << name.getValue(); });
  }
  printer << '>';
}

/// `where [G divides C, ...]`
/// Facts are kept as two arrays, divisor and multiple, by position.
static ParseResult parseFacts(OpAsmParser &parser,
                              KernelOp::Properties &properties) {
  Builder &builder = parser.getBuilder();
  SmallVector<Attribute> divisors, multiples;
  auto parseFact = [&]() -> ParseResult {
    FailureOr<SizeAttr> divisor = parseBareSize(parser);
    StringRef multiple;
    if (failed(divisor) || parser.parseKeyword("divides") ||
        parser.parseKeyword(&multiple))
      return failure();
    divisors.push_back(*divisor);
    multiples.push_back(builder.getStringAttr(multiple));
    return success();
  };
  if (succeeded(parser.parseOptionalKeyword("where")) &&
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseFact))
    return failure();
  properties.divisors = builder.getArrayAttr(divisors);
  properties.multiples = builder.getArrayAttr(multiples);
  return success();
}

static void printFacts(OpAsmPrinter &printer, KernelOp op) {
  if (op.getDivisors().empty())
    return;
  printer << " where [";
  llvm::interleaveComma(
      llvm::zip_equal(op.getDivisors().getAsRange<SizeAttr>(),
                      op.getMultiples().getAsRange<StringAttr>()),
      printer, [&](auto fact) {
        printBareSize(printer, std::get<0>(fact));
        printer << " divides " << std::get<1>(fact).getValue();
      });
  printer << ']';
}

/// `budget {flops = 1000 : i64}`; empty when the keyword is absent.
static ParseResult parseDictionary(OpAsmParser &parser, StringRef keyword,
                                   DictionaryAttr &dictionary) {
  NamedAttrList entries;
  if (succeeded(parser.parseOptionalKeyword(keyword)) &&
      parser.parseOptionalAttrDict(entries))
    return failure();
  dictionary = entries.getDictionary(parser.getContext());
  return success();
}

/// `kas.kernel canvas @k<C | | x> where [...] (%in: [C | H]) -> [C | H]
/// bindings [...] budget {...} { ... }`
ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  auto &properties = result.getOrAddProperties<KernelOp::Properties>();
  if (succeeded(parser.parseOptionalKeyword("canvas")))
    properties.canvas = builder.getUnitAttr();
  StringRef visibility;
  if (succeeded(parser.parseOptionalKeyword(&visibility,
                                            {"private", "public", "nested"})))
    properties.sym_visibility = builder.getStringAttr(visibility);

  SmallVector<OpAsmParser::Argument> inputs;
  auto parseInput = [&]() -> ParseResult {
    OpAsmParser::Argument &input = inputs.emplace_back();
    if (parser.parseArgument(input) || parser.parseColon())
      return failure();
    FailureOr<SymbolicTensorType> type = parseTensorShape(parser);
    if (failed(type))
      return failure();
    input.type = *type;
    return success();
  };
  if (parser.parseSymbolName(properties.sym_name) ||
      parseKernelSymbols(parser, properties) ||
      parseFacts(parser, properties) ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseInput) ||
      parser.parseArrow())
    return failure();
  FailureOr<SymbolicTensorType> type = parseTensorShape(parser);
  if (failed(type))
    return failure();
  properties.result_type = TypeAttr::get(*type);

  // Optional parts get their defaults first.
  properties.bindings = builder.getArrayAttr({});
  properties.multiplicities = builder.getDenseI64ArrayAttr({});
  if (succeeded(parser.parseOptionalKeyword("bindings")) &&
      parseBindings(parser, properties.bindings, properties.multiplicities))
    return failure();
  Region *body = result.addRegion();
  SMLoc location = parser.getCurrentLocation();
  if (parseDictionary(parser, "budget", properties.budget) ||
      parseDictionary(parser, "solution", properties.solution) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*body, inputs))
    return failure();
  // The generic verifier would accept an empty region; other code takes the
  // first block without a test.
  if (body->empty())
    return parser.emitError(location,
                            "expected a body that ends in kas.dag.output");
  return success();
}

/// Everything that is a property is elided from the dictionary at the end.
void KernelOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  if (getCanvas())
    printer << "canvas ";
  if (std::optional<StringRef> visibility = getSymVisibility())
    printer << *visibility << ' ';
  printer.printSymbolName(getSymName());
  printKernelSymbols(printer, *this);
  printFacts(printer, *this);
  printer.increaseIndent();
  printer.printNewline();
  printer << '(';
  llvm::interleaveComma(
      getBody().getArguments(), printer, [&](BlockArgument argument) {
        printer.printOperand(argument);
        printer << ": ";
        printTensorShape(printer, cast<SymbolicTensorType>(argument.getType()));
      });
  printer << ") -> ";
  printTensorShape(printer, cast<SymbolicTensorType>(getResultType()));
  if (!getBindings().empty()) {
    printer.printNewline();
    printer << "bindings ";
    printBindings(printer, getBindings(), getMultiplicities());
  }
  printDictionary(printer, "budget", getBudget());
  printDictionary(printer, "solution", getSolution());
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getSymNameAttrName(), getSymVisibilityAttrName(), getCanvasAttrName(),
       getPrimariesAttrName(), getCoefficientsAttrName(),
       getVariablesAttrName(), getDivisorsAttrName(), getMultiplesAttrName(),
       getResultTypeAttrName(), getBindingsAttrName(),
       getMultiplicitiesAttrName(), getBudgetAttrName(),
       getSolutionAttrName()});
  printer.decreaseIndent();
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/true);
}

void KernelOp::getAsmBlockArgumentNames(Region &region,
                                        OpAsmSetValueNameFn setName) {
  for (BlockArgument argument : region.getArguments())
    setName(argument, "in");
}

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

/// One set for all: primaries, then coefficients, then variables. Error: a name
/// is no identifier, is declared twice, or there are too many.
static llvm::Expected<SymbolSet> makeKernelSymbols(KernelOp op) {
  // A variable may occur in a denominator, like a coefficient.
  SmallVector<Attribute> rest(op.getCoefficients().getValue());
  llvm::append_range(rest, op.getVariables());
  return makeSymbolSet(op.getPrimaries(),
                       ArrayAttr::get(op.getContext(), rest));
}

SymbolSet KernelOp::getSymbolSet() {
  return llvm::cantFail(makeKernelSymbols(*this));
}

/// Bindings have all variables or none of them (K2), so the first one decides.
bool KernelOp::isSolved() {
  if (getBindings().empty())
    return getVariables().empty();
  auto first = cast<BindingAttr>(getBindings()[0]);
  return llvm::all_of(getVariables().getAsRange<StringAttr>(),
                      [&](StringAttr name) {
                        return first.lookup(name.getValue()).has_value();
                      });
}

DagOutputOp KernelOp::getOutput() {
  return cast<DagOutputOp>(getBody().front().getTerminator());
}

/// Symbols by index in `getSymbolSet`. Unbound variables count as 1.
SizeRules kas::getSizeRules(KernelOp kernel) {
  SymbolSet symbols = kernel.getSymbolSet();
  SizeRules rules;
  rules.numSymbols = symbols.size();
  if (!kernel.isSolved())
    for (auto name : kernel.getVariables().getAsRange<StringAttr>())
      rules.variables.push_back(*symbols.lookup(name.getValue()));
  for (auto [divisor, multiple] :
       llvm::zip_equal(kernel.getDivisors().getAsRange<SizeAttr>(),
                       kernel.getMultiples().getAsRange<StringAttr>()))
    rules.facts.push_back(
        {*divisor.toSize(symbols), *symbols.lookup(multiple.getValue())});
  for (auto attr : kernel.getBindings().getAsRange<BindingAttr>()) {
    Binding &binding = rules.bindings.emplace_back();
    for (unsigned index = 0; index < symbols.size(); ++index)
      binding.push_back(attr.lookup(symbols.getName(index)).value_or(1));
  }
  return rules;
}

/// The form that the solvers work on: sizes by index of symbol.
TensorShape kas::getShape(Value tensor, const SymbolSet &symbols) {
  auto type = cast<SymbolicTensorType>(tensor.getType());
  TensorShape shape;
  shape.numChannelDims = type.getNumChannelDims();
  for (SizeAttr size : type.getDims())
    shape.dims.push_back(*size.toSize(symbols));
  return shape;
}

//===----------------------------------------------------------------------===//
// Verifier of the op
//===----------------------------------------------------------------------===//

/// K1
static LogicalResult verifyDeclared(SizeAttr size, const SymbolSet &symbols,
                                    EmitErrorFn emitError) {
  for (StringAttr name : size.getNames())
    if (!symbols.lookup(name.getValue()))
      return emitError() << "requires declared symbols in its sizes (K1), got '"
                         << name.getValue() << "'";
  return success();
}

/// K2: all symbols, or all but the variables; the same ones in each.
static LogicalResult verifyBindings(KernelOp op, const SymbolSet &symbols) {
  if (op.getMultiplicities().size() != op.getBindings().size())
    return op.emitOpError("requires one count per binding (K2), got ")
           << op.getMultiplicities().size();
  for (int64_t count : op.getMultiplicities())
    if (count < 1)
      return op.emitOpError("requires counts of at least 1 (K2), got ")
             << count;
  bool isSolved = op.isSolved();
  for (auto binding : op.getBindings().getAsRange<BindingAttr>()) {
    for (StringAttr name : binding.getNames())
      if (!symbols.lookup(name.getValue()))
        return op.emitOpError("requires bindings of declared symbols (K2), "
                              "got '")
               << name.getValue() << "'";
    for (unsigned index = 0; index < symbols.size(); ++index) {
      StringRef name = symbols.getName(index);
      bool isVariable = llvm::any_of(
          op.getVariables().getAsRange<StringAttr>(),
          [&](StringAttr variable) { return variable.getValue() == name; });
      bool isBound = binding.lookup(name).has_value();
      if (!isBound && (!isVariable || isSolved))
        return op.emitOpError("requires a value for '")
               << name << "' in every binding (K2)";
      if (isBound && isVariable && !isSolved)
        return op.emitOpError("requires values for all variables or for none "
                              "(K2), got one for '")
               << name << "'";
    }
  }
  return success();
}

/// K6
/// Bounds of both costs, in FLOPs and in parameters.
static LogicalResult verifyBudget(KernelOp op) {
  for (NamedAttribute entry : op.getBudget()) {
    if (!llvm::is_contained({"flops", "flops_min", "params", "params_min"},
                            entry.getName().getValue()))
      return op.emitOpError("requires budgets of 'flops', 'flops_min', "
                            "'params' or 'params_min' (K6), got '")
             << entry.getName().getValue() << "'";
    auto value = dyn_cast<IntegerAttr>(entry.getValue());
    if (!value || !value.getType().isSignlessInteger(64) || value.getInt() < 0)
      return op.emitOpError("requires an integer of at least 0 for budget '")
             << entry.getName().getValue() << "' (K6), got "
             << entry.getValue();
  }
  return success();
}

/// What can be checked without the ops inside: those are verified later, and
/// `verifyRegions` then looks at the body as a whole.
LogicalResult KernelOp::verify() {
  if (getSymName().empty())
    return emitOpError("requires a name");
  // K1
  llvm::Expected<SymbolSet> symbols = makeKernelSymbols(*this);
  if (!symbols)
    return emitOpError() << llvm::toString(symbols.takeError()) << " (K1)";
  if (!isa<SymbolicTensorType>(getResultType()))
    return emitOpError("requires a kas.tensor as result, got ")
           << getResultType();
  auto emitError = [&] { return emitOpError(); };
  for (auto size : getDivisors().getAsRange<SizeAttr>())
    if (failed(verifyDeclared(size, *symbols, emitError)))
      return failure();
  // K2
  if (getDivisors().size() != getMultiples().size())
    return emitOpError("requires a symbol for each divisor (K2)");
  for (auto name : getMultiples().getAsRange<StringAttr>())
    if (!symbols->lookup(name.getValue()))
      return emitOpError("requires declared symbols in its sizes (K1), got '")
             << name.getValue() << "'";
  if (failed(verifyBindings(*this, *symbols)) || failed(verifyBudget(*this)))
    return failure();
  if (llvm::Error error = getSizeRules(*this).check())
    return emitOpError() << "requires facts that make sense (K2): "
                         << llvm::toString(std::move(error));
  return success();
}

//===----------------------------------------------------------------------===//
// Verifier of the body
//===----------------------------------------------------------------------===//

namespace {
/// Sizes, shapes and steps of the body, which is verified op by op already.
class KernelVerifier {
public:
  explicit KernelVerifier(KernelOp kernel)
      : kernel(kernel), symbols(kernel.getSymbolSet()),
        rules(getSizeRules(kernel)) {}

  LogicalResult run() {
    auto onKernel = [&] { return kernel.emitOpError(); };
    Block &block = kernel.getBody().front();
    for (BlockArgument input : block.getArguments())
      if (failed(verifyTensor(input.getType(), onKernel)))
        return failure();
    if (failed(verifyTensor(kernel.getResultType(), onKernel)))
      return failure();
    for (Operation &op : block)
      if (failed(verifyStep(op)))
        return failure();
    return verifyOutput();
  }

private:
  /// For diagnostics.
  std::string quote(const Size &size) const {
    return "'" + toString(size, symbols) + "'";
  }

  /// Null is a size that did not fit when it was made.
  LogicalResult verifySize(SizeAttr attr, EmitErrorFn emitError) {
    // K1, K3
    if (!attr)
      return emitError()
             << "requires a size whose exponents and constant fit (K3)";
    if (failed(verifyDeclared(attr, symbols, emitError)))
      return failure();
    Size size = *attr.toSize(symbols);
    if (rules.isLegal(size))
      return success();
    InFlightDiagnostic diagnostic =
        emitError() << "requires sizes that are integers (K3), got "
                    << quote(size);
    // The first binding that shows it.
    for (auto [index, binding] : llvm::enumerate(rules.bindings)) {
      if (size.evaluate(binding))
        continue;
      diagnostic.attachNote(kernel.getLoc())
          << "at binding " << kernel.getBindings()[index];
      break;
    }
    return diagnostic;
  }

  /// K1, K3 and K5 of one tensor.
  LogicalResult verifyTensor(Type type, EmitErrorFn emitError) {
    auto tensor = dyn_cast<SymbolicTensorType>(type);
    if (!tensor)
      return emitError() << "requires tensors of symbolic shape, got " << type;
    TensorShape shape;
    shape.numChannelDims = tensor.getNumChannelDims();
    for (SizeAttr size : tensor.getDims()) {
      if (failed(verifySize(size, emitError)))
        return failure();
      shape.dims.push_back(*size.toSize(symbols));
    }
    return verifyTheorem(shape, emitError);
  }

  /// Only kernels marked `canvas` promise Theorem 1.
  LogicalResult verifyTheorem(const TensorShape &shape, EmitErrorFn emitError) {
    // K5
    std::optional<TheoremViolation> violation =
        kernel.getCanvas() ? findTheoremViolation(shape, rules) : std::nullopt;
    if (!violation)
      return success();
    static constexpr StringLiteral clauses[] = {
        "no variable in a spatial dimension",
        "no variable in the denominator of a channel dimension",
        "at most one variable in a channel dimension",
        "at most one variable across all dimensions"};
    unsigned clause = static_cast<unsigned>(violation->clause);
    return emitError() << "requires " << clauses[clause - 1] << " (K5, clause "
                       << clause << "), got "
                       << quote(shape.dims[violation->dim]) << " in dimension "
                       << violation->dim;
  }

  /// What an op cannot check alone: its sizes over the kernel's symbols, and
  /// constraints that hold at bindings.
  LogicalResult verifyStep(Operation &op) {
    auto emitError = [&] { return op.emitOpError(); };
    // K7
    if (!isa<DagOpInterface, DagOutputOp>(op))
      return emitError() << "is no op of the tensor level (K7)";
    for (Value result : op.getResults())
      if (failed(verifyTensor(result.getType(), emitError)))
        return failure();
    // Sizes that a step needs but no tensor has, such as channels per group.
    if (auto step = dyn_cast<DagOpInterface>(op))
      for (SizeAttr size : step.getImpliedSizes())
        if (failed(verifySize(size, emitError)))
          return failure();
    if (auto shift = dyn_cast<DagShiftOp>(op))
      return verifyShift(shift);
    if (auto amplify = dyn_cast<DagAmplifyOp>(op))
      return verifyBlocks(amplify.getImpliedSizes().front(),
                          amplify.getCopies(), emitError);
    return success();
  }

  /// D15: no more blocks than copies, as far as numbers are known.
  LogicalResult verifyBlocks(SizeAttr blocks, SizeAttr copies,
                             EmitErrorFn emitError) {
    Size numBlocks = *blocks.toSize(symbols);
    Size numCopies = *copies.toSize(symbols);
    // Checked again when the kernel is solved.
    if (rules.hasVariable(numBlocks) || rules.hasVariable(numCopies))
      return success();
    SmallVector<Binding, 0> bindings = rules.bindings;
    // Constants need no binding: any will do.
    if (numBlocks.isConstant() && numCopies.isConstant())
      bindings.push_back(Binding(symbols.size(), 1));
    for (const Binding &binding : bindings) {
      int64_t have = *numBlocks.evaluate(binding);
      int64_t most = *numCopies.evaluate(binding);
      if (have > most)
        return emitError() << "requires at most as many blocks as copies, "
                           << most << " (D15), got " << have;
    }
    return success();
  }

  /// At each binding, and at once where the size is a number.
  LogicalResult verifyShift(DagShiftOp shift) {
    // D4
    Size size = getShape(shift.getInput(), symbols).dims[shift.getDim()];
    if (rules.hasVariable(size))
      return success();
    SmallVector<Binding, 0> bindings = rules.bindings;
    if (size.isConstant())
      bindings.push_back(Binding(symbols.size(), 1));
    int64_t amount = shift.getAmount();
    for (const Binding &binding : bindings)
      if (int64_t extent = *size.evaluate(binding);
          amount >= extent || amount <= -extent)
        return shift.emitOpError("requires a shift amount d with 0 < |d| < ")
               << extent << " (D4), got " << amount;
    return success();
  }

  /// The input of the output op may have any shape of as many elements.
  LogicalResult verifyOutput() {
    auto output = dyn_cast<DagOutputOp>(kernel.getBody().front().back());
    if (!output)
      return kernel.emitOpError(
          "requires a body that ends in kas.dag.output (K7)");
    auto emitError = [&] { return output.emitOpError(); };
    if (output.getCopies()) {
      // K3
      for (SizeAttr size :
           {*output.getCopies(), *output.getChannels(), output.getNumBlocks()})
        if (failed(verifySize(size, emitError)))
          return failure();
      // D15
      if (failed(verifyBlocks(output.getNumBlocks(), *output.getCopies(),
                              emitError)))
        return failure();
    }
    // K4
    SizeAttr given = getProduct(
        kernel.getContext(),
        cast<SymbolicTensorType>(output.getInput().getType()).getDims());
    SizeAttr wanted = getProduct(kernel.getContext(), output.getViewedDims());
    // K4 holds when the ratio is 1; one with a variable may become 1.
    SizeAttr ratio = given && wanted ? wanted.divide(given) : SizeAttr();
    if (!ratio)
      return output.emitOpError(
          "requires a size whose exponents and constant fit (K3)");
    Size size = *ratio.toSize(symbols);
    if (size.isOne() || rules.hasVariable(size) || hasVariableValues(size))
      return success();
    return output.emitOpError("requires as many elements as the result, ")
           << quote(*wanted.toSize(symbols)) << " (K4), got "
           << quote(*given.toSize(symbols));
  }

  /// The variables of a solved kernel have values that make `ratio` 1.
  bool hasVariableValues(const Size &ratio) {
    bool holdsVariable = llvm::any_of(
        kernel.getVariables().getAsRange<StringAttr>(), [&](StringAttr name) {
          return ratio.getExponent(*symbols.lookup(name.getValue())) != 0;
        });
    return holdsVariable && !rules.bindings.empty() &&
           llvm::all_of(rules.bindings, [&](const Binding &binding) {
             return ratio.evaluate(binding) == 1;
           });
  }

  KernelOp kernel;
  SymbolSet symbols;
  SizeRules rules;
};
} // namespace

LogicalResult KernelOp::verifyRegions() { return KernelVerifier(*this).run(); }
