// What cannot be searched, and why.
// RUN: not kas-opt %s -kas-search="kernel=@none" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: requires a kas.kernel @none in the module, got none of that name
// RUN: not kas-opt %s -kas-search="kernel=@bare" 2>&1 | FileCheck %s --check-prefix=BARE
// BARE: kernel-invalid.mlir:{{[0-9]+}}:1: error: 'kas.kernel' op requires bindings to search for kernels
// RUN: not kas-opt %s -kas-search="kernel=@two" 2>&1 | FileCheck %s --check-prefix=TWO
// TWO: error: 'kas.kernel' op requires one input to search for kernels, got 2
// RUN: not kas-opt %s -kas-search="kernel=@layer groups=k" 2>&1 | FileCheck %s --check-prefix=GROUPS
// GROUPS: error: 'kas.kernel' op requires a coefficient that divides another symbol as groups, got 'k'
// RUN: not kas-opt %s -kas-search="kernel=@layer kernel-limits=steps=3,steps-min=4" 2>&1 | FileCheck %s --check-prefix=STEPS
// STEPS: error: 'kas.kernel' op requires steps-min <= steps, got 4 and 3
// RUN: not kas-opt %s -kas-search="kernel=@layer kernel-limits=steps=99" 2>&1 | FileCheck %s --check-prefix=RANGE
// RANGE: error: 'kas.kernel' op requires limits of the search that make sense: requires 1 <= steps <= 14, got 99
// RUN: not kas-opt %s -kas-search="kernel=@layer kernel-limits=foo=1" 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: requires a limit among steps-min, {{.*}} or a primitive among fc, group, {{.*}}, got 'foo'
// RUN: not kas-opt %s -kas-search="kernel=@layer kernel-limits=steps" 2>&1 | FileCheck %s --check-prefix=FORM
// FORM: requires a limit of the form name=integer, got 'steps'
// RUN: not kas-opt %s -kas-search="kernel=@layer space=@layer" 2>&1 | FileCheck %s --check-prefix=BOTH
// BOTH: error: requires one of the options 'space' and 'kernel', got both
// RUN: not kas-opt %s -kas-search="groups=G" 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: error: requires the option 'kernel' for the options 'kernel-limits' and 'groups'
// RUN: not kas-opt %s -kas-search="kernel=@layer evaluators=imitation" 2>&1 | FileCheck %s --check-prefix=EVALUATOR
// EVALUATOR: error: requires an evaluator of kernels among flops, params, latency, external, got 'imitation'
// RUN: kas-opt %s -kas-search="kernel=@poor algorithm=uniform kernel-limits=steps=3" -o /dev/null 2>&1 | FileCheck %s --check-prefix=POOR
// POOR: warning: found no kernel: the space has none

kas.kernel canvas @layer<C, H, W | G, k> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 8, G = 2, H = 6, W = 6, k = 3>] {
  kas.dag.output %in : [C | H, W]
}

kas.kernel @bare<C> (%in: [C]) -> [C] {
  kas.dag.output %in : [C]
}

kas.kernel @two<C> (%in: [C], %other: [C]) -> [C] bindings [<C = 2>] {
  kas.dag.output %in : [C]
}

kas.kernel @poor<C> (%in: [C]) -> [C] bindings [<C = 8>] budget {params = 0} {
  kas.dag.output %in : [C]
}
