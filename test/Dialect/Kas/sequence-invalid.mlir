// RUN: kas-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{'kas.sequence' op J1: requires an operator at least, got none}}
kas.sequence @j1 [] between []

// -----

// expected-error @+1 {{'kas.sequence' op J1: requires kas.operators as stages, got @none}}
kas.sequence @j1_unknown [@none] between []

// -----

kas.operator @window<N, C, W | k>(%n: N, %c: C, %w: W) from [N, C, W] {
  %i = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %c_d, %c_w = kas.share %c : C
  %x = kas.unfold %w, %i_d : W, k
  kas.yield data(%n, %c_d, %x) weight(%c_w, %i_w)
}
// expected-error @+1 {{'kas.sequence' op J2: requires one step between each two of 2 stages, got 0}}
kas.sequence @j2 [@window, @window] between []

// -----

kas.operator @window<N, C, W | k>(%n: N, %c: C, %w: W) from [N, C, W] {
  %i = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %c_d, %c_w = kas.share %c : C
  %x = kas.unfold %w, %i_d : W, k
  kas.yield data(%n, %c_d, %x) weight(%c_w, %i_w)
}
// expected-error @+1 {{'kas.sequence' op J2: requires steps that there are, got number 9}}
"kas.sequence"() {sym_name = "j2_number", stages = [@window, @window], between = array<i32: 9>} : () -> ()

// -----

kas.operator @window<N, C, W | k>(%n: N, %c: C, %w: W) from [N, C, W] {
  %i = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %c_d, %c_w = kas.share %c : C
  %x = kas.unfold %w, %i_d : W, k
  kas.yield data(%n, %c_d, %x) weight(%c_w, %i_w)
}
kas.operator @row<W | k>(%w: W) from [W] {
  %i = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %x = kas.unfold %w, %i_d : W, k
  kas.yield data(%x) weight(%i_w)
}
// expected-error @+1 {{'kas.sequence' op J3: requires a stage whose data has the sizes of the result before it, got "row" after "window"}}
kas.sequence @j3 [@window, @row] between [none]

// -----

kas.operator @window<N, C, W | k>(%n: N, %c: C, %w: W) from [N, C, W] {
  %i = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %c_d, %c_w = kas.share %c : C
  %x = kas.unfold %w, %i_d : W, k
  kas.yield data(%n, %c_d, %x) weight(%c_w, %i_w)
}
kas.operator @other<N, C, W, k>(%n: N, %c: C, %w: W) from [N, C, W] {
  %i = kas.reduce sum : k
  kas.yield data(%n, %c, %w) weight(%i)
}
// expected-error @+1 {{'kas.sequence' op J4: requires symbols of one name to be all primary or all coefficients, got both for 'k'}}
kas.sequence @j4 [@window, @other] between [none]

// -----

kas.operator @row<W | k>(%w: W) from [W] {
  %i = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %x = kas.unfold %w, %i_d : W, k
  kas.yield data(%x) weight(%i_w)
}
// expected-error @+1 {{'kas.sequence' op J5: requires samples and channels to normalize, got a tensor of rank 1}}
kas.sequence @j5 [@row, @row] between [normalize]

// -----

kas.space @layers<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<C = 8, D = 4, N = 1, W = 12, k = 3> x 2]
kas.space @windows<N, C, M, W | k>
    [N, M unordered, W] from [N, C unordered, W]
    bindings [<C = 8, M = 8, N = 1, W = 12, k = 3> x 2]
kas.space @mixings<N, C, D, M, W>
    [N, D unordered, W] from [N, M unordered, W]
    bindings [<C = 8, D = 4, M = 8, N = 1, W = 12> x 2]
// expected-error @+1 {{'kas.sequence_space' op J6: requires a stage at least, got none}}
kas.sequence_space @j6 of @layers []
    between []

// -----

