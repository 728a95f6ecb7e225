//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Problems of the kernel search for tests, and kernels drawn from them.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_SEARCH_KERNELS_KERNELPROBLEMS_H
#define TEST_UNITTESTS_SEARCH_KERNELS_KERNELPROBLEMS_H

#include "kas/Search/Core/RandomSearcher.h"
#include "kas/Search/Kernels/KernelState.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

namespace kas {

/// The problem of the only kernel in a text or a file.
class KernelProblemTest : public testing::Test {
protected:
  KernelProblemTest() { context.loadDialect<KasDialect>(); }

  std::shared_ptr<const search::KernelProblem>
  parse(llvm::StringRef text, const search::KernelLimits &limits = {},
        llvm::StringRef groups = "G") {
    return get(mlir::parseSourceString<mlir::ModuleOp>(text, &context), limits,
               groups);
  }
  std::shared_ptr<const search::KernelProblem>
  load(llvm::StringRef name, const search::KernelLimits &limits = {},
       llvm::StringRef groups = "G") {
    return get(
        mlir::parseSourceFile<mlir::ModuleOp>(
            (llvm::Twine(KAS_SPACES_DIRECTORY) + "/" + name).str(), &context),
        limits, groups);
  }

  /// Different kernels, drawn at random.
  static std::vector<std::shared_ptr<const search::KernelGraph>>
  sample(std::shared_ptr<const search::KernelProblem> problem, unsigned count,
         uint64_t seed = 0) {
    search::RandomSearcher::Options options;
    options.seed = seed;
    search::RandomSearcher searcher(makeKernelState(std::move(problem)),
                                    options);
    std::vector<std::shared_ptr<const search::KernelGraph>> graphs;
    for (const search::Candidate &candidate : searcher.ask(count))
      graphs.push_back(std::static_pointer_cast<const search::KernelGraph>(
          candidate.solution));
    return graphs;
  }

  static std::string print(KernelOp kernel) {
    std::string text;
    llvm::raw_string_ostream(text) << kernel;
    return text;
  }
  static std::string print(const search::KernelGraph &graph) {
    mlir::MLIRContext context;
    context.loadDialect<KasDialect>();
    mlir::OpBuilder builder(&context);
    mlir::OwningOpRef<mlir::ModuleOp> module =
        mlir::ModuleOp::create(builder.getUnknownLoc());
    builder.setInsertionPointToEnd(module->getBody());
    return print(buildKernel(builder, builder.getUnknownLoc(), "k", graph));
  }

  mlir::MLIRContext context;

private:
  static std::shared_ptr<const search::KernelProblem>
  get(mlir::OwningOpRef<mlir::ModuleOp> module,
      const search::KernelLimits &limits, llvm::StringRef groups) {
    auto kernels = module->getOps<KernelOp>();
    auto problem = search::KernelProblem::get(*kernels.begin(), limits, groups);
    EXPECT_TRUE(llvm::succeeded(problem));
    return std::make_shared<const search::KernelProblem>(std::move(*problem));
  }
};

} // namespace kas

#endif // TEST_UNITTESTS_SEARCH_KERNELS_KERNELPROBLEMS_H
