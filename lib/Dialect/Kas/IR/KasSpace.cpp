//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Text and verifier of `kas.space`: signature, bindings, limits and properties
// of a search.
// Limits and budgets are dictionaries with names that are checked here, with a
// suggestion for a near one: a limit that is misspelt would be no limit.
//
//===----------------------------------------------------------------------===//

#include "KasSyntax.h"
#include "kas/Dialect/Kas/IR/SpaceAxes.h"
#include "kas/Support/NearName.h"
#include "kas/Support/PrimeFactors.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace kas;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// `x 4` says that the network has four layers of this shape.
ParseResult kas::parseBindings(AsmParser &parser, ArrayAttr &bindings,
                               DenseI64ArrayAttr &multiplicities) {
  SmallVector<Attribute> list;
  SmallVector<int64_t> counts;
  auto parseEntry = [&]() -> ParseResult {
    FailureOr<BindingAttr> binding = parseBindingList(parser);
    if (failed(binding))
      return failure();
    int64_t count = 1;
    if (succeeded(parser.parseOptionalKeyword("x")) &&
        parser.parseInteger(count))
      return failure();
    list.push_back(*binding);
    counts.push_back(count);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseEntry))
    return failure();
  bindings = parser.getBuilder().getArrayAttr(list);
  multiplicities = parser.getBuilder().getDenseI64ArrayAttr(counts);
  return success();
}

void kas::printBindings(AsmPrinter &printer, ArrayAttr bindings,
                        ArrayRef<int64_t> multiplicities) {
  printer << '[';
  llvm::interleaveComma(
      llvm::zip_equal(bindings, multiplicities), printer, [&](auto entry) {
        printBindingList(printer, cast<BindingAttr>(std::get<0>(entry)));
        if (std::get<1>(entry) != 1)
          printer << " x " << std::get<1>(entry);
      });
  printer << ']';
}

/// `limits {depth = 12}`; empty when absent.
static ParseResult parseOptionalDictionary(OpAsmParser &parser,
                                           StringRef keyword,
                                           DictionaryAttr &dictionary) {
  NamedAttrList entries;
  if (succeeded(parser.parseOptionalKeyword(keyword)) &&
      parser.parseOptionalAttrDict(entries))
    return failure();
  dictionary = entries.getDictionary(parser.getContext());
  return success();
}

/// `kas.space @s<N, C | k> [N, C unordered] from [N, C unordered] bindings
/// [...] limits {...} budget {...}`
ParseResult SpaceOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  auto &properties = result.getOrAddProperties<SpaceOp::Properties>();
  StringRef visibility;
  if (succeeded(parser.parseOptionalKeyword(&visibility,
                                            {"private", "public", "nested"})))
    properties.sym_visibility = builder.getStringAttr(visibility);
  return failure(
      parser.parseSymbolName(properties.sym_name) ||
      parseSymbols(parser, properties.primaries, properties.coefficients) ||
      parseShape(parser, properties.output_sizes,
                 properties.output_unordered) ||
      parser.parseKeyword("from") ||
      parseShape(parser, properties.input_sizes, properties.input_unordered) ||
      parser.parseKeyword("bindings") ||
      parseBindings(parser, properties.bindings, properties.multiplicities) ||
      parseOptionalDictionary(parser, "limits", properties.limits) ||
      parseOptionalDictionary(parser, "budget", properties.budget) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes));
}

/// Signature, bindings, limits and budget on a line each.
void SpaceOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  if (std::optional<StringRef> visibility = getSymVisibility())
    printer << *visibility << ' ';
  printer.printSymbolName(getSymName());
  printSymbols(printer, getPrimaries(), getCoefficients());
  printer.increaseIndent();
  printer.printNewline();
  printShape(printer, getOutputSizes(), getOutputUnorderedAttr());
  printer << " from ";
  printShape(printer, getInputSizes(), getInputUnorderedAttr());
  printer.printNewline();
  printer << "bindings ";
  printBindings(printer, getBindings(), getMultiplicities());
  printDictionary(printer, "limits", getLimits());
  printDictionary(printer, "budget", getBudget());
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getSymNameAttrName(), getSymVisibilityAttrName(), getPrimariesAttrName(),
       getCoefficientsAttrName(), getOutputSizesAttrName(),
       getOutputUnorderedAttrName(), getInputSizesAttrName(),
       getInputUnorderedAttrName(), getBindingsAttrName(),
       getMultiplicitiesAttrName(), getLimitsAttrName(), getBudgetAttrName()});
  printer.decreaseIndent();
}

