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

#include "kas/GraphSearch/SearchProblem.h"

namespace kas {

/// The problem of the only `kas.space` in `text`.
llvm::Expected<std::shared_ptr<const SearchProblem>>
parseSearchProblem(mlir::MLIRContext &context, llvm::StringRef text);

/// Replacements of one small layer, of which all are judged: see
/// `kas-bench search-table`.
inline constexpr llvm::StringLiteral tabulatedSpace = R"(
kas.space @tabulated<N, Cin, Cout, H, W | k, g>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 8, Cout = 8, H = 6, W = 6, k = 3, g = 2>]
    limits {depth = 10, reduce = 4, split = 2, merge = 1, shift = 1, unfold = 2,
            weights = 2, occurrences.k = 4, occurrences.g = 4}
    budget {flops_ratio = 5.0e-01, min_flops_ratio = 5.0e-02,
            baseline_flops = 41472}
)";

/// A small one, to see that all works.
inline constexpr llvm::StringLiteral smallSpace = R"(
kas.space @small<N, Cin, Cout, W | k>
    [N, Cout unordered, W] from [N, Cin unordered, W]
    bindings [<N = 1, Cin = 8, Cout = 12, W = 10, k = 3>]
    limits {depth = 5, reduce = 3, weights = 2, shift = 1, merge = 1}
    budget {flops = 100000}
)";

struct BenchSpace {
  llvm::StringLiteral name, text;
};

/// The spaces of `kas-bench search`.
inline constexpr BenchSpace benchSpaces[] = {
    {"small", smallSpace},
    {"tabulated-space", tabulatedSpace},
};

} // namespace kas

#endif // KAS_TOOLS_KASBENCH_SEARCHSPACES_H
