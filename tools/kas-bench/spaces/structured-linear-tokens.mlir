// The space of structured-linear.mlir for sequences of tokens, which all get the same weights. Blocks of tokens may be
// merged into channels and back.
kas.space @structured_linear_tokens<N, L, Cin, Cout, R | b>
    [N, L, Cout unordered] from [N, L, Cin unordered]
    bindings [<N = 8, L = 64, Cin = 768, Cout = 3072, R = 24, b = 16>]
    limits {depth = 12, reduce = 4, split = 4, merge = 2, shift = 0, expand = 0, unfold = 0, stride = 0, weights = 3, pooling = 1,
            rank_min = 24, rank_max = 24, reduce_ratio = 24, weights_by_position = 0,
            occurrences.Cin = 4, occurrences.Cout = 4, occurrences.R = 4, occurrences.b = 6}
