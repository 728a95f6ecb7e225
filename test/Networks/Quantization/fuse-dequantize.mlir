// Layers whose data and weights are bytes that are turned into f32 compute in int8.

// RUN: kas-opt %s -kas-fuse-dequantize=function=convolution -canonicalize -cse | FileCheck %s --check-prefix=CONV
// RUN: kas-opt %s -kas-fuse-dequantize=function=product -canonicalize -cse | FileCheck %s --check-prefix=PRODUCT
// RUN: kas-opt %s -kas-fuse-dequantize=function=other -canonicalize -cse | FileCheck %s --check-prefix=OTHER
// RUN: kas-opt %s -kas-fuse-dequantize=function=integers -canonicalize -cse | FileCheck %s --check-prefix=INTEGERS
// RUN: kas-opt %s -kas-fuse-dequantize=function=weights -canonicalize -cse | FileCheck %s --check-prefix=WEIGHTS
// RUN: kas-opt %s -kas-fuse-dequantize=function=quantize | FileCheck %s --check-prefix=QUANTIZE
// RUN: kas-opt %s -kas-fuse-dequantize=function=quantize_in_steps | FileCheck %s --check-prefix=SPLIT
// RUN: kas-opt %s -kas-fuse-dequantize=function=read_twice | FileCheck %s --check-prefix=TWICE
// RUN: kas-opt %s -kas-fuse-dequantize=function=convolution -kas-cpu-pipeline=threads=1 -o /dev/null

#id4 = affine_map<(a, b, c, d) -> (a, b, c, d)>
#first = affine_map<(a, b, c, d) -> (a)>
#id = affine_map<(a, b) -> (a, b)>
#row = affine_map<(a, b) -> (a)>
#column = affine_map<(a, b) -> (b)>

// Unsigned data with a zero point, which becomes what is around it; a step of the weights for each channel.
// CONV-LABEL: func.func @convolution(
// CONV-DAG:   %[[ZERO:.*]] = arith.constant 7 : i8
// CONV:       %[[PADDED:.*]] = tensor.pad %{{.*}} low[0, 0, 1, 1] high[0, 0, 1, 1]
// CONV:         tensor.yield %[[ZERO]] : i8
// CONV:       linalg.generic {{.*}} ins(%[[PADDED]], %{{.*}} : tensor<1x16x8x8xi8>, tensor<8x16x3x3xi8>) outs(%{{.*}} : tensor<1x8x6x6xi32>)
// CONV:         arith.extui
// CONV:         arith.extsi
// CONV:         arith.muli
// CONV-NOT:   linalg.conv_2d
// CONV:       return
func.func @convolution(%x: tensor<1x16x6x6xi8>, %w: tensor<8x16x3x3xi8>, %steps: tensor<8xf32>) -> tensor<1x8x6x6xf32> {
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.5 : f32
  %point = arith.constant 7 : i64
  %e = tensor.empty() : tensor<1x16x6x6xf32>
  %data = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<1x16x6x6xi8>) outs(%e : tensor<1x16x6x6xf32>) {
  ^bb0(%in: i8, %out: f32):
    %wide = arith.extui %in : i8 to i64
    %moved = arith.subi %wide, %point : i64
    %f = arith.sitofp %moved : i64 to f32
    %s = arith.mulf %f, %scale : f32
    linalg.yield %s : f32
  } -> tensor<1x16x6x6xf32>
  %ew = tensor.empty() : tensor<8x16x3x3xf32>
  %weights = linalg.generic {indexing_maps = [#id4, #first, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%w, %steps : tensor<8x16x3x3xi8>, tensor<8xf32>) outs(%ew : tensor<8x16x3x3xf32>) {
  ^bb0(%in: i8, %step: f32, %out: f32):
    %f = arith.sitofp %in : i8 to f32
    %s = arith.mulf %f, %step : f32
    linalg.yield %s : f32
  } -> tensor<8x16x3x3xf32>
  %padded = tensor.pad %data low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x16x6x6xf32> to tensor<1x16x8x8xf32>
  %ey = tensor.empty() : tensor<1x8x6x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%ey : tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%padded, %weights : tensor<1x16x8x8xf32>, tensor<8x16x3x3xf32>)
      outs(%init : tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32>
  return %y : tensor<1x8x6x6xf32>
}

