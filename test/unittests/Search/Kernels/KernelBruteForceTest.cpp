//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The sampler's space is what brute force finds: no kernel is missing, none
// comes twice, none is beside it.
//
//===----------------------------------------------------------------------===//

#include "KernelBruteForce.h"
#include "KernelIsomorphism.h"
#include "KernelProblems.h"
#include "kas/Search/Core/Enumerator.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/MapVector.h"

using namespace kas;
using namespace kas::search;
using namespace kas::solver;

namespace {

constexpr llvm::StringLiteral layer = R"(
kas.kernel canvas @layer<C, H | G, k> where [G divides C] (%in: [C | H]) -> [C | H]
    bindings [<C = 44, G = 2, H = 7, k = 3>, <C = 52, G = 4, H = 6, k = 5>] {
  kas.dag.output %in : [C | H]
}
)";

/// The same without Theorem 1, so that variables may be spatial.
constexpr llvm::StringLiteral anyLayer = R"(
kas.kernel @layer<C, H | G, k> where [G divides C] (%in: [C | H]) -> [C | H]
    bindings [<C = 44, G = 2, H = 7, k = 3>, <C = 52, G = 4, H = 6, k = 5>] {
  kas.dag.output %in : [C | H]
}
)";

/// Classes of isomorphic kernels.
class KernelClasses {
public:
  struct Class {
    std::shared_ptr<const KernelGraph> kernel;
    unsigned numEmitted = 0;
  };

  /// The class of `graph`; null when there is none.
  Class *find(const KernelGraph &graph) {
    auto found = classes.find(getColours(graph));
    if (found != classes.end())
      for (Class &one : found->second)
        if (KernelIsomorphism::areSame(*one.kernel, graph))
          return &one;
    return nullptr;
  }
  /// Returns whether it is a new class.
  bool insert(const KernelGraph &graph) {
    if (find(graph))
      return false;
    auto kernel = std::make_shared<KernelGraph>();
    kernel->problem = graph.problem;
    kernel->nodes = graph.nodes;
    kernel->variables = graph.variables;
    classes[getColours(graph)].push_back({kernel, 0});
    ++count;
    return true;
  }
  size_t size() const { return count; }
  auto begin() { return classes.begin(); }
  auto end() { return classes.end(); }

private:
  llvm::MapVector<uint64_t, std::vector<Class>> classes;
  size_t count = 0;
};

struct Space {
  llvm::StringRef name;
  std::initializer_list<llvm::StringRef> steps;
  unsigned numSteps;
  bool repeats;
  /// How many of the classes have a free variable, and a tensor with several
  /// users, at least; so that the test says something about both.
  size_t leastClasses, leastFree, leastBranched;
  bool requiresTheorem = true;
};

class KernelBruteForceTest : public KernelProblemTest {
protected:
  std::shared_ptr<const KernelProblem> get(const Space &space) {
    KernelLimits limits;
    limits.minSteps = 1;
    limits.maxSteps = space.numSteps;
    limits.variables = 2;
    limits.repeats = space.repeats;
    limits.neighbours = false;
    limits.steps.reset();
    for (llvm::StringRef step : space.steps)
      llvm::cantFail(parseKernelLimit((step + "=1").str(), limits));
    return parse(space.requiresTheorem ? layer : anyLayer, limits,
                 /*groups=*/"");
  }

  /// The IR of the kernel verifies, and has the shapes that the kernel says.
  testing::AssertionResult isLegal(const KernelGraph &graph) {
    mlir::OpBuilder builder(&context);
    mlir::OwningOpRef<mlir::ModuleOp> module =
        mlir::ModuleOp::create(builder.getUnknownLoc());
    builder.setInsertionPointToEnd(module->getBody());
    KernelOp kernel = buildKernel(builder, builder.getUnknownLoc(), "k", graph);
    std::string text = print(kernel);
    if (failed(mlir::verify(*module)))
      return testing::AssertionFailure() << "does not verify: " << text;
    if (kernel.getCanvas() != graph.problem->requiresTheorem)
      return testing::AssertionFailure() << "is marked as it should not be";
    unsigned index = 1;
    for (mlir::Operation &op : kernel.getBody().front().without_terminator()) {
      auto type = cast<SymbolicTensorType>(op.getResult(0).getType());
      const TensorShape &shape = graph.nodes[index++].shape;
      if (type.getNumChannelDims() != shape.numChannelDims ||
          type.getDims().size() != shape.dims.size())
        return testing::AssertionFailure() << "other shapes: " << text;
      // Without variables sizes can be compared as they are.
      if (!graph.variables.empty())
        continue;
      TensorShape inferred = getShape(op.getResult(0), kernel.getSymbolSet());
      if (inferred.dims != shape.dims)
        return testing::AssertionFailure() << "other sizes: " << text;
    }
    return testing::AssertionSuccess();
  }

