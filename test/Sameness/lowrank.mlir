kas.space @lowrank<N, C, D | t>
    [N, D unordered] from [N, C unordered]
    bindings [<N = 1, C = 4, D = 6, t = 2>, <N = 1, C = 6, D = 5, t = 3>]
    limits {depth = 5, weights = 2, reduce = 3, merge = 1, split = 1, shift = 0}
