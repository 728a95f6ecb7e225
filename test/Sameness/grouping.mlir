kas.space @grouping<N, C, D | g>
    [N, D unordered] from [N, C unordered]
    bindings [<N = 1, C = 8, D = 6, g = 2>, <N = 1, C = 6, D = 12, g = 3>]
    limits {depth = 6, weights = 1, reduce = 2, merge = 1, split = 2, shift = 0, occurrences.g = 6}
