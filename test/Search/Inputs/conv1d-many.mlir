kas.space @conv1d<N, Cin, Cout, W | k, s>
    [N, Cout unordered, W] from [N, Cin unordered, W]
    bindings [<N = 1, Cin = 8, Cout = 8, W = 12, k = 3, s = 2>,
              <N = 1, Cin = 16, Cout = 16, W = 8, k = 3, s = 2> x 3]
    limits {depth = 8}
