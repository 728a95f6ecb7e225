//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The statements of the rules that the key of a finished operator knows (O4):
// the search gives both operators the same key, and near misses others.
//
//===----------------------------------------------------------------------===//

#include "OperatorWriter.h"
#include "RuleStatement.h"
#include "kas/Support/ParseModule.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace kas;
using namespace kas::search;
using namespace kas::test;
using namespace mlir;

namespace {

/// Of the kind `exact (key)` on the page.
bool isOfKey(StringRef rule) {
  return llvm::StringSwitch<bool>(rule.split('_').first)
      .Cases({"W8", "W9", "M8", "M9", "M10", "M11", "M12"}, true)
      .Cases({"S8", "H3", "H5", "H6", "H7", "H8"}, true)
      .Default(false);
}

/// An operator as moves of the search: reductions first, a weight when its
/// first coordinate is about to be used.
class Transcriber {
public:
  Transcriber(std::shared_ptr<const SearchProblem> problem, OperatorOp op)
      : writer(problem), op(op) {}

  /// The key, or why the search has no such moves.
  FailureOr<uint64_t> getKey() {
    for (auto [index, output] : llvm::enumerate(op.getOutputs()))
      exprs[output] = writer.output(index);
    for (ReduceOp reduce : getReductions(op))
      exprs[reduce.getResult()] = writer.reduce(getText(reduce.getSize()));
    isContracted.assign(op.getNumWeights(), false);
    for (Operation &primitive : op.getBody().front().without_terminator())
      if (!isa<ReduceOp>(primitive) && failed(add(primitive)))
        return failure();
    if (failed(contractAll([](unsigned) { return true; })))
      return failure();
    return writer.finish();
  }

private:
  std::string getText(SizeAttr size) {
    return toString(*size.toSize(op.getSymbolSet()), op.getSymbolSet());
  }

  LogicalResult add(Operation &primitive) {
    if (auto share = dyn_cast<ShareOp>(primitive)) {
      ExprId id = exprs.lookup(share.getCoord());
      exprs[share.getData()] = id;
      exprs[share.getWeight()] = id;
      return success();
    }
    for (Value operand : primitive.getOperands())
      if (failed(contractAll([&](unsigned weight) {
            return has(weight, exprs.lookup(operand));
          })))
        return failure();
    SmallVector<ExprId, 2> operands;
    for (Value operand : primitive.getOperands())
      operands.push_back(exprs.lookup(operand));
    if (isa<SplitOp>(primitive)) {
      exprs[primitive.getResult(0)] = writer.split(operands[0], operands[1]);
      return success();
    }
    if (auto merge = dyn_cast<MergeOp>(primitive)) {
      auto [high, low] = writer.merge(operands[0], getText(merge.getBlock()));
      exprs[merge.getQuotient()] = high;
      exprs[merge.getRemainder()] = low;
      return success();
    }
    if (auto shift = dyn_cast<ShiftOp>(primitive))
      return addShift(shift, operands[0]);
    if (isa<ExpandOp>(primitive)) {
      writer.expand(operands[0]);
      return success();
    }
    return failure();
  }
  /// By 1 or -1 only.
  LogicalResult addShift(ShiftOp shift, ExprId operand) {
    int64_t amount = shift.getAmount();
    AffineExpr expr = getSymbolicAmount(shift);
    if ((amount != 1 && amount != -1) || (expr && !expr.isPureAffine()) ||
        (expr && isa<AffineSymbolExpr>(expr)))
      return failure();
    exprs[shift.getResult()] =
        amount == 1 ? writer.shift(operand) : writer.shiftBack(operand);
    return success();
  }

  bool has(unsigned weight, ExprId id) {
    return llvm::any_of(op.getYield().getWeights()[weight],
                        [&](Value coordinate) {
                          auto found = exprs.find(coordinate);
                          return found != exprs.end() && found->second == id;
                        });
  }
  LogicalResult contractAll(llvm::function_ref<bool(unsigned)> isWanted) {
    for (unsigned weight = 0; weight < op.getNumWeights(); ++weight)
      if (!isContracted[weight] && isWanted(weight) && failed(contract(weight)))
        return failure();
    return success();
  }
  /// Fails when a coordinate is not made yet.
  LogicalResult contract(unsigned weight) {
    SmallVector<ExprId, 4> shared, taken;
    for (Value coordinate : op.getYield().getWeights()[weight]) {
      if (!exprs.contains(coordinate))
        return failure();
      auto share = coordinate.getDefiningOp<ShareOp>();
      bool isShared = share && coordinate == share.getWeight();
      (isShared ? shared : taken).push_back(exprs.lookup(coordinate));
    }
    writer.contract(shared, taken);
    isContracted[weight] = true;
    return success();
  }

