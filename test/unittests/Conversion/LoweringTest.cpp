//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===

#include "LoweringTest.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Pipelines/CPU.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

using namespace kas;
using namespace kas::execution;
using namespace kas::test;
using namespace mlir;

LoweringTest::LoweringTest() {
  DialectRegistry registry;
  registry.insert<KasDialect>();
  registerCPUPipelineDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
}

void kas::test::compile(ModuleOp module,
                        std::unique_ptr<CompiledModule> &compiled) {
  ASSERT_TRUE(succeeded(verify(module)));
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  manager.enableVerifier(false);
  CPUPipelineOptions pipeline;
  pipeline.threads = 1;
  buildCPUPipeline(manager, pipeline);
  ASSERT_TRUE(succeeded(manager.run(module)));
  JITOptions jit;
  jit.optLevel = 0;
  auto result = CompiledModule::compile(module, jit);
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  compiled = std::move(*result);
}
