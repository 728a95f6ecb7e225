//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The Fisher Potential of configurations of a network, from one run of it: the
// input of each layer and the gradient of its output are kept, each program of
// a layer is scored once, on as many threads as ask.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_NETWORKS_FISHERSCORER_H
#define KAS_SEARCH_NETWORKS_FISHERSCORER_H

#include "kas/Networks/Scores/LayerScores.h"
#include "kas/Search/Networks/NetworkState.h"

namespace kas::search {

class FisherScorer {
public:
  /// Runs `function`, the network of `problem` for several samples, on random
  /// labels and weights. Errors: other convolutions than the problem has (N2),
  /// fewer than two samples (N3), whatever `LayerScorer::create` reports.
  static llvm::Expected<std::unique_ptr<FisherScorer>>
  create(mlir::func::FuncOp function,
         std::shared_ptr<const NetworkProblem> problem);
  ~FisherScorer();

  /// The sum over the layers, to first order in what is changed. From any
  /// thread.
  llvm::Expected<double> score(const NetworkConfiguration &configuration);
  /// That of the network as it is.
  double getOriginal() const { return original; }
  /// How many programs of layers were scored.
  uint64_t getNumScored() const;

private:
  struct Bench;
  explicit FisherScorer(std::shared_ptr<const NetworkProblem> problem);
  llvm::Error checkLayers(const networks::LayerScorer &scorer) const;
  std::unique_ptr<Bench> takeBench();
  void giveBack(std::unique_ptr<Bench> bench);
  llvm::Expected<double> scoreLayer(const NetworkProblem::Layer &layer,
                                    llvm::ArrayRef<ProgramStep> program);

  std::shared_ptr<const NetworkProblem> problem;
  double original = 0;
  mutable std::mutex mutex;
  std::unique_ptr<Bench> first;
  std::vector<std::unique_ptr<Bench>> idle;
  /// By layer, then by the program's text.
  std::map<std::pair<unsigned, std::string>, double> scores;
};

} // namespace kas::search

#endif // KAS_SEARCH_NETWORKS_FISHERSCORER_H
