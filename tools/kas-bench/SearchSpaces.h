//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The spaces that the search is measured on.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TOOLS_KASBENCH_SEARCHSPACES_H
#define KAS_TOOLS_KASBENCH_SEARCHSPACES_H

#include "kas/Search/Operators/SearchProblem.h"

namespace kas {

/// The problem of the only `kas.space` in `text`.
llvm::Expected<std::shared_ptr<const search::SearchProblem>>
parseSearchProblem(mlir::MLIRContext &context, llvm::StringRef text);

struct BenchSpace {
  llvm::StringLiteral name, text;
};

/// The spaces of `kas-bench search`: see the files in `spaces`.
inline constexpr BenchSpace benchSpaces[] = {
    {
        "small",
#include "spaces/small.mlir.inc"
    },
    {
        "syno-test",
#include "spaces/syno-test.mlir.inc"
    },
    {
        "syno-resnet18",
#include "spaces/syno-resnet18.mlir.inc"
    },
    {
        "large",
#include "spaces/large.mlir.inc"
    },
};

/// The text of one of them.
constexpr llvm::StringRef getBenchSpace(llvm::StringRef name) {
  for (const BenchSpace &space : benchSpaces)
    if (space.name == name)
      return space.text;
  llvm_unreachable("there is no such space");
}

/// The one whose operators are all evaluated.
inline constexpr llvm::StringLiteral tabulatedSpace =
#include "spaces/tabulated.mlir.inc"
    ;

/// What machine models are learned from.
inline constexpr llvm::StringLiteral calibrationSpaces =
#include "spaces/calibration.mlir.inc"
    ;

/// Beside "syno-resnet18": on which predicted times are compared with measured
/// ones.
inline constexpr llvm::StringLiteral predictedSpaces =
#include "spaces/predicted.mlir.inc"
    ;

/// One for each named operator, of its name.
inline constexpr llvm::StringLiteral namedSpaces =
#include "spaces/named.mlir.inc"
    ;

} // namespace kas

#endif // KAS_TOOLS_KASBENCH_SEARCHSPACES_H
