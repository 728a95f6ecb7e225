//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How the lists of the search grow with the depth and with time, and what it
// costs to leave out what the search knows: the tables of
// research/reports/published-spaces.md.
//
//===----------------------------------------------------------------------===//

#include "KasBench.h"
#include "SearchSpaces.h"
#include "kas/Search/Core/Enumerator.h"
#include "kas/Search/Operators/GraphState.h"
#include "llvm/ADT/STLExtras.h"
#include <ctime>

using namespace kas;
using namespace kas::search;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

static double getCpuSeconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

static StringRef getSpace(StringRef name) {
  for (auto [spaceName, text] : benchSpaces)
    if (spaceName == name)
      return text;
  llvm_unreachable("no such space");
}

static void print(BenchReport &report, const Twine &name,
                  const Enumerator::Statistics &counts, double seconds) {
  auto printOne = [&](StringRef metric, double value, StringRef unit) {
    report.print({name.str(), metric.str(), value, unit.str()});
  };
  printOne("operators_total", static_cast<double>(counts.solutions), "");
  printOne("ways", static_cast<double>(counts.solutions + counts.duplicates),
           "");
  printOne("expansions", static_cast<double>(counts.expansions), "");
  printOne("cpu_seconds", seconds, "s");
}

namespace {
/// A complete list of a space, with other limits or less knowledge.
struct Case {
  StringRef space, name;
  /// 0: as in the space.
  unsigned depth = 0, merges = 0;
  GraphStateOptions options = {};
  bool useTable = false;
};
} // namespace

static Error measureCase(mlir::MLIRContext &context, const Case &one,
                         BenchReport &report) {
  auto problem = parseSearchProblem(context, getSpace(one.space));
  if (!problem)
    return problem.takeError();
  auto changed = std::make_shared<SearchProblem>(**problem);
  if (one.depth)
    changed->limits.depth = one.depth;
  if (one.merges)
    changed->limits.merge = one.merges;
  Enumerator::Options options;
  options.useTable = one.useTable;
  Enumerator enumerator(makeGraphState(changed, one.options), options);
  double begin = getCpuSeconds();
  auto status = enumerator.run();
  double seconds = getCpuSeconds() - begin;
  if (status != Enumerator::Status::Complete)
    return llvm::createStringError("the list of '" + one.name +
                                   "' needs more memory than is allowed");
  print(report, one.space + "/" + one.name, enumerator.getStatistics(),
        seconds);
  return Error::success();
}

static llvm::SmallVector<Case> getCases() {
  llvm::SmallVector<Case> cases;
  static constexpr StringRef depths[] = {"depth/8",  "depth/9",  "depth/10",
                                         "depth/11", "depth/12", "depth/13",
                                         "depth/14", "depth/15", "depth/16"};
  for (auto [index, name] : llvm::enumerate(depths))
    cases.push_back({"syno-resnet18", name, 8 + unsigned(index)});
  auto add = [&](StringRef space, StringRef name) -> Case & {
    return cases.emplace_back(Case{space, name});
  };
  add("syno-resnet18", "everything");
  add("syno-resnet18", "no-budget").options.useBudget = false;
  Case &table = add("syno-resnet18", "table");
  table.useTable = true;
  table.options.useOrdering = false;
  add("syno-resnet18", "no-twins").options.useTwins = false;
  GraphStateOptions &plain = add("syno-resnet18", "plain").options;
  plain.useOrdering = plain.useTwins = plain.useBudget = false;
  add("syno-test", "everything");
  GraphStateOptions &blind = add("syno-test", "no-distance").options;
  blind.useDistance = blind.useBudget = false;
  add("syno-test", "merges/4").merges = 4;
  return cases;
}

/// What is listed of the large space after so many CPU seconds.
static Error measureLarge(mlir::MLIRContext &context,
                          const BenchSettings &settings, BenchReport &report) {
  auto problem = parseSearchProblem(context, getSpace("large"));
  if (!problem)
    return problem.takeError();
  Enumerator enumerator(makeGraphState(*problem), {});
  double begin = getCpuSeconds();
  for (double wanted : {2, 4, 8, 16, 32, 60}) {
    double elapsed = getCpuSeconds() - begin;
    if (wanted > settings.seconds)
      break;
    Enumerator::Limits limits;
    while (elapsed < wanted) {
      limits.seconds = wanted - elapsed;
      if (enumerator.run(limits) != Enumerator::Status::Interrupted)
        return llvm::createStringError("the large space is at its end");
      elapsed = getCpuSeconds() - begin;
    }
    print(report, "large/seconds/" + Twine(unsigned(wanted)),
          enumerator.getStatistics(), elapsed);
  }
  return Error::success();
}

Error kas::runSearchGrowthSuite(mlir::MLIRContext &context,
                                const BenchSettings &settings,
                                BenchReport &report) {
  for (const Case &one : getCases())
    if (isSelected(settings, (one.space + "/" + one.name).str()))
      if (Error error = measureCase(context, one, report))
        return error;
  if (isSelected(settings, "large"))
    return measureLarge(context, settings, report);
  return Error::success();
}
