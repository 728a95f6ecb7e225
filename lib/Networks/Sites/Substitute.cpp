//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces marked layers of a network by operators or sequences, with new
// weights as arguments or the old ones where they fit. `-kas-substitute`: every
// layer with `kas.site` whose space is selected is matched again, since the
// module may have changed since `-kas-extract`, the binding of the operator is
// inferred from the layer's shapes and from `bind`, and `kas.apply` replaces
// it. A layer that does not fit stays, with a remark.
//
//===----------------------------------------------------------------------===//

#include "kas/Networks/Sites/Substitute.h"
#include "Rewriting.h"
#include "kas/Conversion/SequenceToLinalg.h"
#include "kas/Dialect/Kas/Analysis/FanIn.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Library/Operators.h"
#include "kas/Support/FileLocation.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace kas;
using namespace kas::library;
using namespace kas::networks;

namespace {

/// A layer with its mark, and what replaces it.
struct MarkedSite {
  linalg::LinalgOp op;
  SpaceOp space;
  /// The values of the space's symbols for this layer.
  BindingAttr binding;
  /// Null: the operator that computes what the layer computes.
  OperatorOp replacement;
  /// Instead of an operator.
  SequenceOp sequence;
};

/// A weight that is to become an argument.
/// With its initializer, the text of `kas.init`.
struct NewWeight {
  Type type;
  std::string initializer;
  /// Its place in a sequence; empty for an operator.
  std::string name;
};

/// New weights, equal for layers that share their old weight and differ in
/// nothing that matters for the new one.
struct WeightGroup {
  /// The name of the layer, if it has one, and of its space.
  std::string layer, space;
  /// Null for a constant; `oldShape` is kept because the argument may be
  /// erased.
  BlockArgument oldWeight;
  SmallVector<int64_t> oldShape;
  SmallVector<Value> weights;
  /// The names in a sequence; none for an operator.
  SmallVector<std::string> names;
};

/// Replaces, for a layer marked {space = @conv2d, binding = 0} and the operator
/// @op,
///    %y = linalg.conv_2d_nchw_fchw ins(%x, %w) outs(%bias)
/// by
///    %p = kas.apply @op<g = 4>(%x, %w0, %w1)
///    %y = linalg.generic ... %p + the bias
/// where %w0 and %w1 are new arguments of the function, and %w goes when nobody
/// reads it.
class Substituter {
public:
  Substituter(ModuleOp module, const SubstituteOptions &options)
      : module(module), options(options), symbolTable(module),
        builder(module.getContext()) {}

  FailureOr<SubstituteResult> run();

private:
  FailureOr<SpaceOp> findSelectedSpace();
  /// From the module or, for `kas.NAME`, from the library.
  FailureOr<OperatorOp> findOperator(StringRef name);
  LogicalResult checkBinding(ArrayRef<OperatorOp> ops, StringRef name);
  /// The operator or the sequence that the options name, as a site that it
  /// replaces.
  FailureOr<MarkedSite> findReplacement();
  /// Fills `markedSites`; fails for marks that are malformed.
  LogicalResult findMarkedSites();
  /// The space and binding of a mark.
  FailureOr<MarkedSite> readMark(linalg::LinalgOp op, Attribute mark);

  OperatorOp getDefinition(const Site &site);
  /// False after a remark.
  bool replace(MarkedSite marked);
  /// The value in the place of the layer's result, or null after a remark.
  Value applyOperator(const MarkedSite &marked, const Site &site,
                      EmitErrorFn emitRemark);
  Value applySequence(const MarkedSite &marked, const Site &site,
                      EmitErrorFn emitRemark);
  /// The layer's data with its channels in one dimension.
  Value getData(const Site &site);
  BindingAttr getApplyBinding(const MarkedSite &marked);
  /// Types and initializers of the operator's weights.
  SmallVector<NewWeight> describeWeights(const Site &site, OperatorOp op,
                                         const Binding &binding);
  /// The arguments for these weights: those of an earlier layer with the same
  /// old weight, operator and binding, or new ones after the old weight.
  SmallVector<Value> getNewWeights(const MarkedSite &marked, const Site &site,
                                   Operation *op, BindingAttr attr,
                                   ArrayRef<NewWeight> wanted);
  void replaceResult(const Site &site, Value value);
  void finishArguments();
  void nameWeights(WeightGroup &group, llvm::StringSet<> &names,
                   unsigned &numUnnamed);

