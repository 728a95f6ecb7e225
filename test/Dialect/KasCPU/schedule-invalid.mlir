// RUN: kas-opt %s -split-input-file -verify-diagnostics -kas-pack-contractions="threads=1 vector-bits=512"

// C1: a negative number
func.func @c1_0(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf32>) {
  // expected-error@below {{expected rows of at least 0, got -1}}
  linalg.matmul {kas_cpu.schedule = #kas_cpu.schedule<strategy = panels, rows = -1>}
    ins(%a, %b : memref<64x64xf32>, memref<64x64xf32>) outs(%c : memref<64x64xf32>)
  return
}

// -----

// C2: columns of panels
func.func @c2_1(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf32>) {
  // expected-error@below {{expected no columns for panels, got 2}}
  linalg.matmul {kas_cpu.schedule = #kas_cpu.schedule<strategy = panels, columns = 2>}
    ins(%a, %b : memref<64x64xf32>, memref<64x64xf32>) outs(%c : memref<64x64xf32>)
  return
}

// -----

// C2: a tile without panels
func.func @c2_2(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf32>) {
  // expected-error@below {{expected no tile for direct tiles, got 64}}
  linalg.matmul {kas_cpu.schedule = #kas_cpu.schedule<strategy = direct, tile = 64>}
    ins(%a, %b : memref<64x64xf32>, memref<64x64xf32>) outs(%c : memref<64x64xf32>)
  return
}

// -----

// C2: a depth without panels
func.func @c2_3(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf32>) {
  // expected-error@below {{expected no depth for direct tiles, got 8}}
  linalg.matmul {kas_cpu.schedule = #kas_cpu.schedule<strategy = direct, depth = 8>}
    ins(%a, %b : memref<64x64xf32>, memref<64x64xf32>) outs(%c : memref<64x64xf32>)
  return
}

// -----

// C2: rows of row vectors
func.func @c2_4(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf32>) {
  // expected-error@below {{expected no rows for row vectors, got 4}}
  linalg.matmul {kas_cpu.schedule = #kas_cpu.schedule<strategy = row_vectors, rows = 4>}
    ins(%a, %b : memref<64x64xf32>, memref<64x64xf32>) outs(%c : memref<64x64xf32>)
  return
}

// -----

// C2: a tile of row vectors
func.func @c2_5(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf32>) {
  // expected-error@below {{expected no tile for row vectors, got 64}}
  linalg.matmul {kas_cpu.schedule = #kas_cpu.schedule<strategy = row_vectors, tile = 64>}
    ins(%a, %b : memref<64x64xf32>, memref<64x64xf32>) outs(%c : memref<64x64xf32>)
  return
}

// -----

// C3: another kind
func.func @c3_4(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf32>) {
  // expected-error@below {{expected a #kas_cpu.schedule as kas_cpu.schedule, got 4 : i64}}
  linalg.matmul {kas_cpu.schedule = 4 : i64}
    ins(%a, %b : memref<64x64xf32>, memref<64x64xf32>) outs(%c : memref<64x64xf32>)
  return
}

// -----

// C4: another operation
// expected-error@below {{expected kas_cpu.schedule on a kas.apply or a linalg operation, got func.func}}
func.func private @other() attributes {kas_cpu.schedule = #kas_cpu.schedule<strategy = direct>}

// -----

// A name that the dialect does not know
// expected-error@below {{expected no attribute of this dialect but kas_cpu.schedule, kas_cpu.batch_parts, kas_cpu.batch_version and kas_cpu.serial, got kas_cpu.plan}}
func.func private @unknown() attributes {kas_cpu.plan = #kas_cpu.schedule<strategy = direct>}

// -----

// Fit: the tile does not divide
func.func @fit_7(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf32>) {
  // expected-error@below {{expected an operation that suits #kas_cpu.schedule<strategy = panels, tile = 24>: expected a tile that divides the columns, such as 16, got 24}}
  linalg.matmul {kas_cpu.schedule = #kas_cpu.schedule<strategy = panels, tile = 24>}
    ins(%a, %b : memref<64x64xf32>, memref<64x64xf32>) outs(%c : memref<64x64xf32>)
  return
}

// -----

// Fit: the depth does not divide
func.func @fit_8(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf32>) {
  // expected-error@below {{expected a depth that divides the 64 iterations of the outermost reduction, got 5}}
  linalg.matmul {kas_cpu.schedule = #kas_cpu.schedule<strategy = panels, depth = 5>}
    ins(%a, %b : memref<64x64xf32>, memref<64x64xf32>) outs(%c : memref<64x64xf32>)
  return
}

// -----

// Fit: too many registers for panels
func.func @fit_9(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf32>) {
  // expected-error@below {{expected rows and vectors that fit 32 registers and the shape, got 20 times 2}}
  linalg.matmul {kas_cpu.schedule = #kas_cpu.schedule<strategy = panels, rows = 20, vectors = 2>}
    ins(%a, %b : memref<64x64xf32>, memref<64x64xf32>) outs(%c : memref<64x64xf32>)
  return
}

// -----

// Fit: too many registers for direct tiles
func.func @fit_10(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf32>) {
  // expected-error@below {{expected rows, columns and vectors that fit 32 registers and the shape, got 12 times 0 times 4}}
  linalg.matmul {kas_cpu.schedule = #kas_cpu.schedule<strategy = direct, rows = 12, vectors = 4>}
    ins(%a, %b : memref<64x64xf32>, memref<64x64xf32>) outs(%c : memref<64x64xf32>)
  return
}

// -----

// Fit: no row vectors of so many columns
func.func @fit_11(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf32>) {
  // expected-error@below {{expected columns and vectors that fit 32 registers and the shape, got 7 times 2}}
  linalg.matmul {kas_cpu.schedule = #kas_cpu.schedule<strategy = row_vectors, columns = 7, vectors = 2>}
    ins(%a, %b : memref<64x64xf32>, memref<64x64xf32>) outs(%c : memref<64x64xf32>)
  return
}