kas.space @layers<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<C = 8, D = 4, N = 1, W = 12, k = 3> x 2]
kas.space @windows<N, C, M, W | k>
    [N, M unordered, W] from [N, C unordered, W]
    bindings [<C = 8, M = 8, N = 1, W = 12, k = 3> x 2]
kas.space @mixings<N, C, D, M, W>
    [N, D unordered, W] from [N, M unordered, W]
    bindings [<C = 8, D = 4, M = 8, N = 1, W = 12> x 2]
// expected-error @+1 {{'kas.sequence_space' op J6: requires kas.spaces, got @none}}
kas.sequence_space @j6_unknown of @layers [@none]
    between []

// -----

kas.space @layers<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<C = 8, D = 4, N = 1, W = 12, k = 3> x 2]
kas.space @windows<N, C, M, W | k>
    [N, M unordered, W] from [N, C unordered, W]
    bindings [<C = 8, M = 8, N = 1, W = 12, k = 3> x 2]
kas.space @mixings<N, C, D, M, W>
    [N, D unordered, W] from [N, M unordered, W]
    bindings [<C = 8, D = 4, M = 8, N = 1, W = 12> x 2]
// expected-error @+1 {{'kas.sequence_space' op J6: requires kas.spaces, got @none}}
kas.sequence_space @j6_layers of @none [@layers]
    between []

// -----

kas.space @layers<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<C = 8, D = 4, N = 1, W = 12, k = 3> x 2]
kas.space @windows<N, C, M, W | k>
    [N, M unordered, W] from [N, C unordered, W]
    bindings [<C = 8, M = 8, N = 1, W = 12, k = 3> x 2]
kas.space @mixings<N, C, D, M, W>
    [N, D unordered, W] from [N, M unordered, W]
    bindings [<C = 8, D = 4, M = 8, N = 1, W = 12> x 2]
// expected-error @+1 {{'kas.sequence_space' op J7: requires inputs of the sizes}}
kas.sequence_space @j7 of @layers [@layers, @mixings]
    between [none] widths {M = [C]}

// -----

kas.space @layers<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<C = 8, D = 4, N = 1, W = 12, k = 3> x 2]
kas.space @windows<N, C, M, W | k>
    [N, M unordered, W] from [N, C unordered, W]
    bindings [<C = 8, M = 8, N = 1, W = 12, k = 3> x 2]
kas.space @mixings<N, C, D, M, W>
    [N, D unordered, W] from [N, M unordered, W]
    bindings [<C = 8, D = 4, M = 8, N = 1, W = 12> x 2]
// expected-error @+1 {{'kas.sequence_space' op J7: requires outputs of the sizes}}
kas.sequence_space @j7_output of @layers [@windows]
    between [] widths {M = [C]}

// -----

kas.space @layers<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<C = 8, D = 4, N = 1, W = 12, k = 3> x 2]
kas.space @windows<N, C, M, W | k>
    [N, M unordered, W] from [N, C unordered, W]
    bindings [<C = 8, M = 8, N = 1, W = 12, k = 3>]
kas.space @mixings<N, C, D, M, W>
    [N, D unordered, W] from [N, M unordered, W]
    bindings [<C = 8, D = 4, M = 8, N = 1, W = 12> x 2]
// expected-error @+1 {{'kas.sequence_space' op J8: requires the bindings of "layers" with their multiplicities in stage "windows", got others}}
kas.sequence_space @j8 of @layers [@windows, @mixings]
    between [none] widths {M = [C]}

// -----

kas.space @layers<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<C = 8, D = 4, N = 1, W = 12, k = 3> x 2]
kas.space @windows<N, C, M, W | k>
    [N, M unordered, W] from [N, C unordered, W]
    bindings [<C = 16, M = 8, N = 1, W = 12, k = 3> x 2]
kas.space @mixings<N, C, D, M, W>
    [N, D unordered, W] from [N, M unordered, W]
    bindings [<C = 8, D = 4, M = 8, N = 1, W = 12> x 2]
