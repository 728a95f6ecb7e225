// RUN: kas-opt %s -kas-extract=kernel=true | FileCheck %s --check-prefix=EXTRACT
// RUN: kas-opt %s -kas-extract=kernel=true -kas-substitute=kernel=@convolutions | FileCheck %s

// One problem for all dense convolutions. From 8 channels to 8 there is one copy; to 16, with a stride of 2, two of 8 channels.

// EXTRACT:      kas.kernel canvas @convolutions<C, H, W | G, k> where [G divides C]
// EXTRACT-NEXT:     (%[[IN:.*]]: [C | H, W]) -> [C | H, W]
// EXTRACT-NEXT:     bindings [<C = 8, G = 4, H = 6, W = 4, k = 3>, <C = 8, G = 4, H = 3, W = 2, k = 3> x 2]
// EXTRACT-NEXT:     budget {flops = 20736 : i64, params = 1728 : i64} {
// EXTRACT-NEXT:   %[[U:.*]] = kas.dag.unfold %[[IN]] dims [1, 2] by [k, k]
// EXTRACT-NEXT:   %[[Y:.*]] = kas.dag.fc %[[U]] to C
// EXTRACT-NEXT:   kas.dag.output %[[Y]]
// EXTRACT:      linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, kas.site = {binding = 0 : i64, kernel = @convolutions, name = "a"}
// EXTRACT:      linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, kas.site = {binding = 1 : i64, kernel = @convolutions, name = "b"}
// EXTRACT-NOT:  kas.site

// The kernel itself in its sites: the old weights go, each copy has one of its own; the bias is added afterwards.
// CHECK-LABEL: func.func @layers(
// CHECK-SAME:      %[[X:.*]]: tensor<2x8x6x4xf32> {kas.name = "input"}, %[[BIAS:.*]]: tensor<16xf32> {kas.name = "b.bias"},
// CHECK-SAME:      %[[D:.*]]: tensor<8x3x3xf32> {kas.name = "c.weight"},
// CHECK-SAME:      tensor<8x8x3x3xf32> {kas.init = "normal({{.*}})", kas.name = "a.weight.0"},
// CHECK-SAME:      tensor<8x8x3x3xf32> {kas.init = "normal({{.*}})", kas.name = "b.weight.0"},
// CHECK-SAME:      tensor<8x8x3x3xf32> {kas.init = "normal({{.*}})", kas.name = "b.weight.1"})
// CHECK-NOT:     linalg.conv_2d
// CHECK:         linalg.depthwise_conv_2d_nchw_chw
// CHECK:         return
func.func @layers(%x: tensor<2x8x6x4xf32> {kas.name = "input"}, %a: tensor<8x8x3x3xf32> {kas.name = "a.weight"},
                  %b: tensor<16x8x3x3xf32> {kas.name = "b.weight"}, %bias: tensor<16xf32> {kas.name = "b.bias"},
                  %d: tensor<8x3x3xf32> {kas.name = "c.weight"})
    -> (tensor<2x16x3x2xf32>, tensor<2x8x6x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<2x8x6x4xf32> to tensor<2x8x8x6xf32>
  %e = tensor.empty() : tensor<2x8x6x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x8x6x4xf32>) -> tensor<2x8x6x4xf32>
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%p, %a : tensor<2x8x8x6xf32>, tensor<8x8x3x3xf32>) outs(%f : tensor<2x8x6x4xf32>) -> tensor<2x8x6x4xf32>
  %q = tensor.pad %y low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<2x8x6x4xf32> to tensor<2x8x8x6xf32>
  %g = tensor.empty() : tensor<2x16x3x2xf32>
  %h = linalg.broadcast ins(%bias : tensor<16xf32>) outs(%g : tensor<2x16x3x2xf32>) dimensions = [0, 2, 3]
  %z = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}
      ins(%q, %b : tensor<2x8x8x6xf32>, tensor<16x8x3x3xf32>) outs(%h : tensor<2x16x3x2xf32>) -> tensor<2x16x3x2xf32>
  // Groups have no such copies.
  %w = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%q, %d : tensor<2x8x8x6xf32>, tensor<8x3x3xf32>) outs(%f : tensor<2x8x6x4xf32>) -> tensor<2x8x6x4xf32>
  return %z, %w : tensor<2x16x3x2xf32>, tensor<2x8x6x4xf32>
}
