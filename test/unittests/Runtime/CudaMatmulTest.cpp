//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products of matrices by a library: their values for every layout, and that
// the kernel computes them whatever is wrong with the library. The stand-ins
// check what is passed to them; the kernel writes -1 everywhere, so it is seen
// which of the two has computed a result.
//
//===----------------------------------------------------------------------===//

#include "LibraryTest.h"

using namespace kas::rt;

namespace {

/// Where the elements of a product lie.
struct Case {
  const char *name;
  uint64_t batches, rows, columns, steps;
  KasRtMatrix left, right, result;
  bool hasBias = false, hasResidual = false, isRectified = false;
  KasRtElement precision = KAS_RT_F32;
};

class CudaMatmulTest : public LibraryTest {
protected:
  CudaMatmulTest() : LibraryTest("KAS_RT_LIBCUBLASLT", KAS_CUBLASLT_STAND_IN) {}

  /// Runs `one` on small numbers and gives the result, all of its buffer.
  std::vector<float> run(const Case &one);
  static std::vector<float> getReference(const Case &one);
  static std::vector<std::vector<float>> getInputs(const Case &one);
  void expectKernel(const std::string &text);
};

} // namespace

/// Elements up to the last one of a matrix.
static uint64_t countElements(const KasRtMatrix &matrix, uint64_t batches,
                              uint64_t lines, uint64_t inner) {
  return matrix.strides[0] * (batches - 1) + matrix.strides[1] * (lines - 1) +
         matrix.strides[2] * (inner - 1) + 1;
}

// The arguments of the kernel: left, right, bias, residual.
std::vector<std::vector<float>> CudaMatmulTest::getInputs(const Case &one) {
  return {
      getValues(countElements(one.left, one.batches, one.rows, one.steps), 1),
      getValues(countElements(one.right, one.batches, one.columns, one.steps),
                2),
      getValues(one.columns, 3),
      getValues(countElements(one.result, one.batches, one.rows, one.columns),
                4)};
}

static KasRtMatmul getMatmul(const Case &one) {
  return {one.batches,
          one.rows,
          one.columns,
          one.steps,
          one.left,
          one.right,
          one.result,
          KAS_RT_F32,
          KAS_RT_F32,
          one.precision,
          one.hasBias ? 2 : -1,
          one.hasResidual ? 3 : -1,
          one.isRectified};
}

std::vector<float> CudaMatmulTest::getReference(const Case &one) {
  std::vector<std::vector<float>> inputs = getInputs(one);
  std::vector<float> results(inputs[3].size(), 99);
  auto at = [](const KasRtMatrix &matrix, uint64_t batch, uint64_t line,
               uint64_t inner) {
    return batch * matrix.strides[0] + line * matrix.strides[1] +
           inner * matrix.strides[2];
  };
  for (uint64_t batch = 0; batch < one.batches; ++batch)
    for (uint64_t row = 0; row < one.rows; ++row)
      for (uint64_t column = 0; column < one.columns; ++column) {
        uint64_t place = at(one.result, batch, row, column);
        float sum = one.hasBias ? inputs[2][column] : 0;
        if (one.hasResidual)
          sum += inputs[3][place];
        for (uint64_t step = 0; step < one.steps; ++step)
          sum += inputs[0][at(one.left, batch, row, step)] *
                 inputs[1][at(one.right, batch, column, step)];
        results[place] = one.isRectified ? std::max(sum, 0.0f) : sum;
      }
  return results;
}

std::vector<float> CudaMatmulTest::run(const Case &one) {
  KasRtMatmul matmul = getMatmul(one);
  std::vector<std::vector<float>> inputs = getInputs(one);
  return LibraryTest::run(
      [&](KasRtKernel kernel) { return kasRtKernelUseMatmul(kernel, &matmul); },
      inputs, inputs[3].size());
}

//===----------------------------------------------------------------------===//
// By the library
//===----------------------------------------------------------------------===//

