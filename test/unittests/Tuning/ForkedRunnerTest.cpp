//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/ForkedRunner.h"
#include "TuningModules.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <csignal>
#include <unistd.h>

using namespace kas;
using namespace kas::tuning;

namespace {

class ForkedRunnerTest : public testing::Test {
protected:
  void SetUp() override {
    module = std::make_unique<TuningModule>(*context, makeMatmul(16, 32, 8));
    options.runs = 2;
    options.limitSeconds = 60;
    runner = llvm::cantFail(ForkedRunner::create(*module->tasks.front().module,
                                                 taskFunctionName, options));
  }

  std::unique_ptr<mlir::MLIRContext> context = makeTuningContext();
  std::unique_ptr<TuningModule> module;
  MeasureOptions options;
  std::unique_ptr<ForkedRunner> runner;
};

} // namespace

TEST_F(ForkedRunnerTest, TimesTheFunction) {
  StoredMeasurement measured = runner->measure([] {});
  EXPECT_EQ(measured.failure, "");
  EXPECT_GT(measured.ms, 0);
  EXPECT_GT(measured.compileMs, 0);
  EXPECT_DOUBLE_EQ(measured.ratio, measured.ms / measured.defaultMs);
}

TEST_F(ForkedRunnerTest, OutlivesCrashes) {
  EXPECT_EQ(runner->measure([] { ::raise(SIGSEGV); }).failure,
            "the worker died: Segmentation fault");
  EXPECT_EQ(runner->measure([] { ::_exit(3); }).failure,
            "the worker ended without an answer");
  EXPECT_EQ(runner->measure([] {}).failure, "");
}

TEST_F(ForkedRunnerTest, OutlivesHangs) {
  options.limitSeconds = 0.5;
  auto impatient = llvm::cantFail(ForkedRunner::create(
      *module->tasks.front().module, taskFunctionName, options));
  StoredMeasurement measured = impatient->measure([] {
    for (;;)
      ::pause();
  });
  EXPECT_EQ(measured.failure, "expected an end within 0.50 s, got none");
}

TEST_F(ForkedRunnerTest, ReportsWhatDoesNotCompile) {
  auto schedule =
      CPUScheduleAttr::get(context.get(), CPUStrategy::Panels, 0, 0, 0,
                           /*tile=*/5, 0);
  StoredMeasurement measured = runner->measure(
      [&] { module->device->set(module->tasks.front().anchor, schedule); });
  EXPECT_NE(measured.failure.find("expected a tile that divides the columns"),
            std::string::npos)
      << measured.failure;
}

/// A worker's results are compared: another constant is another sum.
TEST_F(ForkedRunnerTest, ReportsWrongResults) {
  StoredMeasurement measured = runner->measure([&] {
    module->tasks.front().module->walk([](mlir::arith::ConstantOp op) {
      mlir::Builder builder(op.getContext());
      op.setValueAttr(builder.getF32FloatAttr(1));
    });
  });
  EXPECT_EQ(measured.failure.find("expected results within 1.00e-04, got"), 0u)
      << measured.failure;
}
