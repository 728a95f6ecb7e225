// RUN: kas-opt %s --split-input-file -transform-interpreter -verify-diagnostics

// Not a structured operation.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<2x8xf32>) -> tensor<16xf32> {
    // expected-note@below {{target operation}}
    %y = tensor.collapse_shape %x [[0, 1]] : tensor<2x8xf32> into tensor<16xf32>
    return %y : tensor<16xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["tensor.collapse_shape"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires a structured operation or 'kas.apply', got 'tensor.collapse_shape'}}
    %r = transform.kas.group %op by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T1: static shapes.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<?x8xf32>, %w: tensor<8x4xf32>, %o: tensor<?x4xf32>) -> tensor<?x4xf32> {
    // expected-note@below {{target operation}}
    %y = linalg.matmul ins(%x, %w : tensor<?x8xf32>, tensor<8x4xf32>) outs(%o : tensor<?x4xf32>) -> tensor<?x4xf32>
    return %y : tensor<?x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires static shapes}}
    %r = transform.kas.group %op by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T1: tensors.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: memref<2x8xf32>, %w: memref<8x4xf32>, %o: memref<2x4xf32>) {
    // expected-note@below {{target operation}}
    linalg.matmul ins(%x, %w : memref<2x8xf32>, memref<8x4xf32>) outs(%o : memref<2x4xf32>)
    return
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires an operation on tensors with one result, got 0 results}}
    %r = transform.kas.group %op by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T1: no index.
module attributes {transform.with_named_sequence} {
  func.func @f(%o: tensor<4x4xindex>) -> tensor<4xindex> {
    %e = tensor.empty() : tensor<4xindex>
    // expected-note@below {{target operation}}
    %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
        iterator_types = ["parallel", "reduction"]} ins(%o : tensor<4x4xindex>) outs(%e : tensor<4xindex>) {
    ^bb0(%a: index, %b: index):
      %i = linalg.index 0 : index
      %s = arith.addi %i, %b : index
      linalg.yield %s : index
    } -> tensor<4xindex>
    return %y : tensor<4xindex>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.generic"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires a body without 'linalg.index'}}
    %r = transform.kas.bottleneck %op iterator 1 by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T2: in range.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>, %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    // expected-note@below {{target operation}}
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>)
        outs(%o : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires an iterator from 0 to 6, got 7}}
    %r = transform.kas.group %op iterators [1, 7] by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T2: two.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>, %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    // expected-note@below {{target operation}}
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>)
        outs(%o : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires two iterators, got 3}}
    %r = transform.kas.group %op iterators [1, 4, 5] by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T2: not negative.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>, %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    // expected-note@below {{target operation}}
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>)
        outs(%o : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires an iterator from 0 to 6, got -1}}
    %r = transform.kas.bottleneck %op iterator -1 by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T2: in range with more than 32 bits.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>, %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    // expected-note@below {{target operation}}
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>)
        outs(%o : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires an iterator from 0 to 6, got 4294967297}}
    %r = transform.kas.group %op iterators [4294967297, 4] by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T2: different.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>, %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    // expected-note@below {{target operation}}
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>)
        outs(%o : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires two iterators, got 4 twice}}
    %r = transform.kas.group %op iterators [4, 4] by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T2: known ones.
