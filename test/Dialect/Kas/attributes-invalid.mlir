// RUN: kas-opt %s -split-input-file -verify-diagnostics

// A1: an operation's
// expected-error@below {{expected an attribute of dialect kas among kas.site, kas.layer, kas.named_operator, kas.score, kas.origin, kas.candidate, kas.front, kas.programs, kas.layers, kas.parameters, kas.read, kas.full_rank_at, got kas.other}}
func.func @f() attributes {kas.other} {
  return
}

// -----

// A1: an argument's name, on an operation
// expected-error@below {{expected kas.name on an argument of a function, got func.func}}
func.func @f() attributes {kas.name = "x"} {
  return
}

// -----

// A1: an argument's initializer, on an operation
// expected-error@below {{expected kas.init on an argument of a function, got func.func}}
func.func @f() attributes {kas.init = "zeros"} {
  return
}

// -----

// A1: an operation's, on an argument
// expected-error@below {{expected no attribute of dialect kas but kas.name, kas.init, kas.weight_decay, kas.constant, kas.dropout, kas.unsigned, kas.momentum and kas.data on argument 1, got kas.origin}}
func.func @f(%x: f32, %y: f32 {kas.origin = "x"}) {
  return
}

// -----

// A1: a result's
// expected-error@below {{expected no attribute of dialect kas but kas.name and kas.unsigned on result 0, got kas.init}}
func.func private @f() -> (f32 {kas.init = "zeros"})

// -----

// A2: no dictionary
func.func @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error@below {{expected a space or a kernel and a binding as kas.site, got @conv2d}}
  %y = linalg.matmul {kas.site = @conv2d} ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// A2: no binding
func.func @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error@below {{expected a space or a kernel and a binding as kas.site, got {space = @conv2d}}}
  %y = linalg.matmul {kas.site = {space = @conv2d}} ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// A2: a binding of another type
func.func @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error@below {{expected a space or a kernel and a binding as kas.site, got {binding = 0 : i8, space = @conv2d}}}
  %y = linalg.matmul {kas.site = {binding = 0 : i8, space = @conv2d}} ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// A2: neither a space nor a kernel
func.func @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error@below {{expected a space or a kernel and a binding as kas.site, got {binding = 0 : i64}}}
  %y = linalg.matmul {kas.site = {binding = 0 : i64}} ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// A2: both
func.func @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error@below {{expected a space or a kernel and a binding as kas.site, got {binding = 0 : i64, kernel = @k, space = @s}}}
  %y = linalg.matmul {kas.site = {binding = 0 : i64, kernel = @k, space = @s}} ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// A2: no symbol
func.func @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error@below {{expected a space or a kernel and a binding as kas.site, got {binding = 0 : i64, space = "s"}}}
  %y = linalg.matmul {kas.site = {binding = 0 : i64, space = "s"}} ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// A2: a name that is no string
func.func @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error@below {{expected a space or a kernel and a binding as kas.site, got {binding = 0 : i64, name = 1 : i64, space = @s}}}
  %y = linalg.matmul {kas.site = {binding = 0 : i64, name = 1 : i64, space = @s}} ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// A2: attention that is no unit
func.func @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error@below {{expected a space or a kernel and a binding as kas.site, got {attention = 1 : i64, binding = 0 : i64, kernel = @k}}}
  %y = linalg.matmul {kas.site = {attention = 1 : i64, binding = 0 : i64, kernel = @k}} ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// A2: another entry
func.func @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error@below {{expected a space or a kernel and a binding as kas.site, got {binding = 0 : i64, other, space = @s}}}
  %y = linalg.matmul {kas.site = {binding = 0 : i64, other, space = @s}} ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// A2: another place
func.func @f() {
  // expected-error@below {{expected kas.site on a linalg operation, got arith.constant}}
  %y = arith.constant {kas.site = {binding = 0 : i64, space = @s}} 1.0 : f32
  return
}

// -----

// A3: no string
func.func @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error@below {{expected a string as kas.layer, got 1}}
  %y = linalg.matmul {kas.layer = 1 : i64} ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// A3: another place
func.func @f() {
  // expected-error@below {{expected kas.layer on a linalg operation, got arith.constant}}
  %y = arith.constant {kas.layer = "conv1"} 1.0 : f32
  return
}

