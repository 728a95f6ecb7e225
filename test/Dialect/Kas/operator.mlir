// RUN: kas-opt %s --verify-roundtrip | FileCheck %s
// RUN: kas-opt %s -mlir-print-op-generic | kas-opt | FileCheck %s
// RUN: kas-opt %s -emit-bytecode | kas-opt | FileCheck %s

// CHECK-LABEL: kas.operator @conv2d<N, Cin, Cout, H, W | k>
// CHECK-SAME:  (%[[N:.*]]: N, %[[CO:.*]]: Cout unordered, %[[H:.*]]: H, %[[W:.*]]: W) from [N, Cin unordered, H, W] {
kas.operator @conv2d<N, Cin, Cout, H, W | k>
    (%n: N, %co: Cout unordered, %h: H, %w: W) from [N, Cin unordered, H, W] {
  // CHECK: %[[CI:.*]] = kas.reduce sum : Cin
  %ci = kas.reduce sum : Cin
  // CHECK: %[[KH:.*]] = kas.reduce sum : k
  %kh = kas.reduce sum : k
  // CHECK: %[[KW:.*]] = kas.reduce sum : k
  %kw = kas.reduce sum : k
  // CHECK: %[[CID:.*]], %[[CIW:.*]] = kas.share %[[CI]] : Cin
  %ci_d, %ci_w = kas.share %ci : Cin
  // CHECK: %[[KHD:.*]], %[[KHW:.*]] = kas.share %[[KH]] : k
  %kh_d, %kh_w = kas.share %kh : k
  // CHECK: %[[KWD:.*]], %[[KWW:.*]] = kas.share %[[KW]] : k
  %kw_d, %kw_w = kas.share %kw : k
  // CHECK: %[[IH:.*]] = kas.unfold %[[H]], %[[KHD]] : H, k
  %ih = kas.unfold %h, %kh_d : H, k
  // CHECK: %[[IW:.*]] = kas.unfold %[[W]], %[[KWD]] : W, k
  %iw = kas.unfold %w, %kw_d : W, k
  // CHECK: kas.yield data(%[[N]], %[[CID]], %[[IH]], %[[IW]]) weight(%[[CO]], %[[CIW]], %[[KHW]], %[[KWW]])
  kas.yield data(%n, %ci_d, %ih, %iw) weight(%co, %ci_w, %kh_w, %kw_w)
}

// CHECK-LABEL: func.func @apply
func.func @apply(%x: tensor<1x64x56x56xf32>, %w: tensor<64x64x3x3xf32>)
    -> tensor<1x64x56x56xf32> {
  // CHECK: kas.apply @conv2d<k = 3>(%{{.*}}, %{{.*}}) : (tensor<1x64x56x56xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x56x56xf32>
  %y = kas.apply @conv2d<k = 3>(%x, %w)
      : (tensor<1x64x56x56xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x56x56xf32>
  return %y : tensor<1x64x56x56xf32>
}

// Every other primitive, in each of its forms.
// CHECK-LABEL: kas.operator @primitives<N, C, H | g, s, k>
kas.operator @primitives<N, C, H | g, s, k>(%n: N, %c: C unordered, %h: H, %e: C)
    from [N, C, H*s, H] attributes {note = "text"} {
  // CHECK: %[[Q:.*]], %[[M:.*]] = kas.merge %{{.*}} by C/g : C
  %q, %r = kas.merge %c by C/g : C
  // CHECK: %[[S:.*]] = kas.split %[[M]], %[[Q]] : C/g, g
  %t = kas.split %r, %q : C/g, g
  // CHECK: kas.shift %{{.*}} by -1 : C
  %u = kas.shift %t by -1 : C
  // CHECK: %[[X:.*]] = kas.stride %{{.*}} by s : H
  %x = kas.stride %h by s : H
  // CHECK: kas.expand %{{.*}} : C
  kas.expand %e : C
  // CHECK: kas.reduce mean : 3*k**2/2
  %m = kas.reduce mean : k*3*k/2
  // CHECK: kas.reduce max : H
  %z = kas.reduce max : H
  // CHECK: kas.reduce sum : k
  %k0 = kas.reduce sum : k
  // CHECK: kas.reduce sum : 1
  %k1 = kas.reduce sum : 1
  // CHECK: kas.unfold %{{.*}}, %{{.*}} low 0 : H*s, k
  %v = kas.unfold %x, %k0 low 0 : s*H, k
  // CHECK: kas.unfold %{{.*}}, %{{.*}} low 2*k : H, 3*k**2/2
  %y = kas.unfold %z, %m low 2*k : H, 3*k**2/2
  // CHECK: kas.yield data(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) weight(%{{.*}}){{$}}
  kas.yield data(%n, %u, %v, %y) weight(%k1)
}

// A rank 0 output, no symbols.
// CHECK-LABEL: kas.operator @total() from [3] {
kas.operator @total() from [3] {
  %r = kas.reduce sum : 3
  kas.yield data(%r)
}

// CHECK-LABEL: kas.space @layers<N, Cin, Cout, H, W | k>
// CHECK-NEXT: [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
// CHECK-NEXT: bindings [<Cin = 64, Cout = 64, H = 56, N = 1, W = 56, k = 3> x 4]
// CHECK-NEXT: limits {depth = 8 : i64, reduce = 3 : i64}
// CHECK-NEXT: budget {baseline_flops = 231211008 : i64, flops_ratio = 5.000000e-01 : f64}
kas.space @layers<N, Cin, Cout, H, W | k>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 64, Cout = 64, H = 56, W = 56, k = 3> x 4]
    limits {depth = 8, reduce = 3}
    budget {flops_ratio = 5.0e-01, baseline_flops = 231211008}

// A window that looks back only.
// CHECK-LABEL: kas.operator @causal
kas.operator @causal<T | k>(%t: T) from [T] {
  %i = kas.reduce sum : k
  // CHECK: kas.unfold %{{.*}}, %{{.*}} causal : T, k
  %u = kas.unfold %t, %i causal : T, k
  kas.yield data(%u)
}
