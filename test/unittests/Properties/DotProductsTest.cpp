//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contractions of bytes and of bf16, as tiles, between guard pages.
//
//===----------------------------------------------------------------------===//

#include "GuardedMemory.h"
#include "Properties.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/ExecutionEngine/JIT.h"
#include "kas/InitAll.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Support/Random.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include "gtest/gtest.h"
#include <cstring>
#include <numeric>

using namespace kas;
using namespace kas::execution;
using namespace kas::test;
using namespace mlir;

namespace {

/// Counts the functions with tiles of words.
class Watch : public PassInstrumentation {
public:
  explicit Watch(unsigned &numTiled) : numTiled(numTiled) {}

  void runBeforePass(Pass *pass, Operation *op) override {
    bool found = false;
    if (pass->getArgument() == "kas-lower-dot-products")
      op->walk([&](Operation *inner) {
        found |= inner->getName().getStringRef() == "kas_cpu.dot";
      });
    numTiled += found;
  }

private:
  unsigned &numTiled;
};

/// A product of two tensors of bytes, or of bf16: `loops` of rows, columns,
/// both or none of them, and reductions, one of which may step through a
/// window.
class RandomProduct {
public:
  RandomProduct(uint64_t seed, bool isOfInt8)
      : random(seed), isOfInt8(isOfInt8) {
    for (bool &sign : isUnsigned)
      sign = random.below(2);
    if (isUnsigned[0] && isUnsigned[1])
      isUnsigned[random.below(2)] = false;
    if (random.below(2))
      addLoop(3, /*inFirst=*/true, /*inSecond=*/true, /*inOutput=*/true);
    std::string row = addLoop(40, true, false, true);
    if (random.below(3) == 0)
      addLoop(9, true, false, true);
    addLoop(70, false, true, true);
    addLoop(37, true, true, false);
    if (random.below(2)) {
      std::string window = addLoop(3, false, true, false);
      for (std::string &index : indices[0])
        if (index == row)
          index = row + (random.below(2) ? " * 2 + " : " + ") + window;
    }
    for (auto &list : indices)
      for (size_t i = list.size(); i > 1; --i)
        std::swap(list[i - 1], list[random.below(i)]);
  }

  std::string getText() const {
    std::string loops = llvm::join(names, ", ");
    std::string element = isOfInt8 ? "i8" : "bf16";
    std::string sum = isOfInt8 ? "i32" : "f32";
    std::string kind = isOfInt8 ? "i" : "f";
    auto map = [&](unsigned tensor) {
      return "affine_map<(" + loops + ") -> (" +
             llvm::join(indices[tensor], ", ") + ")>";
    };
    auto type = [&](unsigned tensor) {
      std::string text = "tensor<";
      for (const std::string &index : indices[tensor])
        text += std::to_string(getSize(index)) + "x";
      return text + (tensor == 2 ? sum : element) + ">";
    };
    auto widen = [&](unsigned tensor, const std::string &value) {
      std::string name = !isOfInt8            ? "arith.extf"
                         : isUnsigned[tensor] ? "arith.extui"
                                              : "arith.extsi";
      return name + " " + value + " : " + element + " to " + sum;
    };
    return "func.func @f(%x: " + type(0) + ", %w: " + type(1) + ") -> " +
           type(2) + " {\n  %zero = arith.constant " + std::to_string(start) +
           (isOfInt8 ? "" : ".0") + " : " + sum + "\n" +
           "  %e = tensor.empty() : " + type(2) + "\n" +
           "  %i = linalg.fill ins(%zero : " + sum + ") outs(%e : " + type(2) +
           ") -> " + type(2) + "\n  %r = linalg.generic {indexing_maps = [" +
           map(0) + ", " + map(1) + ", " + map(2) +
           "],\n    iterator_types = [" + llvm::join(kinds, ", ") +
           "]}\n    ins(%x, %w : " + type(0) + ", " + type(1) +
           ") outs(%i : " + type(2) + ") {\n" + "  ^bb0(%a: " + element +
           ", %b: " + element + ", %o: " + sum +
           "):\n    %c = " + widen(0, "%a") + "\n    %d = " + widen(1, "%b") +
           "\n    %p = arith.mul" + kind + " %c, %d : " + sum +
           "\n    %s = arith.add" + kind + " %o, %p : " + sum +
           "\n    linalg.yield %s : " + sum + "\n  } -> " + type(2) +
           "\n  return %r : " + type(2) + "\n}\n";
  }

