// RUN: kas-opt %s -kas-extract="stem-channels=8 coefficients=s=2,g=8,k=5 flops-ratio=0.25 min-flops-ratio=0.125" | FileCheck %s --check-prefix=OPTIONS
// RUN: kas-opt %s -kas-extract="stem-channels=7 coefficients=" | FileCheck %s --check-prefix=NONE
// RUN: kas-opt %s -kas-extract="properties=false" | FileCheck %s --check-prefix=FREE
// RUN: not kas-opt %s -kas-extract="coefficients=N=3" 2>&1 | FileCheck %s --check-prefix=PRIMARY
// RUN: not kas-opt %s -kas-extract="coefficients=g" 2>&1 | FileCheck %s --check-prefix=MALFORMED
// RUN: not kas-opt %s -kas-extract="coefficients=g=0" 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not kas-opt %s -kas-extract="flops-ratio=0" 2>&1 | FileCheck %s --check-prefix=RATIO
// RUN: not kas-opt %s -kas-extract="min-flops-ratio=0.6" 2>&1 | FileCheck %s --check-prefix=RATIOS
// RUN: not kas-opt %s -kas-extract="min-flops-ratio=nan" 2>&1 | FileCheck %s --check-prefix=NAN
// RUN: kas-opt %s -kas-extract="coefficients=a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1" 2>&1 | FileCheck %s --check-prefix=MANY

// A coefficient that the layers have keeps its value.
// OPTIONS: kas.space @conv2d_stem<N, Cin, Cout, H, W | k, g, s>
// OPTIONS: bindings [<Cin = 8, Cout = 4, H = 8, N = 1, W = 8, g = 8, k = 3, s = 2>]
// OPTIONS: flops_ratio = 2.500000e-01 : f64, min_flops_ratio = 1.250000e-01
// NONE: kas.space @conv2d<N, Cin, Cout, H, W | k>
// NONE: reaches = 2 : i64, reduce = 4 : i64, sees = ["k", "k"]
// FREE: kas.space
// FREE-NOT: {{reaches|sees|unfold_ratio}}
// PRIMARY: error: requires other names than the sizes of layers for coefficients, got 'N'
// MALFORMED: error: option 'coefficients': a binding must have the form NAME=VALUE
// ZERO: error: option 'coefficients': the value of symbol 'g' must be at least 1, got 0
// RATIO: error: options require 0 < 'min-flops-ratio' < 'flops-ratio', got {{.*}}1{{.*}} and 0
// RATIOS: error: options require 0 < 'min-flops-ratio' < 'flops-ratio', got {{.*}}6{{.*}} and {{.*}}5
// NAN: error: options require 0 < 'min-flops-ratio' < 'flops-ratio', got
// MANY: warning: the space of this layer has 12 symbols without coefficient 'g', which is left out
// MANY: warning: the space of this layer has 12 symbols without coefficient 'h', which is left out
// MANY: kas.space @conv2d<N, Cin, Cout, H, W | k, a, b, c, d, e, f>

func.func @forward(%x: tensor<1x8x8x8xf32>, %w: tensor<4x8x3x3xf32>, %init: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x8xf32> to tensor<1x8x10x10xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%pad, %w : tensor<1x8x10x10xf32>, tensor<4x8x3x3xf32>) outs(%init : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %y : tensor<1x4x8x8xf32>
}
