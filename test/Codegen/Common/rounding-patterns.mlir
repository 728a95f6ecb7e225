// RUN: kas-opt %s -kas-fuse-elementwise -cse -split-input-file | FileCheck %s

// A sum of a layer, by the steps of its channels, is dequantized (step 0.5, zero point 100), added to a byte (step 0.25)
// and quantized (step 0.125): the steps of the channels have the inverse of theirs, 2, all products are one each, and the
// zero point is taken off the bounds.
//
// CHECK-LABEL: func.func @residual(
// CHECK-SAME:    %[[X:[a-z0-9_]+]]: tensor<1x8x4x4xi32>, %[[R:[a-z0-9_]+]]: tensor<1x8x4x4xi8>, %[[A:[a-z0-9_]+]]: tensor<8xf32>, %[[B:[a-z0-9_]+]]: tensor<8xf32>)
// CHECK-DAG:     %[[TWO:[a-z0-9_]+]] = arith.constant 2.000000e+00 : f32
// CHECK-DAG:     %[[FOUR:[a-z0-9_]+]] = arith.constant 4.000000e+00 : f32
// CHECK-DAG:     %[[LEAST:[a-z0-9_]+]] = arith.constant -1.000000e+02 : f32
// CHECK-DAG:     %[[MOST:[a-z0-9_]+]] = arith.constant 1.550000e+02 : f32
// CHECK:         %[[SCALED:[a-z0-9_]+]] = linalg.generic {{.*}} ins(%[[A]] : tensor<8xf32>)
// CHECK:           arith.mulf %{{.*}}, %[[TWO]]
// CHECK:         %[[ADDED:[a-z0-9_]+]] = linalg.generic {{.*}} ins(%[[B]] : tensor<8xf32>)
// CHECK:           arith.mulf %{{.*}}, %[[TWO]]
// CHECK:         linalg.generic {{.*}} ins(%[[X]], %[[R]], %[[SCALED]], %[[ADDED]] :
// CHECK:         ^bb0(%[[SUM:[a-z0-9_]+]]: i32, %[[BYTE:[a-z0-9_]+]]: i8, %[[STEP:[a-z0-9_]+]]: f32, %[[BIAS:[a-z0-9_]+]]: f32,
// CHECK:           %[[F:[a-z0-9_]+]] = arith.sitofp %[[SUM]]
// CHECK-NEXT:      %[[P:[a-z0-9_]+]] = arith.mulf %[[F]], %[[STEP]]
// CHECK-NEXT:      %[[S:[a-z0-9_]+]] = arith.addf %[[P]], %[[BIAS]]
// CHECK-NEXT:      %[[ROUNDED:[a-z0-9_]+]] = math.roundeven %[[S]]
// CHECK-NEXT:      %[[L:[a-z0-9_]+]] = arith.maximumf %[[ROUNDED]], %[[LEAST]]
// CHECK-NEXT:      %[[U:[a-z0-9_]+]] = arith.minimumf %[[L]], %[[MOST]]
// CHECK-NEXT:      %[[READ:[a-z0-9_]+]] = arith.uitofp %[[BYTE]]
// CHECK-NEXT:      %[[MINE:[a-z0-9_]+]] = arith.mulf %[[U]], %[[FOUR]]
// CHECK-NEXT:      %[[OTHER:[a-z0-9_]+]] = arith.mulf %[[READ]], %[[TWO]]
// CHECK-NEXT:      %[[BOTH:[a-z0-9_]+]] = arith.addf %[[MINE]], %[[OTHER]]
// CHECK-NEXT:      math.roundeven %[[BOTH]]
// CHECK-NOT:       arith.mulf
// CHECK-NOT:       arith.addf
#all = affine_map<(n, c, h, w) -> (n, c, h, w)>
#channel = affine_map<(n, c, h, w) -> (c)>
#attributes = {
  indexing_maps = [#all, #all, #channel, #channel, #all],
  iterator_types = ["parallel", "parallel", "parallel", "parallel"]
}
func.func @residual(%x: tensor<1x8x4x4xi32>, %r: tensor<1x8x4x4xi8>, %a: tensor<8xf32>, %b: tensor<8xf32>)
    -> tensor<1x8x4x4xi8> {
  %zero = arith.constant 0.0 : f32
  %most = arith.constant 255.0 : f32
  %point = arith.constant 100.0 : f32
  %back = arith.constant -100.0 : f32
  %step = arith.constant 0.5 : f32
  %inverse = arith.constant 2.0 : f32
  %other = arith.constant 0.25 : f32
  %last = arith.constant 8.0 : f32
  %empty = tensor.empty() : tensor<1x8x4x4xi8>
  %y = linalg.generic #attributes
      ins(%x, %r, %a, %b : tensor<1x8x4x4xi32>, tensor<1x8x4x4xi8>, tensor<8xf32>, tensor<8xf32>)
      outs(%empty : tensor<1x8x4x4xi8>) {
  ^bb0(%sum: i32, %byte: i8, %s: f32, %bias: f32, %out: i8):
    %0 = arith.sitofp %sum : i32 to f32
    %1 = arith.mulf %0, %s : f32
    %2 = arith.addf %1, %bias : f32
    %3 = arith.mulf %2, %inverse : f32
    %4 = math.roundeven %3 : f32
    %5 = arith.addf %4, %point : f32
    %6 = arith.maximumf %5, %zero : f32
    %7 = arith.minimumf %6, %most : f32
    %8 = arith.addf %7, %back : f32
    %9 = arith.mulf %8, %step : f32
    %10 = arith.uitofp %byte : i8 to f32
    %11 = arith.mulf %10, %other : f32
    %12 = arith.addf %9, %11 : f32
    %13 = arith.mulf %12, %last : f32
    %14 = math.roundeven %13 : f32
    %15 = arith.addf %14, %zero : f32
    %16 = arith.maximumf %15, %zero : f32
    %17 = arith.minimumf %16, %most : f32
    %18 = arith.fptoui %17 : f32 to i8
    linalg.yield %18 : i8
  } -> tensor<1x8x4x4xi8>
  return %y : tensor<1x8x4x4xi8>
}