  OperatorWriter writer;
  OperatorOp op;
  llvm::DenseMap<Value, ExprId> exprs;
  SmallVector<bool> isContracted;
};

class RuleKeysTest : public testing::Test {
protected:
  RuleKeysTest() {
    context.loadDialect<KasDialect>();
    context.allowUnregisteredDialects();
  }

  static std::string getDimensions(ArrayRef<SizeAttr> sizes,
                                   ArrayRef<bool> unordered, OperatorOp op) {
    std::string text;
    for (auto [size, isUnordered] : llvm::zip_equal(sizes, unordered))
      text += (text.empty() ? "" : ", ") +
              toString(*size.toSize(op.getSymbolSet()), op.getSymbolSet()) +
              (isUnordered ? " unordered" : "");
    return text;
  }

  /// A space with the signature of `op`, next to a batch, and generous limits.
  std::shared_ptr<const SearchProblem> getProblem(OperatorOp op) {
    constexpr int64_t values[] = {11, 5, 7, 13};
    SymbolSet set = op.getSymbolSet();
    std::string symbols[2] = {"Batch", ""}, binding, occurrences;
    for (unsigned i = 0; i < set.size(); ++i) {
      std::string name = set.getName(i).str();
      std::string &list = symbols[set.getKind(i) == SymbolKind::Coefficient];
      list += (list.empty() ? " | " : ", ") + name;
      binding += llvm::formatv(", {0} = {1}", name, values[i]);
      occurrences += llvm::formatv(", occurrences.{0} = 4", name);
    }
    SmallVector<SizeAttr> inputs(op.getInputSizes().getAsRange<SizeAttr>());
    std::string text = llvm::formatv(
        "kas.space @x<{0}{1}> [Batch, {2}] from [Batch, {3}] bindings [<Batch "
        "= 1{4}>] "
        "limits {{depth = 30, chain = 100, reduce = 4, split = 6, merge = 6, "
        "shift = 6, expand = 4, weights = 3, size_symbols = 4, "
        "size_powers = 9, reduce_ratio = 1000, pooling = 1000{5}}",
        symbols[0], symbols[1],
        getDimensions(op.getOutputSizes(), op.getOutputUnordered(), op),
        getDimensions(inputs, op.getInputUnordered(), op), binding,
        occurrences);
    auto module = parseSourceString<ModuleOp>(text, &context);
    if (!module) {
      ADD_FAILURE() << text;
      return nullptr;
    }
    ModuleOp holder = *module;
    return std::make_shared<const SearchProblem>(
        SearchProblem::get(*holder.getOps<SpaceOp>().begin()));
  }

  /// Whether the keys are equal; nothing when the search has no such moves.
  std::optional<bool> haveEqualKeys(FailureOr<RuleStatement> rule) {
    EXPECT_TRUE(succeeded(rule));
    auto problem = getProblem(rule->before);
    FailureOr<uint64_t> before = Transcriber(problem, rule->before).getKey(),
                        after = Transcriber(problem, rule->after).getKey();
    if (failed(before) || failed(after))
      return std::nullopt;
    return *before == *after;
  }

  MLIRContext context;
};
} // namespace

TEST_F(RuleKeysTest, SameOperatorsHaveEqualKeys) {
  auto file = llvm::cantFail(
      parseModule(context, KAS_RULES_DIRECTORY "/canonical-form.mlir"));
  std::string others, unequal;
  for (ModuleOp module : getRules(*file)) {
    if (!isOfKey(*module.getName()))
      continue;
    SCOPED_TRACE(module.getName()->str());
    std::optional<bool> areEqual = haveEqualKeys(getStatement(module));
    if (!areEqual)
      others += " " + module.getName()->str();
    else if (!*areEqual)
      unequal += " " + module.getName()->str();
    // The search has one amount; some near misses differ by amounts only.
    auto miss = module.lookupSymbol<ModuleOp>("near_miss");
    if (!miss->hasAttr("rule.condition"))
      EXPECT_NE(haveEqualKeys(getStatement(module, /*nearMiss=*/true)), true);
  }
  // A weight that has a coordinate and a part of it, and a shift by a size.
  EXPECT_EQ(others, " W8_dropped H7_outer");
  EXPECT_EQ(unequal, "");
}