static const Case linear = {
    "linear", 1, 4, 6, 5, {0, {0, 5, 1}}, {1, {0, 5, 1}}, {4, {0, 6, 1}}};

TEST_F(CudaMatmulTest, ComputesEveryLayout) {
  const Case cases[] = {
      linear,
      // Rows or columns are neighbours, not steps.
      {"right by columns",
       1,
       4,
       6,
       5,
       {0, {0, 5, 1}},
       {1, {0, 1, 6}},
       {4, {0, 6, 1}}},
      {"left by rows",
       1,
       4,
       6,
       5,
       {0, {0, 1, 4}},
       {1, {0, 5, 1}},
       {4, {0, 6, 1}}},
      {"both", 1, 4, 6, 5, {0, {0, 1, 4}}, {1, {0, 1, 6}}, {4, {0, 6, 1}}},
      // Parts of larger tensors.
      {"gaps", 1, 4, 6, 5, {0, {0, 8, 1}}, {1, {0, 1, 9}}, {4, {0, 7, 1}}},
      {"batches",
       3,
       4,
       6,
       5,
       {0, {20, 5, 1}},
       {1, {30, 1, 6}},
       {4, {24, 6, 1}}},
      // Weights that all images share.
      {"one left matrix",
       3,
       4,
       6,
       5,
       {0, {0, 5, 1}},
       {1, {30, 1, 6}},
       {4, {24, 6, 1}}},
      // Batches between rows, as heads of attention.
      {"interleaved",
       2,
       4,
       3,
       5,
       {0, {5, 10, 1}},
       {1, {5, 10, 1}},
       {4, {3, 6, 1}}},
      {"one row", 1, 1, 6, 5, {0, {0, 0, 1}}, {1, {0, 5, 1}}, {4, {0, 0, 1}}},
      {"one column",
       1,
       4,
       1,
       5,
       {0, {0, 5, 1}},
       {1, {0, 0, 1}},
       {4, {0, 1, 1}}},
      {"one step", 1, 4, 6, 1, {0, {0, 1, 1}}, {1, {0, 1, 1}}, {4, {0, 6, 1}}}};
  for (bool inSequence : {true, false})
    for (const Case &one : cases)
      // Each by itself and together; of launches alone the last one.
      for (int epilogue = inSequence ? 0 : 7; epilogue < 8; ++epilogue) {
        SCOPED_TRACE(one.name + std::to_string(epilogue));
        Case next = one;
        next.hasBias = epilogue & 1;
        next.hasResidual = epilogue & 2;
        next.isRectified = epilogue & 4;
        isSequence = inSequence;
        EXPECT_EQ(run(next), getReference(next));
        EXPECT_EQ(computedBy, "cuBLASLt 12.1.3");
      }
  EXPECT_EQ(driver->countCalls("cuLaunchKernel"), 0);
}

// 1 + 2^-9 has more bits than bf16 has, 1 + 2^-12 more than f16 and tf32.
TEST_F(CudaMatmulTest, RoundsWhatTheProductAllows) {
  for (auto [precision, computeType] :
       {std::pair(KAS_RT_F32, 68), std::pair(KAS_RT_F16, 74),
        std::pair(KAS_RT_BF16, 75), std::pair(KAS_RT_TF32, 77)}) {
    Case one = linear;
    one.precision = precision;
    EXPECT_EQ(run(one), getReference(one));
    EXPECT_NE(std::string(library->getLog())
                  .find("cublasLtMatmulDescCreate(" +
                        std::to_string(computeType) + ", 0)"),
              std::string::npos);
    library->reset();
  }
}