//===----------------------------------------------------------------------===//
// Verifier
//===----------------------------------------------------------------------===//

/// Counts and sizes; docs/reference/dialect.md, section 5, has their meaning.
static constexpr StringLiteral integerLimits[] = {
    "depth",       "reduce",      "split",           "merge",
    "shift",       "expand",      "unfold",          "stride",
    "weights",     "chain",       "pooling",         "rank_min",
    "rank_max",    "window",      "weight_elements", "merge_elements",
    "stride_size", "shift_block", "size_symbols",    "size_powers",
    "reaches"};
/// Positive numbers.
static constexpr StringLiteral ratioLimits[] = {"reduce_ratio", "unfold_ratio"};
/// 0 or 1.
static constexpr StringLiteral flagLimits[] = {
    "shift_backward",      "swap_axes",  "weight_takes", "weight_shares",
    "weights_by_position", "rank_saves", "any_grid",     "one_product",
    "linear_path",         "causal",     "look_back",    "cyclic"};

/// `sees = [3, "k"]`: a number, or a size over the symbols of the space.
std::optional<Size> kas::getWindowSize(Attribute value,
                                       const SymbolSet &symbols) {
  if (auto integer = dyn_cast<IntegerAttr>(value)) {
    // `getSExtValue` asserts on wider integers.
    if (integer.getValue().getBitWidth() == 0 ||
        integer.getValue().getSignificantBits() > 32)
      return std::nullopt;
    return Size::constant(integer.getValue().getSExtValue());
  }
  auto text = dyn_cast<StringAttr>(value);
  if (!text)
    return std::nullopt;
  llvm::Expected<Size> size = parseSize(text.getValue(), symbols);
  if (size)
    return *size;
  // The caller's diagnostic shows the whole entry.
  llvm::consumeError(size.takeError());
  return std::nullopt;
}

/// An integer or a float attribute as a number.
/// Nothing for other attributes, null, and integers of width 0, which have no
/// value.
static std::optional<double> toNumber(Attribute value) {
  auto integer = dyn_cast_or_null<IntegerAttr>(value);
  if (integer && integer.getValue().getBitWidth() != 0)
    return integer.getValue().signedRoundToDouble();
  if (auto number = dyn_cast_or_null<FloatAttr>(value))
    return number.getValueAsDouble();
  return std::nullopt;
}

/// Of all limits that are numbers. 32 bits: the search keeps them in plain
/// integers.
static LogicalResult verifyLimit(SpaceOp space, NamedAttribute entry) {
  StringRef name = entry.getName();
  if (llvm::is_contained(ratioLimits, name)) {
    std::optional<double> number = toNumber(entry.getValue());
    // Written so that NaN fails, too.
    if (!number || !(*number > 0) || *number > 1e9)
      return space.emitOpError("requires a positive number for limit '")
             << name << "', got " << entry.getValue();
    return success();
  }
  auto value = dyn_cast<IntegerAttr>(entry.getValue());
  if (!value || value.getValue().getBitWidth() == 0 ||
      value.getValue().getSignificantBits() > 32 ||
      value.getValue().isNegative())
    return space.emitOpError(
               "requires a small integer of at least 0 for limit '")
           << name << "', got " << entry.getValue();
  if (llvm::is_contained(flagLimits, name) && value.getValue().ugt(1))
    return space.emitOpError("requires 0 or 1 for limit '")
           << name << "', got " << entry.getValue();
  if (name == "equivariant" && value.getValue().ugt(1))
    return space.emitOpError("requires 0, 1 or a list for limit 'equivariant', "
                             "got ")
           << entry.getValue();
  if (name == "reaches" && value.getValue().ugt(2))
    return space.emitOpError("requires 0, 1 or 2 layers for limit 'reaches', "
                             "got ")
           << entry.getValue();
  return success();
}

