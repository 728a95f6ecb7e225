//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How to compute an operator in stages (rfactor): which tensors are multiplied
// first, which reductions each stage sums, and where the graph is cut between
// the stages, so that work is not repeated for coordinates that a later
// one-to-many primitive creates. Plain data, no ops: the pass and the search
// use the same planner.
//
// A plan is a tree. Its leaves are the data and the weights; an inner node, a
// stage, multiplies what its operands hold, sums some reductions, and yields an
// intermediate or the output. Stages that the data is not part of depend on
// weights alone.
//
// Source: Syno, section 7 (materialized reduction). There, orders of lowering
// the reductions are enumerated; here the optimum is found by dynamic
// programming over the sets of reductions and weights that are done, with a
// minimum cut for each.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SCHEDULE_STAGEPLAN_H
#define KAS_SCHEDULE_STAGEPLAN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace kas::schedule {

/// The graph of an operator with linear reductions at concrete sizes. Every
/// coordinate has one producer. Any number of weights may be indexed by it;
/// besides it is an operand of one primitive, or indexes the data, or neither.
struct StageGraph {
  enum class Producer : uint8_t { Primitive, Output, Reduction };
  static constexpr unsigned noPrimitive = ~0u;

  struct Coordinate {
    int64_t size = 1;
    Producer producerKind = Producer::Output;
    /// The primitive, or which reduction.
    unsigned producer = 0;
    /// The primitive that it is an operand of, if any.
    unsigned consumer = noPrimitive;
  };

  llvm::SmallVector<Coordinate> coordinates;
  /// The coordinates (positions in `coordinates`) that index the tensors.
  llvm::SmallVector<unsigned> data;
  llvm::SmallVector<llvm::SmallVector<unsigned>> weights;
  unsigned numPrimitives = 0;
  unsigned numReductions = 0;

  /// With more reductions and weights together, or more primitives, only the
  /// single loop nest is considered.
  static constexpr unsigned maxChoices = 14;
  static constexpr unsigned maxPrimitives = 60;
  /// Of more weights than this, a stage multiplies all that it takes with one
  /// another first, or none.
  static constexpr unsigned maxGrouped = 5;
  /// Of more primitives than this below weights alone, a stage on these weights
  /// takes those that make its result smallest, or is none.
  static constexpr int maxTried = 8;
};

/// What a stage multiplies.
struct StageOperand {
  enum class Kind : uint8_t { Data, Weight, Stage };
  Kind kind = Kind::Data;
  /// The weight, or the stage whose result it is.
  unsigned index = 0;

  friend bool operator==(const StageOperand &a, const StageOperand &b) {
    return a.kind == b.kind && a.index == b.index;
  }
};

/// One stage: an operator whose result is an intermediate or the output.
struct Stage {
  /// The first one takes the place of the data. It is the data of the graph, or
  /// depends on it, unless the stage depends on weights alone.
  llvm::SmallVector<StageOperand, 3> operands;
  /// What this stage takes, in ascending order.
  llvm::SmallVector<unsigned> reductions, primitives;
  /// The coordinates (positions in the graph) that index its result: those of
  /// the output for the last stage.
  llvm::SmallVector<unsigned> frontier;
  /// Multiply-adds: points of its iteration space times max(operands - 1, 1);
  /// none for a pure view.
  uint64_t macs = 0;
  /// Elements of its result.
  uint64_t elements = 0;
  /// Whether it depends on weights alone.
  bool isOfWeights = false;
};

/// What a plan makes small.
enum class StageCost : uint8_t {
  /// The multiply-adds of one evaluation of which all stages that depend on
  /// weights alone were computed before.
  Prepared,
  /// Those of one evaluation with new weights.
  Unprepared,
  /// Those of an evaluation with new weights and of the gradients of the data
  /// and of all weights: a stage with n operands multiplies n - 1 times for its
  /// result and for the gradient of each operand. The gradient of a sum of one
  /// operand is a copy.
  Training,
};

/// The multiply-adds that take as long as an element of data that comes from
/// memory or the last cache.
constexpr uint64_t usualTraffic = 8;

struct StagePlan {
  /// Stages come after those whose results they take; the last one makes the
  /// output. One stage means that nothing is gained.
  llvm::SmallVector<Stage, 2> stages;
  /// What `StagePlanOptions::cost` says.
  uint64_t macs = 0;
  /// Elements read and written by the stages that count.
  uint64_t traffic = 0;
};

struct StagePlanOptions {
  StageCost cost = StageCost::Unprepared;
  /// What an element counts that a stage reads or writes, in multiply-adds:
  /// with `usualTraffic` a plan takes the least time where intermediates are
  /// large, or weights that were multiplied with one another. In training it
  /// counts in the evaluation and in both gradients.
  uint64_t traffic = 0;
  /// No intermediate may have more elements than this.
  uint64_t maxIntermediateElements = UINT64_MAX;
};

/// The plan with the fewest multiply-adds and what counts as such; among those,
/// the one with the least traffic, then with the fewest stages. The single loop
/// nest is always a plan.
/// Where a coordinate of a weight is an operand of a primitive from which only
/// weights are reached, stages on these weights are not all tried.
StagePlan planStages(const StageGraph &graph,
                     const StagePlanOptions &options = {});

} // namespace kas::schedule

#endif // KAS_SCHEDULE_STAGEPLAN_H
