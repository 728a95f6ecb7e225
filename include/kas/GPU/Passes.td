//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes from operators to kernels for GPUs.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_GPU_PASSES
#define KAS_GPU_PASSES

include "mlir/Pass/PassBase.td"

def GPUSchedule : Pass<"kas-gpu-schedule", "::mlir::ModuleOp"> {
  let summary = "Choose how operators are cut for a GPU";
  let description = [{
    Input: `kas.apply`s of concrete operators (`-kas-specialize` makes them so;
    `-kas-rfactor` cuts them into stages, each of which becomes a kernel). Output:
    the same, each with an attribute `kas_gpu.schedule` that says how it is cut
    into blocks, threads and register tiles, and the module with the attribute
    `kas_gpu.device` that the choice depends on. A schedule that is there already
    stays. `max-threads` and `shared-bytes` take the place of the device's.

    The cost model counts, for each candidate, the instructions of a thread and
    the bytes that go through each level of memory, and how many threads a
    processor can hold with their registers and workgroup memory.

    Exposed as `chooseGPUSchedule()` in `kas/GPU/Schedule.h`. Example:
    `test/GPU/schedule.mlir`.
  }];
  let options = [
    Option<"device", "device", "std::string", /*default=*/"",
           "sm_80, sm_90, ..., or vulkan; by default that of the module, or "
           "sm_90">,
    Option<"maxThreads", "max-threads", "int64_t", /*default=*/"0",
           "Most threads of a block; 0: those of the device">,
    Option<"sharedBytes", "shared-bytes", "int64_t", /*default=*/"0",
           "Most bytes of workgroup memory; 0: those of the device">
  ];
  let dependentDialects = ["::kas::KasDialect", "::kas::KasGPUDialect"];
}

def GPUOutline : Pass<"kas-gpu-outline", "::mlir::ModuleOp"> {
  let summary = "Make kernels of scheduled operators";
  let description = [{
    Input: `kas.apply`s with the attribute `kas_gpu.schedule`, on tensors. Output:
    for each different one a `gpu.func` in the `gpu.module` called `kernels`, and in
    place of each `kas.apply` a new buffer, a `gpu.launch_func` that fills it, and
    the buffer as a tensor.

    Arguments of kernels are one-dimensional buffers of static size: the data, the
    weights, the output (the attribute `kas_gpu.access` says which are read and
    which are written). There are no other arguments: constants are inside. Tiles
    at edges are guarded: nothing outside of a buffer is read or written. Indices
    are computed in the type `index`, which both back ends make 32 bits wide.

    It is an error if a schedule does not suit its operator, or if a limit of the
    device is exceeded: threads of a block, workgroup memory, blocks of a grid,
    bytes of a buffer.

    Exposed as `outlineKernels()` in `kas/GPU/GPU.h`. Example:
    `test/GPU/outline.mlir`.
  }];
  let statistics = [
    Statistic<"numKernels", "kernels", "kernels made">,
    Statistic<"numLaunches", "launches", "launches of kernels">];
  let dependentDialects = [
    "::kas::KasDialect", "::kas::KasGPUDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect", "::mlir::gpu::GPUDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def GPUPlanBuffers : Pass<"kas-gpu-plan-buffers", "::mlir::func::FuncOp"> {
  let summary = "Put temporary buffers of a function into one";
  let description = [{
    Input: functions on buffers that launch kernels. Output: all `memref.alloc`s of
    static shape in their body are parts of one allocation with the attribute
    `kas_gpu.scratch`, at offsets that are multiples of 256 bytes. Buffers that are
    needed at the same time do not overlap; the others may. Offsets are found by
    taking buffers by decreasing size and giving each the lowest place that is
    free while it lives.

    Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
    Inference", MLSys 2020 workshop, section 5.2 (greedy by size).
    Example: `test/GPU/plan-buffers.mlir`.
  }];
  let dependentDialects = ["::kas::KasGPUDialect", "::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def GPUToCPULoops : Pass<"kas-gpu-to-cpu-loops", "::mlir::ModuleOp"> {
  let summary = "Run kernels on the CPU, with loops over blocks and threads";
  let description = [{
    Input: kernels and their launches, as `-kas-gpu-outline` makes them. Output: the
    kernels as functions with loops over blocks and threads, and calls of these, so
    that what a GPU would compute can be computed and checked without one. Threads
    run one after another from barrier to barrier: the code between two barriers is
    a loop over threads, and what a thread needs behind a barrier is kept in
    memory. A loop with a barrier inside must have the same bounds for all threads.

    Source: Stratton et al., "MCUDA: An Efficient Implementation of CUDA Kernels
    for Multi-core CPUs", LCPC 2008, section 3 (deep fission).
    Example: `test/GPU/to-cpu-loops.mlir`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

#endif // KAS_GPU_PASSES
