//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bindings of symbols to sizes: legality of an operator at one, and bindings
// from attributes, types and text.
//
// What symbols decide is verified with the op (KasVerifiers.cpp); what needs
// numbers is verified here, at each `kas.apply`, so that all later passes may
// take sizes for integers.
//
//===----------------------------------------------------------------------===//

#include "KasSyntax.h"
#include "kas/Dialect/Kas/IR/NamedOperator.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace kas;

/// Nothing also for what is no integer, as C/2 at C = 3.
std::optional<int64_t> kas::evaluate(SizeAttr size, const SymbolSet &symbols,
                                     const Binding &binding) {
  std::optional<Size> value = size.toSize(symbols);
  return value ? value->evaluate(binding) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// verifyBinding
//===----------------------------------------------------------------------===//

namespace {
/// Checks the sizes of one operator at one binding.
/// `binding` has a value for each symbol of `symbols`, by index.
struct BindingVerifier {
  OperatorOp op;
  SymbolSet symbols;
  const Binding &binding;
  EmitErrorFn emitError;

  /// A diagnostic with a note at the place in the operator it is about.
  InFlightDiagnostic report(Location location) {
    InFlightDiagnostic diagnostic = emitError();
    if (location != op.getLoc())
      diagnostic.attachNote(location) << "required here";
    return diagnostic;
  }

  /// `N = 1, C = 64`.
  std::string describe() {
    std::string text;
    llvm::raw_string_ostream os(text);
    llvm::interleaveComma(llvm::enumerate(binding), os, [&](auto entry) {
      os << symbols.getName(entry.index()) << " = " << entry.value();
    });
    return text;
  }

  /// A size is legal when it is an integer of at least 1: C/s at C = 64, s = 3
  /// is none.
  LogicalResult verifySize(SizeAttr size, Location location) {
    std::optional<int64_t> value = kas::evaluate(size, symbols, binding);
    if (value && *value <= Size::maxInteger)
      return success();
    return report(location)
           << "requires size '" << toString(*size.toSize(symbols), symbols)
           << "' of operator '" << op.getSymName()
           << "' to be an integer from 1 to " << Size::maxInteger
           << (binding.empty() ? std::string() : ", got " + describe());
  }

  /// In program order, so that the first violation is the one that causes
  /// others.
  LogicalResult verifySizes() {
    for (BlockArgument argument : op.getOutputs())
      if (failed(verifySize(kas::getSize(argument), argument.getLoc())))
        return failure();
    for (auto primitive : op.getBody().getOps<PrimitiveOpInterface>()) {
      for (SizeAttr size : primitive.getParameterSizes())
        if (failed(verifySize(size, primitive.getLoc())))
          return failure();
      for (Value result : primitive->getResults())
        if (failed(verifySize(kas::getSize(result), primitive.getLoc())))
          return failure();
    }
    for (SizeAttr size : op.getDataSizes())
      if (failed(verifySize(size, op.getLoc())))
        return failure();
    return success();
  }

  /// C3 and C5. After `verifySizes`: `evaluate` has values then.
  LogicalResult verifyPrimitives() {
    for (auto primitive : op.getBody().getOps<PrimitiveOpInterface>()) {
      auto emitAt = [&] { return report(primitive.getLoc()); };
      if (failed(primitive.verifyAtBinding(
              [&](SizeAttr size) {
                return *kas::evaluate(size, symbols, binding);
              },
              emitAt)))
        return failure();
    }
    return success();
  }

  /// The number of points of a box must fit 63 bits.
  LogicalResult verifyCount(ArrayRef<SizeAttr> sizes, StringRef what) {
    int64_t count = 1;
    for (SizeAttr size : sizes) {
      // Sizes in bytes and twice the points then fit 63 bits as well.
      if (llvm::MulOverflow(count, *kas::evaluate(size, symbols, binding),
                            count) ||
          count > (int64_t(1) << 58))
        return emitError() << "requires fewer than 2^58 points in " << what
                           << " of operator '" << op.getSymName() << "', got "
                           << describe();
    }
    return success();
  }

  LogicalResult verifyCounts() {
    SmallVector<SizeAttr> space = op.getOutputSizes();
    for (ReduceOp reduce : getReductions(op))
      space.push_back(reduce.getSize());
    if (failed(verifyCount(space, "the iteration space")) ||
        failed(verifyCount(op.getDataSizes(), "the data")))
      return failure();
    for (ArrayRef<SizeAttr> weight : op.getWeightSizes())
      if (failed(verifyCount(weight, "a weight")))
        return failure();
    return success();
  }
};
} // namespace

LogicalResult kas::verifyBinding(OperatorOp op, const Binding &binding,
                                 EmitErrorFn emitError) {
  BindingVerifier verifier{op, op.getSymbolSet(), binding, emitError};
  // Short-circuits: each check relies on those before it.
  return failure(failed(verifier.verifySizes()) ||
                 failed(verifier.verifyPrimitives()) ||
                 failed(verifier.verifyCounts()));
}

//===----------------------------------------------------------------------===//
// Bindings from attributes, types and text
//===----------------------------------------------------------------------===//

/// Which of the symbols occur in a size of `op`.
static SmallVector<bool> findUsedSymbols(OperatorOp op,
                                         const SymbolSet &symbols) {
  SmallVector<bool> used(symbols.size(), false);
  auto mark = [&](SizeAttr size) {
    for (StringAttr name : size.getNames())
      used[*symbols.lookup(name.getValue())] = true;
  };
  llvm::for_each(op.getOutputSizes(), mark);
  llvm::for_each(op.getDataSizes(), mark);
  for (auto primitive : op.getBody().getOps<PrimitiveOpInterface>()) {
    llvm::for_each(primitive.getParameterSizes(), mark);
    for (Value result : primitive->getResults())
      mark(kas::getSize(result));
  }
  return used;
}

/// Copies the values of `attr` into `binding` (0 means no value yet).
static LogicalResult bindExplicitly(OperatorOp op, const SymbolSet &symbols,
                                    BindingAttr attr, Binding &binding,
                                    EmitErrorFn emitError) {
  for (auto [name, value] :
       llvm::zip_equal(attr.getNames(), attr.getValues())) {
    std::optional<unsigned> index = symbols.lookup(name.getValue());
    if (!index)
      return emitError() << "requires symbols of operator '" << op.getSymName()
                         << "' in the binding, got '" << name.getValue() << "'";
    if (binding[*index] != 0 && binding[*index] != value)
      return emitError() << "requires one value for symbol '" << name.getValue()
                         << "', got " << binding[*index] << " and " << value;
    binding[*index] = value;
  }
  return success();
}

/// Symbols that no size mentions get the value 1.
static LogicalResult requireComplete(OperatorOp op, const SymbolSet &symbols,
                                     Binding &binding, EmitErrorFn emitError) {
  SmallVector<bool> used = findUsedSymbols(op, symbols);
  for (auto [index, value] : llvm::enumerate(binding)) {
    if (value == 0 && used[index])
      return emitError() << "requires a value for symbol '"
                         << symbols.getName(index) << "' of operator '"
                         << op.getSymName() << "', got none";
    if (value == 0)
      value = 1;
  }
  return success();
}

/// From text alone, without tensors: every symbol in use must be named.
FailureOr<Binding> kas::getBinding(OperatorOp op, BindingAttr attr,
                                   EmitErrorFn emitError) {
  SymbolSet symbols = op.getSymbolSet();
  Binding binding(symbols.size(), 0);
  if (failed(bindExplicitly(op, symbols, attr, binding, emitError)) ||
      failed(requireComplete(op, symbols, binding, emitError)))
    return failure();
  return binding;
}

/// Binds the primaries that are bare dimensions of `sizes` from `shape`.
/// `[N, 2*C, H/s]` gives a value to N only. Coefficients are never inferred:
/// they are parameters, such as window sizes, which a shape equals by chance.
static LogicalResult bindFromShape(ArrayRef<SizeAttr> sizes,
                                   ArrayRef<int64_t> shape,
                                   const SymbolSet &symbols, StringRef what,
                                   Binding &binding, EmitErrorFn emitError) {
  if (sizes.size() != shape.size())
    return emitError() << "requires rank " << sizes.size() << " for " << what
                       << ", got " << shape.size();
  for (auto [size, extent] : llvm::zip_equal(sizes, shape)) {
    if (extent < 1)
      return emitError() << "requires dimensions of at least 1 for " << what
                         << ", got " << extent;
    if (size.getNames().size() != 1 ||
        size != SizeAttr::getSymbol(size.getContext(),
                                    size.getNames().front().getValue()))
      continue;
    unsigned index = *symbols.lookup(size.getNames().front().getValue());
    if (symbols.getKind(index) != SymbolKind::Primary)
      continue;
    if (binding[index] != 0 && binding[index] != extent)
      return emitError() << "requires one value for symbol '"
                         << symbols.getName(index) << "', got "
                         << binding[index] << " and " << extent;
    binding[index] = extent;
  }
  return success();
}

/// Checks that a tensor has the sizes that the binding demands.
static LogicalResult verifyShape(ArrayRef<SizeAttr> sizes, ShapedType type,
                                 const SymbolSet &symbols,
                                 const Binding &binding, const Twine &what,
                                 EmitErrorFn emitError) {
  SmallVector<int64_t> expected;
  for (SizeAttr size : sizes)
    expected.push_back(*kas::evaluate(size, symbols, binding));
  if (ArrayRef<int64_t>(expected) == type.getShape())
    return success();
  std::string shape;
  llvm::raw_string_ostream os(shape);
  llvm::interleave(expected, os, "x");
  return emitError() << "requires shape " << shape << " for " << what
                     << ", got " << type;
}

FailureOr<Binding> kas::inferBinding(OperatorOp op, ShapedType data,
                                     ShapedType result, BindingAttr attr,
                                     EmitErrorFn emitError) {
  SymbolSet symbols = op.getSymbolSet();
  Binding binding(symbols.size(), 0);
  // Shapes first, text second: text may fill in what shapes leave open, and a
  // conflict between the two is reported. Then everything is checked against
  // the completed binding, so that composite sizes such as `H/s` have to agree
  // as well.
  SmallVector<SizeAttr> dataSizes = op.getDataSizes();
  SmallVector<SizeAttr> outputSizes = op.getOutputSizes();
  if (failed(bindFromShape(dataSizes, data.getShape(), symbols, "the data",
                           binding, emitError)) ||
      failed(bindFromShape(outputSizes, result.getShape(), symbols,
                           "the result", binding, emitError)) ||
      failed(bindExplicitly(op, symbols, attr, binding, emitError)) ||
      failed(requireComplete(op, symbols, binding, emitError)) ||
      failed(verifyBinding(op, binding, emitError)) ||
      failed(verifyShape(dataSizes, data, symbols, binding, "the data",
                         emitError)) ||
      failed(verifyShape(outputSizes, result, symbols, binding, "the result",
                         emitError)))
    return failure();
  return binding;
}

FailureOr<Binding> kas::inferBinding(ApplyOp apply, OperatorOp op,
                                     EmitErrorFn emitError) {
  FailureOr<Binding> binding =
      inferBinding(op, cast<ShapedType>(apply.getData().getType()),
                   cast<ShapedType>(apply.getResult().getType()),
                   apply.getBinding(), emitError);
  if (failed(binding))
    return failure();
  if (apply.getWeights().size() != op.getNumWeights())
    return emitError() << "requires " << op.getNumWeights() << " weights, got "
                       << apply.getWeights().size();
  SymbolSet symbols = op.getSymbolSet();
  for (auto [index, sizes, weight] :
       llvm::enumerate(op.getWeightSizes(), apply.getWeights()))
    if (failed(verifyShape(sizes, cast<ShapedType>(weight.getType()), symbols,
                           *binding, "weight " + Twine(index), emitError)))
      return failure();
  return binding;
}

/// For command lines; the text form of IR is `parseBindingList`.
llvm::Expected<BindingAttr> kas::parseBinding(MLIRContext *context,
                                              StringRef text) {
  SmallVector<std::pair<StringRef, int64_t>> entries;
  SmallVector<StringRef> parts;
  if (!text.trim().empty())
    text.split(parts, ',');
  for (StringRef part : parts) {
    auto [name, digits] = part.split('=');
    name = name.trim();
    int64_t value = 0;
    if (name.empty() || digits.trim().getAsInteger(10, value))
      return llvm::createStringError(
          "a binding must have the form NAME=VALUE "
          "with an integer that fits 64 bits, got '" +
          part.trim() + "'");
    if (value < 1)
      return llvm::createStringError("the value of symbol '" + name +
                                     "' must be at least 1, got " +
                                     llvm::Twine(value));
    if (llvm::any_of(entries, [&](auto entry) { return entry.first == name; }))
      return llvm::createStringError("symbol '" + name +
                                     "' is bound more than once");
    entries.emplace_back(name, value);
  }
  return BindingAttr::getNormal(context, entries);
}

FailureOr<std::pair<OperatorOp, Binding>>
kas::getNamedOperator(Operation *root, StringRef name, StringRef bind) {
  auto emitError = [&] { return mlir::emitError(root->getLoc()); };
  auto op =
      dyn_cast_or_null<OperatorOp>(root->hasTrait<OpTrait::SymbolTable>()
                                       ? SymbolTable::lookupSymbolIn(root, name)
                                       : nullptr);
  if (!op)
    return emitError()
           << "requires a kas.operator for option 'operator', got '@" << name
           << "'";
  llvm::Expected<BindingAttr> attr = parseBinding(root->getContext(), bind);
  if (!attr)
    return emitError() << llvm::toString(attr.takeError());
  FailureOr<Binding> binding = getBinding(op, *attr, emitError);
  if (failed(binding))
    return failure();
  return std::pair(op, *binding);
}

//===----------------------------------------------------------------------===//
// ApplyOp
//===----------------------------------------------------------------------===//

OperatorOp ApplyOp::getOperator() {
  return SymbolTable::lookupNearestSymbolFrom<OperatorOp>(*this,
                                                          getCalleeAttr());
}

LogicalResult ApplyOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  auto op =
      symbolTable.lookupNearestSymbolFrom<OperatorOp>(*this, getCalleeAttr());
  if (!op)
    return emitOpError("requires a kas.operator, got '@") << getCallee() << "'";
  Type elementType = getElementTypeOrSelf(getData().getType());
  for (Value value : getWeights())
    if (getElementTypeOrSelf(value.getType()) != elementType)
      return emitOpError("requires one element type, got ")
             << elementType << " and " << getElementTypeOrSelf(value.getType());
  if (getElementTypeOrSelf(getResult().getType()) != elementType)
    return emitOpError("requires one element type, got ")
           << elementType << " and "
           << getElementTypeOrSelf(getResult().getType());
  auto emitError = [&] { return emitOpError(); };
  // A verified application has a legal binding, and tensors of its shapes.
  return failure(failed(inferBinding(*this, op, emitError)));
}
