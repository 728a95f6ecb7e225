// Kernels of the tensor level, by every algorithm: legal, solved, within the
// budget.
// RUN: kas-opt %s -kas-search="kernel=@layer groups=G algorithm=random evaluations=20 kernel-limits=steps=5 top=3" | FileCheck %s
// RUN: kas-opt %s -kas-search="kernel=@layer groups=G algorithm=evolution evaluations=40 kernel-limits=steps=5 top=3" | FileCheck %s
// RUN: kas-opt %s -kas-search="kernel=@layer groups=G algorithm=mcts evaluations=40 kernel-limits=steps=5 parameters=tree-expansions=1000 top=3" | FileCheck %s
// RUN: kas-opt %s -kas-search="kernel=@layer algorithm=surrogate evaluations=30 kernel-limits=steps=4,width=2 parameters=pool=50 top=3" | FileCheck %s

// One seed gives one result; what was found is IR that a second run reads.
// RUN: kas-opt %s -kas-search="kernel=@layer groups=G algorithm=random seed=3 evaluations=20" > %t.first
// RUN: kas-opt %s -kas-search="kernel=@layer groups=G algorithm=random seed=3 evaluations=20" > %t.second
// RUN: diff %t.first %t.second
// RUN: kas-opt %t.first -o /dev/null
// RUN: FileCheck %s --check-prefix=COUNT < %t.first
// COUNT-COUNT-21: kas.kernel

// A database goes on where it stopped.
// RUN: rm -f %t.db
// RUN: kas-opt %s -kas-search="kernel=@layer algorithm=random evaluations=5 database=%t.db" -o /dev/null
// RUN: kas-opt %s -kas-search="kernel=@layer algorithm=random evaluations=9 database=%t.db" | FileCheck %s --check-prefix=DATABASE
// RUN: not kas-opt %s -kas-search="kernel=@layer kernel-limits=steps=4 algorithm=random evaluations=9 database=%t.db" 2>&1 | FileCheck %s --check-prefix=OTHER
// DATABASE: kas.candidate = {{[0-9]+}} : i64
// OTHER: kernel_search

// CHECK:       kas.kernel canvas @layer<
// CHECK:       kas.kernel canvas @layer_0<C, H, W | G, k
// CHECK:         (%{{.*}}: [C | H, W]) -> [C | H, W]
// CHECK:         bindings [<C = 8, G = {{[0-9]+}}, H = 6, W = 6, k = 3{{.*}}> x 2, <C = 16
// CHECK:         budget {flops = 1000000 : i64, params = 8000 : i64}
// CHECK:         solution {flops = {{[0-9]+}} : i64, flops_bound = {{[0-9]+}} : i64, params = {{[0-9]+}} : i64, status =
// CHECK-SAME:    kas.origin = "layer", kas.score = {flops = {{[0-9]+}} : i64, params = {{[0-9]+}} : i64}
// CHECK:       kas.kernel canvas @layer_1<
// CHECK:       kas.kernel canvas @layer_2<
// CHECK-NOT:   kas.kernel

kas.kernel canvas @layer<C, H, W | G, k> where [G divides C]
    (%in: [C | H, W]) -> [C | H, W]
    bindings [<C = 8, G = 2, H = 6, W = 6, k = 3> x 2, <C = 16, G = 2, H = 5, W = 5, k = 1>]
    budget {flops = 1000000, params = 8000} {
  %u = kas.dag.unfold %in dims [1, 2] by [k, k] : [C | H, W]
  %y = kas.dag.fc %u to C : [C, k, k | H, W]
  kas.dag.output %y : [C | H, W]
}
