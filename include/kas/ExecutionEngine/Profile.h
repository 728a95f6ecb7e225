//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the time of a function goes: operation by operation of the model where
// it runs, and pass by pass where it is compiled.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_EXECUTIONENGINE_PROFILE_H
#define KAS_EXECUTIONENGINE_PROFILE_H

#include "kas/Codegen/CPU/Profile.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/ExecutionEngine/MachineRoof.h"
#include "kas/ExecutionEngine/Timing.h"
#include "kas/Support/PassTimes.h"
#include "llvm/Support/JSON.h"
#include <map>

namespace kas::execution {

/// How an operation was lowered.
struct LoweringStrategy {
  /// `row vectors`, `panels`, `direct tiles`, `inner products`, `winograd`, or
  /// `loops` for what is left to LLVM; empty where nothing was chosen.
  std::string name;
  /// The numbers that were chosen, or what prevents register tiles.
  std::string reason;
};

/// What `compileForCPU` notes about a function that is to be profiled.
struct CompileRecord {
  PassTimes passes;
  /// Of the function on tensors; their numbers are the labels.
  llvm::SmallVector<codegen::ModelOperation> operations;
  /// Of the function on buffers.
  llvm::SmallVector<codegen::ProfileStep> steps;
  /// By labels, from optimization remarks. Empty where the context's remarks
  /// go elsewhere.
  std::map<unsigned, LoweringStrategy> strategies;

  /// Labels the operations of the function `name`, and listens to remarks.
  void begin(mlir::ModuleOp module, llvm::StringRef name);
  /// Stops listening; inserts the calls of the clock into the function.
  void finish(mlir::ModuleOp module, llvm::StringRef name);
  /// Adds what LLVM did from `begin` on, in seconds of the monotonic clock.
  void addSteps(const CompileTimes &times, double begin);

private:
  bool listens = false;
};

/// A row of a profile: what became of one operation of the model, with what was
/// fused into it.
struct ProfiledOperation {
  /// See `ModelOperation`; of what has no operation in the model, such as
  /// copies of results, the name of the lowered operation.
  std::string kind, layer;
  /// `FILE:LINE:COLUMN`, or what else the location says; may be empty.
  std::string location;
  /// The kinds of what is computed in the same loops.
  std::vector<std::string> fused;
  LoweringStrategy strategy;
  /// How many loop nests run for it in each call.
  unsigned calls = 0;
  /// The sum of the medians of its loop nests, and of the least times: where
  /// other processes want the cores, too, these say more.
  double milliseconds = 0, minMilliseconds = 0;
  /// Of all operations of the model in the row.
  int64_t flops = 0;
  /// Of the buffers that its loop nests use, each once for each.
  int64_t bytes = 0;
  /// The least time by `MachineRoof` over the time that it takes.
  double roofShare = 0;
};

/// The times of a function. Those of operations add up to `milliseconds` but
/// for the call itself and for interruptions by other processes.
struct Profile {
  /// One loop nest in the fastest run.
  struct Interval {
    size_t operation = 0;
    /// From the begin of the function.
    double beginMilliseconds = 0, milliseconds = 0;
  };

  std::string function;
  unsigned threads = 1;
  /// What times are medians of: of each loop nest by itself, so that a run that
  /// another process interrupts does not count where it was interrupted.
  int64_t runs = 0;
  /// Of a whole run, around the call, and of the fastest one.
  double milliseconds = 0, fastestMilliseconds = 0;
  /// In the order in which they run.
  std::vector<ProfiledOperation> operations;
  /// Of the fastest run; they add up to its time but for the call itself.
  std::vector<Interval> intervals;
  MachineRoof roof;
  double compileMilliseconds = 0;
  /// From the begin of the first; kernels are compiled on several threads.
  std::vector<PassRun> passes;

  /// As tables: operations by time, then passes by time; at most `maxRows` of
  /// each, the others as one row.
  void print(llvm::raw_ostream &stream, size_t maxRows = 40) const;
  llvm::json::Object toJSON() const;
  /// In the format of Chrome's trace viewer and of Perfetto: the passes as one
  /// process, the fastest run as another.
  void writeTrace(llvm::raw_ostream &stream) const;
};

/// Compiles the function `name` of `module`, which stays as it is, with its
/// weights prepacked, and runs it as `timing` says, on one thread of callers.
/// Results are overwritten. Error: what compileForCPU or an assertion says.
llvm::Expected<Profile> profileOnCPU(mlir::ModuleOp module,
                                     llvm::StringRef name,
                                     llvm::ArrayRef<Tensor> arguments,
                                     llvm::MutableArrayRef<Tensor> results,
                                     const CPUPipelineOptions &pipeline = {},
                                     const JITOptions &jit = {},
                                     const TimingOptions &timing = {});
/// The same of memory of somebody else: dense, row-major elements of the types
/// of the signature, one pointer per argument, then one per result.
llvm::Expected<Profile> profileOnCPU(mlir::ModuleOp module,
                                     llvm::StringRef name,
                                     llvm::ArrayRef<float *> tensors,
                                     const CPUPipelineOptions &pipeline = {},
                                     const JITOptions &jit = {},
                                     const TimingOptions &timing = {});

} // namespace kas::execution

#endif // KAS_EXECUTIONENGINE_PROFILE_H
