// RUN: kas-opt %s -split-input-file -verify-diagnostics -kas-gpu-to-cpu-loops | FileCheck %s

module attributes {gpu.container_module} {
// CHECK-LABEL: func @host
// CHECK: call @rotate(%{{.*}}, %{{.*}}) : (memref<8xf32>, memref<8xf32>) -> ()
func.func @host(%x: memref<8xf32>, %y: memref<8xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  gpu.launch_func @kernels::@rotate blocks in (%c2, %c1, %c1) threads in (%c4, %c1, %c1)
    args(%x : memref<8xf32>, %y : memref<8xf32>)
  return
}

// Each barrier ends a loop over threads; the value that a thread needs after it is kept, and so is what a loop with
// barriers carries.
// CHECK-LABEL: func private @rotate
// CHECK-SAME: (%[[X:.*]]: memref<8xf32>, %[[Y:.*]]: memref<8xf32>)
// CHECK-DAG: %[[CARRIED:.*]] = memref.alloca() : memref<4xf32>
// CHECK-DAG: %[[KEPT:.*]] = memref.alloca() : memref<4xindex>
// CHECK-DAG: %[[SHARED:.*]] = memref.alloca() {alignment = 64 : i64} : memref<4xf32>
// CHECK: scf.for %[[BLOCK:.*]] =
// CHECK: scf.for %[[T1:.*]] =
// CHECK: memref.store %{{.*}}, %[[KEPT]][%{{.*}}]
// CHECK: scf.for
// CHECK: memref.store %{{.*}}, %[[CARRIED]]
// CHECK: scf.for %[[STEP:.*]] =
// CHECK: scf.for
// CHECK: memref.store %{{.*}}, %[[SHARED]]
// CHECK: scf.for
// CHECK: memref.load %[[SHARED]]
// CHECK: memref.store %{{.*}}, %[[Y]]
// CHECK-NOT: gpu.
gpu.module @kernels {
  gpu.func @rotate(%x: memref<8xf32>, %y: memref<8xf32>) workgroup(%shared : memref<4xf32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 4, 1, 1>, known_grid_size = array<i32: 2, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %base = arith.muli %block, %c4 : index
    %id = arith.addi %base, %thread : index
    %next = arith.addi %thread, %c1 : index
    %neighbour = arith.remui %next, %c4 : index
    %value = memref.load %x[%id] : memref<8xf32>
    %last = scf.for %i = %c0 to %c3 step %c1 iter_args(%own = %value) -> (f32) {
      memref.store %own, %shared[%thread] : memref<4xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %other = memref.load %shared[%neighbour] : memref<4xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      scf.yield %other : f32
    }
    memref.store %last, %y[%id] : memref<8xf32>
    gpu.return
  }
}
}

// -----

// Threads that do not meet at a barrier would wait for ever.
module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @branch(%x: memref<8xf32>) kernel attributes {known_block_size = array<i32: 4, 1, 1>, known_grid_size = array<i32: 2, 1, 1>} {
    %c2 = arith.constant 2 : index
    %thread = gpu.thread_id x
    %few = arith.cmpi ult, %thread, %c2 : index
    // expected-error@below {{expected barriers and operations of warps in kernels and in scf.for only, got one in scf.if}}
    scf.if %few {
      gpu.barrier
    }
    gpu.return
  }
}
}

// -----

module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @bounds(%x: memref<8xf32>) kernel attributes {known_block_size = array<i32: 4, 1, 1>, known_grid_size = array<i32: 2, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %thread = gpu.thread_id x
    // expected-error@below {{expected bounds that are the same for all threads of a loop with a barrier}}
    scf.for %i = %c0 to %thread step %c1 {
      gpu.barrier
    }
    gpu.return
  }
}
}

// -----

module attributes {gpu.container_module} {
gpu.module @kernels {
  // expected-error@below {{expected a kernel whose grid is known, got none}}
  gpu.func @grid(%x: memref<8xf32>) kernel attributes {known_block_size = array<i32: 4, 1, 1>} {
    gpu.return
  }
}
}