module attributes {transform.with_named_sequence} {
  func.func @f(%o: tensor<4x4xindex>) -> tensor<4xindex> {
    %e = tensor.empty() : tensor<4xindex>
    // expected-note@below {{target operation}}
    %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
        iterator_types = ["parallel", "reduction"]} ins(%o : tensor<4x4xindex>) outs(%e : tensor<4xindex>) {
    ^bb0(%a: index, %b: index):
      %i = linalg.index 0 : index
      %s = arith.addi %i, %b : index
      linalg.yield %s : index
    } -> tensor<4xindex>
    return %y : tensor<4xindex>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.generic"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires iterators, or a convolution or matrix product with one iterator each over output and input channels}}
    %r = transform.kas.depthwise %op : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T3: a reduction.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>, %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    // expected-note@below {{target operation}}
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>)
        outs(%o : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires a reduction among the iterators, got parallel ones alone}}
    %r = transform.kas.group %op iterators [1, 2] by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T4: at least 1.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>, %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    // expected-note@below {{target operation}}
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>)
        outs(%o : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires at least 1 group, got 0}}
    %r = transform.kas.group %op by 0 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T4: divides.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>, %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    // expected-note@below {{target operation}}
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>)
        outs(%o : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires a number of groups that divides the 12 points of iterator 1, got 8}}
    %r = transform.kas.group %op by 8 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T5: alone.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>, %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    // expected-note@below {{target operation}}
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>)
        outs(%o : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires dimensions that iterator 5 indexes alone, got d2 + d5}}
    %r = transform.kas.group %op iterators [1, 5] by 3 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T6: as many.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>, %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    // expected-note@below {{target operation}}
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>)
        outs(%o : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires as many points of iterator 1 as of iterator 4 (8), got 12}}
    %r = transform.kas.depthwise %op : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T7: divides.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>, %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    // expected-note@below {{target operation}}
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>)
        outs(%o : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires a factor that divides the 8 points of iterator 4, got 3}}
    %r = transform.kas.bottleneck %op iterator 4 by 3 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T8: positive factors.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<8x4xf32>, %w: tensor<8xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
    // expected-note@below {{target operation}}
    %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (7 - i, j)>, affine_map<(i, j) -> (i)>,
        affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
        ins(%x, %w : tensor<8x4xf32>, tensor<8xf32>) outs(%o : tensor<4xf32>) {
    ^bb0(%a: f32, %c: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      linalg.yield %s : f32
    } -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.generic"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires indices that are sums of iterators with positive factors, got}}
    %r = transform.kas.bottleneck %op iterator 0 by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T10: a reduction.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>, %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    // expected-note@below {{target operation}}
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>)
        outs(%o : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires a reduction, got parallel iterator 1}}
    %r = transform.kas.restrict %op iterator 1 from 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T11: points left.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>, %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    // expected-note@below {{target operation}}
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>)
        outs(%o : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires a part of the 8 points of iterator 4, got 0 from 8 on}}
    %r = transform.kas.restrict %op iterator 4 from 8 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T12: parallel.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>, %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    // expected-note@below {{target operation}}
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>)
        outs(%o : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires a parallel iterator, got reduction 4}}
    %r = transform.kas.slabs %op iterator 4 by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T12: of data and result.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>, %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    // expected-note@below {{target operation}}
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>)
        outs(%o : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires an iterator that indexes the first input and, alone, the result, got 1}}
    %r = transform.kas.slabs %op iterator 1 by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T13: one value.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>) -> tensor<1x12x6x6xf32> {
    %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%i: index, %j: index, %k: index, %l: index):
      %m = arith.index_cast %i : index to i32
      %v = arith.sitofp %m : i32 to f32
      tensor.yield %v : f32
    } : tensor<1x8x6x6xf32> to tensor<1x8x8x8xf32>
    %empty = tensor.empty() : tensor<1x12x6x6xf32>
    // expected-note@below {{target operation}}
    %y = linalg.conv_2d_nchw_fchw ins(%pad, %w : tensor<1x8x8x8xf32>, tensor<12x8x3x3xf32>)
        outs(%empty : tensor<1x12x6x6xf32>) -> tensor<1x12x6x6xf32>
    return %y : tensor<1x12x6x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires static padding with one value}}
    %r = transform.kas.slabs %op iterator 2 by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T14: divides.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>) -> tensor<1x12x6x6xf32> {
    %zero = arith.constant 0.0 : f32
    %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%i: index, %j: index, %k: index, %l: index):
      tensor.yield %zero : f32
    } : tensor<1x8x6x6xf32> to tensor<1x8x8x8xf32>
    %empty = tensor.empty() : tensor<1x12x6x6xf32>
    // expected-note@below {{target operation}}
    %y = linalg.conv_2d_nchw_fchw ins(%pad, %w : tensor<1x8x8x8xf32>, tensor<12x8x3x3xf32>)
        outs(%empty : tensor<1x12x6x6xf32>) -> tensor<1x12x6x6xf32>
    return %y : tensor<1x12x6x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires a number of slabs that divides the 6 inputs and 6 outputs, got 4}}
    %r = transform.kas.slabs %op iterator 2 by 4 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T14: enough inputs.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>, %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    // expected-note@below {{target operation}}
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>)
        outs(%o : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires padding by which 3 inputs give 2 outputs}}
    %r = transform.kas.slabs %op iterator 2 by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T15: not called.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>, %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    // expected-note@below {{target operation}}
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>)
        outs(%o : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  func.func @g(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>, %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    %y = call @f(%x, %w, %o)
        : (tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>, tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires a function that is not called around the operation, because its arguments change}}
    %r = transform.kas.new_weights %op : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T16: moved elements.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>, %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    %d = arith.addf %w, %w : tensor<12x8x3x3xf32>
    // expected-note@below {{target operation}}
    %y = linalg.conv_2d_nchw_fchw ins(%x, %d : tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>)
        outs(%o : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires weights that are made from arguments or constants, got input 1}}
    %r = transform.kas.new_weights %op : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// One integer per parameter.
module attributes {transform.with_named_sequence} {
  func.func @f(%x: tensor<1x8x6x6xf32>, %w: tensor<12x8x3x3xf32>, %o: tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32> {
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x6x6xf32>, tensor<12x8x3x3xf32>)
        outs(%o : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
    return %y : tensor<1x12x4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.conv_2d_nchw_fchw"]} in %root : (!transform.any_op) -> !transform.any_op
    %two = transform.param.constant 2 -> !transform.param<i64>
    %four = transform.merge_handles %two, %two : !transform.param<i64>
    // expected-error@below {{requires a parameter with one integer}}
    %r = transform.kas.group %op by %four : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
    transform.yield
  }
}
