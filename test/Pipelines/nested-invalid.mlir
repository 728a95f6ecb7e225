// Pipelines of modules that are nested in other operations are errors of the text, and do not end the process.
// RUN: not kas-opt %s --pass-pipeline='builtin.module(func.func(kas-cpu-pipeline))' 2>&1 | FileCheck %s
// CHECK: error: pipeline 'kas-cpu-pipeline' requires 'builtin.module', got 'func.func'
// RUN: not kas-opt %s --pass-pipeline='builtin.module(func.func(kas-cpu-pipeline{threads=1}))' 2>&1 | FileCheck %s

// On whatever operation is at the top, and on modules in modules, they run.
// RUN: kas-opt %s --pass-pipeline='any(kas-cpu-pipeline{threads=1})' | FileCheck %s --check-prefix=RUNS
// RUN: kas-opt %s --pass-pipeline='builtin.module(kas-cpu-pipeline{threads=1})' | FileCheck %s --check-prefix=RUNS
// RUNS: llvm.func @f
func.func @f() {
  return
}
