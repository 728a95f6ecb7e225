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

kas.kernel @d3_cumsum<C> (%in: [C]) -> [C] {
  // expected-error@+1 {{requires a dimension from 0 to 0 (D3), got 1}}
  %y = kas.dag.cumsum %in dim 1 : [C]
  kas.dag.output %y : [C]
}

// -----

kas.kernel @d3_scan<C, L> (%in: [C | L]) -> [C | L] {
  // expected-error@+1 {{requires a dimension from 0 to 1 (D3), got -1}}
  %y = kas.dag.scan %in, %in dim -1 : [C | L], [C | L]
  kas.dag.output %y : [C | L]
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

kas.kernel @d2_norm<H> (%in: [| H]) -> [| H] {
  // expected-error@+1 {{requires at least one channel dimension (D2), got none}}
  %y = kas.dag.norm %in : [| H]
  kas.dag.output %y : [| H]
}

// -----

kas.kernel @d2_amplify<H> (%in: [| H]) -> [| H] {
  // expected-error@+1 {{requires at least one channel dimension (D2), got none}}
  %y = kas.dag.amplify %in by 2 of 3 : [| H]
  kas.dag.output %y : [2, 3 | H]
}

// -----

kas.kernel @d5_pool_channel<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires spatial dimensions from 1 to 1 (D5), got 0}}
  %y = kas.dag.pool max %in dims [0] by [2] : [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @d5_pool_windows<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires 1 windows (D5), got 2}}
  %y = kas.dag.pool max %in dims [1] by [2, 2] : [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @d5_conv_none<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires at least one spatial dimension (D5), got none}}
  %y = kas.dag.conv %in dims [] by [] to C : [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @d5_conv_windows<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires 1 windows (D5), got 0}}
  %y = kas.dag.conv %in dims [1] by [] to C : [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @d5_generic<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{array of sizes}}
  %y = "kas.dag.pool"(%in) <{kind = 0 : i32, dims = array<i64: 1>, windows = [2]}> : (!kas.tensor<[C | H]>) -> !kas.tensor<[C | H]>
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @d6_conv<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires a dilation of at least 1 (D6), got -1}}
  %y = kas.dag.conv %in dims [1] by [3] dilation -1 to C : [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @d8_conv<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires from 0 to 1 channel dimensions that are groups (D8), got 2}}
  %y = kas.dag.conv %in groups 2 dims [1] by [3] to C : [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @d9_mix<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires different dimensions (D9), got 1 twice}}
  %y = kas.dag.mix %in dims [1, 1] to [H, H] : [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @d13_mix<C, H> (%in: [C | H]) -> [C | H] {
  // expected-error@+1 {{requires 1 new sizes (D13), got 2}}
  %y = kas.dag.mix %in dims [1] to [H, C] : [C | H]
  kas.dag.output %in : [C | H]
}

// -----

kas.kernel @d14_one<C> (%in: [C]) -> [C] {
  // expected-error@+1 {{requires a rate from 0 to below 1 (D14), got 1.0}}
  %y = kas.dag.dropout %in rate 1.0 : [C]
  kas.dag.output %y : [C]
}

// -----

kas.kernel @d14_negative<C> (%in: [C]) -> [C] {
  // expected-error@+1 {{requires a rate from 0 to below 1 (D14), got -1.0}}
  %y = kas.dag.dropout %in rate -1.0 : [C]
  kas.dag.output %y : [C]
}

// -----

kas.kernel @d14_nan<C> (%in: [C]) -> [C] {
  // expected-error@+1 {{requires a rate from 0 to below 1 (D14), got 0x7FF8}}
  %y = kas.dag.dropout %in rate 0x7FF8000000000000 : [C]
  kas.dag.output %y : [C]
}

// -----

kas.kernel @d15_input(%in: [12 | 5]) -> [8 | 5] {
  // expected-error@+1 {{requires at most as many blocks as copies, 2 (D15), got 3}}
  %y = kas.dag.amplify %in by 2 of 4 : [12 | 5]
  kas.dag.output %y : [2, 4 | 5]
}

// -----

kas.kernel @d15_output<X, Y | A, C> where [C divides X, C divides Y] (%in: [X]) -> [Y]
    bindings [<A = 2, C = 4, X = 8, Y = 8>, <A = 1, C = 4, X = 4, Y = 8>] {
  %y = kas.dag.amplify %in by A of C : [X]
  // expected-error@+1 {{requires at most as many blocks as copies, 1 (D15), got 2}}
  kas.dag.output %y average A of C : [A, C]
}

// -----

kas.kernel @k3_amplify<X | A, C> (%in: [X]) -> [X] {
  // expected-error@+1 {{requires sizes that are integers (K3), got 'X/C'}}
  %y = kas.dag.amplify %in by A of C : [X]
  kas.dag.output %y average A of C : [A, C]
}

// -----

kas.kernel @k3_average<X | A, C> (%in: [A, C]) -> [X] {
  // expected-error@+1 {{requires sizes that are integers (K3), got 'X/C'}}
  kas.dag.output %in average A of C : [A, C]
}

// -----

kas.kernel @k4_average<X | A, C> where [C divides X] (%in: [X]) -> [X] {
  // expected-error@+1 {{requires as many elements as the result, 'A*C' (K4), got 'X'}}
  kas.dag.output %in average A of C : [X]
}

// -----

kas.kernel @average_half<X | A> (%in: [X]) -> [X] {
  // expected-error@+1 {{requires the number of blocks and their channels, or neither, got one of them}}
  "kas.dag.output"(%in) <{copies = #kas.size<A>}> : (!kas.tensor<[X]>) -> ()
}

// -----

kas.kernel @k3_pool<H> (%in: [| H]) -> [| H] {
  // expected-error@+1 {{requires sizes that are integers (K3), got 'H/2'}}
  %y = kas.dag.pool sum %in dims [0] by [2] : [| H]
  kas.dag.output %in : [| H]
}

// -----

kas.kernel @k3_conv<C, H | G> where [G divides C] (%in: [G, C | H]) -> [C | H] {
  // expected-error@+1 {{requires sizes that are integers (K3), got '3/G'}}
  %y = kas.dag.conv %in groups 1 dims [2] by [3] to 3 : [G, C | H]
  kas.dag.output %y : [3 | H]
}

// -----

kas.kernel @d16_none<C> (%in: [C]) -> [C] {
  // expected-error@+1 {{requires a kas.operator (D16), got '@missing'}}
  %y = kas.dag.apply @missing %in : [C] -> [C]
  kas.dag.output %y : [C]
}

// -----

kas.operator @linear<I, O> (%o: O) from [I] {
  %i = kas.reduce sum : I
  %d, %w = kas.share %i : I
  kas.yield data(%d) weight(%o, %w)
}

kas.kernel @d16_unbound<C> (%in: [C]) -> [C] {
  // expected-error@+1 {{requires a size for symbol 'O' of operator '@linear' (D16), got none}}
  %y = kas.dag.apply @linear<I = C> %in : [C] -> [C]
  kas.dag.output %y : [C]
}

// -----

kas.operator @linear<I, O> (%o: O) from [I] {
  %i = kas.reduce sum : I
  %d, %w = kas.share %i : I
  kas.yield data(%d) weight(%o, %w)
}

kas.kernel @d16_other<C> (%in: [C]) -> [C] {
  // expected-error@+1 {{requires symbols of operator '@linear' (D16), got 'k'}}
  %y = kas.dag.apply @linear<I = C, O = C, k = 3> %in : [C] -> [C]
  kas.dag.output %y : [C]
}

// -----

kas.operator @linear<I, O> (%o: O) from [I] {
  %i = kas.reduce sum : I
  %d, %w = kas.share %i : I
  kas.yield data(%d) weight(%o, %w)
}

kas.kernel @d16_twice<C> (%in: [C]) -> [C] {
  // expected-error@+1 {{requires one size for each symbol (D16), got 'I' twice}}
  %y = kas.dag.apply @linear<I = C, I = C, O = C> %in : [C] -> [C]
  kas.dag.output %y : [C]
}

// -----

kas.operator @linear<I, O> (%o: O) from [I] {
  %i = kas.reduce sum : I
  %d, %w = kas.share %i : I
  kas.yield data(%d) weight(%o, %w)
}

kas.kernel @d17_data<C> (%in: [C]) -> [C] {
  // expected-error@+1 {{requires the sizes of the data of operator '@linear' (D17), [#kas.size<2*C>], got '!kas.tensor<[C]>'}}
  %y = kas.dag.apply @linear<I = 2*C, O = C> %in : [C] -> [C]
  kas.dag.output %y : [C]
}

// -----

kas.operator @linear<I, O> (%o: O) from [I] {
  %i = kas.reduce sum : I
  %d, %w = kas.share %i : I
  kas.yield data(%d) weight(%o, %w)
}

kas.kernel @d17_result<C> (%in: [C]) -> [C] {
  // expected-error@+1 {{requires the sizes of the output of operator '@linear' (D17), [#kas.size<C>], got '!kas.tensor<[2*C]>'}}
  %y = kas.dag.apply @linear<I = C, O = C> %in : [C] -> [2*C]
  kas.dag.output %in : [C]
}

// -----

kas.operator @rows<A, B | s> (%b: B) from [A, B] {
  %o = kas.reduce sum : A/s
  %i = kas.reduce sum : s
  %o_d, %o_w = kas.share %o : A/s
  %i_d, %i_w = kas.share %i : s
  %a = kas.split %o_d, %i_d : A/s, s
  kas.yield data(%a, %b) weight(%o_w, %i_w)
}

kas.kernel @d18_weight<C, D | g> (%in: [C, D]) -> [D] {
  // expected-error@+1 {{requires sizes of weights that are integers (D18), got #kas.size<C/g>}}
  %y = kas.dag.apply @rows<A = C, B = D, s = g> %in : [C, D] -> [D]
  kas.dag.output %y : [D]
}

// -----

kas.operator @rows<A, B | s> (%b: B) from [A, B] {
  // expected-note@+1 {{required here}}
  %o = kas.reduce sum : A/s
  %i = kas.reduce sum : s
  %o_d, %o_w = kas.share %o : A/s
  %i_d, %i_w = kas.share %i : s
  %a = kas.split %o_d, %i_d : A/s, s
  kas.yield data(%a, %b) weight(%o_w, %i_w)
}

kas.kernel @d18_binding<C, D | g> (%in: [C, D]) -> [D]
    bindings [<C = 4, D = 2, g = 2>, <C = 4, D = 2, g = 3>] {
  // expected-error@+1 {{requires a legal operator (D18)}}
  %y = kas.dag.apply @rows<A = C, B = D, s = g> %in : [C, D] -> [D]
  kas.dag.output %y : [D]
}

// -----

kas.kernel @d19_scan<C, L> (%a: [C], %in: [C | L]) -> [C | L] {
  // expected-error@+1 {{requires a factor of the input's shape (D19), '!kas.tensor<[C | L]>', got '!kas.tensor<[C]>'}}
  %y = kas.dag.scan %a, %in dim 1 : [C], [C | L]
  kas.dag.output %y : [C | L]
}

// -----

kas.kernel @d20_shift<C, L> (%in: [C | L]) -> [C | L] {
  // expected-error@+1 {{requires a negative shift amount for a causal shift (D20), got 1}}
  %y = kas.dag.shift %in dim 1 by 1 causal : [C | L]
  kas.dag.output %y : [C | L]
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
