// Linear layers with structured weights: up to three weights, two levels of factors b, one rank R, no sums over inputs
// that no weight has. Nothing else limits the list: more steps, reductions, merges and splits leave it as it is. R is
// no monomial of the other sizes, so rank_min and rank_max let nothing else be a rank.
kas.space @structured_linear<N, Cin, Cout, R | b>
    [N, Cout unordered] from [N, Cin unordered]
    bindings [<N = 512, Cin = 768, Cout = 3072, R = 24, b = 16>]
    limits {depth = 12, reduce = 4, split = 2, merge = 2, shift = 0, expand = 0, unfold = 0, stride = 0, weights = 3, pooling = 1,
            rank_min = 24, rank_max = 24, reduce_ratio = 24,
            occurrences.Cin = 4, occurrences.Cout = 4, occurrences.R = 4, occurrences.b = 6}
