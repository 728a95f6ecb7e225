// RUN: kas-opt %s -split-input-file -verify-diagnostics

// A1: an operation's
// expected-error@below {{expected no attribute of this dialect but kas_cpu.schedule, kas_cpu.batch_parts, kas_cpu.batch_version and kas_cpu.serial, got kas_cpu.other}}
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

// -----

// A2
// expected-error@below {{expected a unit attribute as kas_cpu.serial, got true}}
func.func @a2() attributes {kas_cpu.serial = true} {
  return
}

// -----

// A2
func.func @a2(%x: f32) -> f32 {
  // expected-error@below {{expected kas_cpu.serial on a function, got arith.addf}}
  %y = arith.addf %x, %x {kas_cpu.serial} : f32
  return %y : f32
}

// -----

// C5
// expected-error@below {{expected at least 2 parts, got 1}}
func.func @c5() attributes {kas_cpu.batch_parts = #kas_cpu.batch_parts<count = 1, bytes = [4]>} {
  return
}

// -----

// C5
// expected-error@below {{expected bytes of at least 0, got -4}}
func.func @c5() attributes {kas_cpu.batch_parts = #kas_cpu.batch_parts<count = 2, bytes = [0, -4]>} {
  return
}

// -----

// C6
// expected-error@below {{expected a #kas_cpu.batch_parts as kas_cpu.batch_parts, got 4 : i64}}
func.func @c6() attributes {kas_cpu.batch_parts = 4} {
  return
}

// -----

// C7
func.func @c7(%x: f32) -> f32 {
  // expected-error@below {{expected kas_cpu.batch_parts on a function, got arith.addf}}
  %y = arith.addf %x, %x {kas_cpu.batch_parts = #kas_cpu.batch_parts<count = 2, bytes = [4]>} : f32
  return %y : f32
}

// -----

// C8
// expected-error@below {{expected at least 1 sample, got 0}}
func.func @c8() attributes {kas_cpu.batch_version = #kas_cpu.batch_version<of = "f", samples = 0, most = 8, cycles = 1, bytes = [4]>} {
  return
}

// -----

// C8
// expected-error@below {{expected most of at most 65536, got 4294967296}}
func.func @c8() attributes {kas_cpu.batch_version = #kas_cpu.batch_version<of = "f", samples = 8, most = 4294967296, cycles = 1, bytes = [4]>} {
  return
}

// -----

// C8
// expected-error@below {{expected most of at least 8, got 4}}
func.func @c8() attributes {kas_cpu.batch_version = #kas_cpu.batch_version<of = "f", samples = 8, most = 4, cycles = 1, bytes = [4]>} {
  return
}

// -----

// C8
// expected-error@below {{expected cycles of at least 0, got -1}}
func.func @c8() attributes {kas_cpu.batch_version = #kas_cpu.batch_version<of = "f", samples = 1, most = 4, cycles = -1, bytes = [4]>} {
  return
}

// -----

// C8
// expected-error@below {{expected bytes of at least 0, got -4}}
func.func @c8() attributes {kas_cpu.batch_version = #kas_cpu.batch_version<of = "f", samples = 1, most = 4, cycles = 1, bytes = [-4]>} {
  return
}

// -----

// C9
// expected-error@below {{expected a #kas_cpu.batch_version as kas_cpu.batch_version, got unit}}
func.func @c9() attributes {kas_cpu.batch_version} {
  return
}

// -----

// C9
// expected-error@below {{expected kas_cpu.batch_version without kas_cpu.batch_parts, got both}}
func.func @c9() attributes {kas_cpu.batch_parts = #kas_cpu.batch_parts<count = 2, bytes = [4]>, kas_cpu.batch_version = #kas_cpu.batch_version<of = "f", samples = 1, most = 4, cycles = 1, bytes = [4]>} {
  return
}

// -----

// C9
func.func @c9(%x: f32) -> f32 {
  // expected-error@below {{expected kas_cpu.batch_version on a function, got arith.addf}}
  %y = arith.addf %x, %x {kas_cpu.batch_version = #kas_cpu.batch_version<of = "f", samples = 1, most = 4, cycles = 1, bytes = [4]>} : f32
  return %y : f32
}