  ModuleOp module;
  const SubstituteOptions &options;
  SymbolTable symbolTable;
  OpBuilder builder;
  SmallVector<MarkedSite> markedSites;
  /// Operators that were added to the module; erased where nothing applies
  /// them.
  SmallVector<OperatorOp> imported;
  /// By their text.
  llvm::StringMap<OperatorOp> definitions;
  /// By function, old weight, operator and binding.
  using GroupKey = std::tuple<Operation *, Value, Operation *, BindingAttr>;
  std::vector<std::pair<GroupKey, WeightGroup>> groups;
};

} // namespace

//===----------------------------------------------------------------------===//
// The names in options and marks
//===----------------------------------------------------------------------===//

/// Null when no space is selected.
FailureOr<SpaceOp> Substituter::findSelectedSpace() {
  StringRef name = options.space;
  name.consume_front("@");
  if (name.empty())
    return SpaceOp();
  if (auto space = symbolTable.lookup<SpaceOp>(name))
    return space;
  return mlir::emitError(getFileLocation(module))
         << "requires a kas.space, got '@" << name << "'";
}

/// A symbol of the module hides the library's of the same name.
FailureOr<OperatorOp> Substituter::findOperator(StringRef name) {
  name.consume_front("@");
  if (auto op = symbolTable.lookup<OperatorOp>(name))
    return op;
  if (!name.starts_with("kas.") || symbolTable.lookup(name))
    return mlir::emitError(getFileLocation(module))
           << "requires a kas.operator, got '@" << name << "'";
  OwningOpRef<ModuleOp> library = parseNamedOperator(module.getContext(), name);
  if (!library)
    return mlir::emitError(getFileLocation(module))
           << "requires an operator of the library, got '" << name << "'";
  auto op = *library->getOps<OperatorOp>().begin();
  // Moved into this module under its full name.
  op->remove();
  op.setSymName(name);
  symbolTable.insert(op, module.getBody()->begin());
  imported.push_back(op);
  return op;
}

/// Marks may come from a file, so nothing about them is taken for granted.
FailureOr<MarkedSite> Substituter::readMark(linalg::LinalgOp op,
                                            Attribute mark) {
  auto entries = dyn_cast<DictionaryAttr>(mark);
  auto symbol =
      entries ? entries.getAs<FlatSymbolRefAttr>("space") : FlatSymbolRefAttr();
  auto index = entries ? entries.getAs<IntegerAttr>("binding") : IntegerAttr();
  if (!symbol || !index || !index.getType().isInteger(64))
    return op.emitOpError("requires a space and a binding in '")
           << KasDialect::siteAttrName << "', got " << mark;
  auto space = symbolTable.lookup<SpaceOp>(symbol.getValue());
  if (!space)
    return op.emitOpError("requires a kas.space in '")
           << KasDialect::siteAttrName << "', got " << symbol;
  if (index.getValue().isNegative() ||
      index.getValue().uge(space.getBindings().size()))
    return op.emitOpError("requires one of ")
           << space.getBindings().size() << " bindings of " << symbol << " in '"
           << KasDialect::siteAttrName << "', got " << Attribute(index);
  auto binding =
      cast<BindingAttr>(space.getBindings()[index.getValue().getZExtValue()]);
  return MarkedSite{op, space, binding, nullptr, nullptr};
}

