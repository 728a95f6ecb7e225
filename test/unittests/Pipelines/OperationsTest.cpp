//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every operation of linalg, tensor, arith, math and TOSA through the pipeline
// for CPUs: it computes what upstream's loops do, or is refused by name. A
// check takes a part of the cases that the seed draws; KAS_SLOW_TESTS all.
//
//===----------------------------------------------------------------------===//

#include "OperationCase.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cstdlib>

using namespace kas::pipelines;

namespace {

struct Limits {
  /// Cases of one check.
  size_t numCases;
  /// Operations that are refused, and those inside of other operations.
  std::set<std::string> refused, parts;
};

class OperationsTest : public testing::Test {
protected:
  OperationsTest() : runner(getSeed()), random(getSeed()) {}

  static uint64_t getSeed() {
    const char *seed = std::getenv("KAS_TEST_SEED");
    return seed ? std::strtoull(seed, nullptr, 10) : 1;
  }

  /// All operations have valid cases, but those that are parts of others.
  void checkComplete(const std::vector<OperationCase> &cases,
                     llvm::StringRef dialect, const Limits &limits) {
    std::set<std::string> names;
    for (const OperationCase &operation : cases) {
      std::string errors;
      EXPECT_TRUE(runner.isValid(operation, Form::Static, &errors))
          << operation.getText() << ": " << errors;
      names.insert(operation.name);
    }
    for (const std::string &name :
         getOperationNames(runner.getContext(), dialect))
      EXPECT_NE(names.count(name) > 0, limits.parts.count(name) > 0) << name;
  }

  void runCase(const OperationCase &operation, const Limits &limits) {
    SCOPED_TRACE(operation.getText());
    for (Form form : {Form::Static, Form::Dynamic, Form::Buffers}) {
      Outcome outcome = runner.run(operation, form,
                                   static_cast<unsigned>(draw(random, 1, 2)));
      ++counts[outcome.kind];
      bool isRefused = limits.refused.count(operation.name) > 0 ||
                       (form == Form::Dynamic &&
                        limits.refused.count(operation.name + " dynamic") > 0);
      if (outcome.kind == Outcome::Wrong)
        ADD_FAILURE() << "form " << int(form) << ": " << outcome.text;
      if (outcome.kind == Outcome::Refused)
        EXPECT_TRUE(isRefused) << "form " << int(form) << ": " << outcome.text;
      if (outcome.kind == Outcome::Equal)
        EXPECT_FALSE(isRefused) << "form " << int(form);
      if (outcome.kind == Outcome::Refused)
        EXPECT_TRUE(namesOperation(outcome.text, operation)) << outcome.text;
    }
  }

  /// Whether a message has the name of the operation, or of another of the
  /// text.
  static bool namesOperation(llvm::StringRef message,
                             const OperationCase &operation) {
    llvm::StringRef name = message.split('\'').second.split('\'').first;
    return name.contains('.') &&
           (name == operation.name ||
            llvm::StringRef(operation.body).contains(name));
  }

  void runAll(std::vector<OperationCase> cases, llvm::StringRef dialect,
              const Limits &limits) {
    checkComplete(cases, dialect, limits);
    std::shuffle(cases.begin(), cases.end(), random);
    if (!std::getenv("KAS_SLOW_TESTS") && cases.size() > limits.numCases)
      cases.resize(limits.numCases);
    if (const char *only = std::getenv("KAS_TEST_OPERATION"))
      llvm::erase_if(cases, [&](const OperationCase &operation) {
        return operation.name != only;
      });
    for (const OperationCase &operation : cases)
      runCase(operation, limits);
    llvm::outs() << cases.size() << " cases of " << dialect << ": "
                 << counts[Outcome::Equal] << " equal, "
                 << counts[Outcome::Refused] << " refused, "
                 << counts[Outcome::Wrong] << " wrong, "
                 << counts[Outcome::None] << " without the form\n";
  }

  OperationRunner runner;
  std::mt19937_64 random;
  std::map<Outcome::Kind, unsigned> counts;
};

} // namespace

TEST_F(OperationsTest, Linalg) {
  runAll(makeLinalgCases(runner, random), "linalg", {40, {}, {"linalg.yield"}});
}

TEST_F(OperationsTest, Tensor) {
  runAll(makeTensorCases(random), "tensor",
         {15, {"tensor.bitcast", "tensor.scatter"}, {"tensor.yield"}});
}

TEST_F(OperationsTest, Arith) {
  runAll(makeElementwiseCases(runner, "arith", random), "arith",
         {25,
          {},
          // Of f8, which has no arithmetic.
          {"arith.constant", "arith.scaling_extf", "arith.scaling_truncf"}});
}

TEST_F(OperationsTest, Math) {
  runAll(makeElementwiseCases(runner, "math", random), "math", {20, {}, {}});
}

TEST_F(OperationsTest, Tosa) {
  // Upstream has no lowering of them, or none of dynamic sizes.
  runAll(makeTosaCases(random), "tosa",
         {30,
          {"tosa.add_shape",
           "tosa.cast_from_block_scaled",
           "tosa.cast_to_block_scaled",
           "tosa.concat_shape",
           "tosa.custom",
           "tosa.dim",
           "tosa.div_ceil_shape",
           "tosa.div_floor_shape",
           "tosa.exp2_shape",
           "tosa.log2_ceil_shape",
           "tosa.log2_floor_shape",
           "tosa.matmul_t_block_scaled",
           "tosa.max_shape",
           "tosa.min_shape",
           "tosa.mod_shape",
           "tosa.mul_shape",
           "tosa.resize dynamic",
           "tosa.slice_shape",
           "tosa.sub_shape",
           "tosa.tile dynamic",
           "tosa.variable",
           "tosa.variable_read",
           "tosa.variable_write"},
          {"tosa.const_shape", "tosa.yield"}});
}
