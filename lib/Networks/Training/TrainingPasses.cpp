//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Differentiation/FindFunction.h"
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

struct KasMarkDropoutPass
    : kas::networks::impl::KasMarkDropoutPassBase<KasMarkDropoutPass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(markDropouts(function)))
        return signalPassFailure();
  }
};

struct KasTrainingStepPass
    : kas::networks::impl::KasTrainingStepPassBase<KasTrainingStepPass> {
  using KasTrainingStepPassBase::KasTrainingStepPassBase;

  void runOnOperation() override {
    func::FuncOp network = findFunction(getOperation(), function, "train_step");
    TrainingStepOptions options = getOptions();
    if (!network || !findFunction(getOperation(), function, "evaluate") ||
        failed(check(network)))
      return signalPassFailure();
    auto evaluation = makeEvaluation(network, "evaluate", options);
    if (failed(evaluation))
      return signalPassFailure();
    auto step = makeTrainingStep(network, "train_step", options);
    if (failed(step) || failed(eraseUnusedOperands(*step)))
      signalPassFailure();
  }

private:
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
    options.batchNormMomentum = batchNormMomentum;
    options.clipNorm = clipNorm;
    return options;
  }

  LogicalResult check(func::FuncOp network) {
    struct Range {
      StringRef name;
      double value, least, bound;
    };
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (const Range &range :
         {Range{"label-smoothing", labelSmoothing, 0, 1},
          Range{"momentum", momentum, 0, 1}, Range{"beta1", beta1, 0, 1},
          Range{"beta2", beta2, 0, 1}, Range{"epsilon", epsilon, 0, infinity},
          Range{"weight-decay", weightDecay, 0, infinity},
          Range{"batch-norm-momentum", batchNormMomentum, 0, 1},
          Range{"clip-norm", clipNorm, 0, infinity}})
      // Not a number is in no range.
      if (!(range.value >= range.least && range.value < range.bound) &&
          !(range.name == "batch-norm-momentum" && range.value == 1))
        return network.emitError("option '")
               << range.name << "' requires a number of at least "
               << int64_t(range.least)
               << (range.bound == infinity ? "" : " and less than 1")
               << ", got " << range.value;
    if (nesterov && momentum == 0)
      return network.emitError("option 'nesterov' requires a momentum, got 0");
    return success();
  }
};

} // namespace