/// One of `ops` declares what the option gives values to.
/// A symbol that none of them has is probably a mistake in writing.
LogicalResult Substituter::checkBinding(ArrayRef<OperatorOp> ops,
                                        StringRef name) {
  if (options.binding)
    for (StringAttr symbol : options.binding.getNames())
      if (llvm::none_of(ops, [&](OperatorOp op) {
            return op.getSymbolSet().lookup(symbol.getValue()).has_value();
          }))
        return mlir::emitError(getFileLocation(module))
               << "requires symbols of operator '" << name
               << "' in 'bind', got '" << symbol.getValue() << "'";
  return success();
}

/// With `layers` and others the same replacement is for every selected layer.
FailureOr<MarkedSite> Substituter::findReplacement() {
  MarkedSite result;
  StringRef name = options.operatorName;
  name.consume_front("@");
  if (auto sequence = symbolTable.lookup<SequenceOp>(name)) {
    // A sequence has weights of normalizations, which no layer has.
    if (options.sameWeights)
      return mlir::emitError(getFileLocation(module))
             << "requires a kas.operator for the weights of the layers, got "
                "the sequence '@"
             << name << "'";
    result.sequence = sequence;
    if (failed(checkBinding(sequence.getOperators(), name)))
      return failure();
    return result;
  }
  FailureOr<OperatorOp> found = findOperator(options.operatorName);
  if (failed(found) || failed(checkBinding(*found, found->getSymName())))
    return failure();
  result.replacement = *found;
  return result;
}

