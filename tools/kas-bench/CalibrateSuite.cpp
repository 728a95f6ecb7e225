//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// kas-bench calibrate: learns what work takes on this machine from operators
// of spaces that are no network's, and keeps it where `predicted_ms` looks.
//
//===----------------------------------------------------------------------===//

#include "KasBench.h"
#include "OperatorTimes.h"
#include "SearchSpaces.h"
#include "kas/Search/Evaluators/PredictedTimeEvaluator.h"
#include "kas/Support/OutputFile.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace kas;
using namespace kas::search;
using namespace kas::schedule;
using llvm::createStringError;
using llvm::Error;

namespace {
/// A space, and operators of it that are not measured yet.
struct Source {
  std::shared_ptr<const SearchProblem> problem;
  std::unique_ptr<TimePredictor> predictor;
  std::vector<std::shared_ptr<const OperatorGraph>> operators;
  unsigned next = 0;
};
} // namespace

static std::vector<Source> makeSources(mlir::ModuleOp spaces,
                                       const Target &target) {
  constexpr unsigned count = 400, expansions = 500000;
  std::vector<Source> sources;
  for (SpaceOp space : spaces.getOps<SpaceOp>()) {
    Source &source = sources.emplace_back();
    source.problem =
        std::make_shared<const SearchProblem>(SearchProblem::get(space));
    source.predictor = std::make_unique<TimePredictor>(
        source.problem, target, MachineModel::getUsual(target.cpu));
    source.operators =
        sampleOperators(source.problem, count, /*seed=*/0, expansions);
  }
  return sources;
}

/// Measures the next operators of a source, each at another binding.
static void measureSome(mlir::MLIRContext &context, Source &source,
                        std::vector<WorkSample> &samples) {
  constexpr unsigned batch = 6;
  std::vector<OperatorAtBinding> some;
  for (; some.size() < batch && source.next < source.operators.size();
       ++source.next)
    some.push_back(
        {source.operators[source.next],
         static_cast<unsigned>(source.next % source.problem->bindings.size())});
  for (auto [one, time] :
       llvm::zip_equal(some, timeOperators(context, *source.problem, some)))
    if (time > 0)
      samples.push_back(
          {source.predictor->getWork(*one.graph)[one.binding], time});
}

static Error writeModel(const MachineModel &model) {
  std::string path = MachineModel::getPath(model.cpu);
  if (path.empty())
    return createStringError("requires a cache directory, got neither "
                             "XDG_CACHE_HOME nor HOME");
  if (std::error_code code =
          llvm::sys::fs::create_directories(llvm::sys::path::parent_path(path)))
    return createStringError(code, "'" + path + "': " + code.message());
  return writeFile(path, [&](llvm::raw_ostream &stream) {
    stream << model.print();
    return Error::success();
  });
}

Error kas::runCalibrateSuite(mlir::MLIRContext &context,
                             const BenchSettings &settings,
                             BenchReport &report) {
  double begin = execution::monotonicSeconds();
  llvm::Expected<Target> target = getTarget();
  if (!target)
    return target.takeError();
  auto spaces =
      mlir::parseSourceString<mlir::ModuleOp>(calibrationSpaces, &context);
  if (!spaces)
    return createStringError("the spaces to learn from do not parse");
  std::vector<Source> sources = makeSources(*spaces, *target);
  std::vector<WorkSample> samples;
  auto isMore = [](const Source &source) {
    return source.next < source.operators.size();
  };
  do {
    for (Source &source : sources)
      measureSome(context, source, samples);
  } while (execution::monotonicSeconds() - begin < settings.seconds &&
           llvm::any_of(sources, isMore));
  MachineModel model = fitMachineModel(samples, target->cpu);
  if (Error error = writeModel(model))
    return error;
  std::vector<double> errors;
  for (const WorkSample &sample : samples)
    errors.push_back(
        std::abs(model.predict(sample.work) / sample.milliseconds - 1));
  llvm::sort(errors);
  auto print = [&](llvm::StringRef metric, double value, llvm::StringRef unit) {
    report.print({target->cpu, metric.str(), value, unit.str()});
  };
  print("operators", static_cast<double>(samples.size()), "");
  print("median_error", errors.empty() ? 0 : errors[errors.size() / 2], "");
  print("margin", model.margin, "");
  print("seconds", execution::monotonicSeconds() - begin, "s");
  return Error::success();
}
