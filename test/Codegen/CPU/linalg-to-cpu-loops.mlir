// RUN: kas-opt %s -kas-linalg-to-cpu-loops=min-parallel-work=1000 -canonicalize | FileCheck %s
// RUN: kas-opt %s -kas-linalg-to-cpu-loops=threads=1 -canonicalize | FileCheck %s --check-prefix=SERIAL
// RUN: kas-opt %s -kas-linalg-to-cpu-loops='threads=3 min-parallel-work=6272' -canonicalize | FileCheck %s --check-prefix=SHARED

// The columns, which lie one beside the other, are stepped through innermost,
// inside the reduction; the rows are done in parallel.
// CHECK-LABEL: func.func @matmul
// CHECK:         scf.parallel (%[[I:.*]]) =
// CHECK:           scf.for %[[K:.*]] =
// CHECK:             scf.for %[[J:.*]] =
// CHECK:               memref.load %{{.*}}[%[[I]], %[[K]]]
// CHECK:               memref.load %{{.*}}[%[[K]], %[[J]]]
// CHECK:               memref.store %{{.*}}, %{{.*}}[%[[I]], %[[J]]]
// SERIAL-LABEL: func.func @matmul
// SERIAL-NOT:   scf.parallel
func.func @matmul(%a: memref<16x32xf32>, %b: memref<32x64xf32>, %c: memref<16x64xf32>) {
  linalg.matmul ins(%a, %b : memref<16x32xf32>, memref<32x64xf32>) outs(%c : memref<16x64xf32>)
  return
}

// Too little work for threads.
// CHECK-LABEL: func.func @small
// CHECK-NOT:     scf.parallel
func.func @small(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
  linalg.copy ins(%x : memref<4x8xf32>) outs(%y : memref<4x8xf32>)
  return
}

// A loop that runs once is no loop to share: the next one is.
// CHECK-LABEL: func.func @unit
// CHECK:         scf.parallel
func.func @unit(%x: memref<1x64x64xf32>, %y: memref<1x64x64xf32>) {
  linalg.copy ins(%x : memref<1x64x64xf32>) outs(%y : memref<1x64x64xf32>)
  return
}

// Two images for three threads: the channels are shared with them, the columns are not.
// SHARED-LABEL: func.func @images
// SHARED:         scf.parallel (%{{.*}}, %{{.*}}) = (%{{.*}}, %{{.*}}) to (%c2, %c32)
// SHARED:           scf.for
// SHARED:             scf.for
// SERIAL-LABEL: func.func @images
// SERIAL-NOT:   scf.parallel
func.func @images(%x: memref<2x32x16x64xf32>, %y: memref<2x32x16x64xf32>) {
  linalg.copy ins(%x : memref<2x32x16x64xf32>) outs(%y : memref<2x32x16x64xf32>)
  return
}

// One loop of those that all operands step through as if they were one, so that
// lines of any width have whole vectors; threads share the outer ones.
// SERIAL-LABEL: func.func @elementwise
// SERIAL-DAG:     %[[PLANE:.*]] = arith.constant 49 : index
// The index of a place is not divided into those of line and column.
// SERIAL-DAG:     memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [8, 16, 49], strides: [784, 49, 1]
// SERIAL:         scf.for
// SERIAL:           scf.for
// SERIAL:             scf.for {{.*}} to %[[PLANE]]
// SERIAL-NOT:           scf.for
// SERIAL:               arith.addf
// SHARED-LABEL: func.func @elementwise
// SHARED-DAG:     %[[PLANE:.*]] = arith.constant 49 : index
// SHARED-DAG:     memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [8, 16, 49], strides: [784, 49, 1]
// SHARED:         scf.parallel (%{{.*}}, %{{.*}}) = (%{{.*}}, %{{.*}}) to (%c8, %c16)
// SHARED:           scf.for {{.*}} to %[[PLANE]]
// SHARED-NOT:         scf.for
// SHARED:             arith.addf
#all = affine_map<(n, c, h, w) -> (n, c, h, w)>
#channel = affine_map<(n, c, h, w) -> (c)>
func.func @elementwise(%x: memref<8x16x7x7xf32>, %b: memref<16xf32>, %y: memref<8x16x7x7xf32>) {
  linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %b : memref<8x16x7x7xf32>, memref<16xf32>) outs(%y : memref<8x16x7x7xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %sum = arith.addf %in, %bias : f32
    linalg.yield %sum : f32
  }
  return
}

// So they are where there is one image, whose channels are shared.
// SHARED-LABEL: func.func @one_image
// SHARED-DAG:     %[[CHANNELS:.*]] = arith.constant 240 : index
// SHARED-DAG:     %[[PLANE:.*]] = arith.constant 196 : index
// SHARED:         scf.parallel (%{{.*}}) = (%{{.*}}) to (%[[CHANNELS]])
// SHARED:           scf.for {{.*}} to %[[PLANE]]
// SHARED-NOT:         scf.for
// SHARED:             math.exp
func.func @one_image(%x: memref<1x240x14x14xf32>, %y: memref<1x240x14x14xf32>) {
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : memref<1x240x14x14xf32>) outs(%y : memref<1x240x14x14xf32>) {
  ^bb0(%in: f32, %out: f32):
    %e = math.exp %in : f32
    linalg.yield %e : f32
  }
  return
}