// -----

// A rectifier whose result is clipped by 0 again is no operation of its own; a clip by another number is scaled. What was
// dequantized is quantized by the same step: nothing.
//
// CHECK-LABEL: func.func @clips(
// CHECK-DAG:     %[[ZERO:[a-z0-9_]+]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG:     %[[MOST:[a-z0-9_]+]] = arith.constant 2.550000e+02 : f32
// CHECK-DAG:     %[[SIX:[a-z0-9_]+]] = arith.constant 1.200000e+01 : f32
// CHECK:         ^bb0(%[[IN:[a-z0-9_]+]]: f32,
// CHECK:           %[[P:[a-z0-9_]+]] = arith.mulf %[[IN]], %{{.*}} : f32
// CHECK-NEXT:      %[[IS:[a-z0-9_]+]] = arith.cmpf olt, %[[P]], %[[SIX]]
// CHECK-NEXT:      %[[C:[a-z0-9_]+]] = arith.select %[[IS]], %[[P]], %[[SIX]]
// CHECK-NEXT:      %[[ROUNDED:[a-z0-9_]+]] = math.roundeven %[[C]]
// CHECK-NEXT:      %[[L:[a-z0-9_]+]] = arith.maxnumf %[[ROUNDED]], %[[ZERO]]
// CHECK-NEXT:      %[[U:[a-z0-9_]+]] = arith.minnumf %[[L]], %[[MOST]]
// CHECK-NEXT:      %[[L2:[a-z0-9_]+]] = arith.maxnumf %[[U]], %[[ZERO]]
// CHECK-NEXT:      %[[U2:[a-z0-9_]+]] = arith.minnumf %[[L2]], %[[MOST]]
// CHECK-NEXT:      arith.fptoui %[[U2]]
#id = affine_map<(i) -> (i)>
func.func @clips(%x: tensor<64xf32>) -> tensor<64xi8> {
  %zero = arith.constant 0.0 : f32
  %six = arith.constant 6.0 : f32
  %most = arith.constant 255.0 : f32
  %weight = arith.constant 3.0 : f32
  %step = arith.constant 0.5 : f32
  %inverse = arith.constant 2.0 : f32
  %empty = tensor.empty() : tensor<64xi8>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%empty : tensor<64xi8>) {
  ^bb0(%in: f32, %out: i8):
    %0 = arith.mulf %in, %weight : f32
    %1 = arith.cmpf olt, %0, %six : f32
    %2 = arith.select %1, %0, %six : f32
    %3 = arith.cmpf ugt, %2, %zero : f32
    %4 = arith.select %3, %2, %zero : f32
    %5 = arith.mulf %4, %inverse : f32
    %6 = arith.addf %5, %zero : f32
    %7 = math.roundeven %6 : f32
    %8 = arith.maxnumf %7, %zero : f32
    %9 = arith.minnumf %8, %most : f32
    %10 = arith.mulf %9, %step : f32
    %11 = arith.mulf %10, %inverse : f32
    %12 = math.roundeven %11 : f32
    %13 = arith.maxnumf %12, %zero : f32
    %14 = arith.minnumf %13, %most : f32
    %15 = arith.fptoui %14 : f32 to i8
    linalg.yield %15 : i8
  } -> tensor<64xi8>
  return %y : tensor<64xi8>
}

