//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RuleStatement.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::test;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// The named op of the near miss or else of the rule.
static OperatorOp lookup(ArrayRef<ModuleOp> modules, StringRef name) {
  for (ModuleOp module : modules)
    if (auto op = module.lookupSymbol<OperatorOp>(name))
      return op;
  return {};
}

template <typename AttrT>
static FailureOr<AttrT> getAttribute(ArrayRef<ModuleOp> modules,
                                     StringRef name) {
  for (ModuleOp module : modules) {
    Attribute attribute = module->getAttr(name);
    if (!attribute)
      continue;
    if (auto typed = dyn_cast<AttrT>(attribute))
      return typed;
    return module.emitError() << "requires another type of attribute '" << name
                              << "', got " << attribute;
  }
  return AttrT();
}

SmallVector<ModuleOp> kas::test::getRules(ModuleOp file) {
  if (file.getName())
    return {file};
  return llvm::to_vector(file.getOps<ModuleOp>());
}

SmallVector<std::pair<unsigned, unsigned>>
kas::test::getKeptWeights(RuleStatement rule) {
  SmallVector<std::pair<unsigned, unsigned>> result;
  for (unsigned i = 0; i < rule.before.getNumWeights(); ++i)
    if (llvm::none_of(rule.absorbed,
                      [&](const auto &pair) { return pair.first == i; }))
      result.push_back({i, result.size()});
  return result;
}

AffineExpr kas::test::getSymbolicAmount(ShiftOp shift) {
  auto map = shift->getAttrOfType<AffineMapAttr>("expression");
  return map ? map.getValue().getResult(0) : AffineExpr();
}

static LogicalResult verifyAmounts(RuleStatement rule, OperatorOp op) {
  for (ShiftOp shift : op.getOps<ShiftOp>()) {
    auto map = shift->getAttrOfType<AffineMapAttr>("expression");
    if (!map)
      continue;
    size_t symbols = op.getPrimaries().size() + op.getCoefficients().size();
    if (map.getValue().getNumResults() != 1 ||
        map.getValue().getNumDims() > rule.amounts.size() ||
        map.getValue().getNumSymbols() > symbols)
      return shift.emitError()
             << "requires one result, at most " << rule.amounts.size()
             << " dimensions (the amounts of the rule) and " << symbols
             << " symbols (those of the operator), got " << map;
  }
  return success();
}

/// Sizes are polynomials.
static LogicalResult verifySizes(OperatorOp op) {
  auto isPolynomial = [](SizeAttr size) {
    return size.getValue().hasIntegerConstant() &&
           llvm::all_of(size.getValue().getExponents(),
                        [](int exponent) { return exponent >= 0; });
  };
  SmallVector<Value> values(op.getOutputs());
  for (Operation &primitive : op.getBody().front())
    llvm::append_range(values, primitive.getResults());
  for (Value value : values)
    if (!isPolynomial(getSize(value)))
      return emitError(value.getLoc())
             << "requires a size without a denominator, got " << getSize(value);
  return success();
}

/// The axes of the iteration space: outputs, then reductions.
static SmallVector<SizeAttr> getAxisSizes(OperatorOp op) {
  SmallVector<SizeAttr> sizes = op.getOutputSizes();
  for (ReduceOp reduce : getReductions(op))
    sizes.push_back(reduce.getSize());
  return sizes;
}

static LogicalResult verifyMap(RuleStatement rule) {
  SmallVector<SizeAttr> from = getAxisSizes(rule.before);
  SmallVector<SizeAttr> to = getAxisSizes(rule.after);
  if (!rule.map) {
    if (from != to)
      return rule.after.emitError("requires the axes of @before, or a @map");
    return success();
  }
  if (rule.map.getOutputSizes() != from)
    return rule.map.emitError("requires the axes of @before as outputs");
  if (rule.map.getDataSizes() != to)
    return rule.map.emitError("requires the axes of @after as data");
  for (Operation &op : rule.map.getBody().front().without_terminator())
    if (!isa<SplitOp, MergeOp, ShiftOp, ExpandOp>(op))
      return op.emitError("requires splits, merges, shifts and expands in "
                          "@map, got ")
             << op.getName();
  return success();
}

