//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels in the linear layers and the attention blocks of a Transformer for
// two images: those that the layers are themselves, with their weights, against
// the model; sampled ones against the reference evaluator.
//
//===----------------------------------------------------------------------===//

#include "ModelsTest.h"
#include "Properties.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Networks/Sites/KernelSites.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"

using namespace kas;
using namespace kas::reference;
using namespace kas::execution;
using namespace kas::networks;
using namespace kas::test;
using namespace mlir;

namespace {

class TokenSitesTest : public ModelsTest {
protected:
  static std::vector<KernelSite> getSites(ModuleOp module, StringRef family) {
    std::vector<KernelSite> sites =
        findKernelSites(module, [](linalg::LinalgOp, StringRef) {});
    llvm::erase_if(sites, [&](const KernelSite &site) {
      return getMark(site).getAs<FlatSymbolRefAttr>("kernel").getValue() !=
             family;
    });
    return sites;
  }
  static DictionaryAttr getMark(const KernelSite &site) {
    return site.layer.op->getAttrOfType<DictionaryAttr>(
        KasDialect::siteAttrName);
  }

  /// Adds what each site reads and gives to the results.
  static void instrument(ModuleOp module, StringRef family) {
    auto function = module.lookupSymbol<func::FuncOp>("forward");
    Operation *end = function.getBody().front().getTerminator();
    for (KernelSite &site : getSites(module, family))
      end->insertOperands(end->getNumOperands(),
                          {site.data, site.layer.op->getResult(0)});
    function.setFunctionType(FunctionType::get(module.getContext(),
                                               function.getArgumentTypes(),
                                               end->getOperandTypes()));
    function.removeResAttrsAttr();
  }

  /// `[rows, columns]` as `[columns, rows]`, sample by sample.
  static std::vector<float> transpose(ArrayRef<float> values, int64_t rows,
                                      int64_t columns) {
    std::vector<float> result(values.size());
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        result[column * rows + row] = values[row * columns + column];
    return result;
  }

  static std::vector<float> evaluate(KernelOp kernel, const KernelSite &site,
                                     ArrayRef<float> data,
                                     ArrayRef<ArrayRef<float>> weights,
                                     StepPrecision precision) {
    unsigned binding = getMark(site).getAs<IntegerAttr>("binding").getInt();
    int64_t tokens = site.spatial.empty() ? 1 : site.spatial[0];
    std::vector<float> result;
    for (int64_t sample = 0; sample < site.samples; ++sample) {
      std::vector<float> input = transpose(
          data.slice(sample * tokens * site.inputs, tokens * site.inputs),
          tokens, site.inputs);
      std::vector<float> output =
          evaluateCopies(kernel,
                         {site.inputs, site.outputs, site.getChannels(),
                          site.getCopies(), tokens, binding},
                         input, weights, precision);
      llvm::append_range(result, transpose(output, site.outputs, tokens));
    }
    return result;
  }

  /// The kernel in all sites of `family`, each compared.
  void check(ModuleOp module, KernelOp kernel, const std::string &family) {
    OwningOpRef<ModuleOp> copy = module.clone();
    instrument(*copy, family);
    std::vector<KernelSite> sites = getSites(module, family);
    auto replaced = substituteKernel(*copy, kernel.getSymName());
    ASSERT_TRUE(succeeded(replaced));
    ASSERT_EQ(replaced->numReplaced, sites.size());
    auto model = RunnableModel::compile(*copy, 0);
    ASSERT_TRUE(model);
    model->run(3);
    Arguments arguments = model->getArguments();
    for (auto [index, site] : llvm::enumerate(sites)) {
      ArrayRef<float> data = model->getResult(1 + 2 * index);
      auto weights = getWeights(site.name, arguments);
      std::string wrong = tally.add(
          model->getResult(2 + 2 * index),
          [&](bool isNear) {
            return evaluate(kernel, site,
                            isNear ? ArrayRef<float>(perturb(data)) : data,
                            weights, StepPrecision::Double);
          },
          [&] {
            return evaluate(kernel, site, data, weights, StepPrecision::Single);
          });
      EXPECT_EQ(wrong, "") << site.name << "\n" << print(kernel);
    }
  }

