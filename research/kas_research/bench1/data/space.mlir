// The ResNet-18 space of the Syno paper (section 9), as its code states it: the 16 convolutions of 3x3 and the 3 of 1x1,
// with the layers of stride 2 after a pooling. Height and width are one symbol. The budget is 0.15 to 0.9 of the FLOPs of
// the network less those that are not replaced.
kas.space @resnet18<N, Cin, Cout, H | k1, k2, s, g>
    [N, Cout unordered, H, H] from [N, Cin unordered, H, H]
    bindings [<N = 1, Cin = 64, Cout = 64, H = 56, k1 = 3, k2 = 7, s = 2, g = 32> x 4,
              <N = 1, Cin = 64, Cout = 128, H = 28, k1 = 3, k2 = 7, s = 2, g = 32> x 2,
              <N = 1, Cin = 128, Cout = 128, H = 28, k1 = 3, k2 = 7, s = 2, g = 32> x 3,
              <N = 1, Cin = 128, Cout = 256, H = 14, k1 = 3, k2 = 7, s = 2, g = 32> x 2,
              <N = 1, Cin = 256, Cout = 256, H = 14, k1 = 3, k2 = 7, s = 2, g = 32> x 3,
              <N = 1, Cin = 256, Cout = 512, H = 7, k1 = 3, k2 = 7, s = 2, g = 32> x 2,
              <N = 1, Cin = 512, Cout = 512, H = 7, k1 = 3, k2 = 7, s = 2, g = 32> x 3]
    limits {depth = 12, chain = 6, reduce = 5, split = 3, merge = 1, shift = 2, unfold = 12, weights = 2,
            occurrences.N = 0, occurrences.Cin = 2, occurrences.Cout = 4, occurrences.H = 0,
            occurrences.k1 = 2, occurrences.k2 = 2, occurrences.s = 2, occurrences.g = 3,
            size_symbols = 3, size_powers = 16, reduce_ratio = 4, pooling = 8,
            weight_elements = 100, merge_elements = 2048, rank_min = 8, rank_max = 8,
            window = 30, unfold_ratio = 2.3, shift_block = 2, shift_backward = 0, swap_axes = 1}
    budget {min_flops = 2.91e+08, flops = 3.0264e+09}
