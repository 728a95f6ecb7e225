kas.space @conv2d<N, C, D, H, W | k>
    [N, D unordered, H, W] from [N, C unordered, H, W]
    bindings [<N = 1, C = 4, D = 2, H = 6, W = 7, k = 3>, <N = 1, C = 2, D = 5, H = 7, W = 6, k = 3>]
    limits {depth = 6, weights = 1, reduce = 3, merge = 0, split = 0, shift = 0, unfold = 2}
