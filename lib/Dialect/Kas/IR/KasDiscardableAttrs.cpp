//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The constraints of the discardable attributes that passes write.
// Numbers A1 and following are those of docs/reference/ops.md. Attributes
// of this dialect on operations of other dialects are how searches,
// quantization and training annotate networks, so a misspelt one must not pass
// unseen.
//
//===----------------------------------------------------------------------===//

#include "KasSyntax.h"
#include "kas/Dialect/Kas/IR/AttributeErrors.h"
#include "kas/Dialect/Kas/IR/DataAttribute.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/IR/SearchAttributes.h"
#include "kas/Dialect/Kas/IR/TrainingAttributes.h"
#include "kas/Dialect/Kas/IR/UnsignedAttribute.h"
#include "kas/Support/Initializer.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace kas;
using namespace mlir;

LogicalResult kas::emitAttributeValueError(Operation *op, StringRef what,
                                           NamedAttribute attribute) {
  return op->emitError() << "expected " << what << " as "
                         << attribute.getName().getValue() << ", got "
                         << attribute.getValue();
}

LogicalResult kas::emitAttributePositionError(Operation *op, StringRef where,
                                              NamedAttribute attribute) {
  return op->emitError() << "expected " << attribute.getName().getValue()
                         << " on " << where << ", got " << op->getName();
}

LogicalResult kas::emitNoAttributeError(Operation *op, StringRef kind,
                                        unsigned number,
                                        NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  return op->emitError() << "expected no attribute of dialect "
                         << name.split('.').first << " on " << kind << " "
                         << number << ", got " << name;
}

/// Also of null: then false.
static bool isI64(Attribute attribute) {
  auto number = dyn_cast_if_present<IntegerAttr>(attribute);
  return number && number.getType().isInteger(64);
}

/// `{space | kernel = @symbol, binding = 0 : i64}`, and optionally `name` and
/// `attention`.
static bool isSite(Attribute attribute) {
  auto entries = dyn_cast<DictionaryAttr>(attribute);
  // Exactly one of `space` and `kernel`.
  if (!entries || !isI64(entries.get("binding")) ||
      entries.contains("space") == entries.contains("kernel"))
    return false;
  return llvm::all_of(entries, [](NamedAttribute entry) {
    StringRef name = entry.getName();
    Attribute value = entry.getValue();
    return name == "binding" ||
           ((name == "space" || name == "kernel") &&
            isa<FlatSymbolRefAttr>(value)) ||
           (name == "name" && isa<StringAttr>(value)) ||
           (name == "attention" && isa<UnitAttr>(value));
  });
}

/// `{flops = 12 : i64, latency_ms = 1.5}`.
static bool isScore(Attribute attribute) {
  auto entries = dyn_cast<DictionaryAttr>(attribute);
  return entries && llvm::all_of(entries, [](NamedAttribute entry) {
           auto number = dyn_cast<FloatAttr>(entry.getValue());
           return isI64(entry.getValue()) ||
                  (number && number.getType().isF64());
         });
}

/// `["a", "b"]`.
static bool areStrings(Attribute attribute) {
  auto entries = dyn_cast<ArrayAttr>(attribute);
  return entries && llvm::all_of(entries, llvm::IsaPred<StringAttr>);
}

/// `{train = "train_step", evaluate = "evaluate"}`.
static bool areNamedStrings(Attribute attribute) {
  auto entries = dyn_cast<DictionaryAttr>(attribute);
  return entries && llvm::all_of(entries, [](NamedAttribute entry) {
           return isa<StringAttr>(entry.getValue());
         });
}

namespace {
/// What an attribute of an operation has to be, and where.
struct Rule {
  StringRef name, value;
  /// `value` and `place` complete "expected ... as NAME", "expected NAME on
  /// ...".
  function_ref<bool(Attribute)> isValue;
  StringRef place;
  function_ref<bool(Operation *)> isPlace;
};
} // namespace

