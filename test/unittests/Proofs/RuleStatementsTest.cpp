//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The statements that are proven for all sizes, at small ones: by the oracle of
// sameness and by the evaluator, which share nothing with the formulas.
//
//===----------------------------------------------------------------------===//

#include "RuleStatement.h"
#include "Sameness.h"
#include "kas/Reference/Evaluator.h"
#include "kas/Support/ParseModule.h"
#include "kas/Support/Random.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::test;
using namespace mlir;

namespace {
using Module = OwningOpRef<ModuleOp>;

/// The operators of a rule at some sizes and amounts.
struct Pair {
  Module before, after;
  bool isLegalAfter = false;

  static OperatorOp get(const Module &module) {
    ModuleOp holder = *module;
    return *holder.getOps<OperatorOp>().begin();
  }
};

class RuleStatementsTest : public testing::Test {
protected:
  RuleStatementsTest() {
    context.loadDialect<KasDialect>();
    context.allowUnregisteredDialects();
  }

  SmallVector<ModuleOp> read(StringRef name) {
    llvm::Expected<Module> file =
        parseModule(context, (KAS_RULES_DIRECTORY "/" + name).str());
    if (!file) {
      ADD_FAILURE() << llvm::toString(file.takeError());
      return {};
    }
    files.push_back(std::move(*file));
    return getRules(*files.back());
  }

  static bool isLegal(OperatorOp op) {
    ScopedDiagnosticHandler silent(op.getContext(),
                                   [](Diagnostic &) { return success(); });
    return succeeded(verifyBinding(op, {}, [&] { return op.emitError(); }));
  }

  /// Whether the side condition holds at the numbers of `rule`.
  bool holds(RuleStatement rule) {
    if (!rule.condition)
      return true;
    SmallVector<AffineExpr> dims, symbols;
    for (int64_t amount : rule.amounts)
      dims.push_back(getAffineConstantExpr(amount, &context));
    SymbolSet set = rule.before.getSymbolSet();
    for (unsigned i = 0; i < set.size(); ++i)
      symbols.push_back(getAffineConstantExpr(
          *rule.instance.lookup(set.getName(i)), &context));
    for (unsigned i = 0; i < rule.condition->getNumConstraints(); ++i) {
      int64_t value =
          cast<AffineConstantExpr>(
              rule.condition->getConstraint(i).replaceDimsAndSymbols(dims,
                                                                     symbols))
              .getValue();
      if (rule.condition->isEq(i) ? value != 0 : value < 0)
        return false;
    }
    return true;
  }

  /// The operators at all amounts up to 5 that the side condition and the
  /// operator before allow, at most `count`.
  std::vector<Pair> getPairs(RuleStatement rule, BindingAttr sizes,
                             size_t count) {
    constexpr int64_t reach = 5;
    std::vector<Pair> pairs;
    SmallVector<int64_t> amounts(rule.amounts.size(), -reach);
    rule.instance = sizes;
    while (pairs.size() < count) {
      rule.amounts = amounts;
      if (holds(rule)) {
        Pair pair{*getInstance(rule, rule.before),
                  *getInstance(rule, rule.after)};
        pair.isLegalAfter = isLegal(Pair::get(pair.after));
        if (isLegal(Pair::get(pair.before)))
          pairs.push_back(std::move(pair));
      }
      auto *next =
          llvm::find_if(amounts, [](int64_t amount) { return amount < reach; });
      if (next == amounts.end())
        break;
      std::fill(amounts.begin(), next, -reach);
      ++*next;
    }
    return pairs;
  }

  /// 2, 3, 2, ... or 3, 2, 3, ... for the symbols of the rule, or 1 and 4.
  BindingAttr getSizes(RuleStatement rule, int64_t first) {
    SymbolSet set = rule.before.getSymbolSet();
    SmallVector<std::pair<StringRef, int64_t>> entries;
    SmallVector<std::string> names;
    for (unsigned i = 0; i < set.size(); ++i)
      names.push_back(set.getName(i).str());
    for (auto [i, name] : llvm::enumerate(names))
      entries.push_back({name, i % 2 ? 5 - first : first});
    return BindingAttr::getNormal(&context, entries);
  }

