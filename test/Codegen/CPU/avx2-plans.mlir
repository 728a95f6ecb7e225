// Tiles of layers of ResNet and the like on vectors of 256 bits, each the fastest of those that were timed or within a
// tenth of it. A change of these plans is one of purpose.
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v3 -kas-cpu-pipeline="threads=1 prepack-weights=true" --remarks-filter=kas-panels -o /dev/null 2>&1 | FileCheck %s

// Four vectors of weights for two columns would take longer to come from the second-level cache than to be multiplied,
// and panels would be put together of masked loads.
// Weights of a part of the steps stay in the first-level cache.
// CHECK: balanced=true, {{.*}}strategy = row_vectors, columns = 4, vectors = 3>", stepParts=7,
func.func @short_lines(%x: tensor<1x256x14x14xf32>, %w: tensor<256x256x3x3xf32>) -> tensor<1x256x14x14xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<1x256x14x14xf32> to tensor<1x256x16x16xf32>
  %empty = tensor.empty() : tensor<1x256x14x14xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x256x14x14xf32>) -> tensor<1x256x14x14xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%padded, %w : tensor<1x256x16x16xf32>, tensor<256x256x3x3xf32>)
      outs(%init : tensor<1x256x14x14xf32>) -> tensor<1x256x14x14xf32>
  return %y : tensor<1x256x14x14xf32>
}

// The same with a stride of 2, and lines that vectors do not divide: no panels.
// CHECK: strategy = row_vectors
func.func @strided_lines(%x: tensor<1x128x56x56xf32>, %w: tensor<128x128x3x3xf32>) -> tensor<1x128x28x28xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<1x128x56x56xf32> to tensor<1x128x58x58xf32>
  %empty = tensor.empty() : tensor<1x128x28x28xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x128x28x28xf32>) -> tensor<1x128x28x28xf32>
  %y = linalg.conv_2d_nchw_fchw {strides = dense<2> : tensor<2xi64>}
      ins(%padded, %w : tensor<1x128x58x58xf32>, tensor<128x128x3x3xf32>)
      outs(%init : tensor<1x128x28x28xf32>) -> tensor<1x128x28x28xf32>
  return %y : tensor<1x128x28x28xf32>
}

// Data of 3.2 MB, of which every second element of every second line is used: panels read it once, although they compute
// no sum of a residual.
// CHECK: strategy = panels
func.func @downsample(%x: tensor<1x256x56x56xf32>, %w: tensor<512x256x1x1xf32>, %b: tensor<512xf32>, %old: tensor<1x512x28x28xf32>)
    -> tensor<1x512x28x28xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x512x28x28xf32>
  %init = linalg.broadcast ins(%b : tensor<512xf32>) outs(%empty : tensor<1x512x28x28xf32>) dimensions = [0, 2, 3]
  %y = linalg.conv_2d_nchw_fchw {strides = dense<2> : tensor<2xi64>}
      ins(%x, %w : tensor<1x256x56x56xf32>, tensor<512x256x1x1xf32>)
      outs(%init : tensor<1x512x28x28xf32>) -> tensor<1x512x28x28xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>,
                                        affine_map<(n, c, h, w) -> (n, c, h, w)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y, %old : tensor<1x512x28x28xf32>, tensor<1x512x28x28xf32>) outs(%empty : tensor<1x512x28x28xf32>) {
  ^bb0(%sum: f32, %more: f32, %out: f32):
    %added = arith.addf %sum, %more : f32
    %kept = arith.maximumf %added, %zero : f32
    linalg.yield %kept : f32
  } -> tensor<1x512x28x28xf32>
  return %z : tensor<1x512x28x28xf32>
}

// Weights of 4 MB for 49 columns: vectors along the rows fetch them ahead.
// CHECK: balanced=true, {{.*}}strategy = row_vectors, columns = {{4, vectors = 3|6, vectors = 2}}>", stepParts=1{{[01]}},
func.func @many_weights(%x: tensor<1x2048x7x7xf32>, %w: tensor<512x2048x1x1xf32>) -> tensor<1x512x7x7xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x512x7x7xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x512x7x7xf32>) -> tensor<1x512x7x7xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x2048x7x7xf32>, tensor<512x2048x1x1xf32>)
      outs(%init : tensor<1x512x7x7xf32>) -> tensor<1x512x7x7xf32>
  return %y : tensor<1x512x7x7xf32>
}

// Pairs of i16, few channels in and out: no time for transposing sums.
// CHECK: strategy = direct
func.func @few_bytes(%x: tensor<1x16x112x112xi8>, %w: tensor<64x16x1x1xi8>) -> tensor<1x64x112x112xf32> {
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<1x64x112x112xi32>
  %init = linalg.fill ins(%zero : i32) outs(%empty : tensor<1x64x112x112xi32>) -> tensor<1x64x112x112xi32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(n, o, h, w, c) -> (n, c, h, w)>, affine_map<(n, o, h, w, c) -> (o, c, 0, 0)>,
                       affine_map<(n, o, h, w, c) -> (n, o, h, w)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x16x112x112xi8>, tensor<64x16x1x1xi8>) outs(%init : tensor<1x64x112x112xi32>) {
  ^bb0(%a: i8, %b: i8, %sum: i32):
    %d = arith.extui %a : i8 to i32
    %e = arith.extsi %b : i8 to i32
    %p = arith.muli %d, %e : i32
    %s = arith.addi %sum, %p : i32
    linalg.yield %s : i32
  } -> tensor<1x64x112x112xi32>
  %floats = tensor.empty() : tensor<1x64x112x112xf32>
  %z = linalg.generic {
      indexing_maps = [affine_map<(n, o, h, w) -> (n, o, h, w)>, affine_map<(n, o, h, w) -> (n, o, h, w)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y : tensor<1x64x112x112xi32>) outs(%floats : tensor<1x64x112x112xf32>) {
  ^bb0(%a: i32, %b: f32):
    %f = arith.sitofp %a : i32 to f32
    linalg.yield %f : f32
  } -> tensor<1x64x112x112xf32>
  return %z : tensor<1x64x112x112xf32>
}
