// RUN: kas-opt %s | kas-opt | FileCheck %s
// RUN: kas-opt %s -mlir-print-op-generic | kas-opt | FileCheck %s

// Every op of the tensor level, in the text form; types of results are inferred.

// CHECK-LABEL: kas.kernel canvas @product<C, H, W | G, k | x> where [G divides C]
// CHECK-NEXT:      (%[[IN:.*]]: [C | H, W]) -> [C | H, W]
// CHECK-NEXT:      bindings [<C = 16, G = 4, H = 8, W = 8, k = 3>, <C = 64, G = 4, H = 8, W = 8, k = 5> x 2]
// CHECK-NEXT:      budget {flops = 8000000 : i64} {
// CHECK-NEXT:    %[[A:.*]] = kas.dag.fc %[[IN]] to G*k : [C | H, W]
// CHECK-NEXT:    %[[B:.*]] = kas.dag.fc %[[IN]] to x : [C | H, W]
// CHECK-NEXT:    %[[M:.*]] = kas.dag.broadcast mul %[[A]], %[[B]] common [0, 2] : [G*k | H, W], [x | H, W]
// CHECK-NEXT:    %[[Y:.*]] = kas.dag.fc %[[M]] to C : [x | H, W]
// CHECK-NEXT:    kas.dag.output %[[Y]] : [C | H, W]
kas.kernel canvas @product<C, H, W | G, k | x> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 16, G = 4, H = 8, W = 8, k = 3>, <C = 64, G = 4, H = 8, W = 8, k = 5> x 2]
    budget {flops = 8000000} {
  %a = kas.dag.fc %in to G*k : [C | H, W]
  %b = kas.dag.fc %in to x : [C | H, W]
  %m = kas.dag.broadcast mul %a, %b common [0, 2] : [G*k | H, W], [x | H, W]
  %c = kas.dag.fc %m to C : [x | H, W]
  kas.dag.output %c : [C | H, W]
}

// CHECK-LABEL: kas.kernel private @rearrange<C, H, W | G, KH, KW> where [G divides C]
// CHECK:         kas.dag.group %{{.*}} dim 0 by G : [C | H, W]
// CHECK-NEXT:    kas.dag.shuffle %{{.*}} dim 1 by 1 : [G, C/G | H, W]
// CHECK-NEXT:    kas.dag.shift %{{.*}} dim 2 by -1 : [G, C/G | H, W]
// CHECK-NEXT:    kas.dag.reorder %{{.*}} dim 3 : [G, C/G | H, W]
// CHECK-NEXT:    kas.dag.reorder %{{.*}} dim 3 inverse : [G, C/G | H, W]
// CHECK-NEXT:    kas.dag.transpose %{{.*}} dims [2, 3] : [G, C/G | H, W]
// CHECK-NEXT:    kas.dag.unfold %{{.*}} dims [3, 2] by [KH, KW] dilation 2 : [G, C/G | W, H]
// CHECK-NEXT:    kas.dag.fc %{{.*}} groups 1 to C : [G, C/G, KH, KW | W, H]
// CHECK-NEXT:    kas.dag.group_all %{{.*}} : [C | W, H]
// CHECK-NEXT:    kas.dag.unfold %{{.*}} dims [2] by [KW] : [C, 1 | W, H]
// CHECK-NEXT:    kas.dag.fold mean %{{.*}} dims [2] : [C, 1, KW | W, H]
// CHECK-NEXT:    kas.dag.output %{{.*}} : [C, 1 | W, H]
kas.kernel private @rearrange<C, H, W | G, KH, KW> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W] {
  %g = kas.dag.group %in dim 0 by G : [C | H, W]
  %f = kas.dag.shuffle %g dim 1 by 1 : [G, C/G | H, W]
  %s = kas.dag.shift %f dim 2 by -1 : [G, C/G | H, W]
  %r = kas.dag.reorder %s dim 3 : [G, C/G | H, W]
  %i = kas.dag.reorder %r dim 3 inverse : [G, C/G | H, W]
  %t = kas.dag.transpose %i dims [2, 3] : [G, C/G | H, W]
  %u = kas.dag.unfold %t dims [3, 2] by [KH, KW] dilation 2 : [G, C/G | W, H]
  %c = kas.dag.fc %u groups 1 to C : [G, C/G, KH, KW | W, H]
  %a = kas.dag.group_all %c : [C | W, H]
  %v = kas.dag.unfold %a dims [2] by [KW] : [C, 1 | W, H]
  %m = kas.dag.fold mean %v dims [2] : [C, 1, KW | W, H]
  kas.dag.output %m : [C, 1 | W, H]
}

