kas.space @layer<N, C, H, W | k> [N, C unordered, H, W] from [N, C unordered, H, W]
    bindings [<C = 8, H = 6, N = 4, W = 6, k = 3> x 1] limits {depth = 4}
