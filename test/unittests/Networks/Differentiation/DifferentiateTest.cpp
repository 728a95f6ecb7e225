//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradients against differences: along random directions, a compiled gradient
// is the slope of the compiled function.
//
//===----------------------------------------------------------------------===//

#include "kas/Networks/Differentiation/Differentiate.h"
#include "Properties.h"
#include "RandomKernel.h"
#include "RandomSequence.h"
#include "kas/Conversion/BatchNorm.h"
#include "kas/Conversion/KasKernelToLinalg.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/Conversion/Passes.h"
#include "kas/Conversion/SequenceToLinalg.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/InitAll.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Support/Random.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace kas;
using namespace kas::execution;
using namespace kas::networks;
using namespace kas::test;
using namespace mlir;

namespace {

/// What comparisons have found.
struct Slopes {
  unsigned compared = 0;
  /// Differences of half the width, or of both sides, are others: a corner.
  unsigned cornered = 0;
};

class DifferentiateTest : public testing::Test {
protected:
  DifferentiateTest() {
    DialectRegistry registry;
    registerCPUPipelineDialects(registry);
    kas::registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// `@name` of `module` against its gradient by all arguments. With `rounding`
  /// the results of both programs may differ by that, relative to the largest.
  void check(ModuleOp module, StringRef name, uint64_t seed,
             double width = 1e-2, double rounding = 0);
  void checkText(StringRef text) {
    auto module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module);
    check(*module, "f", 1);
  }

  void checkKernels(unsigned count, const RandomKernelOptions &options);

  /// Operators to linalg.
  void lower(ModuleOp module) {
    PassManager manager(&context);
    manager.addPass(createKasSpecializePass());
    manager.addPass(createKasToLinalgPass());
    manager.addPass(createKasEraseOperatorsPass());
    ASSERT_TRUE(succeeded(manager.run(module)));
  }

  MLIRContext context;
  Slopes slopes;
};

} // namespace

/// The products of `a` and `b`, and of their magnitudes, summed.
static std::pair<double, double> dot(ArrayRef<Tensor> a, ArrayRef<Tensor> b) {
  double sum = 0, magnitude = 0;
  for (auto [x, y] : llvm::zip_equal(a, b))
    for (auto [u, v] : llvm::zip_equal(x.getValues(), y.getValues())) {
      sum += double(u) * v;
      magnitude += std::abs(double(u) * v);
    }
  return {sum, magnitude};
}

/// Values in [-1, 1).
static SmallVector<Tensor> makeRandom(ArrayRef<TensorSignature> signatures,
                                      uint64_t seed) {
  RandomStream random(seed);
  uint64_t index = 0;
  SmallVector<Tensor> result;
  for (const TensorSignature &signature : signatures) {
    Tensor tensor(signature.shape);
    for (float &value : tensor.getValues())
      value = 2 * random.uniform(index++) - 1;
    result.push_back(std::move(tensor));
  }
  return result;
}

/// `a + factor * b`.
static SmallVector<Tensor> step(ArrayRef<Tensor> a, ArrayRef<Tensor> b,
                                double factor) {
  SmallVector<Tensor> result;
  for (auto [x, y] : llvm::zip_equal(a, b)) {
    Tensor sum = x.clone();
    for (auto [value, change] : llvm::zip_equal(sum.getValues(), y.getValues()))
      value += factor * change;
    result.push_back(std::move(sum));
  }
  return result;
}

static SmallVector<Tensor> call(const CompiledFunction &function,
                                ArrayRef<Tensor> arguments) {
  SmallVector<Tensor> results =
      llvm::cantFail(function.getSignature().makeResults());
  llvm::cantFail(function(arguments, results));
  return results;
}

static SmallVector<Tensor> cloneAll(ArrayRef<Tensor> tensors) {
  return llvm::map_to_vector(
      tensors, [](const Tensor &tensor) { return tensor.clone(); });
}

