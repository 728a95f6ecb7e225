// Pipelines of modules that are nested in other operations are errors of the text, and do not end the process.
// RUN: not kas-opt %s --pass-pipeline='builtin.module(func.func(kas-gpu-front-half))' 2>&1 | FileCheck %s -DNAME=kas-gpu-front-half
// RUN: not kas-opt %s --pass-pipeline='builtin.module(func.func(kas-nvvm-pipeline))' 2>&1 | FileCheck %s -DNAME=kas-nvvm-pipeline
// RUN: not kas-opt %s --pass-pipeline='builtin.module(func.func(kas-spirv-pipeline))' 2>&1 | FileCheck %s -DNAME=kas-spirv-pipeline
// CHECK: error: pipeline '[[NAME]]' requires 'builtin.module', got 'func.func'
func.func @f() {
  return
}
