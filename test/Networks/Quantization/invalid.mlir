// RUN: not kas-opt %s -kas-quantize="ranges=0,1,0" 2>&1 | FileCheck %s --check-prefix=ODD
// RUN: not kas-opt %s -kas-quantize="ranges=0,1,0,1" 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not kas-opt %s -kas-quantize 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not kas-opt %s -kas-quantize="ranges=2,1" 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not kas-opt %s -kas-quantize="ranges=0,inf" 2>&1 | FileCheck %s --check-prefix=INFINITE
// RUN: not kas-opt %s -kas-quantize="function=copy ranges=0,1" 2>&1 | FileCheck %s --check-prefix=LAYERS
// RUN: not kas-opt %s -kas-data-ranges="function=copy" 2>&1 | FileCheck %s --check-prefix=LAYERS
// RUN: not kas-opt %s -kas-data-ranges="function=nothing" 2>&1 | FileCheck %s --check-prefix=FUNCTION
// RUN: not kas-opt %s -kas-data-ranges -kas-data-ranges 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not kas-opt %s -kas-quantize="ranges=0,1 kept=1" 2>&1 | FileCheck %s --check-prefix=KEPT
// RUN: not kas-opt %s -kas-quantize="ranges=0,1 kept=-1" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not kas-opt %s -kas-quantization-errors="ranges=0" 2>&1 | FileCheck %s --check-prefix=SINGLE
// RUN: not kas-opt %s -kas-quantization-errors="ranges=2,1" 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not kas-opt %s -kas-quantization-errors="function=copy" 2>&1 | FileCheck %s --check-prefix=LAYERS
// RUN: not kas-opt %s -kas-split-weights="function=nothing" 2>&1 | FileCheck %s --check-prefix=FUNCTION
// RUN: not kas-opt %s -kas-split-weights="function=branch" 2>&1 | FileCheck %s --check-prefix=BLOCKS
// RUN: not kas-opt %s -kas-split-weights="function=dynamic" 2>&1 | FileCheck %s --check-prefix=DYNAMIC
// RUN: not kas-opt %s -kas-split-weights="function=copy" -kas-split-weights="function=copy" 2>&1 | FileCheck %s --check-prefix=SPLIT

// ODD: invalid.mlir:[[#@LINE+14]]:1: error: option 'ranges' requires two numbers for each layer, got 3
// MANY: error: requires 1 ranges, one for each layer, got 2
// NONE: error: requires 1 ranges, one for each layer, got 0
// EMPTY: error: requires finite ranges of data, got 2.{{.*}} to 1.
// INFINITE: error: requires finite ranges of data, got 0.{{.*}} to
// LAYERS: error: requires a function with layers that sum products of data and weights of f32 over channels, got none
// FUNCTION: error: option 'function' requires a function with a body, got 'nothing'
// KEPT: error: requires numbers of layers from 0 to 0 in 'kept', got 1
// NEGATIVE: error: requires numbers of layers from 0 to 0 in 'kept', got -1
// SINGLE: error: option 'ranges' requires two numbers for each layer, got 1
// TWICE: error: requires a module without 'forward_ranges'
// BLOCKS: error: requires a function of one block, got 2
// DYNAMIC: error: requires weights that are tensors of static shape, got 'tensor<?xf32>'
// SPLIT: error: requires a module without 'copy_weights'
func.func @forward(%x: tensor<8x16xf32>, %w: tensor<16x32xf32>, %init: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<8x16xf32>, tensor<16x32xf32>) outs(%init : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

func.func @copy(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  return %x : tensor<8x16xf32>
}

func.func @branch(%x: tensor<8xf32>, %w: tensor<8xf32>) -> tensor<8xf32> {
  cf.br ^end
^end:
  return %w : tensor<8xf32>
}

func.func @dynamic(%x: tensor<8xf32>, %w: tensor<?xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
