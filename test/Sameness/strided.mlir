kas.space @strided<N, C, D, H | k, s>
    [N, D unordered, H/s] from [N, C unordered, H]
    bindings [<N = 1, C = 2, D = 4, H = 14, k = 3, s = 2>, <N = 1, C = 5, D = 2, H = 18, k = 3, s = 3>]
    limits {depth = 5, weights = 1, reduce = 2, merge = 0, split = 1, shift = 1, unfold = 1, stride = 1}