  /// Some at small sizes; there must be some.
  std::vector<Pair> getSmallPairs(RuleStatement rule) {
    std::vector<Pair> pairs;
    for (int64_t first : {1, 2, 3, 4})
      llvm::move(getPairs(rule, getSizes(rule, first), 100),
                 std::back_inserter(pairs));
    EXPECT_GE(pairs.size(), 3);
    return pairs;
  }

  /// By the oracle; nothing for maxima.
  static std::optional<bool> areSame(const Pair &pair) {
    auto before = makeConcrete(Pair::get(pair.before), {}),
         after = makeConcrete(Pair::get(pair.after), {});
    if (!before || !after)
      return std::nullopt;
    return test::areSame({*before}, {*after});
  }

  /// By the evaluator, on the same data and weights.
  static std::vector<float> evaluate(const Module &module) {
    OperatorOp op = Pair::get(module);
    reference::OperatorShapes shapes = reference::getShapes(op);
    Random random(1);
    std::vector<std::vector<float>> values;
    auto makeTensor = [&](ArrayRef<int64_t> shape) {
      auto &of = values.emplace_back(*reference::getNumElements(shape));
      for (float &value : of)
        value = static_cast<float>(random.below(1000)) - 300;
      return reference::ReferenceTensor{shape, of};
    };
    values.reserve(1 + shapes.weights.size());
    reference::ReferenceTensor data = makeTensor(shapes.data);
    SmallVector<reference::ReferenceTensor> weights;
    for (const auto &shape : shapes.weights)
      weights.push_back(makeTensor(shape));
    std::vector<float> output(*reference::getNumElements(shapes.output));
    EXPECT_TRUE(succeeded(reference::evaluateOperator(
        op, data, weights, output, [&] { return op.emitError(); })));
    return output;
  }

  MLIRContext context;
  std::vector<Module> files;
};
} // namespace

TEST_F(RuleStatementsTest, ExactRulesAreTheSame) {
  for (ModuleOp module : read("canonical-form.mlir")) {
    SCOPED_TRACE(module.getName()->str());
    FailureOr<RuleStatement> rule = getStatement(module);
    ASSERT_TRUE(succeeded(rule));
    for (const Pair &pair : getSmallPairs(*rule)) {
      EXPECT_TRUE(pair.isLegalAfter);
      EXPECT_EQ(areSame(pair), true);
    }
  }
}

TEST_F(RuleStatementsTest, NearMissesOfExactRulesDiffer) {
  for (ModuleOp module : read("canonical-form.mlir")) {
    SCOPED_TRACE(module.getName()->str());
    FailureOr<RuleStatement> miss = getStatement(module, /*nearMiss=*/true);
    ASSERT_TRUE(succeeded(miss));
    std::vector<Pair> pairs = getPairs(*miss, miss->sizes, 100);
    EXPECT_TRUE(llvm::any_of(pairs, [](const Pair &pair) {
      return !pair.isLegalAfter || areSame(pair) == false;
    }));
  }
}

TEST_F(RuleStatementsTest, RewritesComputeTheSame) {
  for (ModuleOp module : read("rewrites.mlir")) {
    SCOPED_TRACE(module.getName()->str());
    FailureOr<RuleStatement> rule = getStatement(module);
    ASSERT_TRUE(succeeded(rule));
    for (const Pair &pair : getSmallPairs(*rule)) {
      EXPECT_TRUE(pair.isLegalAfter);
      EXPECT_EQ(evaluate(pair.before), evaluate(pair.after));
    }
  }
}

TEST_F(RuleStatementsTest, NearMissesOfRewritesDiffer) {
  for (ModuleOp module : read("rewrites.mlir")) {
    SCOPED_TRACE(module.getName()->str());
    FailureOr<RuleStatement> miss = getStatement(module, /*nearMiss=*/true);
    ASSERT_TRUE(succeeded(miss));
    std::vector<Pair> pairs = getPairs(*miss, miss->sizes, 100);
    EXPECT_TRUE(llvm::any_of(pairs, [](const Pair &pair) {
      return !pair.isLegalAfter ||
             evaluate(pair.before) != evaluate(pair.after);
    }));
  }
}
