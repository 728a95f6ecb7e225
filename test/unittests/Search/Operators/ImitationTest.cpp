//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Evaluators/Imitation.h"
#include "Problems.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/Library/Operators.h"
#include "kas/Reference/Evaluator.h"
#include "kas/Search/Evaluators/Evaluators.h"
#include "kas/Support/Random.h"
#include "mlir/IR/SymbolTable.h"

using namespace kas;
using namespace kas::library;
using namespace kas::reference;
using namespace kas::search;

namespace {

/// As the evaluator has it: fits that can be exact are.
ImitationOptions getExactOptions() {
  ImitationOptions options;
  options.sweeps = 20;
  options.ridge = options.tolerance = 1e-9;
  return options;
}

class ImitationTest : public ProblemTest {
protected:
  ImitationTest()
      : library(parseNamedOperators(&context)), builder(&context),
        scratch(mlir::ModuleOp::create(builder.getUnknownLoc())) {
    builder.setInsertionPointToStart(scratch->getBody());
  }

  OperatorOp lookup(llvm::StringRef name) {
    return mlir::SymbolTable(*library).lookup<OperatorOp>(name);
  }
  OperatorOp specialize(OperatorOp op, const Binding &binding) {
    return *kas::specialize(builder, op, binding, "concrete",
                            [&] { return op.emitError(); });
  }

  mlir::OwningOpRef<mlir::ModuleOp> library;
  mlir::OpBuilder builder;
  mlir::OwningOpRef<mlir::ModuleOp> scratch;
};

/// The outputs of the reference evaluator, on random data with random weights
/// that are those of all calls.
ImitationSamples evaluate(OperatorOp op, unsigned count, uint64_t seed) {
  OperatorShapes shapes = getShapes(op);
  auto fill = [](std::vector<float> &values, llvm::ArrayRef<int64_t> shape,
                 uint64_t seed) {
    values.resize(*getNumElements(shape));
    RandomStream random(seed);
    for (auto [index, value] : llvm::enumerate(values))
      value = random.normal(index);
  };
  std::vector<std::vector<float>> weights(shapes.weights.size());
  llvm::SmallVector<ReferenceTensor> tensors;
  for (auto [index, weight] : llvm::enumerate(weights)) {
    fill(weight, shapes.weights[index], index);
    tensors.push_back({shapes.weights[index], weight});
  }
  ImitationSamples samples;
  samples.count = count;
  for (unsigned sample = 0; sample < count; ++sample) {
    std::vector<float> data, output(*getNumElements(shapes.output));
    fill(data, shapes.data, 100 * seed + sample);
    EXPECT_TRUE(mlir::succeeded(
        evaluateOperator(op, {shapes.data, data}, tensors, output,
                         [&] { return op.emitError(); })));
    llvm::append_range(samples.data, data);
    llvm::append_range(samples.outputs, output);
  }
  return samples;
}

} // namespace

/// With the products of an operator itself nothing is left of what the
/// reference evaluator says it computes.
TEST_F(ImitationTest, ProductsAreWhatTheReferenceComputes) {
  for (auto [name, binding] : {
           std::pair<llvm::StringRef, Binding>("conv1d", {1, 3, 4, 8, 3}),
           {"conv1d_dilated", {1, 3, 4, 14, 3, 2, 2}},
           {"conv2d_depthwise_separable", {1, 3, 4, 5, 6, 3}},
           {"kernel_07923", {1, 2, 3, 4, 5, 3, 2}},
           {"average_pool2d", {1, 2, 4, 6, 2}},
           {"pixel_shuffle", {1, 2, 3, 4, 2}},
       }) {
    SCOPED_TRACE(name.str());
    OperatorOp op = specialize(lookup(name), binding);
    ProductList products = llvm::cantFail(getProducts(op));
    EXPECT_LT(getImitationError(products, evaluate(op, 8, 1),
                                evaluate(op, 8, 2), getExactOptions()),
              1e-9);
  }
}

/// Two independent readings of the same operator.
TEST_F(ImitationTest, ProductsOfAGraphAreThoseOfItsOperator) {
  for (llvm::StringRef text : {conv1d, strided, views}) {
    auto problem = parse(text);
    auto graphs = enumerate(problem);
    for (size_t index = 0; index < graphs.size();
         index += 1 + graphs.size() / 50) {
      OperatorOp op = buildOperator(builder, builder.getUnknownLoc(), "op",
                                    *problem, *graphs[index]);
      const Binding &binding = problem->bindings.back();
      ProductList one = llvm::cantFail(getProducts(specialize(op, binding)));
      ProductList other =
          llvm::cantFail(getProducts(*problem, *graphs[index], binding));
      EXPECT_EQ(one.begins, other.begins);
      EXPECT_EQ(one.data, other.data);
      EXPECT_EQ(one.weights, other.weights);
      EXPECT_EQ(one.weightSizes, other.weightSizes);
      EXPECT_EQ(one.dataSize, other.dataSize);
    }
  }
}

/// A depthwise convolution is a dense one, not the other way round.
TEST_F(ImitationTest, ErrorsSayWhichSideLacksWhat) {
  auto problem = parse(R"(
kas.space @mixed<N, C, L | k> [N, C unordered, L] from [N, C unordered, L]
    bindings [<N = 1, C = 4, L = 10, k = 3>]
    limits {depth = 5, reduce = 2, weights = 1, weight_takes = 0})");
  EvaluatorSettings settings;
  settings.problem = problem;
  settings.imitated = lookup("conv1d_depthwise");
  auto evaluator = llvm::cantFail(makeEvaluator("imitation", settings));
  unsigned same = 0, dense = 0;
  for (const auto &graph : enumerate(problem)) {
    Metrics metrics = llvm::cantFail(evaluator->evaluate(*graph));
    double missing = metrics.at("imitation_missing"),
           excess = metrics.at("imitation_excess");
    EXPECT_DOUBLE_EQ(metrics.at("imitation_error"), (missing + excess) / 2);
    if (metrics.at("imitation_error") < 1e-6) {
      EXPECT_EQ(graph->cost.params, 12u);
      ++same;
    } else if (missing < 1e-6) {
      EXPECT_GT(excess, 0.1);
      ++dense;
    }
  }
  EXPECT_EQ(same, 1u);
  EXPECT_GE(dense, 1u);
}