  /// Bytes of the whole range, or bf16 for which no sum rounds.
  std::vector<uint8_t> makeInput(unsigned tensor) {
    std::vector<uint8_t> bytes;
    for (int64_t i = 0, end = getNumElements(tensor); i < end; ++i) {
      if (isOfInt8) {
        bytes.push_back(static_cast<uint8_t>(random.below(256)));
        continue;
      }
      // The upper half of an f32.
      uint32_t bits = llvm::bit_cast<uint32_t>(float(random.below(257)) - 128);
      bytes.push_back(static_cast<uint8_t>(bits >> 16));
      bytes.push_back(static_cast<uint8_t>(bits >> 24));
    }
    return bytes;
  }
  int64_t getNumElements(unsigned tensor) const {
    int64_t count = 1;
    for (const std::string &index : indices[tensor])
      count *= getSize(index);
    return count;
  }

  /// What the products of `x` and `w` add to the output.
  std::vector<int32_t> evaluate(ArrayRef<uint8_t> x,
                                ArrayRef<uint8_t> w) const {
    std::vector<uint32_t> sums(getNumElements(2), start);
    std::vector<int64_t> point(names.size());
    auto get = [&](ArrayRef<uint8_t> bytes, unsigned tensor) {
      int64_t place = getPlace(tensor, point);
      if (!isOfInt8)
        return int32_t(
            llvm::bit_cast<float>(uint32_t(bytes[2 * place]) << 16 |
                                  uint32_t(bytes[2 * place + 1]) << 24));
      uint8_t byte = bytes[place];
      return isUnsigned[tensor] ? int32_t(byte) : int32_t(int8_t(byte));
    };
    int64_t numPoints = std::accumulate(extents.begin(), extents.end(),
                                        int64_t(1), std::multiplies<>());
    for (int64_t number = 0; number < numPoints; ++number) {
      int64_t rest = number;
      for (auto [index, extent] : llvm::zip_equal(point, extents)) {
        index = rest % extent;
        rest /= extent;
      }
      sums[getPlace(2, point)] += uint32_t(get(x, 0) * get(w, 1));
    }
    return std::vector<int32_t>(sums.begin(), sums.end());
  }

  /// The same from the output of a function.
  std::vector<int32_t> read(const void *output) const {
    std::vector<int32_t> sums(getNumElements(2));
    std::memcpy(sums.data(), output, 4 * sums.size());
    if (!isOfInt8)
      for (int32_t &sum : sums)
        sum = static_cast<int32_t>(llvm::bit_cast<float>(sum));
    return sums;
  }

private:
  std::string addLoop(unsigned most, bool inFirst, bool inSecond,
                      bool inOutput) {
    std::string name = "d" + std::to_string(names.size());
    names.push_back(name);
    extents.push_back(1 + random.below(most));
    kinds.push_back(inOutput ? "\"parallel\"" : "\"reduction\"");
    bool in[] = {inFirst, inSecond, inOutput};
    for (unsigned tensor = 0; tensor < 3; ++tensor)
      if (in[tensor])
        indices[tensor].push_back(name);
    return name;
  }
  /// The value of an index, a loop or `LOOP [* 2] + LOOP`, at `point`.
  int64_t getValue(StringRef index, ArrayRef<int64_t> point) const {
    auto [left, right] = index.split(" + ");
    int64_t scale = left.consume_back(" * 2") ? 2 : 1;
    auto at = [&](StringRef name) {
      return point[llvm::find(names, name) - names.begin()];
    };
    return scale * at(left) + (right.empty() ? 0 : at(right));
  }
  int64_t getSize(StringRef index) const {
    std::vector<int64_t> last = extents;
    for (int64_t &extent : last)
      --extent;
    return getValue(index, last) + 1;
  }
  int64_t getPlace(unsigned tensor, ArrayRef<int64_t> point) const {
    int64_t place = 0;
    for (const std::string &index : indices[tensor])
      place = place * getSize(index) + getValue(index, point);
    return place;
  }

