//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluators of sequences: sums over their operators and the steps between
// them.
//
// Counted metrics are additive over the parts of a sequence. What runs the
// program, such as latency, takes the sequence as a whole, because a step may
// be part of the stage before it.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Evaluators/SequenceEvaluators.h"
#include "kas/Search/Evaluators/PredictedTimeEvaluator.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringExtras.h"
#include <mutex>

using namespace kas;
using namespace kas::search;
using llvm::createStringError;
using llvm::Expected;

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

namespace {

/// What a step after a stage of a variant adds to the metrics. The variant
/// fixes the widths between the stages, on which costs of steps depend.
using StepMetrics =
    std::function<Metrics(uint32_t variant, size_t stage, SequenceStep step)>;

/// Deterministic, as all evaluators of the stages that it is made of are.
class SumEvaluator final : public Evaluator {
public:
  SumEvaluator(llvm::StringRef name,
               std::shared_ptr<const SequenceProblem> problem,
               std::vector<std::vector<std::unique_ptr<Evaluator>>> stages,
               StepMetrics steps)
      : name(name), problem(std::move(problem)), stages(std::move(stages)),
        steps(std::move(steps)) {}

  llvm::StringRef getName() const override { return name; }
  bool isDeterministic() const override { return true; }

  /// Each stage has a problem of its own, hence an evaluator of its own.
  Expected<Metrics> evaluate(const Solution &solution) override {
    SequenceView view(*problem, solution);
    Metrics sum;
    // Metrics are summed name by name; steps and stages give the same names.
    auto add = [&](const Metrics &metrics) {
      for (const auto &[name, value] : metrics)
        sum[name] += value;
    };
    for (size_t stage = 0; stage < view.getNumStages(); ++stage) {
      Expected<Metrics> metrics =
          stages[view.getVariant()][stage]->evaluate(view.getStage(stage));
      if (!metrics)
        return metrics.takeError();
      add(*metrics);
    }
    for (size_t step = 0; step < view.getNumSteps(); ++step)
      add(steps(view.getVariant(), step, view.getStep(step)));
    return sum;
  }

private:
  std::string name;
  std::shared_ptr<const SequenceProblem> problem;
  /// By variant and stage. All are made in advance: evaluating must not make
  /// evaluators.
  std::vector<std::vector<std::unique_ptr<Evaluator>>> stages;
  StepMetrics steps;
};

} // namespace

/// Milliseconds of a pass over the result of a stage, at all bindings. Modelled
/// as a stage with one parallel loop over all elements of the output that reads
/// and writes each once, with unit stride.
static double predictPass(const SearchProblem &stage, const Target &target,
                          const schedule::MachineModel &model) {
  double sum = 0;
  for (auto [binding, multiplicity] :
       llvm::zip_equal(stage.bindings, stage.multiplicities)) {
    int64_t elements = 1;
    for (const Dimension &dimension : stage.outputs)
      // A size that is no integer cannot occur here.
      elements *= dimension.size.evaluate(binding).value_or(1);
    schedule::LoopNest nest;
    nest.loops.push_back({elements, /*isReduction=*/false});
    nest.output = {{schedule::IndexExpr::getLoop(0)}, {elements}};
    nest.inputs.push_back(nest.output);
    sum += model.predict(getStageWork(nest, schedule::TileTarget(target))) *
           static_cast<double>(multiplicity);
  }
  return sum;
}

/// Only `relu` and what combines results cost a pass of their own.
static Expected<StepMetrics>
makePredictedSteps(std::shared_ptr<const SequenceProblem> problem) {
  Expected<Target> target = getTarget();
  if (!target)
    return target.takeError();
  // The evaluators of the stages report that there is no model.
  auto model = loadMachineModel(target->cpu, [](const std::string &) {});
  if (!model)
    return model.takeError();
  return StepMetrics([problem, target = *target, model = *model](
                         uint32_t variant, size_t stage, SequenceStep step) {
    // Normalizations, rectified or not, are computed where the stage before
    // stores its result; a rectifier alone is a pass of its own.
    if (step != SequenceStep::Relu && !combines(step))
      return Metrics();
    double time =
        predictPass(*problem->variants[variant].stages[stage], target, model);
    return Metrics{{"predicted_ms", time},
                   {"predicted_least_ms", time / model.margin}};
  });
}

/// FLOPs and parameters of a step, as `getStepCost` counts them. A backward
/// pass costs twice the forward pass, hence 3 in all for a training step.
static StepMetrics
makeCountedSteps(llvm::StringRef name,
                 std::shared_ptr<const SequenceProblem> problem) {
  return [name = name.str(), problem](uint32_t variant, size_t stage,
                                      SequenceStep step) {
    GraphCost cost = problem->getStepCost(variant, stage, step);
    auto flops = static_cast<double>(cost.flops);
    auto params = static_cast<double>(cost.params);
    // Bytes of f32 parameters; the elements that pass through a step are
    // counted by the stages.
    double value = name == "params"           ? params
                   : name == "bytes"          ? 4 * params
                   : name == "training_flops" ? 3 * flops
                                              : flops;
    return Metrics{{name, value}};
  };
}

