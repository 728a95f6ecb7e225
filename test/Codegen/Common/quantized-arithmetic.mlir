// RUN: kas-opt %s -kas-fuse-elementwise -split-input-file | FileCheck %s

// A byte that is made and read again in one operation is a float that was
// rounded: the zero point, 118, is taken off the bounds of the clip.

// CHECK-LABEL: func.func @pair(
// CHECK: linalg.generic
// CHECK: ^bb0(%[[X:.*]]: f32, %{{.*}}: f32):
// CHECK: %[[ROUNDED:.*]] = math.roundeven
// CHECK-NEXT: %[[LEAST:.*]] = arith.maximumf %[[ROUNDED]]
// CHECK-NEXT: %[[CLIPPED:.*]] = arith.minimumf %[[LEAST]]
// CHECK-NEXT: %[[Y:.*]] = arith.mulf %[[CLIPPED]]
// CHECK-NEXT: linalg.yield %[[Y]]
// CHECK-NOT: linalg.generic

#id = affine_map<(i) -> (i)>
func.func @pair(%x: tensor<64xf32>) -> tensor<64xf32> {
  %inverse = arith.constant 20.0 : f32
  %step = arith.constant 0.05 : f32
  %zp = arith.constant 118.0 : f32
  %least = arith.constant 0.0 : f32
  %most = arith.constant 255.0 : f32
  %izp = arith.constant 118 : i64
  %bytes = tensor.empty() : tensor<64xi8>
  %floats = tensor.empty() : tensor<64xf32>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%bytes : tensor<64xi8>) {
  ^bb0(%in: f32, %out: i8):
    %0 = arith.mulf %in, %inverse : f32
    %1 = math.roundeven %0 : f32
    %2 = arith.addf %1, %zp : f32
    %3 = arith.maximumf %2, %least : f32
    %4 = arith.minimumf %3, %most : f32
    %5 = arith.fptoui %4 : f32 to i8
    linalg.yield %5 : i8
  } -> tensor<64xi8>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%q : tensor<64xi8>) outs(%floats : tensor<64xf32>) {
  ^bb0(%in: i8, %out: f32):
    %0 = arith.extui %in : i8 to i64
    %1 = arith.subi %0, %izp : i64
    %2 = arith.sitofp %1 : i64 to f32
    %3 = arith.mulf %2, %step : f32
    linalg.yield %3 : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

// What is clipped to more than a byte has is no byte; nor is what was not
// rounded, nor is an unsigned byte that is read with a sign.

// CHECK-LABEL: func.func @wide(
// CHECK: arith.fptoui
// CHECK-NEXT: %[[WIDE:.*]] = arith.extui %{{.*}} : i8 to i32
// CHECK-NEXT: arith.addi %[[WIDE]], %{{.*}} : i32
// CHECK: %[[FLOAT:.*]] = arith.sitofp %{{.*}} : i32 to f32
// CHECK: arith.fptosi
// CHECK: arith.extsi
// CHECK: arith.fptoui
// CHECK: arith.extsi

#id = affine_map<(i) -> (i)>
func.func @wide(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %least = arith.constant 0.0 : f32
  %most = arith.constant 256.0 : f32
  %small = arith.constant 100.0 : f32
  %zp = arith.constant 3 : i16
  %floats = tensor.empty() : tensor<64xf32>
  %y:3 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%floats, %floats, %floats : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  ^bb0(%in: f32, %a: f32, %b: f32, %c: f32):
    %0 = math.roundeven %in : f32
    %1 = arith.maximumf %0, %least : f32
    %2 = arith.minimumf %1, %most : f32
    %3 = arith.fptoui %2 : f32 to i8
    %4 = arith.extui %3 : i8 to i16
    %5 = arith.subi %4, %zp : i16
    %6 = arith.sitofp %5 : i16 to f32
    %7 = arith.maximumf %in, %least : f32
    %8 = arith.minimumf %7, %small : f32
    %9 = arith.fptosi %8 : f32 to i8
    %10 = arith.extsi %9 : i8 to i32
    %11 = arith.sitofp %10 : i32 to f32
    %12 = arith.minimumf %1, %small : f32
    %13 = arith.fptoui %12 : f32 to i8
    %14 = arith.extsi %13 : i8 to i32
    %15 = arith.sitofp %14 : i32 to f32
    linalg.yield %6, %11, %15 : f32, f32, f32
  } -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
  return %y#0, %y#1, %y#2 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}

// -----

// Bytes from memory are read in 32 bits; a sum that does not fit its type, or
// that of a word, stays.

// CHECK-LABEL: func.func @read(
// CHECK: ^bb0(%[[BYTE:.*]]: i8, %[[WORD:.*]]: i16,
// CHECK-NEXT: %[[WIDE:.*]] = arith.extsi %[[BYTE]] : i8 to i32
// CHECK-NEXT: %[[SUM:.*]] = arith.addi %[[WIDE]], %{{.*}} : i32
// CHECK-NEXT: arith.sitofp %[[SUM]] : i32 to f32
// CHECK: arith.subi %{{.*}}, %{{.*}} : i16
// CHECK: arith.extsi %[[WORD]] : i16 to i64

#id = affine_map<(i) -> (i)>
func.func @read(%x: tensor<64xi8>, %w: tensor<64xi16>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %zp = arith.constant -7 : i64
  %large = arith.constant 32760 : i16
  %floats = tensor.empty() : tensor<64xf32>
  %y:3 = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %w : tensor<64xi8>, tensor<64xi16>)
      outs(%floats, %floats, %floats : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  ^bb0(%byte: i8, %word: i16, %a: f32, %b: f32, %c: f32):
    %0 = arith.extsi %byte : i8 to i64
    %1 = arith.subi %0, %zp : i64
    %2 = arith.sitofp %1 : i64 to f32
    %3 = arith.extsi %byte : i8 to i16
    %4 = arith.subi %3, %large : i16
    %5 = arith.sitofp %4 : i16 to f32
    %6 = arith.extsi %word : i16 to i64
    %7 = arith.subi %6, %zp : i64
    %8 = arith.sitofp %7 : i64 to f32
    linalg.yield %2, %5, %8 : f32, f32, f32
  } -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
  return %y#0, %y#1, %y#2 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}

// -----

// The least integer has no negative, and some do not fit 64 bits.

// CHECK-LABEL: func.func @extremes(
// CHECK: arith.subi %{{.*}}, %{{.*}} : i64
// CHECK-NEXT: arith.sitofp %{{.*}} : i64 to f32
// CHECK: arith.addi %{{.*}}, %{{.*}} : i128
// CHECK-NEXT: arith.sitofp %{{.*}} : i128 to f32

#id = affine_map<(i) -> (i)>
func.func @extremes(%x: tensor<64xi8>) -> (tensor<64xf32>, tensor<64xf32>) {
  %least = arith.constant -9223372036854775808 : i64
  %large = arith.constant 36893488147419103232 : i128
  %floats = tensor.empty() : tensor<64xf32>
  %y:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xi8>) outs(%floats, %floats : tensor<64xf32>, tensor<64xf32>) {
  ^bb0(%byte: i8, %a: f32, %b: f32):
    %0 = arith.extsi %byte : i8 to i64
    %1 = arith.subi %0, %least : i64
    %2 = arith.sitofp %1 : i64 to f32
    %3 = arith.extui %byte : i8 to i128
    %4 = arith.addi %3, %large : i128
    %5 = arith.sitofp %4 : i128 to f32
    linalg.yield %2, %5 : f32, f32
  } -> (tensor<64xf32>, tensor<64xf32>)
  return %y#0, %y#1 : tensor<64xf32>, tensor<64xf32>
}

