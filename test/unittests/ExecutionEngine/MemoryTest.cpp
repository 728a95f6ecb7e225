//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/Pipelines/CPU.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <malloc.h>
#include <unistd.h>

using namespace kas;
using namespace kas::execution;

namespace {

/// The address sanitizer keeps what is freed for a while.
#if __has_feature(address_sanitizer)
constexpr int64_t keptKiB = 512 << 10;
#else
constexpr int64_t keptKiB = 1 << 10;
#endif

/// KiB of this process in memory, without what the allocator keeps in store.
int64_t getResidentKiB() {
  malloc_trim(0);
  auto file = llvm::MemoryBuffer::getFileAsStream("/proc/self/statm");
  EXPECT_TRUE(bool(file));
  int64_t pages = 0;
  if (file)
    (*file)->getBuffer().split(' ').second.split(' ').first.getAsInteger(10,
                                                                         pages);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/// A matrix product of its own for each `columns`.
std::string makeProduct(int64_t columns) {
  std::string a = "tensor<32x48xf32>",
              b = "tensor<48x" + std::to_string(columns) + "xf32>",
              c = "tensor<32x" + std::to_string(columns) + "xf32>";
  return "func.func @f(%a: " + a + ", %b: " + b + ") -> " + c +
         " {\n %z = arith.constant 0.0 : f32\n %e = tensor.empty() : " + c +
         "\n %f = linalg.fill ins(%z : f32) outs(%e : " + c + ") -> " + c +
         "\n %r = linalg.matmul ins(%a, %b : " + a + ", " + b +
         ") outs(%f : " + c + ") -> " + c + "\n return %r : " + c + "\n}\n";
}

/// Compiles `number` functions that differ, in one context, and calls them.
void compileSome(mlir::MLIRContext &context, int64_t number) {
  for (int64_t i = 0; i < number; ++i) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(
        makeProduct(64 + 16 * (i % 5)), &context);
    ASSERT_TRUE(bool(module));
    CPUPipelineOptions pipeline;
    pipeline.threads = 1;
    auto function = compileForCPU(*module, "f", pipeline);
    ASSERT_TRUE(bool(function)) << llvm::toString(function.takeError());
    auto arguments =
        llvm::cantFail(function->getSignature().makeArguments({}, 1));
    auto results = llvm::cantFail(function->getSignature().makeResults());
    llvm::cantFail((*function)(arguments, results));
  }
}

TEST(MemoryTest, CompilationsReleaseTheirMemory) {
  mlir::DialectRegistry registry;
  registerCPUPipelineDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  // Tables that are built once, and what the context keeps of each function.
  compileSome(context, 10);
  int64_t before = getResidentKiB();
  int64_t number = std::getenv("KAS_SLOW_TESTS") ? 200 : 30;
  compileSome(context, number);
  int64_t growth = getResidentKiB() - before;
  RecordProperty("growth_kib", static_cast<int>(growth));
  EXPECT_LT(growth, keptKiB + number * 4) << number << " compilations";
}

} // namespace
