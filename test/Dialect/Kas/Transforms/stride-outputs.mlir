// RUN: not kas-opt %s -split-input-file -kas-stride-outputs 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: {{.*}}requires output dimensions of '@conv1d', 0 to 1, got none
// RUN: kas-opt %s -split-input-file -verify-diagnostics -kas-stride-outputs='dims=1' | FileCheck %s

// CHECK: kas.operator @conv1d<C, H | k, s>(%[[C:.*]]: C, %[[FEW:.*]]: H/s) from [C, H] {
// CHECK:   %[[H:.*]] = kas.stride %[[FEW]] by s : H/s
// CHECK:   %[[K:.*]] = kas.reduce sum : k
// CHECK:   %[[KD:.*]], %[[KW:.*]] = kas.share %[[K]] : k
// CHECK:   %[[X:.*]] = kas.unfold %[[H]], %[[KD]] : H, k
// CHECK:   kas.yield data(%{{.*}}, %[[X]])
kas.operator @conv1d<C, H | k>(%c: C, %h: H) from [C, H] {
  %i = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %c_d, %c_w = kas.share %c : C
  %x = kas.unfold %h, %i_d : H, k
  kas.yield data(%c_d, %x) weight(%c_w, %i_w)
}

// -----

// expected-error@+1 {{requires a symbol that '@strided' does not have, got 's'}}
kas.operator @strided<C, H | s>(%c: C, %h: H) from [C, H*s] {
  %x = kas.stride %h by s : H
  kas.yield data(%c, %x)
}

// -----

// expected-error@+1 {{requires distinct output dimensions of '@one', 0 to 0, got 1}}
kas.operator @one<C>(%c: C) from [C] {
  kas.yield data(%c)
}
