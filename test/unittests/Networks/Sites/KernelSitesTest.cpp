//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sampled kernels in the place of convolutions of every ratio of channels and
// of a stride: extracted, searched, solved, substituted, compiled and run,
// against the reference evaluator and plain loops around it.
//
//===----------------------------------------------------------------------===//

#include "kas/Networks/Sites/KernelSites.h"
#include "ModelsTest.h"
#include "Properties.h"
#include "mlir/Parser/Parser.h"

using namespace kas;
using namespace kas::networks;
using namespace kas::test;
using namespace mlir;

namespace {

/// From as many channels to as many; to twice as many, with a stride; to half;
/// and where neither number divides the other.
const std::vector<Layer> layers = {{"a", 8, 8, 6, 1, 3, 8, 1, 0},
                                   {"b", 8, 16, 6, 2, 3, 8, 2, 1},
                                   {"c", 12, 18, 4, 1, 1, 6, 3, 2},
                                   {"d", 16, 8, 6, 1, 3, 8, 2, 0}};

std::string getTensor(std::initializer_list<int64_t> shape) {
  std::string text = "tensor<";
  for (int64_t extent : shape)
    text += std::to_string(extent) + "x";
  return text + "f32>";
}

/// A function of all layers, each with an input of its own.
std::string getModel() {
  std::string arguments, body, results, types;
  for (const Layer &layer : layers) {
    std::string x = "%x" + layer.name, w = "%w" + layer.name,
                y = "%y" + layer.name, p = "%p" + layer.name;
    int64_t size = layer.size, out = layer.getOutputSize(),
            pad = layer.window / 2;
    std::string input = getTensor({1, layer.inputs, size, size});
    std::string weight =
        getTensor({layer.outputs, layer.inputs, layer.window, layer.window});
    std::string output = getTensor({1, layer.outputs, out, out});
    std::string padded =
        getTensor({1, layer.inputs, size + 2 * pad, size + 2 * pad});
    std::string widths =
        "[0, 0, " + std::to_string(pad) + ", " + std::to_string(pad) + "]";
    std::string separator = arguments.empty() ? "" : ", ";
    arguments += separator + x + ": " + input + " {kas.name = \"" + layer.name +
                 ".input\", kas.init = \"normal\"}, " + w + ": " + weight +
                 " {kas.name = \"" + layer.name + ".weight\"}";
    body += p + " = tensor.pad " + x + " low" + widths + " high" + widths +
            " {\n^bb0(%i: index, %j: index, %k: index, %l: index):\n"
            "tensor.yield %zero : f32\n} : " +
            input + " to " + padded + "\n%e" + layer.name +
            " = tensor.empty() : " + output + "\n%f" + layer.name +
            " = linalg.fill ins(%zero : f32) outs(%e" + layer.name + " : " +
            output + ") -> " + output + "\n" + y +
            " = linalg.conv_2d_nchw_fchw {dilations = dense<1> : "
            "vector<2xi64>, strides = dense<" +
            std::to_string(layer.stride) + "> : vector<2xi64>} ins(" + p +
            ", " + w + " : " + padded + ", " + weight + ") outs(%f" +
            layer.name + " : " + output + ") -> " + output + "\n";
    results += separator + y;
    types += separator + output;
  }
  return "func.func @forward(" + arguments + ") -> (" + types +
         ") {\n%zero = arith.constant 0.0 : f32\n" + body + "return " +
         results + " : " + types + "\n}";
}

class KernelSitesTest : public ModelsTest {
protected:
  /// The model with the kernel in all of its sites, run and compared.
  void check(ModuleOp module, StringRef name) {
    OwningOpRef<ModuleOp> copy = module.clone();
    FailureOr<SubstituteResult> result = substituteKernel(*copy, name);
    ASSERT_TRUE(succeeded(result));
    EXPECT_EQ(result->numReplaced, layers.size());
    auto model = RunnableModel::compile(*copy, 0);
    ASSERT_TRUE(model);
    model->run(1);
    Arguments arguments = model->getArguments();
    KernelOp kernel = module.lookupSymbol<KernelOp>(name);
    for (auto [index, layer] : llvm::enumerate(layers))
      compare(kernel, layer, arguments[layer.name + ".input"],
              getWeights(layer.name, arguments), model->getResult(index));
  }

  void compare(KernelOp kernel, const Layer &layer, ArrayRef<float> input,
               ArrayRef<ArrayRef<float>> weights, ArrayRef<float> actual) {
    std::vector<float> expected = evaluateSite(kernel, layer, input, weights);
    ASSERT_FALSE(expected.empty());
    // Kernels with powers of powers have no more digits.
    double condition = getError(
        evaluateSite(kernel, layer, perturb(input), weights), expected);
    // Not a number anywhere, or no digits left.
    if (!(condition < 1e-3)) {
      ++numIllConditioned;
      return;
    }
    ++numCompared;
    EXPECT_LE(getError(actual, expected), 1e-4 + 20 * condition)
        << "layer " << layer.name << ", condition " << condition << "\n"
        << print(kernel);
  }

  unsigned numCompared = 0, numIllConditioned = 0;
};

} // namespace

TEST_F(KernelSitesTest, SampledKernelsEqualTheReference) {
  auto module = parseSourceString<ModuleOp>(getModel(), &context);
  ASSERT_TRUE(module);
  unsigned count = getNumOperators(6, 500);
  findKernels(*module, "convolutions", "1.0", "steps=8", count);
  unsigned numKernels = 0;
  for (KernelOp kernel : module->getOps<KernelOp>()) {
    SCOPED_TRACE(kernel.getSymName().str());
    check(*module, kernel.getSymName());
    ++numKernels;
    if (HasFailure())
      break;
  }
  // The convolution itself is one.
  EXPECT_EQ(numKernels, count + 1);
  EXPECT_LT(numIllConditioned, 1 + numCompared / 5);
  RecordProperty("compared", std::to_string(numCompared));
  RecordProperty("ill-conditioned", std::to_string(numIllConditioned));
}
