//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// kas-prove-space: proves that the search lists every operator of a tiny space
// once, or shows where it does not.
//
//===----------------------------------------------------------------------===//

#include "LongList.h"
#include "SpaceProof.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include <map>

using namespace kas;
using namespace kas::search;
using namespace kas::test;

static llvm::cl::opt<std::string> inputFile(llvm::cl::Positional,
                                            llvm::cl::Required,
                                            llvm::cl::desc("<spaces.mlir>"));
static llvm::cl::opt<bool>
    searchOnly("search-only",
               llvm::cl::desc("Only look for operators that come twice"));
static llvm::cl::list<std::string> placesToCompare(
    "at", llvm::cl::desc("With -search-only: the bindings to compare at, "
                         "NAME=VALUE,...; the tiniest first"));
static llvm::cl::opt<unsigned>
    maxOperators("max-operators", llvm::cl::init(~0u),
                 llvm::cl::desc("With -at: stop after so many"));
static llvm::cl::opt<unsigned> maxPerReductions(
    "max-per-reductions", llvm::cl::init(~0u),
    llvm::cl::desc("With -at: so many of each multiset of reductions"));
static llvm::cl::opt<unsigned> maxStatesPerReductions(
    "max-states-per-reductions", llvm::cl::init(~0u),
    llvm::cl::desc("With -at: look at so many states for each of them"));
static llvm::cl::opt<bool> fingerprintsOnly(
    "fingerprints-only",
    llvm::cl::desc("With -at: compare nothing exactly, but print the groups "
                   "that share every fingerprint"));
static llvm::cl::opt<bool>
    allWeights("all-weights",
               llvm::cl::desc("Let brute force try redundant weights and those "
                              "that index any coordinate"));
static llvm::cl::opt<unsigned>
    numShown("show", llvm::cl::init(3),
             llvm::cl::desc("Operators to print of each kind"));

static void print(const SearchProblem &problem, const OperatorGraph &graph,
                  llvm::StringRef name, mlir::MLIRContext &context) {
  mlir::OpBuilder builder(&context);
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::ModuleOp::create(builder.getUnknownLoc());
  builder.setInsertionPointToEnd(module->getBody());
  llvm::outs() << buildOperator(builder, module->getLoc(), name, problem, graph)
               << "\n";
}

static std::string describe(const LimitSet &limits) {
  std::string text;
  for (unsigned limit = 0; limit < NumSearchLimits; ++limit)
    if (limits[limit])
      text += (text.empty() ? "" : " ") +
              getLimitName(static_cast<SearchLimit>(limit)).str();
  return text.empty() ? "none" : text;
}

static Binding parsePlace(llvm::StringRef text, const SymbolSet &symbols) {
  Binding binding(symbols.size(), 1);
  while (!text.empty()) {
    llvm::StringRef item;
    std::tie(item, text) = text.split(',');
    auto [name, value] = item.split('=');
    std::optional<unsigned> symbol = symbols.lookup(name);
    if (!symbol || value.getAsInteger(10, binding[*symbol]))
      llvm::report_fatal_error("expected NAME=VALUE,...",
                               /*gen_crash_diag=*/false);
  }
  return binding;
}

/// Whether no two operators that the search lists are the same.
static bool compareAt(SpaceOp space, mlir::MLIRContext &context) {
  auto problem =
      std::make_shared<const SearchProblem>(SearchProblem::get(space));
  std::vector<Binding> bindings;
  for (const std::string &text : placesToCompare)
    bindings.push_back(parsePlace(text, problem->symbols));
  llvm::outs() << "space @" << space.getSymName() << "\n";
  LongList list(problem,
                {maxOperators, maxPerReductions, maxStatesPerReductions});
  if (fingerprintsOnly) {
    auto groups = findUndecided(*problem, list, bindings, llvm::outs());
    for (const std::vector<size_t> &group : llvm::ArrayRef(groups).take_front(
             std::min<size_t>(numShown, groups.size()))) {
      llvm::outs() << "group of " << group.size() << "\n";
      for (size_t number : group)
        print(*problem, *list.getGraph(number),
              ("undecided_" + llvm::Twine(number)).str(), context);
    }
    llvm::outs() << "search: " << list.size()
                 << " operators, groups not decided: " << groups.size() << "\n";
    return groups.empty();
  }
  auto pairs = findDuplicates(*problem, list, bindings, llvm::outs());
  for (auto [a, b] : llvm::ArrayRef(pairs).take_front(
           std::min<size_t>(numShown, pairs.size()))) {
    print(*problem, *list.getGraph(a), "duplicate", context);
    print(*problem, *list.getGraph(b), "duplicate", context);
  }
  llvm::outs() << "search: " << list.size()
               << " operators, duplicates: " << pairs.size() << "\n";
  return pairs.empty();
}

