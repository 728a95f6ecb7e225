//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One seed gives one sequence of candidates: twice in a row, with any number
// of threads where nothing is learned, and in every build (Sequences.txt).
//
//===----------------------------------------------------------------------===//

#include "Problems.h"
#include "kas/Search/Core/Driver.h"
#include "kas/Search/Core/MakeSearcher.h"
#include "kas/Search/Evaluators/Evaluators.h"
#include "kas/Search/Operators/OperatorPrinter.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstdlib>

using namespace kas;
using namespace kas::search;

namespace {

constexpr struct {
  llvm::StringLiteral name, text;
} sequenceSpaces[] = {
    {"conv1d", conv1d}, {"strided", strided}, {"views", views}};

class SequenceTest : public ProblemTest {};

/// FNV-1a of 64 bits.
uint64_t hashText(llvm::StringRef text) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (unsigned char character : text.bytes())
    hash = (hash ^ character) * 0x100000001b3ull;
  return hash;
}

} // namespace

/// Every candidate in the order of proposal: its IR, parent and metrics.
static std::string runToText(std::shared_ptr<const SearchProblem> problem,
                             llvm::StringRef algorithm, uint64_t seed,
                             unsigned threads = 1,
                             std::vector<std::string> parameters = {}) {
  SearcherSettings settings;
  settings.seed = seed;
  settings.objective = [](const Metrics &metrics) {
    return metrics.at("flops") + metrics.at("params");
  };
  if (algorithm == "surrogate")
    parameters.push_back("trees=4");
  auto searcher = llvm::cantFail(
      makeSearcher(algorithm, makeGraphState(problem), settings, parameters));
  EvaluatorSettings evaluatorSettings;
  evaluatorSettings.problem = problem;
  auto flops = llvm::cantFail(makeEvaluator("flops", evaluatorSettings));
  auto params = llvm::cantFail(makeEvaluator("params", evaluatorSettings));
  SearchLimits limits;
  limits.evaluations = 25;
  limits.threads = threads;
  OperatorPrinter printer(problem);
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (const SearchResult &result :
       runSearch(*searcher, {flops.get(), params.get()}, limits)) {
    stream << result.candidate.id << " of "
           << (result.candidate.parent
                   ? std::to_string(*result.candidate.parent)
                   : "none");
    for (const auto &[name, value] : std::get<Metrics>(result.outcome))
      stream << " " << name << llvm::formatv(" {0}", value);
    stream << "\n"
           << printer.print(static_cast<const OperatorGraph &>(
                  *result.candidate.solution));
  }
  return text;
}

TEST_F(SequenceTest, RepeatsWithItsSeed) {
  for (const auto &[name, text] : sequenceSpaces)
    for (llvm::StringRef algorithm : getSearcherNames()) {
      SCOPED_TRACE((name + " " + algorithm).str());
      std::string first = runToText(parse(text), algorithm, 1);
      EXPECT_EQ(runToText(parse(text), algorithm, 1), first);
      EXPECT_FALSE(first.empty());
    }
}

/// Rollouts that know nothing of the space before they start.
TEST_F(SequenceTest, RepeatsWithoutATree) {
  for (llvm::StringRef algorithm : getSearcherNames()) {
    SCOPED_TRACE(algorithm.str());
    if (algorithm == "exhaustive" || algorithm == "uniform")
      continue;
    std::string first =
        runToText(parse(conv1d), algorithm, 1, 1, {"tree-expansions=0"});
    EXPECT_EQ(runToText(parse(conv1d), algorithm, 1, 1, {"tree-expansions=0"}),
              first);
    EXPECT_FALSE(first.empty());
  }
}

TEST_F(SequenceTest, IsThatOfAnyNumberOfThreadsWhereNothingIsLearned) {
  for (llvm::StringRef algorithm : {"random", "uniform", "exhaustive"}) {
    SCOPED_TRACE(algorithm.str());
    EXPECT_EQ(runToText(parse(conv1d), algorithm, 1, 2),
              runToText(parse(conv1d), algorithm, 1));
  }
}

/// `space algorithm seed hash` by line; the same in every build. After a change
/// of the rules or of an algorithm: KAS_WRITE_SEQUENCES=1 writes the file.
TEST_F(SequenceTest, IsThatOfOtherBuilds) {
  std::string lines;
  llvm::raw_string_ostream stream(lines);
  for (const auto &[name, text] : sequenceSpaces)
    for (llvm::StringRef algorithm : getSearcherNames())
      for (uint64_t seed : {1, 2, 3})
        stream << name << " " << algorithm << " " << seed << " "
               << llvm::utohexstr(
                      hashText(runToText(parse(text), algorithm, seed)))
               << "\n";
  if (std::getenv("KAS_WRITE_SEQUENCES")) {
    std::error_code error;
    llvm::raw_fd_ostream(KAS_SEQUENCES, error) << lines;
    ASSERT_FALSE(error) << error.message();
  }
  auto golden = llvm::MemoryBuffer::getFile(KAS_SEQUENCES);
  ASSERT_TRUE(golden) << "no " KAS_SEQUENCES;
  EXPECT_EQ(lines, (*golden)->getBuffer().str());
}
