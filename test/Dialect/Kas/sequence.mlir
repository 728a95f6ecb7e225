// RUN: kas-opt --verify-roundtrip %s | FileCheck %s
// RUN: kas-opt %s -mlir-print-op-generic | kas-opt | FileCheck %s

kas.operator @window<N, C, W | k>(%n: N, %c: C, %w: W) from [N, C, W] {
  %i = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %c_d, %c_w = kas.share %c : C
  %x = kas.unfold %w, %i_d : W, k
  kas.yield data(%n, %c_d, %x) weight(%c_w, %i_w)
}
kas.operator @mixing<N, C, W>(%n: N, %o: C, %w: W) from [N, C, W] {
  %c = kas.reduce sum : C
  %c_d, %c_w = kas.share %c : C
  kas.yield data(%n, %c_d, %w) weight(%o, %c_w)
}
kas.operator @half<N, C, W>(%n: N, %o: C/2, %w: W) from [N, C, W] {
  %c = kas.reduce sum : C
  %c_d, %c_w = kas.share %c : C
  kas.yield data(%n, %c_d, %w) weight(%o, %c_w)
}
kas.operator @narrow<N, C, W>(%n: N, %o: C/2, %w: W) from [N, 3*C/2, W] {
  %c = kas.reduce sum : 3*C/2
  %c_d, %c_w = kas.share %c : 3*C/2
  kas.yield data(%n, %c_d, %w) weight(%o, %c_w)
}

// CHECK: kas.sequence @separable [@window, @mixing] between [normalize_relu]
kas.sequence @separable [@window, @mixing] between [normalize_relu]
// CHECK: kas.sequence private @three [@mixing, @window, @mixing] between [none, relu]
kas.sequence private @three [@mixing, @window, @mixing] between [none, relu]
// CHECK: kas.sequence @parallel [@window add @mixing, @mixing multiply @window add @mixing] between [normalize_relu]
kas.sequence @parallel [@window add @mixing, @mixing multiply @window add @mixing] between [normalize_relu]
// CHECK: kas.sequence @gate [@window multiply @mixing] between []
kas.sequence @gate [@window multiply @mixing] between []
// CHECK: kas.sequence @joined [@half join @window, @narrow join @narrow] between [relu]
kas.sequence @joined [@half join @window, @narrow join @narrow] between [relu]
// CHECK: kas.sequence @single [@window] between []
kas.sequence @single [@window] between [] attributes {kas.origin = "space"}

kas.space @layers<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<C = 8, D = 4, N = 1, W = 12, k = 3> x 2]
kas.space @windows<N, C, M, W | k>
    [N, M unordered, W] from [N, C unordered, W]
    bindings [<C = 8, M = 8, N = 1, W = 12, k = 3> x 2]
kas.space @mixings<N, C, D, M, W>
    [N, D unordered, W] from [N, M unordered, W]
    bindings [<C = 8, D = 4, M = 8, N = 1, W = 12> x 2]

// CHECK: kas.sequence_space @sequences of @layers [@windows, @mixings] between [normalize_relu, none] widths {M = [C, 2*C]}
kas.sequence_space @sequences of @layers [@windows, @mixings]
    between [normalize_relu, none] widths {M = [C, 2*C]}
// CHECK: kas.sequence_space @plain of @layers [@layers] between []
kas.sequence_space @plain of @layers [@layers] between []

kas.space @rows<N, C, W | k>
    [N, C unordered, W] from [N, C unordered, W]
    bindings [<C = 8, N = 1, W = 12, k = 3>]
// CHECK: kas.sequence_space @branches of @rows [@rows, @rows] between [add, multiply, relu]
kas.sequence_space @branches of @rows [@rows, @rows] between [add, multiply, relu]
