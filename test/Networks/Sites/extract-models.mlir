// All layers of the three models: 3 convolutions and a linear layer, 20 and one, 20 and one. No near misses, and
// nothing more in a second run.
// RUN: kas-opt %S/Inputs/tiny.mlir -kas-extract -verify-each | FileCheck %s --check-prefix=TINY
// RUN: kas-opt %S/Inputs/resnet18_cifar.mlir -kas-extract | FileCheck %s --check-prefixes=CIFAR,COUNT
// RUN: kas-opt %S/Inputs/resnet18_224.mlir -kas-extract 2>&1 | FileCheck %s --check-prefixes=LARGE,COUNT --implicit-check-not=remark
// RUN: kas-opt %S/Inputs/resnet18_224.mlir -kas-extract | kas-opt -kas-extract | FileCheck %s --check-prefixes=LARGE,COUNT

// TINY:      kas.space @conv2d_stem<N, Cin, Cout, H, W | k, g>
// TINY-NEXT: [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
// TINY-NEXT: bindings [<Cin = 3, Cout = 8, H = 16, N = 1, W = 16, g = 4, k = 3>]
// TINY-NEXT: limits {depth = 10 : i64, expand = 0 : i64, merge = 2 : i64, reaches = 2 : i64, reduce = 4 : i64, sees = ["k", "k"], shift = 1 : i64, split = 2 : i64, stride = 0 : i64, unfold = 2 : i64, weights = 2 : i64}
// TINY-NEXT: budget {baseline_flops = 110592 : i64, baseline_params = 216 : i64, flops_ratio = 5.000000e-01 : f64, min_flops_ratio = 1.000000e-01 : f64} attributes {kas.named_operator = "kas.conv2d"}
// TINY:      kas.space @conv2d<
// TINY:      bindings [<Cin = 8, Cout = 8, H = 16, N = 1, W = 16, g = 4, k = 3>]
// TINY:      baseline_flops = 294912 : i64, baseline_params = 576 : i64
// TINY:      kas.space @conv2d_strided<N, Cin, Cout, H, W | k, s, g>
// TINY-NEXT: [N, Cout unordered, H/s, W/s] from [N, Cin unordered, H, W]
// TINY-NEXT: bindings [<Cin = 8, Cout = 16, H = 16, N = 1, W = 16, g = 4, k = 3, s = 2>]
// TINY:      stride = 2
// TINY:      kas.space @linear<N, Cin, Cout | g>
// TINY-NEXT: [N, Cout unordered] from [N, Cin unordered]
// TINY-NEXT: bindings [<Cin = 16, Cout = 10, N = 1, g = 4>]
// TINY:      baseline_flops = 320 : i64, baseline_params = 160 : i64
// TINY-NOT:  kas.space
// TINY: linalg.conv_2d_nchw_fchw {{.*}}kas.site = {binding = 0 : i64, name = "conv1", space = @conv2d_stem}
// TINY: linalg.conv_2d_nchw_fchw {{.*}}kas.site = {binding = 0 : i64, name = "conv2", space = @conv2d}
// TINY: linalg.conv_2d_nchw_fchw {{.*}}kas.site = {binding = 0 : i64, name = "conv3", space = @conv2d_strided}
// TINY: linalg.matmul {kas.site = {binding = 0 : i64, name = "fc", space = @linear}}

// CIFAR: kas.space @conv2d_stem<
// CIFAR: bindings [<Cin = 3, Cout = 64, H = 32, N = 1, W = 32, g = 4, k = 3>]
// CIFAR: kas.space @conv2d<
// CIFAR: bindings [<Cin = 64, Cout = 64, H = 32, N = 1, W = 32, g = 4, k = 3> x 4, <Cin = 128, Cout = 128, H = 16, N = 1, W = 16, g = 4, k = 3> x 3, <Cin = 256, Cout = 256, H = 8, N = 1, W = 8, g = 4, k = 3> x 3, <Cin = 512, Cout = 512, H = 4, N = 1, W = 4, g = 4, k = 3> x 3]
// CIFAR: kas.space @conv2d_strided<
// CIFAR: bindings [<Cin = 64, Cout = 128, H = 32, N = 1, W = 32, g = 4, k = 3, s = 2>, <Cin = 128, Cout = 256, H = 16, N = 1, W = 16, g = 4, k = 3, s = 2>, <Cin = 256, Cout = 512, H = 8, N = 1, W = 8, g = 4, k = 3, s = 2>]
// CIFAR: kas.space @conv1x1_strided<N, Cin, Cout, H, W | s, g>
// CIFAR: bindings [<Cin = 64, Cout = 128, H = 32, N = 1, W = 32, g = 4, s = 2>, <Cin = 128, Cout = 256, H = 16, N = 1, W = 16, g = 4, s = 2>, <Cin = 256, Cout = 512, H = 8, N = 1, W = 8, g = 4, s = 2>]
// CIFAR: kas.space @linear<
// CIFAR: bindings [<Cin = 512, Cout = 10, N = 1, g = 4>]

// LARGE: kas.space @conv2d_strided_stem<
// LARGE: bindings [<Cin = 3, Cout = 64, H = 224, N = 1, W = 224, g = 4, k = 7, s = 2>]
// LARGE: baseline_flops = 236027904 : i64, baseline_params = 9408 : i64
// LARGE: kas.space @conv2d<
// LARGE: bindings [<Cin = 64, Cout = 64, H = 56, N = 1, W = 56, g = 4, k = 3> x 4, <Cin = 128, Cout = 128, H = 28, N = 1, W = 28, g = 4, k = 3> x 3, <Cin = 256, Cout = 256, H = 14, N = 1, W = 14, g = 4, k = 3> x 3, <Cin = 512, Cout = 512, H = 7, N = 1, W = 7, g = 4, k = 3> x 3]
// 13 layers of 231.2 MFLOP.
// LARGE: baseline_flops = 3005743104 : i64
// LARGE: kas.space @conv2d_strided<
// LARGE: kas.space @conv1x1_strided<
// LARGE: kas.space @linear<
// LARGE: bindings [<Cin = 512, Cout = 1000, N = 1, g = 4>]

// COUNT-NOT:         kas.space
// COUNT-COUNT-20:    linalg.conv_2d_nchw_fchw {{{.*}}kas.site
// COUNT-NOT:         linalg.conv
// COUNT:             linalg.matmul {kas.site = {binding = 0 : i64, name = "fc", space = @linear}}
