// The operators that a machine model is learned from: replacements of layers of many sizes, none of them those of a network.
kas.space @square<N, Cin, Cout, H | k, j, s, g>
    [N, Cout unordered, H, H] from [N, Cin unordered, H, H]
    bindings [<N = 1, Cin = 32, Cout = 32, H = 64, k = 3, j = 5, s = 2, g = 8>,
              <N = 1, Cin = 96, Cout = 48, H = 40, k = 3, j = 5, s = 2, g = 8>,
              <N = 1, Cin = 64, Cout = 160, H = 32, k = 3, j = 5, s = 2, g = 16>,
              <N = 1, Cin = 128, Cout = 128, H = 16, k = 3, j = 5, s = 2, g = 32>,
              <N = 1, Cin = 192, Cout = 320, H = 12, k = 3, j = 5, s = 2, g = 32>,
              <N = 1, Cin = 384, Cout = 256, H = 8, k = 3, j = 5, s = 2, g = 16>,
              <N = 1, Cin = 512, Cout = 512, H = 6, k = 3, j = 5, s = 2, g = 32>]
    limits {depth = 12, chain = 6, reduce = 5, split = 3, merge = 1, shift = 2, unfold = 12, weights = 2,
            occurrences.N = 0, occurrences.Cin = 2, occurrences.Cout = 4, occurrences.H = 0,
            occurrences.k = 2, occurrences.j = 2, occurrences.s = 2, occurrences.g = 3,
            size_symbols = 3, size_powers = 16, reduce_ratio = 4, pooling = 8,
            weight_elements = 100, merge_elements = 2048, rank_min = 8, rank_max = 8,
            window = 30, unfold_ratio = 2.3, shift_block = 2, shift_backward = 0, swap_axes = 1}
    budget {flops = 1.0e+09}
kas.space @image<N, Cin, Cout, H, W | k, g>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 48, Cout = 48, H = 48, W = 60, k = 3, g = 4>,
              <N = 1, Cin = 80, Cout = 112, H = 20, W = 36, k = 3, g = 4>,
              <N = 1, Cin = 160, Cout = 160, H = 16, W = 24, k = 3, g = 4>,
              <N = 1, Cin = 320, Cout = 192, H = 10, W = 10, k = 3, g = 8>,
              <N = 1, Cin = 384, Cout = 384, H = 9, W = 7, k = 3, g = 4>]
    limits {depth = 7, expand = 0, merge = 2, reduce = 4, shift = 1, split = 2, stride = 0, unfold = 2, weights = 2}
    budget {flops = 1.0e+09}
kas.space @strided<N, Cin, Cout, H, W | k, s, g>
    [N, Cout unordered, H/s, W/s] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 48, Cout = 96, H = 64, W = 48, k = 3, s = 2, g = 4>,
              <N = 1, Cin = 96, Cout = 160, H = 32, W = 40, k = 3, s = 2, g = 4>,
              <N = 1, Cin = 160, Cout = 320, H = 20, W = 16, k = 3, s = 2, g = 8>,
              <N = 1, Cin = 320, Cout = 480, H = 12, W = 12, k = 3, s = 2, g = 4>]
    limits {depth = 7, expand = 0, merge = 2, reduce = 4, shift = 1, split = 2, stride = 2, unfold = 2, weights = 2}
    budget {flops = 4.0e+08}
kas.space @tokens<N, L, Cin, Cout | g>
    [N, L, Cout unordered] from [N, L, Cin unordered]
    bindings [<N = 1, L = 64, Cin = 128, Cout = 320, g = 4>, <N = 2, L = 100, Cin = 256, Cout = 256, g = 8>,
              <N = 1, L = 256, Cin = 384, Cout = 96, g = 4>, <N = 4, L = 49, Cin = 96, Cout = 512, g = 8>,
              <N = 1, L = 120, Cin = 512, Cout = 128, g = 4>]
    limits {depth = 8, expand = 0, merge = 2, reduce = 2, shift = 1, split = 2, stride = 0, unfold = 0, weights = 2}
    budget {flops = 4.0e+08}
