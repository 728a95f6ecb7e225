// RUN: kas-opt %s -split-input-file -verify-diagnostics -kas-verify-lowering="lowered=lowered:conv1d"
// RUN: cat %kas_src_root/lib/Library/*.mlir %kas_src_root/test/Conversion/KasToLinalg/all-operators.mlir > %t.mlir
// RUN: kas-opt %t.mlir -kas-specialize -kas-to-affine=verify-lowering -o /dev/null 2>&1 | count 0
// RUN: kas-opt %t.mlir -kas-specialize -kas-to-affine="verify-lowering parallel min-parallel-work=1" -o /dev/null 2>&1 | count 0
// RUN: kas-opt %t.mlir -kas-specialize -kas-to-linalg=verify-lowering -o /dev/null 2>&1 | count 0
// RUN: kas-opt %t.mlir -kas-specialize -kas-to-linalg="verify-lowering named-ops=false" -o /dev/null 2>&1 | count 0
// RUN: kas-opt %t.mlir -kas-specialize -kas-rfactor=verify-lowering -kas-to-linalg=verify-lowering -o /dev/null 2>&1 | count 0

// All lowerings of all named operators are proven (above). Written by hand: the
// loops in another order, and a condition for the clipping.

kas.operator @conv1d(%o: 4, %h: 6) from [8, 6] {
  %c = kas.reduce sum : 8
  %k = kas.reduce sum : 3
  %c_d, %c_w = kas.share %c : 8
  %k_d, %k_w = kas.share %k : 3
  %x = kas.unfold %h, %k_d : 6, 3
  kas.yield data(%c_d, %x) weight(%o, %c_w, %k_w)
}

#inside = affine_set<(d0, d1) : (d0 + d1 - 1 >= 0, -d0 - d1 + 6 >= 0)>
func.func @lowered(%x: tensor<8x6xf32>, %w: tensor<4x8x3xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %bx = bufferization.to_buffer %x read_only : tensor<8x6xf32> to memref<8x6xf32>
  %bw = bufferization.to_buffer %w read_only : tensor<4x8x3xf32> to memref<4x8x3xf32>
  %by = memref.alloc() : memref<4x6xf32>
  affine.for %h = 0 to 6 {
    affine.for %o = 0 to 4 {
      %sum = affine.for %k = 0 to 3 iter_args(%a = %zero) -> f32 {
        %next = affine.if #inside(%h, %k) -> f32 {
          %all = affine.for %c = 0 to 8 iter_args(%b = %a) -> f32 {
            %v = affine.load %bx[%c, %h + %k - 1] : memref<8x6xf32>
            %u = affine.load %bw[%o, %c, %k] : memref<4x8x3xf32>
            %p = arith.mulf %u, %v : f32
            %s = arith.addf %p, %b : f32
            affine.yield %s : f32
          }
          affine.yield %all : f32
        } else {
          affine.yield %a : f32
        }
        affine.yield %next : f32
      }
      affine.store %sum, %by[%o, %h] : memref<4x6xf32>
    }
  }
  %y = bufferization.to_tensor %by restrict : memref<4x6xf32> to tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// -----

kas.operator @conv1d(%o: 4, %h: 6) from [8, 6] {
  %c = kas.reduce sum : 8
  %k = kas.reduce sum : 3
  %c_d, %c_w = kas.share %c : 8
  %k_d, %k_w = kas.share %k : 3
  %x = kas.unfold %h, %k_d : 6, 3
  kas.yield data(%c_d, %x) weight(%o, %c_w, %k_w)
}

// The padding is on one side.
func.func @lowered(%x: tensor<8x6xf32>, %w: tensor<4x8x3xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 2] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<8x6xf32> to tensor<8x8xf32>
  %e = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(o, h, c, k) -> (c, h + k)>, affine_map<(o, h, c, k) -> (o, c, k)>,
                       affine_map<(o, h, c, k) -> (o, h)>],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%p, %w : tensor<8x8xf32>, tensor<4x8x3xf32>) outs(%f : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<4x6xf32>
  // expected-error@below {{lowering of operator '@conv1d' requires 1 * data[0, 0] * weight 0[0, 0, 1] at output [0, 0], got 0 times that}}
  return %y : tensor<4x6xf32>
}

// -----

kas.operator @conv1d(%o: 4, %h: 6) from [8, 6] {
  %c = kas.reduce sum : 8
  %c_d, %c_w = kas.share %c : 8
  kas.yield data(%c_d, %h) weight(%o, %c_w)
}

