//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How far functions of f32 are from those of the C library in f64.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/Pipelines/CPU.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>
#include <limits>

using namespace kas;
using namespace kas::execution;

namespace {

constexpr int64_t count = 1 << 16;

/// The results of a body of `%x : f32` that ends with `%y`.
class Elementwise {
public:
  explicit Elementwise(const std::string &body) {
    mlir::DialectRegistry registry;
    registerCPUPipelineDialects(registry);
    context.appendDialectRegistry(registry);
    context.disableMultithreading();
    std::string text = R"mlir(
      func.func @f(%t: tensor<65536xf32>) -> tensor<65536xf32> {
        %e = tensor.empty() : tensor<65536xf32>
        %r = linalg.generic {
            indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
            iterator_types = ["parallel"]}
            ins(%t : tensor<65536xf32>) outs(%e : tensor<65536xf32>) {
          ^bb0(%x: f32, %o: f32):
    )mlir" + body + R"mlir(
            linalg.yield %y : f32
        } -> tensor<65536xf32>
        return %r : tensor<65536xf32>
      }
    )mlir";
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    CPUPipelineOptions pipeline;
    pipeline.threads = 1;
    function.emplace(
        llvm::cantFail(compileForCPU(*module, "f", pipeline, JITOptions())));
  }

  Tensor operator()(const Tensor &x) const {
    auto results = llvm::cantFail(function->getSignature().makeResults());
    llvm::cantFail((*function)(x, results));
    return std::move(results[0]);
  }

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::optional<CompiledFunction> function;
};

/// Evenly from `first` to `last`.
Tensor makeRange(double first, double last) {
  Tensor x({count});
  for (int64_t i = 0; i < count; ++i)
    x.data()[i] =
        static_cast<float>(first + (last - first) * double(i) / (count - 1));
  return x;
}

/// The distance from one f32 to the next at `value`.
double getUnit(double value) {
  float rounded = std::abs(static_cast<float>(value));
  return std::nextafter(rounded, std::numeric_limits<float>::infinity()) -
         rounded;
}

TEST(MathTest, Erf) {
  Elementwise erf("%y = math.erf %x : f32");
  double worst = 0, error = 0;
  for (auto [first, last] : {std::pair(-5.0, 5.0),
                             {-0.1, 0.1},
                             {-1e-30, 1e-30},
                             {3.0, 4.5},
                             {-1e30, 1e30}}) {
    Tensor x = makeRange(first, last), y = erf(x);
    for (int64_t i = 0; i < count; ++i) {
      double expected = std::erf(double(x.data()[i]));
      double difference = std::abs(y.data()[i] - expected);
      error = std::max(error, difference);
      worst = std::max(worst, difference / getUnit(expected));
      EXPECT_LE(std::abs(y.data()[i]), 1.0000003f);
    }
  }
  // Of the documentation of `populateErfPatterns`.
  EXPECT_LE(worst, 5.5);
  EXPECT_LE(error, 3.3e-7);
}

TEST(MathTest, ErfAtItsEnds) {
  Elementwise erf("%y = math.erf %x : f32");
  Tensor x({count});
  float infinity = std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < count; i += 4) {
    x.data()[i] = infinity;
    x.data()[i + 1] = -infinity;
    x.data()[i + 2] = std::numeric_limits<float>::quiet_NaN();
    x.data()[i + 3] = -0.0f;
  }
  Tensor y = erf(x);
  for (int64_t i = 0; i < count; i += 4) {
    EXPECT_NEAR(y.data()[i], 1, 3e-7);
    EXPECT_NEAR(y.data()[i + 1], -1, 3e-7);
    EXPECT_TRUE(std::isnan(y.data()[i + 2]));
    EXPECT_EQ(y.data()[i + 3], 0);
    EXPECT_TRUE(std::signbit(y.data()[i + 3]));
  }
}

TEST(MathTest, Exp) {
  Elementwise exp("%y = math.exp %x : f32");
  double worst = 0;
  // The last range has the results whose exponent is the largest one.
  for (auto [first, last] : {std::pair(-87.33, 88.72),
                             {-1.0, 1.0},
                             {-1e-30, 1e-30},
                             {-87.33, -86.0},
                             {88.0, 88.722}}) {
    Tensor x = makeRange(first, last), y = exp(x);
    for (int64_t i = 0; i < count; ++i) {
      double expected = std::exp(double(x.data()[i]));
      worst =
          std::max(worst, std::abs(y.data()[i] - expected) / getUnit(expected));
    }
  }
  // Of the documentation of `populateExpPatterns`.
  EXPECT_LE(worst, 1);
}

TEST(MathTest, ExpAtItsEnds) {
  Elementwise exp("%y = math.exp %x : f32");
  Tensor x({count});
  float infinity = std::numeric_limits<float>::infinity();
  const float values[] = {infinity,
                          1e30f,
                          88.73f,
                          88.8f,
                          89,
                          -infinity,
                          -1e30f,
                          -88,
                          -104,
                          0,
                          -0.0f,
                          std::numeric_limits<float>::quiet_NaN(),
                          -std::numeric_limits<float>::quiet_NaN()};
  for (int64_t i = 0; i < count; ++i)
    x.data()[i] = values[i % std::size(values)];
  // With all bits that a NaN may have.
  uint32_t bits = 0x7fffffff;
  std::memcpy(&x.data()[count - 1], &bits, sizeof(bits));
  Tensor y = exp(x);
  for (int64_t i = 0; i < count; ++i) {
    float value = x.data()[i];
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(y.data()[i]));
    else
      EXPECT_EQ(y.data()[i], value > 1    ? infinity
                             : value < -1 ? 0
                                          : 1)
          << "of " << value;
  }
}

/// The division becomes a product.
TEST(MathTest, Gelu) {
  Elementwise gelu(R"mlir(
    %root = arith.constant 1.41421354 : f32
    %one = arith.constant 1.0 : f32
    %half = arith.constant 0.5 : f32
    %q = arith.divf %x, %root : f32
    %g = math.erf %q : f32
    %s = arith.addf %g, %one : f32
    %p = arith.mulf %s, %half : f32
    %y = arith.mulf %x, %p : f32
  )mlir");
  Tensor x = makeRange(-6, 6), y = gelu(x);
  for (int64_t i = 0; i < count; ++i) {
    double value = x.data()[i];
    double expected = value * 0.5 * (1 + std::erf(value / std::sqrt(2.0)));
    EXPECT_NEAR(y.data()[i], expected, 1e-6) << "of " << value;
  }
}

} // namespace
