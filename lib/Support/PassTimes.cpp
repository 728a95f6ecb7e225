//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Collects when each pass of a compilation ran.
// A trace of a compilation (`kas-run --profile`, docs/guide/profiling.md) shows
// the runs next to the kernels of a call, so times are those of the steady
// clock.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/PassTimes.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/ADT/DenseMap.h"
#include <chrono>
#include <tuple>

using namespace kas;
using namespace mlir;

static double getSeconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

namespace {
/// Notes each run of a pass that has a command-line argument; adaptors, which
/// only run other passes, have none. Passes on functions run on several threads
/// at a time, each with a clone of the pass: a clone's address identifies one
/// run at a time.
class PassClock : public PassInstrumentation {
public:
  explicit PassClock(PassTimes &times) : times(times) {}

  void runBeforePass(Pass *pass, Operation *) override {
    std::lock_guard<std::mutex> lock(mutex);
    begins[pass] = getSeconds();
  }

  void runAfterPass(Pass *pass, Operation *) override {
    double begin = 0;
    {
      std::lock_guard<std::mutex> lock(mutex);
      begin = begins.lookup(pass);
    }
    // Outside the lock: `add` takes one of its own.
    if (!pass->getArgument().empty())
      times.add({pass->getArgument().str(), begin, getSeconds()});
  }

  // A pass that failed took time as well.
  void runAfterPassFailed(Pass *pass, Operation *op) override {
    runAfterPass(pass, op);
  }

private:
  PassTimes &times;
  std::mutex mutex;
  llvm::DenseMap<Pass *, double> begins;
};
} // namespace

/// The manager owns the instrumentation; this object must outlive its runs.
void PassTimes::observe(PassManager &manager) {
  manager.addInstrumentation(std::make_unique<PassClock>(*this));
}

void PassTimes::add(PassRun run) {
  std::lock_guard<std::mutex> lock(mutex);
  runs.push_back(std::move(run));
}

/// Sorted by their beginning. A copy: passes may still be running.
std::vector<PassRun> PassTimes::getRuns() const {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<PassRun> sorted = runs;
  // Threads finish in any order; ties are broken by name for equal reports.
  llvm::sort(sorted, [](const PassRun &a, const PassRun &b) {
    return std::tie(a.begin, a.name) < std::tie(b.begin, b.name);
  });
  return sorted;
}