/// The value first: one that is malformed is wrong everywhere.
static LogicalResult verify(Operation *op, NamedAttribute attribute,
                            const Rule &rule) {
  if (!rule.isValue(attribute.getValue()))
    return emitAttributeValueError(op, rule.value, attribute);
  if (!rule.isPlace(op))
    return emitAttributePositionError(op, rule.place, attribute);
  return success();
}

/// MLIR calls this for each attribute `kas.*` of any operation.
LogicalResult KasDialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attribute) {
  auto isLinalg = [](Operation *op) { return isa<linalg::LinalgOp>(op); };
  auto isSpace = [](Operation *op) { return isa<SpaceOp>(op); };
  auto isSymbol = [](Operation *op) { return isa<SymbolOpInterface>(op); };
  auto isFunction = [](Operation *op) { return isa<FunctionOpInterface>(op); };
  // By name: the dialect does not link against bufferization.
  auto isRead = [](Operation *op) {
    return op->getName().getStringRef() == "bufferization.to_buffer";
  };
  auto isOperator = [](Operation *op) { return isa<OperatorOp>(op); };
  auto areNumbers = [](Attribute value) {
    auto numbers = dyn_cast<DenseI64ArrayAttr>(value);
    return numbers && llvm::all_of(numbers.asArrayRef(),
                                   [](int64_t number) { return number >= 0; });
  };
  auto isUnit = [](Attribute value) { return isa<UnitAttr>(value); };
  auto isString = [](Attribute value) { return isa<StringAttr>(value); };
  // One row per attribute: name, value, test of the value, place, test of the
  // place.
  const Rule rules[] = {
      {siteAttrName, "a space or a kernel and a binding", isSite, // A2
       "a linalg operation", isLinalg},
      {layerAttrName, "a string", isString, // A3
       "a linalg operation", isLinalg},
      {namedOperatorAttrName, "a string", isString, // A4
       "a kas.space", isSpace},
      {scoreAttrName, "a dictionary of numbers of type i64 or f64", // A5
       isScore, "an operation that defines a symbol", isSymbol},
      {originAttrName, "a string", isString, // A6
       "an operation that defines a symbol", isSymbol},
      {candidateAttrName, "a number of type i64", isI64, // A7
       "an operation that defines a symbol", isSymbol},
      {frontAttrName, "a unit", isUnit, // A8
       "an operation that defines a symbol", isSymbol},
      {programsAttrName, "a dictionary of strings", areNamedStrings, // A9
       "a function", isFunction},
      {layersAttrName, "an array of strings", areStrings, // A10
       "a function", isFunction},
      {parametersAttrName, "an array of strings", areStrings, // A11
       "a function", isFunction},
      {readAttrName, "a number of type i64", isI64, // A12
       "a bufferization.to_buffer", isRead},
      {fullRankAtAttrName, "an array of numbers of bindings", // A15
       areNumbers, "a kas.operator", isOperator}};
  for (const Rule &rule : rules)
    if (attribute.getName() == rule.name)
      return verify(op, attribute, rule);
  // The parser's own; an op outside of a kas.operator keeps them, which its
  // parent check reports.
  if (attribute.getName() == resultNamesAttr ||
      attribute.getName() == operandNamesAttr)
    return success();
  // Known names, but of arguments.
  if (attribute.getName() == argumentNameAttrName ||
      attribute.getName() == initializerAttrName ||
      attribute.getName() == unsignedAttrName) // A1
    return emitAttributePositionError(op, "an argument of a function",
                                      attribute);
  InFlightDiagnostic error = op->emitError() // A1
                             << "expected an attribute of dialect kas among ";
  llvm::interleaveComma(rules, error,
                        [&](const Rule &rule) { error << rule.name; });
  return error << ", got " << attribute.getName().getValue();
}

