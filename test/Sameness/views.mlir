kas.space @views<N, H, W | s>
    [N, H, W] from [N, H, W]
    bindings [<N = 1, H = 6, W = 8, s = 2>, <N = 1, H = 15, W = 9, s = 3>]
    limits {depth = 4, weights = 0, reduce = 0, merge = 2, split = 2, shift = 2}
