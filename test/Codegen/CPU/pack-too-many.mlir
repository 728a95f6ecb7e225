// Sums of more products than 64 bits count are left as they are.
// RUN: kas-opt %s -kas-pack-contractions='prepacked=true' | FileCheck %s
// RUN: kas-opt %s -kas-pack-contractions='threads=1' | FileCheck %s

// CHECK: linalg.matmul
func.func @too_many(%a: memref<5x2147483648xf32>, %b: memref<2147483648x2147483648xf32>, %o: memref<5x2147483648xf32>) {
  linalg.matmul ins(%a, %b : memref<5x2147483648xf32>, memref<2147483648x2147483648xf32>) outs(%o : memref<5x2147483648xf32>)
  return
}
