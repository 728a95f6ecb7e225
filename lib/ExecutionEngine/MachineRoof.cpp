//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Measures the roofs of the machine: peak multiply-adds and copy bandwidth of a
// number of threads (Williams et al., "Roofline", CACM 52, 2009).
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/MachineRoof.h"
#include "kas/Dialect/KasCPU/IR/ModuleTarget.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/ExecutionEngine/Timing.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Parser/Parser.h"
#include <barrier>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>

using namespace kas;
using namespace kas::execution;
using llvm::Expected;

/// The text of a function that does nothing but fused multiply-adds on vectors
/// of `lanes`. Twelve accumulators hide the latency of the units of today's
/// cores, and leave room for two factors where there are 16 registers: vectors
/// must not be wider than these. The factor below 1 keeps the values finite.
static std::string makePeakText(int64_t lanes) {
  constexpr unsigned accumulators = 12;
  std::string number = std::to_string(lanes);
  std::string vector = "vector<" + number + "xf32>",
              tensor = "tensor<" + number + "xf32>";
  auto count = static_cast<int64_t>(peakFlops) / (2 * accumulators * lanes);
  std::string text = "func.func @peak(%x: " + tensor + ") -> " + tensor +
                     R"mlir( {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %padding = arith.constant 0.0 : f32
  %count = arith.constant )mlir" +
                     std::to_string(count) + R"mlir( : index
  %add = vector.transfer_read %x[%zero], %padding {in_bounds = [true]} : )mlir" +
                     tensor + ", " + vector + R"mlir(
  %factor = arith.constant dense<0.999> : )mlir" +
                     vector + "\n";
  // `%a0 = %add, %a1 = %add, ...`
  auto list = [&](llvm::StringRef before, llvm::StringRef after) {
    std::string result;
    for (unsigned i = 0; i < accumulators; ++i)
      result += (llvm::Twine(i ? ", " : "") + before +
                 (before.empty() ? llvm::Twine() : llvm::Twine(i)) + after)
                    .str();
    return result;
  };
  std::string types = list("", vector);
  text += "  %r:" + std::to_string(accumulators) +
          " = scf.for %i = %zero to %count step %one iter_args(" +
          list("%a", " = %add") + ") -> (" + types + ") {\n";
  for (unsigned i = 0; i < accumulators; ++i) {
    std::string n = std::to_string(i);
    text += "    %b" + n + " = vector.fma %a" + n +
            ", %factor, %add : " + vector + "\n";
  }
  text += "    scf.yield " + list("%b", "") + " : " + types + "\n  }\n";
  // All accumulators are added up, so that none of them is dead.
  std::string sum = "%r#0";
  for (unsigned i = 1; i < accumulators; ++i) {
    std::string n = std::to_string(i);
    text += "  %s" + n + " = arith.addf " + sum + ", %r#" + n + " : " + vector +
            "\n";
    sum = "%s" + n;
  }
  return text + "  %empty = tensor.empty() : " + tensor +
         "\n  %y = vector.transfer_write " + sum +
         ", %empty[%zero] {in_bounds = [true]} : " + vector + ", " + tensor +
         "\n  return %y : " + tensor + "\n}\n";
}

mlir::OwningOpRef<mlir::ModuleOp>
kas::execution::makePeakModule(mlir::MLIRContext &context,
                               const Target &target) {
  // Those of the target's attributes.
  context.loadDialect<mlir::DLTIDialect, mlir::LLVM::LLVMDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      makePeakText(target.vectorBits / 32), &context, "peak");
  if (module)
    setModuleTarget(*module, target);
  return module;
}

// Copies are measured at sizes from 16 KiB to 64 MiB, so that each level of
// cache has some of them.
double MachineRoof::getBandwidth(int64_t bytes) const {
  if (copies.empty())
    return 0;
  for (size_t i = 0; i < copies.size(); ++i) {
    if (bytes > copies[i].bytes)
      continue;
    if (i == 0)
      break;
    // Between two sizes by the logarithms of the bytes.
    const Copy &below = copies[i - 1], &above = copies[i];
    double part = std::log(double(bytes) / double(below.bytes)) /
                  std::log(double(above.bytes) / double(below.bytes));
    return below.gigabytesPerSecond +
           part * (above.gigabytesPerSecond - below.gigabytesPerSecond);
  }
  return (bytes <= copies.front().bytes ? copies.front() : copies.back())
      .gigabytesPerSecond;
}

// The roofline: the longer of arithmetic at the peak and memory at its
// bandwidth.
double MachineRoof::getMilliseconds(int64_t flops, int64_t bytes) const {
  // GFLOP/s and GB/s are per nanosecond: times 1e-6 that is milliseconds.
  double arithmetic = peakGflops > 0 ? double(flops) / peakGflops * 1e-6 : 0;
  double bandwidth = getBandwidth(bytes);
  double memory = bandwidth > 0 ? double(bytes) / bandwidth * 1e-6 : 0;
  return std::max(arithmetic, memory);
}

