//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which tiles a contraction is cut into: panels, direct tiles, or vectors
// along the rows, by the time of their plans.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SCHEDULE_TILECHOICE_H
#define KAS_SCHEDULE_TILECHOICE_H

#include "kas/Schedule/DirectPlan.h"
#include "kas/Schedule/PanelPlan.h"
#include "kas/Schedule/RowVectorPlan.h"
#include <array>
#include <string>
#include <variant>

namespace kas::schedule {

enum class TileStrategy : uint8_t { Panels, Direct, RowVectors };

/// What tiles are chosen for.
struct TileOptions {
  int64_t threads = 1;
  /// What rearranges weights runs once, not at each call.
  bool prepacked = false;
  /// All strategies, or this one alone.
  std::optional<TileStrategy> strategy;
  /// Whether the others are tried where that one does not suit.
  bool givesWay = false;
  /// The numbers that a schedule gives.
  std::optional<TileNumbers> given;
  /// Tiles of vectors along the rows may compute an output twice.
  bool mayComputeTwice = true;
  /// What follows takes this time where the tiles do not compute it, and which
  /// of them do.
  int64_t epilogueTime = 0;
  bool directTakesEpilogue = false, rowVectorsTakeEpilogue = false;
};

struct TileChoice {
  std::variant<PanelPlan, DirectPlan, RowVectorPlan> plan;
  /// Estimated time, in halves of a cycle, with that of the tail where the
  /// tiles do not compute it.
  int64_t time = 0;

  TileStrategy getStrategy() const {
    return static_cast<TileStrategy>(plan.index());
  }
};

/// Why strategies have no plan, each by its name; empty for those that were not
/// tried.
class TileReasons {
public:
  void set(TileStrategy strategy, const llvm::Twine &reason) {
    reasons[static_cast<unsigned>(strategy)] = reason.str();
  }
  llvm::StringRef get(TileStrategy strategy) const {
    return reasons[static_cast<unsigned>(strategy)];
  }
  /// All, in the order of the strategies.
  std::string getText() const;

private:
  std::array<std::string, 3> reasons;
};

/// The plan that takes the least time.
std::optional<TileChoice> chooseTiles(const TileNest &nest,
                                      const TileTarget &target,
                                      const TileOptions &options,
                                      TileReasons &reasons);

/// The same for `nest`, where its scalar inputs are combined if that suits
/// them.
std::optional<TileChoice> chooseTiles(const LoopNest &nest,
                                      const TileTarget &target,
                                      const TileOptions &options);

} // namespace kas::schedule

#endif // KAS_SCHEDULE_TILECHOICE_H
