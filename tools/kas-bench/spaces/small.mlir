// A small one, to see that all works.
kas.space @small<N, Cin, Cout, W | k>
    [N, Cout unordered, W] from [N, Cin unordered, W]
    bindings [<N = 1, Cin = 8, Cout = 12, W = 10, k = 3>]
    limits {depth = 5, reduce = 3, weights = 2, shift = 1, merge = 1}
    budget {flops = 100000}
