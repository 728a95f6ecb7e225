//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/GPU/DeviceRunner.h"
#include "TuningModules.h"
#include "kas/Codegen/GPU/GPU.h"
#include "kas/Pipelines/GPU/GPU.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <csignal>

using namespace kas;
using namespace kas::tuning;

namespace {

class DeviceRunnerTest : public testing::Test {
protected:
  void SetUp() override {
    mlir::DialectRegistry registry;
    registerGPUPipelineDialects(registry);
    context->appendDialectRegistry(registry);
    module = std::make_unique<TuningModule>(*context, makeMatmul(16, 32, 8));
    options.runs = 2;
    options.limitSeconds = 60;
    info = llvm::cantFail(readDeviceInfo("vulkan"));
    runner = llvm::cantFail(DeviceRunner::create(*module->tasks.front().module,
                                                 taskFunctionName, "vulkan",
                                                 info, options));
  }

  std::unique_ptr<mlir::MLIRContext> context = makeTuningContext();
  std::unique_ptr<TuningModule> module;
  MeasureOptions options;
  KasRtDeviceInfo info = {};
  std::unique_ptr<DeviceRunner> runner;
};

} // namespace

TEST_F(DeviceRunnerTest, TimesTheFunction) {
  StoredMeasurement measured = runner->measure([] {});
  EXPECT_EQ(measured.failure, "");
  EXPECT_GT(measured.ms, 0);
  EXPECT_GT(measured.defaultMs, 0);
  EXPECT_GT(measured.compileMs, 0);
  EXPECT_LT(measured.error, 1e-5);
}

TEST_F(DeviceRunnerTest, OutlivesCrashes) {
  EXPECT_EQ(runner->measure([] { ::raise(SIGSEGV); }).failure,
            "the worker died: Segmentation fault");
  EXPECT_EQ(runner->measure([] {}).failure, "");
}

TEST_F(DeviceRunnerTest, ReportsWrongResults) {
  StoredMeasurement measured = runner->measure([&] {
    module->tasks.front().module->walk([](mlir::arith::ConstantOp op) {
      mlir::Builder builder(op.getContext());
      op.setValueAttr(builder.getF32FloatAttr(1));
    });
  });
  EXPECT_TRUE(
      llvm::StringRef(measured.failure).starts_with("expected results within"))
      << measured.failure;
}

TEST(DeviceInfo, NeedsADevice) {
  llvm::Expected<KasRtDeviceInfo> info = readDeviceInfo("vulkan:99");
  ASSERT_FALSE(bool(info));
  EXPECT_NE(llvm::toString(info.takeError()).find("no device vulkan:99"),
            std::string::npos);
}
