// RUN: kas-opt %s -split-input-file -verify-diagnostics

// A1: an operation's
// expected-error@below {{expected no attribute of this dialect but kas_gpu.schedule, kas_gpu.device, kas_gpu.dynamic_bytes, kas_gpu.num_tensor_maps, kas_gpu.num_prepack_launches, kas_gpu.rounded, kas_gpu.prologue, kas_gpu.scratch, kas_gpu.manifest, kas_gpu.assertions and kas_gpu.library, got kas_gpu.other}}
func.func @a1() attributes {kas_gpu.other} {
  return
}

// -----

// A1: an argument's, on an operation
// expected-error@below {{expected kas_gpu.access on an argument of a kernel, got func.func}}
func.func @a1() attributes {kas_gpu.access = "read"} {
  return
}

// -----

// A1: an operation's, on an argument
// expected-error@below {{expected no attribute of dialect kas_gpu but kas_gpu.access on argument 0, got kas_gpu.scratch}}
func.func @a1(%x: memref<4xf32> {kas_gpu.scratch}) {
  return
}

// -----

// A1: a result's
// expected-error@below {{expected no attribute of dialect kas_gpu on result 0, got kas_gpu.access}}
func.func private @a1() -> (f32 {kas_gpu.access = "read"})

// -----

// A2: another string
// expected-error@below {{expected "read" or "write" as kas_gpu.access of argument 1, got "both"}}
func.func @a2(%x: memref<4xf32> {kas_gpu.access = "read"}, %y: memref<4xf32> {kas_gpu.access = "both"}) {
  return
}

// -----

// A2: no string
// expected-error@below {{expected "read" or "write" as kas_gpu.access of argument 0, got unit}}
func.func @a2(%x: memref<4xf32> {kas_gpu.access}) {
  return
}

// -----

// A3: negative
// expected-error@below {{expected a number of type i64 of at least 0 as kas_gpu.dynamic_bytes, got -1}}
func.func @a3() attributes {kas_gpu.dynamic_bytes = -1 : i64} {
  return
}

// -----

// A3: another type
// expected-error@below {{expected a number of type i64 of at least 0 as kas_gpu.dynamic_bytes, got 1 : i32}}
func.func @a3() attributes {kas_gpu.dynamic_bytes = 1 : i32} {
  return
}

// -----

// A3: another place
// expected-error@below {{expected kas_gpu.dynamic_bytes on a function, got builtin.module}}
module attributes {kas_gpu.dynamic_bytes = 1 : i64} {}

// -----

// A4: no number
// expected-error@below {{expected a number of type i64 of at least 0 as kas_gpu.num_tensor_maps, got "two"}}
func.func @a4() attributes {kas_gpu.num_tensor_maps = "two"} {
  return
}

// -----

// A4: another place
// expected-error@below {{expected kas_gpu.num_tensor_maps on a function, got builtin.module}}
module attributes {kas_gpu.num_tensor_maps = 2 : i64} {}

// -----

// A5: no unit
func.func @a5() {
  // expected-error@below {{expected a unit as kas_gpu.scratch, got 1}}
  %x = memref.alloc() {kas_gpu.scratch = 1 : i64} : memref<4xi8>
  return
}

// -----

// A5: another place
func.func @a5() {
  // expected-error@below {{expected kas_gpu.scratch on a memref.alloc, got memref.alloca}}
  %x = memref.alloca() {kas_gpu.scratch} : memref<4xi8>
  return
}

// -----

// A6: no string
// expected-error@below {{expected the text of a JSON object as kas_gpu.manifest, got 1}}
module attributes {kas_gpu.manifest = 1 : i64} {}

// -----

// A6: no JSON
// expected-error@below {{expected the text of a JSON object as kas_gpu.manifest, got "{"}}
module attributes {kas_gpu.manifest = "{"} {}

// -----

// A6: no object
// expected-error@below {{expected the text of a JSON object as kas_gpu.manifest, got "[1]"}}
module attributes {kas_gpu.manifest = "[1]"} {}

// -----

// A6: another place
// expected-error@below {{expected kas_gpu.manifest on a module, got func.func}}
func.func @a6() attributes {kas_gpu.manifest = "{}"} {
  return
}

// -----

// A7: no string
// expected-error@below {{expected an array of strings as kas_gpu.assertions, got [1]}}
func.func @a7() attributes {kas_gpu.assertions = [1]} {
  return
}

// -----

// A7: another place
// expected-error@below {{expected kas_gpu.assertions on a function, got builtin.module}}
module attributes {kas_gpu.assertions = ["text"]} {}

// -----

