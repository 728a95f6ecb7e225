//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes searchers by name, with their constants and the defaults of these.
//
// A constant is listed once, by a call of `Entries::add`: its name, where it is
// stored, its range and its description. The list serves to set constants, to
// check them, and to document them; defaults are those of the structs in the
// headers.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/MakeSearcher.h"
#include "kas/Search/Core/EvolutionSearcher.h"
#include "kas/Search/Core/ExhaustiveSearcher.h"
#include "kas/Search/Core/MCTSSearcher.h"
#include "kas/Search/Core/RandomSearcher.h"
#include "kas/Search/Core/SurrogateSearcher.h"
#include "kas/Support/NearName.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace kas;
using namespace kas::search;
using llvm::createStringError;
using llvm::StringLiteral;
using llvm::StringRef;

// In the order in which the documentation lists them.
static constexpr StringLiteral names[] = {"random",    "uniform", "exhaustive",
                                          "evolution", "mcts",    "surrogate"};

llvm::ArrayRef<StringLiteral> kas::search::getSearcherNames() { return names; }

namespace {

/// The options of all algorithms. One struct for all, so that entries can refer
/// to fields whatever the algorithm is.
struct AllOptions {
  CandidateSpace::Options space;
  SpaceSearcher::Options common;
  ExhaustiveSearcher::Options exhaustive;
  EvolutionSearcher::Options evolution;
  MCTSSearcher::Options mcts;
  SurrogateSearcher::Options surrogate;
};

/// A constant and where it is kept. `set` writes to the `AllOptions` that the
/// entry was made for, which must outlive it.
struct Entry {
  SearcherParameter parameter;
  std::function<void(double)> set;
};

class Entries {
public:
  /// Registers `value` under `name`. The default is the value at the time of
  /// the call; an integral field takes integers only.
  template <typename T>
  void add(StringLiteral name, T &value, double least, double most,
           StringLiteral description) {
    list.push_back({{name, description, static_cast<double>(value), least, most,
                     std::is_integral_v<T>},
                    [&value](double given) { value = static_cast<T>(given); }});
  }
  std::vector<Entry> list;
};

} // namespace

// The largest value of a count, well within 32 bits. Limits of states and bytes
// go to 1e15, which a double still holds exactly.
static constexpr double many = 1e9;

/// Constants of the space, which all algorithms have.
static void addSpaceEntries(AllOptions &options, Entries &entries) {
  CandidateSpace::Options &space = options.space;
  entries.add("tree-expansions", space.treeExpansions, 0, 1e15,
              "Build the live-state tree if it takes no more expansions");
  entries.add("tree-seconds", space.treeSeconds, 0, many,
              "The same in seconds; 0: no limit");
  entries.add("max-bytes", space.maxBytes, 0, 1e15,
              "The most memory for the tree and for marks");
  entries.add("table", space.useTable, 0, 1,
              "Keep a table of states while the tree is built");
  entries.add("draw-uniformly", space.drawUniformly, 0, 1,
              "With the tree, draw all candidates with the same probability");
  entries.add("expansions-per-rollout", space.expansionsPerRollout, 1, 1e15,
              "Without a tree, give a rollout up after so many states");
  entries.add("expansions-per-ask", options.common.expansionsPerAsk, 1, 1e15,
              "Without a tree, return after so many states");
}

/// See `EvolutionSearcher::Options`.
static void addEvolutionEntries(EvolutionSearcher::Options &options,
                                Entries &entries) {
  entries.add("population", options.population, 1, many,
              "Members of the population");
  entries.add("tournament", options.tournament, 1, many,
              "Members that are compared for each child");
  entries.add("keep", options.keep, 0, 1,
              "Probability that a later move of the parent is made again");
  entries.add("attempts", options.attempts, 1, many,
              "Depths that are tried for a child");
}

/// See `MCTSSearcher::Options`.
static void addMCTSEntries(MCTSSearcher::Options &options, Entries &entries) {
  entries.add("exploration", options.exploration, 0, many,
              "Factor of the confidence interval");
  entries.add("virtual-loss", options.virtualLoss, 0, many,
              "Loss of a visit in flight");
  entries.add("widening-factor", options.wideningFactor, 0, many,
              "Moves in play after one visit");
  entries.add("widening", options.widening, 0, 1,
              "Exponent of the moves in play");
  // Not 0: it is the weight of the records of the whole space in a quotient.
  entries.add("local-rave", options.localRave, 1e-9, many,
              "Records of a state that count as much as those of the space");
  entries.add("rave-noise", options.raveNoise, 0, 1,
              "Share of chance in which move comes next");
  entries.add("rave-equivalence", options.raveEquivalence, 0, many,
              "Visits after which a choice's own mean counts half");
  entries.add("rollouts", options.rollouts, 1, many,
              "Rollouts to choose a candidate from");
  entries.add("rollout-noise", options.rolloutNoise, 0, 1,
              "Share of proposals whose rollout is not chosen");
}

/// See `SurrogateSearcher::Options`.
static void addSurrogateEntries(SurrogateSearcher::Options &options,
                                Entries &entries) {
  entries.add("initial", options.initial, 1, many,
              "Candidates drawn at random at first");
  entries.add("pool", options.pool, 1, 1e6, "Candidates that are compared");
  entries.add("random-share", options.randomShare, 0, 1,
              "Share of proposals drawn at random later");
  entries.add("refit", options.refit, 0, many,
              "Growth of the outcomes after which there is a new model");
  entries.add("places", options.places, 0, 1000,
              "Depths up to which moves are features");
  entries.add("buckets", options.buckets, 0, 1e6,
              "Features that count moves by their hash");
  entries.add("trees", options.forest.trees, 1, 1e6, "Trees of the model");
  entries.add("min-leaf", options.forest.minLeaf, 1, many,
              "Fewest samples at a leaf");
  entries.add("feature-share", options.forest.featureShare, 0, 1,
              "Share of features tried at a split");
}

