//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Convolutions by cuDNN, on stand-ins for it and for CUDA's driver: what is
// passed to it, what it computes, and that the kernel is launched whenever it
// cannot.
//
//===----------------------------------------------------------------------===//

#include "LibraryTest.h"

using namespace kas::rt;

namespace {

struct Case {
  const char *name;
  uint64_t imageSizes[4], filterSizes[4];
  uint64_t strides[2] = {1, 1}, dilations[2] = {1, 1}, pads[2] = {0, 0};
  bool areChannelsLast = false;
  bool hasBias = false, hasResidual = false, isRectified = false;
  KasRtElement precision = KAS_RT_F32;
};

class CudaConvolutionTest : public LibraryTest {
protected:
  CudaConvolutionTest() : LibraryTest("KAS_RT_LIBCUDNN", KAS_CUDNN_STAND_IN) {}

  /// Runs `one` on small numbers and gives the result.
  std::vector<float> run(const Case &one);
  static std::vector<float> getReference(const Case &one);
  static std::vector<std::vector<float>> getInputs(const Case &one);
  void expectKernel(const std::string &text);
  /// How often a call was made with these arguments.
  bool isLogged(const std::string &call) const {
    return std::string(library->getLog()).find(call) != std::string::npos;
  }
};

} // namespace

/// Of the result along height (0) or width.
static uint64_t getSize(const Case &one, int i) {
  return (one.imageSizes[2 + i] + 2 * one.pads[i] -
          one.dilations[i] * (one.filterSizes[2 + i] - 1) - 1) /
             one.strides[i] +
         1;
}

static uint64_t countElements(const uint64_t (&sizes)[4]) {
  return sizes[0] * sizes[1] * sizes[2] * sizes[3];
}

// The arguments of the kernel: image, filter, bias, residual.
std::vector<std::vector<float>>
CudaConvolutionTest::getInputs(const Case &one) {
  uint64_t channels = one.filterSizes[0],
           results =
               one.imageSizes[0] * channels * getSize(one, 0) * getSize(one, 1);
  return {getValues(countElements(one.imageSizes), 1),
          getValues(countElements(one.filterSizes), 2), getValues(channels, 3),
          getValues(results, 4)};
}

static KasRtConvolution getConvolution(const Case &one) {
  KasRtConvolution convolution = {};
  convolution.image = 0;
  convolution.filter = 1;
  convolution.result = 4;
  std::copy_n(one.imageSizes, 4, convolution.imageSizes);
  std::copy_n(one.filterSizes, 4, convolution.filterSizes);
  std::copy_n(one.strides, 2, convolution.strides);
  std::copy_n(one.dilations, 2, convolution.dilations);
  std::copy_n(one.pads, 2, convolution.pads);
  convolution.areChannelsLast = one.areChannelsLast;
  convolution.elementType = KAS_RT_F32;
  convolution.precision = one.precision;
  convolution.bias = one.hasBias ? 2 : -1;
  convolution.residual = one.hasResidual ? 3 : -1;
  convolution.isRectified = one.isRectified;
  return convolution;
}

/// Position of an element of a tensor without gaps.
static uint64_t getIndex(const Case &one, const uint64_t (&sizes)[4],
                         uint64_t n, uint64_t c, uint64_t h, uint64_t w) {
  return one.areChannelsLast
             ? ((n * sizes[2] + h) * sizes[3] + w) * sizes[1] + c
             : ((n * sizes[1] + c) * sizes[2] + h) * sizes[3] + w;
}

