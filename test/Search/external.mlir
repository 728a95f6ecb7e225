// RUN: kas-opt %s -kas-search="evaluations=3 evaluators=flops,external external='exec %python %S/Inputs/worker.py good'" | FileCheck %s
// CHECK: kas.score = {flops = {{[0-9]+}} : i64, loss = {{[^ ]+}} : f64}

// What a worker is sent, on one line.
// RUN: kas-opt %s -kas-search="evaluations=1 evaluators=external external='head -n 1 > %t.requests; exec sleep 9' time-limit=0.3 retries=0" 2>&1 | FileCheck %s --check-prefix=SILENT
// SILENT: warning: found no operator: all 1 candidates failed, the first because external: the worker does not answer in time{{$}}
// RUN: FileCheck %s --check-prefix=REQUEST --input-file=%t.requests
// REQUEST: {"id":0,"operator":"kas.operator @candidate<N, Cin, Cout, W | k>({{.*}}\n","bindings":[{"N":1,"Cin":8,"Cout":8,"W":12,"k":3},{"N":1,"Cin":16,"Cout":16,"W":8,"k":3}],"multiplicities":[1,3]}

// An object that is no answer.
// RUN: kas-opt %s -kas-search="evaluations=1 evaluators=external external=cat retries=0" 2>&1 | FileCheck %s --check-prefix=ECHO
// ECHO: kas-search: worker 0 is started again: the worker answered '{\22id\22:0,{{.*}}...'
// ECHO: warning: found no operator: all 1 candidates failed, the first because external: the worker answered '{{.*}}'{{$}}

// A worker that does nothing is killed; so is all that it has started. The name is that of this run: others run beside it.
// RUN: cp $(command -v sleep) %t.sleep
// RUN: kas-opt %s -kas-search="evaluations=1 evaluators=external external='%t.sleep 1234 | %t.sleep 1234' time-limit=0.2 retries=1" 2>&1 | FileCheck %s --check-prefix=HANG
// HANG: the first because external: the worker does not answer in time (attempt 2 of 2)
// RUN: timeout 20 sh -c 'while pgrep -f "%t.slee[p]"; do sleep 0.1; done'

// A worker may have no more memory than it is given.
// RUN: kas-opt %s -kas-search="evaluations=1 evaluators=external memory-limit=100 retries=0 external='%python %S/Inputs/greedy.py'" 2>&1 | FileCheck %s --check-prefix=MEMORY
// MEMORY: the first because external: no memory

// RUN: not kas-opt %s -kas-search="evaluators=external external='exit 7'" 2>&1 | FileCheck %s --check-prefix=EXIT
// EXIT: error: requires a command that waits for candidates, but of 'exit 7' the worker ended with code 7
// RUN: not kas-opt %s -kas-search="evaluators=external" 2>&1 | FileCheck %s --check-prefix=COMMAND
// COMMAND: error: requires the option 'external' for the evaluator 'external'
// RUN: not kas-opt %s -kas-search="external=cat" 2>&1 | FileCheck %s --check-prefix=EVALUATOR
// EVALUATOR: error: requires 'external' among the evaluators for the option 'external'

kas.space @conv1d<N, Cin, Cout, W | k>
    [N, Cout unordered, W] from [N, Cin unordered, W]
    bindings [<N = 1, Cin = 8, Cout = 8, W = 12, k = 3>,
              <N = 1, Cin = 16, Cout = 16, W = 8, k = 3> x 3]
    limits {depth = 5}