// expected-error @+1 {{'kas.sequence_space' op J8: requires C = 8 as in the binding of "layers" in stage "windows", got 16}}
kas.sequence_space @j8_value of @layers [@windows, @mixings]
    between [none] widths {M = [C]}

// -----

kas.space @layers<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<C = 8, D = 4, N = 1, W = 12, k = 3> x 2]
kas.space @windows<N, C, M, W | k>
    [N, M unordered, W] from [N, C unordered, W]
    bindings [<C = 8, M = 8, N = 1, W = 12, k = 3> x 2]
kas.space @mixings<N, C, D, M, W>
    [N, D unordered, W] from [N, M unordered, W]
    bindings [<C = 8, D = 4, M = 8, N = 1, W = 12> x 2]
// expected-error @+1 {{'kas.sequence_space' op J8: requires symbols of "layers" and widths in stage "windows", got 'M'}}
kas.sequence_space @j8_symbol of @layers [@windows, @mixings]
    between [none]

// -----

kas.space @layers<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<C = 8, D = 4, N = 1, W = 12, k = 3> x 2]
kas.space @windows<N, C, M, W, k>
    [N, M unordered, W] from [N, C unordered, W]
    bindings [<C = 8, M = 8, N = 1, W = 12, k = 3> x 2]
kas.space @mixings<N, C, D, M, W>
    [N, D unordered, W] from [N, M unordered, W]
    bindings [<C = 8, D = 4, M = 8, N = 1, W = 12> x 2]
// expected-error @+1 {{'kas.sequence_space' op J8: requires symbols of one name to be all primary or all coefficients, got both for 'k'}}
kas.sequence_space @j8_kind of @layers [@windows, @mixings]
    between [none] widths {M = [C]}

// -----

kas.space @layers<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<C = 8, D = 4, N = 1, W = 12, k = 3> x 2]
kas.space @windows<N, C, M, W | k>
    [N, M unordered, W] from [N, C unordered, W]
    bindings [<C = 8, M = 8, N = 1, W = 12, k = 3> x 2]
kas.space @mixings<N, C, D, M, W>
    [N, D unordered, W] from [N, M unordered, W]
    bindings [<C = 8, D = 4, M = 8, N = 1, W = 12> x 2]
// expected-error @+1 {{'kas.sequence_space' op J9: requires widths that are primary symbols of a stage and none of the layers, got 'C'}}
kas.sequence_space @j9 of @layers [@windows, @mixings]
    between [none] widths {M = [C], C = [D]}

// -----

kas.space @layers<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<C = 8, D = 4, N = 1, W = 12, k = 3> x 2]
kas.space @windows<N, C, M, W | k>
    [N, M unordered, W] from [N, C unordered, W]
    bindings [<C = 8, M = 8, N = 1, W = 12, k = 3> x 2]
kas.space @mixings<N, C, D, M, W>
    [N, D unordered, W] from [N, M unordered, W]
    bindings [<C = 8, D = 4, M = 8, N = 1, W = 12> x 2]
// expected-error @+1 {{'kas.sequence_space' op J9: requires symbols of "layers" in width 'M', got}}
kas.sequence_space @j9_symbol of @layers [@windows, @mixings]
    between [none] widths {M = [X]}

// -----

kas.space @layers<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<C = 8, D = 4, N = 1, W = 12, k = 3> x 2]
kas.space @windows<N, C, M, W | k>
    [N, M unordered, W] from [N, C unordered, W]
    bindings [<C = 8, M = 8, N = 1, W = 12, k = 3> x 2]
kas.space @mixings<N, C, D, M, W>
    [N, D unordered, W] from [N, M unordered, W]
    bindings [<C = 8, D = 4, M = 8, N = 1, W = 12> x 2]
// expected-error @+1 {{'kas.sequence_space' op J9: requires integers of at least 1 at every binding for width 'M', got}}
kas.sequence_space @j9_value of @layers [@windows, @mixings]
    between [none] widths {M = [C/3]}