/// Of one window.
static float getSum(const Case &one,
                    const std::vector<std::vector<float>> &inputs, uint64_t n,
                    uint64_t k, uint64_t y, uint64_t x) {
  uint64_t channels = one.filterSizes[1], groups = one.imageSizes[1] / channels,
           group = k / (one.filterSizes[0] / groups);
  float sum = 0;
  for (uint64_t c = 0; c < channels; ++c)
    for (uint64_t i = 0; i < one.filterSizes[2]; ++i)
      for (uint64_t j = 0; j < one.filterSizes[3]; ++j) {
        // Of what is before the image these are large.
        uint64_t h = y * one.strides[0] + i * one.dilations[0] - one.pads[0],
                 w = x * one.strides[1] + j * one.dilations[1] - one.pads[1];
        if (h < one.imageSizes[2] && w < one.imageSizes[3])
          sum += inputs[0][getIndex(one, one.imageSizes, n,
                                    group * channels + c, h, w)] *
                 inputs[1][getIndex(one, one.filterSizes, k, c, i, j)];
      }
  return sum;
}

std::vector<float> CudaConvolutionTest::getReference(const Case &one) {
  std::vector<std::vector<float>> inputs = getInputs(one);
  std::vector<float> results(inputs[3].size());
  const uint64_t sizes[4] = {one.imageSizes[0], one.filterSizes[0],
                             getSize(one, 0), getSize(one, 1)};
  for (uint64_t n = 0; n < sizes[0]; ++n)
    for (uint64_t k = 0; k < sizes[1]; ++k)
      for (uint64_t y = 0; y < sizes[2]; ++y)
        for (uint64_t x = 0; x < sizes[3]; ++x) {
          uint64_t place = getIndex(one, sizes, n, k, y, x);
          float sum = getSum(one, inputs, n, k, y, x) +
                      (one.hasBias ? inputs[2][k] : 0) +
                      (one.hasResidual ? inputs[3][place] : 0);
          results[place] = one.isRectified ? std::max(sum, 0.0f) : sum;
        }
  return results;
}

std::vector<float> CudaConvolutionTest::run(const Case &one) {
  KasRtConvolution convolution = getConvolution(one);
  std::vector<std::vector<float>> inputs = getInputs(one);
  return LibraryTest::run(
      [&](KasRtKernel kernel) {
        return kasRtKernelUseConvolution(kernel, &convolution);
      },
      inputs, inputs[3].size());
}

//===----------------------------------------------------------------------===//
// By the library
//===----------------------------------------------------------------------===//

static const Case same = {"3x3",  {2, 3, 5, 4}, {4, 3, 3, 3},
                          {1, 1}, {1, 1},       {1, 1}};

