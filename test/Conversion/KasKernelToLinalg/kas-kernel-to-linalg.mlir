// RUN: kas-opt %s -kas-kernel-to-linalg=batch=2 -split-input-file | FileCheck %s

// One function per binding; weights and inputs in program order.

// CHECK-DAG: #[[POINT:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>
// CHECK-DAG: #[[WEIGHT:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d4)>
// CHECK-DAG: #[[SUM:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
// CHECK-LABEL: func.func @grouped_0(
// CHECK-SAME:      %[[IN:.*]]: tensor<2x8x3x5xf32> {kas.init = "normal(1)", kas.name = "input0"},
// CHECK-SAME:      %[[W:.*]]: tensor<6x4xf32> {kas.init = "normal(0.5)", kas.name = "weight0"}) -> tensor<2x6x3x5xf32>
// CHECK-DAG:     %[[X:.*]] = tensor.{{(collapse|expand)}}_shape {{.*}} into tensor<2x2x4x15xf32>
// CHECK-DAG:     %[[V:.*]] = tensor.expand_shape %[[W]] {{.*}} into tensor<2x3x4xf32>
// CHECK:         %[[Y:.*]] = linalg.generic {indexing_maps = [#[[POINT]], #[[WEIGHT]], #[[SUM]]]
// CHECK-SAME:        ins(%[[X]], %[[V]] : tensor<2x2x4x15xf32>, tensor<2x3x4xf32>)
// CHECK:         %[[FLAT:.*]] = tensor.collapse_shape %[[Y]] {{.*}} into tensor<2x6x15xf32>
// CHECK-NEXT:    %[[Z:.*]] = tensor.expand_shape %[[FLAT]] {{.*}} into tensor<2x6x3x5xf32>
// CHECK-NEXT:    return %[[Z]]
// CHECK-LABEL: func.func @grouped_1(
// CHECK-SAME:      tensor<2x4x1x1xf32>
// CHECK-NOT:   kas.kernel
kas.kernel @grouped<C, D, H, W | G> where [G divides C, G divides D] (%in: [C | H, W]) -> [D | H, W]
    bindings [<C = 8, D = 6, G = 2, H = 3, W = 5>, <C = 4, D = 4, G = 4, H = 1, W = 1>] {
  %g = kas.dag.group %in dim 0 by G : [C | H, W]
  %y = kas.dag.fc %g groups 1 to D : [G, C/G | H, W]
  kas.dag.output %y : [D | H, W]
}

// -----

// A convolution pads once and adds the window to the position.

// CHECK-DAG: #[[POINT:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2 + d5 * 2, d3 + d6 * 2)>
// CHECK-LABEL: func.func private @conv(
// CHECK:         tensor.pad %{{.*}} low[0, 0, 2, 4] high[0, 0, 2, 4]
// CHECK:         linalg.generic {indexing_maps = [#[[POINT]],
// CHECK-SAME:        tensor<2x4x12x16xf32>, tensor<4x4x3x5xf32>
kas.kernel private @conv(%in: [4 | 8, 8]) -> [4 | 8, 8] {
  %y = kas.dag.conv %in dims [1, 2] by [3, 5] dilation 2 to 4 : [4 | 8, 8]
  kas.dag.output %y : [4 | 8, 8]
}

// -----

// A scan over 5 positions: three steps, of which the last needs no more
// products of factors.

// CHECK-LABEL: func.func private @scan(
// CHECK-SAME:      %[[A:.*]]: tensor<2x3x5xf32> {{.*}}, %[[X:.*]]: tensor<2x3x5xf32>
// CHECK:         %[[OWN:.*]] = tensor.extract_slice %[[X]][0, 0, 1] [2, 3, 4]
// CHECK:         %[[BEFORE:.*]] = tensor.extract_slice %[[X]][0, 0, 0] [2, 3, 4]
// CHECK:         %[[FACTORS:.*]] = tensor.extract_slice %[[A]][0, 0, 1] [2, 3, 4]
// CHECK:         %[[NEXT:.*]] = linalg.generic {{.*}} ins(%[[OWN]], %[[BEFORE]], %[[FACTORS]] :
// CHECK:         %[[STATE:.*]] = tensor.insert_slice %[[NEXT]] into %[[X]][0, 0, 1] [2, 3, 4]
// CHECK:         %[[PRODUCTS:.*]] = linalg.generic {{.*}} ins(%[[FACTORS]],
// CHECK:         tensor.insert_slice %[[PRODUCTS]] into %[[A]][0, 0, 1] [2, 3, 4]
// CHECK:         tensor.extract_slice %[[STATE]][0, 0, 2] [2, 3, 3]
// CHECK-COUNT-2: tensor.insert_slice %{{.*}} into %{{.*}}[0, 0, 2] [2, 3, 3]
// CHECK:         %[[LAST:.*]] = tensor.insert_slice %{{.*}} into %{{.*}}[0, 0, 4] [2, 3, 1]
// CHECK-NEXT:    return %[[LAST]]
kas.kernel private @scan(%a: [3 | 5], %x: [3 | 5]) -> [3 | 5] {
  %h = kas.dag.scan %a, %x dim 1 : [3 | 5], [3 | 5]
  kas.dag.output %h : [3 | 5]
}

// -----

// The left operand of a broadcast is neither copied nor reshaped where its
// block is one dimension of the right one.

// CHECK-DAG: #[[LEFT:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
// CHECK-LABEL: func.func @gate(
// CHECK-SAME:      %[[IN:.*]]: tensor<2x4x8x8xf32>
// CHECK:         %[[SUM:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%[[IN]] :
// CHECK:         %[[MEAN:.*]] = linalg.generic {{.*}} ins(%[[SUM]] :
// CHECK:         linalg.generic {indexing_maps = [#[[LEFT]],
// CHECK-SAME:        ins(%[[MEAN]], %[[IN]] : tensor<2x4xf32>, tensor<2x4x8x8xf32>)
kas.kernel @gate(%in: [4 | 8, 8]) -> [4 | 8, 8] {
  %m = kas.dag.fold mean %in dims [1, 2] : [4 | 8, 8]
  %y = kas.dag.broadcast mul %m, %in common [1, 0] : [4], [4 | 8, 8]
  kas.dag.output %y : [4 | 8, 8]
}

// -----

// A step of the coordinate level is a kas.apply; its batch is the kernel's.

// CHECK-LABEL: func.func @step(
// CHECK:         kas.apply @conv1d<Cin = 4, Cout = 8, N = 2, W = 6, k = 3>(%{{.*}}, %{{.*}}) : (tensor<2x4x6xf32>, tensor<8x4x3xf32>) -> tensor<2x8x6xf32>
kas.kernel @step(%in: [4 | 6]) -> [8 | 6] {
  %y = kas.dag.apply @conv1d<N = 1, Cin = 4, Cout = 8, W = 6, k = 3> %in : [4 | 6] -> [8 | 6]
  kas.dag.output %y : [8 | 6]
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