/// The window along one axis: a number, or a size as text.
static LogicalResult verifyWindow(SpaceOp space, Attribute value,
                                  const SymbolSet &symbols) {
  auto emitError = [&] {
    return space.emitOpError("requires odd numbers of at least 1, sizes "
                             "that are so under every binding, or \"*\", for "
                             "limit 'sees', got ")
           << value;
  };
  if (isWholeAxis(value))
    return success();
  std::optional<Size> size = getWindowSize(value, symbols);
  if (!size)
    return emitError();
  for (const Binding &binding : space.getBindingValues())
    if (std::optional<int64_t> window = size->evaluate(binding);
        // Odd: the window lies around its position, as that of a convolution.
        !window || *window % 2 == 0 || *window > (1 << 20))
      return emitError();
  return success();
}

namespace {
/// The dimensions of a space in the form in which `getSpaceAxes` takes them.
struct SpaceAxes {
  SpaceAxes(SpaceOp space, const SymbolSet &symbols) : space(space) {
    auto toSizes = [&](ArrayAttr sizes) {
      return llvm::map_to_vector(
          sizes.getAsRange<SizeAttr>(),
          [&](SizeAttr size) { return *size.toSize(symbols); });
    };
    // Verified by now to be over declared symbols (`verifyBindings`).
    outputs = toSizes(space.getOutputSizes());
    inputs = toSizes(space.getInputSizes());
    axes = getSpaceAxes(getSignature(), symbols);
  }
  SpaceSignature getSignature() {
    return {outputs, inputs, space.getOutputUnordered(),
            space.getInputUnordered()};
  }
  SpaceOp space;
  SmallVector<Size> outputs, inputs;
  SmallVector<SpaceAxis> axes;
};
} // namespace

/// One entry per axis; equal ones where axes are interchangeable. `what` is the
/// word for one.
static LogicalResult verifyAxisEntries(SpaceOp space, StringRef limit,
                                       StringRef what, ArrayAttr entries,
                                       const SymbolSet &symbols) {
  SpaceAxes signature(space, symbols);
  if (entries.size() != signature.axes.size())
    return space.emitOpError("requires one ")
           << what << " for each axis that output and input share ("
           << signature.axes.size() << ") for limit '" << limit << "', got "
           << entries.size();
  if (!space.getLimit("swap_axes", 0))
    return success();
  // Axes of equal size are interchangeable then, and must look alike.
  for (auto [axis, entry] : llvm::zip_equal(signature.axes, entries))
    for (auto [other, otherEntry] : llvm::zip_equal(signature.axes, entries))
      if (signature.inputs[axis.input] == signature.inputs[other.input] &&
          entry != otherEntry)
        return space.emitOpError("requires equal ")
               << what << "s for equal axes for limit '" << limit
               << "' with limit 'swap_axes', got " << entry << " and "
               << otherEntry;
  return success();
}

static LogicalResult verifyWindows(SpaceOp space, Attribute attribute,
                                   const SymbolSet &symbols) {
  auto windows = dyn_cast<ArrayAttr>(attribute);
  if (!windows)
    return space.emitOpError("requires a list of windows for limit 'sees', "
                             "got ")
           << attribute;
  for (Attribute window : windows)
    if (failed(verifyWindow(space, window, symbols)))
      return failure();
  return verifyAxisEntries(space, "sees", "window", windows, symbols);
}

static LogicalResult verifyTranslations(SpaceOp space, ArrayAttr words,
                                        const SymbolSet &symbols) {
  for (Attribute word : words) {
    auto text = dyn_cast<StringAttr>(word);
    if (!text || !parseTranslations(text.getValue()))
      return space.emitOpError("requires \"none\", \"zero_padded\" or "
                               "\"cyclic\" for limit 'equivariant', got ")
             << word;
  }
  return verifyAxisEntries(space, "equivariant", "word", words, symbols);
}

/// Of an axis without a symbol there is one grid only.
static LogicalResult verifyGrid(SpaceOp space, const SymbolSet &symbols) {
  SpaceAxes signature(space, symbols);
  for (const SpaceAxis &axis : signature.axes)
    if (getGridSymbols(axis, signature.getSignature(), symbols).empty())
      return space.emitOpError("requires a primary symbol in the size of each "
                               "axis for limit 'any_grid', got ")
             << space.getInputSizes()[axis.input];
  return success();
}