// CHECK-LABEL: kas.kernel @squeeze_excite<C, H, W | | x>
// CHECK-NEXT:      (%[[IN:.*]]: [C | H, W]) -> [C | H, W] {
// CHECK-NEXT:    kas.dag.fold mean %[[IN]] dims [1, 2] : [C | H, W]
// CHECK-NEXT:    kas.dag.fc %{{.*}} to x : [C]
// CHECK-NEXT:    kas.dag.unary relu %{{.*}} : [x]
// CHECK-NEXT:    kas.dag.fc %{{.*}} to C : [x]
// CHECK-NEXT:    kas.dag.unary sigmoid %{{.*}} : [C]
// CHECK-NEXT:    kas.dag.broadcast mul %{{.*}}, %[[IN]] common [1, 0] : [C], [C | H, W]
kas.kernel @squeeze_excite<C, H, W | | x> (%in: [C | H, W]) -> [C | H, W] {
  %p = kas.dag.fold mean %in dims [1, 2] : [C | H, W]
  %a = kas.dag.fc %p to x : [C]
  %r = kas.dag.unary relu %a : [x]
  %b = kas.dag.fc %r to C : [x]
  %s = kas.dag.unary sigmoid %b : [C]
  %m = kas.dag.broadcast mul %s, %in common [1, 0] : [C], [C | H, W]
  kas.dag.output %m : [C | H, W]
}

// CHECK-LABEL: kas.kernel @attention
// CHECK-NEXT:      (%{{.*}}: [8 | 4, 4], %[[MASK:.*]]: [| 4, 4]) -> [8 | 4, 4] {
// CHECK-NEXT:    kas.dag.softmax %{{.*}} dims [1, 2] : [8 | 4, 4]
// CHECK-NEXT:    kas.dag.scale %{{.*}} dims [0] : [8 | 4, 4]
// CHECK-NEXT:    kas.dag.broadcast add %[[MASK]], %{{.*}} common [0, 2] : [| 4, 4], [8 | 4, 4]
kas.kernel @attention(%in: [8 | 4, 4], %mask: [| 4, 4]) -> [8 | 4, 4] {
  %s = kas.dag.softmax %in dims [1, 2] : [8 | 4, 4]
  %w = kas.dag.scale %s dims [0] : [8 | 4, 4]
  %a = kas.dag.broadcast add %mask, %w common [0, 2] : [| 4, 4], [8 | 4, 4]
  kas.dag.output %a : [8 | 4, 4]
}

