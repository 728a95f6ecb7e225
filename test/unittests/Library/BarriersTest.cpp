//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each barrier of each kind of kernel is needed, at sizes where the last block
// of steps lies where results go then: a shadow of workgroup memory finds that
// it is missing, whatever values come out.
//
//===----------------------------------------------------------------------===//

#include "OperatorsTestUtil.h"
#include "kas/Codegen/GPU/GPU.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/ExecutionEngine/JIT.h"
#include "kas/Library/Operators.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Pipelines/GPU/GPU.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace kas;
using namespace kas::codegen;
using namespace kas::execution;
using namespace kas::library;
using namespace mlir;

/// Compiles `module` without its barrier number `removed`, runs its function
/// `name`, all inputs zero, and returns what is said about it; nothing where it
/// has no such barrier.
static std::optional<std::string> runWithout(unsigned removed, ModuleOp module,
                                             StringRef name,
                                             const GPUFrontOptions &options) {
  PassManager front(module.getContext());
  buildGPUFrontHalf(front, options);
  EXPECT_TRUE(succeeded(front.run(module)));
  SmallVector<gpu::BarrierOp> barriers;
  module->walk([&](gpu::BarrierOp barrier) { barriers.push_back(barrier); });
  if (removed < barriers.size())
    barriers[removed].erase();
  PassManager onCPU(module.getContext());
  onCPU.addPass(createKasGPUToCPULoopsPass({/*checkRaces=*/true}));
  CPUPipelineOptions serial;
  serial.threads = 1;
  buildCPUPipeline(onCPU, serial);
  EXPECT_TRUE(succeeded(onCPU.run(module)));
  auto compiled = llvm::cantFail(CompiledModule::compile(module));
  auto function = llvm::cantFail(compiled->lookup(name));
  // More than the largest of the tensors, in f32.
  std::vector<std::vector<float>> buffers(3, std::vector<float>(1 << 16));
  std::vector<void *> pointers;
  for (std::vector<float> &buffer : buffers)
    pointers.push_back(buffer.data());
  std::string text = llvm::toString(execution::call(function, pointers.data()));
  if (removed < barriers.size())
    return text;
  EXPECT_EQ(text, "") << "with all " << barriers.size() << " barriers";
  return std::nullopt;
}

/// Calls `run` without each barrier in turn, and returns how many there are.
static unsigned
expectAllNeeded(llvm::function_ref<std::optional<std::string>(unsigned)> run) {
  unsigned number = 0;
  for (; auto text = run(number); ++number)
    EXPECT_NE(text->find("expected a barrier after a thread"),
              std::string::npos)
        << "barrier " << number << ": " << *text;
  return number;
}

namespace {
/// A kernel with barriers: an operator at some sizes, and how it is compiled.
struct KernelWithBarriers {
  StringRef name;
  formulas::Sizes sizes;
  StringRef device, type;
  GPUStrategyChoice strategy;
};
} // namespace

static std::optional<std::string> runWithout(unsigned removed,
                                             const KernelWithBarriers &kernel) {
  DialectRegistry registry;
  registerGPUPipelineDialects(registry);
  MLIRContext context(registry);
  OwningOpRef<ModuleOp> library = parseNamedOperator(&context, kernel.name);
  auto op = library->lookupSymbol<OperatorOp>(kernel.name);
  OpBuilder builder = OpBuilder::atBlockEnd(library->getBody());
  OperatorOp concrete =
      *specialize(builder, op, getTestBinding(op, kernel.sizes), "concrete",
                  [&] { return op.emitError(); });
  OwningOpRef<ModuleOp> module = createOperatorModule(concrete);
  return runWithout(
      removed, *module, operatorFunctionName,
      {.device = kernel.device.str(),
       .strategy = kernel.strategy,
       .precision = *symbolizeGPUPrecision(kernel.type),
       .elements =
           symbolizeGPUElements(kernel.type).value_or(GPUElements::F32)});
}

TEST(Barriers, OfOperatorsAreNeeded) {
  const KernelWithBarriers kernels[] = {
      {"matmul",
       {.N = 40, .M = 48, .K = 64},
       "sm_90",
       "f32",
       GPUStrategyChoice::Staged},
      // A product of a matrix and a vector: threads share its steps.
      {"linear",
       {.N = 1, .Cin = 96, .Cout = 40},
       "sm_90",
       "f32",
       GPUStrategyChoice::Auto},
      {"matmul",
       {.N = 40, .M = 48, .K = 32},
       "sm_80",
       "f16",
       GPUStrategyChoice::TensorCore},
      {"matmul",
       {.N = 40, .M = 48, .K = 32},
       "sm_90",
       "bf16",
       GPUStrategyChoice::TensorCore},
      {"matmul",
       {.N = 72, .M = 72, .K = 776},
       "sm_90a",
       "f16",
       GPUStrategyChoice::Warpgroup},
      {"conv2d_depthwise",
       {.N = 1, .C = 6, .H = 8, .W = 8, .k = 3},
       "sm_90",
       "f16",
       GPUStrategyChoice::Direct}};
  for (const KernelWithBarriers &kernel : kernels) {
    SCOPED_TRACE((kernel.name + " " + kernel.device + " " + kernel.type).str());
    EXPECT_GT(expectAllNeeded(
                  [&](unsigned number) { return runWithout(number, kernel); }),
              0u);
  }
}

// More points than threads, and then halves of 8 threads.
TEST(Barriers, AfterAPrologueAreNeeded) {
  constexpr StringRef text = R"(
#image = affine_map<(n, c, h, w) -> (n, c, h, w)>
#channels = affine_map<(n, c, h, w) -> (n, c)>
#row = affine_map<(n, o, c) -> (n, c)>
#weight = affine_map<(n, o, c) -> (o, c)>
#result = affine_map<(n, o, c) -> (n, o)>
#shared = #kas_gpu.schedule<strategy = direct, threads = 32, tile = [1, 1], depth = 8>
func.func @f(%x: tensor<2x24x3x3xf32>, %w: tensor<6x24xf32>) -> tensor<2x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x24xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x24xf32>) -> tensor<2x24xf32>
  %max = linalg.generic {indexing_maps = [#image, #channels],
                         iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x : tensor<2x24x3x3xf32>) outs(%f : tensor<2x24xf32>) attrs = {kas_gpu.prologue} {
  ^bb0(%in: f32, %out: f32):
    %s = arith.maximumf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<2x24xf32>
  %e1 = tensor.empty() : tensor<2x6xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<2x6xf32>) -> tensor<2x6xf32>
  %y = linalg.generic {indexing_maps = [#row, #weight, #result],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%max, %w : tensor<2x24xf32>, tensor<6x24xf32>) outs(%f1 : tensor<2x6xf32>)
      attrs = {kas_gpu.schedule = #shared} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<2x6xf32>
  return %y : tensor<2x6xf32>
})";
  DialectRegistry registry;
  registerGPUPipelineDialects(registry);
  MLIRContext context(registry);
  // That of the prologue, and one before each of three sums of halves.
  EXPECT_EQ(expectAllNeeded([&](unsigned number) {
              auto module = parseSourceString<ModuleOp>(text, &context);
              return runWithout(number, *module, "f", {.device = "sm_90"});
            }),
            4u);
}
