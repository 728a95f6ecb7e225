kas.space @matmul<N, M, K, D | g>
    [N, M, D unordered] from [N, M, K unordered]
    bindings [<N = 1, M = 3, K = 8, D = 10, g = 2>, <N = 1, M = 5, K = 12, D = 6, g = 3>]
    limits {depth = 5, weights = 1, reduce = 2, merge = 1, split = 1, shift = 1}
