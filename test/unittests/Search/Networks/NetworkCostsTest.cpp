//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parameters and multiply-adds of networks with grouped convolutions, as sums
// over operators: the tables of Gibson's thesis (WRN-40-2, ResNet-34 and
// MobileNetV2, each dense, in 2 to 16 groups and depthwise).
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Analysis/Cost.h"
#include "kas/Library/Operators.h"
#include "llvm/ADT/StringMap.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::library;
using namespace mlir;

namespace {

/// As many groups as channels.
constexpr int64_t depthwise = -1;

/// A network that is built up layer by layer.
class Network {
public:
  explicit Network(MLIRContext &context) : context(context) {}

  void convolve(int64_t inputs, int64_t outputs, int64_t size, int64_t kernel,
                int64_t stride = 1, bool normalized = true);
  void convolveInGroups(int64_t channels, int64_t size, int64_t stride,
                        int64_t groups);
  void classify(int64_t inputs, int64_t classes, bool counted);
  /// What takes the place of a 3x3 convolution: one in groups, then a pointwise
  /// one.
  void replace(int64_t inputs, int64_t outputs, int64_t size, int64_t stride,
               int64_t groups, bool normalized);
  void normalize(int64_t channels) { parameters += 2 * channels; }

  int64_t parameters = 0, macs = 0;

private:
  void add(StringRef name, ArrayRef<std::pair<StringRef, int64_t>> values,
           bool counted = true);

  MLIRContext &context;
  llvm::StringMap<OwningOpRef<ModuleOp>> operators;
};

class NetworkCostsTest : public testing::Test {
protected:
  MLIRContext context;
};

/// One row of the tables.
struct Row {
  int64_t groups;
  /// As computed independently.
  int64_t parameters;
  /// As printed, and how far the printed ones are off: operations that are not
  /// counted, and rounding.
  double macs, tolerance;
};

} // namespace

void Network::add(StringRef name,
                  ArrayRef<std::pair<StringRef, int64_t>> values,
                  bool counted) {
  OwningOpRef<ModuleOp> &module = operators[name];
  if (!module)
    module = parseNamedOperator(&context, name);
  OperatorOp op = *module->getOps<OperatorOp>().begin();
  SymbolSet symbols = op.getSymbolSet();
  Binding binding(symbols.size());
  for (auto [symbol, value] : values)
    binding[*symbols.lookup(symbol)] = value;
  FailureOr<Cost> cost = getCost(op, binding, [&] { return op.emitError(); });
  ASSERT_TRUE(succeeded(cost));
  macs += cost->macs;
  if (counted)
    parameters += cost->parameters;
}

void Network::convolve(int64_t inputs, int64_t outputs, int64_t size,
                       int64_t kernel, int64_t stride, bool normalized) {
  add("conv2d_strided", {{"N", 1},
                         {"Cin", inputs},
                         {"Cout", outputs},
                         {"H", size},
                         {"W", size},
                         {"k", kernel},
                         {"s", stride}});
  if (normalized)
    normalize(outputs);
}

void Network::convolveInGroups(int64_t channels, int64_t size, int64_t stride,
                               int64_t groups) {
  if (groups == depthwise)
    return add("conv2d_depthwise_strided", {{"N", 1},
                                            {"C", channels},
                                            {"H", size},
                                            {"W", size},
                                            {"k", 3},
                                            {"s", stride}});
  add("conv2d_grouped_strided", {{"N", 1},
                                 {"Cin", channels},
                                 {"Cout", channels},
                                 {"H", size},
                                 {"W", size},
                                 {"k", 3},
                                 {"s", stride},
                                 {"g", groups}});
}

void Network::classify(int64_t inputs, int64_t classes, bool counted) {
  add("linear", {{"N", 1}, {"Cin", inputs}, {"Cout", classes}}, counted);
  if (counted)
    parameters += classes;
}

void Network::replace(int64_t inputs, int64_t outputs, int64_t size,
                      int64_t stride, int64_t groups, bool normalized) {
  if (groups == 1)
    return convolve(inputs, outputs, size, 3, stride, normalized);
  convolveInGroups(inputs, size, stride, groups);
  normalize(inputs);
  convolve(inputs, outputs, size / stride, 1, 1, normalized);
}

