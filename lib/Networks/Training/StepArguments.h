//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The roles of the arguments of a network in training.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_NETWORKS_TRAINING_STEPARGUMENTS_H
#define LIB_NETWORKS_TRAINING_STEPARGUMENTS_H

#include "kas/Networks/Training/TrainingStep.h"

namespace kas::networks {

/// A network that can be trained.
struct TrainableNetwork {
  mlir::RankedTensorType logits;
  /// The positions of the arguments that are data.
  llvm::SmallVector<unsigned> data;

  /// Where the arguments of a step come that are no data.
  unsigned getNumLeading() const { return data.back() + 1; }
};

/// Fails with a diagnostic.
mlir::FailureOr<TrainableNetwork>
checkNetwork(mlir::func::FuncOp function, const TrainingStepOptions &options);

/// The name of an argument, as functions that are compiled have it.
std::string getArgumentName(mlir::func::FuncOp function, unsigned argument);

/// Each argument gets its name as an attribute, before others come between.
void nameArguments(mlir::func::FuncOp function);

/// Arguments of integers become arguments of `element`, floats that must be
/// whole numbers.
void takeIntegersAsFloats(mlir::func::FuncOp function, mlir::Type element);

} // namespace kas::networks

#endif // LIB_NETWORKS_TRAINING_STEPARGUMENTS_H
