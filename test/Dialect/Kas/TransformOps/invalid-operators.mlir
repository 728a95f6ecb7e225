// RUN: kas-opt %s --split-input-file -transform-interpreter -verify-diagnostics

// Operators of the kas dialect as targets.

// T2: iterators are output coordinates, then reductions.
module attributes {transform.with_named_sequence} {
  kas.operator @conv2d<N, Cin, Cout, H, W | k>
      (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
    %c = kas.reduce sum : Cin
    %i = kas.reduce sum : k
    %j = kas.reduce sum : k
    %c_d, %c_w = kas.share %c : Cin
    %i_d, %i_w = kas.share %i : k
    %j_d, %j_w = kas.share %j : k
    %y = kas.unfold %h, %i_d : H, k
    %x = kas.unfold %w, %j_d : W, k
    kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
  }
  func.func @f(%x: tensor<1x4x6x6xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32> {
    // expected-note@below {{target operation}}
    %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32>
    return %y : tensor<1x8x6x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires an iterator from 0 to 6, got 7}}
    %r = transform.kas.group %op iterators [1, 7] by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T2.
module attributes {transform.with_named_sequence} {
  kas.operator @conv2d<N, Cin, Cout, H, W | k>
      (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
    %c = kas.reduce sum : Cin
    %i = kas.reduce sum : k
    %j = kas.reduce sum : k
    %c_d, %c_w = kas.share %c : Cin
    %i_d, %i_w = kas.share %i : k
    %j_d, %j_w = kas.share %j : k
    %y = kas.unfold %h, %i_d : H, k
    %x = kas.unfold %w, %j_d : W, k
    kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
  }
  func.func @f(%x: tensor<1x4x6x6xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32> {
    // expected-note@below {{target operation}}
    %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32>
    return %y : tensor<1x8x6x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires two iterators, got 4 twice}}
    %r = transform.kas.group %op iterators [4, 4] by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T2.
module attributes {transform.with_named_sequence} {
  kas.operator @conv2d<N, Cin, Cout, H, W | k>
      (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
    %c = kas.reduce sum : Cin
    %i = kas.reduce sum : k
    %j = kas.reduce sum : k
    %c_d, %c_w = kas.share %c : Cin
    %i_d, %i_w = kas.share %i : k
    %j_d, %j_w = kas.share %j : k
    %y = kas.unfold %h, %i_d : H, k
    %x = kas.unfold %w, %j_d : W, k
    kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
  }
  func.func @f(%x: tensor<1x4x6x6xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32> {
    // expected-note@below {{target operation}}
    %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32>
    return %y : tensor<1x8x6x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires an iterator from 0 to 6, got -1}}
    %r = transform.kas.restrict %op iterator -1 from 1 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T2: channels are not found where there is no weight.
module attributes {transform.with_named_sequence} {
  kas.operator @pool(%n: 1, %c: 4, %h: 6) from [1, 4, 12] {
    %i = kas.reduce mean : 2
    %y = kas.split %h, %i : 6, 2
    kas.yield data(%n, %c, %y)
  }
  func.func @f(%x: tensor<1x4x12xf32>) -> tensor<1x4x6xf32> {
    // expected-note@below {{target operation}}
    %y = kas.apply @pool(%x) : (tensor<1x4x12xf32>) -> tensor<1x4x6xf32>
    return %y : tensor<1x4x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires iterators, or an operator with one output coordinate that indexes weights alone}}
    %r = transform.kas.depthwise %op : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T3.
module attributes {transform.with_named_sequence} {
  kas.operator @conv2d<N, Cin, Cout, H, W | k>
      (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
    %c = kas.reduce sum : Cin
    %i = kas.reduce sum : k
    %j = kas.reduce sum : k
    %c_d, %c_w = kas.share %c : Cin
    %i_d, %i_w = kas.share %i : k
    %j_d, %j_w = kas.share %j : k
    %y = kas.unfold %h, %i_d : H, k
    %x = kas.unfold %w, %j_d : W, k
    kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
  }
  func.func @f(%x: tensor<1x4x6x6xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32> {
    // expected-note@below {{target operation}}
    %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32>
    return %y : tensor<1x8x6x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires a reduction among the iterators, got parallel ones alone}}
    %r = transform.kas.group %op iterators [0, 1] by 1 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T4.
module attributes {transform.with_named_sequence} {
  kas.operator @conv2d<N, Cin, Cout, H, W | k>
      (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
    %c = kas.reduce sum : Cin
    %i = kas.reduce sum : k
    %j = kas.reduce sum : k
    %c_d, %c_w = kas.share %c : Cin
    %i_d, %i_w = kas.share %i : k
    %j_d, %j_w = kas.share %j : k
    %y = kas.unfold %h, %i_d : H, k
    %x = kas.unfold %w, %j_d : W, k
    kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
  }
  func.func @f(%x: tensor<1x4x6x6xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32> {
    // expected-note@below {{target operation}}
    %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32>
    return %y : tensor<1x8x6x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires a number of groups that divides the 4 points of iterator 4, got 8}}
    %r = transform.kas.group %op by 8 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T4.
module attributes {transform.with_named_sequence} {
  kas.operator @conv2d<N, Cin, Cout, H, W | k>
      (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
    %c = kas.reduce sum : Cin
    %i = kas.reduce sum : k
    %j = kas.reduce sum : k
    %c_d, %c_w = kas.share %c : Cin
    %i_d, %i_w = kas.share %i : k
    %j_d, %j_w = kas.share %j : k
    %y = kas.unfold %h, %i_d : H, k
    %x = kas.unfold %w, %j_d : W, k
    kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
  }
  func.func @f(%x: tensor<1x4x6x6xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32> {
    // expected-note@below {{target operation}}
    %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32>
    return %y : tensor<1x8x6x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires at least 1 group, got 0}}
    %r = transform.kas.group %op by 0 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T6.
module attributes {transform.with_named_sequence} {
  kas.operator @conv2d<N, Cin, Cout, H, W | k>
      (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
    %c = kas.reduce sum : Cin
    %i = kas.reduce sum : k
    %j = kas.reduce sum : k
    %c_d, %c_w = kas.share %c : Cin
    %i_d, %i_w = kas.share %i : k
    %j_d, %j_w = kas.share %j : k
    %y = kas.unfold %h, %i_d : H, k
    %x = kas.unfold %w, %j_d : W, k
    kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
  }
  func.func @f(%x: tensor<1x4x6x6xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32> {
    // expected-note@below {{target operation}}
    %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32>
    return %y : tensor<1x8x6x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires as many points of iterator 1 as of iterator 4 (4), got 8}}
    %r = transform.kas.depthwise %op : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T7.
module attributes {transform.with_named_sequence} {
  kas.operator @conv2d<N, Cin, Cout, H, W | k>
      (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
    %c = kas.reduce sum : Cin
    %i = kas.reduce sum : k
    %j = kas.reduce sum : k
    %c_d, %c_w = kas.share %c : Cin
    %i_d, %i_w = kas.share %i : k
    %j_d, %j_w = kas.share %j : k
    %y = kas.unfold %h, %i_d : H, k
    %x = kas.unfold %w, %j_d : W, k
    kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
  }
  func.func @f(%x: tensor<1x4x6x6xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32> {
    // expected-note@below {{target operation}}
    %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32>
    return %y : tensor<1x8x6x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires a factor that divides the 4 points of iterator 4, got 3}}
    %r = transform.kas.bottleneck %op iterator 4 by 3 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T10.
module attributes {transform.with_named_sequence} {
  kas.operator @conv2d<N, Cin, Cout, H, W | k>
      (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
    %c = kas.reduce sum : Cin
    %i = kas.reduce sum : k
    %j = kas.reduce sum : k
    %c_d, %c_w = kas.share %c : Cin
    %i_d, %i_w = kas.share %i : k
    %j_d, %j_w = kas.share %j : k
    %y = kas.unfold %h, %i_d : H, k
    %x = kas.unfold %w, %j_d : W, k
    kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
  }
  func.func @f(%x: tensor<1x4x6x6xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32> {
    // expected-note@below {{target operation}}
    %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32>
    return %y : tensor<1x8x6x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires a reduction, got parallel iterator 1}}
    %r = transform.kas.restrict %op iterator 1 from 1 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T11.
module attributes {transform.with_named_sequence} {
  kas.operator @conv2d<N, Cin, Cout, H, W | k>
      (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
    %c = kas.reduce sum : Cin
    %i = kas.reduce sum : k
    %j = kas.reduce sum : k
    %c_d, %c_w = kas.share %c : Cin
    %i_d, %i_w = kas.share %i : k
    %j_d, %j_w = kas.share %j : k
    %y = kas.unfold %h, %i_d : H, k
    %x = kas.unfold %w, %j_d : W, k
    kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
  }
  func.func @f(%x: tensor<1x4x6x6xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32> {
    // expected-note@below {{target operation}}
    %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32>
    return %y : tensor<1x8x6x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires a part of the 4 points of iterator 4, got 0 from 4 on}}
    %r = transform.kas.restrict %op iterator 4 from 4 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T12: a reduction.
module attributes {transform.with_named_sequence} {
  kas.operator @conv2d<N, Cin, Cout, H, W | k>
      (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
    %c = kas.reduce sum : Cin
    %i = kas.reduce sum : k
    %j = kas.reduce sum : k
    %c_d, %c_w = kas.share %c : Cin
    %i_d, %i_w = kas.share %i : k
    %j_d, %j_w = kas.share %j : k
    %y = kas.unfold %h, %i_d : H, k
    %x = kas.unfold %w, %j_d : W, k
    kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
  }
  func.func @f(%x: tensor<1x4x6x6xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32> {
    // expected-note@below {{target operation}}
    %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32>
    return %y : tensor<1x8x6x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires a parallel iterator, got reduction 4}}
    %r = transform.kas.slabs %op iterator 4 by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T12: output channels index weights.
module attributes {transform.with_named_sequence} {
  kas.operator @conv2d<N, Cin, Cout, H, W | k>
      (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
    %c = kas.reduce sum : Cin
    %i = kas.reduce sum : k
    %j = kas.reduce sum : k
    %c_d, %c_w = kas.share %c : Cin
    %i_d, %i_w = kas.share %i : k
    %j_d, %j_w = kas.share %j : k
    %y = kas.unfold %h, %i_d : H, k
    %x = kas.unfold %w, %j_d : W, k
    kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
  }
  func.func @f(%x: tensor<1x4x6x6xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32> {
    // expected-note@below {{target operation}}
    %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32>
    return %y : tensor<1x8x6x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires an iterator that goes to the data by strides and unfolds alone, got 'kas.yield'}}
    %r = transform.kas.slabs %op iterator 1 by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T12.
module attributes {transform.with_named_sequence} {
  kas.operator @pool(%n: 1, %c: 4, %h: 6) from [1, 4, 12] {
    %i = kas.reduce mean : 2
    %y = kas.split %h, %i : 6, 2
    kas.yield data(%n, %c, %y)
  }
  func.func @f(%x: tensor<1x4x12xf32>) -> tensor<1x4x6xf32> {
    // expected-note@below {{target operation}}
    %y = kas.apply @pool(%x) : (tensor<1x4x12xf32>) -> tensor<1x4x6xf32>
    return %y : tensor<1x4x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires an iterator that goes to the data by strides and unfolds alone, got 'kas.split'}}
    %r = transform.kas.slabs %op iterator 2 by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T14.
module attributes {transform.with_named_sequence} {
  kas.operator @conv2d<N, Cin, Cout, H, W | k>
      (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
    %c = kas.reduce sum : Cin
    %i = kas.reduce sum : k
    %j = kas.reduce sum : k
    %c_d, %c_w = kas.share %c : Cin
    %i_d, %i_w = kas.share %i : k
    %j_d, %j_w = kas.share %j : k
    %y = kas.unfold %h, %i_d : H, k
    %x = kas.unfold %w, %j_d : W, k
    kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
  }
  func.func @f(%x: tensor<1x4x6x6xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32> {
    // expected-note@below {{target operation}}
    %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32>
    return %y : tensor<1x8x6x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires a number of slabs that divides the 6 points of a coordinate, got 4}}
    %r = transform.kas.slabs %op iterator 2 by 4 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T16: no weight.
module attributes {transform.with_named_sequence} {
  kas.operator @pool(%n: 1, %c: 4, %h: 6) from [1, 4, 12] {
    %i = kas.reduce mean : 2
    %y = kas.split %h, %i : 6, 2
    kas.yield data(%n, %c, %y)
  }
  func.func @f(%x: tensor<1x4x12xf32>) -> tensor<1x4x6xf32> {
    // expected-note@below {{target operation}}
    %y = kas.apply @pool(%x) : (tensor<1x4x12xf32>) -> tensor<1x4x6xf32>
    return %y : tensor<1x4x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires an input besides the data, got none}}
    %r = transform.kas.new_weights %op : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T17.
module attributes {transform.with_named_sequence} {
  kas.operator @conv2d<N, Cin, Cout, H, W | k>
      (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
    %c = kas.reduce sum : Cin
    %i = kas.reduce sum : k
    %j = kas.reduce sum : k
    %c_d, %c_w = kas.share %c : Cin
    %i_d, %i_w = kas.share %i : k
    %j_d, %j_w = kas.share %j : k
    %y = kas.unfold %h, %i_d : H, k
    %x = kas.unfold %w, %j_d : W, k
    kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
  }
  func.func @f(%x: tensor<1x4x6x6xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32> {
    // expected-note@below {{target operation}}
    %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32>
    return %y : tensor<1x8x6x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires an operator whose data one of the iterators indexes, got one whose data both index}}
    %r = transform.kas.group %op iterators [2, 5] by 3 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T17: kinds.
module attributes {transform.with_named_sequence} {
  kas.operator @twice(%h: 4) from [4, 4] {
    %i = kas.reduce sum : 4
    %j = kas.reduce max : 4
    %a, %b = kas.share %i : 4
    %c, %d = kas.share %a : 4
    kas.yield data(%h, %c) weight(%b, %j) weight(%d)
  }
  func.func @f(%x: tensor<4x4xf32>, %v: tensor<4x4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
    // expected-note@below {{target operation}}
    %y = kas.apply @twice(%x, %v, %w) : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires reductions of one kind}}
    %r = transform.kas.group %op iterators [1, 2] by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T18: part of a window.
module attributes {transform.with_named_sequence} {
  kas.operator @conv2d<N, Cin, Cout, H, W | k>
      (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
    %c = kas.reduce sum : Cin
    %i = kas.reduce sum : k
    %j = kas.reduce sum : k
    %c_d, %c_w = kas.share %c : Cin
    %i_d, %i_w = kas.share %i : k
    %j_d, %j_w = kas.share %j : k
    %y = kas.unfold %h, %i_d : H, k
    %x = kas.unfold %w, %j_d : W, k
    kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
  }
  func.func @f(%x: tensor<1x4x6x6xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32> {
    // expected-note@below {{target operation}}
    %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32>
    return %y : tensor<1x8x6x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires a part of the window with its point 1, got 1 from 0 on}}
    %r = transform.kas.bottleneck %op iterator 5 by 3 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// T18: neither the data nor a window.
module attributes {transform.with_named_sequence} {
  kas.operator @pool(%n: 1, %c: 4, %h: 6) from [1, 4, 12] {
    %i = kas.reduce mean : 2
    %y = kas.split %h, %i : 6, 2
    kas.yield data(%n, %c, %y)
  }
  func.func @f(%x: tensor<1x4x12xf32>) -> tensor<1x4x6xf32> {
    // expected-note@below {{target operation}}
    %y = kas.apply @pool(%x) : (tensor<1x4x12xf32>) -> tensor<1x4x6xf32>
    return %y : tensor<1x4x6xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["kas.apply"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error@below {{requires a reduction that indexes the data by itself or is the window of an unfold, got one that goes to 'kas.split'}}
    %r = transform.kas.bottleneck %op iterator 3 by 2 : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