/// The space's options of the caller are the defaults, which parameters may
/// override.
static AllOptions getDefaults(StringRef algorithm,
                              const CandidateSpace::Options &space) {
  AllOptions options;
  options.space = space;
  // The others do better with more variety
  // (research/reports/search-algorithms.md).
  options.space.drawUniformly = algorithm == "uniform";
  return options;
}

/// `random` and `exhaustive` have no constants of their own.
static Entries getEntries(StringRef algorithm, AllOptions &options) {
  Entries entries;
  addSpaceEntries(options, entries);
  if (algorithm == "evolution")
    addEvolutionEntries(options.evolution, entries);
  else if (algorithm == "mcts")
    addMCTSEntries(options.mcts, entries);
  else if (algorithm == "surrogate")
    addSurrogateEntries(options.surrogate, entries);
  return entries;
}

/// Only the texts and defaults are used; `options` ends with this function.
std::vector<SearcherParameter>
kas::search::getSearcherParameters(StringRef algorithm) {
  AllOptions options = getDefaults(algorithm, {});
  std::vector<SearcherParameter> result;
  for (const Entry &entry : getEntries(algorithm, options).list)
    result.push_back(entry.parameter);
  return result;
}

/// Names of the release before, which are accepted but not listed.
static StringRef getCurrentName(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Case("expansions-per-walk", "expansions-per-rollout")
      .Case("walks", "rollouts")
      .Case("walk-noise", "rollout-noise")
      .Default(name);
}

/// Sets one `name=value`. Both errors list what was required: the range, or the
/// names with the nearest one.
static llvm::Error setParameter(const Entries &entries, StringRef algorithm,
                                StringRef text) {
  auto [name, value] = text.split('=');
  for (const Entry &entry : entries.list) {
    const SearcherParameter &parameter = entry.parameter;
    if (parameter.name != getCurrentName(name))
      continue;
    double number = 0;
    // `getAsDouble` accepts infinities and NaN.
    bool isNumber = !value.getAsDouble(number) && std::isfinite(number);
    if (!isNumber || number < parameter.least || number > parameter.most ||
        (parameter.isInteger && number != std::floor(number)))
      return createStringError("expected %s %g <= %s <= %g, got '%s'",
                               parameter.isInteger ? "an integer" : "a number",
                               parameter.least, parameter.name.str().c_str(),
                               parameter.most, value.str().c_str());
    entry.set(number);
    return llvm::Error::success();
  }
  auto known = llvm::map_to_vector(
      entries.list, [](const Entry &entry) { return entry.parameter.name; });
  return createStringError("expected a parameter of '" + algorithm + "' (" +
                           llvm::join(known, ", ") + "), got '" + name + "'" +
                           suggestNearName(name, known));
}

/// What all algorithms are given, in the place where this one looks.
template <typename Options>
static Options withCommon(Options options, const SpaceSearcher::Options &from) {
  static_cast<SpaceSearcher::Options &>(options) = from;
  return options;
}

/// `name` is known to be one of `names`; `random` and `uniform` are the same
/// class on different spaces.
static std::unique_ptr<Searcher>
makeKnown(StringRef name, std::unique_ptr<CandidateSpace> space,
          const AllOptions &options) {
  const SpaceSearcher::Options &common = options.common;
  if (name == "exhaustive")
    return std::make_unique<ExhaustiveSearcher>(
        std::move(space), withCommon(options.exhaustive, common));
  if (name == "evolution")
    return std::make_unique<EvolutionSearcher>(
        std::move(space), withCommon(options.evolution, common));
  if (name == "mcts")
    return std::make_unique<MCTSSearcher>(std::move(space),
                                          withCommon(options.mcts, common));
  if (name == "surrogate")
    return std::make_unique<SurrogateSearcher>(
        std::move(space), withCommon(options.surrogate, common));
  return std::make_unique<UniformSearcher>(std::move(space), common);
}

llvm::Expected<std::unique_ptr<Searcher>>
kas::search::makeSearcher(StringRef name, std::unique_ptr<State> root,
                          const SearcherSettings &settings,
                          llvm::ArrayRef<std::string> parameters) {
  auto known = llvm::to_vector_of<StringRef>(getSearcherNames());
  if (!llvm::is_contained(known, name))
    return createStringError("expected an algorithm (" +
                             llvm::join(known, ", ") + "), got '" + name + "'" +
                             suggestNearName(name, known));
  AllOptions options = getDefaults(name, settings.space);
  Entries entries = getEntries(name, options);
  for (const std::string &parameter : parameters)
    if (llvm::Error error = setParameter(entries, name, parameter))
      return error;
  options.common.seed = settings.seed;
  // Searchers maximize a reward, objectives are minimized. Captured by value:
  // the settings end with this call.
  if (settings.objective)
    options.common.reward = [objective =
                                 settings.objective](const Metrics &metrics) {
      return -objective(metrics);
    };
  options.exhaustive.cost = settings.cost;
  // Plain rollouts are what a random search is.
  if (name == "random")
    options.space.treeExpansions = 0;
  // A tree that the caller has is used as it is, which saves the enumeration.
  auto space =
      settings.tree && name != "random"
          ? std::make_unique<CandidateSpace>(std::move(root), options.space,
                                             settings.tree)
          : std::make_unique<CandidateSpace>(std::move(root), options.space);
  return makeKnown(name, std::move(space), options);
}