// -----

kas.space @layers<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<C = 8, D = 4, N = 1, W = 12, k = 3> x 2]
kas.space @windows<N, C, M, W | k>
    [N, M unordered, W] from [N, C unordered, W]
    bindings [<C = 8, M = 8, N = 1, W = 12, k = 3> x 2]
kas.space @mixings<N, C, D, M, W>
    [N, D unordered, W] from [N, M unordered, W]
    bindings [<C = 8, D = 4, M = 8, N = 1, W = 12> x 2]
// expected-error @+1 {{'kas.sequence_space' op J9: requires the symbols of width 'M' in stage "windows", got}}
kas.sequence_space @j9_stage of @layers [@windows, @mixings]
    between [none] widths {M = [D]}

// -----

kas.space @layers<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<C = 8, D = 4, N = 1, W = 12, k = 3> x 2]
kas.space @windows<N, C, M, W | k>
    [N, M unordered, W] from [N, C unordered, W]
    bindings [<C = 8, M = 8, N = 1, W = 12, k = 3> x 2]
kas.space @mixings<N, C, D, M, W>
    [N, D unordered, W] from [N, M unordered, W]
    bindings [<C = 8, D = 4, M = 8, N = 1, W = 12> x 2]
// expected-error @+1 {{'kas.sequence_space' op J9: requires each size once for width 'M', got}}
kas.sequence_space @j9_twice of @layers [@windows, @mixings]
    between [none] widths {M = [C, C]}

// -----

kas.space @layers<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<C = 8, D = 4, N = 1, W = 12, k = 3> x 2]
kas.space @windows<N, C, M, W | k>
    [N, M unordered, W] from [N, C unordered, W]
    bindings [<C = 8, M = 8, N = 1, W = 12, k = 3> x 2]
kas.space @mixings<N, C, D, M, W>
    [N, D unordered, W] from [N, M unordered, W]
    bindings [<C = 8, D = 4, M = 8, N = 1, W = 12> x 2]
// expected-error @+1 {{'kas.sequence_space' op J9: requires a list of sizes for width 'M', got}}
"kas.sequence_space"() {sym_name = "j9_list", layers = @layers, stages = [@windows, @mixings], between = array<i32: 0>, widths = {M = 3 : i64}} : () -> ()

// -----

kas.space @layers<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<C = 8, D = 4, N = 1, W = 12, k = 3> x 2]
kas.space @windows<N, C, M, W | k>
    [N, M unordered, W] from [N, C unordered, W]
    bindings [<C = 8, M = 8, N = 1, W = 12, k = 3> x 2]
kas.space @mixings<N, C, D, M, W>
    [N, D unordered, W] from [N, M unordered, W]
    bindings [<C = 8, D = 4, M = 8, N = 1, W = 12> x 2]
// expected-error @+1 {{'kas.sequence_space' op J10: requires a step at least between two stages, got none}}
kas.sequence_space @j10 of @layers [@windows, @mixings]
    between [] widths {M = [C]}

// -----

kas.space @layers<N, C, D, W | k>
    [N, D unordered, W] from [N, C unordered, W]
    bindings [<C = 8, D = 4, N = 1, W = 12, k = 3> x 2]
kas.space @windows<N, C, M, W | k>
    [N, M unordered, W] from [N, C unordered, W]
    bindings [<C = 8, M = 8, N = 1, W = 12, k = 3> x 2]
kas.space @mixings<N, C, D, M, W>
    [N, D unordered, W] from [N, M unordered, W]
    bindings [<C = 8, D = 4, M = 8, N = 1, W = 12> x 2]
// expected-error @+1 {{'kas.sequence_space' op J10: requires each step once, got several 'relu'}}
kas.sequence_space @j10_twice of @layers [@windows, @mixings]
    between [relu, relu] widths {M = [C]}

// -----

