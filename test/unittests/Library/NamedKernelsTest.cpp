//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The named kernels against their formulas, by the reference evaluator, on the
// CPU and with Vulkan; their costs; their text.
//
//===----------------------------------------------------------------------===//

#include "KernelFormulas.h"
#include "kas/Conversion/KasKernelToLinalg.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/Library/Operators.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Reference/KernelEvaluator.h"
#include "kas/Support/Features.h"
#include "kas/Support/Random.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <limits>
#include <set>
#if KAS_ENABLE_GPU
#include "GPUPrograms.h"
#endif

using namespace kas;
using namespace kas::execution;
using namespace kas::library;
using namespace kas::reference;
using namespace mlir;
using formulas::KernelFormula;
using formulas::KernelSizes;
using formulas::List;

namespace {

/// A kernel of the library at some sizes.
struct BoundKernel {
  OwningOpRef<ModuleOp> module;
  KernelOp kernel;
  Binding binding;
};

BoundKernel bind(MLIRContext &context, const std::string &name,
                 const KernelSizes &sizes) {
  BoundKernel bound;
  bound.module = parseNamedKernel(&context, name);
  bound.kernel = *bound.module->getOps<KernelOp>().begin();
  SymbolSet symbols = bound.kernel.getSymbolSet();
  EXPECT_EQ(sizes.size(), symbols.size());
  for (unsigned i = 0; i < symbols.size(); ++i)
    bound.binding.push_back(sizes.at(symbols.getName(i).str()));
  return bound;
}

/// Random values for the input, then for the weights.
struct KernelValues {
  KernelValues(BoundKernel &bound, uint64_t seed)
      : shapes(*getShapes(bound.kernel, bound.binding,
                          [&] { return bound.kernel.emitError(); })) {
    RandomStream stream(seed);
    uint64_t next = 0;
    auto add = [&](ArrayRef<int64_t> shape) {
      std::vector<float> &list = values.emplace_back(*getNumElements(shape));
      for (float &value : list)
        value = stream.normal(next++);
    };
    add(shapes.inputs.front());
    for (ArrayRef<int64_t> shape : shapes.weights)
      add(shape);
  }

  SmallVector<ReferenceTensor> getWeights() const {
    SmallVector<ReferenceTensor> weights;
    for (auto [shape, list] :
         llvm::zip_equal(shapes.weights, llvm::drop_begin(values)))
      weights.push_back({shape, list});
    return weights;
  }

  List compute(const KernelFormula &formula, const KernelSizes &sizes) const {
    auto toList = [](const std::vector<float> &list) {
      return List(list.begin(), list.end());
    };
    std::vector<List> weights;
    for (const std::vector<float> &list : llvm::drop_begin(values))
      weights.push_back(toList(list));
    return formula.compute(sizes, toList(values.front()), weights);
  }

  KernelShapes shapes;
  std::vector<std::vector<float>> values;
};

void expectClose(ArrayRef<float> actual, const List &expected,
                 double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  double largest = 0;
  for (double value : expected)
    largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], tolerance * largest) << "at " << i;
}

class NamedKernelsTest : public testing::TestWithParam<KernelFormula> {
protected:
  NamedKernelsTest() {
    DialectRegistry registry;
    registry.insert<KasDialect>();
    registerCPUPipelineDialects(registry);
#if KAS_ENABLE_GPU
    registerGPUPipelineDialects(registry);
#endif
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }
  MLIRContext context;
};

TEST_P(NamedKernelsTest, ReferenceEqualsFormula) {
  for (const KernelSizes &sizes : GetParam().sizes) {
    BoundKernel bound = bind(context, GetParam().name, sizes);
    KernelValues values(bound, 1);
    std::vector<float> output(*getNumElements(values.shapes.output));
    ASSERT_TRUE(succeeded(
        evaluateKernel(bound.kernel, bound.binding,
                       {{values.shapes.inputs.front(), values.values.front()}},
                       values.getWeights(), output,
                       [&] { return bound.kernel.emitError(); })));
    expectClose(output, values.compute(GetParam(), sizes), 1e-6);
  }
}

