// RUN: rm -rf %t && mkdir %t

// The same command again gives the same, and evaluates nothing.
// RUN: kas-opt %s -kas-search="algorithm=random seed=7 evaluations=12 top=3 database=%t/a.db" -o %t/1.mlir
// RUN: kas-opt %s -kas-search="algorithm=random seed=7 evaluations=12 top=3 database=%t/a.db progress=true" -o %t/2.mlir 2>&1 | FileCheck %s --check-prefix=AGAIN
// AGAIN-NOT: "candidate"
// AGAIN: {"event":"end",{{.*}}"evaluated":12,"failed":0,"replayed":12,"asked":12,
// RUN: diff %t/1.mlir %t/2.mlir
// RUN: FileCheck %s < %t/1.mlir
// CHECK: kas.operator @conv1d_0
// CHECK-SAME: attributes {kas.candidate = {{[0-9]+}} : i64, kas.origin = "conv1d", kas.score =

// More evaluations go on with the same file, to what one run would have found.
// RUN: kas-opt %s -kas-search="algorithm=random seed=7 evaluations=20 database=%t/a.db threads=2 progress=true" -o %t/3.mlir 2>&1 | FileCheck %s --check-prefix=MORE
// MORE-COUNT-8: "candidate"
// MORE-NOT: "candidate"
// RUN: kas-opt %s -kas-search="algorithm=random seed=7 evaluations=20 database=%t/b.db" -o %t/4.mlir
// RUN: diff %t/3.mlir %t/4.mlir
// RUN: kas-search-db check %t/a.db

// Errors leave the file as it is.
// RUN: cp %t/a.db %t/before.db
// RUN: not kas-opt %s -kas-search="algorithm=random seed=8 evaluations=20 database=%t/a.db" 2>&1 | FileCheck %s --check-prefix=SEED
// SEED: error: search database '{{.*}}a.db': is of another search: requires its seed '7', got '8'
// RUN: not kas-opt %s -kas-search="algorithm=random seed=7 evaluators=flops database=%t/a.db" 2>&1 | FileCheck %s --check-prefix=EVALUATORS
// EVALUATORS: error: search database '{{.*}}a.db': is of another search: requires its evaluators 'flops,params', got 'flops'
// RUN: sed 's/depth = 7/depth = 8/' %s > %t/deeper.mlir
// RUN: not kas-opt %t/deeper.mlir -kas-search="algorithm=random seed=7 database=%t/a.db" 2>&1 | FileCheck %s --check-prefix=SPACE
// SPACE: error: search database '{{.*}}a.db': is of another search: requires its space, got another
// RUN: cmp %t/a.db %t/before.db
// One of before says what its FLOPs are of.
// RUN: cp %t/a.db %t/old.db
// RUN: %python -c "import sqlite3; c = sqlite3.connect('%t/old.db'); c.execute('DELETE FROM setting WHERE name = \'flops_of\''); c.commit(); c.close()"
// RUN: not kas-opt %s -kas-search="algorithm=random seed=7 evaluations=20 database=%t/old.db" 2>&1 | FileCheck %s --check-prefix=OLD
// OLD: error: search database '{{.*}}old.db': is of another search: requires its flops_of 'weights one by one', got 'prepared weights'

// RUN: not kas-opt %s -kas-search="database=%s" 2>&1 | FileCheck %s --check-prefix=KIND
// KIND: error: search database '{{.*}}database.mlir': requires a database, got a file of another kind
// RUN: head -c 5000 %t/a.db > %t/truncated.db && cp %t/truncated.db %t/truncated-before.db
// RUN: not kas-opt %s -kas-search="algorithm=random seed=7 database=%t/truncated.db" 2>&1 | FileCheck %s --check-prefix=TRUNCATED
// TRUNCATED: error: search database '{{.*}}truncated.db': database disk image is malformed
// RUN: cmp %t/truncated.db %t/truncated-before.db
// RUN: chmod a-w %t/a.db
// RUN: not kas-opt %s -kas-search="algorithm=random seed=7 evaluations=30 database=%t/a.db" 2>&1 | FileCheck %s --check-prefix=READONLY
// READONLY: error: search database '{{.*}}a.db': the file is read-only
// RUN: cmp %t/a.db %t/before.db
// RUN: chmod u+w %t/a.db
// RUN: not kas-opt %s -kas-search="database=%t/none/a.db" 2>&1 | FileCheck %s --check-prefix=DIRECTORY
// DIRECTORY: error: search database '{{.*}}none/a.db': No such file or directory

// A second process is turned away; when the disk is full the search ends, and goes on once there is space.
// RUN: %python %S/Inputs/contend.py %t kas-search-db kas-opt %s -kas-search="algorithm=random seed=7 evaluations=200 database=DATABASE"

kas.space @conv1d<N, Cin, Cout, W | k>
    [N, Cout unordered, W] from [N, Cin unordered, W]
    bindings [<N = 1, Cin = 8, Cout = 8, W = 12, k = 3>,
              <N = 1, Cin = 16, Cout = 16, W = 8, k = 3> x 3]
    limits {depth = 7}
