// Every algorithm finds the whole of a small space, each operator once; a seed repeats.
// RUN: for a in random uniform exhaustive evolution mcts surrogate; do kas-opt %s -kas-search="algorithm=$a seed=3 evaluations=1000" -o %t.$a || exit 1; done
// RUN: for a in uniform exhaustive evolution mcts surrogate; do grep -c "kas.operator" %t.random > %t.1; grep -c "kas.operator" %t.$a > %t.2; diff %t.1 %t.2 || exit 1; done
// RUN: for a in evolution mcts surrogate; do kas-opt %s -kas-search="algorithm=$a seed=3 evaluations=12 database=%t.$a.db" -o %t.3 || exit 1; kas-opt %s -kas-search="algorithm=$a seed=3 evaluations=12" -o %t.4 || exit 1; sed 's/kas.candidate = [0-9]* : i64, //' %t.3 | diff - %t.4 || exit 1; rm %t.$a.db; done

// Exhaustive: by cost.
// RUN: kas-opt %s -kas-search="algorithm=exhaustive evaluations=3 progress=true" -o /dev/null 2>&1 | FileCheck %s --check-prefix=ORDER
// ORDER: "id":0,"seconds":{{[0-9.e-]+}},"metrics":{"flops":5760,
// ORDER: "id":1,

// RUN: kas-opt %s -kas-search="algorithm=exhaustive evaluations=1000 progress=true" -o /dev/null 2>&1 | FileCheck %s --check-prefix=ALL
// ALL: {"event":"end",{{.*}}"exhausted":true,

// RUN: not kas-opt %s -kas-search="algorithm=luck" 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: error: expected an algorithm (random, uniform, exhaustive, evolution, mcts, surrogate), got 'luck'
// RUN: kas-opt --help | FileCheck %s --check-prefix=HELP
// HELP:      --kas-search
// HELP:        --algorithm=<string>
// HELP-SAME:     random {{.*}}uniform {{.*}}exhaustive {{.*}}evolution {{.*}}mcts {{.*}}surrogate
// RUN: not kas-opt %s -kas-search="algorithm=mcts parameters=exploration=x" 2>&1 | FileCheck %s --check-prefix=VALUE
// VALUE: error: expected a number 0 <= exploration <= 1e+09, got 'x'
// RUN: kas-opt %s -kas-search="algorithm=evolution parameters=population=5,keep=0.5 evaluations=5" | FileCheck %s --check-prefix=PARAMETERS
// PARAMETERS: kas.operator

kas.space @conv1d<N, Cin, Cout, W | k>
    [N, Cout unordered, W] from [N, Cin unordered, W]
    bindings [<N = 1, Cin = 8, Cout = 8, W = 12, k = 3>,
              <N = 1, Cin = 16, Cout = 16, W = 8, k = 3> x 3]
    limits {depth = 5}
