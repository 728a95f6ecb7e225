//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chooses the tiles of a contraction (lib/Schedule/TileChoice.cpp) with what
// follows it, for the threads that its time is worth. docs/internals/code-
// generation.md, "The cost model", has the units.
//
//===----------------------------------------------------------------------===//

#include "ContractionChoice.h"
#include "ContractionEpilogue.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;
using schedule::TileChoice;

/// What it takes to compute the epilogue by loops of its own, which vectors
/// along the rows and direct tiles save: each reads and writes the second-level
/// cache, in halves of a cycle.
static int64_t getEpilogueTime(const StridedContraction &contraction,
                               const ContractionTarget &target,
                               const ContractionOptions &options) {
  // For one vector: a load and a store that go to the second-level cache.
  constexpr int64_t vectorTime = 16;
  if (!options.epilogue)
    return 0;
  int64_t elements = contraction.getExtent(contraction.batches) *
                     contraction.getExtent(contraction.rows) *
                     contraction.getExtent(contraction.columns);
  // A bias is a loop that fills the output before, the elementwise operation
  // one after.
  int64_t passes = (options.epilogue->bias ? 1 : 0) +
                   (options.epilogue->elementwise ? 1 : 0);
  return passes * elements / target.lanes * vectorTime;
}

/// Whether tiles of vectors along the rows may compute an output twice: neither
/// they nor their epilogue add to what they store.
static bool mayComputeTwice(const StridedContraction &contraction,
                            const ContractionOptions &options) {
  if (!options.epilogue || !options.epilogue->suitsRowVectors(contraction))
    return !contraction.accumulates;
  return (options.epilogue->bias || !contraction.accumulates) &&
         !options.epilogue->overwritesInput();
}

/// What tiles are chosen for, with what follows the contraction.
static schedule::TileOptions
getTileOptions(const StridedContraction &contraction,
               const ContractionTarget &target,
               const ContractionOptions &options) {
  schedule::TileOptions result = options.getTileOptions();
  result.mayComputeTwice = mayComputeTwice(contraction, options);
  result.epilogueTime = getEpilogueTime(contraction, target, options);
  result.directTakesEpilogue =
      options.epilogue && options.epilogue->suitsDirectTiles(
                              contraction, contraction.columns.back());
  result.rowVectorsTakeEpilogue =
      options.epilogue && options.epilogue->suitsRowVectors(contraction);
  return result;
}

/// Whether the tiles of `choice` compute the epilogue (`options.epilogue`) with
/// the sums. Panels never do: with more than one block of reductions their sums
/// are not finished when they are stored.
static bool takesEpilogue(const TileChoice &choice,
                          const schedule::TileOptions &options) {
  return (options.directTakesEpilogue &&
          choice.getStrategy() == schedule::TileStrategy::Direct) ||
         (options.rowVectorsTakeEpilogue &&
          choice.getStrategy() == schedule::TileStrategy::RowVectors);
}

/// As `schedule::chooseTiles`. What `readsUnpadded` rules out is no choice.
static FailureOr<TileChoice>
chooseTiles(const StridedContraction &contraction,
            const ContractionTarget &target, const ContractionOptions &options,
            function_ref<void(const Twine &)> emitReason) {
  schedule::TileReasons reasons;
  schedule::TileOptions tileOptions =
      getTileOptions(contraction, target, options);
  schedule::TileNest nest = contraction.getNest();
  // Direct tiles that begin with a bias add to nothing, so that they may
  // overlap; no others ask.
  if (tileOptions.directTakesEpilogue && options.epilogue->bias)
    nest.accumulates = false;
  std::optional<TileChoice> choice =
      schedule::chooseTiles(nest, target, tileOptions, reasons);
  if (!choice) {
    emitReason(reasons.getText());
    return failure();
  }
  // Direct tiles with one row use each element of the data for one output only,
  // so that a padded copy would be written and read once: not worth it.
  bool isReadOnce = choice->getStrategy() == schedule::TileStrategy::Direct &&
                    contraction.getExtent(contraction.rows) == 1;
  // The unpadded form has no loop that fills the output before it: a bias must
  // be what the sums begin with.
  bool beginsRight = !options.epilogue || !options.epilogue->bias ||
                     takesEpilogue(*choice, tileOptions);
  if (options.readsUnpadded &&
      !(beginsRight &&
        (choice->getStrategy() == schedule::TileStrategy::RowVectors ||
         isReadOnce))) {
    StringRef noVectors = reasons.get(schedule::TileStrategy::RowVectors);
    emitReason("other tiles take less time" +
               Twine(noVectors.empty() ? "" : "; ") + noVectors);
    return failure();
  }
  return *choice;
}

/// The same for the threads that the time of `choice` is worth: what takes too
/// short a time is not to be cut for several threads, either.
static TileChoice chooseForThreads(const StridedContraction &contraction,
                                   const ContractionTarget &target,
                                   const ContractionOptions &options,
                                   const TileChoice &choice) {
  FailureOr<TileChoice> alone =
      chooseTiles(contraction, target, options, [](const Twine &) {});
  return succeeded(alone) ? *alone : choice;
}

FailureOr<ContractionChoice>
kas::codegen::chooseContraction(const StridedContraction &contraction,
                                const ContractionTarget &target,
                                const ContractionOptions &options,
                                function_ref<void(const Twine &)> emitReason) {
  FailureOr<TileChoice> tiles =
      chooseTiles(contraction, target, options, emitReason);
  if (failed(tiles))
    return failure();
  ContractionOptions shared = options;
  shared.threads = options.getThreads(tiles->time);
  if (shared.threads != options.threads)
    tiles = chooseForThreads(contraction, target, shared, *tiles);
  bool takes =
      takesEpilogue(*tiles, getTileOptions(contraction, target, options));
  return ContractionChoice{std::move(*tiles), shared.threads, takes};
}

std::optional<int64_t>
kas::codegen::getContractionTime(const StridedContraction &contraction,
                                 const ContractionOptions &options) {
  std::optional<CombinedInputs> combined = CombinedInputs::get(contraction);
  FailureOr<TileChoice> choice = chooseTiles(
      combined ? combined->getRemainder() : contraction,
      ContractionTarget(options.target), options, [](const Twine &) {});
  if (failed(choice))
    return std::nullopt;
  return choice->time;
}
