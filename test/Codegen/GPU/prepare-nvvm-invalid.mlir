// RUN: kas-opt %s -split-input-file -verify-diagnostics -kas-nvvm-pipeline

// LLVM's code generator for NVPTX has no such conversion, and ends the process.
#id = affine_map<(i) -> (i)>
func.func @wide(%x: tensor<64xi8>) -> tensor<64xf32> {
  %0 = tensor.empty() : tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xi8>) outs(%0 : tensor<64xf32>) {
  ^bb0(%byte: i8, %a: f32):
    %1 = arith.extui %byte : i8 to i128
    %2 = arith.muli %1, %1 : i128
    // expected-error @+1 {{requires integers of at most 64 bits in code for GPUs, got 'i128' to 'f32'}}
    %3 = arith.sitofp %2 : i128 to f32
    linalg.yield %3 : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

// PTX has no quoted names.
#id = affine_map<(i) -> (i)>
func.func @"%s"(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = tensor.empty() : tensor<64xf32>
  // expected-error @+1 {{requires a function with a name of letters, digits, '_', '$' and '.' in code for GPUs, got '%s_0'}}
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%0 : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %a : f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}
