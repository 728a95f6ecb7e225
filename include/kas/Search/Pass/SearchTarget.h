//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a search is for, as the pass sees it: operators of a space, sequences of
// such operators, kernels like a given one, or transformations of a network.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_PASS_SEARCHTARGET_H
#define KAS_SEARCH_PASS_SEARCHTARGET_H

#include "kas/Dialect/Kas/IR/KasSequenceOps.h"
#include "kas/Search/Core/SearchStore.h"
#include "kas/Search/Evaluators/Evaluators.h"
#include "kas/Search/Kernels/KernelState.h"
#include "mlir/IR/BuiltinOps.h"

namespace kas::search {

class SearchTarget {
public:
  virtual ~SearchTarget() = default;

  /// The op that states the problem, and its name.
  virtual mlir::Operation *getOp() const = 0;
  /// It, after the ops that it refers to.
  virtual llvm::SmallVector<mlir::Operation *> getOps() const {
    return {getOp()};
  }
  /// The space of the layers that candidates replace; null where they are no
  /// operators.
  virtual SpaceOp getLayerSpace() const { return {}; }
  llvm::StringRef getName() const;
  /// What candidates are called, such as `operator` or `kernel`.
  virtual llvm::StringRef getNoun() const = 0;

  virtual std::unique_ptr<State> makeState() const = 0;
  /// See `CandidateSpace::Options`.
  virtual uint64_t getTreeExpansions() const = 0;
  /// What an exhaustive search orders candidates by.
  virtual double getCost(const Solution &solution) const = 0;
  virtual llvm::Expected<std::unique_ptr<Evaluator>>
  makeEvaluator(llvm::StringRef name,
                const EvaluatorSettings &settings) const = 0;
  /// What decides which candidates there are, besides the op: the settings of a
  /// database.
  virtual SearchSettings getSettings() const { return {}; }
  /// The IR of a candidate, from any thread.
  virtual std::string print(const Solution &solution) = 0;
  virtual mlir::Operation *build(mlir::OpBuilder &builder, llvm::StringRef name,
                                 const Solution &solution) const = 0;
  /// Why there is no candidate at all, where that can be said.
  virtual std::vector<std::string> explainEmpty() const = 0;
};

std::unique_ptr<SearchTarget> makeSpaceTarget(SpaceOp space);

/// Reports stages that make no sense with a width; widths for which a stage has
/// no operator become remarks and are left out.
llvm::FailureOr<std::unique_ptr<SearchTarget>>
makeSequenceTarget(SequenceSpaceOp space);

/// Reports a kernel that states no search, and limits that make no sense.
llvm::FailureOr<std::unique_ptr<SearchTarget>>
makeKernelTarget(KernelOp kernel, llvm::ArrayRef<std::string> limits,
                 llvm::StringRef groups);

/// The input of a search for transformations of a network.
struct NetworkRequest {
  /// The function, and the same network for several samples or the same.
  mlir::Operation *network = nullptr, *scored = nullptr;
  llvm::ArrayRef<std::string> limits;
};
using NetworkTargetFactory =
    std::function<llvm::FailureOr<std::unique_ptr<SearchTarget>>(
        const NetworkRequest &)>;

/// Says who makes the target of such a search: a library that knows more than
/// this one. Programs that link kas call it before they run passes.
void registerNetworkTarget(NetworkTargetFactory factory);

/// Reports what is wrong with a request.
llvm::FailureOr<std::unique_ptr<SearchTarget>>
makeNetworkTarget(const NetworkRequest &request);

} // namespace kas::search

#endif // KAS_SEARCH_PASS_SEARCHTARGET_H
