kas.space @pooling<N, C, H | s>
    [N, C unordered, H/s] from [N, C unordered, H]
    bindings [<N = 1, C = 5, H = 8, s = 2>, <N = 1, C = 4, H = 18, s = 3>]
    limits {depth = 5, weights = 0, reduce = 2, merge = 2, split = 2, shift = 1, stride = 1}
