// RUN: not kas-opt %s -kas-substitute="kernel=@free operator=kas.conv2d" 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not kas-opt %s -kas-substitute=kernel=@missing 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not kas-opt %s -kas-substitute=kernel=@free 2>&1 | FileCheck %s --check-prefix=FREE
// RUN: not kas-opt %s -kas-substitute=kernel=@two 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: not kas-opt %s -kas-substitute=kernel=@shape 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: not kas-opt %s -kas-substitute=kernel=@few 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: kas-opt %s -kas-substitute=kernel=@other 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: kas-opt %s -kas-substitute="kernel=@other space=@linears" 2>&1 | FileCheck %s --check-prefix=NONE

// BOTH: error: options require 'operator' or 'kernel', got both
// MISSING: error: requires a kas.kernel, got '@missing'

// NONE: warning: requires layers that are marked with 'kas.site' for '@linears', got none; kas-extract marks them

// FREE: error: 'kas.kernel' op requires bindings with values for all variables (see -kas-solve-budget)
kas.kernel @free<C, H, W | | x> (%in: [C | H, W]) -> [C | H, W] bindings [<C = 8, H = 6, W = 4>] {
  %a = kas.dag.fc %in to x : [C | H, W]
  %b = kas.dag.fc %a to C : [x | H, W]
  kas.dag.output %b : [C | H, W]
}

// TWO: error: 'kas.kernel' op requires one input, got 2
kas.kernel @two<C, H, W> (%a: [C | H, W], %b: [C | H, W]) -> [C | H, W] bindings [<C = 8, H = 6, W = 4>] {
  kas.dag.output %a : [C | H, W]
}

// SHAPE: error: 'kas.kernel' op requires an input and a result of one shape with one channel dimension, such as [C | H, W], got '!kas.tensor<[C, H]>' and '!kas.tensor<[C, H]>'
kas.kernel @shape<C, H> (%a: [C, H]) -> [C, H] bindings [<C = 8, H = 6>] {
  kas.dag.output %a : [C, H]
}

// FEW: error: 'linalg.conv_2d_nchw_fchw' op requires one of 1 bindings of '@few' in 'kas.site', got 1 : i64
kas.kernel @few<C, H, W> (%in: [C | H, W]) -> [C | H, W] bindings [<C = 8, H = 6, W = 4>] {
  kas.dag.output %in : [C | H, W]
}

// OTHER: remark: not replaced: requires a layer of the sizes of the binding
// OTHER: linalg.conv_2d_nchw_fchw
kas.kernel @other<C, H, W> (%in: [C | H, W]) -> [C | H, W] bindings [<C = 8, H = 6, W = 4>, <C = 4, H = 6, W = 4>] {
  kas.dag.output %in : [C | H, W]
}

func.func @layer(%x: tensor<1x8x6x4xf32> {kas.name = "input"}, %w: tensor<8x8x1x1xf32>, %i: tensor<1x8x6x4xf32>) -> tensor<1x8x6x4xf32> {
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, kas.site = {binding = 1 : i64, kernel = @convolutions}, strides = dense<1> : vector<2xi64>}
      ins(%x, %w : tensor<1x8x6x4xf32>, tensor<8x8x1x1xf32>) outs(%i : tensor<1x8x6x4xf32>) -> tensor<1x8x6x4xf32>
  return %y : tensor<1x8x6x4xf32>
}
