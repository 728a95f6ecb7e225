// RUN: kas-opt %s --split-input-file --verify-diagnostics -kas-substitute=same-weights

// expected-warning @below {{requires layers that are marked with 'kas.site', got none; kas-extract marks them}}
module {
}

// -----

func.func @malformed(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{expected a space or a kernel and a binding as kas.site, got @linear}}
  %y = linalg.matmul {kas.site = @linear} ins(%x, %w : tensor<2x4xf32>, tensor<4x4xf32>) outs(%x : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

func.func @no_binding(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{expected a space or a kernel and a binding as kas.site, got {space = @linear}}}
  %y = linalg.matmul {kas.site = {space = @linear}} ins(%x, %w : tensor<2x4xf32>, tensor<4x4xf32>) outs(%x : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

func.func @no_space(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{requires a kas.space in 'kas.site', got @no_space}}
  %y = linalg.matmul {kas.site = {binding = 0 : i64, space = @no_space}} ins(%x, %w : tensor<2x4xf32>, tensor<4x4xf32>) outs(%x : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

kas.space @linear<N, Cin, Cout> [N, Cout] from [N, Cin] bindings [<Cin = 4, Cout = 4, N = 2>]
func.func @binding_out_of_range(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{requires one of 1 bindings of @linear in 'kas.site', got 1}}
  %y = linalg.matmul {kas.site = {binding = 1 : i64, space = @linear}} ins(%x, %w : tensor<2x4xf32>, tensor<4x4xf32>) outs(%x : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

kas.space @linear<N, Cin, Cout> [N, Cout] from [N, Cin] bindings [<Cin = 4, Cout = 4, N = 2>]
func.func @negative_binding(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{requires one of 1 bindings of @linear in 'kas.site', got -1}}
  %y = linalg.matmul {kas.site = {binding = -1 : i64, space = @linear}} ins(%x, %w : tensor<2x4xf32>, tensor<4x4xf32>) outs(%x : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

func.func @narrow_binding(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{expected a space or a kernel and a binding as kas.site, got {binding = 0 : i0, space = @linear}}}
  %y = linalg.matmul {kas.site = {binding = 0 : i0, space = @linear}} ins(%x, %w : tensor<2x4xf32>, tensor<4x4xf32>) outs(%x : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