// Reductions next to one another are one loop, too, but not with a loop that is none.
// SERIAL-LABEL: func.func @sums
// SERIAL-DAG:     %[[ROWS:.*]] = arith.constant 128 : index
// SERIAL-DAG:     %[[PLACES:.*]] = arith.constant 49 : index
// SERIAL:         scf.for {{.*}} to %[[ROWS]]
// SERIAL:           scf.for {{.*}} to %[[PLACES]]
// SERIAL-NOT:         scf.for
// SERIAL:             arith.addf
// SHARED-LABEL: func.func @sums
// SHARED:           scf.for {{.*}} to %c49
// SHARED-NOT:         scf.for
// SHARED:             arith.addf
#row = affine_map<(n, c, h, w) -> (n, c)>
func.func @sums(%x: memref<8x16x7x7xf32>, %y: memref<8x16xf32>, %z: memref<8x16xf32>) {
  linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x : memref<8x16x7x7xf32>) outs(%y, %z : memref<8x16xf32>, memref<8x16xf32>) {
  ^bb0(%in: f32, %out: f32, %squares: f32):
    %sum = arith.addf %out, %in fastmath<reassoc> : f32
    %square = arith.mulf %in, %in : f32
    %0 = arith.addf %squares, %square fastmath<reassoc> : f32
    linalg.yield %sum, %0 : f32, f32
  }
  return
}

// Nine images for three threads: the loops inside need not be left for them.
// SHARED-LABEL: func.func @balanced
// SHARED:         scf.parallel (%{{.*}}) = (%{{.*}}) to (%c9)
// SHARED:           scf.for {{.*}} to %c38416
// SHARED-NOT:         scf.for
// SHARED:             arith.addf
func.func @balanced(%x: memref<9x16x49x49xf32>, %y: memref<9x16x49x49xf32>) {
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : memref<9x16x49x49xf32>) outs(%y : memref<9x16x49x49xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %in : f32
    linalg.yield %sum : f32
  }
  return
}

// The lines of a part of an image do not lie side by side.
// SERIAL-LABEL: func.func @part
// SERIAL-NOT:     memref.reinterpret_cast
func.func @part(%x: memref<8x16x6xf32>, %y: memref<8x16x6xf32, strided<[128, 8, 1]>>) {
  linalg.copy ins(%x : memref<8x16x6xf32>) outs(%y : memref<8x16x6xf32, strided<[128, 8, 1]>>)
  return
}

// LLVM makes calls of the C library of the lines of fills and copies.
// SERIAL-LABEL: func.func @fill
// SERIAL-COUNT-3: scf.for
// SERIAL-LABEL: func.func @short
func.func @fill(%value: f32, %y: memref<8x16x6xf32>) {
  linalg.fill ins(%value : f32) outs(%y : memref<8x16x6xf32>)
  return
}

// LLVM would unroll 16 steps before it thinks of vectors; 64 it leaves alone.
// CHECK-LABEL: func.func @short
// CHECK:         {loop_annotation = #loop_annotation}
// CHECK-LABEL: func.func @long
// CHECK-NOT:     loop_annotation
func.func @short(%a: memref<16x32xf32>, %b: memref<32x16xf32>, %c: memref<16x16xf32>) {
  linalg.matmul ins(%a, %b : memref<16x32xf32>, memref<32x16xf32>) outs(%c : memref<16x16xf32>)
  return
}
func.func @long(%a: memref<16x32xf32>, %b: memref<32x64xf32>, %c: memref<16x64xf32>) {
  linalg.matmul ins(%a, %b : memref<16x32xf32>, memref<32x64xf32>) outs(%c : memref<16x64xf32>)
  return
}

// A sum along the innermost loop may be added up in parts, one of several lines in each column not.
//
// CHECK-LABEL: func.func @row_sums(
// CHECK:         arith.addf %{{.*}}, %{{.*}} fastmath<reassoc> : f32
// CHECK-LABEL: func.func @column_sums(
// CHECK:         arith.addf %{{[^ ]*}}, %{{[^ ]*}} : f32
func.func @row_sums(%x: memref<8x64xf32>, %y: memref<8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<8x64xf32>) outs(%y : memref<8xf32>) {
    ^bb0(%a: f32, %s: f32):
      %t = arith.addf %a, %s : f32
      linalg.yield %t : f32
  }
  return
}

func.func @column_sums(%x: memref<8x64xf32>, %y: memref<64xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<8x64xf32>) outs(%y : memref<64xf32>) {
    ^bb0(%a: f32, %s: f32):
      %t = arith.addf %a, %s : f32
      linalg.yield %t : f32
  }
  return
}