TEST_F(CudaConvolutionTest, ComputesEveryWindow) {
  const Case cases[] = {
      same,
      {"1x1", {2, 3, 5, 4}, {4, 3, 1, 1}},
      {"no pads", {2, 3, 5, 4}, {4, 3, 3, 2}},
      {"strides", {1, 3, 7, 8}, {4, 3, 3, 3}, {2, 3}, {1, 1}, {1, 0}},
      {"dilations", {1, 3, 7, 8}, {4, 3, 3, 2}, {1, 1}, {2, 3}, {2, 1}},
      {"groups", {2, 4, 5, 4}, {6, 2, 3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"each channel", {2, 4, 5, 4}, {4, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"one row", {2, 3, 1, 9}, {4, 3, 1, 5}, {1, 2}, {1, 1}, {0, 2}},
      // The last row and column are in no window.
      {"rest", {1, 1, 6, 6}, {1, 1, 3, 3}, {2, 2}}};
  for (bool inSequence : {true, false})
    for (bool areChannelsLast : {false, true})
      for (const Case &one : cases)
        for (int epilogue = 0; epilogue < 8; ++epilogue) {
          SCOPED_TRACE(one.name + std::to_string(epilogue) +
                       (areChannelsLast ? " last" : " first"));
          Case next = one;
          next.areChannelsLast = areChannelsLast;
          next.hasBias = epilogue & 1;
          next.hasResidual = epilogue & 2;
          next.isRectified = epilogue & 4;
          // The library has a bias with the others.
          if (!next.hasBias && epilogue != 0)
            continue;
          isSequence = inSequence;
          EXPECT_EQ(run(next), getReference(next));
          EXPECT_EQ(computedBy, "cuDNN 8.9.7");
        }
  EXPECT_EQ(driver->countCalls("cuLaunchKernel"), 0);
}

// Not the first one, whose workspace is too large, or the second one, which
// adds in another order each time; identity is an activation of one alone.
TEST_F(CudaConvolutionTest, TakesTheFirstAlgorithmThatSuits) {
  run(same);
  EXPECT_TRUE(isLogged("cudnnConvolutionForward(6)"));
  library->reset();
  Case one = same;
  one.hasBias = true;
  run(one);
  EXPECT_TRUE(isLogged("cudnnSetActivationDescriptor(5, "));
  EXPECT_TRUE(isLogged("cudnnConvolutionBiasActivationForward(1, 0)"));
  library->reset();
  one.isRectified = one.hasResidual = true;
  run(one);
  EXPECT_TRUE(isLogged("cudnnSetActivationDescriptor(1, "));
  EXPECT_TRUE(isLogged("cudnnConvolutionBiasActivationForward(6, 1)"));
}

// CUDNN_FMA_MATH, or CUDNN_DEFAULT_MATH, which is tf32.
TEST_F(CudaConvolutionTest, RoundsWhatTheConvolutionAllows) {
  for (auto [precision, math] :
       {std::pair(KAS_RT_F32, 3), std::pair(KAS_RT_TF32, 0),
        std::pair(KAS_RT_F16, 0), std::pair(KAS_RT_BF16, 0)}) {
    Case one = same;
    one.precision = precision;
    EXPECT_EQ(run(one), getReference(one));
    EXPECT_TRUE(
        isLogged("cudnnSetConvolutionMathType(" + std::to_string(math) + ")"));
    library->reset();
  }
}

TEST_F(CudaConvolutionTest, TakesNumbersOfSixteenBits) {
  for (auto [type, format, oneAndAHalf, expected] :
       {std::tuple(KAS_RT_F16, 2, 0x3e003e00u, 0x49a049a0u),
        std::tuple(KAS_RT_BF16, 9, 0x3fc03fc0u, 0x41344134u)})
    withKernel([&, type = type, format = format, oneAndAHalf = oneAndAHalf,
                expected = expected](KasRtDevice device, KasRtKernel kernel) {
      KasRtBuffer buffer = nullptr;
      ASSERT_SUCCESS(kasRtBufferCreate(device, 1024, &buffer));
      Case one = {"five channels", {1, 5, 2, 2}, {1, 5, 1, 1}};
      KasRtConvolution convolution = getConvolution(one);
      convolution.elementType = type;
      ASSERT_SUCCESS(kasRtKernelUseConvolution(kernel, &convolution));
      ASSERT_SUCCESS(kasRtBufferFill(buffer, oneAndAHalf));
      KasRtArgument input = {buffer, 0, 0}, result = {buffer, 512, 0};
      const KasRtArgument arguments[] = {input, input, input, input, result};
      KasRtLaunchSize size = {{1, 1, 1}, {32, 1, 1}, 0};
      ASSERT_SUCCESS(kasRtLaunch(kernel, &size, arguments, 5));
      uint32_t bits = 0;
      ASSERT_SUCCESS(kasRtBufferRead(buffer, 512, &bits, sizeof(bits)));
      // 5 * 1.5 * 1.5 = 11.25, of which bf16 has 8 bits.
      EXPECT_EQ(bits, expected);
      EXPECT_TRUE(isLogged("cudnnSetFilter4dDescriptor(" +
                           std::to_string(format) + ", 0, 1, 5, 1, 1)"));
      EXPECT_TRUE(isLogged("cudnnSetConvolutionMathType(1)"));
      EXPECT_SUCCESS(kasRtBufferDestroy(buffer));
    });
}

// The stream is the caller's at each launch.
TEST_F(CudaConvolutionTest, RunsInTheStreamOfTheCaller) {
  isSequence = false;
  EXPECT_EQ(run(same), getReference(same));
  EXPECT_EQ(library->countCalls("cudnnSetStream"), 1);
}

//===----------------------------------------------------------------------===//
// By the kernel
//===----------------------------------------------------------------------===//

void CudaConvolutionTest::expectKernel(const std::string &text) {
  LibraryTest::expectKernel([&] { return run(same); }, text);
}

TEST_F(CudaConvolutionTest, IsLeftOutWhereTheUserSaysSo) {
  useDriver("KAS_RT_LIBRARIES", "0");
  expectKernel("KAS_RT_LIBRARIES is 0");
  EXPECT_STREQ(library->getLog(), "");
}

TEST_F(CudaConvolutionTest, IsLeftOutWithoutTheLibrary) {
  useDriver("KAS_RT_LIBCUDNN", "libkas-no-such-library.so");
  expectKernel("no cuDNN: looked for the library libkas-no-such-library.so "
               "(from KAS_RT_LIBCUDNN), got: ");
}

TEST_F(CudaConvolutionTest, IsLeftOutWithoutAFunction) {
  useDriver("KAS_RT_LIBCUDNN", KAS_OLD_CUDNN_STAND_IN);
  expectKernel("no cuDNN: looked for the function "
               "cudnnGetConvolutionForwardAlgorithm_v7 in ");
}

TEST_F(CudaConvolutionTest, IsLeftOutOfAnotherVersion) {
  for (auto [version, text] :
       {std::pair(7605, "7.6.5"), std::pair(100102, "10.1.2")}) {
    library->fail("cudnnGetVersion", 1, version);
    isSequence = false;
    EXPECT_EQ(run(same), std::vector<float>(160, -1));
    EXPECT_NE(computedBy.find("expected version 8 or 9 in "),
              std::string::npos);
    EXPECT_NE(computedBy.find(std::string("got cuDNN ") + text),
              std::string::npos)
        << computedBy;
    library->reset();
  }
  library->fail("cudnnGetVersion", 1, 91203);
  EXPECT_EQ(run(same), getReference(same));
  EXPECT_EQ(computedBy, "cuDNN 9.12.3");
}

// A residual or a rectifier without a bias.
TEST_F(CudaConvolutionTest, IsLeftOutWhereTheLibraryHasNoSuchConvolution) {
  isSequence = false;
  for (bool isRectified : {false, true}) {
    Case one = same;
    one.isRectified = isRectified;
    one.hasResidual = !isRectified;
    run(one);
    EXPECT_EQ(computedBy, "kernel: expected a bias before a residual or a "
                          "rectifier, got none");
  }
  EXPECT_EQ(library->countCalls("cudnnCreateTensorDescriptor"), 0);
}

// Whichever call fails, at whatever time, the kernel computes, and nothing is
// left over. All but the choices, of which another one is taken.
TEST_F(CudaConvolutionTest, SurvivesEachCallThatFails) {
  const char *functions[] = {"cudnnCreate",
                             "cudnnSetStream",
                             "cudnnCreateTensorDescriptor",
                             "cudnnSetTensor4dDescriptor",
                             "cudnnCreateFilterDescriptor",
                             "cudnnSetFilter4dDescriptor",
                             "cudnnCreateConvolutionDescriptor",
                             "cudnnSetConvolution2dDescriptor",
                             "cudnnSetConvolutionGroupCount",
                             "cudnnSetConvolutionMathType",
                             "cudnnCreateActivationDescriptor",
                             "cudnnSetActivationDescriptor",
                             "cudnnGetConvolutionForwardAlgorithm_v7",
                             "cudnnGetConvolutionForwardWorkspaceSize",
                             "cudnnConvolutionBiasActivationForward",
                             "cudnnConvolutionForward"};
  for (bool inSequence : {false, true})
    for (const char *function : functions)
      for (int nth = 1;; ++nth) {
        SCOPED_TRACE(std::string(function) + std::to_string(nth));
        Case one = same;
        one.hasBias = function != std::string("cudnnConvolutionForward");
        library->reset();
        library->fail(function, nth, 14);
        isSequence = inSequence;
        std::vector<float> results = run(one);
        if (!library->hasFailed()) {
          // There are no more such calls.
          EXPECT_GT(nth, 1);
          EXPECT_EQ(results, getReference(one));
          break;
        }
        EXPECT_EQ(results, std::vector<float>(160, -1));
        EXPECT_EQ(computedBy.substr(0, 8), "kernel: ");
        // Of several algorithms the first one says why.
        if (function != std::string("cudnnGetConvolutionForwardWorkspaceSize"))
          EXPECT_EQ(computedBy,
                    std::string("kernel: ") + function + " failed: status 14");
      }
}

// Where one algorithm cannot be taken the next one is.
TEST_F(CudaConvolutionTest, TakesAnotherAlgorithm) {
  library->fail("cudnnGetConvolutionForwardWorkspaceSize", 2, 14);
  EXPECT_EQ(run(same), getReference(same));
  EXPECT_TRUE(isLogged("cudnnConvolutionForward(1)"));
}

TEST_F(CudaConvolutionTest, SurvivesADriverThatFails) {
  expectKernelWhereDriverFails([&] { return run(same); });
}

TEST_F(CudaConvolutionTest, SaysWhatIsNoConvolution) {
  withKernel([&](KasRtDevice, KasRtKernel kernel) {
    KasRtConvolution good = getConvolution(same);
    auto expect = [&](const std::string &text, auto change) {
      KasRtConvolution changed = good;
      change(changed);
      expectError(kasRtKernelUseConvolution(kernel, &changed),
                  KAS_RT_ERROR_INVALID_ARGUMENT, text);
    };
    expectError(kasRtKernelUseConvolution(nullptr, &good),
                KAS_RT_ERROR_INVALID_ARGUMENT, "expected a kernel, got null");
    expectError(kasRtKernelUseConvolution(kernel, nullptr),
                KAS_RT_ERROR_INVALID_ARGUMENT,
                "expected a convolution, got null");
    expect("expected sizes of an image from 1 to 2147483647 for kernel "
           "'product', got 0",
           [](KasRtConvolution &it) { it.imageSizes[2] = 0; });
    expect("expected sizes of a filter from 1 to 2147483647 for kernel "
           "'product', got 2147483648",
           [](KasRtConvolution &it) { it.filterSizes[0] = uint64_t(1) << 31; });
    expect("expected strides from 1 to 2147483647 for kernel 'product', got 0",
           [](KasRtConvolution &it) { it.strides[1] = 0; });
    expect(
        "expected dilations from 1 to 2147483647 for kernel 'product', got 0",
        [](KasRtConvolution &it) { it.dilations[0] = 0; });
    expect("expected pads from 0 to 2147483647 for kernel 'product', got "
           "2147483648",
           [](KasRtConvolution &it) { it.pads[0] = uint64_t(1) << 31; });
    expect("expected channels of a filter that divide those of the image for "
           "kernel 'product', got 2",
           [](KasRtConvolution &it) { it.filterSizes[1] = 2; });
    expect("expected channels of the result that the groups divide for kernel "
           "'product', got 4",
           [](KasRtConvolution &it) { it.filterSizes[1] = 1; });
    expect("expected a window within the image and its pads for kernel "
           "'product', got 0",
           [](KasRtConvolution &it) { it.dilations[0] = 4; });
    expect("expected tensors in 5 buffers for kernel 'product', got 5",
           [](KasRtConvolution &it) { it.filter = 5; });
    expect("expected a bias and a residual in 5 buffers for kernel 'product', "
           "got 6",
           [](KasRtConvolution &it) { it.residual = 6; });
    expect("expected tensors of F32, F16 or BF16 for kernel 'product', got 1",
           [](KasRtConvolution &it) { it.elementType = KAS_RT_TF32; });
    EXPECT_STREQ(kasRtKernelGetLibrary(kernel), "kernel");
  });
}
