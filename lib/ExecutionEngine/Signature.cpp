//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names, types, shapes and initializers of the arguments and results of a
// function.
//
// Random arguments are reproducible by name: the same seed gives an argument
// the same values whatever other arguments there are.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/Signature.h"
#include "PositiveArguments.h"
#include "kas/Dialect/Kas/IR/DataAttribute.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/IR/UnsignedAttribute.h"
#include "llvm/ADT/StringSet.h"

using namespace kas;
using namespace kas::execution;
using llvm::createStringError;
using llvm::Expected;
using llvm::SmallVector;
using llvm::StringRef;
using llvm::Twine;

/// `f32`, `i8`, ... as MLIR prints types; signatures hold no types, so that
/// they outlive their context.
static std::string toText(mlir::Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// Whether tensors of `element` are accepted. i1 is a byte with 0 or 1.
static bool isOneOf(mlir::Type element, ElementTypes types) {
  if (types == ElementTypes::F32 || element.isF32())
    return element.isF32();
  return element.isF16() || element.isBF16() || element.isF64() ||
         (element.isSignlessInteger() &&
          llvm::is_contained({1u, 8u, 16u, 32u, 64u},
                             element.getIntOrFloatBitWidth()));
}

/// The shape and the type of a static tensor type with elements of `types`;
/// anything else is an error.
static Expected<TensorSignature>
getTensor(mlir::Type type, const std::string &name, ElementTypes types) {
  auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() ||
      !isOneOf(tensor.getElementType(), types))
    return createStringError(
        "'" + name + "' must be a statically shaped tensor of " +
        (types == ElementTypes::F32 ? "f32" : "floats or integers") +
        ", got '" + toText(type) + "'");
  return TensorSignature{name, SmallVector<int64_t>(tensor.getShape()),
                         toText(tensor.getElementType()),
                         Initializer::defaultFor(tensor.getShape())};
}

unsigned TensorSignature::getElementBytes() const {
  unsigned bits = 0;
  // "bf16", "ui8": the letters go.
  bool isWrong = StringRef(type).ltrim("bfiu").getAsInteger(10, bits);
  assert(!isWrong && "no type of elements");
  (void)isWrong;
  return llvm::divideCeil(bits, 8);
}

uint64_t TensorSignature::getNumBytes() const {
  return llvm::cantFail(numElements(shape)) * getElementBytes();
}

bool FunctionSignature::isF32() const {
  auto isOne = [](const TensorSignature &tensor) {
    return tensor.type == "f32";
  };
  return llvm::all_of(arguments, isOne) && llvm::all_of(results, isOne);
}

Expected<FunctionSignature> FunctionSignature::get(mlir::ModuleOp module,
                                                   StringRef name,
                                                   ElementTypes types) {
  auto function = module.lookupSymbol<mlir::func::FuncOp>(name);
  if (!function)
    return createStringError("no function '" + name + "' in the module");
  if (function.isExternal())
    return createStringError("function '" + name + "' has no body");

  FunctionSignature signature{name.str(), {}, {}};
  llvm::StringSet<> names;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto nameAttr = function.getArgAttrOfType<mlir::StringAttr>(
        index, KasDialect::argumentNameAttrName);
    auto argument = getTensor(
        type, nameAttr ? nameAttr.str() : ("arg" + Twine(index)).str(), types);
    if (!argument)
      return argument.takeError();
    if (function.getArgAttr(index, unsignedAttrName))
      // Signless in MLIR: an attribute of importers says unsigned.
      argument->type.insert(0, "u");
    argument->isData = isData(function.getArgument(index));
    // The data has no fan-in; a unit deviation is what networks are made for.
    if (index == 0 && !argument->shape.empty())
      argument->initializer = {Initializer::Kind::Normal, 1};
    // In order of precedence: the default of the shape, the data's, positive
    // values, what the function says.
    if (mustBePositive(function.getArgument(index)))
      argument->initializer = {Initializer::Kind::Positive, 1};
    // What an importer or the user has set.
    if (auto init = function.getArgAttrOfType<mlir::StringAttr>(
            index, KasDialect::initializerAttrName)) {
      auto parsed = Initializer::parse(init.getValue());
      if (!parsed)
        return createStringError("argument '" + argument->name +
                                 "': " + llvm::toString(parsed.takeError()));
      argument->initializer = *parsed;
    }
    // Given tensors are matched by name.
    if (!names.insert(argument->name).second)
      return createStringError("two arguments are named '" + argument->name +
                               "'");
    signature.arguments.push_back(std::move(*argument));
  }
  for (auto [index, type] : llvm::enumerate(function.getResultTypes())) {
    auto nameAttr = function.getResultAttrOfType<mlir::StringAttr>(
        index, KasDialect::argumentNameAttrName);
    auto result = getTensor(
        type, nameAttr ? nameAttr.str() : ("result" + Twine(index)).str(),
        types);
    if (!result)
      return result.takeError();
    if (function.getResultAttr(index, unsignedAttrName))
      result->type.insert(0, "u");
    signature.results.push_back(std::move(*result));
  }
  return signature;
}

Expected<SmallVector<Tensor>>
FunctionSignature::makeArguments(const NamedTensors &given,
                                 uint64_t seed) const {
  assert(isF32() && "tensors are of f32");
  SmallVector<Tensor> tensors;
  for (const TensorSignature &argument : arguments) {
    // Given tensors are copied, so that a function may overwrite its arguments.
    if (const auto *found = given.find(argument.name); found != given.end()) {
      if (found->second.getShape() != llvm::ArrayRef(argument.shape))
        return createStringError("argument '" + argument.name +
                                 "' must have shape " +
                                 shapeToString(argument.shape) + ", got " +
                                 shapeToString(found->second.getShape()));
      tensors.push_back(found->second.clone());
      continue;
    }
    auto tensor = Tensor::create(argument.shape);
    if (!tensor)
      return tensor.takeError();
    // A stream for each name: values do not depend on the order of arguments.
    argument.initializer.fill(tensor->getValues(), argument.shape,
                              RandomStream(seed, argument.name));
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

Expected<SmallVector<Tensor>> FunctionSignature::makeResults() const {
  SmallVector<Tensor> tensors;
  // Zero at first, like every new tensor.
  for (const TensorSignature &result : results) {
    auto tensor = Tensor::create(result.shape);
    if (!tensor)
      return tensor.takeError();
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}