// Blocks of a vector times a vector, in registers; the last block of 20 rows begins four rows earlier. Along the longer lines.
// SERIAL-LABEL: func.func @transpose
// SERIAL:         scf.for
// SERIAL:           scf.for
// SERIAL-COUNT-8:     vector.load
// SERIAL:             vector.shuffle
// SERIAL-COUNT-8:     vector.store
// SERIAL-NOT:     memref.load
func.func @transpose(%x: memref<20x4x8xf32>, %y: memref<4x8x20xf32>) {
  linalg.transpose ins(%x : memref<20x4x8xf32>) outs(%y : memref<4x8x20xf32>) permutation = [1, 2, 0]
  return
}

// Many matrices: threads share them.
// SHARED-LABEL: func.func @transposes
// SHARED:         scf.parallel
// SHARED:           vector.shuffle
func.func @transposes(%x: memref<6x32x64xf32>, %y: memref<6x64x32xf32>) {
  linalg.transpose ins(%x : memref<6x32x64xf32>) outs(%y : memref<6x64x32xf32>) permutation = [0, 2, 1]
  return
}

// One matrix: they share its blocks, and one of them does the last, which overlaps.
// SHARED-LABEL: func.func @one_matrix
// SHARED:         scf.parallel (%{{.*}}) = (%c0) to (%c12) step (%c1)
// SHARED:           scf.for
// SHARED:             vector.shuffle
// SHARED:           scf.reduce
// SHARED:         scf.for
// SHARED:           vector.shuffle
// SHARED-NOT:     scf.parallel
// SHARED:         return
func.func @one_matrix(%x: memref<100x256xf32>, %y: memref<256x100xf32>) {
  linalg.transpose ins(%x : memref<100x256xf32>) outs(%y : memref<256x100xf32>) permutation = [1, 0]
  return
}

// What is no matrix, has no place for a vector, or other elements is copied one by one.
// SERIAL-LABEL: func.func @other_transposes
// SERIAL-NOT:     vector
// SERIAL:         return
func.func @other_transposes(%x: memref<16x16x16xf32>, %y: memref<16x16x16xf32>, %s: memref<4x64xf32>, %t: memref<64x4xf32>,
                            %h: memref<32x32xf16>, %i: memref<32x32xf16>) {
  linalg.transpose ins(%x : memref<16x16x16xf32>) outs(%y : memref<16x16x16xf32>) permutation = [2, 1, 0]
  linalg.transpose ins(%s : memref<4x64xf32>) outs(%t : memref<64x4xf32>) permutation = [1, 0]
  linalg.transpose ins(%h : memref<32x32xf16>) outs(%i : memref<32x32xf16>) permutation = [1, 0]
  return
}

// A maximum along the innermost loop stays one operation, which LLVM takes in
// vectors; in another loop it need not.
// CHECK-LABEL: func.func @maximum
// CHECK:         llvm.intr.maximum(%{{.*}}, %{{.*}})
func.func @maximum(%x: memref<4x100xf32>, %y: memref<4xf32>) {
  linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x100xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.maximumf %in, %out : f32
    linalg.yield %0 : f32
  }
  return
}

// CHECK-LABEL: func.func @minimum
// CHECK:         llvm.intr.minimum(%{{.*}}, %{{.*}})
func.func @minimum(%x: memref<4x100xf32>, %y: memref<4xf32>) {
  linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x100xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.minimumf %out, %in : f32
    linalg.yield %0 : f32
  }
  return
}

// CHECK-LABEL: func.func @maximum_of_rows
// CHECK:         arith.maximumf
func.func @maximum_of_rows(%x: memref<4x100xf32>, %y: memref<100xf32>) {
  linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>],
      iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<4x100xf32>) outs(%y : memref<100xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.maximumf %in, %out : f32
    linalg.yield %0 : f32
  }
  return
}

// Dimensions of size 1 of the result do not keep an image from being one loop.

// SERIAL-LABEL: func.func @mean(
// SERIAL-DAG:     %[[SIZE:.*]] = arith.constant 49 : index
// SERIAL-DAG:     %[[SUMS:.*]] = memref.subview %{{.*}}[0, 0, 0, 0] [2, 4, 1, 1] [1, 1, 1, 1] : memref<2x4x1x1xf32>
// SERIAL:         %[[LINE:.*]] = memref.collapse_shape %[[SUMS]] {{\[\[}}0, 1]]
// SERIAL:         scf.for %[[PLANE:.*]] =
// SERIAL:           scf.for %{{.*}} = %{{.*}} to %[[SIZE]]
// SERIAL-NOT:         scf.for
// SERIAL:             arith.addf {{.*}} fastmath<reassoc>
// SERIAL-NEXT:        memref.store %{{.*}}, %[[LINE]][%[[PLANE]]]
func.func @mean(%x: memref<2x4x7x7xf32>, %y: memref<2x4x1x1xf32>) {
  linalg.generic {
      indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, 0, 0)>],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x : memref<2x4x7x7xf32>) outs(%y : memref<2x4x1x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %out : f32
    linalg.yield %0 : f32
  }
  return
}