// CHECK-LABEL: kas.kernel @self_attention<C, H, W | h> where [h divides C]
// CHECK:         kas.dag.matmul %{{.*}}, %{{.*}} batch 1 transpose_left scaled : [h, C/h | H, W], [h, C/h | H, W]
// CHECK-NEXT:    kas.dag.softmax %{{.*}} dims [1, 2] : [h, H, W | H, W]
// CHECK-NEXT:    kas.dag.matmul %{{.*}}, %{{.*}} batch 1 : [h, C/h | H, W], [h, H, W | H, W]
// CHECK-NEXT:    kas.dag.output %{{.*}} : [h, C/h | H, W]
// CHECK:       kas.kernel @channel_attention
// CHECK:         kas.dag.matmul %{{.*}}, %{{.*}} transpose_right : [C | H, W], [C | H, W]
// CHECK-NEXT:    kas.dag.matmul %{{.*}}, %{{.*}} : [C | C], [C | H, W]
kas.kernel @self_attention<C, H, W | h> where [h divides C] (%in: [C | H, W]) -> [C | H, W] {
  %a = kas.dag.fc %in to C : [C | H, W]
  %q = kas.dag.group %a dim 0 by h : [C | H, W]
  %b = kas.dag.fc %in to C : [C | H, W]
  %k = kas.dag.group %b dim 0 by h : [C | H, W]
  %c = kas.dag.fc %in to C : [C | H, W]
  %v = kas.dag.group %c dim 0 by h : [C | H, W]
  %s = kas.dag.matmul %k, %q batch 1 transpose_left scaled : [h, C/h | H, W], [h, C/h | H, W]
  %p = kas.dag.softmax %s dims [1, 2] : [h, H, W | H, W]
  %o = kas.dag.matmul %v, %p batch 1 : [h, C/h | H, W], [h, H, W | H, W]
  kas.dag.output %o : [h, C/h | H, W]
}

kas.kernel @channel_attention<C, H, W> (%in: [C | H, W]) -> [C | H, W] {
  %s = kas.dag.matmul %in, %in transpose_right : [C | H, W], [C | H, W]
  %o = kas.dag.matmul %s, %in : [C | C], [C | H, W]
  kas.dag.output %o : [C | H, W]
}

// CHECK-LABEL: kas.kernel @learned<C, H, W | G, KH, KW> where [G divides C]
// CHECK:         kas.dag.conv %{{.*}} dims [1, 2] by [KH, KW] to C : [C | H, W]
// CHECK-NEXT:    kas.dag.group %{{.*}} dim 0 by G : [C | H, W]
// CHECK-NEXT:    kas.dag.conv %{{.*}} groups 1 dims [2] by [KH] dilation 2 to C : [G, C/G | H, W]
// CHECK-NEXT:    kas.dag.mix %{{.*}} dims [1, 2] to [W, H] : [C | H, W]
// CHECK-NEXT:    kas.dag.norm %{{.*}} : [C | W, H]
// CHECK-NEXT:    kas.dag.dropout %{{.*}} rate 4.000000e-01 : [C | W, H]
// CHECK-NEXT:    kas.dag.transpose %{{.*}} dims [1, 2] : [C | W, H]
kas.kernel @learned<C, H, W | G, KH, KW> where [G divides C] (%in: [C | H, W]) -> [C | H, W] {
  %a = kas.dag.conv %in dims [1, 2] by [KH, KW] to C : [C | H, W]
  %g = kas.dag.group %a dim 0 by G : [C | H, W]
  %b = kas.dag.conv %g groups 1 dims [2] by [KH] dilation 2 to C : [G, C/G | H, W]
  %m = kas.dag.mix %b dims [1, 2] to [W, H] : [C | H, W]
  %n = kas.dag.norm %m : [C | W, H]
  %d = kas.dag.dropout %n rate 4.0e-01 : [C | W, H]
  %t = kas.dag.transpose %d dims [1, 2] : [C | W, H]
  kas.dag.output %t : [C | H, W]
}

