// RUN: kas-opt %s -kas-gpu-front-half='device=vulkan' -split-input-file | FileCheck %s
// RUN: kas-opt %s -kas-spirv-pipeline -split-input-file | FileCheck %s --check-prefix=MANIFEST

// Padding, slices, transpositions and reshapes are index arithmetic: one kernel. Beyond the end the value is what the
// padding says, and another element is read.
// CHECK-LABEL: func @views
// CHECK-SAME: (%[[X:.*]]: memref<4x6xf32>, %[[RESULT:.*]]: memref<3x8xf32>)
// CHECK-DAG: %[[IN:.*]] = memref.collapse_shape %[[X]]
// CHECK-DAG: %[[OUT:.*]] = memref.collapse_shape %[[RESULT]]
// CHECK: gpu.launch_func @kernels::@views_0 blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%[[IN]] : memref<24xf32>, %[[OUT]] : memref<24xf32>)
// CHECK-NEXT: return
// CHECK: gpu.func @views_0(%[[ARG:.*]]: memref<24xf32> {kas_gpu.access = "read"}, %{{.*}}: memref<24xf32> {kas_gpu.access = "write"}) kernel
// CHECK: arith.cmpi ult, %{{.*}}, %c24
// CHECK: %[[EXISTS:.*]] = arith.cmpi ult, %{{.*}}, %c4
// CHECK: %[[ADDRESS:.*]] = arith.select %[[EXISTS]], %{{.*}}, %c0
// CHECK: %[[VALUE:.*]] = memref.load %[[ARG]][%[[ADDRESS]]]
// CHECK: %[[SELECTED:.*]] = arith.select %[[EXISTS]], %[[VALUE]], %cst
// CHECK: arith.negf %[[SELECTED]]
func.func @views(%x: tensor<4x6xf32>) -> tensor<3x8xf32> {
  %one = arith.constant 1.0 : f32
  %empty = tensor.empty() : tensor<6x4xf32>
  %transposed = linalg.transpose ins(%x : tensor<4x6xf32>) outs(%empty : tensor<6x4xf32>) permutation = [1, 0]
  %slice = tensor.extract_slice %transposed[1, 0] [4, 4] [1, 1] : tensor<6x4xf32> to tensor<4x4xf32>
  %padded = tensor.pad %slice low[1, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %one : f32
  } : tensor<4x4xf32> to tensor<6x4xf32>
  %flat = tensor.collapse_shape %padded [[0, 1]] : tensor<6x4xf32> into tensor<24xf32>
  %matrix = tensor.expand_shape %flat [[0, 1]] output_shape [3, 8] : tensor<24xf32> into tensor<3x8xf32>
  %out = tensor.empty() : tensor<3x8xf32>
  %y = linalg.negf ins(%matrix : tensor<3x8xf32>) outs(%out : tensor<3x8xf32>) -> tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}

// -----

// A contraction is computed as that of an operator; the same one twice is one kernel.
// CHECK-LABEL: func @products
// CHECK: gpu.launch_func @kernels::@products_0
// CHECK: gpu.launch_func @kernels::@products_0
// CHECK-NEXT: return
// CHECK: gpu.func @products_0
// CHECK: scf.for
// CHECK: math.fma
// CHECK-NOT: gpu.func
func.func @products(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x64xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%zeros : tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = linalg.matmul ins(%y, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%zeros : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %z : tensor<64x64xf32>
}

// -----

// The window of a pooling says how often loops run; nothing reads it. What it begins with is inside of the kernel.
// CHECK-LABEL: func @pooling
// CHECK: gpu.launch_func @kernels::@pooling_0 {{.*}} args(%{{.*}} : memref<64xf32>, %{{.*}} : memref<16xf32>)
// CHECK: gpu.func @pooling_0
// CHECK: %[[LEAST:.*]] = arith.constant 0xFF800000 : f32
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[LEAST]])
// CHECK: scf.for
// CHECK: arith.maximumf
func.func @pooling(%x: tensor<1x1x8x8xf32>) -> tensor<1x1x4x4xf32> {
  %least = arith.constant 0xFF800000 : f32
  %window = tensor.empty() : tensor<2x2xf32>
  %empty = tensor.empty() : tensor<1x1x4x4xf32>
  %init = linalg.fill ins(%least : f32) outs(%empty : tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  %y = linalg.pooling_nchw_max {strides = dense<2> : vector<2xi64>}
    ins(%x, %window : tensor<1x1x8x8xf32>, tensor<2x2xf32>) outs(%init : tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  return %y : tensor<1x1x4x4xf32>
}

// -----

// Constants that are not the same everywhere are buffers of the program: here 1, 2, 3 and 4.
// CHECK-LABEL: func @constant
// CHECK: memref.get_global
// MANIFEST: \22kind\22:\22constant\22,\22dtype\22:\22f32\22,\22shape\22:[4],\22bytes\22:16,\22data\22:\22AACAPwAAAEAAAEBAAACAQA==\22
func.func @constant(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %y = linalg.add ins(%x, %w : tensor<4xf32>, tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Several results of one operation, written in the order of its loops.
// CHECK-LABEL: func @results
// CHECK: gpu.launch_func {{.*}} args(%{{.*}} : memref<6xf32>, %{{.*}} : memref<6xf32>, %{{.*}} : memref<6xf32>)
// CHECK-NEXT: return
func.func @results(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3x2xf32>) {
  %a = tensor.empty() : tensor<2x3xf32>
  %b = tensor.empty() : tensor<3x2xf32>
  %y:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>,
                                          affine_map<(d0, d1) -> (d1, d0)>],
                         iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<2x3xf32>) outs(%a, %b : tensor<2x3xf32>, tensor<3x2xf32>) {
  ^bb0(%in: f32, %out: f32, %other: f32):
    %minus = arith.negf %in : f32
    %twice = arith.addf %in, %in : f32
    linalg.yield %minus, %twice : f32, f32
  } -> (tensor<2x3xf32>, tensor<3x2xf32>)
  return %y#0, %y#1 : tensor<2x3xf32>, tensor<3x2xf32>
}
