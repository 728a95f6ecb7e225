//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// kas-bench predict: predicted against measured times of operators.
//
//===----------------------------------------------------------------------===//

#include "KasBench.h"
#include "OperatorTimes.h"
#include "Peak.h"
#include "SearchSpaces.h"
#include "kas/Search/Evaluators/PredictedTimeEvaluator.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include <cmath>
#include <ctime>

using namespace kas;
using namespace kas::search;
using llvm::Error;
using llvm::StringRef;

namespace {
/// One operator: milliseconds over all bindings.
struct Pair {
  std::shared_ptr<const OperatorGraph> graph;
  double predicted = 0, measured = 0;
  /// Floating-point operations over all bindings with no zero of a padding.
  double existingFlops = 0;
  /// The most of one binding.
  double gflops = 0;
};

/// The operators of one space.
class Comparison {
public:
  Comparison(mlir::MLIRContext &context,
             std::shared_ptr<const SearchProblem> problem, const Target &target,
             solver::MachineModel model, BenchReport &report, std::string name)
      : context(context), problem(problem),
        predictor(std::move(problem), target, std::move(model)), report(report),
        name(std::move(name)) {}

  Error run(const BenchSettings &settings);

private:
  void predictAll(llvm::ArrayRef<std::shared_ptr<const OperatorGraph>> graphs,
                  std::vector<Pair> &pairs);
  /// Prints each; leaves out what does not compile.
  void measure(std::vector<Pair> &pairs, StringRef kind);
  void print(const llvm::Twine &metric, double value, StringRef unit) {
    report.print({name, metric.str(), value, unit.str()});
  }
  void printQuality(llvm::ArrayRef<Pair> pairs);
  double getLeast(llvm::ArrayRef<Pair> pairs, StringRef metric);

  mlir::MLIRContext &context;
  std::shared_ptr<const SearchProblem> problem;
  TimePredictor predictor;
  BenchReport &report;
  std::string name;
};
} // namespace