// One kernel for layers that widen, narrow and stride.
// CHECK-LABEL: kas.kernel @amplified<X, Y, H, W | A, C, s> where [C divides X, C divides Y]
// CHECK:         kas.dag.pool mean %{{.*}} dims [1, 2] by [s, s] : [X | H*s, W*s]
// CHECK-NEXT:    kas.dag.amplify %{{.*}} by A of C : [X | H, W]
// CHECK-NEXT:    kas.dag.fc %{{.*}} groups 1 to A*C : [A, C | H, W]
// CHECK-NEXT:    kas.dag.output %{{.*}} average A of C : [A*C | H, W]
kas.kernel @amplified<X, Y, H, W | A, C, s> where [C divides X, C divides Y] (%in: [X | H*s, W*s]) -> [Y | H, W]
    bindings [<A = 1, C = 64, H = 56, W = 56, X = 64, Y = 64, s = 1>,
              <A = 2, C = 64, H = 28, W = 28, X = 64, Y = 128, s = 2>,
              <A = 4, C = 64, H = 28, W = 28, X = 256, Y = 64, s = 1>,
              <A = 5, C = 64, H = 28, W = 28, X = 320, Y = 128, s = 1>] {
  %p = kas.dag.pool mean %in dims [1, 2] by [s, s] : [X | H*s, W*s]
  %x = kas.dag.amplify %p by A of C : [X | H, W]
  %y = kas.dag.fc %x groups 1 to A*C : [A, C | H, W]
  kas.dag.output %y average A of C : [A*C | H, W]
}

// CHECK-LABEL: kas.kernel @step<C, W | k>
// CHECK:         kas.dag.apply @conv1d<N = 1, Cin = C, Cout = 2*C, W = W, k = k> %{{.*}} : [C | W] -> [2*C | W]
// CHECK-NEXT:    kas.dag.output %{{.*}} : [2*C | W]
kas.kernel @step<C, W | k> (%in: [C | W]) -> [2*C | W] {
  %y = kas.dag.apply @conv1d<N = 1, Cin = C, Cout = 2*C, W = W, k = k> %in : [C | W] -> [2*C | W]
  kas.dag.output %y : [2*C | W]
}

kas.operator @conv1d<N, Cin, Cout, W | k>
    (%n: N, %co: Cout, %w: W) from [N, Cin, W] {
  %ci = kas.reduce sum : Cin
  %kw = kas.reduce sum : k
  %ci_d, %ci_w = kas.share %ci : Cin
  %kw_d, %kw_w = kas.share %kw : k
  %iw = kas.unfold %w, %kw_d : W, k
  kas.yield data(%n, %ci_d, %iw) weight(%co, %ci_w, %kw_w)
}

// CHECK-LABEL: func.func private @types(!kas.tensor<[]>, !kas.tensor<[C]>, !kas.tensor<[| H]>, !kas.tensor<[C/2, 3 | H, W]>)
func.func private @types(!kas.tensor<[]>, !kas.tensor<[C]>, !kas.tensor<[| H]>, !kas.tensor<[C/2, 3 | H, W]>)

// CHECK-LABEL: kas.kernel @recurrence
// CHECK-NEXT:      (%[[IN:.*]]: [C | L]) -> [C | L] {
// CHECK-NEXT:    %[[S:.*]] = kas.dag.cumsum %[[IN]] dim 1 : [C | L]
// CHECK-NEXT:    kas.dag.scan %[[S]], %[[IN]] dim 1 : [C | L], [C | L]
kas.kernel @recurrence<C, L> (%in: [C | L]) -> [C | L] {
  %s = kas.dag.cumsum %in dim 1 : [C | L]
  %h = kas.dag.scan %s, %in dim 1 : [C | L], [C | L]
  kas.dag.output %h : [C | L]
}

// CHECK-LABEL: kas.kernel @looks_back
// CHECK:         kas.dag.shift %{{.*}} dim 1 by -1 causal : [C | L]
// CHECK-NEXT:    kas.dag.conv %{{.*}} groups 1 dims [1] by [k] dilation 2 causal to C : [C | L]
// CHECK-NEXT:    kas.dag.unfold %{{.*}} dims [1] by [k] causal : [C | L]
kas.kernel @looks_back<C, L | k> (%in: [C | L]) -> [C, k | L] {
  %s = kas.dag.shift %in dim 1 by -1 causal : [C | L]
  %c = kas.dag.conv %s groups 1 dims [1] by [k] dilation 2 causal to C : [C | L]
  %u = kas.dag.unfold %c dims [1] by [k] causal : [C | L]
  kas.dag.output %u : [C, k | L]
}