void DifferentiateTest::check(ModuleOp module, StringRef name, uint64_t seed,
                              double width, double rounding) {
  auto function = module.lookupSymbol<func::FuncOp>(name);
  ASSERT_TRUE(function);
  SmallVector<unsigned> positions =
      llvm::to_vector(llvm::seq<unsigned>(function.getNumArguments()));
  std::string gradientName = (name + "_gradient").str();
  auto made = makeGradientFunction(function, gradientName, positions);
  ASSERT_TRUE(succeeded(made)) << print(module);
  ASSERT_TRUE(succeeded(verify(module))) << print(module);
  CPUPipelineOptions pipeline;
  pipeline.threads = 1;
  auto forward = compileForCPU(module, name, pipeline, {.optLevel = 0});
  ASSERT_TRUE(bool(forward)) << llvm::toString(forward.takeError());
  auto backward =
      compileForCPU(module, gradientName, pipeline, {.optLevel = 0});
  ASSERT_TRUE(bool(backward))
      << llvm::toString(backward.takeError()) << print(module);

  const FunctionSignature &signature = forward->getSignature();
  SmallVector<Tensor> arguments = makeRandom(signature.arguments, seed);
  SmallVector<Tensor> weights = makeRandom(signature.results, seed + 1);
  SmallVector<Tensor> given = cloneAll(arguments);
  for (const Tensor &weight : weights)
    given.push_back(weight.clone());
  SmallVector<Tensor> results = call(*backward, given);
  SmallVector<Tensor> value = call(*forward, arguments);
  unsigned numResults = signature.results.size();
  for (auto [expected, actual] :
       llvm::zip_equal(value, ArrayRef(results).take_front(numResults)))
    EXPECT_LE(getError(actual.getValues(), expected.getValues()), rounding)
        << print(module);

  ArrayRef<Tensor> gradients = ArrayRef(results).drop_front(numResults);
  for (unsigned direction = 0; direction < 2; ++direction) {
    SmallVector<Tensor> along =
        makeRandom(signature.arguments, seed + 2 + direction);
    // Forward and backward differences.
    double here = dot(value, weights).first;
    auto getSlopes = [&](double width) {
      auto getValue = [&](double at) {
        return dot(call(*forward, step(arguments, along, at)), weights).first;
      };
      return std::pair((getValue(width) - here) / width,
                       (here - getValue(-width)) / width);
    };
    auto [slope, magnitude] = dot(gradients, along);
    double digits = 1e-6 * dot(value, weights).second / width;
    auto [wideAfter, wideBefore] = getSlopes(width);
    auto [narrowAfter, narrowBefore] = getSlopes(width / 2);
    double wide = (wideAfter + wideBefore) / 2;
    double narrow = (narrowAfter + narrowBefore) / 2;
    // What the slopes of both sides differ by at a corner right here: the
    // curvature's part of it halves with the width.
    double jump = 2 * (narrowAfter - narrowBefore) - (wideAfter - wideBefore);
    double tolerance = 3e-3 * magnitude + 4 * digits + 1e-6;
    if (!(std::abs(wide - narrow) <= tolerance &&
          std::abs(jump) <= 3 * tolerance)) {
      ++slopes.cornered;
      continue;
    }
    ++slopes.compared;
    // What the difference of third order may leave.
    EXPECT_LE(std::abs(slope - narrow), 3 * tolerance)
        << "seed " << seed << ": gradient " << slope << ", difference "
        << narrow << "\n"
        << print(module);
  }
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

/// `@f` with one operation element by element, on positive and negative
/// numbers, or positive ones where it wants that.
static std::string makeElementwise(StringRef body) {
  return (R"(
func.func @f(%x: tensor<4x6xf32>, %y: tensor<6xf32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<4x6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<4x6xf32>, tensor<6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %two = arith.constant 2.0 : f32
    %q = arith.mulf %a, %a : f32
    %positive = arith.addf %q, %two : f32
    )" + body +
          R"(
    linalg.yield %v : f32
  } -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
})")
      .str();
}