// -----

// A4: no string
// expected-error@below {{expected a string as kas.named_operator, got @conv2d}}
kas.space @s<N> [N] from [N] bindings [<N = 4>] attributes {kas.named_operator = @conv2d}

// -----

// A4: another place
// expected-error@below {{expected kas.named_operator on a kas.space, got func.func}}
func.func @f() attributes {kas.named_operator = "kas.conv2d"} {
  return
}

// -----

// A5: no dictionary
// expected-error@below {{expected a dictionary of numbers of type i64 or f64 as kas.score, got 1}}
func.func @f() attributes {kas.score = 1 : i64} {
  return
}

// -----

// A5: no number
// expected-error@below {{expected a dictionary of numbers of type i64 or f64 as kas.score, got {flops = "1"}}}
func.func @f() attributes {kas.score = {flops = "1"}} {
  return
}

// -----

// A5: a number of another type
// expected-error@below {{expected a dictionary of numbers of type i64 or f64 as kas.score, got {loss = 1.000000e+00 : f32}}}
func.func @f() attributes {kas.score = {loss = 1.0 : f32}} {
  return
}

// -----

// A5: another place
func.func @f() {
  // expected-error@below {{expected kas.score on an operation that defines a symbol, got arith.constant}}
  %y = arith.constant {kas.score = {flops = 1 : i64}} 1.0 : f32
  return
}

// -----

// A6: no string
// expected-error@below {{expected a string as kas.origin, got @layers}}
func.func @f() attributes {kas.origin = @layers} {
  return
}

// -----

// A6: another place
func.func @f() {
  // expected-error@below {{expected kas.origin on an operation that defines a symbol, got arith.constant}}
  %y = arith.constant {kas.origin = "layers"} 1.0 : f32
  return
}

// -----

// A7: another type
// expected-error@below {{expected a number of type i64 as kas.candidate, got 1 : i32}}
func.func @f() attributes {kas.candidate = 1 : i32} {
  return
}

// -----

// A7: another place
func.func @f() {
  // expected-error@below {{expected kas.candidate on an operation that defines a symbol, got arith.constant}}
  %y = arith.constant {kas.candidate = 1 : i64} 1.0 : f32
  return
}

// -----

// A8: no unit
// expected-error@below {{expected a unit as kas.front, got true}}
func.func @f() attributes {kas.front = true} {
  return
}

// -----

// A8: another place
func.func @f() {
  // expected-error@below {{expected kas.front on an operation that defines a symbol, got arith.constant}}
  %y = arith.constant {kas.front} 1.0 : f32
  return
}

// -----

// A9: no dictionary
// expected-error@below {{expected a dictionary of strings as kas.programs, got "group"}}
func.func @f() attributes {kas.programs = "group"} {
  return
}

// -----

// A9: no string
// expected-error@below {{expected a dictionary of strings as kas.programs, got {conv1}}}
func.func @f() attributes {kas.programs = {conv1}} {
  return
}

// -----

// A9: another place
// expected-error@below {{expected kas.programs on a function, got builtin.module}}
module attributes {kas.programs = {conv1 = "group"}} {}

// -----

// A10: no array
// expected-error@below {{expected an array of strings as kas.layers, got "conv1"}}
func.func @f() attributes {kas.layers = "conv1"} {
  return
}

// -----

// A10: no string
// expected-error@below {{expected an array of strings as kas.layers, got ["conv1", 2]}}
func.func @f() attributes {kas.layers = ["conv1", 2]} {
  return
}

// -----

// A10: another place
// expected-error@below {{expected kas.layers on a function, got builtin.module}}
module attributes {kas.layers = ["conv1"]} {}

// -----

// A11: no string
// expected-error@below {{expected an array of strings as kas.parameters, got [1]}}
func.func @f() attributes {kas.parameters = [1]} {
  return
}

// -----

// A11: another place
// expected-error@below {{expected kas.parameters on a function, got builtin.module}}
module attributes {kas.parameters = ["conv1.weight"]} {}

// -----

// A12: another type
func.func @f(%x: tensor<4xf32>) {
  // expected-error@below {{expected a number of type i64 as kas.read, got 1 : i32}}
  %y = bufferization.to_buffer %x {kas.read = 1 : i32} : tensor<4xf32> to memref<4xf32>
  return
}