TEST_P(NamedKernelsTest, CPUEqualsFormula) {
  const KernelSizes &sizes = GetParam().sizes.front();
  BoundKernel bound = bind(context, GetParam().name, sizes);
  KernelValues values(bound, 2);
  OpBuilder builder(bound.kernel);
  ASSERT_TRUE(succeeded(
      createKernelFunction(builder, bound.kernel, bound.binding, "run")));
  bound.kernel.erase();
  CPUPipelineOptions pipeline;
  pipeline.threads = 1;
  JITOptions jit;
  jit.optLevel = 0;
  auto function = compileForCPU(*bound.module, "run", pipeline, jit);
  ASSERT_TRUE(bool(function)) << llvm::toString(function.takeError());
  auto arguments = function->getSignature().makeArguments({}, 0);
  ASSERT_TRUE(bool(arguments)) << llvm::toString(arguments.takeError());
  for (auto [argument, list] : llvm::zip_equal(*arguments, values.values))
    llvm::copy(list, argument.getValues().begin());
  auto results = function->getSignature().makeResults();
  ASSERT_TRUE(bool(results)) << llvm::toString(results.takeError());
  llvm::cantFail((*function)(*arguments, *results));
  expectClose(results->front().getValues(), values.compute(GetParam(), sizes),
              1e-5);
}

#if KAS_ENABLE_GPU
// On Mesa's lavapipe where there is no other device, with the validation layer:
// all of a kernel, with softmax, norms and functions, is on the device.
TEST_P(NamedKernelsTest, VulkanEqualsFormula) {
  const KernelSizes &sizes = GetParam().sizes.front();
  BoundKernel bound = bind(context, GetParam().name, sizes);
  KernelValues values(bound, 2);
  OpBuilder builder(bound.kernel);
  ASSERT_TRUE(succeeded(
      createKernelFunction(builder, bound.kernel, bound.binding, "run")));
  bound.kernel.erase();
  auto program = compileForSPIRV(*bound.module);
  ASSERT_TRUE(bool(program)) << llvm::toString(program.takeError());
  EXPECT_EQ(test::validateSPIRV(*program), "");
  SmallVector<ArrayRef<float>> arguments(values.values.begin(),
                                         values.values.end());
  auto results = test::runOnVulkan(*program, 0, arguments);
  ASSERT_TRUE(bool(results)) << llvm::toString(results.takeError());
  expectClose(results->front(), values.compute(GetParam(), sizes), 1e-5);
}
#endif

/// Along the last dimension: what follows a position is NaN, which every output
/// that reads it gets.
TEST_P(NamedKernelsTest, LooksBackOnly) {
  StringRef name = GetParam().name;
  bool isCausal = name.starts_with("causal") || name == "minimal_gru";
  BoundKernel bound = bind(context, GetParam().name, GetParam().sizes.front());
  KernelValues values(bound, 3);
  ArrayRef<int64_t> shape = values.shapes.inputs.front();
  auto evaluate = [&](ArrayRef<float> input) {
    std::vector<float> output(*getNumElements(values.shapes.output));
    EXPECT_TRUE(succeeded(evaluateKernel(
        bound.kernel, bound.binding, {{shape, input}}, values.getWeights(),
        output, [&] { return bound.kernel.emitError(); })));
    return output;
  };
  std::vector<float> before = evaluate(values.values.front());
  int64_t length = shape.back();
  unsigned numChanged = 0;
  for (int64_t last = 0; last + 1 < length; ++last) {
    std::vector<float> input = values.values.front();
    for (size_t i = 0; i < input.size(); ++i)
      if (int64_t(i) % length > last)
        input[i] = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> after = evaluate(input);
    for (size_t i = 0; i < after.size(); ++i)
      numChanged += int64_t(i) % length <= last && after[i] != before[i];
  }
  EXPECT_EQ(numChanged == 0, isCausal) << numChanged;
}