/// `name` is one of those that sum up.
static Expected<std::unique_ptr<Evaluator>>
makeSumEvaluator(llvm::StringRef name, const EvaluatorSettings &settings,
                 std::shared_ptr<const SequenceProblem> problem) {
  // The settings differ by the problem of the stage only.
  EvaluatorSettings own = settings;
  std::vector<std::vector<std::unique_ptr<Evaluator>>> stages;
  for (const SequenceProblem::Variant &variant : problem->variants) {
    stages.emplace_back();
    for (const auto &stage : variant.stages) {
      own.problem = stage;
      auto evaluator = makeEvaluator(name, own);
      if (!evaluator)
        return evaluator.takeError();
      stages.back().push_back(std::move(*evaluator));
      // Once is enough. All stages would report the same, such as a missing
      // machine model.
      own.report = nullptr;
    }
  }
  Expected<StepMetrics> steps = name == "predicted_ms"
                                    ? makePredictedSteps(problem)
                                    : makeCountedSteps(name, problem);
  if (!steps)
    return steps.takeError();
  return std::make_unique<SumEvaluator>(name, std::move(problem),
                                        std::move(stages), std::move(*steps));
}

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

namespace {
/// Of its own: the context of a pass may be in use, or not allow threads.
/// Printing builds IR, so it needs a context, and a context without threads
/// needs a lock.
struct SequencePrinter {
  std::shared_ptr<const SequenceProblem> problem;
  std::mutex mutex;
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
};
} // namespace

/// The IR is built, printed and dropped for each call.
std::function<std::string(const Solution &)> kas::search::makeSequencePrinter(
    std::shared_ptr<const SequenceProblem> problem) {
  auto printer = std::make_shared<SequencePrinter>();
  printer->problem = std::move(problem);
  printer->context.loadDialect<KasDialect>();
  return [printer](const Solution &solution) {
    std::lock_guard<std::mutex> lock(printer->mutex);
    mlir::OpBuilder builder(&printer->context);
    mlir::Location location = builder.getUnknownLoc();
    mlir::OwningOpRef<mlir::ModuleOp> module =
        mlir::ModuleOp::create(builder, location);
    builder.setInsertionPointToEnd(module->getBody());
    buildSequence(builder, location, "candidate", *printer->problem, solution);
    std::string text;
    llvm::raw_string_ostream stream(text);
    // Without the module around them: a file is a list of operations.
    for (mlir::Operation &op : *module->getBody())
      stream << op << "\n";
    return text;
  };
}

/// The bindings are those of the layers; the widths between stages are
/// constants in the text.
std::function<Expected<CandidateText>(const Solution &)>
kas::search::makeSequenceDescription(
    std::shared_ptr<const SequenceProblem> problem) {
  return [problem, print = makeSequencePrinter(problem)](
             const Solution &solution) -> Expected<CandidateText> {
    CandidateText text{"sequence",
                       print(solution),
                       {},
                       {problem->layers.multiplicities.begin(),
                        problem->layers.multiplicities.end()}};
    const SymbolSet &symbols = problem->layers.symbols;
    for (const Binding &binding : problem->layers.bindings) {
      auto &values = text.bindings.emplace_back();
      for (unsigned symbol = 0; symbol < symbols.size(); ++symbol)
        values.emplace_back(symbols.getName(symbol), binding[symbol]);
    }
    return text;
  };
}

/// The evaluators that run a sequence look at `settings.problem` for budgets
/// only, so an alias of its layers is enough.
Expected<std::unique_ptr<Evaluator>> kas::search::makeSequenceEvaluator(
    llvm::StringRef name, const EvaluatorSettings &settings,
    std::shared_ptr<const SequenceProblem> problem) {
  static constexpr llvm::StringLiteral sums[] = {
      "flops",          "params", "flops_unprepared",
      "training_flops", "bytes",  "predicted_ms"};
  static constexpr llvm::StringLiteral others[] = {"latency", "training",
                                                   "external"};
  if (llvm::is_contained(sums, name))
    return makeSumEvaluator(name, settings, std::move(problem));
  if (!llvm::is_contained(others, name))
    return createStringError("requires an evaluator of sequences among " +
                             llvm::join(llvm::ArrayRef(sums), ", ") + ", " +
                             llvm::join(llvm::ArrayRef(others), ", ") +
                             ", got '" + name + "'");
  EvaluatorSettings own = settings;
  // Shares ownership with the sequence problem: the alias keeps it alive.
  own.problem = std::shared_ptr<const SearchProblem>(problem, &problem->layers);
  own.describe = makeSequenceDescription(problem);
  return makeEvaluator(name, own);
}
