//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by runners of all devices: limits of a measurement,
// comparison of results, the worker's answer.
// The parent process stays alive whatever a schedule does: `measure` runs the
// device's `compileAndTime` in a child and reads four numbers from it.
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/KernelRunner.h"
#include "kas/Support/ChildProcess.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace kas;
using namespace kas::execution;
using namespace kas::tuning;
using llvm::Expected;

/// Part of the key of stored times: change it whenever times are taken in
/// another way.
std::string MeasureOptions::getProtocol() const {
  return llvm::formatv("{0} threads, weights prepared ahead, least {1} time of "
                       "{2} runs in turn with no schedule",
                       threads, threads == 1 ? "processor" : "wall-clock", runs)
      .str();
}

Expected<double> KernelRunner::check(llvm::ArrayRef<Tensor> results) const {
  double error = 0;
  for (auto [result, wanted] : llvm::zip_equal(results, expected))
    // Over the largest element of the result, not over each element.
    error = std::max(error, maxRelativeError(result, wanted));
  if (error <= options.tolerance)
    return error;
  return llvm::createStringError(llvm::formatv(
      "expected results within {0:e2}, got {1:e2}", options.tolerance, error));
}

/// Reads what a worker has written.
static StoredMeasurement parse(llvm::StringRef text) {
  StoredMeasurement measurement;
  llvm::SmallVector<llvm::StringRef> words;
  text.split(words, ' ');
  double *numbers[] = {&measurement.ms, &measurement.defaultMs,
                       &measurement.compileMs, &measurement.error};
  // A child that was killed while it wrote leaves fewer numbers.
  bool isGood = words.size() == std::size(numbers);
  if (isGood)
    for (auto [number, word] : llvm::zip(numbers, words))
      isGood &= !word.getAsDouble(*number);
  if (isGood)
    // Schedules are compared by ratios to the default measured next to them,
    // since absolute times drift with the load and the clock.
    measurement.ratio = measurement.ms / measurement.defaultMs;
  else
    measurement.failure = "the worker ended without an answer";
  return measurement;
}

StoredMeasurement KernelRunner::measure(llvm::function_ref<void()> change,
                                        int64_t scale) {
  auto work = [&]() -> Expected<std::string> {
    // The schedule is set in the copy of the module that the child has; the
    // parent's stays unchanged.
    change();
    Expected<StoredMeasurement> measured = compileAndTime(scale);
    if (!measured)
      return measured.takeError();
    // Text with 13 digits: more than any clock has.
    return llvm::formatv("{0:e12} {1:e12} {2:e12} {3:e12}", measured->ms,
                         measured->defaultMs, measured->compileMs,
                         measured->error)
        .str();
  };
  Expected<std::string> text =
      runForked(work, {options.limitSeconds, options.memoryLimit});
  if (text)
    return parse(*text);
  // A failure is stored as well, so that the schedule is not tried again.
  StoredMeasurement failed;
  failed.failure = llvm::toString(text.takeError());
  return failed;
}