/// ` (did you mean 'depth'?)`, or nothing when no name is near.
static std::string suggestLimit(StringRef name) {
  SmallVector<StringRef> known = {"sees", "equivariant"};
  for (ArrayRef<StringLiteral> names :
       {ArrayRef(integerLimits), ArrayRef(ratioLimits), ArrayRef(flagLimits)})
    llvm::append_range(known, names);
  return suggestNearName(name, known);
}

/// `sees` is a list, `equivariant` may be one, all others are numbers.
static LogicalResult verifyLimits(SpaceOp space, const SymbolSet &symbols) {
  for (NamedAttribute entry : space.getLimits()) {
    StringRef name = entry.getName();
    if (name == "sees") {
      if (failed(verifyWindows(space, entry.getValue(), symbols)))
        return failure();
      continue;
    }
    auto words = dyn_cast<ArrayAttr>(entry.getValue());
    if (name == "equivariant" && words) {
      if (failed(verifyTranslations(space, words, symbols)))
        return failure();
      continue;
    }
    StringRef symbol = name;
    // `occurrences.k` limits the symbol k.
    bool isKnown = symbol.consume_front("occurrences.")
                       ? symbols.lookup(symbol).has_value()
                       : name == "equivariant" ||
                             llvm::is_contained(integerLimits, name) ||
                             llvm::is_contained(ratioLimits, name) ||
                             llvm::is_contained(flagLimits, name);
    if (!isKnown)
      return space.emitOpError("requires a known limit, got '")
             << name << "'" << suggestLimit(name);
    if (failed(verifyLimit(space, entry)))
      return failure();
  }
  // Causal operators look back unless `look_back` says otherwise.
  if (space.getLimit("cyclic", 0) &&
      space.getLimit("look_back", space.getLimit("causal", 0)))
    return space.emitOpError("requires windows that wrap around or that look "
                             "back, got limit 'cyclic' with ")
           << (space.getLimit("look_back", 0) ? "'look_back'" : "'causal'");
  return space.getLimit("any_grid", 0) ? verifyGrid(space, symbols) : success();
}

/// S3: what the states of the search hold.
static LogicalResult verifyRank(SpaceOp space) {
  // States are plain data of fixed size, copied as bytes.
  constexpr size_t maxRank = 8;
  for (ArrayAttr sizes : {space.getOutputSizes(), space.getInputSizes()})
    if (sizes.size() > maxRank)
      return space.emitOpError("requires at most ")
             << maxRank << " dimensions in output and input (S3), got "
             << sizes.size();
  return success();
}

/// S2: a size of the search is 16 exponents.
static LogicalResult verifyFactors(SpaceOp space, const SymbolSet &symbols) {
  // One exponent per symbol and one per prime of a constant.
  constexpr unsigned maxFactors = 16;
  SmallVector<int64_t> primes;
  for (ArrayAttr sizes : {space.getOutputSizes(), space.getInputSizes()})
    for (auto attr : sizes.getAsRange<SizeAttr>()) {
      std::optional<Size> size = attr.toSize(symbols);
      addPrimeFactors(size->getNumerator(), primes);
      addPrimeFactors(size->getDenominator(), primes);
    }
  unsigned factors = symbols.size() + primes.size();
  if (factors <= maxFactors)
    return success();
  return space.emitOpError("requires at most ")
         << maxFactors
         << " symbols and prime factors of constants in its signature (S2), "
            "got "
         << factors;
}

/// Budgets are at most, those with `min_` at least, summed over the bindings
/// with their multiplicities.
static LogicalResult verifyBudget(SpaceOp space) {
  static constexpr StringRef known[] = {
      "flops",          "min_flops",       "params",
      "flops_ratio",    "min_flops_ratio", "params_ratio",
      "baseline_flops", "baseline_params", "latency_ms"};
  for (NamedAttribute entry : space.getBudget()) {
    StringRef name = entry.getName();
    if (!llvm::is_contained(known, name))
      return space.emitOpError("requires a known budget, got '")
             << name << "'" << suggestNearName(name, known);
    std::optional<double> value = space.getBudgetValue(name);
    if (!value || !(*value > 0))
      return space.emitOpError("requires a positive number for budget '")
             << name << "', got " << entry.getValue();
  }
  // A ratio is of something.
  auto requireBaseline = [&](StringRef ratio, StringRef baseline) {
    if (!space.getBudgetValue(ratio) || space.getBudgetValue(baseline))
      return success();
    return LogicalResult(space.emitOpError("requires budget '")
                         << baseline << "' beside '" << ratio << "', got none");
  };
  return failure(failed(requireBaseline("flops_ratio", "baseline_flops")) ||
                 failed(requireBaseline("min_flops_ratio", "baseline_flops")) ||
                 failed(requireBaseline("params_ratio", "baseline_params")));
}

