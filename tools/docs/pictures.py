# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The contents of the pictures of docs/internals/one-operator-six-forms.md show.

A station is its name, caption, code, and the function to the next one.
"""

STATIONS = {
    "candidate": (
        "A candidate of the search: from a packed state to loops and vectors",
        [
            (
                "packed state",
                ["plain data, copied as bytes;", "coordinates and sizes are numbers"],
                [
                    "live     n : N      c : Cin      x = w + i - floor(k/2) : W",
                    "weights  [o, i, j]  [j, c]",
                    "reduced  i : k,  j : k,  c : Cin      6 steps",
                ],
                "getSolution, buildOperator",
            ),
            (
                "IR",
                ["kas.operator with symbols;", "evaluators, databases and", "people read this form"],
                [
                    "kas.operator @low_rank<N, Cin, Cout, W | k>",
                    "    (%n: N, %o: Cout unordered, %w: W) from [N, Cin unordered, W] {",
                    "  ...  %x = kas.unfold %w, %i_d : W, k",
                    "  kas.yield data(%n, %c_d, %x) weight(%o, %i_w, %j_w) weight(%j_d, %c_w)",
                ],
                "inferBinding, planStages",
            ),
            (
                "concrete IR in stages",
                ["numbers for symbols, and a chain", "of operators: 37 632 multiply-adds", "for 1 032 192"],
                [
                    "%t = kas.apply @low_rank_0_stage0(%x, %w2)",
                    "       : (tensor<1x32x56xf32>, tensor<3x32xf32>) -> tensor<1x3x56xf32>",
                    "%y = kas.apply @low_rank_0_stage1(%t, %w1)",
                    "       : (tensor<1x3x56xf32>, tensor<64x3x3xf32>) -> tensor<1x64x56xf32>",
                ],
                "getCoordinates, match",
            ),
            (
                "coordinates, contraction",
                ["affine expressions of the loops,", "then loops sorted by what steps", "with them (second stage)"],
                [
                    "y[n, o, w] += t[n, j, w + i - 1] * w1[o, i, j]   where 0 <= w + i - 1 < 56",
                    "batches n : 1    rows o : 64    columns w : 56    reductions i : 3, j : 3",
                ],
                "makePanelPlan, makeDirectPlan, makeRowVectorPlan",
            ),
            (
                "strategy",
                ["an attribute on the kas.apply,", "or the cheapest plan"],
                ["kas_cpu.schedule: panels, rows = 3, vectors = 4, tile = 56, depth = 3"],
                "emitPanels",
            ),
            (
                "loops and vectors",
                ["12 sums in registers"],
                [
                    "scf.for %row = %c0 to %c63 step %c3 {",
                    "  scf.for %step = %c0 to %c9 step %c1 iter_args(12 x vector<8xf32>) {",
                    "    12 x vector.fma",
                ],
                None,
            ),
        ],
    ),
    "binding": (
        "A size binding: from exponents to loop bounds",
        [
            (
                "packed size",
                ["exponents of symbols in two words;", "a SizeTable has the value", "under each binding"],
                [
                    "W        N^0 Cin^0 Cout^0 W^1 k^0      value 56",
                    "k        N^0 Cin^0 Cout^0 W^0 k^1      value  3",
                    "Cin      N^0 Cin^1 Cout^0 W^0 k^0      value 32",
                ],
                "buildOperator",
            ),
            (
                "IR",
                ["sizes are in types; the apply", "gives what shapes do not say"],
                [
                    "kas.reduce sum : k            kas.unfold %w, %i_d : W, k",
                    "kas.apply @low_rank<k = 3>(%x, %w1, %w2)",
                    "    : (tensor<1x32x56xf32>, ...) -> tensor<1x64x56xf32>",
                ],
                "inferBinding, verifyBinding, specialize",
            ),
            (
                "concrete IR in stages",
                ["no symbols are left; an illegal", "size was an error before this"],
                [
                    "N = 1, Cin = 32, Cout = 64, W = 56, k = 3",
                    "kas.operator private @low_rank_0_stage1",
                    "    (%n: 1, %o: 64, %w: 56) from [1, 3, 56]",
                ],
                "getCoordinates",
            ),
            (
                "coordinates, contraction",
                ["sizes are extents of loops,", "strides and bounds of guards"],
                [
                    "extents 1, 64, 56 | 3, 3       guard 0 <= d2 + d3 - 1 < 56",
                    "strides of the output 3584, 56, 1, 0, 0",
                ],
                "getScheduleSpace",
            ),
            (
                "strategy",
                ["numbers of a schedule are", "bounded by the extents"],
                ["tile = 56: all columns         depth = 3: divides the outermost reduction"],
                "emitContraction",
            ),
            (
                "loops and vectors",
                ["bounds are constants; what is", "left over has code of its own"],
                ["64 rows by 3: scf.for 0 to 63 step 3, then one row", "56 columns: 7 vectors of 8 lanes = 4 + 3"],
                None,
            ),
        ],
    ),
    "schedule": (
        "A schedule: from a point of a space to register tiles",
        [
            (
                "packed point",
                ["strategy and five numbers;", "all points are listed"],
                [
                    "panels  rows 3  columns 0  vectors 4  tile 56  depth 3",
                    "proposed by the cost model, a learned model or neighbours",
                ],
                "getSchedule",
            ),
            (
                "IR",
                ["an attribute on the operation;", "the database keeps its text"],
                [
                    "#kas_cpu.schedule<..., rows = 3, vectors = 4, tile = 56, depth = 3>",
                    "measured in a process of its own; ratio to the time without it",
                ],
                "kas-tune",
            ),
            (
                "concrete IR in stages",
                ["set after rfactor,", "before -kas-pack-operators"],
                [
                    "%y = kas.apply @low_rank_0_stage1(%t, %w1) {kas_cpu.schedule = ...}",
                    "       : (tensor<1x3x56xf32>, tensor<64x3x3xf32>) -> tensor<1x64x56xf32>",
                ],
                "match",
            ),
            (
                "coordinates, contraction",
                ["the same for all strategies"],
                ["rows o : 64    columns w : 56    reductions i : 3, j : 3"],
                "makePanelPlan",
            ),
            (
                "strategy",
                ["the plan has all numbers;", "one that does not suit is an error"],
                ["tileColumns 56  panelDepth 9  registerRows 3  registerVectors 4", "time in halves of a cycle"],
                "emitPanels",
            ),
            (
                "loops and vectors",
                ["the remark Packed reports", "the schedule that was used"],
                [
                    "copy 3 x 3 lines of 56 to a panel, then for each 3 rows:",
                    "9 steps of 4 loads, 3 broadcasts, 12 vector.fma",
                ],
                None,
            ),
        ],
    ),
}