// Signed data becomes unsigned; weights are transposed, and their step with them.
// PRODUCT-LABEL: func.func @product(
// PRODUCT-DAG:   %[[SIGN:.*]] = arith.constant -128 : i8
// PRODUCT:       arith.xori %{{.*}}, %[[SIGN]] : i8
// PRODUCT:       linalg.transpose {{.*}} outs(%{{.*}} : tensor<16x32xi8>) permutation = [1, 0]
// PRODUCT:       linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<4x16xi8>, tensor<16x32xi8>) outs(%{{.*}} : tensor<4x32xi32>)
// PRODUCT-NOT:   linalg.matmul
// PRODUCT:       return
func.func @product(%x: tensor<4x16xi8>, %w: tensor<32x16xi8>, %steps: tensor<32xf32>) -> tensor<4x32xf32> {
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.25 : f32
  %e = tensor.empty() : tensor<4x16xf32>
  %data = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x16xi8>) outs(%e : tensor<4x16xf32>) {
  ^bb0(%in: i8, %out: f32):
    %f = arith.sitofp %in : i8 to f32
    %s = arith.mulf %f, %scale : f32
    linalg.yield %s : f32
  } -> tensor<4x16xf32>
  %ew = tensor.empty() : tensor<32x16xf32>
  %weights = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w, %steps : tensor<32x16xi8>, tensor<32xf32>) outs(%ew : tensor<32x16xf32>) {
  ^bb0(%in: i8, %step: f32, %out: f32):
    %f = arith.sitofp %in : i8 to f32
    %s = arith.mulf %f, %step : f32
    linalg.yield %s : f32
  } -> tensor<32x16xf32>
  %et = tensor.empty() : tensor<16x32xf32>
  %turned = linalg.transpose ins(%weights : tensor<32x16xf32>) outs(%et : tensor<16x32xf32>) permutation = [1, 0]
  %ey = tensor.empty() : tensor<4x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%ey : tensor<4x32xf32>) -> tensor<4x32xf32>
  %y = linalg.matmul ins(%data, %turned : tensor<4x16xf32>, tensor<16x32xf32>) outs(%init : tensor<4x32xf32>) -> tensor<4x32xf32>
  return %y : tensor<4x32xf32>
}

// A step for each of what is summed is no step of a channel.
// OTHER-LABEL: func.func @other(
// OTHER:       linalg.matmul {{.*}} -> tensor<4x32xf32>
func.func @other(%x: tensor<4x16xi8>, %w: tensor<32x16xi8>, %steps: tensor<16xf32>) -> tensor<4x32xf32> {
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.25 : f32
  %e = tensor.empty() : tensor<4x16xf32>
  %data = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x16xi8>) outs(%e : tensor<4x16xf32>) {
  ^bb0(%in: i8, %out: f32):
    %f = arith.sitofp %in : i8 to f32
    %s = arith.mulf %f, %scale : f32
    linalg.yield %s : f32
  } -> tensor<4x16xf32>
  %ew = tensor.empty() : tensor<32x16xf32>
  %weights = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w, %steps : tensor<32x16xi8>, tensor<16xf32>) outs(%ew : tensor<32x16xf32>) {
  ^bb0(%in: i8, %step: f32, %out: f32):
    %f = arith.sitofp %in : i8 to f32
    %s = arith.mulf %f, %step : f32
    linalg.yield %s : f32
  } -> tensor<32x16xf32>
  %et = tensor.empty() : tensor<16x32xf32>
  %turned = linalg.transpose ins(%weights : tensor<32x16xf32>) outs(%et : tensor<16x32xf32>) permutation = [1, 0]
  %ey = tensor.empty() : tensor<4x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%ey : tensor<4x32xf32>) -> tensor<4x32xf32>
  %y = linalg.matmul ins(%data, %turned : tensor<4x16xf32>, tensor<16x32xf32>) outs(%init : tensor<4x32xf32>) -> tensor<4x32xf32>
  return %y : tensor<4x32xf32>
}

// A named operation on signed bytes: unsigned data, sums less those of the weights, a bias of i32.
// INTEGERS-LABEL: func.func @integers(
// INTEGERS-DAG:   %[[AROUND:.*]] = arith.constant 123 : i8
// INTEGERS-DAG:   %[[ZERO:.*]] = arith.constant -123 : i32
// INTEGERS-DAG:   %[[SIGN:.*]] = arith.constant -128 : i8
// INTEGERS:       arith.xori %{{.*}}, %[[SIGN]] : i8
// INTEGERS:       tensor.pad
// INTEGERS:         tensor.yield %[[AROUND]] : i8
// INTEGERS:       arith.muli %{{.*}}, %[[ZERO]] : i32
// INTEGERS:       arith.extui
// INTEGERS:       arith.extsi
// INTEGERS-NOT:   linalg.conv_2d
// INTEGERS:       return
func.func @integers(%x: tensor<1x16x6x6xi8>, %w: tensor<8x16x3x3xi8>, %bias: tensor<8xi32>) -> tensor<1x8x6x6xi32> {
  %around = arith.constant -5 : i8
  %zero = arith.constant -5 : i32
  %none = arith.constant 0 : i32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %around : i8
  } : tensor<1x16x6x6xi8> to tensor<1x16x8x8xi8>
  %e = tensor.empty() : tensor<1x8x6x6xi32>
  %init = linalg.broadcast ins(%bias : tensor<8xi32>) outs(%e : tensor<1x8x6x6xi32>) dimensions = [0, 2, 3]
  %y = linalg.conv_2d_nchw_fchw_q ins(%padded, %w, %zero, %none : tensor<1x16x8x8xi8>, tensor<8x16x3x3xi8>, i32, i32)
      outs(%init : tensor<1x8x6x6xi32>) -> tensor<1x8x6x6xi32>
  return %y : tensor<1x8x6x6xi32>
}

