// RUN: kas-opt %s -split-input-file -verify-diagnostics

// A1: an operation's
// expected-error@below {{expected no attribute of this dialect but kas_cpu.schedule, got kas_cpu.other}}
func.func @a1() attributes {kas_cpu.other} {
  return
}

// -----

// A1: an argument's
// expected-error@below {{expected no attribute of dialect kas_cpu on argument 1, got kas_cpu.schedule}}
func.func @a1(%x: f32, %y: f32 {kas_cpu.schedule}) {
  return
}

// -----

// A1: a result's
// expected-error@below {{expected no attribute of dialect kas_cpu on result 0, got kas_cpu.other}}
func.func private @a1() -> (f32 {kas_cpu.other})

// -----

// C3
func.func @c3(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error@below {{expected a #kas_cpu.schedule as kas_cpu.schedule, got unit}}
  %y = linalg.matmul {kas_cpu.schedule} ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// C4
// expected-error@below {{expected kas_cpu.schedule on a kas.apply or a linalg operation, got func.func}}
func.func @c4() attributes {kas_cpu.schedule = #kas_cpu.schedule<strategy = direct>} {
  return
}
