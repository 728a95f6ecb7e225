//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The search for transformations of a network, as a space that the algorithms
// of kas/Search traverse: one layer after the other gets a program.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_NETWORKS_NETWORKSTATE_H
#define KAS_SEARCH_NETWORKS_NETWORKSTATE_H

#include "kas/Search/Core/State.h"
#include "kas/Search/Networks/LayerProgram.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <vector>

namespace kas::search {

/// What programs there are.
struct NetworkLimits {
  /// The most steps of a layer.
  unsigned steps = 3;
  StepChoices choices;
  /// The least rows of a kernel of layers that are transformed: 2 leaves
  /// pointwise convolutions alone, as the paper does.
  int64_t kernel = 2;
  /// Fisher Potential with normalization after each convolution.
  bool normalize = false;
};

/// Reads `name=integer`: `steps`, `groups`, `slabs`, `factor`, `schedules`,
/// `kernel`, `normalize`.
llvm::Error parseNetworkLimit(llvm::StringRef text, NetworkLimits &limits);

/// A network whose convolutions are to be transformed.
struct NetworkProblem {
  struct Layer {
    std::string name;
    /// Among all convolutions of the network.
    unsigned index;
    /// Layers of the same module have the same programs.
    unsigned shape;
  };
  NetworkLimits limits;
  std::vector<Layer> layers;
  /// By shape, the bytecode of `@layer` as `CutLayer` has it.
  std::vector<std::string> modules;
  /// Multiply-adds and elements of weights that no layer has.
  double otherMacs = 0, otherParams = 0;

  /// The convolutions with a weight that is an argument and that `limits`
  /// allows. Reports a function that has none (N1).
  static mlir::FailureOr<NetworkProblem> get(mlir::func::FuncOp function,
                                             const NetworkLimits &limits);
};

/// A program for each layer of a problem.
struct NetworkConfiguration final : Solution {
  std::vector<LayerProgram> programs;
  double macs = 0, params = 0;
  uint64_t hash = 0;
  /// By layer: multiply-adds over those of the layer as it was, and elements of
  /// weights.
  std::vector<double> features;

  uint64_t key() const override { return hash; }
  void getFeatures(llvm::SmallVectorImpl<double> &all) const override {
    all.append(features.begin(), features.end());
  }
};

/// The state before the first layer. Kinds of moves are `keep`, which ends the
/// program of a layer, and those of steps. Which steps there are is determined
/// by making them, once for all layers of a shape; programs that make the same
/// program of loops are the same candidate.
std::unique_ptr<State>
makeNetworkState(std::shared_ptr<const NetworkProblem> problem);

/// The convolutions of a function in their order.
llvm::SmallVector<mlir::linalg::LinalgOp>
findConvolutions(mlir::func::FuncOp function);

/// Transforms the convolutions of `function`; reports what does not qualify.
mlir::LogicalResult
applyConfiguration(mlir::func::FuncOp function, const NetworkProblem &problem,
                   const NetworkConfiguration &configuration);

/// A module with the sequence `@__transform_main`, which does what
/// `applyConfiguration` does to a function whose convolutions are marked.
std::string printScript(const NetworkProblem &problem,
                        const NetworkConfiguration &configuration);

/// Multiply-adds of operations that reduce products.
double countMACs(mlir::Operation *op);

} // namespace kas::search

#endif // KAS_SEARCH_NETWORKS_NETWORKSTATE_H
