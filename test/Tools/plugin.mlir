// The plug-in brings the dialect and the passes to stock mlir-opt.
// RUN: %mlir_plugin_opt %s --load-dialect-plugin=%kas_plugin | FileCheck %s --check-prefixes=CHECK,PARSED
// RUN: %mlir_plugin_opt %s --load-dialect-plugin=%kas_plugin --load-pass-plugin=%kas_plugin \
// RUN:   --pass-pipeline='builtin.module(kas-canonicalize)' | FileCheck %s --check-prefixes=CHECK,CANONICAL
// RUN: not %mlir_plugin_opt %s 2>&1 | FileCheck %s --check-prefix=STOCK

// STOCK: kas

// CHECK: kas.operator @halves<N, C | s>
kas.operator @halves<N, C | s>(%n: N, %c: C) from [N, C] {
  // PARSED: kas.merge
  // CANONICAL-NOT: kas.merge
  %q, %r = kas.merge %c by s : C
  %t = kas.split %q, %r : C/s, s
  // CHECK: kas.yield
  kas.yield data(%n, %t)
}