/// Of two factors of 16 bits, each by its bits; the sum has 32.
TEST_F(CudaMatmulTest, TakesNumbersOfSixteenBits) {
  for (KasRtElement type : {KAS_RT_F16, KAS_RT_BF16})
    for (KasRtElement resultType : {type, KAS_RT_F32}) {
      uint32_t oneAndAHalf = type == KAS_RT_F16 ? 0x3e00 : 0x3fc0;
      SCOPED_TRACE(type);
      withKernel([&](KasRtDevice device, KasRtKernel kernel) {
        KasRtBuffer buffer = nullptr;
        ASSERT_SUCCESS(kasRtBufferCreate(device, 1024, &buffer));
        KasRtMatmul matmul = getMatmul(linear);
        matmul.factorType = type;
        matmul.resultType = resultType;
        ASSERT_SUCCESS(kasRtKernelUseMatmul(kernel, &matmul));
        ASSERT_SUCCESS(
            kasRtBufferFill(buffer, oneAndAHalf | oneAndAHalf << 16));
        KasRtArgument factors = {buffer, 0, 0}, result = {buffer, 512, 0};
        const KasRtArgument arguments[] = {factors, factors, factors, factors,
                                           result};
        KasRtLaunchSize size = {{1, 1, 1}, {32, 1, 1}, 0};
        ASSERT_SUCCESS(kasRtLaunch(kernel, &size, arguments, 5));
        uint32_t bits = 0;
        ASSERT_SUCCESS(kasRtBufferRead(buffer, 512, &bits, sizeof(bits)));
        // 5 * 1.5 * 1.5 = 11.25, of which bf16 has 8 bits.
        uint32_t expected = type == KAS_RT_F16 ? 0x49a049a0 : 0x41344134;
        EXPECT_EQ(bits, resultType == KAS_RT_F32 ? 0x41340000 : expected);
        EXPECT_SUCCESS(kasRtBufferDestroy(buffer));
      });
    }
}

//===----------------------------------------------------------------------===//
// By the kernel
//===----------------------------------------------------------------------===//

void CudaMatmulTest::expectKernel(const std::string &text) {
  LibraryTest::expectKernel([&] { return run(linear); }, text);
}

TEST_F(CudaMatmulTest, IsLeftOutWhereTheUserSaysSo) {
  useDriver("KAS_RT_LIBRARIES", "0");
  expectKernel("KAS_RT_LIBRARIES is 0");
  EXPECT_STREQ(library->getLog(), "");
}

TEST_F(CudaMatmulTest, IsLeftOutWithoutTheLibrary) {
  useDriver("KAS_RT_LIBCUBLASLT", "libkas-no-such-library.so");
  expectKernel("no cuBLASLt: looked for the library libkas-no-such-library.so "
               "(from KAS_RT_LIBCUBLASLT), got: ");
}

TEST_F(CudaMatmulTest, IsLeftOutWithoutAFunction) {
  useDriver("KAS_RT_LIBCUBLASLT", KAS_OLD_CUBLASLT_STAND_IN);
  expectKernel("no cuBLASLt: looked for the function "
               "cublasLtMatmulPreferenceSetAttribute in ");
}

TEST_F(CudaMatmulTest, IsLeftOutOfAnotherVersion) {
  for (auto [version, text] :
       {std::pair(100200, "10.2.0"), std::pair(140000, "14.0.0")}) {
    library->fail("cublasLtGetVersion", 1, version);
    isSequence = false;
    EXPECT_EQ(run(linear), std::vector<float>(24, -1));
    EXPECT_NE(computedBy.find("expected version 11, 12 or 13 in "),
              std::string::npos);
    EXPECT_NE(computedBy.find(std::string("got cuBLASLt ") + text),
              std::string::npos)
        << computedBy;
    library->reset();
  }
}

// Rows that overlap, and results of fewer bits than the factors have.
TEST_F(CudaMatmulTest, IsLeftOutWhereTheLibraryHasNoSuchProduct) {
  Case one = linear;
  // More columns than are between two rows.
  one.result.strides[1] = 3;
  isSequence = false;
  run(one);
  EXPECT_EQ(computedBy, "kernel: cublasLtMatrixLayoutCreate failed: status 7");
  withKernel([&](KasRtDevice, KasRtKernel kernel) {
    EXPECT_STREQ(kasRtKernelGetLibrary(kernel), "kernel");
    KasRtMatmul matmul = getMatmul(linear);
    matmul.resultType = KAS_RT_F16;
    ASSERT_SUCCESS(kasRtKernelUseMatmul(kernel, &matmul));
    EXPECT_STREQ(kasRtKernelGetLibrary(kernel),
                 "kernel: cublasLtMatmulAlgoGetHeuristic failed: status 15");
  });
}

