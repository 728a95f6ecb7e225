//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RuleFormula.h"
#include "RuleFacts.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::test;
using namespace mlir;

Polynomial Formula::addVariable(Section &section, llvm::StringRef name) {
  section.variables.push_back(variables.size());
  variables.push_back(name.str());
  return Polynomial::variable(variables.size() - 1);
}

void kas::test::addRange(std::vector<Constraint> &constraints,
                         const Polynomial &value, const Polynomial &size,
                         llvm::ArrayRef<Polynomial> when) {
  for (const Polynomial &bound : {value, size - value - 1})
    constraints.push_back({Constraint::NonNegative, bound, when.vec()});
}

namespace {
using Polynomials = SmallVector<Polynomial>;

/// An operator at one point of its iteration space.
struct Point {
  Polynomials axes, data, dropped, guards;
  SmallVector<Polynomials> weights;
};

/// The point of @before, that of @after which it is mapped to, and what the map
/// drops.
struct PointPair {
  Point before, after;
  Polynomials dropped;
};

class FormulaBuilder {
public:
  explicit FormulaBuilder(RuleStatement rule) : rule(std::move(rule)) {}

  FailureOr<Formula> build() {
    addSymbols();
    if (failed(addCondition()))
      return failure();
    PointPair p = addPoint(formula.one, facts.one, "");
    addClaims(p);
    PointPair other = addPoint(formula.two, facts.two, "_2");
    addClaims(p, other);
    if (isInvalid)
      return failure();
    addFacts(formula, facts);
    return std::move(formula);
  }

private:
  enum Role { Before, Map, After };

  void addSymbols() {
    for (OperatorOp op : {rule.before, rule.after, rule.map}) {
      if (!op)
        continue;
      SymbolSet set = op.getSymbolSet();
      for (unsigned i = 0; i < set.size(); ++i)
        addSymbol(set.getName(i));
    }
    for (size_t i = 0; i < rule.amounts.size(); ++i)
      amounts.push_back(
          formula.addVariable(formula.one, "d" + std::to_string(i)));
  }
  void addSymbol(StringRef name) {
    if (symbols.count(name.str()))
      return;
    std::optional<int64_t> value =
        rule.sizes ? rule.sizes.lookup(name) : std::nullopt;
    Polynomial symbol =
        value ? Polynomial(*value) : formula.addVariable(formula.one, name);
    symbols[name.str()] = symbol;
    if (!value)
      formula.one.premises.push_back({Constraint::NonNegative, symbol - 1});
  }

  Polynomial getPolynomial(SizeAttr size) const {
    Polynomial result = size.getValue().getNumerator();
    for (auto [index, name] : llvm::enumerate(size.getNames()))
      for (int i = 0; i < size.getValue().getExponent(index); ++i)
        result = result * symbols.at(name.str());
    return result;
  }

  /// Sums and products of amounts and the symbols of `op`.
  std::optional<Polynomial> getPolynomial(AffineExpr expr, OperatorOp op) {
    if (auto constant = dyn_cast<AffineConstantExpr>(expr))
      return Polynomial(constant.getValue());
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      return amounts[dim.getPosition()];
    if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
      return symbols.at(op.getSymbolSet().getName(symbol.getPosition()).str());
    auto binary = cast<AffineBinaryOpExpr>(expr);
    std::optional<Polynomial> left = getPolynomial(binary.getLHS(), op),
                              right = getPolynomial(binary.getRHS(), op);
    if (!left || !right)
      return std::nullopt;
    if (expr.getKind() == AffineExprKind::Add)
      return *left + *right;
    if (expr.getKind() == AffineExprKind::Mul)
      return *left * *right;
    return std::nullopt;
  }