// Half of the sum.
func.func @lowered(%x: tensor<8x6xf32>, %w: tensor<4x8xf32>) -> tensor<4x6xf32> {
  %half = arith.constant 0.5 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(o, h, c) -> (c, h)>, affine_map<(o, h, c) -> (o, c)>,
                       affine_map<(o, h, c) -> (o, h)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x6xf32>, tensor<4x8xf32>) outs(%f : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.mulf %m, %half : f32
    %t = arith.addf %s, %n : f32
    linalg.yield %t : f32
  } -> tensor<4x6xf32>
  // expected-error@below {{requires 1 * data[0, 0] * weight 0[0, 0] at output [0, 0], got 0.5 times that}}
  return %y : tensor<4x6xf32>
}

// -----

kas.operator @conv1d(%o: 4, %h: 6) from [8, 6] {
  %c = kas.reduce sum : 8
  %c_d, %c_w = kas.share %c : 8
  kas.yield data(%c_d, %h) weight(%o, %c_w)
}

// The initial value is left out.
func.func @lowered(%x: tensor<8x6xf32>, %w: tensor<4x8xf32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<4x6xf32>
  %y = linalg.matmul ins(%w, %x : tensor<4x8xf32>, tensor<8x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  // expected-error@below {{requires elements that something has written at output [0, 0], got one that nothing has}}
  return %y : tensor<4x6xf32>
}

// -----

kas.operator @conv1d(%o: 4, %h: 6) from [8, 6] {
  %c = kas.reduce sum : 8
  %c_d, %c_w = kas.share %c : 8
  kas.yield data(%c_d, %h) weight(%o, %c_w)
}

// One row of the output is left out.
func.func @lowered(%x: tensor<8x6xf32>, %w: tensor<4x8xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %bx = bufferization.to_buffer %x read_only : tensor<8x6xf32> to memref<8x6xf32>
  %bw = bufferization.to_buffer %w read_only : tensor<4x8xf32> to memref<4x8xf32>
  %by = memref.alloc() : memref<4x6xf32>
  affine.parallel (%o) = (0) to (3) {
    affine.for %h = 0 to 6 {
      %sum = affine.for %c = 0 to 8 iter_args(%a = %zero) -> f32 {
        %v = affine.load %bx[%c, %h] : memref<8x6xf32>
        %u = affine.load %bw[%o, %c] : memref<4x8xf32>
        %p = arith.mulf %u, %v : f32
        %s = arith.addf %p, %a : f32
        affine.yield %s : f32
      }
      affine.store %sum, %by[%o, %h] : memref<4x6xf32>
    }
  }
  %y = bufferization.to_tensor %by restrict : memref<4x6xf32> to tensor<4x6xf32>
  // expected-error@below {{requires elements that something has written at output [3, 0], got one that nothing has}}
  return %y : tensor<4x6xf32>
}

// -----

kas.operator @conv1d(%h: 6) from [6] {
  %k = kas.reduce max : 3
  %x = kas.unfold %h, %k : 6, 3
  kas.yield data(%x)
}

// A maximum with the zeros of a padding.
func.func @lowered(%x: tensor<6xf32>) -> tensor<6xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %p = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<6xf32> to tensor<8xf32>
  %e = tensor.empty() : tensor<6xf32>
  %w = tensor.empty() : tensor<3xf32>
  %f = linalg.fill ins(%lowest : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(h, k) -> (h + k)>, affine_map<(h, k) -> (k)>, affine_map<(h, k) -> (h)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%p, %w : tensor<8xf32>, tensor<3xf32>) outs(%f : tensor<6xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %t = arith.maximumf %s, %a : f32
    linalg.yield %t : f32
  } -> tensor<6xf32>
  // expected-error@below {{lowering of operator '@conv1d' cannot be compared with it: a maximum takes zero for points that do not exist}}
  return %y : tensor<6xf32>
}

// -----

kas.operator @conv1d(%h: 3, %k: 2) from [3, 4] {
  %r = kas.reduce max : 4
  %x = kas.unfold %h, %k low 1 : 3, 2
  kas.yield data(%x, %r)
}

