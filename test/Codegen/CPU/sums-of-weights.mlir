// A stage that sums weights and multiplies nothing: of more elements than the
// second-level cache holds it was taken for one row of a product.

// RUN: kas-run %s --operator=sums_of_weights --check=exact | FileCheck %s
// RUN: kas-opt %s -kas-specialize -kas-cpu-pipeline='cpu=x86-64-v4 threads=1 prepack-weights=true' -o /dev/null

// CHECK: {{^  ok$}}
kas.operator @sums_of_weights(%n: 4, %o: 512) from [4, 512] {
  %r = kas.reduce sum : 1024
  %o_d, %o_w = kas.share %o : 512
  kas.yield data(%n, %o_d) weight(%r, %o_w)
}

func.func @layer(%x: tensor<4x512xf32> {kas.name = "input"}, %w: tensor<1024x512xf32> {kas.name = "w"})
    -> tensor<4x512xf32> {
  %y = kas.apply @sums_of_weights(%x, %w) : (tensor<4x512xf32>, tensor<1024x512xf32>) -> tensor<4x512xf32>
  return %y : tensor<4x512xf32>
}