// -----

// Clipped by comparisons, through i32, and read without a zero point or with one: only floats remain.

// CHECK-LABEL: func.func @compared(
// CHECK-NOT: arith.fptosi
// CHECK-NOT: arith.uitofp
// CHECK-NOT: arith.sitofp
// CHECK: return

#id = affine_map<(i) -> (i)>
func.func @compared(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %zp = arith.constant 118.0 : f32
  %least = arith.constant 0.0 : f32
  %most = arith.constant 255.0 : f32
  %izp = arith.constant 118 : i64
  %floats = tensor.empty() : tensor<64xf32>
  %y:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%floats, %floats : tensor<64xf32>, tensor<64xf32>) {
  ^bb0(%in: f32, %o0: f32, %o1: f32):
    %1 = math.roundeven %in : f32
    %2 = arith.addf %1, %zp : f32
    %3 = arith.cmpf olt, %2, %least : f32
    %4 = arith.select %3, %least, %2 : f32
    %5 = arith.cmpf ogt, %4, %most : f32
    %6 = arith.select %5, %most, %4 : f32
    %7 = arith.fptosi %6 : f32 to i32
    %8 = arith.trunci %7 : i32 to i8
    %9 = arith.uitofp %8 : i8 to f32
    %10 = arith.extui %8 : i8 to i64
    %11 = arith.subi %10, %izp : i64
    %12 = arith.sitofp %11 : i64 to f32
    linalg.yield %9, %12 : f32, f32
  } -> (tensor<64xf32>, tensor<64xf32>)
  return %y#0, %y#1 : tensor<64xf32>, tensor<64xf32>
}

// -----

// A byte that is read with another sign is not the float; nor is what was compared with one number and replaced by
// another, or clipped to more than a byte.

// CHECK-LABEL: func.func @compared_otherwise(
// CHECK: arith.sitofp %{{.*}} : i8 to f32
// CHECK: arith.uitofp %{{.*}} : i8 to f32
// CHECK: arith.uitofp %{{.*}} : i8 to f32

#id = affine_map<(i) -> (i)>
func.func @compared_otherwise(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %least = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %most = arith.constant 255.0 : f32
  %more = arith.constant 256.0 : f32
  %floats = tensor.empty() : tensor<64xf32>
  %y:3 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%floats, %floats, %floats : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  ^bb0(%in: f32, %o0: f32, %o1: f32, %o2: f32):
    %1 = math.roundeven %in : f32
    %2 = arith.cmpf olt, %1, %least : f32
    %3 = arith.select %2, %least, %1 : f32
    %4 = arith.cmpf ogt, %3, %most : f32
    %5 = arith.select %4, %most, %3 : f32
    %6 = arith.fptosi %5 : f32 to i32
    %7 = arith.trunci %6 : i32 to i8
    %8 = arith.sitofp %7 : i8 to f32
    %9 = arith.cmpf olt, %1, %one : f32
    %10 = arith.select %9, %least, %1 : f32
    %11 = arith.cmpf ogt, %10, %most : f32
    %12 = arith.select %11, %most, %10 : f32
    %13 = arith.fptosi %12 : f32 to i32
    %14 = arith.trunci %13 : i32 to i8
    %15 = arith.uitofp %14 : i8 to f32
    %16 = arith.cmpf ogt, %3, %more : f32
    %17 = arith.select %16, %more, %3 : f32
    %18 = arith.fptosi %17 : f32 to i32
    %19 = arith.trunci %18 : i32 to i8
    %20 = arith.uitofp %19 : i8 to f32
    linalg.yield %8, %15, %20 : f32, f32, f32
  } -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
  return %y#0, %y#1, %y#2 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}