// -----

// A12: another place
func.func @f() {
  // expected-error@below {{expected kas.read on a bufferization.to_buffer, got arith.constant}}
  %y = arith.constant {kas.read = 1 : i64} 1.0 : f32
  return
}

// -----

// A15: a negative number
// expected-error@below {{expected an array of numbers of bindings as kas.full_rank_at, got array<i64: -1>}}
kas.operator @f<N>(%i: N) from [N] attributes {kas.full_rank_at = array<i64: -1>} {
  kas.yield data(%i)
}

// -----

// A15: another place
// expected-error@below {{expected kas.full_rank_at on a kas.operator, got func.func}}
func.func @f() attributes {kas.full_rank_at = array<i64: 0>} {
  return
}

// -----

// A13: no string
// expected-error@below {{expected a string as kas.name of argument 1, got @x}}
func.func @f(%x: f32, %y: f32 {kas.name = @x}) {
  return
}

// -----

// A14: no string
// expected-error@below {{expected a string as kas.init of argument 1, got 0.000000e+00}}
func.func @f(%x: f32, %y: f32 {kas.init = 0.0 : f32}) {
  return
}

// -----

// A14: another text
// expected-error@below {{argument 1: expected zeros, ones, constant(V), normal(S), uniform(B), positive(V) or kaiming(F), got 'random'}}
func.func @f(%x: f32, %y: f32 {kas.init = "random"}) {
  return
}

// -----

// A13: a result's
// expected-error@below {{expected a string as kas.name of result 0, got 1 : i64}}
func.func private @f() -> (f32 {kas.name = 1})

// -----

// A16: no number
// expected-error@below {{expected a number of at least 0 as kas.weight_decay of argument 0, got "x"}}
func.func @f(%x: f32 {kas.weight_decay = "x"}) {
  return
}

// -----

// A16: a negative number
// expected-error@below {{expected a number of at least 0 as kas.weight_decay of argument 0, got -1.000000e+00 : f64}}
func.func @f(%x: f32 {kas.weight_decay = -1.0}) {
  return
}

// -----

// A17
// expected-error@below {{expected no value as kas.constant of argument 0, got true}}
func.func @f(%x: f32 {kas.constant = true}) {
  return
}

// -----

// A18: no number
// expected-error@below {{expected a number of at least 0 and less than 1 as kas.dropout of argument 0, got "x"}}
func.func @f(%x: f32 {kas.dropout = "x"}) {
  return
}

// -----

// A18: nothing would be left
// expected-error@below {{expected a number of at least 0 and less than 1 as kas.dropout of argument 0, got 1.000000e+00 : f64}}
func.func @f(%x: f32 {kas.dropout = 1.0}) {
  return
}

// -----

// A1: an argument's mark, on an operation
// expected-error@below {{expected kas.unsigned on an argument of a function, got func.func}}
func.func @f() attributes {kas.unsigned} {
  return
}

// -----

// A19: a value
// expected-error@below {{expected kas.unsigned without a value on a tensor of signless integers of 8 bits at least, got true on argument 0 of type 'tensor<4xi8>'}}
func.func @f(%x: tensor<4xi8> {kas.unsigned = true}) {
  return
}

// -----

// A19: no integers
// expected-error@below {{got unit on result 0 of type 'tensor<4xf32>'}}
func.func private @f() -> (tensor<4xf32> {kas.unsigned})

// -----

// A19: flags
// expected-error@below {{got unit on argument 0 of type 'tensor<4xi1>'}}
func.func @f(%x: tensor<4xi1> {kas.unsigned}) {
  return
}

// -----

// A20: no number
// expected-error@below {{expected a number from 0 to 1 as kas.momentum of argument 0, got "x"}}
func.func @f(%x: f32 {kas.momentum = "x"}) {
  return
}

// -----

// A20: too large
// expected-error@below {{expected a number from 0 to 1 as kas.momentum of argument 0, got 1.500000e+00 : f64}}
func.func @f(%x: f32 {kas.momentum = 1.5}) {
  return
}

// -----

// A21: a value
// expected-error@below {{expected no value as kas.data of argument 1, got true}}
func.func @f(%x: f32, %y: f32 {kas.data = true}) {
  return
}
