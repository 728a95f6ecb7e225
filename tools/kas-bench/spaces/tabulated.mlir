// Replacements of one small layer at half of its FLOPs and a sixth of its parameters at most; `kas-bench search-table`
// evaluators all of them.
kas.space @tabulated<N, Cin, Cout, H, W | k, g>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 8, Cout = 8, H = 6, W = 6, k = 3, g = 2>]
    limits {depth = 7, reduce = 4, split = 2, merge = 1, shift = 0, unfold = 2, weights = 2, occurrences.k = 4,
            occurrences.g = 4}
    budget {flops_ratio = 5.0e-01, min_flops_ratio = 5.0e-02, baseline_flops = 41472, params = 100}
