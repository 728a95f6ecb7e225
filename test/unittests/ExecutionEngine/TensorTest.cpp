//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/Tensor.h"
#include "kas/ExecutionEngine/Timing.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

using namespace kas;
using namespace kas::execution;

namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

Tensor vector(std::initializer_list<float> values) {
  Tensor tensor({static_cast<int64_t>(values.size())});
  llvm::copy(values, tensor.data());
  return tensor;
}

TEST(RandomTest, ValuesAreFixed) {
  // From the published algorithm: SplitMix64 with seed 0 begins so.
  EXPECT_EQ(mixBits(0x9e3779b97f4a7c15ull), 0xe220a8397b1dcdafull);
  RandomStream stream(7, "input");
  EXPECT_EQ(stream.bits(0), RandomStream(7, "input").bits(0));
  EXPECT_NE(stream.bits(0), RandomStream(8, "input").bits(0));
  EXPECT_NE(stream.bits(0), RandomStream(7, "output").bits(0));
}

TEST(RandomTest, NormalHasItsMoments) {
  RandomStream stream(1);
  double sum = 0, squares = 0;
  constexpr int count = 100000;
  for (int i = 0; i < count; ++i) {
    double value = stream.normal(i);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / count, 0, 0.01);
  EXPECT_NEAR(squares / count, 1, 0.01);
}

TEST(RandomTest, UniformAndBelowStayInside) {
  Random random(3);
  int counts[7] = {};
  for (int i = 0; i < 70000; ++i) {
    float value = random.uniform();
    EXPECT_TRUE(value >= 0 && value < 1);
    ++counts[random.below(7)];
  }
  for (int count : counts)
    EXPECT_NEAR(count, 10000, 500);
}

TEST(TensorTest, ShapesAreChecked) {
  EXPECT_EQ(llvm::cantFail(numElements({2, 3})), 6);
  EXPECT_EQ(llvm::cantFail(numElements({})), 1);
  EXPECT_EQ(llvm::cantFail(numElements({0, int64_t(1) << 62, 1 << 20})), 0);
  auto huge = Tensor::create({int64_t(1) << 40, int64_t(1) << 40});
  ASSERT_FALSE(bool(huge));
  EXPECT_EQ(llvm::toString(huge.takeError()),
            "shape 1099511627776x1099511627776 is too large");
  auto negative = Tensor::create({2, -3});
  ASSERT_FALSE(bool(negative));
  EXPECT_EQ(llvm::toString(negative.takeError()),
            "shape 2x-3 has a negative dimension");
}

TEST(TensorTest, IsAlignedAndZero) {
  Tensor tensor({3, 5});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % Tensor::alignment, 0u);
  for (float value : tensor.getValues())
    EXPECT_EQ(value, 0);
  tensor.data()[3] = 1;
  EXPECT_EQ(tensor.clone().getValues(), tensor.getValues());
}

TEST(TensorTest, MaxRelativeError) {
  EXPECT_EQ(maxRelativeError(vector({1, 2}), vector({1, 2})), 0);
  EXPECT_DOUBLE_EQ(maxRelativeError(vector({1, 2}), vector({2, -4})), 6. / 4);
  EXPECT_DOUBLE_EQ(maxRelativeError(vector({0.5}), vector({0})), 0.5);
  EXPECT_EQ(maxRelativeError(vector({nan, infinity}), vector({nan, infinity})),
            0);
  EXPECT_EQ(maxRelativeError(vector({nan}), vector({1})), infinity);
  EXPECT_EQ(maxRelativeError(vector({1}), vector({nan})), infinity);
  EXPECT_EQ(maxRelativeError(vector({infinity}), vector({-infinity})),
            infinity);
  // An infinity that both have does not hide other differences.
  EXPECT_DOUBLE_EQ(
      maxRelativeError(vector({infinity, 1}), vector({infinity, 2})), 0.5);
}

TEST(InitializerTest, ParsesAndFills) {
  auto fill = [](llvm::StringRef text, llvm::ArrayRef<int64_t> shape) {
    Tensor tensor(shape);
    llvm::cantFail(Initializer::parse(text))
        .fill(tensor.getValues(), tensor.getShape(), RandomStream(1, "w"));
    return tensor;
  };
  EXPECT_EQ(fill("zeros", {2}).data()[1], 0);
  EXPECT_EQ(fill("ones", {2}).data()[1], 1);
  EXPECT_EQ(fill("constant(-2.5)", {2}).data()[1], -2.5);
  float normal = RandomStream(1, "w").normal(1);
  EXPECT_EQ(fill("normal", {2}).data()[1], normal);
  EXPECT_EQ(fill("normal(0.5)", {2}).data()[1], 0.5f * normal);
  EXPECT_EQ(fill("kaiming", {7, 2, 1}).data()[1], normal);
  EXPECT_EQ(fill("kaiming(8)", {2}).data()[1], 0.5f * normal);
  Tensor uniform = fill("uniform(0.25)", {100});
  for (float value : uniform.getValues())
    EXPECT_LE(std::abs(value), 0.25f);
  Tensor positive = fill("positive(4)", {100});
  for (float value : positive.getValues()) {
    EXPECT_GE(value, 2);
    EXPECT_LT(value, 6);
  }
}

TEST(InitializerTest, RejectsOtherText) {
  for (llvm::StringRef text :
       {"", "zero", "zeros()", "zeros(1)", "constant", "constant(x)",
        "constant(nan)", "normal(-1)", "kaiming(0)", "positive(0)", "normal(1",
        "normal 1"}) {
    auto parsed = Initializer::parse(text);
    ASSERT_FALSE(bool(parsed)) << text.str();
    EXPECT_EQ(llvm::toString(parsed.takeError()),
              ("expected zeros, ones, constant(V), normal(S), uniform(B), "
               "positive(V) or kaiming(F), got '" +
               text + "'")
                  .str());
  }
}

TEST(TimingTest, Summarizes) {
  Timing odd = Timing::summarize({3, 1, 2});
  EXPECT_EQ(odd.median, 2);
  EXPECT_EQ(odd.min, 1);
  EXPECT_EQ(odd.count, 3);
  EXPECT_EQ(Timing::summarize({4, 1, 2, 3}).median, 2.5);
}

TEST(TimingTest, CountsRuns) {
  int runs = 0;
  TimingOptions options;
  options.seconds = 0;
  Timing timing = measure([&] { ++runs; }, options);
  EXPECT_EQ(timing.count, 20);
  EXPECT_EQ(runs, 22);
  options.seconds = 1000;
  options.maxRuns = 25;
  EXPECT_EQ(measure([] {}, options).count, 25);
  EXPECT_LE(timing.min, timing.median);
}

} // namespace