  Random random;
  bool isOfInt8;
  bool isUnsigned[2];
  /// What the sums are added to: sums of zero may replace the output.
  uint32_t start = 7 * random.below(2);
  std::vector<std::string> names, kinds, indices[3];
  std::vector<int64_t> extents;
};

/// A guarded copy of bytes.
struct GuardedBytes {
  GuardedBytes(ArrayRef<uint8_t> bytes, Flush flush)
      : data(allocateGuarded(bytes.size(), flush)) {
    std::copy(bytes.begin(), bytes.end(), static_cast<uint8_t *>(data));
  }
  GuardedBytes(const GuardedBytes &) = delete;
  ~GuardedBytes() { freeGuarded(data); }

  void *data;
};

/// Calls `name` of `compiled`; says what it touched that it must not.
void call(CompiledModule &compiled, StringRef name,
          ArrayRef<const GuardedBytes *> buffers) {
  auto function = compiled.lookup(name);
  ASSERT_TRUE(bool(function)) << llvm::toString(function.takeError());
  std::vector<void *> pointers;
  for (const GuardedBytes *buffer : buffers)
    pointers.push_back(buffer->data);
  if (auto fault = runGuarded([&] { (*function)(pointers.data()); }))
    ADD_FAILURE() << name.str() << " touched " << *fault;
}

/// Compiles a product, and compares all of its output.
void check(uint64_t seed, bool isOfInt8, MLIRContext &context,
           unsigned &numTiled) {
  RandomProduct product(seed, isOfInt8);
  SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + product.getText());
  auto module = parseSourceString<ModuleOp>(product.getText(), &context);
  ASSERT_TRUE(bool(module));
  CPUPipelineOptions options;
  options.threads = seed % 5 == 1 ? 2 : 1;
  options.sharesShortLoops = true;
  options.vectorBits = seed % 4 == 3 ? 128 : 0;
  options.prepackWeights = seed % 2;
  // Without instructions for such products, too.
  if (seed % 7 == 6)
    options.target.features = isOfInt8 ? "-avx512vnni,-avxvnni" : "-avx512bf16";
  // Half as many registers as well.
  if (seed % 7 == 5)
    options.target.features = "-avx512f,-avxvnni";
  PassManager manager(&context);
  manager.addInstrumentation(std::make_unique<Watch>(numTiled));
  manager.addInstrumentation(std::make_unique<RemoveAlignment>());
  buildCPUPipeline(manager, options);
  ASSERT_TRUE(succeeded(manager.run(*module)));
  Flush flush = seed % 3 == 2 ? Flush::Begin : Flush::End;
  JITOptions jit;
  jit.optLevel = 1;
  jit.symbols = getGuardedAllocators(flush);
  auto compiled = CompiledModule::compile(*module, jit);
  ASSERT_TRUE(bool(compiled)) << llvm::toString(compiled.takeError());

  std::vector<uint8_t> x = product.makeInput(0), w = product.makeInput(1);
  std::vector<uint8_t> empty(4 * product.getNumElements(2), 0xcd);
  GuardedBytes data(x, flush), weight(w, flush), output(empty, flush);
  std::vector<uint8_t> room(4 * getNumPrepackedElements(*module, "f"));
  GuardedBytes packed(room, flush);
  if (!room.empty())
    call(**compiled, "f_prepack", {&weight, &packed});
  call(**compiled, "f", {&data, &weight, &output, &packed});
  EXPECT_EQ(product.read(output.data), product.evaluate(x, w));
}

void checkAll(bool isOfInt8, double leastTiled) {
  DialectRegistry registry;
  registerAllDialects(registry);
  registerCPUPipelineDialects(registry);
  unsigned numTiled = 0, count = getNumOperators(60, 2000);
  for (uint64_t seed = getFirstSeed(); seed < getFirstSeed() + count; ++seed) {
    MLIRContext context(registry);
    context.disableMultithreading();
    check(seed, isOfInt8, context, numTiled);
    if (testing::Test::HasFailure())
      return;
  }
  EXPECT_GE(numTiled, count * leastTiled);
}

} // namespace

TEST(DotProducts, OfBytesAgreeWithTheirDefinitionBetweenGuardPages) {
  // Those of one column, or of a reduction of one, are plain loops.
  checkAll(/*isOfInt8=*/true, /*leastTiled=*/0.75);
}

TEST(DotProducts, OfBFloatsAgreeWithTheirDefinitionBetweenGuardPages) {
  // Without instructions for bf16, as for some seeds, all are products of f32.
  auto target = getTarget();
  ASSERT_TRUE(bool(target)) << llvm::toString(target.takeError());
  checkAll(/*isOfInt8=*/false, target->bfloatDotBits ? 0.6 : 0);
}