/// Every symbol has a value, and every size is legal, at each binding.
static LogicalResult verifyBindings(SpaceOp space, const SymbolSet &symbols) {
  if (space.getBindings().empty())
    return space.emitOpError("requires at least one binding, got none");
  if (space.getMultiplicities().size() != space.getBindings().size() ||
      llvm::any_of(space.getMultiplicities(), [](int64_t n) { return n < 1; }))
    return space.emitOpError(
        "requires one multiplicity of at least 1 per binding");
  for (auto binding : space.getBindings().getAsRange<BindingAttr>()) {
    for (StringAttr name : binding.getNames())
      if (!symbols.lookup(name.getValue()))
        return space.emitOpError(
                   "requires declared symbols in its bindings, got '")
               << name.getValue() << "'";
    if (binding.getNames().size() != symbols.size())
      return space.emitOpError("requires a value for each of ")
             << symbols.size() << " symbols in each binding, got "
             << Attribute(binding);
  }
  SmallVector<Binding> bindings = space.getBindingValues();
  for (ArrayAttr sizes : {space.getOutputSizes(), space.getInputSizes()})
    for (auto size : sizes.getAsRange<SizeAttr>()) {
      auto emitError = [&] { return space.emitOpError(); };
      if (failed(verifySymbolicSize(size, symbols, "its signature", "S1",
                                    emitError)))
        return failure();
      if (!size.toSize(symbols)->isLegal(bindings))
        return space.emitOpError(
                   "requires sizes that are integers of at least 1 "
                   "under every binding (S1), got ")
               << Attribute(size);
    }
  return success();
}

/// Bindings first: legality of sizes is a question of their values.
LogicalResult SpaceOp::verify() {
  llvm::Expected<SymbolSet> symbols =
      makeSymbolSet(getPrimaries(), getCoefficients());
  if (!symbols)
    return emitOpError() << llvm::toString(symbols.takeError());
  if (getOutputUnordered().size() != getOutputSizes().size() ||
      getInputUnordered().size() != getInputSizes().size())
    return emitOpError("requires one 'unordered' flag per dimension");
  if (getInputSizes().empty())
    return emitOpError("requires data of rank 1 at least, got rank 0");
  return failure(
      failed(verifyBindings(*this, *symbols)) || failed(verifyRank(*this)) ||
      failed(verifyFactors(*this, *symbols)) ||
      failed(verifyLimits(*this, *symbols)) || failed(verifyBudget(*this)));
}

//===----------------------------------------------------------------------===//
// Accessors
//===----------------------------------------------------------------------===//

SymbolSet SpaceOp::getSymbolSet() {
  return llvm::cantFail(makeSymbolSet(getPrimaries(), getCoefficients()));
}

/// By index of `getSymbolSet`, in the order of the text.
SmallVector<Binding> SpaceOp::getBindingValues() {
  SymbolSet symbols = getSymbolSet();
  SmallVector<Binding> result;
  for (auto attr : getBindings().getAsRange<BindingAttr>()) {
    Binding &binding = result.emplace_back();
    for (unsigned index = 0; index < symbols.size(); ++index)
      binding.push_back(attr.lookup(symbols.getName(index)).value_or(1));
  }
  return result;
}

/// `otherwise` where the limit is not set.
int64_t SpaceOp::getLimit(StringRef name, int64_t otherwise) {
  auto value = getLimits().getAs<IntegerAttr>(name);
  return value ? value.getInt() : otherwise;
}

std::optional<double> SpaceOp::getLimitRatio(StringRef name) {
  return toNumber(getLimits().get(name));
}

std::optional<double> SpaceOp::getBudgetValue(StringRef name) {
  return toNumber(getBudget().get(name));
}
