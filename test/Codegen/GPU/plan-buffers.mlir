// RUN: kas-opt %s -kas-gpu-plan-buffers | FileCheck %s

module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @step(%a: memref<100xf32>, %b: memref<100xf32>) kernel {
    gpu.return
  }
}

// A chain needs two buffers at once: the third lies where the first was.
// CHECK-LABEL: func @chain
// CHECK: %[[ALL:.*]] = memref.alloc() {alignment = 256 : i64, kas_gpu.scratch} : memref<912xi8>
// CHECK: memref.view %[[ALL]][%c0{{.*}}][] : memref<912xi8> to memref<100xf32>
// CHECK: memref.view %[[ALL]][%c512{{.*}}][] : memref<912xi8> to memref<10x10xf32>
// CHECK: memref.view %[[ALL]][%c0{{.*}}][] : memref<912xi8> to memref<100xf32>
// CHECK-NOT: memref.alloc
func.func @chain(%x: memref<100xf32>, %y: memref<100xf32>) {
  %one = arith.constant 1 : index
  %a = memref.alloc() : memref<100xf32>
  %b = memref.alloc() : memref<10x10xf32>
  %flat = memref.collapse_shape %b [[0, 1]] : memref<10x10xf32> into memref<100xf32>
  %c = memref.alloc() : memref<100xf32>
  gpu.launch_func @kernels::@step blocks in (%one, %one, %one) threads in (%one, %one, %one)
    args(%x : memref<100xf32>, %a : memref<100xf32>)
  gpu.launch_func @kernels::@step blocks in (%one, %one, %one) threads in (%one, %one, %one)
    args(%a : memref<100xf32>, %flat : memref<100xf32>)
  gpu.launch_func @kernels::@step blocks in (%one, %one, %one) threads in (%one, %one, %one)
    args(%flat : memref<100xf32>, %c : memref<100xf32>)
  gpu.launch_func @kernels::@step blocks in (%one, %one, %one) threads in (%one, %one, %one)
    args(%c : memref<100xf32>, %y : memref<100xf32>)
  return
}

// CHECK-LABEL: func @none
// CHECK-NEXT: return
func.func @none(%x: memref<100xf32>) {
  return
}
}