// Zero points of weights stay where they are.
// WEIGHTS-LABEL: func.func @weights(
// WEIGHTS:       linalg.quantized_matmul
func.func @weights(%x: tensor<4x16xi8>, %w: tensor<16x32xi8>) -> tensor<4x32xi32> {
  %zero = arith.constant 3 : i32
  %e = tensor.empty() : tensor<4x32xi32>
  %none = arith.constant 0 : i32
  %init = linalg.fill ins(%none : i32) outs(%e : tensor<4x32xi32>) -> tensor<4x32xi32>
  %y = linalg.quantized_matmul ins(%x, %w, %zero, %zero : tensor<4x16xi8>, tensor<16x32xi8>, i32, i32)
      outs(%init : tensor<4x32xi32>) -> tensor<4x32xi32>
  return %y : tensor<4x32xi32>
}

// The same where the division, the zero point and the rounding are operations of
// their own, and the step is a tensor.
// SPLIT-LABEL: func.func @quantize_in_steps(
// SPLIT-NOT:     arith.divf
// SPLIT:         %[[INVERSE:.*]] = arith.constant 4.000000e+00 : f32
// SPLIT-NEXT:    arith.mulf %{{.*}}, %[[INVERSE]] : f32
// SPLIT:         math.roundeven
func.func @quantize_in_steps(%x: tensor<4xf32>) -> tensor<4xf32> {
  %step = arith.constant dense<0.25> : tensor<f32>
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x, %step : tensor<4xf32>, tensor<f32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %q = arith.divf %in, %s : f32
    linalg.yield %q : f32
  } -> tensor<4xf32>
  %1 = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%0 : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = math.roundeven %in : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// Not where another operation reads the quotient, nor by steps that differ.
// TWICE-LABEL: func.func @read_twice(
// TWICE-COUNT-2: arith.divf
func.func @read_twice(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %step = arith.constant dense<0.25> : tensor<f32>
  %steps = arith.constant dense<[0.25, 0.5, 1.0, 2.0]> : tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x, %step : tensor<4xf32>, tensor<f32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %q = arith.divf %in, %s : f32
    linalg.yield %q : f32
  } -> tensor<4xf32>
  %1 = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%0 : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = math.roundeven %in : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %2 = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x, %steps : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %q = arith.divf %in, %s : f32
    %r = math.roundeven %q : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// What is rounded is multiplied by the inverse of the step, 0.25; other quotients
// stay, and so do those by what has no inverse.
// QUANTIZE-LABEL: func.func @quantize(
// QUANTIZE:       %[[INVERSE:.*]] = arith.constant 4.000000e+00 : f32
// QUANTIZE-NEXT:  %[[STEPS:.*]] = arith.mulf %{{.*}}, %[[INVERSE]] : f32
// QUANTIZE-NEXT:  math.roundeven %[[STEPS]]
// QUANTIZE:       arith.divf
// QUANTIZE:       arith.divf
// QUANTIZE-NEXT:  math.roundeven
func.func @quantize(%x: tensor<4xf32>) -> (tensor<4xi8>, tensor<4xf32>, tensor<4xf32>) {
  %step = arith.constant 0.25 : f32
  %none = arith.constant 1.0e-40 : f32
  %e = tensor.empty() : tensor<4xi8>
  %f = tensor.empty() : tensor<4xf32>
  %y:3 = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e, %f, %f : tensor<4xi8>, tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%in: f32, %a: i8, %b: f32, %c: f32):
    %0 = arith.divf %in, %step : f32
    %1 = math.roundeven %0 : f32
    %2 = arith.fptosi %1 : f32 to i8
    %3 = arith.divf %in, %step : f32
    %4 = arith.divf %in, %none : f32
    %5 = math.roundeven %4 : f32
    linalg.yield %2, %3, %5 : i8, f32, f32
  } -> (tensor<4xi8>, tensor<4xf32>, tensor<4xf32>)
  return %y#0, %y#1, %y#2 : tensor<4xi8>, tensor<4xf32>, tensor<4xf32>
}