LogicalResult Substituter::findMarkedSites() {
  FailureOr<SpaceOp> selected = findSelectedSpace();
  if (failed(selected))
    return failure();
  MarkedSite common;
  if (!options.operatorName.empty()) {
    FailureOr<MarkedSite> found = findReplacement();
    if (failed(found))
      return failure();
    common = *found;
  } else if (options.binding && !options.binding.empty()) {
    return mlir::emitError(getFileLocation(module))
           << "requires an operator beside 'bind', got none";
  }
  // Layers that the option names and no mark has had yet.
  llvm::StringSet<> missing;
  missing.insert(options.layers.begin(), options.layers.end());
  // Only collects: replacing would change what is walked over.
  WalkResult result = module.walk([&](linalg::LinalgOp op) {
    Attribute mark = op->getAttr(KasDialect::siteAttrName);
    if (!mark)
      return WalkResult::advance();
    FailureOr<MarkedSite> marked = readMark(op, mark);
    if (failed(marked))
      return WalkResult::interrupt();
    if (*selected && marked->space != *selected)
      return WalkResult::advance();
    if (!options.layers.empty()) {
      auto name = cast<DictionaryAttr>(mark).getAs<StringAttr>("name");
      if (!name || !llvm::is_contained(options.layers, name.getValue()))
        return WalkResult::advance();
      missing.erase(name.getValue());
    }
    marked->replacement = common.replacement;
    marked->sequence = common.sequence;
    // Without an operator each layer gets the operator that computes the same,
    // which is how spaces are checked.
    auto named = marked->space->getAttrOfType<StringAttr>(
        KasDialect::namedOperatorAttrName);
    if (options.operatorName.empty() && named) {
      FailureOr<OperatorOp> found = findOperator(named);
      if (failed(found))
        return WalkResult::interrupt();
      marked->replacement = *found;
    }
    markedSites.push_back(*marked);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  for (const std::string &name : options.layers)
    if (missing.contains(name)) {
      // Nothing is replaced if the options are wrong.
      markedSites.clear();
      return mlir::emitError(getFileLocation(module))
             << "requires layers that are marked in 'layers', got '" << name
             << "'";
    }
  return success();
}

//===----------------------------------------------------------------------===//
// Replacing one layer
//===----------------------------------------------------------------------===//

/// The operator that computes what the layer computes; null, with a diagnostic,
/// when its name is taken.
/// From the library, or from the definition of the kind.
OperatorOp Substituter::getDefinition(const Site &site) {
  if (!site.kind.namedOperator.empty())
    return findOperator(site.kind.namedOperator).value_or(OperatorOp());
  auto [entry, isNew] = definitions.try_emplace(site.kind.definition);
  if (!isNew)
    return entry->second;
  // The text is our own.
  OwningOpRef<ModuleOp> parsed = parseSourceString<ModuleOp>(
      site.kind.definition, ParserConfig(module.getContext()));
  assert(parsed && "a definition of a kind of layer does not parse");
  auto op = *parsed->getOps<OperatorOp>().begin();
  op->remove();
  symbolTable.insert(op, module.getBody()->begin());
  imported.push_back(op);
  return entry->second = op;
}

Value Substituter::getData(const Site &site) {
  return reshape(builder, site.op->getLoc(), site.data, site.dataShape);
}

/// The symbols of the operator that the types do not bind.
/// Values come from the option `bind` or else from the layer's binding;
/// primaries that are a dimension alone are inferred from the types.
BindingAttr Substituter::getApplyBinding(const MarkedSite &marked) {
  OperatorOp op = marked.replacement;
  llvm::StringSet<> bound;
  auto addBareSymbols = [&](ArrayRef<SizeAttr> sizes) {
    for (SizeAttr size : sizes)
      if (size.getNames().size() == 1 &&
          size == SizeAttr::getSymbol(size.getContext(),
                                      size.getNames().front().getValue()))
        bound.insert(size.getNames().front().getValue());
  };
  addBareSymbols(op.getDataSizes());
  addBareSymbols(op.getOutputSizes());
  SmallVector<std::pair<StringRef, int64_t>> entries;
  auto add = [&](StringRef name, bool isPrimary) {
    std::optional<int64_t> value;
    if (options.binding)
      value = options.binding.lookup(name);
    // Names of the layer and of the operator may differ: types win over the
    // layer's values.
    if (!value && !(isPrimary && bound.contains(name)))
      value = marked.binding.lookup(name);
    if (value)
      entries.emplace_back(name, *value);
  };
  for (StringRef name : op.getPrimaries().getAsValueRange<StringAttr>())
    add(name, /*isPrimary=*/true);
  for (StringRef name : op.getCoefficients().getAsValueRange<StringAttr>())
    add(name, /*isPrimary=*/false);
  return BindingAttr::getNormal(op.getContext(), entries);
}

/// Shapes of the operator's weights at the binding, in the layer's element
/// type.
SmallVector<NewWeight> Substituter::describeWeights(const Site &site,
                                                    OperatorOp op,
                                                    const Binding &binding) {
  SymbolSet symbols = op.getSymbolSet();
  Type elementType = cast<ShapedType>(site.weight.getType()).getElementType();
  SmallVector<NewWeight> weights;
  for (ArrayRef<SizeAttr> sizes : op.getWeightSizes()) {
    SmallVector<int64_t> shape;
    for (SizeAttr size : sizes)
      shape.push_back(*kas::evaluate(size, symbols, binding));
    weights.push_back({RankedTensorType::get(shape, elementType),
                       getWeightInitializer(op, binding),
                       {}});
  }
  return weights;
}

SmallVector<Value> Substituter::getNewWeights(const MarkedSite &marked,
                                              const Site &site, Operation *op,
                                              BindingAttr attr,
                                              ArrayRef<NewWeight> wanted) {
  auto function = marked.op->getParentOfType<func::FuncOp>();
  auto types = llvm::map_to_vector(
      wanted, [](const NewWeight &weight) { return weight.type; });
  GroupKey key(function, site.weightArgument, op, attr);
  // Layers that share a weight share the new ones, if these have the same
  // types.
  if (site.weightArgument)
    for (auto &[otherKey, group] : groups)
      if (otherKey == key &&
          llvm::equal(ValueRange(group.weights).getTypes(), types))
        return group.weights;

  // Next to the old weight, so that the order of arguments stays that of the
  // network.
  unsigned position = site.weightArgument
                          ? site.weightArgument.getArgNumber() + 1
                          : function.getNumArguments();
  SpaceOp space = marked.space;
  WeightGroup group{
      site.name, space.getSymName().str(), site.weightArgument, {}, {}, {}};
  if (site.weightArgument)
    llvm::append_range(
        group.oldShape,
        cast<ShapedType>(site.weightArgument.getType()).getShape());
  for (auto [index, weight] : llvm::enumerate(wanted)) {
    auto attributes = builder.getDictionaryAttr(
        builder.getNamedAttr(KasDialect::initializerAttrName,
                             builder.getStringAttr(weight.initializer)));
    // Inserting fails only where the type of the function is not our kind.
    LogicalResult inserted = function.insertArgument(
        position + index, weight.type, attributes, site.op->getLoc());
    assert(succeeded(inserted) && "a func.func takes arguments");
    (void)inserted;
    group.weights.push_back(function.getArgument(position + index));
    if (!weight.name.empty())
      group.names.push_back(weight.name);
  }
  groups.emplace_back(key, group);
  return group.weights;
}

/// Lets all users of the layer's result use `value`, which has its channels in
/// one dimension.
/// Grouped convolutions have a result [N, g, C/g, ...], which is usually
/// collapsed right away: then the collapse goes, too.
void Substituter::replaceResult(const Site &site, Value value) {
  linalg::LinalgOp op = site.op;
  Value result = op->getResult(0);
  if (result.getType() == value.getType()) {
    result.replaceAllUsesWith(value);
    return;
  }
  for (Operation *user : llvm::make_early_inc_range(result.getUsers()))
    if (isa<tensor::CollapseShapeOp>(user) &&
        user->getResult(0).getType() == value.getType()) {
      user->getResult(0).replaceAllUsesWith(value);
      user->erase();
    }
  if (result.use_empty())
    return;
  ArrayRef<int64_t> shape = cast<ShapedType>(result.getType()).getShape();
  result.replaceAllUsesWith(reshape(builder, op.getLoc(), value, shape));
}

/// Fails, with a remark, where the operator is illegal at this layer's sizes.
Value Substituter::applyOperator(const MarkedSite &marked, const Site &site,
                                 EmitErrorFn emitRemark) {
  OperatorOp op = marked.replacement;
  Type elementType = cast<ShapedType>(site.data.getType()).getElementType();
  auto dataType = RankedTensorType::get(site.dataShape, elementType);
  auto resultType = RankedTensorType::get(site.resultShape, elementType);
  // Checks the operator at this binding, too.
  BindingAttr attr = getApplyBinding(marked);
  FailureOr<Binding> binding =
      inferBinding(op, dataType, resultType, attr, emitRemark);
  if (failed(binding))
    return nullptr;
  builder.setInsertionPoint(marked.op);
  SmallVector<Value> weights;
  if (options.sameWeights) {
    std::string reason;
    weights.push_back(adaptWeight(builder, site, op, *binding, reason));
    if (!weights.front()) {
      emitRemark() << reason;
      return nullptr;
    }
  } else {
    weights = getNewWeights(marked, site, op, attr,
                            describeWeights(site, op, *binding));
  }
  return ApplyOp::create(builder, marked.op->getLoc(), resultType,
                         op.getSymName(), attr, getData(site), weights);
}

/// The binding of a sequence is that of the layer with the values of `bind` in
/// it.
/// The operators and steps of the sequence one after the other, with the
/// normalizations' scales, offsets and statistics among the new arguments.
Value Substituter::applySequence(const MarkedSite &marked, const Site &site,
                                 EmitErrorFn emitRemark) {
  SmallVector<std::pair<StringRef, int64_t>> entries;
  for (auto [name, value] :
       llvm::zip_equal(marked.binding.getNames(), marked.binding.getValues()))
    if (!options.binding || !options.binding.lookup(name.getValue()))
      entries.emplace_back(name.getValue(), value);
  if (options.binding)
    for (auto [name, value] : llvm::zip_equal(options.binding.getNames(),
                                              options.binding.getValues()))
      entries.emplace_back(name.getValue(), value);
  BindingAttr binding = BindingAttr::getNormal(module.getContext(), entries);
  Type elementType = cast<ShapedType>(site.data.getType()).getElementType();
  SequenceOp sequence = marked.sequence;
  FailureOr<SequenceSignature> signature =
      getSequenceSignature(sequence, binding, elementType, emitRemark);
  if (failed(signature))
    return nullptr;
  // A sequence says its shapes by its binding; they must be those of the layer.
  for (auto [type, shape] :
       {std::pair(signature->data, ArrayRef<int64_t>(site.dataShape)),
        {signature->result, ArrayRef<int64_t>(site.resultShape)}})
    if (type.getShape() != shape) {
      emitRemark() << "requires a sequence with tensors of type "
                   << type.clone(shape) << ", got " << type;
      return nullptr;
    }
  SmallVector<NewWeight> wanted;
  for (const SequenceArgument &argument : signature->arguments)
    wanted.push_back({argument.type, argument.initializer, argument.name});
  builder.setInsertionPoint(marked.op);
  SmallVector<Value> weights =
      getNewWeights(marked, site, sequence, binding, wanted);
  return emitSequence(builder, marked.op->getLoc(), sequence, binding,
                      getData(site), weights);
}

/// Arguments change, so the function must not be called.
bool Substituter::replace(MarkedSite marked) {
  linalg::LinalgOp linalgOp = marked.op;
  auto emitRemark = [&] { return linalgOp.emitRemark() << "not replaced: "; };
  auto function = linalgOp->getParentOfType<func::FuncOp>();
  if (!function || function->getParentOp() != module) {
    emitRemark() << "requires a function of the module around the layer";
    return false;
  }
  if (!options.sameWeights &&
      !SymbolTable::symbolKnownUseEmpty(function, module)) {
    emitRemark() << "requires a function that is not called, because its "
                    "arguments change";
    return false;
  }
  std::string reason;
  // Without a stem limit: what is marked is to be replaced.
  FailureOr<Site> site = matchSite(linalgOp, reason);
  if (failed(site)) {
    emitRemark() << (reason.empty() ? "requires a layer" : reason);
    return false;
  }

  if (!marked.replacement && !marked.sequence)
    marked.replacement = getDefinition(*site);
  if (!marked.replacement && !marked.sequence)
    return false;
  Value result = marked.sequence ? applySequence(marked, *site, emitRemark)
                                 : applyOperator(marked, *site, emitRemark);
  if (!result)
    return false;
  // With the bias that the layer started from.
  replaceResult(*site, addAccumulatorStart(builder, *site, result));
  eraseWithDeadOperands(linalgOp);
  return true;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// `name`, `name_1`, ...
static std::string makeUnique(std::string name, llvm::StringSet<> &names) {
  std::string result = name;
  for (unsigned count = 1; !names.insert(result).second; ++count)
    result = name + "_" + std::to_string(count);
  return result;
}

/// One new weight of the old shape takes the old name, so that files with the
/// old weights fit; else the names are the old one with a number.
void Substituter::nameWeights(WeightGroup &group, llvm::StringSet<> &names,
                              unsigned &numUnnamed) {
  std::string name = group.layer;
  if (name.empty())
    name = group.space + ".unnamed" + std::to_string(numUnnamed++);
  std::string layer = name + ".";
  name += ".weight";
  bool isSame = group.weights.size() == 1 && !group.oldShape.empty() &&
                cast<ShapedType>(group.weights.front().getType()).getShape() ==
                    ArrayRef<int64_t>(group.oldShape);
  for (auto [index, weight] : llvm::enumerate(group.weights)) {
    auto argument = cast<BlockArgument>(weight);
    auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    // A sequence: `layer.NAME`; one weight of the old shape: `layer.weight`;
    // else `layer.weight.0`, `layer.weight.1`, ...
    std::string wanted = !group.names.empty() ? layer + group.names[index]
                         : isSame ? name
                                  : name + "." + std::to_string(index);
    std::string unique = makeUnique(std::move(wanted), names);
    function.setArgAttr(argument.getArgNumber(),
                        KasDialect::argumentNameAttrName,
                        builder.getStringAttr(unique));
  }
}

/// Drops the old weights that nothing uses any more, then names the new ones.
/// In this order, so that a new weight can take the name of a dropped one.
void Substituter::finishArguments() {
  llvm::MapVector<Operation *, llvm::SmallSetVector<Value, 8>> oldWeights;
  for (auto &[key, group] : groups)
    if (group.oldWeight)
      oldWeights[std::get<0>(key)].insert(group.oldWeight);
  for (auto &[operation, weights] : oldWeights) {
    auto function = cast<func::FuncOp>(operation);
    // All at once: erasing one by one would move the others.
    BitVector dead(function.getNumArguments());
    for (Value weight : weights)
      if (weight.use_empty())
        dead.set(cast<BlockArgument>(weight).getArgNumber());
    LogicalResult erased = function.eraseArguments(dead);
    assert(succeeded(erased) && "a func.func takes arguments");
    (void)erased;
  }
  llvm::MapVector<Operation *, std::pair<llvm::StringSet<>, unsigned>> names;
  for (auto &[key, group] : groups) {
    auto function = cast<func::FuncOp>(std::get<0>(key));
    // The names that the function has.
    auto [entry, isNew] = names.insert({function, {}});
    for (unsigned index = 0; isNew && index < function.getNumArguments();
         ++index)
      if (auto name = function.getArgAttrOfType<StringAttr>(
              index, KasDialect::argumentNameAttrName))
        entry->second.first.insert(name.getValue());
    nameWeights(group, entry->second.first, entry->second.second);
  }
}

//===----------------------------------------------------------------------===//
// substitute
//===----------------------------------------------------------------------===//

/// Arguments are finished also after an error, so that the module is valid.
FailureOr<SubstituteResult> Substituter::run() {
  LogicalResult found = findMarkedSites();
  SubstituteResult result;
  if (succeeded(found))
    for (const MarkedSite &marked : markedSites)
      ++(replace(marked) ? result.numReplaced : result.numLeft);
  finishArguments();
  for (OperatorOp op : imported)
    if (SymbolTable::symbolKnownUseEmpty(op, module))
      symbolTable.erase(op);
  if (failed(found))
    return failure();
  if (markedSites.empty())
    mlir::emitWarning(getFileLocation(module))
        << "requires layers that are marked with '" << KasDialect::siteAttrName
        << "', got none; kas-extract marks them";
  return result;
}

FailureOr<SubstituteResult>
kas::networks::substitute(ModuleOp module, const SubstituteOptions &options) {
  return Substituter(module, options).run();
}

FailureOr<StringRef> kas::networks::takeOperators(ModuleOp module,
                                                  ModuleOp operators) {
  Block *body = operators.getBody();
  if (body->empty() || !isa<OperatorOp, SequenceOp>(body->back()))
    return failure();
  Operation &last = body->back();
  SymbolTable symbols(operators), taken(module);
  // The names change in all of them first: a sequence refers to its operators.
  for (Operation &op : *body)
    if (!isa<SymbolOpInterface>(op) ||
        failed(symbols.renameToUnique(&op, {&taken})))
      return failure();
  module.getBody()->getOperations().splice(module.getBody()->end(),
                                           body->getOperations());
  return SymbolTable::getSymbolName(&last).getValue();
}
