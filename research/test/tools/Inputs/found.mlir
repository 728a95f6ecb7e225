kas.space @conv<N, Cin, Cout, H, W | k, g> [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 8, Cout = 8, H = 6, W = 6, k = 3, g = 2>, <N = 1, Cin = 16, Cout = 16, H = 3, W = 3, k = 3, g = 2>]
    limits {depth = 8, reduce = 3}
