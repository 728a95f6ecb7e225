// Brute force enumerates what a budget does not cut: it refuses one with a message.
// RUN: not kas-prove-space %s 2>&1 | FileCheck %s --implicit-check-not='Stack dump'

// CHECK: brute force knows no budgets
kas.space @budget<H> [H] from [H]
    bindings [<H = 4>]
    limits {depth = 1}
    budget {flops = 100}