// Minus infinity at output [0, 0], which has no points and must be 0.
func.func @lowered(%x: tensor<3x4xf32>) -> tensor<3x2xf32> {
  %lowest = arith.constant 0xFF800000 : f32
  %p = tensor.pad %x low[1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %lowest : f32
  } : tensor<3x4xf32> to tensor<4x4xf32>
  %e = tensor.empty() : tensor<3x2xf32>
  %f = linalg.fill ins(%lowest : f32) outs(%e : tensor<3x2xf32>) -> tensor<3x2xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(h, k, r) -> (h + k, r)>, affine_map<(h, k, r) -> (h, k)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p : tensor<4x4xf32>) outs(%f : tensor<3x2xf32>) {
  ^bb0(%a: f32, %s: f32):
    %t = arith.maximumf %s, %a : f32
    linalg.yield %t : f32
  } -> tensor<3x2xf32>
  // expected-error@below {{cannot be compared with it: a maximum may have no points for some outputs}}
  return %y : tensor<3x2xf32>
}

// -----

kas.operator @conv1d(%o: 4) from [6] {
  %c = kas.reduce sum : 6
  %c_d, %c_w = kas.share %c : 6
  kas.yield data(%c_d) weight(%o, %c_w)
}

// The store of a fifth row is out of bounds.
func.func @lowered(%x: tensor<6xf32>, %w: tensor<4x6xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %bx = bufferization.to_buffer %x read_only : tensor<6xf32> to memref<6xf32>
  %bw = bufferization.to_buffer %w read_only : tensor<4x6xf32> to memref<4x6xf32>
  %by = memref.alloc() : memref<4xf32>
  affine.for %o = 0 to 5 {
    %sum = affine.for %c = 0 to 6 iter_args(%a = %zero) -> f32 {
      %v = affine.load %bx[%c] : memref<6xf32>
      %u = affine.load %bw[%o, %c] : memref<4x6xf32>
      %p = arith.mulf %u, %v : f32
      %s = arith.addf %p, %a : f32
      affine.yield %s : f32
    }
    affine.store %sum, %by[%o] : memref<4xf32>
  }
  %y = bufferization.to_tensor %by restrict : memref<4xf32> to tensor<4xf32>
  // expected-error@below {{cannot be compared with it: a loop may store out of bounds}}
  return %y : tensor<4xf32>
}

// -----

kas.operator @conv1d(%o: 4) from [6] {
  %c = kas.reduce sum : 6
  %t = kas.shift %c by 1 : 6
  %j = kas.reduce sum : 5
  kas.yield data(%t) weight(%j) weight(%o)
}
kas.operator private @first(%o: 4) from [6] {
  %c = kas.reduce sum : 6
  %t = kas.shift %c by 2 : 6
  kas.yield data(%t) weight(%o)
}
kas.operator private @second(%o: 4) from [4] {
  %j = kas.reduce sum : 5
  kas.yield data(%o) weight(%j)
}

// The same terms in an order that is not tried.
func.func @lowered(%x: tensor<6xf32>, %v: tensor<5xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %z = kas.apply @first(%x, %w) : (tensor<6xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = kas.apply @second(%z, %v) : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>
  // expected-error@below {{cannot be compared with it: no order of its loops was found to be that of the reductions}}
  return %y : tensor<4xf32>
}

// -----

kas.operator @conv1d(%h: 6) from [6] {
  kas.yield data(%h)
}

func.func @lowered(%x: tensor<6xf32>) -> tensor<6xf32> {
  %y = math.exp %x : tensor<6xf32>
  // expected-error@below {{lowering of operator '@conv1d' cannot be compared with it: 'math.exp' cannot be compared}}
  return %y : tensor<6xf32>
}

// -----

kas.operator @conv1d(%h: 6) from [6] {
  kas.yield data(%h)
}

// expected-error@below {{requires a tensor of shape [6] for operator '@conv1d', got 'tensor<5xf32>'}}
func.func @lowered(%x: tensor<5xf32>) -> tensor<5xf32> {
  return %x : tensor<5xf32>
}

// -----

kas.operator @conv1d(%h: 6) from [6] {
  kas.yield data(%h)
}

// expected-error@below {{requires 1 arguments and a result, as operator '@conv1d', got 1 and 0}}
func.func @lowered(%x: tensor<6xf32>) {
  return
}

// -----

// expected-error@below {{requires a concrete operator (see -kas-specialize), got '@conv1d'}}
kas.operator @conv1d<N>(%h: N) from [N] {
  kas.yield data(%h)
}

func.func @lowered(%x: tensor<6xf32>) -> tensor<6xf32> {
  return %x : tensor<6xf32>
}
