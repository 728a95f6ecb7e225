//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sequences of operators that a search finds: which there are, what they cost,
// and what they compute.
//
//===----------------------------------------------------------------------===//

#include "kas/Conversion/SequenceToLinalg.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/InitAll.h"
#include "kas/Reference/SequenceEvaluator.h"
#include "kas/Search/Core/Enumerator.h"
#include "kas/Search/Evaluators/SequenceEvaluators.h"
#include "kas/Search/Operators/GraphState.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <cmath>
#include <set>

using namespace kas;
using namespace kas::execution;
using namespace kas::search;

namespace {

constexpr llvm::StringLiteral text = R"mlir(
kas.space @layers<N, C, D, W | k, g>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<C = 4, D = 6, N = 2, W = 7, g = 2, k = 3>, <C = 8, D = 4, N = 1, W = 9, g = 2, k = 3> x 2]
    budget {{{0}}
kas.space @windows<N, C, M, W | k, g>
    [N, M unordered, W] from [N, C unordered, W]
    bindings [<C = 4, M = 4, N = 2, W = 7, g = 2, k = 3>, <C = 8, M = 8, N = 1, W = 9, g = 2, k = 3> x 2]
    limits {{depth = 6, reduce = 2, split = 1, merge = 1, shift = 0, unfold = 1, weights = 1, weight_takes = 0,
            sees = ["k"], weights_by_position = 0}
kas.space @mixings<N, C, D, M, W | g>
    [N, D unordered, W] from [N, M unordered, W]
    bindings [<C = 4, D = 6, M = 4, N = 2, W = 7, g = 2>, <C = 8, D = 4, M = 8, N = 1, W = 9, g = 2> x 2]
    limits {{depth = 4, reduce = 2, split = 1, merge = 1, shift = 0, unfold = 0, weights = 2, weights_by_position = 0}
kas.sequence_space @sequences of @layers [@windows, @mixings]
    between [normalize_relu, none, relu, normalize] widths {{M = [C, 2*C, C/g]}
)mlir";

class SequencesTest : public testing::Test {
protected:
  SequencesTest() {
    mlir::DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  std::shared_ptr<const SequenceProblem> getProblem(llvm::StringRef budget) {
    module = mlir::parseSourceString<mlir::ModuleOp>(
        llvm::formatv(text.data(), budget).str(), &context);
    EXPECT_TRUE(module);
    auto problem =
        SequenceProblem::get(*module->getOps<SequenceSpaceOp>().begin());
    EXPECT_TRUE(mlir::succeeded(problem));
    return std::make_shared<const SequenceProblem>(std::move(*problem));
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

using Solutions = std::vector<std::shared_ptr<const Solution>>;

} // namespace

static Solutions list(std::unique_ptr<State> root) {
  Solutions solutions;
  Enumerator enumerator(std::move(root), {});
  EXPECT_EQ(enumerator.run({},
                           [&](llvm::ArrayRef<Move>, const State &state) {
                             solutions.push_back(state.getSolution());
                           }),
            Enumerator::Status::Complete);
  return solutions;
}

static Solutions listSequences(std::shared_ptr<const SequenceProblem> problem) {
  return list(makeSequenceSearch(problem, summarizeStages(*problem)));
}

/// All combinations of the lists of the stages within the budget, by their
/// keys.
static std::set<std::vector<uint64_t>> combine(const SequenceProblem &problem) {
  std::set<std::vector<uint64_t>> all;
  for (uint32_t variant = 0; variant < problem.variants.size(); ++variant) {
    const auto &stages = problem.variants[variant].stages;
    Solutions first = list(makeGraphState(stages[0]));
    Solutions second = list(makeGraphState(stages[1]));
    for (const auto &a : first)
      for (const auto &b : second)
        for (uint32_t step = 0; step < problem.steps.size(); ++step) {
          SequenceSolution solution;
          solution.variant = variant;
          solution.parts = {a, std::make_shared<Choice>(step), b};
          GraphCost cost = SequenceView(problem, solution).getCost();
          const SearchBudget &budget = problem.layers.budget;
          double flops = cost.flops, params = cost.params;
          if (flops <= budget.maxFlops.value_or(flops) &&
              flops >= budget.minFlops.value_or(flops) &&
              params <= budget.maxParams.value_or(params))
            all.insert({variant, step, a->key(), b->key()});
        }
  }
  return all;
}

TEST_F(SequencesTest, AreAllCombinationsWithinTheBudget) {
  size_t before = 0;
  for (llvm::StringRef budget :
       {"", "flops = 6000", "flops = 6000, min_flops = 4000", "params = 150",
        "flops = 4, params = 2"}) {
    auto problem = getProblem(budget);
    std::set<std::vector<uint64_t>> expected = combine(*problem), found;
    for (const auto &solution : listSequences(problem)) {
      const auto &parts =
          static_cast<const SequenceSolution &>(*solution).parts;
      found.insert({static_cast<const SequenceSolution &>(*solution).variant,
                    static_cast<const Choice &>(*parts[1]).number,
                    parts[0]->key(), parts[2]->key()});
    }
    EXPECT_EQ(found, expected) << budget.str();
    // Each bound leaves some out, the last one everything.
    if (budget.empty())
      before = found.size();
    else
      EXPECT_LT(found.size(), before) << budget.str();
    EXPECT_EQ(found.empty(), budget.contains("= 4,"));
  }
}

TEST_F(SequencesTest, CostWhatTheirStepsDo) {
  auto problem = getProblem("");
  // 2*4*7 + 2 * 1*8*9 elements, 4 + 2 * 8 channels of the first width.
  for (auto [step, flops, params] : {std::tuple(SequenceStep::None, 0, 0),
                                     {SequenceStep::Relu, 200, 0},
                                     {SequenceStep::Normalize, 400, 40},
                                     {SequenceStep::NormalizeRelu, 600, 40},
                                     {SequenceStep::Add, 200, 0},
                                     {SequenceStep::Multiply, 200, 0}}) {
    GraphCost cost = problem->getStepCost(0, 0, step);
    EXPECT_EQ(cost.flops, uint64_t(flops));
    EXPECT_EQ(cost.params, uint64_t(params));
    EXPECT_EQ(problem->getStepCost(1, 0, step).flops, 2 * uint64_t(flops));
  }
}

//===----------------------------------------------------------------------===//
// Parallel operators
//===----------------------------------------------------------------------===//

/// Stages are of two spaces that keep the sizes [N, C, W].
static std::string getParallelText(llvm::StringRef stages,
                                   llvm::StringRef steps) {
  std::string signature = "[N, C unordered, W] from [N, C unordered, W]\n"
                          "bindings [<C = 4, N = 2, W = 7, g = 2, k = 3>]\n";
  return "kas.space @layers<N, C, W | g, k> " + signature +
         "kas.space @windows<N, C, W | g, k> " + signature +
         "limits {depth = 5, reduce = 2, split = 1, merge = 1, shift = 0, "
         "unfold = 1, weights = 1, weight_takes = 0, sees = [\"k\"], "
         "weights_by_position = 0}\n"
         "kas.space @mixings<N, C, W | g, k> " +
         signature +
         "limits {depth = 4, reduce = 2, split = 1, merge = 1, shift = 0, "
         "unfold = 0, weights = 2, weights_by_position = 0}\n"
         "kas.sequence_space @sequences of @layers [" +
         stages.str() + "] between [" + steps.str() + "]\n";
}

namespace {
/// A tensor that depends on the data: the data, an operator of one, a step
/// after one, or a sum or product of several in any order.
struct Term {
  std::string kind;
  std::vector<std::string> parts;
  bool isDouble = false;

  std::string print() const {
    std::string text = kind + "(";
    for (const std::string &part : parts)
      text += part + ",";
    return text + ")";
  }
};
} // namespace

/// All orders and groupings of equal combinations give one term.
static Term combine(SequenceStep step, const Term &first, const Term &second,
                    bool hasOneWeight) {
  Term term{llvm::StringRef(stringifySequenceStep(step)).str(), {}};
  term.isDouble = first.isDouble;
  term.parts =
      first.kind == term.kind ? first.parts : std::vector{first.print()};
  if (step == SequenceStep::Add && hasOneWeight &&
      llvm::is_contained(term.parts, second.print()))
    term.isDouble = true;
  term.parts.push_back(second.print());
  llvm::sort(term.parts);
  return term;
}

/// The term of a candidate; `parts` as those of a solution.
static Term getTerm(const SequenceProblem &problem, uint32_t variant,
                    Parts parts) {
  SequenceView view(problem, variant, parts);
  Term data{"data", {}}, result;
  for (size_t stage = 0; stage < view.getNumStages(); ++stage) {
    bool isParallel = stage > 0 && combines(view.getStep(stage - 1));
    if (stage > 0 && !isParallel)
      data = {stringifySequenceStep(view.getStep(stage - 1)).str(),
              {result.print()},
              result.isDouble};
    Term own{"operator",
             {std::to_string(view.getStage(stage).key()), data.print()},
             data.isDouble};
    result = isParallel ? combine(view.getStep(stage - 1), result, own,
                                  view.getStage(stage).weights.size() == 1)
                        : own;
  }
  return result;
}

/// The terms of all choices of operators and steps, without those that add an
/// operator with one weight to itself.
static void addTerms(const SequenceProblem &problem,
                     llvm::ArrayRef<Solutions> stages,
                     std::vector<std::shared_ptr<const Solution>> &parts,
                     std::set<std::string> &terms) {
  if (parts.size() + 2 == 2 * stages.size()) {
    for (const auto &last : stages.back()) {
      parts.push_back(last);
      Term term = getTerm(problem, 0, parts);
      if (!term.isDouble)
        terms.insert(term.print());
      parts.pop_back();
    }
    return;
  }
  for (const auto &own : stages[parts.size() / 2])
    for (uint32_t step = 0; step < problem.steps.size(); ++step) {
      parts.push_back(own);
      parts.push_back(std::make_shared<Choice>(step));
      addTerms(problem, stages, parts, terms);
      parts.resize(parts.size() - 2);
    }
}

TEST_F(SequencesTest, ListParallelOperatorsOnce) {
  for (auto [stages, steps] :
       {std::pair("@mixings, @mixings", "add"),
        {"@windows, @mixings", "add, multiply"},
        {"@windows, @windows", "relu, add, multiply"},
        {"@mixings, @mixings, @mixings", "add, multiply"},
        {"@mixings, @windows, @mixings", "multiply, add"},
        {"@windows, @windows, @mixings", "add, none"},
        {"@windows, @windows, @windows", "add, normalize_relu"}}) {
    SCOPED_TRACE(std::string(stages) + " between " + steps);
    module = mlir::parseSourceString<mlir::ModuleOp>(
        getParallelText(stages, steps), &context);
    ASSERT_TRUE(module);
    auto given =
        SequenceProblem::get(*module->getOps<SequenceSpaceOp>().begin());
    ASSERT_TRUE(mlir::succeeded(given));
    auto problem = std::make_shared<const SequenceProblem>(std::move(*given));
    std::vector<Solutions> lists;
    for (const auto &stage : problem->variants.front().stages)
      lists.push_back(list(makeGraphState(stage)));
    std::vector<std::shared_ptr<const Solution>> parts;
    std::set<std::string> expected, found;
    addTerms(*problem, lists, parts, expected);
    Solutions solutions = listSequences(problem);
    for (const auto &solution : solutions)
      found.insert(
          getTerm(*problem, 0,
                  static_cast<const SequenceSolution &>(*solution).parts)
              .print());
    EXPECT_EQ(found.size(), solutions.size()) << "some come twice";
    EXPECT_EQ(found, expected);
    EXPECT_GT(found.size(), 20u);
  }
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static reference::ReferenceTensor toReference(const Tensor &tensor) {
  return {tensor.getShape(), tensor.getValues()};
}

/// Compares the compiled sequence with the reference at one binding.
static void check(SequenceOp op, BindingAttr binding, uint64_t seed) {
  auto lowered =
      createSequenceModule(op, binding, [&] { return op.emitError(); });
  ASSERT_TRUE(mlir::succeeded(lowered));
  auto function =
      llvm::cantFail(compileForCPU(**lowered, sequenceFunctionName));
  auto arguments =
      llvm::cantFail(function.getSignature().makeArguments({}, seed));
  Random random(seed);
  for (auto [argument, signature] :
       llvm::zip_equal(arguments, function.getSignature().arguments))
    if (llvm::StringRef(signature.name).contains("norm"))
      for (float &value : argument.getValues())
        value = 0.5f + static_cast<float>(random.below(1000)) / 1000;
  auto results = llvm::cantFail(function.getSignature().makeResults());
  ASSERT_FALSE(llvm::errorToBool(function(arguments, results)));
  auto tensors = llvm::map_to_vector(arguments, toReference);
  auto expected = reference::evaluateSequence(
      op, binding, tensors.front(), llvm::ArrayRef(tensors).drop_front(),
      [&] { return op.emitError(); });
  ASSERT_TRUE(mlir::succeeded(expected));
  ASSERT_EQ(llvm::ArrayRef(expected->shape), results[0].getShape());
  for (auto [value, wanted] :
       llvm::zip_equal(results[0].getValues(), expected->values))
    ASSERT_NEAR(value, wanted, 1e-4 * (1 + std::abs(wanted)));
}

TEST_F(SequencesTest, ComputeWhatTheReferenceDoes) {
  auto problem = getProblem("");
  Solutions solutions = listSequences(problem);
  auto print = makeSequencePrinter(problem);
  SpaceOp layers = (*module->getOps<SequenceSpaceOp>().begin()).getLayerSpace();
  constexpr uint64_t seed = 11;
  Random random(seed);
  std::set<SequenceStep> steps;
  for (unsigned count = 0; count < 12; ++count) {
    const Solution &solution = *solutions[random.below(solutions.size())];
    std::string candidate = print(solution);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + candidate);
    auto parsed = mlir::parseSourceString<mlir::ModuleOp>(candidate, &context);
    ASSERT_TRUE(parsed);
    auto op = cast<SequenceOp>(parsed->getBody()->back());
    steps.insert(op.getStep(0));
    for (auto binding : layers.getBindings().getAsRange<BindingAttr>())
      check(op, binding, seed + count);
  }
  EXPECT_EQ(steps.size(), 4u);
}
