// RUN: kas-opt %s -kas-search="evaluations=2 seed=1 evaluators=flops,fisher,proxy=snip,proxy=ensemble objective=-fisher" | FileCheck %s
// RUN: not kas-opt %s -kas-search="evaluators=proxy=luck" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not kas-opt %S/Inputs/space.mlir -kas-search="evaluators=fisher" 2>&1 | FileCheck %s --check-prefix=NETWORK

// The operator in the place of the two layers of the block is scored by what the network is like around them.
// CHECK: kas.score = {fisher = {{[0-9.eE+-]+}} : f64, flops = {{[0-9]+}} : i64, proxy_ensemble = {{[0-9.eE+-]+}} : f64, proxy_snip = {{[0-9.eE+-]+}} : f64}

// NAME: error: requires an evaluator among {{.*}}fisher, {{.*}}proxy=ensemble, proxy=fisher, proxy=flops, {{.*}}got 'proxy=luck'
// NETWORK: error: cannot run the network for zero-cost proxies: requires a function with a body, got 'forward'
#image = affine_map<(n, c, h, w) -> (n, c, h, w)>
#means = affine_map<(n, c, h, w) -> (n, c)>
kas.space @block<N, C, H, W | k> [N, C unordered, H, W] from [N, C unordered, H, W]
    bindings [<C = 8, H = 6, N = 4, W = 6, k = 3> x 2] limits {depth = 4, reduce = 1, split = 0, merge = 0, shift = 0, expand = 0, stride = 0}
func.func @forward(%x: tensor<4x3x6x6xf32> {kas.name = "input"}, %w0: tensor<8x3x3x3xf32> {kas.name = "stem.weight"},
    %w1: tensor<8x8x3x3xf32> {kas.name = "conv1.weight"}, %w2: tensor<8x8x3x3xf32> {kas.name = "conv2.weight"},
    %b: tensor<8xf32> {kas.name = "bias"}) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8x6x6xf32>
  %init = linalg.broadcast ins(%b : tensor<8xf32>) outs(%e : tensor<4x8x6x6xf32>) dimensions = [0, 2, 3]
  %p0 = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<4x3x6x6xf32> to tensor<4x3x8x8xf32>
  %c0 = linalg.conv_2d_nchw_fchw ins(%p0, %w0 : tensor<4x3x8x8xf32>, tensor<8x3x3x3xf32>)
      outs(%init : tensor<4x8x6x6xf32>) -> tensor<4x8x6x6xf32>
  %r0 = linalg.generic {indexing_maps = [#image, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%c0 : tensor<4x8x6x6xf32>) outs(%e : tensor<4x8x6x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.maximumf %a, %zero : f32
    linalg.yield %m : f32
  } -> tensor<4x8x6x6xf32>
  %p1 = tensor.pad %r0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<4x8x6x6xf32> to tensor<4x8x8x8xf32>
  %c1 = linalg.conv_2d_nchw_fchw {kas.site = {binding = 0 : i64, space = @block}} ins(%p1, %w1 : tensor<4x8x8x8xf32>, tensor<8x8x3x3xf32>)
      outs(%init : tensor<4x8x6x6xf32>) -> tensor<4x8x6x6xf32>
  %r1 = linalg.generic {indexing_maps = [#image, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%c1 : tensor<4x8x6x6xf32>) outs(%e : tensor<4x8x6x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.maximumf %a, %zero : f32
    linalg.yield %m : f32
  } -> tensor<4x8x6x6xf32>
  %p2 = tensor.pad %r1 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<4x8x6x6xf32> to tensor<4x8x8x8xf32>
  %c2 = linalg.conv_2d_nchw_fchw {kas.site = {binding = 0 : i64, space = @block}} ins(%p2, %w2 : tensor<4x8x8x8xf32>, tensor<8x8x3x3xf32>)
      outs(%init : tensor<4x8x6x6xf32>) -> tensor<4x8x6x6xf32>
  %s = linalg.add ins(%c2, %r0 : tensor<4x8x6x6xf32>, tensor<4x8x6x6xf32>) outs(%e : tensor<4x8x6x6xf32>) -> tensor<4x8x6x6xf32>
  %t = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%t : tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#image, #means], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%s : tensor<4x8x6x6xf32>) outs(%f : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.addf %a, %o : f32
    linalg.yield %m : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