/// The seconds of the fastest of some rounds in which `threads` threads all run
/// `work(thread)` at once.
static double measureTogether(unsigned threads,
                              llvm::function_ref<void(unsigned)> work) {
  constexpr unsigned rounds = 12;
  if (threads == 1) {
    double best = HUGE_VAL;
    for (unsigned round = 0; round < rounds; ++round) {
      double begin = monotonicSeconds();
      work(0);
      best = std::min(best, monotonicSeconds() - begin);
    }
    return best;
  }
  double best = HUGE_VAL, begin = 0;
  // The function that a barrier runs when all have arrived: even phases start a
  // round, odd ones end it.
  unsigned phase = 0;
  auto takeTimestamp = [&]() noexcept {
    double now = monotonicSeconds();
    if (phase++ % 2 == 0)
      begin = now;
    else
      best = std::min(best, now - begin);
  };
  // All threads begin a round together, and the last one to end it stops the
  // clock.
  std::barrier<decltype(takeTimestamp)> together(
      static_cast<std::ptrdiff_t>(threads), takeTimestamp);
  std::vector<std::thread> team;
  for (unsigned thread = 0; thread < threads; ++thread)
    team.emplace_back([&, thread] {
      for (unsigned round = 0; round < rounds; ++round) {
        together.arrive_and_wait();
        work(thread);
        together.arrive_and_wait();
      }
    });
  for (std::thread &thread : team)
    thread.join();
  return best;
}

/// Operations per nanosecond of all threads together.
static Expected<double> measurePeak(mlir::MLIRContext &context,
                                    const Target &target, unsigned threads) {
  constexpr unsigned repeats = 4;
  auto module = makePeakModule(context, target);
  if (!module)
    return llvm::createStringError("the kernel of the peak does not parse");
  // Compiled as users' functions are: the roof is what this compiler reaches.
  CPUPipelineOptions pipeline;
  // Each thread runs the serial function itself.
  pipeline.threads = 1;
  auto function = compileForCPU(*module, "peak", pipeline);
  if (!function)
    return function.takeError();
  auto arguments = function->getSignature().makeArguments({}, /*seed=*/0);
  if (!arguments)
    return arguments.takeError();
  std::vector<Tensor> results;
  for (unsigned thread = 0; thread < threads; ++thread)
    results.emplace_back(function->getSignature().results.front().shape);
  double seconds = measureTogether(threads, [&](unsigned thread) {
    for (unsigned i = 0; i < repeats; ++i)
      llvm::cantFail((*function)(*arguments, results[thread]));
  });
  return repeats * threads * peakFlops / seconds * 1e-9;
}

/// The bandwidth of copies that touch `bytes` in all threads together. Both the
/// bytes read and those written count.
static MachineRoof::Copy measureCopy(unsigned threads, int64_t bytes) {
  // Half is read and half written; small copies are repeated.
  // Each thread copies within its own buffer, as it would its part of a tensor.
  size_t own = std::max<size_t>(64, bytes / 2 / threads);
  // At least 1 MiB per measurement, far more than the clock's resolution.
  size_t repeats = std::max<size_t>(1, (size_t(1) << 20) / own);
  std::vector<std::unique_ptr<char[]>> buffers;
  for (unsigned thread = 0; thread < threads; ++thread) {
    buffers.push_back(std::make_unique<char[]>(2 * own));
    // Pages are mapped before they are timed, by the first thread.
    std::memset(buffers.back().get(), 1, 2 * own);
  }
  double seconds = measureTogether(threads, [&](unsigned thread) {
    char *data = buffers[thread].get();
    for (size_t i = 0; i < repeats; ++i) {
      std::memcpy(data + own, data, own);
      // Else the copies would be one.
      asm volatile("" : : "r"(data) : "memory");
    }
  });
  double moved = 2.0 * double(own) * double(repeats) * threads;
  return {bytes, moved / seconds * 1e-9};
}

Expected<MachineRoof>
kas::execution::measureMachineRoof(mlir::MLIRContext &context,
                                   const Target &target, unsigned threads) {
  MachineRoof roof;
  roof.threads = std::max(threads, 1u);
  auto peak = measurePeak(context, target, roof.threads);
  if (!peak)
    return peak.takeError();
  roof.peakGflops = *peak;
  for (int64_t bytes = int64_t(1) << 14; bytes <= int64_t(1) << 26; bytes *= 4)
    roof.copies.push_back(measureCopy(roof.threads, bytes));
  return roof;
}