TEST_P(NamedKernelsTest, Costs) {
  BoundKernel bound = bind(context, GetParam().name, GetParam().costSizes);
  SymbolSet symbols = bound.kernel.getSymbolSet();
  auto sum = [&](ArrayRef<SizeProduct> products) {
    int64_t total = 0;
    for (const SizeProduct &product : products) {
      int64_t points = product.factor;
      for (SizeAttr size : product.sizes)
        points *= *kas::evaluate(size, symbols, bound.binding);
      total += points;
    }
    return total;
  };
  int64_t flops = 0, params = 0;
  for (auto op : bound.kernel.getBody().getOps<DagOpInterface>()) {
    flops += sum(op.getFlops());
    params += sum(op.getParams());
  }
  EXPECT_EQ(flops, GetParam().flops);
  EXPECT_EQ(params, GetParam().params);
}

INSTANTIATE_TEST_SUITE_P(Library, NamedKernelsTest,
                         testing::ValuesIn(formulas::getKernelFormulas()),
                         [](const testing::TestParamInfo<KernelFormula> &info) {
                           return info.param.name;
                         });

//===----------------------------------------------------------------------===//
// The library as text
//===----------------------------------------------------------------------===//

TEST(NamedKernels, AllHaveAFormula) {
  std::vector<KernelFormula> list = formulas::getKernelFormulas();
  ASSERT_EQ(getNamedKernels().size(), list.size());
  for (auto [kernel, formula] : llvm::zip_equal(getNamedKernels(), list))
    EXPECT_EQ(kernel.name, formula.name);
}

TEST(NamedKernels, AreFoundUnderBothSpellings) {
  for (const NamedOperator &kernel : getNamedKernels()) {
    EXPECT_EQ(lookupNamedKernel(kernel.name), &kernel);
    EXPECT_EQ(lookupNamedKernel(("kas." + kernel.name).str()), &kernel);
    // One name space with the operators.
    EXPECT_EQ(lookupNamedOperator(kernel.name), nullptr);
    EXPECT_TRUE(StringRef(kernel.getTitle()).ends_with("."));
    EXPECT_TRUE(StringRef(kernel.getFormula()).starts_with("Y"));
    EXPECT_TRUE(StringRef(kernel.getSource()).ends_with("."));
  }
  EXPECT_EQ(lookupNamedKernel("conv2d"), nullptr);
}

/// `C, H, W \\| k`: the declared symbols as they are on the page.
std::string getSignature(KernelOp kernel) {
  std::string signature;
  unsigned numBars = 0;
  for (ArrayAttr names : {kernel.getPrimaries(), kernel.getCoefficients(),
                          kernel.getVariables()}) {
    std::string list =
        llvm::join(llvm::map_range(names.getAsValueRange<StringAttr>(),
                                   [](StringRef name) { return name.str(); }),
                   ", ");
    if (!list.empty()) {
      for (; numBars > 0; --numBars)
        signature += signature.ends_with("| ") ? "\\| " : " \\| ";
      signature += list;
    }
    ++numBars;
  }
  return signature;
}

TEST(NamedKernels, StandOnTheirPage) {
  auto page = llvm::MemoryBuffer::getFile(KAS_KERNELS_PAGE);
  ASSERT_TRUE(bool(page)) << page.getError().message();
  std::set<std::string> rows, expected;
  SmallVector<StringRef> lines;
  (*page)->getBuffer().split(lines, '\n');
  for (StringRef line : lines)
    if (line.starts_with("| `kas."))
      rows.insert(line.str());
  MLIRContext context;
  for (const NamedOperator &named : getNamedKernels()) {
    OwningOpRef<ModuleOp> module = parseNamedKernel(&context, named.name);
    KernelOp kernel = *module->getOps<KernelOp>().begin();
    expected.insert("| `kas." + named.name.str() + "` | `" +
                    getSignature(kernel) + "` | " + named.getTitle() + " `" +
                    named.getFormula() + "` | " + named.getSource() + " |");
  }
  EXPECT_EQ(rows, expected);
}

} // namespace
