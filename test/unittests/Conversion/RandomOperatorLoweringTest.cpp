//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random operators mean the same by the reference evaluator, by affine loops
// and by linalg.
//
//===----------------------------------------------------------------------===//

#include "Comparison.h"
#include "LoweringTest.h"
#include "kas/Conversion/KasToAffine.h"
#include "kas/Conversion/KasToLinalg.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::execution;
using namespace kas::reference;
using namespace kas::test;
using namespace mlir;

namespace {
struct Case {
  uint64_t seed;
  std::string text;
  OperatorOp op;
  std::string function;
};

/// Operators that are compiled together: starting LLVM for each of them takes
/// most of the time.
class Batch {
public:
  explicit Batch(MLIRContext *context)
      : module(ModuleOp::create(UnknownLoc::get(context))) {}

  void add(uint64_t seed) {
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    RandomOperator random =
        makeRandomOperator(builder, "f" + std::to_string(seed), seed);
    Case &added = cases.emplace_back();
    added.seed = seed;
    added.text = describe(random);
    added.op = makeConcrete(random.op, random.binding);
    random.op->erase();
    added.function = "run" + std::to_string(seed);
    addFunction(added);
  }

  /// Lowers a copy of the functions, compiles and runs them, and compares with
  /// the reference.
  void check(StringRef strategy,
             llvm::function_ref<LogicalResult(RewriterBase &, ApplyOp)> lower) {
    OwningOpRef<ModuleOp> lowered = module->clone();
    SmallVector<ApplyOp> applies;
    lowered->walk([&](ApplyOp apply) { applies.push_back(apply); });
    IRRewriter rewriter(lowered->getContext());
    for (ApplyOp apply : applies)
      ASSERT_TRUE(succeeded(lower(rewriter, apply)));
    std::unique_ptr<CompiledModule> compiled;
    ASSERT_NO_FATAL_FAILURE(compile(*lowered, compiled));
    for (Case &tested : cases) {
      auto function = compiled->lookup(tested.function);
      ASSERT_TRUE(bool(function)) << llvm::toString(function.takeError());
      run(tested, *function, strategy);
    }
  }

  const ComparisonCounts &getCounts() const { return counts; }

private:
  void addFunction(Case &added) {
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    Location loc = builder.getUnknownLoc();
    OperatorShapes shapes = getShapes(added.op);
    auto getType = [&](ArrayRef<int64_t> shape) -> Type {
      return RankedTensorType::get(shape, builder.getF32Type());
    };
    SmallVector<Type> types{getType(shapes.data)};
    for (ArrayRef<int64_t> shape : shapes.weights)
      types.push_back(getType(shape));
    auto function = func::FuncOp::create(
        builder, loc, added.function,
        builder.getFunctionType(types, getType(shapes.output)));
    Block *body = function.addEntryBlock();
    builder.setInsertionPointToEnd(body);
    auto apply = ApplyOp::create(
        builder, loc, getType(shapes.output),
        FlatSymbolRefAttr::get(added.op.getSymNameAttr()),
        BindingAttr::get(builder.getContext(), {}, {}), body->getArgument(0),
        body->getArguments().drop_front());
    func::ReturnOp::create(builder, loc, apply.getResult());
  }

  void run(Case &tested, CompiledModule::Function function,
           StringRef strategy) {
    SCOPED_TRACE(strategy.str() + ", seed " + std::to_string(tested.seed) +
                 "\n" + tested.text);
    compareWithReference(
        tested.op, tested.seed, {}, counts, [&](Inputs inputs) {
          std::vector<float> actual(*getNumElements(inputs.shapes.output),
                                    std::numeric_limits<float>::quiet_NaN());
          SmallVector<void *> pointers{inputs.data.data()};
          for (std::vector<float> &weight : inputs.weights)
            pointers.push_back(weight.data());
          pointers.push_back(actual.data());
          llvm::cantFail(execution::call(function, pointers.data()));
          return actual;
        });
  }

  OwningOpRef<ModuleOp> module;
  std::vector<Case> cases;
  ComparisonCounts counts;
};

/// Whether an indexing map of linalg has floordiv or mod in it.
bool hasDivision(ModuleOp module) {
  bool found = false;
  module.walk([&](linalg::LinalgOp op) {
    for (AffineMap map : op.getIndexingMapsArray())
      map.walkExprs([&](AffineExpr expr) {
        found |= expr.getKind() == AffineExprKind::FloorDiv ||
                 expr.getKind() == AffineExprKind::CeilDiv ||
                 expr.getKind() == AffineExprKind::Mod;
      });
  });
  return found;
}

class RandomOperatorLoweringTest : public LoweringTest {
protected:
  void forEachBatch(llvm::function_ref<void(Batch &)> body) {
    constexpr unsigned batchSize = 25;
    unsigned count = getNumOperators(200, 1000);
    for (unsigned first = 0; first < count && !HasFailure();
         first += batchSize) {
      Batch batch(&context);
      for (unsigned i = 0; i < batchSize; ++i)
        batch.add(getFirstSeed() + first + i);
      body(batch);
      batch.getCounts().check();
    }
  }
};
} // namespace

TEST_F(RandomOperatorLoweringTest, LinalgEqualsReference) {
  unsigned lowered = 0, left = 0;
  for (bool namedOps : {true, false}) {
    LinalgOptions options;
    options.namedOps = namedOps;
    forEachBatch([&](Batch &batch) {
      batch.check("linalg", [&](RewriterBase &rewriter, ApplyOp apply) {
        auto module = apply->getParentOfType<ModuleOp>();
        std::string reason;
        if (succeeded(convertToLinalg(rewriter, apply, options, reason))) {
          ++lowered;
          EXPECT_FALSE(hasDivision(module));
          return success();
        }
        EXPECT_NE(reason, "");
        ++left;
        return convertToAffine(rewriter, apply);
      });
    });
  }
  // About a quarter mixes max with other reductions or clips under it.
  EXPECT_GT(lowered, 2 * left);
  RecordProperty("lowered", std::to_string(lowered));
  RecordProperty("left", std::to_string(left));
}