kas.operator @window<N, C, W | k>(%n: N, %c: C, %w: W) from [N, C, W] {
  %i = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %c_d, %c_w = kas.share %c : C
  %x = kas.unfold %w, %i_d : W, k
  kas.yield data(%n, %c_d, %x) weight(%c_w, %i_w)
}
kas.operator @wider<N, D, W>(%n: N, %o: D, %w: W) from [N, D, W] {
  %c = kas.reduce sum : D
  %c_d, %c_w = kas.share %c : D
  kas.yield data(%n, %c_d, %w) weight(%o, %c_w)
}
// expected-error @+1 {{'kas.sequence' op J11: requires parallel operators with data of the same sizes, got others of "wider"}}
kas.sequence @j11 [@window add @wider] between []

// -----

kas.operator @window<N, C, W | k>(%n: N, %c: C, %w: W) from [N, C, W] {
  %i = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %c_d, %c_w = kas.share %c : C
  %x = kas.unfold %w, %i_d : W, k
  kas.yield data(%n, %c_d, %x) weight(%c_w, %i_w)
}
kas.operator @half<N, C, W>(%n: N, %o: C/2, %w: W) from [N, C, W] {
  %c = kas.reduce sum : C
  %c_d, %c_w = kas.share %c : C
  kas.yield data(%n, %c_d, %w) weight(%o, %c_w)
}
// expected-error @+1 {{'kas.sequence' op J11: requires results of the same sizes to multiply, got others of "half"}}
kas.sequence @j11_result [@window multiply @half] between []

// -----

kas.operator @row<W | k>(%w: W) from [W] {
  %i = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %x = kas.unfold %w, %i_d : W, k
  kas.yield data(%x) weight(%i_w)
}
// expected-error @+1 {{'kas.sequence' op J11: requires samples and channels of one rank to join, got ranks 1 and 1}}
kas.sequence @j11_rank [@row join @row] between []

// -----

kas.operator @window<N, C, W | k>(%n: N, %c: C, %w: W) from [N, C, W] {
  %i = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %c_d, %c_w = kas.share %c : C
  %x = kas.unfold %w, %i_d : W, k
  kas.yield data(%n, %c_d, %x) weight(%c_w, %i_w)
}
kas.operator @turned<N, C, W>(%n: N, %o: C, %w: C) from [N, C, W] {
  %r = kas.reduce sum : W
  %r_d, %r_w = kas.share %r : W
  kas.yield data(%n, %o, %r_d) weight(%w, %r_w)
}
// expected-error @+1 {{'kas.sequence' op J11: requires results of the same sizes but for dimension 1 to join, got others of "turned"}}
kas.sequence @j11_others [@window join @turned] between []

// -----

kas.operator @window<N, C, W | k>(%n: N, %c: C, %w: W) from [N, C, W] {
  %i = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %c_d, %c_w = kas.share %c : C
  %x = kas.unfold %w, %i_d : W, k
  kas.yield data(%n, %c_d, %x) weight(%c_w, %i_w)
}
kas.operator @other<N, C, D, W>(%n: N, %o: D, %w: W) from [N, C, W] {
  %c = kas.reduce sum : C
  %c_d, %c_w = kas.share %c : C
  kas.yield data(%n, %c_d, %w) weight(%o, %c_w)
}
// expected-error @+1 {{'kas.sequence' op J11: requires channels to join whose sum is a size, got #kas.size<C> and #kas.size<D>}}
kas.sequence @j11_sum [@window join @other] between []

// -----

kas.operator @window<N, C, W | k>(%n: N, %c: C, %w: W) from [N, C, W] {
  %i = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %c_d, %c_w = kas.share %c : C
  %x = kas.unfold %w, %i_d : W, k
  kas.yield data(%n, %c_d, %x) weight(%c_w, %i_w)
}
// expected-error @+1 {{'kas.sequence' op J2: requires one step between each two of 3 stages, got 1}}
kas.sequence @j2_parallel [@window add @window, @window] between []

// -----

