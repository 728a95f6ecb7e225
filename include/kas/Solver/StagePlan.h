//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How to compute an operator in stages (rfactor): which reductions and weights
// each stage takes, and where the graph is cut between them, so that work is
// not repeated for coordinates that a later one-to-many primitive creates.
// Plain data, no ops: the pass and the search use the same planner.
//
// Source: Syno, section 7 (materialized reduction). There, orders of lowering
// the reductions are enumerated; here the optimum is found by dynamic
// programming over the sets of reductions and weights that are done, with a
// minimum cut for each.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SOLVER_STAGEPLAN_H
#define KAS_SOLVER_STAGEPLAN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace kas::solver {

/// The graph of an operator with linear reductions at concrete sizes. Every
/// coordinate has one producer and one consumer.
struct StageGraph {
  /// A producer or consumer that is no primitive: outputs and reductions
  /// produce, tensors consume.
  enum class End : uint8_t { Primitive, Output, Reduction, Tensor };

  struct Coordinate {
    int64_t size = 1;
    End producerKind = End::Output;
    /// The primitive, or which reduction.
    unsigned producer = 0;
    End consumerKind = End::Tensor;
    /// The primitive, or the tensor: 0 is the data, i + 1 is weight i.
    unsigned consumer = 0;
    /// May not cross a cut: who uses it above makes it above.
    bool isBound = false;
    /// Two results of one primitive with this flag may not both cross a cut.
    bool isExclusive = false;
  };

  llvm::SmallVector<Coordinate> coordinates;
  unsigned numPrimitives = 0;
  unsigned numReductions = 0;
  unsigned numWeights = 0;

  /// With more reductions and weights together, or more primitives, only the
  /// single loop nest is considered.
  static constexpr unsigned maxChoices = 14;
  static constexpr unsigned maxPrimitives = 60;
};

/// One stage: an operator from the result of the stage before (or the data) to
/// an intermediate (or the output).
struct Stage {
  /// What this stage takes, in ascending order.
  llvm::SmallVector<unsigned> reductions, weights, primitives;
  /// The coordinates (positions in the graph) that index its result: those of
  /// the output for the last stage.
  llvm::SmallVector<unsigned> frontier;
  /// Multiply-adds: points of its iteration space times max(tensors - 1, 1);
  /// none for a pure view.
  uint64_t macs = 0;
  /// Elements of its result.
  uint64_t elements = 0;
};

struct StagePlan {
  /// From the data to the output; one stage means that nothing is gained.
  llvm::SmallVector<Stage, 2> stages;
  uint64_t macs = 0;
  /// Elements read and written by all stages.
  uint64_t traffic = 0;
};

struct StagePlanOptions {
  /// No intermediate may have more elements than this.
  uint64_t maxIntermediateElements = UINT64_MAX;
};

/// The plan with the fewest multiply-adds; among those, the one with the least
/// traffic, then with the fewest stages. The single loop nest is always a plan.
StagePlan planStages(const StageGraph &graph,
                     const StagePlanOptions &options = {});

} // namespace kas::solver

#endif // KAS_SOLVER_STAGEPLAN_H
