//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Conversions between types of floats, compiled in process for processors with
// and without instructions for them, bit by bit.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/JIT.h"
#include "kas/Pipelines/CPU.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>
#include <random>

using namespace kas;
using namespace kas::execution;
using llvm::APFloat;
using llvm::APInt;

namespace {

constexpr unsigned count = 4096;

struct Format {
  const char *name;
  const llvm::fltSemantics &semantics;

  unsigned getBits() const { return APFloat::getSizeInBits(semantics); }
  APFloat decode(uint64_t bits) const {
    return APFloat(semantics, APInt(64, bits).trunc(getBits()));
  }
};

const Format formats[] = {{"f16", APFloat::IEEEhalf()},
                          {"bf16", APFloat::BFloat()},
                          {"f32", APFloat::IEEEsingle()},
                          {"f64", APFloat::IEEEdouble()}};

/// Whether `value` is smaller than all normal numbers of bf16.
bool isBelowNormal(const APFloat &value) {
  if (!value.isFinite())
    return false;
  APFloat wide = value;
  bool losesInfo = false;
  wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return std::abs(wide.convertToDouble()) < 0x1p-126;
}

/// From `from` to `to`, one of which is the wider one.
class Conversion {
public:
  Conversion(const Format &from, const Format &to, const std::string &cpu)
      : from(from), to(to), isHost(cpu.empty()) {
    mlir::DialectRegistry registry;
    registerCPUPipelineDialects(registry);
    context.appendDialectRegistry(registry);
    context.disableMultithreading();
    std::string source =
                    "tensor<" + std::to_string(count) + "x" + from.name + ">",
                target =
                    "tensor<" + std::to_string(count) + "x" + to.name + ">";
    std::string text =
        "func.func @f(%x: " + source + ") -> " + target + " { %0 = arith." +
        (from.getBits() < to.getBits() ? "extf" : "truncf") +
        " %x : " + source + " to " + target + " return %0 : " + target + " }";
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    CPUPipelineOptions pipeline;
    pipeline.threads = 1;
    pipeline.target.cpu = cpu;
    mlir::PassManager manager(&context);
    buildCPUPipeline(manager, pipeline);
    if (failed(manager.run(*module)))
      return;
    compiled = llvm::cantFail(CompiledModule::compile(*module));
    function = llvm::cantFail(compiled->lookup("f"));
  }

  bool isCompiled() const { return function; }

  /// Compares the results for `values`, of which there are `count`.
  void check(const std::vector<uint64_t> &values) {
    size_t width = from.getBits() / 8, resultWidth = to.getBits() / 8;
    std::vector<char> x(count * width), y(count * resultWidth);
    for (unsigned i = 0; i < count; ++i)
      std::memcpy(x.data() + i * width, &values[i], width);
    void *pointers[] = {x.data(), y.data()};
    llvm::cantFail(call(function, pointers));
    for (unsigned i = 0; i < count; ++i) {
      uint64_t bits = 0;
      std::memcpy(&bits, y.data() + i * resultWidth, resultWidth);
      APFloat expected = from.decode(values[i]), got = to.decode(bits);
      bool losesInfo = false;
      expected.convert(to.semantics, APFloat::rmNearestTiesToEven, &losesInfo);
      // The instruction of x86 takes denormal numbers as zero.
      if (isHost && &to.semantics == &APFloat::BFloat() && got.isZero() &&
          isBelowNormal(from.decode(values[i])))
        expected = APFloat::getZero(to.semantics, expected.isNegative());
      ASSERT_TRUE(expected.isNaN() ? got.isNaN() : expected.bitwiseIsEqual(got))
          << from.name << " " << std::hex << values[i] << " to " << to.name
          << " is " << bits << ", not "
          << expected.bitcastToAPInt().getZExtValue();
    }
  }

private:
  const Format &from, &to;
  bool isHost;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<CompiledModule> compiled;
  CompiledModule::Function function = nullptr;
};

/// All values of 16 bits, and values of a wider type on, half way between and
/// just beside those of each narrower one, then any bits.
std::vector<uint64_t> makeValues(const Format &from) {
  std::vector<uint64_t> values;
  for (const Format &narrow : {formats[0], formats[1]})
    for (unsigned bits = 0; bits < 1 << 16; ++bits) {
      if (from.getBits() == 16) {
        values.push_back(bits);
        continue;
      }
      auto shift = APFloat::semanticsPrecision(from.semantics) -
                   APFloat::semanticsPrecision(narrow.semantics);
      APFloat number = narrow.decode(bits);
      bool losesInfo = false;
      number.convert(from.semantics, APFloat::rmNearestTiesToEven, &losesInfo);
      uint64_t base = number.bitcastToAPInt().getZExtValue(),
               half = uint64_t(1) << (shift - 1);
      for (uint64_t offset :
           {uint64_t(0), uint64_t(1), half - 1, half, half + 1})
        values.push_back(base + offset);
    }
  // On those of f32, where f64 is the wider one.
  std::mt19937_64 random(1);
  for (unsigned i = 0; i < 1 << 15; ++i) {
    uint64_t bits = random();
    values.push_back(bits);
    if (from.getBits() == 64)
      for (uint64_t offset : {0ull, 1ull, (1ull << 28) - 1, 1ull << 28})
        values.push_back((bits & ~((1ull << 29) - 1)) + offset);
  }
  values.resize((values.size() + count - 1) / count * count);
  return values;
}

class ConversionsTest : public testing::TestWithParam<const char *> {};

} // namespace

TEST_P(ConversionsTest, AllBits) {
  if (*GetParam() && llvm::Triple(llvm::sys::getProcessTriple()).getArch() !=
                         llvm::Triple::x86_64)
    return; // Of another architecture; the host's is tested.
  for (const Format &from : formats) {
    std::vector<uint64_t> values = makeValues(from);
    for (const Format &to : formats) {
      if (from.getBits() == to.getBits())
        continue;
      Conversion conversion(from, to, GetParam());
      ASSERT_TRUE(conversion.isCompiled());
      for (size_t i = 0; i < values.size(); i += count) {
        conversion.check({values.begin() + i, values.begin() + i + count});
        if (HasFatalFailure())
          return;
      }
    }
  }
}

// Without any instruction for types of 16 bits, and with what is at hand.
INSTANTIATE_TEST_SUITE_P(CPUs, ConversionsTest, testing::Values("x86-64", ""));