// C7
func.func @c7(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{expected a #kas_gpu.schedule as kas_gpu.schedule, got unit}}
  %y = linalg.negf {kas_gpu.schedule} ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// C8
// expected-error@below {{expected kas_gpu.schedule on a kas.apply or a linalg.generic, got func.func}}
func.func @c8() attributes {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 1>} {
  return
}

// -----

// D2
// expected-error@below {{expected a #kas_gpu.device as kas_gpu.device, got "sm_90"}}
module attributes {kas_gpu.device = "sm_90"} {}

// -----

// A8: negative
// expected-error@below {{expected a number of type i64 of at least 0 as kas_gpu.num_prepack_launches, got -1}}
func.func @a8() attributes {kas_gpu.num_prepack_launches = -1 : i64} {
  return
}

// -----

// A8: another place
// expected-error@below {{expected kas_gpu.num_prepack_launches on a function, got builtin.module}}
module attributes {kas_gpu.num_prepack_launches = 2 : i64} {}

// -----

// A9
// expected-error@below {{expected a #kas_gpu.matmul or a #kas_gpu.convolution as kas_gpu.library, got "cublas"}}
func.func @a9() attributes {kas_gpu.library = "cublas"} {
  return
}

// -----

// A9
// expected-error@below {{expected kas_gpu.library on a kas.apply, a linalg.generic or a function, got builtin.module}}
module attributes {kas_gpu.library = #kas_gpu.matmul<sizes = [1, 2, 3, 4], left = [0, 0, 4, 1], right = [1, 0, 4, 1], result = [2, 0, 3, 1]>} {}

// -----

// M1
// expected-error@below {{expected 4 sizes from 1 to 2147483647, got [2, 3, 4]}}
module attributes {test.matmul = #kas_gpu.matmul<sizes = [2, 3, 4], left = [0, 0, 4, 1], right = [1, 0, 4, 1], result = [2, 0, 3, 1]>} {}

// -----

// M1
// expected-error@below {{expected 4 sizes from 1 to 2147483647, got [1, 2, 0, 4]}}
module attributes {test.matmul = #kas_gpu.matmul<sizes = [1, 2, 0, 4], left = [0, 0, 4, 1], right = [1, 0, 4, 1], result = [2, 0, 3, 1]>} {}

// -----

// M1
// expected-error@below {{expected 4 sizes from 1 to 2147483647, got [1, 2147483648, 3, 4]}}
module attributes {test.matmul = #kas_gpu.matmul<sizes = [1, 2147483648, 3, 4], left = [0, 0, 4, 1], right = [1, 0, 4, 1], result = [2, 0, 3, 1]>} {}

// -----

// M2
// expected-error@below {{expected 4 entries of at least 0 in left, got [0, 4, 1]}}
module attributes {test.matmul = #kas_gpu.matmul<sizes = [1, 2, 3, 4], left = [0, 4, 1], right = [1, 0, 4, 1], result = [2, 0, 3, 1]>} {}

// -----

// M2
// expected-error@below {{expected 4 entries of at least 0 in result, got [-1, 0, 3, 1]}}
module attributes {test.matmul = #kas_gpu.matmul<sizes = [1, 2, 3, 4], left = [0, 0, 4, 1], right = [1, 0, 4, 1], result = [-1, 0, 3, 1]>} {}

// -----

// M3
// expected-error@below {{expected neighbours along a dimension of right, got [1, 0, 4, 2]}}
module attributes {test.matmul = #kas_gpu.matmul<sizes = [1, 2, 3, 4], left = [0, 0, 4, 1], right = [1, 0, 4, 2], result = [2, 0, 3, 1]>} {}

// -----

// M3
// expected-error@below {{expected neighbours along the columns of result, got [2, 0, 1, 2]}}
module attributes {test.matmul = #kas_gpu.matmul<sizes = [1, 2, 3, 4], left = [0, 0, 4, 1], right = [1, 0, 4, 1], result = [2, 0, 1, 2]>} {}

// -----

// M4
// expected-error@below {{expected a residual of at least -1, got -2}}
module attributes {test.matmul = #kas_gpu.matmul<sizes = [1, 2, 3, 4], left = [0, 0, 4, 1], right = [1, 0, 4, 1], result = [2, 0, 3, 1], residual = -2>} {}

// -----

// V1
// expected-error@below {{expected 4 image_sizes from 1 to 2147483647, got [1, 4, 5]}}
module attributes {test.convolution = #kas_gpu.convolution<image = 0, filter = 1, result = 2, image_sizes = [1, 4, 5], filter_sizes = [6, 2, 3, 4], strides = [2, 1], dilations = [1, 2], pads = [1, 1]>} {}

// -----

// V1
// expected-error@below {{expected 4 image_sizes from 1 to 2147483647, got [1, 4, 0, 6]}}
module attributes {test.convolution = #kas_gpu.convolution<image = 0, filter = 1, result = 2, image_sizes = [1, 4, 0, 6], filter_sizes = [6, 2, 3, 4], strides = [2, 1], dilations = [1, 2], pads = [1, 1]>} {}

// -----

// V1
// expected-error@below {{expected 4 filter_sizes from 1 to 2147483647, got [2147483648, 2, 3, 4]}}
module attributes {test.convolution = #kas_gpu.convolution<image = 0, filter = 1, result = 2, image_sizes = [1, 4, 5, 6], filter_sizes = [2147483648, 2, 3, 4], strides = [2, 1], dilations = [1, 2], pads = [1, 1]>} {}

// -----

// V2
// expected-error@below {{expected 2 strides from 1 to 2147483647, got [2, 0]}}
module attributes {test.convolution = #kas_gpu.convolution<image = 0, filter = 1, result = 2, image_sizes = [1, 4, 5, 6], filter_sizes = [6, 2, 3, 4], strides = [2, 0], dilations = [1, 2], pads = [1, 1]>} {}

// -----

// V2
// expected-error@below {{expected 2 dilations from 1 to 2147483647, got [1]}}
module attributes {test.convolution = #kas_gpu.convolution<image = 0, filter = 1, result = 2, image_sizes = [1, 4, 5, 6], filter_sizes = [6, 2, 3, 4], strides = [2, 1], dilations = [1], pads = [1, 1]>} {}

// -----

// V2
// expected-error@below {{expected 2 pads from 0 to 2147483647, got [-1, 1]}}
module attributes {test.convolution = #kas_gpu.convolution<image = 0, filter = 1, result = 2, image_sizes = [1, 4, 5, 6], filter_sizes = [6, 2, 3, 4], strides = [2, 1], dilations = [1, 2], pads = [-1, 1]>} {}

// -----

// V3
// expected-error@below {{expected channels of a filter that divide 4 of the image, got 3}}
module attributes {test.convolution = #kas_gpu.convolution<image = 0, filter = 1, result = 2, image_sizes = [1, 4, 5, 6], filter_sizes = [6, 3, 3, 4], strides = [2, 1], dilations = [1, 2], pads = [1, 1]>} {}

// -----

// V3
// expected-error@below {{expected channels of the result that 2 groups divide, got 5}}
module attributes {test.convolution = #kas_gpu.convolution<image = 0, filter = 1, result = 2, image_sizes = [1, 4, 5, 6], filter_sizes = [5, 2, 3, 4], strides = [2, 1], dilations = [1, 2], pads = [1, 1]>} {}

// -----

// V4
// expected-error@below {{expected a window within the image and its pads, got 4 points 3 apart for 6 and pads of 1}}
module attributes {test.convolution = #kas_gpu.convolution<image = 0, filter = 1, result = 2, image_sizes = [1, 4, 5, 6], filter_sizes = [6, 2, 3, 4], strides = [2, 1], dilations = [1, 3], pads = [1, 1]>} {}

// -----

// V5
// expected-error@below {{expected a position of filter of at least 0, got -1}}
module attributes {test.convolution = #kas_gpu.convolution<image = 0, filter = -1, result = 2, image_sizes = [1, 4, 5, 6], filter_sizes = [6, 2, 3, 4], strides = [2, 1], dilations = [1, 2], pads = [1, 1]>} {}

// -----

// V5
// expected-error@below {{expected a position of bias of at least -1, got -2}}
module attributes {test.convolution = #kas_gpu.convolution<image = 0, filter = 1, result = 2, image_sizes = [1, 4, 5, 6], filter_sizes = [6, 2, 3, 4], strides = [2, 1], dilations = [1, 2], pads = [1, 1], bias = -2>} {}

// -----

// A10: no array
func.func @a10(%a: f32, %b: f32) -> f32 {
  // expected-error@below {{expected an array of i64 with positions of operands of f32 as kas_gpu.rounded, got unit}}
  %c = arith.mulf %a, %b {kas_gpu.rounded} : f32
  return %c : f32
}

// -----

// A10: no such operand
func.func @a10(%a: f32, %b: f32) -> f32 {
  // expected-error@below {{expected an array of i64 with positions of operands of f32 as kas_gpu.rounded, got array<i64: 0, 2>}}
  %c = arith.mulf %a, %b {kas_gpu.rounded = array<i64: 0, 2>} : f32
  return %c : f32
}

// -----

// A10: an operand of another type
func.func @a10(%a: f16, %b: f16) -> f16 {
  // expected-error@below {{expected an array of i64 with positions of operands of f32 as kas_gpu.rounded, got array<i64: 1>}}
  %c = arith.mulf %a, %b {kas_gpu.rounded = array<i64: 1>} : f16
  return %c : f16
}

// -----

// A11: no unit
func.func @a11(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{expected a unit as kas_gpu.prologue, got 1}}
  %z = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>) attrs = {kas_gpu.prologue = 1 : i64} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32>
  return %z : tensor<4xf32>
}

// -----

// A11: another operation
// expected-error@below {{expected kas_gpu.prologue on a linalg.generic without kas_gpu.schedule, got builtin.module}}
module attributes {kas_gpu.prologue} {}

// -----

// A11: a kernel of its own
func.func @a11(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{expected kas_gpu.prologue on a linalg.generic without kas_gpu.schedule, got linalg.generic}}
  %z = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>)
      attrs = {kas_gpu.prologue, kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 4, tile = [1]>} {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32>
  return %z : tensor<4xf32>
}
