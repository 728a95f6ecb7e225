// RUN: kas-opt %s -kas-gpu-form-kernels -split-input-file -verify-diagnostics

// expected-error@below {{expected static shapes for kernels of a GPU, got 'tensor<?xf32>'}}
func.func @dynamic(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}

// -----

func.func @dynamic_inside(%x: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  // expected-error@below {{expected static shapes for kernels of a GPU, got 'tensor<?xf32>'}}
  %a = tensor.extract_slice %x[0] [%n] [1] : tensor<8xf32> to tensor<?xf32>
  return %x : tensor<8xf32>
}

// -----

// expected-error@below {{expected a function of one block for kernels of a GPU, got several}}
func.func @blocks(%x: tensor<8xf32>) -> tensor<8xf32> {
  cf.br ^bb1
^bb1:
  return %x : tensor<8xf32>
}

// -----

func.func @strided(%x: tensor<8xf32>, %y: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error@below {{expected constant offsets and strides of 1 for kernels of a GPU, got others}}
  %z = tensor.insert_slice %y into %x[0] [4] [2] : tensor<4xf32> into tensor<8xf32>
  return %z : tensor<8xf32>
}

// -----

func.func @padding(%x: tensor<8xf32>, %value: f32) -> tensor<9xf32> {
  // expected-error@below {{expected constants as numbers and values of tensor.pad for kernels of a GPU, got others}}
  %y = tensor.pad %x low[0] high[1] {
  ^bb0(%i: index):
    tensor.yield %value : f32
  } : tensor<8xf32> to tensor<9xf32>
  %empty = tensor.empty() : tensor<9xf32>
  %z = linalg.negf ins(%y : tensor<9xf32>) outs(%empty : tensor<9xf32>) -> tensor<9xf32>
  return %z : tensor<9xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>
func.func @captured(%x: tensor<8xf32>, %value: f32) -> tensor<8xf32> {
  %empty = tensor.empty() : tensor<8xf32>
  // expected-error@below {{expected constants only of what the body reads from outside, got}}
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
    ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %value : f32
    linalg.yield %sum : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

func.func @other(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@below {{expected linalg operations, views of tensors and kas.apply for kernels of a GPU, got tensor.generate}}
  %a = tensor.generate {
  ^bb0(%i: index):
    %v = tensor.extract %x[%i] : tensor<8xf32>
    tensor.yield %v : f32
  } : tensor<8xf32>
  %empty = tensor.empty() : tensor<8xf32>
  %y = linalg.negf ins(%a : tensor<8xf32>) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

#id = affine_map<(i) -> (i)>
func.func @assertion(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %zero = arith.constant 0.0 : f32
      %holds = arith.cmpf ogt, %a, %zero : f32
      // expected-error@below {{expected no assertion in kernels of a GPU, which -kas-gpu-return-assertions makes a result, got one}}
      cf.assert %holds, "more than 0"
      linalg.yield %a : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @softmax_of_integers(%x: tensor<4xi32>) -> tensor<4xi32> {
  // expected-error@below {{expected a softmax of floats for kernels of a GPU, got 'tensor<4xi32>'}}
  %0 = linalg.softmax dimension(0) ins(%x : tensor<4xi32>) outs(%x : tensor<4xi32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}
