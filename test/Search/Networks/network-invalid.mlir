// RUN: not kas-opt %s -kas-search="network=@none" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not kas-opt %s -kas-search="network=@plain" 2>&1 | FileCheck %s --check-prefix=N1
// RUN: not kas-opt %s -kas-search="network=@one scored-network=@plain evaluators=fisher" 2>&1 | FileCheck %s --check-prefix=PLAIN
// RUN: not kas-opt %s -kas-search="network=@one scored-network=@other evaluators=fisher" 2>&1 | FileCheck %s --check-prefix=N2
// RUN: not kas-opt %s -kas-search="network=@one evaluators=fisher" 2>&1 | FileCheck %s --check-prefix=N3
// RUN: not kas-opt %s -kas-search="network=@one evaluators=bytes" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not kas-opt %s -kas-search="network=@one network-limits=luck=7" 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: not kas-opt %s -kas-search="network=@one kernel=@k" 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not kas-opt %s -kas-search="network-limits=steps=2" 2>&1 | FileCheck %s --check-prefix=WITHOUT

// NONE: error: requires a function @none with a body for the option 'network', got none of that name
// N1: error: requires a network of one block with 'linalg.conv_2d_nchw_fchw' of a kernel of at least 2 rows, by arguments, got none
// PLAIN: error: cannot score the layers of the network: for proxies, requires a convolution, got none
// N2: error: requires a scored network whose layer 'w' has the shapes of the network, but for the samples, got others
// N3: error: requires a network for at least 2 samples for Fisher Potential, got 1; see the option 'scored-network'
// NAME: error: requires an evaluator of networks among flops, params, fisher, layer_latency, latency, external, got 'bytes'
// LIMIT: error: requires limits of the search that make sense: requires one of steps (at most 8), groups, slabs, factor, schedules (0 or 1), kernel, normalize (0 or 1), got 'luck=7'
// BOTH: error: requires one of the options 'space', 'kernel' and 'network', got several
// WITHOUT: error: requires the option 'network' for the options 'network-limits' and 'scored-network'

func.func @plain(%x: tensor<1x4xf32>) -> tensor<1x4xf32> {
  return %x : tensor<1x4xf32>
}
func.func @one(%x: tensor<1x4x6x6xf32>, %w: tensor<4x4x3x3xf32> {kas.name = "w"}) -> tensor<1x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x4x4xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  %c = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x4x6x6xf32>, tensor<4x4x3x3xf32>) outs(%i : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  %t = tensor.empty() : tensor<1x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%t : tensor<1x4xf32>) -> tensor<1x4xf32>
  %y = linalg.reduce { arith.addf } ins(%c : tensor<1x4x4x4xf32>) outs(%f : tensor<1x4xf32>) dimensions = [2, 3]
  return %y : tensor<1x4xf32>
}
func.func @other(%x: tensor<2x4x8x8xf32>, %w: tensor<4x4x3x3xf32> {kas.name = "w"}) -> tensor<2x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6x6xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %c = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x4x8x8xf32>, tensor<4x4x3x3xf32>) outs(%i : tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %t = tensor.empty() : tensor<2x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%t : tensor<2x4xf32>) -> tensor<2x4xf32>
  %y = linalg.reduce { arith.addf } ins(%c : tensor<2x4x6x6xf32>) outs(%f : tensor<2x4xf32>) dimensions = [2, 3]
  return %y : tensor<2x4xf32>
}