static LogicalResult verifyWeights(RuleStatement rule) {
  unsigned numWeights = rule.before.getNumWeights();
  auto isWeight = [&](int64_t i) { return i >= 0 && i < numWeights; };
  for (auto [weight, by] : rule.absorbed)
    // What absorbs stays: else two weights could absorb each other.
    if (!isWeight(weight) || !isWeight(by) ||
        llvm::is_contained(llvm::make_first_range(rule.absorbed), by))
      return rule.module.emitError("requires pairs of weights of @before in "
                                   "'rule.absorbed', the second ones kept");
  if (rule.summed && !isWeight(*rule.summed))
    return rule.module.emitError(
        "requires a weight of @before in 'rule.summed'");
  auto kept = getKeptWeights(rule);
  if (rule.after.getNumWeights() != kept.size())
    return rule.after.emitError()
           << "requires " << kept.size() << " weights, got "
           << rule.after.getNumWeights();
  auto before = rule.before.getWeightSizes(),
       after = rule.after.getWeightSizes();
  for (auto [from, to] : kept)
    if (!rule.renamesWeights && rule.summed != from &&
        before[from] != after[to])
      return rule.after.emitError() << "requires the sizes of @before's weight "
                                    << from << ", or 'rule.renames_weights'";
  return success();
}

/// What `@before` and `@after` must have in common.
static LogicalResult verifySignatures(RuleStatement rule) {
  OperatorOp before = rule.before, after = rule.after;
  if (before.getOutputSizes() != after.getOutputSizes() ||
      before.getOutputUnordered() != after.getOutputUnordered() ||
      before.getInputSizes() != after.getInputSizes() ||
      before.getInputUnordered() != after.getInputUnordered())
    return after.emitError("requires outputs and data of @before");
  SmallVector<ReduceKind> kinds;
  for (OperatorOp op : {before, after})
    for (ReduceOp reduce : getReductions(op))
      kinds.push_back(reduce.getKind());
  if (!llvm::all_equal(kinds))
    return before.emitError("requires reductions of one kind");
  return verifyWeights(rule);
}

FailureOr<RuleStatement> kas::test::getStatement(ModuleOp module,
                                                 bool nearMiss) {
  RuleStatement rule;
  rule.module = module;
  rule.name = module.getName().value_or("");
  SmallVector<ModuleOp, 2> modules = {module};
  if (nearMiss) {
    auto miss = module.lookupSymbol<ModuleOp>("near_miss");
    if (!miss)
      return module.emitError("requires a module @near_miss");
    modules.insert(modules.begin(), miss);
  }
  rule.before = lookup(modules, "before");
  rule.after = lookup(modules, "after");
  rule.map = lookup(modules, "map");
  if (!rule.before || !rule.after)
    return module.emitError("requires kas.operators @before and @after");
  auto condition = getAttribute<IntegerSetAttr>(modules, "rule.condition");
  auto renames = getAttribute<UnitAttr>(modules, "rule.renames_weights");
  auto absorbed = getAttribute<DenseI64ArrayAttr>(modules, "rule.absorbed");
  auto summed = getAttribute<IntegerAttr>(modules, "rule.summed");
  auto sizes = getAttribute<BindingAttr>(modules, "rule.sizes");
  auto instance = getAttribute<BindingAttr>(modules, "rule.instance");
  auto amounts = getAttribute<DenseI64ArrayAttr>(modules, "rule.amounts");
  if (failed(condition) || failed(renames) || failed(absorbed) ||
      failed(summed) || failed(sizes) || failed(instance) || failed(amounts))
    return failure();
  rule.renamesWeights = bool(*renames);
  if (*condition)
    rule.condition = condition->getValue();
  if (*absorbed)
    for (int64_t i = 0, e = absorbed->size(); i + 1 < e; i += 2)
      rule.absorbed.push_back({(*absorbed)[i], (*absorbed)[i + 1]});
  if (*summed)
    rule.summed = summed->getInt();
  if (*amounts)
    rule.amounts = amounts->asArrayRef();
  rule.sizes = *sizes;
  rule.instance = *instance;
  for (OperatorOp op : {rule.before, rule.after, rule.map})
    if (op && (failed(verifyAmounts(rule, op)) || failed(verifySizes(op))))
      return failure();
  if (failed(verifySignatures(rule)) || failed(verifyMap(rule)))
    return failure();
  return rule;
}

