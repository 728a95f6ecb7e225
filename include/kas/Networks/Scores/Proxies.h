//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Zero-cost proxies: numbers about a network at initialization that are
// supposed to say something about its accuracy after training. All come from
// one forward and one backward pass on one batch.
//
// None of them suffices by itself. On 201 operators the rank correlation of
// SNIP with trained accuracy was 0.64 on one task and 0.19 on the same images
// moved by up to two pixels, that of Fisher Potential -0.46 and +0.39.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_NETWORKS_SCORES_PROXIES_H
#define KAS_NETWORKS_SCORES_PROXIES_H

#include "kas/Networks/Scores/Fisher.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace kas::networks {

/// What the elements of the results of a proxy function belong to.
struct ProxyNames {
  llvm::SmallVector<std::string> layers;
  /// Arguments after the first of rank 2 or more.
  llvm::SmallVector<std::string> parameters;
};

/// Adds a function `name` after `function`, from images to scores of N samples
/// x classes, that takes labels as `makeFisherFunction` does, and returns
///  - the scores;
///  - the Fisher Potential of each layer;
///  - SNIP of each parameter w, sum |w dL/dw| (Lee et al., "SNIP: single-shot
///    network pruning based on connection sensitivity", ICLR 2019, eq. 6,
///    without the division by the whole);
///  - the norm of dL/dw of each parameter;
///  - N x N: at how many rectifiers two samples are both on or both off, the
///    kernel of Mellor et al., "Neural Architecture Search without Training",
///    ICML 2021, eq. 2, whose log-determinant is the score (NASWOT).
/// Fails with a diagnostic where there is no convolution.
mlir::FailureOr<mlir::func::FuncOp>
makeProxyFunction(mlir::func::FuncOp function, llvm::StringRef name,
                  const FisherOptions &options, ProxyNames &names);

/// Adds a function `name` after `function` with the same arguments that
/// returns, for each parameter w, sum w dR/dw, where R is the sum of the
/// results for an input of ones and the magnitudes of all arguments (Tanaka et
/// al., "Pruning neural networks without any data by iteratively conserving
/// synaptic flow", NeurIPS 2020, section 6).
mlir::FailureOr<mlir::func::FuncOp>
makeSynflowFunction(mlir::func::FuncOp function, llvm::StringRef name);

/// log |det| of an n x n matrix; minus infinity where that is 0.
double getLogDeterminant(llvm::ArrayRef<float> matrix, unsigned n);

//===----------------------------------------------------------------------===//
// One layer at a time
//===----------------------------------------------------------------------===//

/// The function of a layer that is cut out of a network.
constexpr llvm::StringLiteral layerFunctionName = "layer";

/// A convolution of a network by itself.
struct CutLayer {
  std::string name;
  /// Of its result.
  unsigned batch = 0;
  llvm::SmallVector<unsigned> spatial;
  /// Where the observing function has the data, the weight, what the result is
  /// added to, and the gradient: its argument or its result of that number.
  struct Place {
    bool isArgument;
    unsigned index;
  };
  llvm::SmallVector<Place, 4> places;
  /// Holds `@layer(data, weight, init)`, which pads the data, convolves it and
  /// adds that to `init`.
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// Whether `op` is what is counted as a layer.
bool matchConvolution(mlir::linalg::LinalgOp op);

/// A layer by itself; there are no `places`.
CutLayer cutLayer(mlir::linalg::LinalgOp convolution);

/// Adds a function `name` after `function` as `makeFisherFunction` does, which
/// returns besides the arguments of `@layer` of all layers, as far as it does
/// not take them, and the gradients by their results; with `normalize`, by
/// their normalized results. So one run of it is all that is needed of the
/// network to score what could take the place of a layer. With `synflow` the
/// gradient is that of R in `makeSynflowFunction`, there are no labels, and
/// `normalize` is not obeyed.
mlir::FailureOr<mlir::func::FuncOp>
makeObservedFunction(mlir::func::FuncOp function, llvm::StringRef name,
                     const FisherOptions &options, bool synflow,
                     llvm::SmallVectorImpl<CutLayer> &layers);

/// Adds a function `name` after `layer(data, weights..., init)` that takes one
/// argument more, the gradient as `makeObservedFunction` returns it, and
/// returns the Fisher Potential, SNIP and the square of the norm of the
/// gradient by the weights (one dimension), then the kernel of the samples as
/// if a rectifier followed. The gradient after the layer is that of the
/// network with its own layer: a score of first order in what is changed.
mlir::FailureOr<mlir::func::FuncOp>
makeLayerScoreFunction(mlir::func::FuncOp layer, llvm::StringRef name,
                       unsigned batch, llvm::ArrayRef<unsigned> spatial,
                       bool normalize);

/// The same for a function that returns the Fisher Potential alone, which needs
/// no gradient by weights (one dimension of one element).
mlir::FailureOr<mlir::func::FuncOp>
makeLayerFisherFunction(mlir::func::FuncOp layer, llvm::StringRef name,
                        unsigned batch, llvm::ArrayRef<unsigned> spatial,
                        bool normalize);

} // namespace kas::networks

#endif // KAS_NETWORKS_SCORES_PROXIES_H
