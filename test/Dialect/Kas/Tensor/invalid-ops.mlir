// RUN: kas-opt %s -split-input-file -verify-diagnostics

// Violations of each numbered constraint on the ops of kernels.

kas.kernel @d1_group<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires one of the 1 channel dimensions (D1), got 1}}
  %y = kas.dag.group %in dim 1 by 2 : [C | H]
  kas.dag.output %y : [C | 2, H/2]
}

// -----

kas.kernel @d2_group_all<H> (%in: [| H]) -> [| H] {
  // expected-error@+1 {{requires at least one channel dimension (D2), got none}}
  %y = kas.dag.group_all %in : [| H]
  kas.dag.output %y : [| H]
}

// -----

kas.kernel @d3_shift<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires a dimension from 0 to 1 (D3), got 2}}
  %y = kas.dag.shift %in dim 2 by 1 : [C | H]
  kas.dag.output %y : [C | H]
}

// -----

kas.kernel @d3_shuffle<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires a dimension from 0 to 1 (D3), got -1}}
  %y = kas.dag.shuffle %in dim -1 by 1 : [C | H]
  kas.dag.output %y : [C | H]
}

// -----

kas.kernel @d3_reorder<C> (%in: [C]) -> [C] {
  // expected-error@+1 {{requires a dimension from 0 to 0 (D3), got 7}}
  %y = kas.dag.reorder %in dim 7 : [C]
  kas.dag.output %y : [C]
}

// -----

kas.kernel @d4_zero<C> (%in: [C]) -> [C] {
  // expected-error@+1 {{requires a shift amount d with 0 < |d| (D4), got 0}}
  %y = kas.dag.shift %in dim 0 by 0 : [C]
  kas.dag.output %y : [C]
}

// -----

kas.kernel @d4_binding<C> (%in: [C]) -> [C] bindings [<C = 8>, <C = 3>] {
  // expected-error@+1 {{requires a shift amount d with 0 < |d| < 3 (D4), got -4}}
  %y = kas.dag.shift %in dim 0 by -4 : [C]
  kas.dag.output %y : [C]
}

// -----

kas.kernel @d4_constant(%in: [1]) -> [1] {
  // expected-error@+1 {{requires a shift amount d with 0 < |d| < 1 (D4), got 1}}
  %y = kas.dag.shift %in dim 0 by 1 : [1]
  kas.dag.output %y : [1]
}

// -----

kas.kernel @d5_channel<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires spatial dimensions from 1 to 1 (D5), got 0}}
  %y = kas.dag.unfold %in dims [0] by [3] : [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @d5_twice<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires different spatial dimensions (D5), got 1 twice}}
  %y = kas.dag.unfold %in dims [1, 1] by [3, 3] : [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @d5_none<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires at least one spatial dimension (D5), got none}}
  %y = kas.dag.unfold %in dims [] by [] : [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @d5_windows<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires 1 windows (D5), got 2}}
  %y = kas.dag.unfold %in dims [1] by [3, 3] : [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @d6_dilation<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires a dilation of at least 1 (D6), got 0}}
  %y = kas.dag.unfold %in dims [1] by [3] dilation 0 : [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @d7_count<C, H, W> (%in: [C | H, W]) -> [C | H, W] {
  // expected-error@+1 {{requires two dimensions (D7), got 1}}
  %y = kas.dag.transpose %in dims [1] : [C | H, W]
  kas.dag.output %in : [C | H, W]
}

// -----

kas.kernel @d7_kinds<C, H, W> (%in: [C | H, W]) -> [C | H, W] {
  // expected-error@+1 {{requires two channel or two spatial dimensions (D7), got one of each}}
  %y = kas.dag.transpose %in dims [0, 1] : [C | H, W]
  kas.dag.output %in : [C | H, W]
}

// -----

kas.kernel @d8_groups<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires from 0 to 1 channel dimensions that are groups (D8), got 2}}
  %y = kas.dag.fc %in groups 2 to C : [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @d9_fold<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires at least one dimension (D9), got none}}
  %y = kas.dag.fold max %in dims [] : [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @d9_softmax<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires dimensions from 0 to 1 (D9), got 2}}
  %y = kas.dag.softmax %in dims [2] : [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @d9_scale<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires different dimensions (D9), got 0 twice}}
  %y = kas.dag.scale %in dims [0, 0] : [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @d10_count<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires two numbers of common dimensions (D10), got 1}}
  %y = kas.dag.broadcast add %in, %in common [1] : [C | H], [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @d10_too_many<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires at most 2 common dimensions (D10), got 2 and 1}}
  %y = kas.dag.broadcast add %in, %in common [2, 1] : [C | H], [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @d10_different<C, H> (%in: [C | H]) -> [C | H] {
  %a = kas.dag.fc %in to 1 : [C | H]
  // expected-error@+1 {{requires equal common dimensions (D10)}}
  %y = kas.dag.broadcast add %a, %in common [1, 1] : [1 | H], [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @d11_batch<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires from 0 to 1 channel dimensions as batch (D11), got 2}}
  %y = kas.dag.matmul %in, %in batch 2 : [C | H], [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @d11_different<C, H> (%in: [C | H]) -> [C | H] {
  %a = kas.dag.fc %in to 3 : [C | H]
  // expected-error@+1 {{requires equal batch dimensions (D11)}}
  %y = kas.dag.matmul %in, %a batch 1 : [C | H], [3 | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @d12_contracted<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires as many columns on the left as rows on the right (D12), got #kas.size<H> and #kas.size<C>}}
  %y = kas.dag.matmul %in, %in : [C | H], [C | H]
  kas.dag.output %in : [C | H]
}

// -----

func.func @outside(%in: !kas.tensor<[C]>) {
  // expected-error@+1 {{expects parent op 'kas.kernel'}}
  %y = kas.dag.unary relu %in : [C]
  return
}

// -----

// A shape without a bar has no spatial dimension, and may not end in one.
// expected-error@+1 {{expected a size: an integer, a symbol or '('}}
func.func private @type() -> !kas.tensor<[C |]>
