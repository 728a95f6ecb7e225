//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Schedules for all kernels of a network.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TUNING_NETWORK_H
#define KAS_TUNING_NETWORK_H

#include "kas/Tuning/Tuner.h"
#include <optional>

namespace kas::tuning {

struct NetworkOptions {
  TunerOptions tuner;
  /// Take schedules of other networks, and search for none.
  std::optional<TransferOptions> transfer;
  /// With no source named: the network that equation 6.1 prefers, not all.
  bool chooseSource = true;
  /// Time the network with its schedules and keep only those that help there.
  /// With another baseline than the cost model all are kept.
  bool measureInModel = true;
  /// How many kernels are measured once more in the model, each with and
  /// without its schedule.
  int64_t secondPass = 0;
};

struct KernelReport {
  std::string classKey, tensors;
  int64_t uses = 0, points = 0;
  TunedKernel tuned;
  /// Whether the network keeps the schedule.
  bool isKept = false;
};

struct NetworkReport {
  std::vector<KernelReport> kernels;
  /// The network that schedules were taken from; empty: none, or all.
  std::string source;
  /// Milliseconds of the network without schedules and with those kept, timed
  /// in turn; 0 if they were not measured.
  double defaultMs = 0, tunedMs = 0;
  /// Those of the baseline, if it is another than the cost model; 0 if they
  /// were not measured.
  double baselineMs = 0;
  /// Seconds for the kernels, and for measuring in the model.
  double kernelSeconds = 0, modelSeconds = 0;
  /// Seconds that processors worked for all, with the workers.
  double processorSeconds = 0;
  /// Measurements of other processors or toolchains that were not used.
  int64_t foreign = 0;
};

/// Milliseconds of all kernels of a network: the sums of their own times.
struct KernelSums {
  double defaultMs = 0, baselineMs = 0, tunedMs = 0;
};
KernelSums getKernelSums(const NetworkReport &report);

/// Tunes the kernels of `function`, whose module `device` has prepared, and
/// sets the schedules that are kept. `progress` hears of each kernel that is
/// done.
llvm::Expected<NetworkReport>
tuneNetwork(mlir::func::FuncOp function, const TuningDevice &device,
            TuningStore &store, const NetworkOptions &options,
            llvm::function_ref<void(const KernelReport &)> progress);

} // namespace kas::tuning

#endif // KAS_TUNING_NETWORK_H