kas.operator @row<W | k>(%w: W) from [W] {
  %i = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %x = kas.unfold %w, %i_d : W, k
  kas.yield data(%x) weight(%i_w)
}
// expected-error @+1 {{'kas.sequence' op J5: requires samples and channels to normalize, got a tensor of rank 1}}
kas.sequence @j5_parallel [@row add @row, @row] between [normalize]

// -----

kas.operator @window<N, C, W | k>(%n: N, %c: C, %w: W) from [N, C, W] {
  %i = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %c_d, %c_w = kas.share %c : C
  %x = kas.unfold %w, %i_d : W, k
  kas.yield data(%n, %c_d, %x) weight(%c_w, %i_w)
}
kas.operator @half<N, C, W>(%n: N, %o: C/2, %w: W) from [N, C, W] {
  %c = kas.reduce sum : C
  %c_d, %c_w = kas.share %c : C
  kas.yield data(%n, %c_d, %w) weight(%o, %c_w)
}
// expected-error @+1 {{'kas.sequence' op J3: requires a stage whose data has the sizes of the result before it, got "window" after "half"}}
kas.sequence @j3_joined [@window join @half, @window] between [none]

// -----

kas.space @layers<N, C, W>
    [N, C unordered, W] from [N, C unordered, W]
    bindings [<C = 8, N = 1, W = 12>]
kas.space @halves<N, C, W>
    [N, C/2 unordered, W] from [N, C unordered, W]
    bindings [<C = 8, N = 1, W = 12>]
kas.space @back<N, C, W>
    [N, C unordered, W] from [N, C/2 unordered, W]
    bindings [<C = 8, N = 1, W = 12>]
// expected-error @+1 {{'kas.sequence_space' op J7: requires inputs of the sizes}}
kas.sequence_space @j7_parallel of @layers [@halves, @back] between [none, add]

// -----

kas.space @layers<N, C, W>
    [N, C unordered, W] from [N, C unordered, W]
    bindings [<C = 8, N = 1, W = 12>]
kas.space @halves<N, C, W>
    [N, C/2 unordered, W] from [N, C unordered, W]
    bindings [<C = 8, N = 1, W = 12>]
kas.space @back<N, C, W>
    [N, C unordered, W] from [N, C/2 unordered, W]
    bindings [<C = 8, N = 1, W = 12>]
// expected-error @+1 {{'kas.sequence_space' op J7: requires outputs of the sizes}}
kas.sequence_space @j7_parallel_output of @layers [@layers, @halves] between [add]

// -----

kas.space @layers<N, C, W>
    [N, C unordered, W] from [N, C unordered, W]
    bindings [<C = 8, N = 1, W = 12>]
kas.space @halves<N, C, W>
    [N, C/2 unordered, W] from [N, C unordered, W]
    bindings [<C = 8, N = 1, W = 12>]
kas.space @back<N, C, W>
    [N, C unordered, W] from [N, C/2 unordered, W]
    bindings [<C = 8, N = 1, W = 12>]
// expected-error @+1 {{'kas.sequence_space' op J10: requires steps that keep sizes, got 'join'}}
"kas.sequence_space"() {sym_name = "j10_join", layers = @layers, stages = [@layers, @layers], between = array<i32: 6>, widths = {}} : () -> ()

// -----

// expected-error @+1 {{expected none, relu, normalize, normalize_relu, add or multiply, got 'join'}}
kas.sequence_space @join of @layers [@layers, @layers] between [join]

// -----

// expected-error @+1 {{expected none, relu, normalize or normalize_relu, got 'add'}}
kas.sequence @between [@window, @window] between [add]

// -----

// expected-error @+1 {{expected none, relu, normalize or normalize_relu, got 'gelu'}}
kas.sequence @step [@window, @window] between [gelu]

// -----

// expected-error @+1 {{expected each width once, got 'M' again}}
kas.sequence_space @width of @layers [@layers] between [] widths {M = [C], M = [D]}