// Whichever call fails, at whatever time, the kernel computes, and nothing is
// left over.
TEST_F(CudaMatmulTest, SurvivesEachCallThatFails) {
  const char *functions[] = {"cublasLtCreate",
                             "cublasLtMatmulDescCreate",
                             "cublasLtMatmulDescSetAttribute",
                             "cublasLtMatrixLayoutCreate",
                             "cublasLtMatrixLayoutSetAttribute",
                             "cublasLtMatmulPreferenceCreate",
                             "cublasLtMatmulPreferenceSetAttribute",
                             "cublasLtMatmulAlgoGetHeuristic",
                             "cublasLtMatmul"};
  Case one = linear;
  one.hasBias = true;
  for (bool inSequence : {false, true})
    for (const char *function : functions)
      for (int nth = 1;; ++nth) {
        SCOPED_TRACE(std::string(function) + std::to_string(nth));
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
        EXPECT_EQ(results, std::vector<float>(24, -1));
        EXPECT_EQ(computedBy,
                  std::string("kernel: ") + function + " failed: status 14");
      }
}

TEST_F(CudaMatmulTest, SurvivesADriverThatFails) {
  expectKernelWhereDriverFails([&] { return run(linear); });
}

TEST_F(CudaMatmulTest, SaysWhatIsNoProduct) {
  withKernel([&](KasRtDevice, KasRtKernel kernel) {
    KasRtMatmul good = getMatmul(linear);
    auto expect = [&](const KasRtMatmul &matmul, const std::string &text) {
      expectError(kasRtKernelUseMatmul(kernel, &matmul),
                  KAS_RT_ERROR_INVALID_ARGUMENT, text);
    };
    auto change = [&](auto function) {
      KasRtMatmul changed = good;
      function(changed);
      return changed;
    };
    expectError(kasRtKernelUseMatmul(nullptr, &good),
                KAS_RT_ERROR_INVALID_ARGUMENT, "expected a kernel, got null");
    expectError(kasRtKernelUseMatmul(kernel, nullptr),
                KAS_RT_ERROR_INVALID_ARGUMENT, "expected a product, got null");
    expect(change([](KasRtMatmul &it) { it.steps = 0; }),
           "expected sizes of a product from 1 to 2147483647 for kernel "
           "'product', "
           "got 0");
    expect(change([](KasRtMatmul &it) { it.rows = uint64_t(1) << 31; }),
           "got 2147483648");
    expect(change([](KasRtMatmul &it) { it.right.argument = 5; }),
           "expected matrices in 5 buffers for kernel 'product', got 5");
    expect(change([](KasRtMatmul &it) { it.left.strides[2] = 2; }),
           "expected neighbours along a dimension of each matrix for kernel "
           "'product', got 2");
    expect(change([](KasRtMatmul &it) {
             it.result.strides[1] = 1;
             it.result.strides[2] = 4;
           }),
           "expected neighbours along a dimension of each matrix");
    expect(
        change([](KasRtMatmul &it) { it.bias = 5; }),
        "expected a bias and a residual in 5 buffers for kernel 'product', got "
        "5");
    expect(change([](KasRtMatmul &it) { it.factorType = KAS_RT_TF32; }),
           "expected matrices of F32, F16 or BF16 for kernel 'product', got 1");
    EXPECT_STREQ(kasRtKernelGetLibrary(kernel), "kernel");
    EXPECT_STREQ(kasRtKernelGetLibrary(nullptr), "");
  });
}
