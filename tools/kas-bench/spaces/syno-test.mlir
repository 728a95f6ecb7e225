// The space of the sampler's test in Syno: one layer, one coefficient that may occur often, strides.
kas.space @test<N, Cin, Cout, H, W | k1, s1>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 3, Cin = 3, Cout = 8, H = 64, W = 64, k1 = 3, s1 = 2>]
    limits {depth = 12, chain = 5, reduce = 3, split = 12, merge = 1, shift = 12, unfold = 12, stride = 12, weights = 2,
            occurrences.N = 0, occurrences.Cin = 2, occurrences.Cout = 2, occurrences.H = 0, occurrences.W = 0,
            occurrences.k1 = 4, occurrences.s1 = 0,
            size_symbols = 8, size_powers = 100, reduce_ratio = 32, pooling = 8,
            weight_elements = 1, merge_elements = 512, rank_min = 3, rank_max = 8,
            window = 30, stride_size = 30, unfold_ratio = 2, shift_block = 5, shift_backward = 0}
    budget {flops = 1.0e+07}
