//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// What goes into the bundle of a GPU session.

#ifndef KAS_TOOLS_SESSIONCASES_H
#define KAS_TOOLS_SESSIONCASES_H

#include "Bundle.h"
#include "kas/Reference/ExactCheck.h"

namespace kas::gpusession {

struct SessionOptions {
  /// What to compile for, the best last: a device takes the last one it runs.
  /// `vulkan` for any device with Vulkan, in f32.
  std::vector<std::string> chips = {"sm_80", "sm_90", "sm_90a"};
  /// Of code for CUDA.
  codegen::GPUFormat format = codegen::GPUFormat::Cubin;
  /// How many random operators, and random products for warpgroups.
  unsigned randomOperators = 500, randomContractions = 100;
  /// How many schedules of a timed operator, the cost model's choice included.
  unsigned schedules = 6;
  /// Of what is timed; empty: all.
  std::vector<std::string> precisions;
  /// Whether cases are timed that no cost model was made with.
  bool otherCases = true;
  /// Files of networks with a function `forward`.
  std::vector<std::string> networks;
  /// `FILE:N=8,Cin=64,...`: all operators of a file at a binding.
  std::vector<std::string> operators;
};

/// Packs what one job makes, in a context of its own.
using SessionJob =
    std::function<llvm::Expected<std::vector<PackedCase>>(mlir::MLIRContext &)>;

/// Named and random operators in four precisions, on integers for which nothing
/// rounds where there are such, against the reference.
std::vector<SessionJob> getValueJobs(const SessionOptions &options);

/// The cases of `kas-bench gpu`, with several schedules, each with PyTorch code
/// that computes the same.
std::vector<SessionJob> getTimingJobs(const SessionOptions &options);

/// The operators of files, in the same way.
std::vector<SessionJob> getOperatorJobs(const SessionOptions &options);

/// Whole networks, against the CPU.
std::vector<SessionJob> getNetworkJobs(const SessionOptions &options);

/// Compiles `module` for `chip`; nothing where it cannot have the precision.
llvm::Expected<std::optional<execution::GPUProgram>>
compileForChip(mlir::ModuleOp module, llvm::StringRef chip,
               const GPUFrontOptions &front, const SessionOptions &options);

/// Whether a warpgroup's instructions exist on `chip`.
inline bool hasWarpgroups(llvm::StringRef chip) { return chip.ends_with("a"); }

} // namespace kas::gpusession

#endif // KAS_TOOLS_SESSIONCASES_H
