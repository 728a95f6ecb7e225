// Vectors along the rows whose steps are cut into parts, so that what all tiles of a part read stays in the first-level cache, one of 2 KiB here;
// and lines that are cut into tiles of two sizes.
// RUN: kas-opt %s -kas-cpu-pipeline="threads=1 prepack-weights=true" --remarks-filter=kas-panels -o /dev/null 2>&1 | FileCheck %s --check-prefix=PLAN
// RUN: kas-opt %s -kas-specialize -kas-pack-operators="threads=1 prepacked" | FileCheck %s

// RUN: kas-run %s --function=pixels --check=exact --threads=1
// RUN: kas-run %s --function=pixels --check=exact --threads=2
// RUN: kas-run %s --function=window --check=exact --threads=1
// RUN: kas-run %s --function=window --check=exact --threads=2
// RUN: kas-run %s --function=joined_rows --check=exact --threads=1
// RUN: kas-run %s --function=line --check=exact --threads=1
// With a larger cache there are no parts.
// RUN: sed 's/"L1_cache_size_in_bytes" = 2048/"L1_cache_size_in_bytes" = 65536/' %s > %t.mlir
// RUN: kas-run %s --function=residual --check=%t.mlir --threads=1
// RUN: kas-run %s --function=residual --check=%t.mlir --threads=2

#cpu = #dlti.target_device_spec<"max_vector_op_width" = 256 : i64, "arithmetic_vector_width" = 256 : i64,
    "vector_registers" = 16 : i64, "L1_cache_size_in_bytes" = 2048 : i64, "L2_cache_size_in_bytes" = 524288 : i64,
    "fused_multiply_add" = true>
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"CPU" = #cpu>,
                   llvm.target = #llvm.target<triple = "x86_64-unknown-linux-gnu", chip = "x86-64-v3">} {

kas.operator @conv<N, Cin, Cout, H, W | k, s>
    (%n: N, %o: Cout, %h: H/s, %w: W/s) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %h_s = kas.stride %h by s : H/s
  %w_s = kas.stride %w by s : W/s
  %y = kas.unfold %h_s, %i_d : H, k
  %x = kas.unfold %w_s, %j_d : W, k
  kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
}