// -----

// A product stays where another reader has the term without it, where a term is the element of a whole tensor, before a
// product with a negative number (clips would change places), where nothing is rounded, and where the constant is too
// small for it.
//
// CHECK-LABEL: func.func @others(
// CHECK:         ^bb0(%[[IN:[a-z0-9_]+]]: f32, %[[TERM:[a-z0-9_]+]]: f32,
// CHECK:           %[[SHARED:[a-z0-9_]+]] = arith.mulf %[[IN]],
// CHECK:           %[[P0:[a-z0-9_]+]] = arith.mulf %[[SHARED]],
// CHECK:           math.roundeven %[[P0]]
// CHECK:           %[[S1:[a-z0-9_]+]] = arith.addf %{{.*}}, %[[TERM]]
// CHECK:           %[[P1:[a-z0-9_]+]] = arith.mulf %[[S1]],
// CHECK:           math.roundeven %[[P1]]
// CHECK:           %[[C2:[a-z0-9_]+]] = arith.maximumf
// CHECK:           %[[P2:[a-z0-9_]+]] = arith.mulf %[[C2]],
// CHECK:           math.roundeven %[[P2]]
// CHECK:           %[[S3:[a-z0-9_]+]] = arith.addf
// CHECK:           %[[P3:[a-z0-9_]+]] = arith.mulf %[[S3]],
// CHECK:           %[[S4:[a-z0-9_]+]] = arith.mulf %[[TERM]],
// CHECK:           %[[P4:[a-z0-9_]+]] = arith.mulf %[[S4]],
// CHECK:           math.roundeven %[[P4]]
// CHECK:           linalg.yield
#id = affine_map<(i) -> (i)>
func.func @others(%x: tensor<64xf32>, %t: tensor<64xf32>)
    -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %three = arith.constant 3.0 : f32
  %two = arith.constant 2.0 : f32
  %fall = arith.constant -2.0 : f32
  %small = arith.constant 1.0e-30 : f32
  %empty = tensor.empty() : tensor<64xf32>
  %y:6 = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %t : tensor<64xf32>, tensor<64xf32>)
      outs(%empty, %empty, %empty, %empty, %empty, %empty
        : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  ^bb0(%in: f32, %term: f32, %a: f32, %b: f32, %c: f32, %d: f32, %e: f32, %f: f32):
    %shared = arith.mulf %in, %three : f32
    %0 = arith.mulf %shared, %two : f32
    %1 = math.roundeven %0 : f32
    %2 = arith.mulf %in, %three : f32
    %3 = arith.addf %2, %term : f32
    %4 = arith.mulf %3, %two : f32
    %5 = math.roundeven %4 : f32
    %6 = arith.mulf %in, %three : f32
    %7 = arith.maximumf %6, %zero : f32
    %8 = arith.mulf %7, %fall : f32
    %9 = math.roundeven %8 : f32
    %10 = arith.mulf %in, %three : f32
    %11 = arith.addf %10, %three : f32
    %12 = arith.mulf %11, %two : f32
    %13 = arith.mulf %term, %small : f32
    %14 = arith.mulf %13, %small : f32
    %15 = math.roundeven %14 : f32
    linalg.yield %1, %5, %9, %12, %15, %shared : f32, f32, f32, f32, f32, f32
  } -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
  return %y#0, %y#1, %y#2, %y#3, %y#4, %y#5
      : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}
