//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The Fisher Potential of each layer (Turner et al., "Neural Architecture
// Search as Program Transformation Exploration", ASPLOS 2021).
// For an activation A of N samples and the gradient g of the loss by it (eq. 4
// and 5):
//    delta_c = 1/(2N) sum over n of (sum over rows, columns of A[n,c] g[n,c])^2
// and the score of a layer is the sum over its channels c
// (docs/guide/gradients.md#fisher-potential).
//
//===----------------------------------------------------------------------===//

#include "kas/Networks/Scores/Fisher.h"
#include "NetworkLayers.h"
#include "kas/Conversion/TensorEmitter.h"
#include "kas/Networks/Differentiation/Differentiate.h"

using namespace mlir;
using namespace kas;
using namespace kas::networks;
using namespace kas::scalars;

/// `spatial` are the dimensions of rows and columns, `batch` that of samples.
Value kas::networks::emitFisher(OpBuilder &builder, Value activation,
                                Value gradient, unsigned batch,
                                ArrayRef<unsigned> spatial) {
  Location loc = activation.getLoc();
  auto type = cast<RankedTensorType>(activation.getType());
  // [N, C]
  Value sums = TensorEmitter(builder, loc, type)
                   .sum({{activation, {}}, {gradient, {}}}, spatial,
                        [](OpBuilder &builder, Location loc, ValueRange v) {
                          return multiply(builder, loc, v[0], v[1]);
                        });
  double factor = 0.5 / type.getDimSize(batch);
  auto sumsType = cast<RankedTensorType>(sums.getType());
  SmallVector<unsigned> all =
      llvm::to_vector(llvm::seq<unsigned>(sumsType.getRank()));
  // All of the factor goes into each term: one pass.
  return TensorEmitter(builder, loc, sumsType)
      .sum({{sums, {}}}, all,
           [&](OpBuilder &builder, Location loc, ValueRange v) {
             Value square = multiply(builder, loc, v[0], v[0]);
             return scale(builder, loc, square, factor);
           });
}

/// A clone of the network with the labels as a further argument, which returns
/// the logits and a score for each layer. `names` gets the layers' names in the
/// same order.
FailureOr<func::FuncOp>
kas::networks::makeFisherFunction(func::FuncOp function, StringRef name,
                                  const FisherOptions &options,
                                  SmallVectorImpl<std::string> &names) {
  RankedTensorType resultType = checkClassifier(function, "Fisher Potential");
  if (!resultType)
    return failure();
  OpBuilder builder(function->getContext());
  func::FuncOp fisher = cloneAfter(builder, function, name);
  Block &block = fisher.getBody().front();

  SmallVector<Layer> layers;
  for (auto op : block.getOps<linalg::LinalgOp>())
    if (std::optional<Layer> layer = matchLayer(op);
        layer && (!options.residualOnly || endsResidualBlock(*layer)))
      layers.push_back(*layer);
  // The clone must not stay in the module half made.
  auto fail = [&]() -> FailureOr<func::FuncOp> {
    fisher.erase();
    return failure();
  };
  if (layers.empty()) {
    function.emitError(
        "for Fisher Potential, requires a convolution, got none");
    return fail();
  }
  // Activations are results of layers before the normalization, if any is
  // inserted.
  SmallVector<Value> activations;
  for (const Layer &layer : layers) {
    names.push_back(layer.name);
    activations.push_back(layer.op->getResult(0));
    if (options.normalize)
      normalizeLayer(builder, layer);
  }
  // Probabilities of classes, one row for each sample.
  Value labels = addArgument(fisher, resultType, "labels");
  Operation *end = block.getTerminator();
  builder.setInsertionPoint(end);
  Value logits = end->getOperand(0);
  // Of the mean over samples, so factors 1/N are in the gradients already.
  Value lossGradient = emitLossGradient(builder, logits, labels);
  auto gradients = emitGradients(builder, logits, lossGradient, activations);
  if (failed(gradients))
    return fail();
  SmallVector<Value> scores;
  for (auto [layer, activation, gradient] :
       llvm::zip_equal(layers, activations, *gradients))
    scores.push_back(
        emitFisher(builder, activation, gradient, layer.batch, layer.spatial));
  // Scores of rank 0 become one vector.
  Value all = collect(builder, function.getLoc(), scores);
  setResults(fisher, {logits, all});
  return fisher;
}
