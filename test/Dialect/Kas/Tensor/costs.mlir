// RUN: kas-opt %s -kas-solve-budget | FileCheck %s

// What each op costs, counted by hand: floating-point operations of one sample,
// parameters.

// CHECK: solution {flops = 35328 : i64, {{.*}}params = 936 : i64
kas.kernel @costs<C> (%in: [C | 8, 8]) -> [C | 4, 4] bindings [<C = 8>] budget {flops = 35328} {
  // One per element of the input: 8 * 64 = 512.
  %p = kas.dag.pool mean %in dims [1, 2] by [2, 2] : [C | 8, 8]
  // Nothing.
  %a = kas.dag.amplify %p by 1 of C : [C | 4, 4]
  // 2 * 8 * 9 * 8 * 16 = 18432; 8 * 9 * 8 = 576.
  %c = kas.dag.conv %a groups 1 dims [2, 3] by [3, 3] to C : [1, C | 4, 4]
  // 2 * 128 = 256; 4 * 8 = 32.
  %n = kas.dag.norm %c : [C | 4, 4]
  // Nothing.
  %d = kas.dag.dropout %n rate 5.0e-01 : [C | 4, 4]
  // 2 * 16 * 128 = 4096; 16 * 16 = 256.
  %m = kas.dag.mix %d dims [1, 2] to [4, 4] : [C | 4, 4]
  // 128; 8.
  %s = kas.dag.scale %m dims [0] : [C | 4, 4]
  // 2 * 8 * 8 * 16 = 2048; 64.
  %y = kas.dag.apply @pointwise<N = 1, I = C, O = C, H = 4, W = 4> %s : [C | 4, 4] -> [C | 4, 4]
  // 2 * 16 * 16 * 8 = 4096.
  %t = kas.dag.matmul %y, %y transpose_left : [C | 4, 4], [C | 4, 4]
  // 3 * 256 = 768.
  %e = kas.dag.softmax %t dims [0, 1] : [4, 4 | 4, 4]
  // 2 * 8 * 16 * 16 = 4096.
  %u = kas.dag.matmul %y, %e : [C | 4, 4], [4, 4 | 4, 4]
  // 4 * 128 = 512.
  %g = kas.dag.unary gelu %u : [C | 4, 4]
  // 128.
  %z = kas.dag.cumsum %g dim 2 : [C | 4, 4]
  // 2 * 128 = 256.
  %h = kas.dag.scan %g, %z dim 1 : [C | 4, 4], [C | 4, 4]
  kas.dag.output %h : [C | 4, 4]
}

kas.operator @pointwise<N, I, O, H, W>
    (%n: N, %o: O, %h: H, %w: W) from [N, I, H, W] {
  %i = kas.reduce sum : I
  %d, %k = kas.share %i : I
  kas.yield data(%n, %d, %h, %w) weight(%o, %k)
}
