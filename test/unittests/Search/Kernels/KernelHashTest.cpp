//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The canonical hash of kernels is exact: one for each class of isomorphic
// kernels.
//
//===----------------------------------------------------------------------===//

#include "KernelIsomorphism.h"
#include "KernelProblems.h"
#include "kas/Search/Core/CandidateSpace.h"
#include "llvm/ADT/MapVector.h"

using namespace kas;
using namespace kas::search;

namespace {

constexpr llvm::StringLiteral layer = R"(
kas.kernel canvas @layer<C, H | G, k> where [G divides C] (%in: [C | H]) -> [C | H]
    bindings [<C = 8, G = 2, H = 6, k = 3>, <C = 16, G = 2, H = 5, k = 1>] {
  kas.dag.output %in : [C | H]
}
)";

/// Two spatial dimensions, and variables may be spatial.
constexpr llvm::StringLiteral image = R"(
kas.kernel @image<C, H, W> (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 8, H = 6, W = 4>, <C = 16, H = 5, W = 3>] {
  kas.dag.output %in : [C | H, W]
}
)";

class KernelHashTest : public KernelProblemTest {
protected:
  std::shared_ptr<const KernelProblem>
  get(std::initializer_list<llvm::StringRef> steps, unsigned numSteps,
      bool repeats = false, llvm::StringRef text = layer) {
    KernelLimits limits;
    limits.minSteps = 1;
    limits.maxSteps = numSteps;
    limits.repeats = repeats;
    limits.neighbours = false;
    limits.steps.reset();
    for (llvm::StringRef step : steps)
      llvm::cantFail(parseKernelLimit((step + "=1").str(), limits));
    return parse(text, limits, /*groups=*/"");
  }

  /// Every kernel on every path, without any table or hash.
  static void visit(const State &state,
                    std::vector<std::shared_ptr<const KernelGraph>> &found) {
    if (state.isTerminal()) {
      found.push_back(
          std::static_pointer_cast<const KernelGraph>(state.getSolution()));
      return;
    }
    llvm::SmallVector<Move, 64> moves;
    state.getMoves(moves);
    for (Move move : moves) {
      std::unique_ptr<State> next = state.clone();
      next->apply(move);
      visit(*next, found);
    }
  }

  /// Classes of all kernels by the oracle; each has one hash of its own.
  static void check(std::vector<std::shared_ptr<const KernelGraph>> graphs,
                    size_t leastClasses) {
    llvm::MapVector<uint64_t, std::vector<std::shared_ptr<const KernelGraph>>>
        classes;
    for (const auto &graph : graphs) {
      auto &sameColours = classes[getColours(*graph)];
      bool isNew = true;
      for (const auto &other : sameColours) {
        bool areSame = KernelIsomorphism::areSame(*other, *graph);
        EXPECT_EQ(areSame, other->key() == graph->key());
        isNew &= !areSame;
      }
      if (isNew)
        sameColours.push_back(graph);
    }
    llvm::DenseSet<uint64_t> keys;
    size_t count = 0;
    for (auto &[colours, members] : classes)
      for (const auto &member : members) {
        ++count;
        EXPECT_TRUE(keys.insert(member->key()).second);
      }
    EXPECT_GE(count, leastClasses);
    EXPECT_GT(graphs.size(), count) << "nothing came on two paths";
  }
};

TEST_F(KernelHashTest, OneHashForEachClassOfSmallSpaces) {
  struct Case {
    std::initializer_list<llvm::StringRef> steps;
    unsigned numSteps;
    bool repeats;
    size_t leastClasses;
    llvm::StringRef text = layer;
  };
  for (const Case &one :
       {Case{{"fc", "relu", "abs", "add", "sub"}, 4, false, 50},
        Case{{"fc", "mul", "exp"}, 4, true, 20},
        Case{{"fc", "group", "max", "matmul"}, 4, false, 20},
        Case{{"fc", "unfold", "fold_mean", "add"}, 4, false, 20},
        Case{{"fc", "scale", "mul", "sub"}, 4, true, 50},
        Case{{"fc", "mix", "add"}, 3, false, 20, image},
        Case{{"fc", "mix", "relu"}, 4, true, 20, image}}) {
    std::vector<std::shared_ptr<const KernelGraph>> graphs;
    visit(*makeKernelState(get(one.steps, one.numSteps, one.repeats, one.text)),
          graphs);
    SCOPED_TRACE((*one.steps.begin()).str() + std::to_string(graphs.size()));
    check(std::move(graphs), one.leastClasses);
  }
}

/// Kernels of at most so many primitives.
class SampledKernelsTest : public KernelHashTest,
                           public testing::WithParamInterface<unsigned> {};

// No two of many sampled kernels are isomorphic: 5 000, with KAS_SLOW_TESTS a
// million, or as many as KAS_SAMPLED_KERNELS says.
TEST_P(SampledKernelsTest, AreDifferent) {
  unsigned count = std::getenv("KAS_SLOW_TESTS") ? 1000000 : 5000;
  if (const char *text = std::getenv("KAS_SAMPLED_KERNELS"))
    ASSERT_FALSE(llvm::StringRef(text).getAsInteger(10, count)) << text;
  KernelLimits limits;
  limits.maxSteps = GetParam();
  CandidateSpace::Options options;
  options.treeExpansions = 0;
  CandidateSpace space(makeKernelState(load("canvas-resnet18.mlir", limits)),
                       options);
  Random random(0);
  auto getKernel = [](const std::shared_ptr<const Solution> &solution) {
    return static_cast<const KernelGraph *>(solution.get());
  };
  // Kernels are large: their moves are kept.
  llvm::DenseMap<uint64_t, llvm::SmallVector<Path, 1>> byColours;
  uint64_t compared = 0, rollouts = 0;
  for (unsigned made = 0; made < count;) {
    Path path;
    // Few rollouts end without a kernel, or in one that was seen.
    ASSERT_LT(++rollouts, 2 * count + 1000);
    auto draw = space.draw(path, random);
    auto solution =
        draw == CandidateSpace::Draw::Found ? space.take(path) : nullptr;
    if (!solution)
      continue;
    ++made;
    auto &others = byColours[getColours(*getKernel(solution))];
    for (const Path &other : others) {
      ++compared;
      ASSERT_FALSE(KernelIsomorphism::areSame(
          *getKernel(space.getSolution(other)), *getKernel(solution)));
    }
    others.push_back(path);
  }
  RecordProperty("compared", std::to_string(compared));
}

INSTANTIATE_TEST_SUITE_P(Primitives, SampledKernelsTest,
                         testing::Values(6u, 12u), [](const auto &info) {
                           return std::to_string(info.param);
                         });

} // namespace
