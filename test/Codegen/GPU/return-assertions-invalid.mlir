// RUN: kas-opt %s -kas-gpu-return-assertions -split-input-file -verify-diagnostics

func.func @never(%x: tensor<8xf32>) -> tensor<8xf32> {
  %false = arith.constant false
  // expected-error@below {{expected an assertion that can hold, got one that always fails: nothing holds}}
  cf.assert %false, "nothing holds"
  return %x : tensor<8xf32>
}

// -----

func.func @outside(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %a = tensor.extract %x[%c0] : tensor<8xf32>
  %holds = arith.cmpf ogt, %a, %zero : f32
  // expected-error@below {{expected assertions on constants, or in a linalg.generic on tensors of static shapes, for a GPU, got another}}
  cf.assert %holds, "more than 0"
  return %x : tensor<8xf32>
}

// -----

#id = affine_map<(i) -> (i)>
func.func @output(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%y : tensor<8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %holds = arith.cmpf ogt, %o, %a : f32
      // expected-error@below {{expected assertions on inputs of linalg.generic for a GPU, got one on an output}}
      cf.assert %holds, "more than the input"
      linalg.yield %a : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// expected-error@below {{expected a public function of one block with assertions for a GPU, got another}}
func.func private @hidden(%x: tensor<8xf32>, %holds: i1) -> tensor<8xf32> {
  cf.assert %holds, "holds"
  return %x : tensor<8xf32>
}
