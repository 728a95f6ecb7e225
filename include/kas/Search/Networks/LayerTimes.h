//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The time of configurations of a network as a sum over its layers: each
// program of a layer is compiled and timed once, alone, however many layers and
// configurations have it.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_NETWORKS_LAYERTIMES_H
#define KAS_SEARCH_NETWORKS_LAYERTIMES_H

#include "kas/Search/Evaluators/Evaluators.h"
#include "kas/Search/Networks/NetworkState.h"
#include <future>

namespace kas::search {

/// Milliseconds of configurations, kept by layer and program while it lives.
class LayerTimes {
public:
  /// `makeEvaluator` makes what times the text of a layer: it gives the metric
  /// `latency_ms`. Times the layers as they are first; fails where one has no
  /// time.
  static llvm::Expected<std::unique_ptr<LayerTimes>>
  create(std::shared_ptr<const NetworkProblem> problem,
         const mlir::DialectRegistry &registry,
         const EvaluatorSettings &settings, const EvaluatorFactory &factory);
  ~LayerTimes();

  /// Milliseconds, the sum over the layers. From any thread; threads that need
  /// the time of the same program wait for one of them. A program that has no
  /// time is an error of all configurations that have it.
  llvm::Expected<double> getTime(const NetworkConfiguration &configuration);
  /// That of the layers as they are.
  double getOriginal() const { return original; }
  /// How many programs were timed.
  uint64_t getNumTimed() const;

private:
  struct Outcome {
    double milliseconds = 0;
    /// Why there is no time; empty: there is one.
    std::string failure;
  };
  struct Builder;
  explicit LayerTimes(std::shared_ptr<const NetworkProblem> problem);
  /// The layer of a shape by itself with the bias that it adds to, transformed.
  llvm::Expected<std::string> print(unsigned shape,
                                    llvm::ArrayRef<ProgramStep> program);
  Outcome measure(const std::string &text);
  Outcome getOutcome(unsigned shape, llvm::ArrayRef<ProgramStep> program);

  std::shared_ptr<const NetworkProblem> problem;
  std::unique_ptr<Builder> builder;
  std::unique_ptr<Evaluator> evaluator;
  double original = 0;
  mutable std::mutex mutex;
  /// By shape and the program's text; by the text of the program of loops.
  std::map<std::pair<unsigned, std::string>, Outcome> known;
  std::map<std::string, std::shared_future<Outcome>> timed;
};

} // namespace kas::search

#endif // KAS_SEARCH_NETWORKS_LAYERTIMES_H
