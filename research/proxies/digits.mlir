// The space that research/reports/proxies.md searches: that of research/proxies, with at most half of the FLOPs.
// kas.evaluate.DigitsNetwork has 1 843 200 FLOPs in its 3x3 convolutions.
kas.space @digits<N, Cin, Cout, H | k1, k2, s, g>
    [N, Cout unordered, H, H] from [N, Cin unordered, H, H]
    bindings [<N = 1, Cin = 16, Cout = 16, H = 10, k1 = 3, k2 = 5, s = 2, g = 4> x 2,
              <N = 1, Cin = 32, Cout = 32, H = 5, k1 = 3, k2 = 5, s = 2, g = 4> x 2]
    limits {depth = 12, chain = 6, reduce = 5, split = 3, merge = 1, shift = 2, unfold = 12, weights = 2,
            occurrences.N = 0, occurrences.Cin = 2, occurrences.Cout = 4, occurrences.H = 0,
            occurrences.k1 = 2, occurrences.k2 = 2, occurrences.s = 2, occurrences.g = 3,
            size_symbols = 3, size_powers = 16, reduce_ratio = 4, pooling = 8,
            weight_elements = 100, merge_elements = 2048, rank_min = 4, rank_max = 4,
            window = 30, unfold_ratio = 1.6, shift_block = 2, shift_backward = 0, swap_axes = 1}
    budget {min_flops = 184320, flops = 921600}