  void compare(const Space &space) {
    auto problem = get(space);
    KernelClasses classes;
    uint64_t numVisited = 0;
    size_t numFree = 0, numBranched = 0;
    test::enumerateKernelsByBruteForce(problem, [&](const KernelGraph &graph) {
      ++numVisited;
      if (!classes.insert(graph))
        return;
      EXPECT_TRUE(isLegal(graph));
      numFree += !graph.variables.empty();
      llvm::SmallVector<unsigned> users(graph.nodes.size(), 0);
      for (const KernelNode &node : graph.nodes)
        for (int operand : {node.left, node.right})
          if (operand >= 0)
            ++users[operand];
      numBranched += llvm::any_of(users, [](unsigned n) { return n > 1; });
    });
    EXPECT_GE(classes.size(), space.leastClasses);
    EXPECT_GE(numFree, space.leastFree);
    EXPECT_GE(numBranched, space.leastBranched);

    size_t numEmitted = 0, numBeside = 0, numTwice = 0, numMissing = 0;
    // One kernel of each kind says enough.
    auto report = [&](size_t &count, const KernelGraph &graph,
                      llvm::StringRef what) {
      if (count++ == 0)
        ADD_FAILURE() << what.str() << ": " << print(graph);
    };
    Enumerator::Options options;
    options.buildTree = false;
    Enumerator enumerator(makeKernelState(problem), options);
    auto status =
        enumerator.run({}, [&](llvm::ArrayRef<Move>, const State &state) {
          auto solution = state.getSolution();
          const auto &graph = static_cast<const KernelGraph &>(*solution);
          ++numEmitted;
          KernelClasses::Class *found = classes.find(graph);
          if (!found)
            report(numBeside, graph, "not found by brute force");
          else if (++found->numEmitted == 2)
            report(numTwice, graph, "emitted twice");
        });
    EXPECT_EQ(status, Enumerator::Status::Complete);
    for (auto &[colours, members] : classes)
      for (KernelClasses::Class &one : members)
        if (one.numEmitted == 0)
          report(numMissing, *one.kernel, "not emitted");
    EXPECT_EQ(numEmitted, classes.size());
    EXPECT_EQ(numBeside + numTwice + numMissing, 0u)
        << numBeside << " beside, " << numTwice << " twice, " << numMissing
        << " missing";
    RecordProperty(space.name.str(), std::to_string(classes.size()));
  }
};

TEST_F(KernelBruteForceTest, EveryClassIsEmittedOnce) {
  for (const Space &space : {Space{"branches",
                                   {"fc", "relu", "exp", "add", "sub"},
                                   4,
                                   false,
                                   3000,
                                   300,
                                   3000},
                             Space{"groups",
                                   {"fc", "group", "group_all", "max"},
                                   4,
                                   false,
                                   1000,
                                   150,
                                   900},
                             Space{"windows",
                                   {"fc", "unfold", "fold_mean", "mul"},
                                   4,
                                   false,
                                   800,
                                   150,
                                   700},
                             Space{"repeats",
                                   {"fc", "scale", "softmax", "min"},
                                   4,
                                   true,
                                   2500,
                                   300,
                                   2000},
                             Space{"weights",
                                   {"fc", "norm", "relu", "sub"},
                                   4,
                                   false,
                                   1300,
                                   100,
                                   1000},
                             Space{"maps",
                                   {"fc", "unfold", "mix", "relu", "add"},
                                   3,
                                   false,
                                   100,
                                   15,
                                   60},
                             Space{"spatial maps",
                                   {"fc", "mix", "shift", "add"},
                                   4,
                                   false,
                                   800,
                                   180,
                                   700,
                                   false},
                             Space{"free groups",
                                   {"fc", "group_all", "unfold", "mul"},
                                   4,
                                   false,
                                   800,
                                   150,
                                   700},
                             Space{"shifts",
                                   {"fc", "shift", "neg", "abs", "fold_max"},
                                   4,
                                   false,
                                   100,
                                   50,
                                   0}}) {
    SCOPED_TRACE(space.name.str());
    compare(space);
  }
}

} // namespace