TEST_F(DifferentiateTest, Bodies) {
  for (StringRef body :
       {"%v = arith.addf %a, %b : f32",
        "%v = arith.subf %a, %b : f32",
        "%v = arith.mulf %a, %b : f32",
        "%v = arith.divf %b, %positive : f32",
        "%v = arith.divf %positive, %two : f32",
        "%v = arith.negf %a : f32",
        "%v = arith.maximumf %a, %b : f32",
        "%v = arith.maxnumf %a, %b : f32",
        "%v = arith.minimumf %a, %b : f32",
        "%v = arith.minnumf %b, %a : f32",
        "%t = arith.cmpf ugt, %a, %b : f32\n%v = arith.select %t, %a, %two : "
        "f32",
        "%v = math.exp %a : f32",
        "%v = math.expm1 %a : f32",
        "%v = math.log %positive : f32",
        "%v = math.log1p %positive : f32",
        "%i = arith.constant 3 : i64\n%v = math.fpowi %a, %i : f32, i64",
        "%v = math.sqrt %positive : f32",
        "%v = math.rsqrt %positive : f32",
        "%v = math.tanh %a : f32",
        "%v = math.erf %b : f32",
        "%v = math.sin %a : f32",
        "%v = math.cos %a : f32",
        "%v = math.absf %a : f32",
        "%w = arith.extf %a : f32 to f64\n%v = arith.truncf %w : f64 to f32",
        "%s = arith.mulf %a, %b : f32\n%t = math.tanh %s : f32\n"
        "%u = arith.mulf %t, %a : f32\n%v = arith.addf %u, %s : f32"}) {
    SCOPED_TRACE(body.str());
    checkText(makeElementwise(body));
  }
  // 25 bodies, two directions each; few of them lie on a corner.
  EXPECT_GE(slopes.compared, 42u);
}

//===----------------------------------------------------------------------===//
// Operations on tensors
//===----------------------------------------------------------------------===//

/// `@f(%x: x, %w: w) -> r`, whose body ends in `%r`.
static std::string makeFunction(StringRef x, StringRef w, StringRef r,
                                StringRef body) {
  std::string text;
  llvm::raw_string_ostream(text)
      << "func.func @f(%x: " << x << ", %w: " << w << ") -> " << r
      << " {\n%zero = arith.constant 0.0 : f32\n"
         "%least = arith.constant 0xFF800000 : f32\n%empty = tensor.empty() : "
      << r << "\n%init = linalg.fill ins(%zero : f32) outs(%empty : " << r
      << ") -> " << r << "\n"
      << body << "\nreturn %r : " << r << "\n}";
  return text;
}

TEST_F(DifferentiateTest, Convolutions) {
  for (auto [stride, data, result] :
       {std::tuple(1, "tensor<2x3x7x6xf32>", "tensor<2x4x5x4xf32>"),
        std::tuple(2, "tensor<2x3x7x8xf32>", "tensor<2x4x3x3xf32>")})
    checkText(makeFunction(
        data, "tensor<4x3x3x3xf32>", result,
        (Twine("%r = linalg.conv_2d_nchw_fchw {strides = dense<") +
         Twine(stride) + "> : tensor<2xi64>} ins(%x, %w : " + data +
         ", tensor<4x3x3x3xf32>) outs(%init : " + result + ") -> " + result)
            .str()));
  // Dilated, and channels last.
  checkText(makeFunction("tensor<2x3x7x7xf32>", "tensor<4x3x3x3xf32>",
                         "tensor<2x4x3x3xf32>",
                         "%r = linalg.conv_2d_nchw_fchw {dilations = dense<2> "
                         ": tensor<2xi64>} ins(%x, %w : tensor<2x3x7x7xf32>, "
                         "tensor<4x3x3x3xf32>) outs(%init : "
                         "tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>"));
  checkText(makeFunction("tensor<2x5x5x3xf32>", "tensor<3x3x3x4xf32>",
                         "tensor<2x3x3x4xf32>",
                         "%r = linalg.conv_2d_nhwc_hwcf ins(%x, %w : "
                         "tensor<2x5x5x3xf32>, tensor<3x3x3x4xf32>) "
                         "outs(%init : tensor<2x3x3x4xf32>) -> "
                         "tensor<2x3x3x4xf32>"));
  EXPECT_EQ(slopes.cornered, 0u);
}

