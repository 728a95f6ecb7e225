//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes of this folder: -kas-mark-dropout and -kas-training-step.
// Both are thin: `markDropouts` and `addTrainingFunctions` do the work.
//
//===----------------------------------------------------------------------===//

#include "kas/Networks/Training/Dropout.h"
#include "kas/Networks/Training/Passes.h"

namespace kas::networks {
#define GEN_PASS_DEF_KASMARKDROPOUTPASS
#define GEN_PASS_DEF_KASTRAININGSTEPPASS
#include "kas/Networks/Training/Passes.h.inc"
} // namespace kas::networks

using namespace mlir;
using namespace kas;
using namespace kas::networks;

namespace {

/// On all functions of a module, since it only looks for marked arguments.
struct KasMarkDropoutPass
    : kas::networks::impl::KasMarkDropoutPassBase<KasMarkDropoutPass> {
  // Functions without marked arguments stay as they are.
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(markDropouts(function)))
        return signalPassFailure();
  }
};

/// Adds `@train_step` and `@evaluate`; the network itself stays.
struct KasTrainingStepPass
    : kas::networks::impl::KasTrainingStepPassBase<KasTrainingStepPass> {
  using KasTrainingStepPassBase::KasTrainingStepPassBase;

  void runOnOperation() override {
    if (failed(addTrainingFunctions(getOperation(), function, getOptions())))
      signalPassFailure();
  }

private:
  /// The options of the pass, one by one.
  TrainingStepOptions getOptions() const {
    TrainingStepOptions options;
    options.data.assign(data.begin(), data.end());
    options.loss = loss;
    options.labelSmoothing = labelSmoothing;
    options.optimizer = optimizer;
    options.momentum = momentum;
    options.nesterov = nesterov;
    options.beta1 = beta1;
    options.beta2 = beta2;
    options.epsilon = epsilon;
    options.weightDecay = weightDecay;
    options.decayAll = decayAll;
    options.batchNormMomentum = batchNormMomentum;
    options.clipNorm = clipNorm;
    return options;
  }
};

} // namespace