/// Those of arguments that say what they are for, or how they are trained.
/// A16 to A18, A20 and A21.
static LogicalResult verifyArgumentUse(Operation *op, unsigned argument,
                                       NamedAttribute attribute) {
  StringRef name = attribute.getName();
  auto number = dyn_cast<FloatAttr>(attribute.getValue());
  // Neither infinite nor NaN nor negative.
  bool isNumber =
      number && number.getValue().isFinite() && !number.getValue().isNegative();
  StringRef expected;
  if (name == weightDecayAttrName && !isNumber) // A16
    expected = "a number of at least 0";
  if (llvm::is_contained({constantAttrName, dataAttrName}, name) &&
      !isa<UnitAttr>(attribute.getValue())) // A17, A21
    expected = "no value";
  if (name == dropoutAttrName &&
      (!isNumber || number.getValueAsDouble() >= 1)) // A18
    expected = "a number of at least 0 and less than 1";
  if (name == momentumAttrName &&
      (!isNumber || number.getValueAsDouble() > 1)) // A20
    expected = "a number from 0 to 1";
  if (expected.empty())
    return success();
  return op->emitError() << "expected " << expected << " as " << name
                         << " of argument " << argument << ", got "
                         << attribute.getValue();
}

/// That an argument or a result of this type has unsigned integers.
/// Linalg has signless integers only, so the sign is an attribute at the
/// borders of functions.
static LogicalResult verifyUnsigned(Operation *op, StringRef kind,
                                    unsigned number, Type type,
                                    NamedAttribute attribute) {
  auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(type));
  // Passes make buffers and pointers of tensors.
  bool isLowered =
      isa<BaseMemRefType>(type) || !isa<BuiltinDialect>(type.getDialect());
  bool fits = isLowered || (isa<TensorType>(type) && integer &&
                            integer.isSignless() && integer.getWidth() >= 8);
  if (fits && isa<UnitAttr>(attribute.getValue())) // A19
    return success();
  return op->emitError() << "expected " << unsignedAttrName
                         << " without a value on a tensor of signless integers "
                            "of 8 bits at least, got "
                         << attribute.getValue() << " on " << kind << ' '
                         << number << " of type " << type;
}

/// Names, initializers, signs, and how an argument is trained.
LogicalResult KasDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                   unsigned argument,
                                                   NamedAttribute attribute) {
  StringRef name = attribute.getName();
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (name == unsignedAttrName && function)
    return verifyUnsigned(op, "argument", argument,
                          function.getArgumentTypes()[argument], attribute);
  if (llvm::is_contained({weightDecayAttrName, constantAttrName,
                          dropoutAttrName, momentumAttrName, dataAttrName},
                         name))
    return verifyArgumentUse(op, argument, attribute);
  if (name != argumentNameAttrName && name != initializerAttrName) // A1
    return op->emitError() << "expected no attribute of dialect kas but "
                           << argumentNameAttrName << ", "
                           << initializerAttrName << ", " << weightDecayAttrName
                           << ", " << constantAttrName << ", "
                           << dropoutAttrName << ", " << unsignedAttrName
                           << ", " << momentumAttrName << " and "
                           << dataAttrName << " on argument " << argument
                           << ", got " << name;
  auto text = dyn_cast<StringAttr>(attribute.getValue());
  if (!text) // A13, A14
    return op->emitError() << "expected a string as " << name << " of argument "
                           << argument << ", got " << attribute.getValue();
  if (name == argumentNameAttrName)
    return success();
  llvm::Expected<Initializer> initializer = Initializer::parse(text.getValue());
  if (!initializer) // A14
    return op->emitError() << "argument " << argument << ": "
                           << llvm::toString(initializer.takeError());
  return success();
}

/// Results have names and signs only.
LogicalResult KasDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned result, NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (attribute.getName() == unsignedAttrName && function)
    return verifyUnsigned(op, "result", result,
                          function.getResultTypes()[result], attribute);
  if (attribute.getName() != argumentNameAttrName) // A1
    return op->emitError() << "expected no attribute of dialect kas but "
                           << argumentNameAttrName << " and "
                           << unsignedAttrName << " on result " << result
                           << ", got " << attribute.getName().getValue();
  if (!isa<StringAttr>(attribute.getValue())) // A13
    return op->emitError() << "expected a string as " << argumentNameAttrName
                           << " of result " << result << ", got "
                           << attribute.getValue();
  return success();
}
