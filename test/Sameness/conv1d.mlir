kas.space @conv1d<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<N = 1, C = 4, D = 2, W = 7, k = 3>, <N = 1, C = 2, D = 4, W = 11, k = 5>]
    limits {depth = 5, weights = 1, reduce = 2, merge = 1, split = 1, shift = 1, unfold = 1}