/// Spearman's: the correlation of the ranks, equal values at their mean rank.
static double getRankCorrelation(llvm::ArrayRef<double> a,
                                 llvm::ArrayRef<double> b) {
  auto getRanks = [](llvm::ArrayRef<double> values) {
    std::vector<size_t> order(values.size());
    for (size_t index = 0; index < order.size(); ++index)
      order[index] = index;
    llvm::sort(order, [&](size_t x, size_t y) {
      return std::pair(values[x], x) < std::pair(values[y], y);
    });
    std::vector<double> ranks(values.size());
    for (size_t first = 0, next; first < order.size(); first = next) {
      for (next = first;
           next < order.size() && values[order[next]] == values[order[first]];
           ++next)
        ;
      for (size_t place = first; place < next; ++place)
        ranks[order[place]] = static_cast<double>(first + next - 1) / 2;
    }
    return ranks;
  };
  std::vector<double> x = getRanks(a), y = getRanks(b);
  double mean = static_cast<double>(x.size() - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t index = 0; index < x.size(); ++index) {
    xy += (x[index] - mean) * (y[index] - mean);
    xx += (x[index] - mean) * (x[index] - mean);
    yy += (y[index] - mean) * (y[index] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

void Comparison::predictAll(
    llvm::ArrayRef<std::shared_ptr<const OperatorGraph>> graphs,
    std::vector<Pair> &pairs) {
  std::clock_t begin = std::clock();
  for (const auto &graph : graphs)
    pairs.push_back({graph, predictor.predict(*graph), 0});
  double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  if (!graphs.empty())
    print("prediction_us", 1e6 * seconds / static_cast<double>(graphs.size()),
          "us");
}

void Comparison::measure(std::vector<Pair> &pairs, StringRef kind) {
  constexpr size_t batch = 6;
  unsigned numBindings = problem->bindings.size();
  for (size_t first = 0; first < pairs.size(); first += batch) {
    auto some = llvm::MutableArrayRef(pairs).slice(
        first, std::min(batch, pairs.size() - first));
    std::vector<OperatorAtBinding> all;
    for (const Pair &pair : some)
      for (unsigned binding = 0; binding < numBindings; ++binding)
        all.push_back({pair.graph, binding});
    std::vector<double> times = timeOperators(context, *problem, all);
    std::vector<int64_t> flops = countExistingFlops(context, *problem, all);
    for (auto [index, pair] : llvm::enumerate(some)) {
      llvm::json::Array list;
      for (unsigned binding = 0; binding < numBindings; ++binding) {
        double time = times[index * numBindings + binding];
        if (time == 0)
          pair.measured = std::numeric_limits<double>::quiet_NaN();
        auto count = static_cast<double>(flops[index * numBindings + binding]);
        pair.existingFlops +=
            count * static_cast<double>(problem->multiplicities[binding]);
        pair.gflops = std::max(pair.gflops, 1e-6 * count / time);
        pair.measured +=
            time * static_cast<double>(problem->multiplicities[binding]);
        list.push_back(time);
      }
      llvm::outs()
          << llvm::json::Value(llvm::json::Object{
                 {"space", name},
                 {"kind", kind},
                 {"key", llvm::utohexstr(pair.graph->hash)},
                 {"flops", static_cast<int64_t>(pair.graph->cost.flops)},
                 {"existing_flops", static_cast<int64_t>(pair.existingFlops)},
                 {"predicted_ms", pair.predicted},
                 {"times_ms", std::move(list)}})
          << "\n";
    }
    llvm::outs().flush();
  }
  llvm::erase_if(pairs,
                 [](const Pair &pair) { return std::isnan(pair.measured); });
}

void Comparison::printQuality(llvm::ArrayRef<Pair> pairs) {
  std::vector<double> predicted, measured, errors;
  double fastest = 0;
  for (const Pair &pair : pairs) {
    predicted.push_back(pair.predicted);
    measured.push_back(pair.measured);
    errors.push_back(std::abs(pair.predicted / pair.measured - 1));
    fastest = std::max(fastest, pair.gflops);
  }
  if (pairs.empty())
    return;
  llvm::sort(errors);
  print("operators", static_cast<double>(pairs.size()), "");
  print("rank_correlation", getRankCorrelation(predicted, measured), "");
  print("median_error", errors[errors.size() / 2], "");
  print("largest_gflops", fastest, "GFLOP/s");
}

double Comparison::getLeast(llvm::ArrayRef<Pair> pairs, StringRef metric) {
  double least = std::numeric_limits<double>::infinity();
  for (const Pair &pair : pairs)
    least = std::min(least, pair.measured);
  print(metric, least, "ms");
  return least;
}

Error Comparison::run(const BenchSettings &settings) {
  std::vector<Pair> random;
  predictAll(sampleOperators(problem, settings.count, /*seed=*/0), random);
  if (settings.best) {
    double begin = execution::monotonicSeconds();
    std::vector<Pair> all;
    predictAll(sampleOperators(problem, ~0u, /*seed=*/1), all);
    print("listed", static_cast<double>(all.size()), "");
    llvm::sort(all, [](const Pair &a, const Pair &b) {
      return std::pair(a.predicted, a.graph->hash) <
             std::pair(b.predicted, b.graph->hash);
    });
    all.resize(std::min<size_t>(all.size(), settings.best));
    print("list_seconds", execution::monotonicSeconds() - begin, "s");
    measure(all, "best");
    getLeast(all, "least_of_best");
  }
  measure(random, "random");
  printQuality(random);
  if (!random.empty())
    getLeast(random, "least_of_random");
  return Error::success();
}

/// GFLOP/s of one core, the most of some runs.
static llvm::Expected<double> measurePeak(mlir::MLIRContext &context) {
  auto kernel = compilePeak(context);
  if (!kernel)
    return kernel.takeError();
  execution::Timing timing = execution::measure([&] { kernel->run(); });
  return peakFlops / timing.min * 1e-6;
}

Error kas::runPredictSuite(mlir::MLIRContext &context,
                           const BenchSettings &settings, BenchReport &report) {
  llvm::Expected<Target> target = getTarget();
  if (!target)
    return target.takeError();
  auto model = loadMachineModel(target->cpu, [](const std::string &message) {
    llvm::errs() << "kas-bench: " << message << "\n";
  });
  if (!model)
    return model.takeError();
  bool isFirst = true;
  for (StringRef text :
       {StringRef(predictedSpaces), getBenchSpace("syno-resnet18")}) {
    auto spaces = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!spaces)
      return llvm::createStringError("the spaces do not parse");
    for (SpaceOp space : spaces->getOps<SpaceOp>()) {
      if (!isSelected(settings, space.getSymName()))
        continue;
      if (isFirst) {
        auto peak = measurePeak(context);
        if (!peak)
          return peak.takeError();
        report.print({"machine", "peak_gflops", *peak, "GFLOP/s"});
        isFirst = false;
      }
      Comparison comparison(
          context,
          std::make_shared<const SearchProblem>(SearchProblem::get(space)),
          *target, *model, report, space.getSymName().str());
      if (Error error = comparison.run(settings))
        return error;
    }
  }
  return Error::success();
}