//===----------------------------------------------------------------------===//
// Instances
//===----------------------------------------------------------------------===//

/// The size with numbers for the symbols of `binding`.
static SizeAttr substitute(SizeAttr size, BindingAttr binding) {
  SizeAttr result = SizeAttr::getConstant(size.getContext(), 1);
  for (auto [index, name] : llvm::enumerate(size.getNames())) {
    std::optional<int64_t> value = binding.lookup(name);
    SizeAttr factor =
        value ? SizeAttr::getConstant(size.getContext(), *value)
              : SizeAttr::getSymbol(size.getContext(), name.getValue());
    for (int i = 0; i < size.getValue().getExponent(index); ++i)
      result = result.multiply(factor);
  }
  return result.multiply(
      SizeAttr::getConstant(size.getContext(), size.getValue().getNumerator()));
}

/// Without the symbols that have numbers in `binding`.
static ArrayAttr filter(ArrayAttr names, BindingAttr binding) {
  SmallVector<Attribute> left;
  for (Attribute name : names)
    if (!binding.lookup(cast<StringAttr>(name).getValue()))
      left.push_back(name);
  return ArrayAttr::get(names.getContext(), left);
}

/// The numbers of the instance; there may be none.
static BindingAttr getInstanceBinding(RuleStatement rule) {
  return rule.instance ? rule.instance
                       : BindingAttr::getNormal(rule.module->getContext(), {});
}

/// The number that the attribute of `shift` in `op` gives at the instance.
/// Reports what is no number.
static FailureOr<int64_t> getAmount(RuleStatement rule, OperatorOp op,
                                    ShiftOp shift) {
  auto map = shift->getAttrOfType<AffineMapAttr>("expression");
  if (!map)
    return int64_t(shift.getAmount());
  MLIRContext *context = shift.getContext();
  BindingAttr binding = getInstanceBinding(rule);
  SmallVector<AffineExpr> dims, symbols;
  for (int64_t amount : rule.amounts)
    dims.push_back(getAffineConstantExpr(amount, context));
  for (ArrayAttr names : {op.getPrimaries(), op.getCoefficients()})
    for (Attribute name : names) {
      std::optional<int64_t> value =
          binding.lookup(cast<StringAttr>(name).getValue());
      symbols.push_back(value ? getAffineConstantExpr(*value, context)
                              : getAffineSymbolExpr(symbols.size(), context));
    }
  AffineExpr expr =
      map.getValue().getResult(0).replaceDimsAndSymbols(dims, symbols);
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  return shift.emitError("requires a number as amount at the instance, got ")
         << map;
}

LogicalResult kas::test::verifyInstance(RuleStatement rule, OperatorOp op) {
  for (ShiftOp shift : op.getOps<ShiftOp>()) {
    FailureOr<int64_t> amount = getAmount(rule, op, shift);
    if (failed(amount))
      return failure();
    if (*amount != int64_t(shift.getAmount()))
      return shift.emitError() << "requires the amount of the instance, "
                               << *amount << ", got " << shift.getAmount();
  }
  return success();
}

FailureOr<OwningOpRef<ModuleOp>> kas::test::getInstance(RuleStatement rule,
                                                        OperatorOp op) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(op.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  auto copy = cast<OperatorOp>(builder.clone(*op));
  for (ShiftOp shift : copy.getOps<ShiftOp>()) {
    FailureOr<int64_t> amount = getAmount(rule, op, shift);
    if (failed(amount))
      return failure();
    shift.setAmount(*amount);
    shift->removeAttr("expression");
  }
  BindingAttr binding = getInstanceBinding(rule);
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [&](SizeAttr size) -> std::pair<Attribute, WalkResult> {
        return {substitute(size, binding), WalkResult::skip()};
      });
  replacer.recursivelyReplaceElementsIn(copy, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
  copy.setSymName(rule.name);
  copy.setPrimariesAttr(filter(op.getPrimaries(), binding));
  copy.setCoefficientsAttr(filter(op.getCoefficients(), binding));
  return module;
}