// The last part has fewer steps than the others, and the last block of rows fewer rows.
// PLAN: RowVectors{{.*}} balanced=true, {{.*}} stepParts=5,
// CHECK-LABEL: func.func @pixels(
// The sums of 16 rows wait for 169 columns.
// CHECK:         %[[WAITING:.*]] = memref.alloc() {{.*}} : memref<2704xf32>
// CHECK:         scf.for %[[PART:.*]] = %{{.*}} to %c5{{(_[0-9]+)?}} step
// CHECK:           %[[LOWER:.*]] = arith.minsi %{{.*}}, %c58
// CHECK:           %[[UPPER:.*]] = arith.minsi %{{.*}}, %c58
// CHECK:           %[[FIRST:.*]] = arith.cmpi eq, %[[PART]], %c0
// CHECK:           scf.if %[[FIRST]] -> (
// CHECK:           } else {
// CHECK:             vector.load %[[WAITING]]
// CHECK:           scf.for %{{.*}} = %[[LOWER]] to %[[UPPER]] step {{.*}} iter_args
// CHECK:             vector.fma
// CHECK:           %[[LAST:.*]] = arith.cmpi eq, %[[PART]], %c4
// CHECK:           scf.if %[[LAST]] {
// CHECK:           } else {
// CHECK:             vector.store %{{.*}}, %[[WAITING]]
func.func @pixels(%x: tensor<1x58x13x13xf32>, %w: tensor<28x58x1x1xf32>) -> tensor<1x28x13x13xf32> {
  %y = kas.apply @conv<k = 1, s = 1>(%x, %w) {kas_cpu.schedule = #kas_cpu.schedule<strategy = row_vectors, columns = 5, vectors = 2>} : (tensor<1x58x13x13xf32>, tensor<28x58x1x1xf32>) -> tensor<1x28x13x13xf32>
  return %y : tensor<1x28x13x13xf32>
}

// PLAN: RowVectors{{.*}} balanced=true, {{.*}} stepParts={{[2-9]}},
func.func @window(%x: tensor<2x12x9x9xf32>, %w: tensor<48x12x3x3xf32>) -> tensor<2x48x9x9xf32> {
  %y = kas.apply @conv<k = 3, s = 1>(%x, %w) {kas_cpu.schedule = #kas_cpu.schedule<strategy = row_vectors, columns = 5, vectors = 2>} : (tensor<2x12x9x9xf32>, tensor<48x12x3x3xf32>) -> tensor<2x48x9x9xf32>
  return %y : tensor<2x48x9x9xf32>
}

// Whole rows of the image in a tile, and a smaller tile of what is left.
// PLAN: RowVectors{{.*}} balanced=false, {{.*}} stepParts={{[2-9]}},
func.func @joined_rows(%x: tensor<1x12x15x2xf32>, %w: tensor<16x12x3x3xf32>) -> tensor<1x16x15x2xf32> {
  %y = kas.apply @conv<k = 3, s = 1>(%x, %w) {kas_cpu.schedule = #kas_cpu.schedule<strategy = row_vectors, columns = 6, vectors = 2>} : (tensor<1x12x15x2xf32>, tensor<16x12x3x3xf32>) -> tensor<1x16x15x2xf32>
  return %y : tensor<1x16x15x2xf32>
}

// A tile of five columns and two of four.
// PLAN: RowVectors | Category:kas-panels | balanced=true, {{.*}}registerColumns=5, registerVectors=2,{{.*}} stepParts=1,
func.func @line(%x: tensor<1x1x13x13xf32>, %w: tensor<16x1x3x3xf32>) -> tensor<1x16x13x13xf32> {
  %y = kas.apply @conv<k = 3, s = 1>(%x, %w) {kas_cpu.schedule = #kas_cpu.schedule<strategy = row_vectors, columns = 5, vectors = 2>} : (tensor<1x1x13x13xf32>, tensor<16x1x3x3xf32>) -> tensor<1x16x13x13xf32>
  return %y : tensor<1x16x13x13xf32>
}

// What the result may overwrite is read once, at the end, and the bias at the begin.
// PLAN: RowVectors{{.*}} balanced=true, {{.*}} stepParts={{[2-9]}},
// PLAN: RowVectors{{.*}} balanced=true, {{.*}} stepParts={{[2-9]}},
func.func @residual(%x: tensor<1x58x11x11xf32>, %v: tensor<40x58x1x1xf32>, %w: tensor<40x58x1x1xf32>, %b: tensor<40xf32>) -> tensor<1x40x11x11xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x40x11x11xf32>
  %bias = linalg.broadcast ins(%b : tensor<40xf32>) outs(%empty : tensor<1x40x11x11xf32>) dimensions = [0, 2, 3]
  %r = linalg.conv_2d_nchw_fchw {kas_cpu.schedule = #kas_cpu.schedule<strategy = row_vectors, columns = 6, vectors = 2>}
      ins(%x, %v : tensor<1x58x11x11xf32>, tensor<40x58x1x1xf32>) outs(%bias : tensor<1x40x11x11xf32>) -> tensor<1x40x11x11xf32>
  %y = linalg.conv_2d_nchw_fchw {kas_cpu.schedule = #kas_cpu.schedule<strategy = row_vectors, columns = 6, vectors = 2>}
      ins(%x, %w : tensor<1x58x11x11xf32>, tensor<40x58x1x1xf32>) outs(%bias : tensor<1x40x11x11xf32>) -> tensor<1x40x11x11xf32>
  %s = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y, %r : tensor<1x40x11x11xf32>, tensor<1x40x11x11xf32>) outs(%empty : tensor<1x40x11x11xf32>) {
    ^bb0(%i: f32, %j: f32, %o: f32):
      %m = arith.addf %i, %j : f32
      %m2 = arith.maximumf %m, %zero : f32
      linalg.yield %m2 : f32
  } -> tensor<1x40x11x11xf32>
  return %s : tensor<1x40x11x11xf32>
}
}
