//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Costs of the named operators: what the formulas and the sources say.
//
//===----------------------------------------------------------------------===//

#include "OperatorsTestUtil.h"
#include "kas/Dialect/Kas/Analysis/Cost.h"
#include "kas/Library/Operators.h"

using namespace kas;
using namespace kas::library;
using namespace mlir;

static Cost getCostOf(StringRef name, const formulas::Sizes &sizes) {
  MLIRContext context;
  OwningOpRef<ModuleOp> module = parseNamedOperator(&context, name);
  auto op = module->lookupSymbol<OperatorOp>(name);
  FailureOr<Cost> cost =
      getCost(op, getTestBinding(op, sizes), [&] { return op.emitError(); });
  EXPECT_TRUE(succeeded(cost));
  return cost.value_or(Cost());
}

static int64_t countElements(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

using OperatorCosts = testing::TestWithParam<formulas::Formula>;

TEST_P(OperatorCosts, CountTheElementsOfTheFormula) {
  const formulas::Formula &formula = GetParam();
  for (const formulas::Sizes &sizes : formula.bindings) {
    int64_t parameters = 0;
    for (const std::vector<int64_t> &shape : formula.weightShapes(sizes))
      parameters += countElements(shape);
    int64_t elements = parameters + countElements(formula.dataShape(sizes)) +
                       countElements(formula.outputShape(sizes));
    Cost cost = getCostOf(formula.name, sizes);
    EXPECT_EQ(cost.parameters, parameters);
    EXPECT_EQ(cost.bytes, 4 * elements);
    EXPECT_EQ(cost.flops, 2 * cost.macs);
  }
}

INSTANTIATE_TEST_SUITE_P(All, OperatorCosts,
                         testing::ValuesIn(formulas::getFormulas()), getName);

/// A layer of ResNet-18.
static const formulas::Sizes layer = {
    .N = 1, .Cin = 64, .Cout = 64, .H = 56, .W = 56, .k = 3};

static formulas::Sizes with(formulas::Sizes sizes, int64_t formulas::Sizes::*a,
                            int64_t value) {
  sizes.*a = value;
  return sizes;
}

TEST(OperatorCost, OfConvolutions) {
  using formulas::Sizes;
  EXPECT_EQ(getCostOf("conv2d", layer).macs, 115605504);
  EXPECT_EQ(getCostOf("conv2d_grouped", with(layer, &Sizes::g, 2)).macs,
            57802752);
  EXPECT_EQ(
      getCostOf("conv2d_depthwise", {.N = 1, .C = 64, .H = 56, .W = 56, .k = 3})
          .macs,
      1806336);
  EXPECT_EQ(getCostOf("conv2d_strided", with(layer, &Sizes::s, 2)).macs,
            115605504 / 4);
  EXPECT_EQ(getCostOf("conv1x1", with(layer, &Sizes::k, 0)).macs,
            115605504 / 9);
  // As many multiply-adds as the dense one, twice the parameters.
  EXPECT_EQ(getCostOf("conv2d_slabs", with(layer, &Sizes::s, 2)).macs,
            115605504);
  EXPECT_EQ(getCostOf("conv2d_slabs", with(layer, &Sizes::s, 2)).parameters,
            2 * 36864);
  EXPECT_EQ(
      getCostOf("conv2d_input_bottleneck", with(layer, &Sizes::b, 2)).macs,
      115605504 / 2);
}

/// What one loop nest, without intermediate results, would compute: one
/// multiply-add per point, since the weights are multiplied before.
static int64_t getNestMacsOf(StringRef name, const formulas::Sizes &sizes) {
  MLIRContext context;
  OwningOpRef<ModuleOp> module = parseNamedOperator(&context, name);
  auto op = module->lookupSymbol<OperatorOp>(name);
  std::optional<SymbolicCost> cost = getSymbolicCost(op);
  EXPECT_TRUE(cost);
  return cost->macs.evaluate(getTestBinding(op, sizes)).value_or(0);
}

// As one nest, the products of three tensors count twice:
// 2 * N*Cout*H*W * Cin*k*k * Cout/(g*s). In stages they are those that the Syno
// paper reports (58.6 M and 20.1 M on this layer), less one per element of the
// output: copies have no multiply-adds here.
TEST(OperatorCost, OfLowRankOperators) {
  formulas::Sizes sizes = layer;
  sizes.g = 32;
  sizes.s = 2;
  EXPECT_EQ(getNestMacsOf("syno_operator1", sizes), int64_t(115605504));
  Cost first = getCostOf("syno_operator1", sizes);
  EXPECT_EQ(first.macs, 58605568 - 64 * 56 * 56);
  EXPECT_EQ(first.parameters, 192 + 18432);
  EXPECT_EQ(getNestMacsOf("syno_operator2", sizes), int64_t(115605504));
  Cost second = getCostOf("syno_operator2", sizes);
  EXPECT_EQ(second.macs, 20070400 - 64 * 56 * 56);
  EXPECT_EQ(second.parameters, 192 + 6144);
  // One more window: k times the points.
  EXPECT_EQ(getNestMacsOf("stacked_conv2d", sizes), 3 * int64_t(115605504));
  EXPECT_EQ(getCostOf("stacked_conv2d", sizes).macs, first.macs);
  // The other factor of Cout/(g*s): 1 for 64 channels, 2 for 128.
  sizes.Cin = sizes.Cout = 128;
  sizes.H = sizes.W = 28;
  EXPECT_EQ(getNestMacsOf("syno_operator1", sizes), int64_t(115605504));
}

// One multiply-add per element of a factor and per place that it is applied to;
// the dense layer of 64 features has 4096.
TEST(OperatorCost, OfLinearLayersWithStructuredWeights) {
  auto check = [](StringRef name, const formulas::Sizes &sizes, int64_t macs,
                  int64_t parameters) {
    Cost cost = getCostOf(name, sizes);
    EXPECT_EQ(cost.macs, macs) << name.str();
    EXPECT_EQ(cost.parameters, parameters) << name.str();
  };
  using formulas::Sizes;
  const Sizes dense = {.N = 1, .Cin = 64, .Cout = 64};
  Sizes grouped = with(dense, &Sizes::g, 8);
  check("linear_block_diagonal", grouped, 64 * 8, 64 * 8);
  check("linear_shuffled_groups", grouped, 2 * 64 * 8, 2 * 64 * 8);
  Sizes crossed = with(grouped, &Sizes::p, 8);
  check("linear_kronecker", crossed, 2 * 64 * 8, 2 * 8 * 8);
  check("linear_monarch", crossed, 2 * 64 * 8, 2 * 64 * 8);
  check("linear_monarch_transposed", crossed, 2 * 64 * 8, 2 * 64 * 8);
  check("linear_block_tensor_train", with(crossed, &Sizes::r, 2),
        2 * 2 * 64 * 8, 2 * 2 * 64 * 8);
  Sizes ranked = with(dense, &Sizes::r, 2);
  check("linear_low_rank", ranked, 2 * 64 * 2, 2 * 64 * 2);
  check("linear_blast", with(ranked, &Sizes::b, 4), 2 * 64 * 2 + 4 * 4 * 2,
        2 * 64 * 2 + 4 * 4 * 2);
  check("linear_butterfly3", {.N = 1, .C = 64, .r = 4}, 3 * 64 * 4, 3 * 64 * 4);
  check("linear_toeplitz", {.N = 1, .C = 64, .k = 5}, 64 * 5, 5);
}

TEST(OperatorCost, OfTheProjectionOfGPT2) {
  formulas::Sizes sizes = {.N = 1, .L = 2048, .H = 768, .k = 2, .t = 3};
  Cost cost = getCostOf("gpt2_projection", sizes);
  EXPECT_EQ(cost.macs, int64_t(2048) * 768 * 2304 / 2);
  EXPECT_EQ(cost.parameters, 768 * 2304 / 4);
}

TEST(OperatorCost, OfOperatorsWithoutWeights) {
  formulas::Sizes sizes = {.N = 2, .C = 4, .H = 8, .W = 6};
  sizes.s = 2;
  EXPECT_EQ(getCostOf("average_pool2d", sizes).macs, 2 * 4 * 8 * 6);
  EXPECT_EQ(getCostOf("nearest_upsample2d", sizes).macs, 0);
  sizes.s = 0;
  sizes.r = 2;
  EXPECT_EQ(getCostOf("pixel_shuffle", sizes).macs, 0);
}
