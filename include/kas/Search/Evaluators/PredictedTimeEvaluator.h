//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The latency of operators as a machine model predicts it, without compiling.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_EVALUATORS_PREDICTEDTIMEEVALUATOR_H
#define KAS_SEARCH_EVALUATORS_PREDICTEDTIMEEVALUATOR_H

#include "kas/Schedule/MachineModel.h"
#include "kas/Search/Evaluators/Evaluators.h"
#include "kas/Search/Operators/OperatorNests.h"

namespace kas::search {

/// Predicts times of operators of one problem: what `latency_ms` would be on
/// one core of the machine that `model` was made on, in milliseconds. Not to be
/// used by two threads at once.
class TimePredictor {
public:
  TimePredictor(std::shared_ptr<const SearchProblem> problem,
                const Target &target, schedule::MachineModel model)
      : problem(problem), nests(std::move(problem)), target(target),
        model(std::move(model)) {}

  /// With the target that the process compiles for and its machine model; see
  /// `loadMachineModel` for `report` and errors.
  static llvm::Expected<TimePredictor>
  create(std::shared_ptr<const SearchProblem> problem,
         llvm::function_ref<void(const std::string &)> report);

  /// The work of all stages at each binding.
  std::vector<schedule::StageWork> getWork(const OperatorGraph &graph);
  /// Summed over the bindings times their multiplicities.
  double predict(const OperatorGraph &graph);
  const schedule::MachineModel &getModel() const { return model; }

private:
  std::shared_ptr<const SearchProblem> problem;
  OperatorNests nests;
  schedule::TileTarget target;
  schedule::MachineModel model;
};

/// The machine model of this machine, that `kas-bench calibrate` keeps in the
/// user's cache directory. Without a file the usual one, and `report` is given
/// a message. A file that cannot be used is an error.
llvm::Expected<schedule::MachineModel>
loadMachineModel(llvm::StringRef cpu,
                 llvm::function_ref<void(const std::string &)> report);

/// The predicted milliseconds of an operator at a legal binding. Errors: an
/// operator that no search could make (see `readOperator`), and a machine model
/// that cannot be used.
llvm::Expected<double> predictTime(OperatorOp op, const Binding &binding);

/// The metrics `predicted_ms`, and `predicted_least_ms`: 99 of 100 operators
/// that the model was made from took no less.
llvm::Expected<std::unique_ptr<Evaluator>>
makePredictedTimeEvaluator(const EvaluatorSettings &settings);

} // namespace kas::search

#endif // KAS_SEARCH_EVALUATORS_PREDICTEDTIMEEVALUATOR_H