/// `@f` with a convolution of an image of one row of any stride, dilation and
/// padding, dense or with a weight for each channel.
static std::string makeRandomConvolution(const RandomStream &random) {
  uint64_t index = 0;
  auto draw = [&](int64_t least, int64_t most) {
    return least + int64_t(random.uniform(index++) * (most - least + 1));
  };
  int64_t size = draw(4, 9), kernel = draw(1, 3), stride = draw(1, 3),
          dilation = draw(1, 3), before = draw(0, 2), after = draw(0, 2);
  int64_t reach = dilation * (kernel - 1) + 1;
  if (size + before + after < reach)
    after = reach;
  int64_t padded = size + before + after;
  int64_t places = (padded - reach) / stride + 1;
  bool isDepthwise = draw(0, 2) == 0;
  std::string x = llvm::formatv("tensor<2x3x{0}xf32>", size);
  std::string w =
      llvm::formatv("tensor<{0}x{1}xf32>", isDepthwise ? "3" : "4x3", kernel);
  std::string r =
      llvm::formatv("tensor<2x{0}x{1}xf32>", isDepthwise ? 3 : 4, places);
  StringRef channel = isDepthwise ? "o" : "c";
  std::string p = llvm::formatv("tensor<2x3x{0}xf32>", padded);
  return makeFunction(x, w, r,
                      llvm::formatv(
                          R"(
    %p = tensor.pad %x low[0, 0, {0}] high[0, 0, {1}] {{
    ^bb0(%i: index, %j: index, %k: index):
      tensor.yield %zero : f32
    } : {2} to {3}
    %r = linalg.generic {{indexing_maps = [
        affine_map<(n, o, a, {10}k) -> (n, {4}, a * {5} + k * {6})>,
        affine_map<(n, o, a, {10}k) -> ({7}, k)>,
        affine_map<(n, o, a, {10}k) -> (n, o, a)>],
        iterator_types = ["parallel", "parallel", "parallel", {11}"reduction"]}
        ins(%p, %w : {3}, {8}) outs(%init : {9}) {{
    ^bb0(%u: f32, %v: f32, %s: f32):
      %m = arith.mulf %u, %v : f32
      %t = arith.addf %s, %m : f32
      linalg.yield %t : f32
    } -> {9})",
                          before, after, x, p, channel, stride, dilation,
                          isDepthwise ? "o" : "o, c", w, r,
                          isDepthwise ? "" : "c, ",
                          isDepthwise ? "" : "\"reduction\", ")
                          .str());
}

/// Sums over windows have gradients that are sums over windows.
TEST_F(DifferentiateTest, RandomConvolutions) {
  unsigned count = std::getenv("KAS_SLOW_TESTS") ? 400 : 25;
  for (uint64_t seed = 0; seed < count; ++seed) {
    std::string text = makeRandomConvolution(RandomStream(seed));
    SCOPED_TRACE("seed " + std::to_string(seed));
    checkText(text);
  }
  EXPECT_EQ(slopes.cornered, 0u);
}

/// `@f` with a sum over windows whose weight, and maybe whose data, has
/// dimensions for the place, the offset and the index of the window, too.
static std::string makeRandomWindows(const RandomStream &random) {
  uint64_t index = 0;
  auto draw = [&](int64_t least, int64_t most) {
    return least + int64_t(random.uniform(index++) * (most - least + 1));
  };
  bool isKept = draw(0, 1);
  int64_t places = draw(2, 5), kernel = draw(1, 3);
  int64_t stride = isKept ? 1 : draw(1, 3), dilation = isKept ? 1 : draw(1, 3);
  int64_t size = (places - 1) * stride + (kernel - 1) * dilation + 1;
  std::string window = llvm::formatv("a * {0} + k * {1}", stride, dilation);
  std::vector<std::pair<std::string, int64_t>> choices = {
      {"k", kernel}, {"a", places}, {window, size + draw(0, 2)}, {"o", 4}};
  std::string indices, shape;
  for (auto &[expr, extent] : choices) {
    if (draw(0, 2) == 0)
      continue;
    indices += (indices.empty() ? "" : ", ") + expr;
    shape += std::to_string(extent) + "x";
  }
  if (indices.empty())
    indices = "o", shape = "4x";
  std::string w = "tensor<" + shape + "f32>";
  std::string x = llvm::formatv("tensor<2x{0}{1}xf32>",
                                isKept ? std::to_string(kernel) + "x" : "",
                                size + draw(0, 2));
  std::string r = llvm::formatv("tensor<2x4x{0}xf32>", places);
  std::string y = llvm::formatv("tensor<{0}xf32>", kernel);
  return makeFunction(x, w, r,
                      llvm::formatv(R"(
    %y = arith.constant dense<1.0> : {6}
    %r = linalg.generic {{indexing_maps = [
        affine_map<(n, o, a, k) -> (n, {0}{1})>,
        affine_map<(n, o, a, k) -> ({2})>,
        affine_map<(n, o, a, k) -> (k)>,
        affine_map<(n, o, a, k) -> (n, o, a)>],
        iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%x, %w, %y : {3}, {4}, {6}) outs(%init : {5}) {{
    ^bb0(%u: f32, %v: f32, %q: f32, %s: f32):
      %p = arith.mulf %u, %v : f32
      %m = arith.mulf %p, %q : f32
      %t = arith.addf %s, %m : f32
      linalg.yield %t : f32
    } -> {5})",
                                    isKept ? "k, " : "", window, indices, x, w,
                                    r, y)
                          .str());
}

TEST_F(DifferentiateTest, RandomWindows) {
  unsigned count = std::getenv("KAS_SLOW_TESTS") ? 400 : 40;
  for (uint64_t seed = 0; seed < count; ++seed) {
    std::string text = makeRandomWindows(RandomStream(seed, "windows"));
    SCOPED_TRACE("seed " + std::to_string(seed));
    checkText(text);
  }
  EXPECT_EQ(slopes.cornered, 0u);
}

TEST_F(DifferentiateTest, BatchNorm) {
  auto module = parseSourceString<ModuleOp>(
      makeFunction("tensor<4x3x2x5xf32>", "tensor<3xf32>",
                   "tensor<4x3x2x5xf32>", R"(
    %r, %mean, %variance = kas.batch_norm %x, %w, %w epsilon 1.0e-02
        : tensor<4x3x2x5xf32>, tensor<3xf32>)"),
      &context);
  ASSERT_TRUE(module);
  check(*module, "f", 1);
  EXPECT_EQ(slopes.cornered, 0u);
}

TEST_F(DifferentiateTest, TensorOperations) {
  checkText(makeFunction("tensor<5x6xf32>", "tensor<6x4xf32>",
                         "tensor<5x4xf32>",
                         "%r = linalg.matmul ins(%x, %w : tensor<5x6xf32>, "
                         "tensor<6x4xf32>) outs(%init : tensor<5x4xf32>) -> "
                         "tensor<5x4xf32>"));
  // What a sum begins with has a gradient, too.
  checkText(
      makeFunction("tensor<5x4xf32>", "tensor<6x4xf32>", "tensor<5x4xf32>", R"(
    %a = tensor.empty() : tensor<5x6xf32>
    %b = linalg.fill ins(%zero : f32) outs(%a : tensor<5x6xf32>) -> tensor<5x6xf32>
    %e = tensor.empty() : tensor<4x6xf32>
    %t = linalg.transpose ins(%w : tensor<6x4xf32>) outs(%e : tensor<4x6xf32>) permutation = [1, 0]
    %c = linalg.matmul ins(%x, %t : tensor<5x4xf32>, tensor<4x6xf32>) outs(%b : tensor<5x6xf32>) -> tensor<5x6xf32>
    %r = linalg.matmul ins(%c, %w : tensor<5x6xf32>, tensor<6x4xf32>) outs(%x : tensor<5x4xf32>) -> tensor<5x4xf32>)"));
  checkText(makeFunction("tensor<3x4xf32>", "tensor<4xf32>", "tensor<24xf32>",
                         R"(
    %p = tensor.pad %x low[1, 0] high[0, 2] {
    ^bb0(%i: index, %j: index):
      tensor.yield %zero : f32
    } : tensor<3x4xf32> to tensor<4x6xf32>
    %s = tensor.extract_slice %p[0, 1] [4, 2] [1, 2] : tensor<4x6xf32> to tensor<4x2xf32>
    %e = tensor.empty() : tensor<4x2xf32>
    %b = linalg.broadcast ins(%w : tensor<4xf32>) outs(%e : tensor<4x2xf32>) dimensions = [1]
    %m = linalg.mul ins(%s, %b : tensor<4x2xf32>, tensor<4x2xf32>) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
    %q = tensor.insert_slice %m into %p[0, 2] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<4x6xf32>
    %c = tensor.collapse_shape %q [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
    %d = tensor.expand_shape %c [[0, 1]] output_shape [6, 4] : tensor<24xf32> into tensor<6x4xf32>
    %r = tensor.collapse_shape %d [[0, 1]] : tensor<6x4xf32> into tensor<24xf32>)"));
  // One value in two places, and a part that no gradient is wanted of.
  checkText(
      makeFunction("tensor<3x4xf32>", "tensor<3x2xf32>", "tensor<3x11xf32>", R"(
    %k = arith.constant dense<2.0> : tensor<3x1xf32>
    %c = tensor.concat dim(1) %x, %k, %w, %x : (tensor<3x4xf32>, tensor<3x1xf32>, tensor<3x2xf32>, tensor<3x4xf32>) -> tensor<3x11xf32>
    %r = linalg.mul ins(%c, %c : tensor<3x11xf32>, tensor<3x11xf32>) outs(%empty : tensor<3x11xf32>) -> tensor<3x11xf32>)"));
  checkText(makeFunction("tensor<1x2x6x6xf32>", "tensor<2xf32>",
                         "tensor<1x2x3x3xf32>", R"(
    %i = linalg.fill ins(%least : f32) outs(%empty : tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
    %k = tensor.empty() : tensor<2x2xf32>
    %r = linalg.pooling_nchw_max {strides = dense<2> : tensor<2xi64>}
        ins(%x, %k : tensor<1x2x6x6xf32>, tensor<2x2xf32>) outs(%i : tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>)"));
  EXPECT_EQ(slopes.cornered, 0u);
}

/// What depends on the place, such as the divisors of means at borders.
TEST_F(DifferentiateTest, Places) {
  checkText(
      makeFunction("tensor<3x4xf32>", "tensor<3x4xf32>", "tensor<3x4xf32>", R"(
    %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>],
        iterator_types = ["parallel", "parallel"]} ins(%x, %w : tensor<3x4xf32>, tensor<3x4xf32>) outs(%empty : tensor<3x4xf32>) {
    ^bb0(%u: f32, %v: f32, %o: f32):
      %b = linalg.index 1 : index
      %one = arith.constant 1 : index
      %n = arith.addi %b, %one : index
      %i = arith.index_cast %n : index to i32
      %c = arith.sitofp %i : i32 to f32
      %p = arith.mulf %u, %v : f32
      %q = arith.divf %p, %c : f32
      linalg.yield %q : f32
    } -> tensor<3x4xf32>)"));
  EXPECT_EQ(slopes.cornered, 0u);
}

/// Rows of a table, some of them more than once.
TEST_F(DifferentiateTest, Lookups) {
  checkText(makeFunction("tensor<4x3xf32>", "tensor<2x5x3xf32>",
                         "tensor<2x5x3xf32>", R"(
    %n = arith.constant dense<[[0, 3, 3, 1, 0], [2, 3, 0, 0, 0]]> : tensor<2x5xi64>
    %t = linalg.generic {indexing_maps = [affine_map<(n, l, c) -> (n, l)>, affine_map<(n, l, c) -> (n, l, c)>],
        iterator_types = ["parallel", "parallel", "parallel"]} ins(%n : tensor<2x5xi64>) outs(%empty : tensor<2x5x3xf32>) {
    ^bb0(%i: i64, %o: f32):
      %row = arith.index_cast %i : i64 to index
      %c = linalg.index 2 : index
      %v = tensor.extract %x[%row, %c] : tensor<4x3xf32>
      linalg.yield %v : f32
    } -> tensor<2x5x3xf32>
    %s = linalg.mul ins(%t, %t : tensor<2x5x3xf32>, tensor<2x5x3xf32>) outs(%empty : tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
    %r = linalg.mul ins(%s, %w : tensor<2x5x3xf32>, tensor<2x5x3xf32>) outs(%empty : tensor<2x5x3xf32>) -> tensor<2x5x3xf32>)"));
  EXPECT_EQ(slopes.cornered, 0u);
}

/// Copies of one element are a maximum together; each counts once in all.
TEST_F(DifferentiateTest, MaximumOfCopies) {
  checkText(makeFunction("tensor<5xf32>", "tensor<5xf32>", "tensor<5xf32>", R"(
    %e = tensor.empty() : tensor<5x3xf32>
    %c = linalg.broadcast ins(%x : tensor<5xf32>) outs(%e : tensor<5x3xf32>) dimensions = [1]
    %i = linalg.fill ins(%least : f32) outs(%empty : tensor<5xf32>) -> tensor<5xf32>
    %m = linalg.reduce ins(%c : tensor<5x3xf32>) outs(%i : tensor<5xf32>) dimensions = [1]
      (%a: f32, %b: f32) {
        %l = arith.maximumf %a, %b : f32
        linalg.yield %l : f32
      }
    %r = linalg.mul ins(%m, %w : tensor<5xf32>, tensor<5xf32>) outs(%empty : tensor<5xf32>) -> tensor<5xf32>)"));
  EXPECT_EQ(slopes.cornered, 0u);
}

//===----------------------------------------------------------------------===//
// Random operators and kernels
//===----------------------------------------------------------------------===//

TEST_F(DifferentiateTest, RandomOperators) {
  unsigned count = getNumOperators(15, 300);
  RandomOperatorOptions options;
  options.maxPoints = 1000;
  for (uint64_t seed = getFirstSeed(); seed < getFirstSeed() + count; ++seed) {
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    RandomOperator random =
        makeRandomOperator(builder, "random", seed, options);
    OperatorOp concrete = makeConcrete(random.op, random.binding);
    OwningOpRef<ModuleOp> applied = createOperatorModule(concrete);
    lower(*applied);
    check(*applied, operatorFunctionName, seed);
    ASSERT_FALSE(HasFailure()) << seed;
  }
  EXPECT_GE(slopes.compared, 3 * count / 2);
}

/// Programs of several stages may add in other orders where all of their
/// results are kept for gradients.
TEST_F(DifferentiateTest, RandomSequences) {
  unsigned count = getNumOperators(10, 200);
  RandomSequenceOptions options;
  options.maxGroups = 2;
  for (uint64_t seed = getFirstSeed(); seed < getFirstSeed() + count; ++seed) {
    RandomSequence random = makeRandomSequence(&context, seed, options);
    auto lowered = createSequenceModule(random.op, random.binding,
                                        [&] { return random.op.emitError(); });
    ASSERT_TRUE(succeeded(lowered));
    lower(**lowered);
    check(**lowered, sequenceFunctionName, seed, 1e-2, 1e-5);
    ASSERT_FALSE(HasFailure()) << seed;
  }
  EXPECT_GE(slopes.compared, 3 * count / 2);
}

/// Random kernels against differences of them.
void DifferentiateTest::checkKernels(unsigned count,
                                     const RandomKernelOptions &options) {
  for (uint64_t seed = getFirstSeed(); seed < getFirstSeed() + count; ++seed) {
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    KernelOp kernel = addRandomKernel(*module, "k", seed, options);
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    ASSERT_TRUE(succeeded(createKernelFunction(
        builder, kernel, getSizeRules(kernel).bindings.front(), "f")));
    lower(*module);
    check(*module, "f", seed);
    ASSERT_FALSE(HasFailure()) << seed;
  }
  EXPECT_GE(slopes.compared, count);
}

TEST_F(DifferentiateTest, RandomKernels) {
  RandomKernelOptions options;
  options.maxElements = 256;
  checkKernels(getNumOperators(15, 300), options);
}

TEST_F(DifferentiateTest, RandomScans) {
  RandomKernelOptions options;
  options.maxElements = 128;
  options.maxSteps = 4;
  options.scanPercent = 60;
  checkKernels(getNumOperators(15, 300), options);
}
