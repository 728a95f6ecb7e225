// Spaces on which predicted times are compared with measured ones, beside that of syno-resnet18.mlir: the convolutions of
// ResNet-18 at 224x224 and those of stride 2, as -kas-extract writes them, and the linear layers of a small vision transformer.
kas.space @conv2d<N, Cin, Cout, H, W | k, g>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<Cin = 64, Cout = 64, H = 56, N = 1, W = 56, g = 4, k = 3> x 4, <Cin = 128, Cout = 128, H = 28, N = 1, W = 28, g = 4, k = 3> x 3, <Cin = 256, Cout = 256, H = 14, N = 1, W = 14, g = 4, k = 3> x 3, <Cin = 512, Cout = 512, H = 7, N = 1, W = 7, g = 4, k = 3> x 3]
    limits {depth = 10, expand = 0, merge = 2, reduce = 4, shift = 1, split = 2, stride = 0, unfold = 2, weights = 2}
    budget {baseline_flops = 3005743104, baseline_params = 9437184, flops_ratio = 5.000000e-01, min_flops_ratio = 1.000000e-01}
kas.space @conv2d_strided<N, Cin, Cout, H, W | k, s, g>
    [N, Cout unordered, H/s, W/s] from [N, Cin unordered, H, W]
    bindings [<Cin = 64, Cout = 128, H = 56, N = 1, W = 56, g = 4, k = 3, s = 2>, <Cin = 128, Cout = 256, H = 28, N = 1, W = 28, g = 4, k = 3, s = 2>, <Cin = 256, Cout = 512, H = 14, N = 1, W = 14, g = 4, k = 3, s = 2>]
    limits {depth = 10, expand = 0, merge = 2, reduce = 4, shift = 1, split = 2, stride = 2, unfold = 2, weights = 2}
    budget {baseline_flops = 346816512, baseline_params = 1548288, flops_ratio = 5.000000e-01, min_flops_ratio = 1.000000e-01}
kas.space @batched_linear<N, L, Cin, Cout | g>
    [N, L, Cout unordered] from [N, L, Cin unordered]
    bindings [<N = 1, L = 196, Cin = 192, Cout = 192, g = 4> x 48, <N = 1, L = 196, Cin = 192, Cout = 768, g = 4> x 12, <N = 1, L = 196, Cin = 768, Cout = 192, g = 4> x 12]
    limits {depth = 8, expand = 0, merge = 2, reduce = 2, shift = 1, split = 2, stride = 0, unfold = 0, weights = 2}
    budget {baseline_flops = 2080899072, baseline_params = 5308416, flops_ratio = 5.0e-01, min_flops_ratio = 1.0e-01}
// Small images and powers of two, as in networks for CIFAR-10 (ResNet-18's basic blocks) and in the batches of trainings.
kas.space @cifar<N, Cin, Cout, H, W | k, g>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<Cin = 64, Cout = 64, H = 32, N = 1, W = 32, g = 4, k = 3> x 4, <Cin = 128, Cout = 128, H = 16, N = 1, W = 16, g = 4, k = 3> x 3, <Cin = 256, Cout = 256, H = 8, N = 1, W = 8, g = 4, k = 3> x 3, <Cin = 512, Cout = 512, H = 4, N = 1, W = 4, g = 4, k = 3> x 3]
    limits {depth = 10, expand = 0, merge = 2, reduce = 4, shift = 1, split = 2, stride = 0, unfold = 2, weights = 2}
    budget {baseline_flops = 981467136, baseline_params = 9437184, flops_ratio = 5.000000e-01, min_flops_ratio = 1.000000e-01}
kas.space @batches<N, Cin, Cout, H, W | k, g>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<Cin = 32, Cout = 32, H = 16, N = 8, W = 16, g = 4, k = 3> x 2, <Cin = 64, Cout = 64, H = 8, N = 8, W = 8, g = 4, k = 3>, <Cin = 128, Cout = 128, H = 4, N = 8, W = 4, g = 4, k = 3>]
    limits {depth = 10, expand = 0, merge = 2, reduce = 4, shift = 1, split = 2, stride = 0, unfold = 2, weights = 2}
    budget {baseline_flops = 150994944, baseline_params = 202752, flops_ratio = 5.000000e-01, min_flops_ratio = 1.000000e-01}