/// Whether the search lists each class within its limits once.
static bool prove(SpaceOp space, mlir::MLIRContext &context) {
  auto problem =
      std::make_shared<const SearchProblem>(SearchProblem::get(space));
  std::optional<BruteForceOptions> options;
  if (!searchOnly)
    options = BruteForceOptions{!allWeights, allWeights};
  SpaceProof proof = proveSpace(problem, options);
  llvm::outs() << "space @" << space.getSymName() << "\n";
  if (options)
    llvm::outs() << "brute force: " << proof.statistics.operators
                 << " operators, "
                 << proof.count([](auto &c) { return c.isFound(); })
                 << " classes, "
                 << proof.count([](auto &c) { return c.isWithinLimits(); })
                 << " of them within the limits\n";
  llvm::outs() << "search: " << proof.listed.size() << " operators, "
               << proof.count([](auto &c) { return !c.listed.empty(); })
               << " classes\n";
  std::map<std::string, unsigned> outside;
  unsigned missing = 0, duplicates = 0, foreign = 0, unknown = 0;
  for (const OperatorClass &c : proof.classes) {
    if (c.listed.size() > 1) {
      if (duplicates++ < numShown)
        for (unsigned index : c.listed)
          print(*problem, *proof.listed[index], "duplicate", context);
    }
    if (c.isUnknown && !c.listed.empty() && unknown++ < numShown)
      print(*problem, *proof.listed[c.listed.front()], "unknown", context);
    if (options && !c.isFound() && foreign++ < numShown)
      print(*problem, *proof.listed[c.listed.front()], "foreign", context);
    if (c.isWithinLimits() && c.listed.empty() && missing++ < numShown)
      print(*problem, c.smallest, "missing", context);
    if (c.isFound() && !c.isWithinLimits()) {
      std::string limits = describe(c.violated);
      if (!c.listed.empty())
        limits = "listed in spite of " + limits;
      if (outside[limits]++ < numShown && numShown > 3)
        print(*problem, c.smallest, "outside: " + limits, context);
    }
  }
  llvm::outs() << "missing: " << missing << ", duplicates: " << duplicates
               << ", not found by brute force: " << foreign << "\n";
  if (unknown != 0)
    llvm::outs() << "listed with a rank that is not known: " << unknown << "\n";
  for (const auto &[limits, count] : outside)
    llvm::outs() << "outside: " << count << " " << limits << "\n";
  // A row of docs/internals/search-space-counts.md.
  if (options)
    llvm::outs() << "| `" << space.getSymName() << "` | "
                 << problem->limits.depth << " | " << proof.statistics.operators
                 << " | " << proof.count([](auto &c) { return c.isFound(); })
                 << " | "
                 << proof.count([](auto &c) { return c.isWithinLimits(); })
                 << " | " << proof.listed.size() << " | " << missing << " | "
                 << duplicates << " |\n";
  return missing + duplicates + foreign + unknown == 0;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  llvm::cl::ParseCommandLineOptions(argc, argv, "proofs of search spaces\n");
  mlir::MLIRContext context;
  context.loadDialect<KasDialect>();
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::parseSourceFile<mlir::ModuleOp>(inputFile, &context);
  if (!module)
    return 1;
  bool isProven = true;
  for (SpaceOp space : module->getOps<SpaceOp>())
    isProven &= placesToCompare.empty() ? prove(space, context)
                                        : compareAt(space, context);
  return isProven ? 0 : 1;
}