/// WRN-40-2 for images of 32x32; its classifier's parameters are not counted,
/// as in the table. A block normalizes what it reads.
static void buildWideResNet(Network &network, int64_t groups) {
  network.convolve(3, 16, 32, 3, 1, /*normalized=*/false);
  int64_t inputs = 16, size = 32;
  for (int64_t outputs : {32, 64, 128})
    for (unsigned block = 0; block < 6; ++block) {
      int64_t stride = block == 0 && outputs != 32 ? 2 : 1;
      network.normalize(inputs);
      network.replace(inputs, outputs, size, stride, groups, false);
      if (inputs != outputs)
        network.convolve(inputs, outputs, size, 1, stride, false);
      network.normalize(outputs);
      size /= stride;
      network.replace(outputs, outputs, size, 1, groups, false);
      inputs = outputs;
    }
  network.normalize(128);
  network.classify(128, 10, /*counted=*/false);
}

static void buildResNet34(Network &network, int64_t groups) {
  network.convolve(3, 64, 224, 7, 2);
  int64_t inputs = 64, size = 56;
  for (auto [outputs, blocks] : {std::pair(64, 3), std::pair(128, 4),
                                 std::pair(256, 6), std::pair(512, 3)})
    for (int block = 0; block < blocks; ++block) {
      int64_t stride = inputs != outputs ? 2 : 1;
      network.replace(inputs, outputs, size, stride, groups, true);
      if (inputs != outputs)
        network.convolve(inputs, outputs, size, 1, stride);
      size /= stride;
      network.replace(outputs, outputs, size, 1, groups, true);
      inputs = outputs;
    }
  network.classify(512, 1000, /*counted=*/true);
}

/// The convolutions in the middle of its blocks are the ones in groups.
static void buildMobileNet(Network &network, int64_t groups) {
  network.convolve(3, 32, 224, 3, 2);
  int64_t inputs = 32, size = 112;
  struct Stage {
    int64_t expansion, outputs, blocks, stride;
  };
  for (Stage stage :
       {Stage{1, 16, 1, 1}, Stage{6, 24, 2, 2}, Stage{6, 32, 3, 2},
        Stage{6, 64, 4, 2}, Stage{6, 96, 3, 1}, Stage{6, 160, 3, 2},
        Stage{6, 320, 1, 1}})
    for (int64_t block = 0; block < stage.blocks; ++block) {
      int64_t hidden = inputs * stage.expansion;
      int64_t stride = block == 0 ? stage.stride : 1;
      if (stage.expansion != 1)
        network.convolve(inputs, hidden, size, 1);
      network.convolveInGroups(hidden, size, stride, groups);
      network.normalize(hidden);
      size /= stride;
      network.convolve(hidden, stage.outputs, size, 1);
      inputs = stage.outputs;
    }
  network.convolve(320, 1280, 7, 1);
  network.classify(1280, 1000, /*counted=*/true);
}

static void check(MLIRContext &context, void (*build)(Network &, int64_t),
                  ArrayRef<Row> rows) {
  for (const Row &row : rows) {
    Network network(context);
    build(network, row.groups);
    EXPECT_EQ(network.parameters, row.parameters) << row.groups;
    EXPECT_NEAR(network.macs, row.macs, row.tolerance * row.macs) << row.groups;
  }
}

TEST_F(NetworkCostsTest, WideResNet) {
  check(context, buildWideResNet,
        {{1, 2242256, 328.30e6, 0.02},
         {2, 1357680, 198.15e6, 0.02},
         {4, 813360, 118.52e6, 0.02},
         {8, 541200, 78.71e6, 0.02},
         {16, 405120, 58.80e6, 0.02},
         {depthwise, 292224, 44.83e6, 0.02}});
  // Counted by hand, with the classifier.
  for (auto [groups, macs] : {std::pair<int64_t, int64_t>(1, 327599360),
                              {2, 197444864},
                              {4, 117818624},
                              {8, 78005504},
                              {16, 58098944},
                              {depthwise, 44127488}}) {
    Network network(context);
    buildWideResNet(network, groups);
    EXPECT_EQ(network.macs, macs) << groups;
  }
}

TEST_F(NetworkCostsTest, ResNet34) {
  check(context, buildResNet34,
        {{1, 21797672, 3.67e9, 0.02},
         {2, 13224616, 2.25e9, 0.02},
         {4, 8146600, 1.39e9, 0.02},
         {8, 5607592, 0.97e9, 0.02},
         {16, 4338088, 0.75e9, 0.02},
         {depthwise, 3132520, 0.56e9, 0.02}});
}

TEST_F(NetworkCostsTest, MobileNetV2) {
  check(context, buildMobileNet,
        {{1, 44050952, 5.56e9, 0.02},
         {2, 23745800, 2.92e9, 0.02},
         {4, 13593224, 1.60e9, 0.02},
         {8, 8516936, 0.95e9, 0.02},
         {16, 5978792, 0.62e9, 0.02},
         {depthwise, 3504872, 0.31e9, 0.035}});
}