  void checkSampled(OwningOpRef<ModuleOp> module, const std::string &family,
                    const std::string &limits, unsigned numSites,
                    unsigned count) {
    ASSERT_TRUE(module);
    findKernels(*module, family, "1.0", limits, count);
    for (unsigned i = 0; i < count && !HasFatalFailure(); ++i) {
      SCOPED_TRACE(i);
      check(*module,
            module->lookupSymbol<KernelOp>(family + "_" + std::to_string(i)),
            family);
    }
    EXPECT_EQ(tally.getTotal(), count * numSites);
    EXPECT_GE(4 * tally.equal, 3 * tally.getTotal());
    llvm::outs() << count << " kernels of " << family << ": " << tally.print()
                 << "\n";
  }

  Tally tally;
};

} // namespace

TEST_F(TokenSitesTest, SampledKernelsInLinearLayers) {
  checkSampled(parseModel("transformer.mlir"), "token_linears", "steps=8", 4,
               getNumOperators(1, 100));
}

// From as many channels to as many, to twice as many, and back.
TEST_F(TokenSitesTest, SampledKernelsInLinearLayersOfSamples) {
  std::string text = R"(
    func.func @forward(%x: tensor<3x8xf32> {kas.name = "input"},
                       %a: tensor<8x8xf32> {kas.name = "a.weight"},
                       %b: tensor<8x16xf32> {kas.name = "b.weight"},
                       %c: tensor<16x8xf32> {kas.name = "c.weight"})
        -> tensor<3x8xf32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<3x8xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x8xf32>) -> tensor<3x8xf32>
      %y = linalg.matmul ins(%x, %a : tensor<3x8xf32>, tensor<8x8xf32>)
          outs(%f : tensor<3x8xf32>) -> tensor<3x8xf32>
      %g = tensor.empty() : tensor<3x16xf32>
      %h = linalg.fill ins(%zero : f32) outs(%g : tensor<3x16xf32>) -> tensor<3x16xf32>
      %z = linalg.matmul ins(%y, %b : tensor<3x8xf32>, tensor<8x16xf32>)
          outs(%h : tensor<3x16xf32>) -> tensor<3x16xf32>
      %r = linalg.matmul ins(%z, %c : tensor<3x16xf32>, tensor<16x8xf32>)
          outs(%f : tensor<3x8xf32>) -> tensor<3x8xf32>
      return %r : tensor<3x8xf32>
    })";
  checkSampled(parseSourceString<ModuleOp>(text, &context), "linears",
               "steps=6", 3, getNumOperators(2, 100));
}

TEST_F(TokenSitesTest, SampledKernelsInAttentionBlocks) {
  checkSampled(parseModel("transformer.mlir"), "attentions",
               "steps=8,repeats=1", 2, getNumOperators(1, 100));
}

// What is extracted is what was there: attention with the old weights, without
// the biases of queries, keys and values.
TEST_F(TokenSitesTest, ExtractedAttentionIsTheBlock) {
  auto module = parseModel("transformer.mlir");
  ASSERT_TRUE(module);
  auto original = RunnableModel::compile(*module, 0);
  ASSERT_TRUE(original);
  NamedTensors biases;
  for (const char *name : {"0.attn.q", "0.attn.k", "0.attn.v"})
    biases.insert({std::string("blocks.") + name + ".bias", Tensor({24})});
  biases.insert({"blocks.1.attn.qkv.bias", Tensor({72})});
  for (auto &[name, bias] : biases)
    llvm::fill(bias.getValues(), 0.0f);
  original->run(5, biases);

  runPasses(*module, "kas-extract{kernel=true},kas-substitute{kernel=@"
                     "attentions}");
  auto substituted = RunnableModel::compile(*module, 0);
  ASSERT_TRUE(substituted);
  Arguments arguments = original->getArguments();
  NamedTensors weights;
  // The output projection reads heads and their channels.
  auto add = [&](const std::string &name, ArrayRef<float> values) {
    SmallVector<int64_t> shape = {24, 24};
    if (StringRef(name).ends_with("3"))
      shape = {24, 3, 8};
    Tensor tensor(shape);
    llvm::copy(values, tensor.getValues().begin());
    weights.insert({name, std::move(tensor)});
  };
  ArrayRef<float> fused = arguments["blocks.1.attn.qkv.weight"];
  for (auto [index, name] :
       llvm::enumerate(std::vector<std::string>{"q", "k", "v", "proj"})) {
    std::string number = std::to_string(index);
    add("blocks.0.attn.weight." + number,
        arguments["blocks.0.attn." + name + ".weight"]);
    add("blocks.1.attn.weight." + number,
        index < 3 ? fused.slice(index * 24 * 24, 24 * 24)
                  : arguments["blocks.1.attn.proj.weight"]);
  }
  substituted->run(5, weights);
  EXPECT_LE(getError(substituted->getResult(0), original->getResult(0)), 1e-5);
}
