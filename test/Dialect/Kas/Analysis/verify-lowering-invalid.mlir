// RUN: not kas-opt %s -kas-verify-lowering 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not kas-opt %s -kas-verify-lowering="lowered=run" 2>&1 | FileCheck %s --check-prefix=PAIR
// RUN: not kas-opt %s -kas-verify-lowering="lowered=run:other" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not kas-opt %s -kas-verify-lowering="lowered=run:copy,declared:copy" 2>&1 | FileCheck %s --check-prefix=BODY

// NONE: error: requires the option lowered=FUNCTION:OPERATOR, got none
// PAIR: error: requires names of a function and of an operator in lowered, got 'run'
// NAME: error: requires names of a function and of an operator in lowered, got 'run:other'
// BODY: error: requires a body of one block, got 0 blocks

kas.operator @copy(%i: 4) from [4] {
  kas.yield data(%i)
}

func.func @run(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

func.func private @declared(%x: tensor<4xf32>) -> tensor<4xf32>