  LogicalResult addCondition() {
    if (!rule.condition)
      return success();
    SymbolSet set = rule.before.getSymbolSet();
    if (rule.condition->getNumDims() > amounts.size() ||
        rule.condition->getNumSymbols() > set.size())
      return rule.module.emitError("requires a condition on the amounts of the "
                                   "rule and the symbols of @before");
    for (unsigned i = 0; i < rule.condition->getNumConstraints(); ++i) {
      std::optional<Polynomial> value =
          getPolynomial(rule.condition->getConstraint(i), rule.before);
      if (!value)
        return rule.module.emitError(
            "requires sums and products in the condition");
      formula.one.premises.push_back(
          {rule.condition->isEq(i) ? Constraint::Zero : Constraint::NonNegative,
           *value});
    }
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Points
  //===--------------------------------------------------------------------===//

  PointPair addPoint(Formula::Section &to, SectionFacts &known,
                     StringRef suffix) {
    section = &to;
    here = &known;
    PointPair pair;
    Polynomials axes;
    auto addAxis = [&](const llvm::Twine &name, SizeAttr size) {
      axes.push_back(formula.addVariable(to, (name + suffix).str()));
      addRange(to.premises, axes.back(), getPolynomial(size));
      here->ranges.push_back({axes.back(), getPolynomial(size)});
    };
    for (auto [i, size] : llvm::enumerate(rule.before.getOutputSizes()))
      addAxis("o" + llvm::Twine(i), size);
    for (auto [i, reduce] : llvm::enumerate(getReductions(rule.before)))
      addAxis("r" + llvm::Twine(i), reduce.getSize());
    pair.before = evaluate(rule.before, axes, Before);
    if (rule.map) {
      Point map = evaluate(rule.map, axes, Map);
      axes = map.data;
      pair.dropped = map.dropped;
    }
    pair.after = evaluate(rule.after, axes, After);
    return pair;
  }

  /// The quotient of a division that rounds down.
  Polynomial divide(const Polynomial &dividend, const Polynomial &divisor) {
    Polynomial quotient = formula.addVariable(
        *section, "q" + std::to_string(formula.variables.size()));
    addRange(section->premises, dividend - quotient * divisor, divisor);
    here->divisions.push_back({dividend, divisor, quotient});
    return quotient;
  }

  Point evaluate(OperatorOp op, ArrayRef<Polynomial> axes, Role role) {
    Point point;
    point.axes.assign(axes.begin(), axes.end());
    llvm::DenseMap<Value, Polynomial> values;
    size_t axis = 0;
    for (Value output : op.getOutputs())
      values[output] = axes[axis++];
    for (Operation &primitive : op.getBody().front().without_terminator()) {
      if (isa<ReduceOp>(primitive)) {
        values[primitive.getResult(0)] = axes[axis++];
        continue;
      }
      Polynomials bottoms;
      for (Value operand : primitive.getOperands())
        bottoms.push_back(values.lookup(operand));
      Polynomials tops = getTops(&primitive, bottoms, point, role);
      for (auto [result, top] : llvm::zip_equal(primitive.getResults(), tops)) {
        values[result] = top;
        Polynomial size = getPolynomial(getSize(result));
        if (!isa<ShareOp>(primitive)) {
          addRange(section->premises, top, size, point.guards);
          here->ranges.push_back({top, size});
        }
      }
    }
    for (Value coordinate : op.getYield().getData())
      point.data.push_back(values.lookup(coordinate));
    for (OperandRange weight : op.getYield().getWeights()) {
      Polynomials &coordinates = point.weights.emplace_back();
      for (Value coordinate : weight)
        coordinates.push_back(values.lookup(coordinate));
    }
    return point;
  }

  /// The results of a primitive; notes guards and what is dropped.
  Polynomials getTops(Operation *op, ArrayRef<Polynomial> bottoms, Point &point,
                      Role role) {
    auto getOperandSize = [&](unsigned i) {
      return getPolynomial(getSize(op->getOperand(i)));
    };
    if (isa<SplitOp>(op)) {
      here->splits.push_back({bottoms[0], getOperandSize(1)});
      return {getSplit(bottoms[0], bottoms[1], getOperandSize(1))};
    }
    if (auto merge = dyn_cast<MergeOp>(op)) {
      Polynomial block = getPolynomial(merge.getBlock());
      Polynomial quotient = divide(bottoms[0], block);
      return {quotient, bottoms[0] - quotient * block};
    }
    if (auto shift = dyn_cast<ShiftOp>(op)) {
      Polynomial size = getOperandSize(0), amount = getAmount(shift);
      addLegal(size, amount, role);
      return {bottoms[0] + amount - divide(bottoms[0] + amount, size) * size};
    }
    if (auto unfold = dyn_cast<UnfoldOp>(op)) {
      Polynomial top = bottoms[0] + bottoms[1] - getLow(unfold);
      point.guards.push_back(top);
      point.guards.push_back(getOperandSize(0) - top - 1);
      return {top};
    }
    if (auto stride = dyn_cast<StrideOp>(op)) {
      here->splits.push_back({bottoms[0], getPolynomial(stride.getFactor())});
      return {bottoms[0] * getPolynomial(stride.getFactor())};
    }
    if (isa<ShareOp>(op))
      return {bottoms[0], bottoms[0]};
    point.dropped.push_back(bottoms[0]);
    return {};
  }

  Polynomial getAmount(ShiftOp shift) {
    AffineExpr expr = getSymbolicAmount(shift);
    if (!expr)
      return int64_t(shift.getAmount());
    std::optional<Polynomial> amount =
        getPolynomial(expr, shift->getParentOfType<OperatorOp>());
    if (!amount) {
      shift.emitError("requires an amount of sums and products");
      isInvalid = true;
      return {};
    }
    return *amount;
  }

  /// floor(K/2), unless written.
  Polynomial getLow(UnfoldOp unfold) {
    Attribute low = unfold.getLowAttr();
    if (unfold.isCausal())
      return getPolynomial(getSize(unfold.getWindow())) - Polynomial(1);
    if (auto integer = dyn_cast_or_null<IntegerAttr>(low))
      return integer.getInt();
    if (auto size = dyn_cast_or_null<SizeAttr>(low))
      return getPolynomial(size);
    Polynomial window = getPolynomial(getSize(unfold.getWindow()));
    if (std::optional<int64_t> value = window.getConstant())
      return *value / 2;
    Polynomial &half = halves[window];
    if (half.isZero()) {
      half = formula.addVariable(formula.one, "half");
      addRange(formula.one.premises, window - half - half, 2);
    }
    return half;
  }

  /// C3: known of @before, to be proven of @after. The map need not be legal.
  void addLegal(const Polynomial &size, const Polynomial &amount, Role role) {
    if (role == Map || section != &formula.one)
      return;
    std::vector<Constraint> legal = {
        {Constraint::NonNegative, size - amount - 1},
        {Constraint::NonNegative, size + amount - 1},
        {Constraint::NonZero, amount}};
    if (role == Before)
      llvm::append_range(formula.one.premises, legal);
    else
      formula.one.claims.push_back({"legal shift", {}, legal});
  }

  //===--------------------------------------------------------------------===//
  // Claims
  //===--------------------------------------------------------------------===//

  static Constraint getEqual(const Polynomial &a, const Polynomial &b) {
    return {Constraint::Zero, a - b};
  }
  static std::vector<Constraint> getEqual(ArrayRef<Polynomial> a,
                                          ArrayRef<Polynomial> b) {
    std::vector<Constraint> result;
    for (auto [x, y] : llvm::zip_equal(a, b))
      result.push_back(getEqual(x, y));
    return result;
  }
  static std::vector<Constraint> getExistence(const Point &point) {
    std::vector<Constraint> result;
    for (const Polynomial &guard : point.guards)
      result.push_back({Constraint::NonNegative, guard});
    return result;
  }
  static std::vector<Constraint> join(std::vector<Constraint> a,
                                      std::vector<Constraint> b) {
    llvm::append_range(a, b);
    return a;
  }

  /// Of a point and the one that it is mapped to.
  void addClaims(const PointPair &p) {
    std::vector<Claim> &claims = formula.one.claims;
    for (auto [i, isUnordered] :
         llvm::enumerate(rule.before.getOutputUnordered()))
      if (!isUnordered && rule.map)
        claims.push_back({"output " + std::to_string(i),
                          {},
                          {getEqual(p.before.axes[i], p.after.axes[i])}});
    std::vector<Constraint> exists = getExistence(p.before),
                            existsAfter = getExistence(p.after);
    if (!exists.empty() || !existsAfter.empty()) {
      claims.push_back({"points stay", exists, existsAfter});
      claims.push_back({"no points are new", existsAfter, exists});
    }
    for (auto [i, isUnordered] :
         llvm::enumerate(rule.before.getInputUnordered()))
      if (!isUnordered)
        claims.push_back({"data " + std::to_string(i),
                          exists,
                          {getEqual(p.before.data[i], p.after.data[i])}});
    for (auto [from, to] : getKeptWeights(rule))
      if (!rule.renamesWeights && rule.summed != from)
        claims.push_back(
            {"weight " + std::to_string(from), exists,
             getEqual(p.before.weights[from], p.after.weights[to])});
    addDropClaims(p);
  }

  /// Terms that are equal may be dropped from a mean or a maximum; a sum over
  /// one is its term. What is summed is in the claims on weights.
  void addDropClaims(const PointPair &p) {
    if (p.dropped.empty())
      return;
    SmallVector<ReduceOp> reductions = getReductions(rule.before);
    bool isSum = llvm::any_of(reductions, [](ReduceOp reduce) {
      return reduce.getKind() == ReduceKind::Sum;
    });
    if (rule.summed && !isSum) {
      rule.before.emitError("requires sums where a weight is summed");
      isInvalid = true;
    }
    if (!isSum || rule.summed)
      return;
    for (ExpandOp expand : rule.map.getOps<ExpandOp>())
      formula.one.claims.push_back(
          {"only one term is dropped",
           {},
           {getEqual(getPolynomial(getSize(expand.getCoord())), 1)}});
  }

  void addEquivalence(const std::string &name, std::vector<Constraint> exists,
                      std::vector<Constraint> a, std::vector<Constraint> b) {
    formula.two.claims.push_back({name + " is a function", join(exists, a), b});
    formula.two.claims.push_back({name + " is one to one", join(exists, b), a});
  }

  /// Of two points: which coordinates are equal there.
  void addClaims(const PointPair &p, const PointPair &q) {
    for (auto [i, isUnordered] :
         llvm::enumerate(rule.before.getOutputUnordered()))
      if (isUnordered && rule.map)
        addEquivalence("output " + std::to_string(i), {},
                       {getEqual(p.before.axes[i], q.before.axes[i])},
                       {getEqual(p.after.axes[i], q.after.axes[i])});
    std::vector<Constraint> exists =
        join(getExistence(p.before), getExistence(q.before));
    for (auto [i, isUnordered] :
         llvm::enumerate(rule.before.getInputUnordered()))
      if (isUnordered)
        addEquivalence("data " + std::to_string(i), exists,
                       {getEqual(p.before.data[i], q.before.data[i])},
                       {getEqual(p.after.data[i], q.after.data[i])});
    addWeightClaims(p, q, exists);
  }

  void addWeightClaims(const PointPair &p, const PointPair &q,
                       const std::vector<Constraint> &exists) {
    auto getSame = [&](unsigned i) {
      return getEqual(p.before.weights[i], q.before.weights[i]);
    };
    auto getName = [](unsigned i) { return "weight " + std::to_string(i); };
    for (auto [weight, by] : rule.absorbed)
      formula.two.claims.push_back(
          {getName(weight) + " follows from " + getName(by),
           join(exists, getSame(by)), getSame(weight)});
    for (auto [from, to] : getKeptWeights(rule)) {
      auto sameAfter = getEqual(p.after.weights[to], q.after.weights[to]);
      if (rule.summed != from) {
        if (rule.renamesWeights)
          addEquivalence(getName(from), exists, getSame(from), sameAfter);
        continue;
      }
      formula.two.claims.push_back({getName(from) + " is a function",
                                    join(exists, getSame(from)), sameAfter});
      formula.two.claims.push_back(
          {getName(from) + " is summed over equal elements",
           join(join(exists, sameAfter), getEqual(p.dropped, q.dropped)),
           getSame(from)});
    }
  }

  RuleStatement rule;
  Formula formula;
  FormulaFacts facts;
  Formula::Section *section = nullptr;
  SectionFacts *here = nullptr;
  std::map<std::string, Polynomial> symbols;
  std::map<Polynomial, Polynomial> halves;
  Polynomials amounts;
  bool isInvalid = false;
};
} // namespace

FailureOr<Formula> kas::test::getFormula(RuleStatement rule) {
  return FormulaBuilder(std::move(rule)).build();
}
