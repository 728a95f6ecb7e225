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

#ifndef KAS_CODEGEN_GPU_PASSES_TD
#define KAS_CODEGEN_GPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def KasGPUFormKernelsPass : Pass<"kas-gpu-form-kernels", "::mlir::func::FuncOp"> {
  let summary = "Make linalg operations each of which is one kernel";
  let description = [{
    Input: a function of one block on tensors of static shapes: linalg operations,
    `kas.apply`s, padding, slices and reshapes. Output: each `linalg.generic` is a
    kernel, and so is each `kas.apply`; all else are constants and views
    (`tensor.pad`, `tensor.extract_slice`, `tensor.expand_shape`,
    `tensor.collapse_shape`, `linalg.transpose`, `linalg.broadcast`,
    `linalg.fill`), which kernels of `linalg.generic`s read through: they take no
    time and no memory.

    Named operations become generic; what sums of products begin with is added
    after them; elementwise operations are fused (`-kas-fuse-elementwise`);
    `tensor.insert_slice` selects, point by point. Where a view must be a tensor of
    its own, because the function returns it or a `kas.apply` reads it, a
    `linalg.generic` copies it: canonicalization would remove that.

    ```mlir
    %1 = linalg.conv_2d_nchw_fchw ins(%padded, %w) outs(%bias)
    %2 = linalg.generic ... ins(%1) { arith.maximumf }
    // becomes a sum of products and what is elementwise
    %1 = linalg.generic ... ins(%padded, %w) outs(%zeros) { arith.mulf, arith.addf }
    %2 = linalg.generic ... ins(%1, %bias) { arith.addf, arith.maximumf }
    ```

    A pass on `func.func`, not on the interface of functions, so that
    `kas-opt` runs it on all functions of a module without a nested pipeline.

    Example: `test/Codegen/GPU/form-kernels.mlir`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def KasGPUReturnAssertionsPass : Pass<"kas-gpu-return-assertions", "::mlir::func::FuncOp"> {
  let summary = "Compute assertions on elements as one more result";
  let description = [{
    Programs for devices are kernels alone: nothing there can stop. Input: a public
    function of one block on tensors, with assertions (`cf.assert`) whose condition
    is known when constants are folded, or that are in a `linalg.generic` on
    tensors of static shapes and do not depend on its outputs. Output: the same
    without assertions, with one more result, a tensor of rank 0 of i32: the position
    of the first assertion, in the order of the function, that some element fails, or
    2147483647. The attribute `kas_gpu.assertions` has their texts, each with its
    place in the model before it; it becomes part of the manifest, and who runs the
    program reads the result. An assertion that cannot hold is an error here.

    Example: `test/Codegen/GPU/return-assertions.test`.
  }];
  let dependentDialects = [
    "::kas::KasGPUDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def KasGPUSetElementsPass : Pass<"kas-gpu-set-elements", "::mlir::func::FuncOp"> {
  let summary = "Keep tensors of f32 in fewer bits";
  let description = [{
    Input: functions as `-kas-gpu-form-kernels` makes them. Output: the same, where
    arguments, results, constants and what kernels hand on are tensors of f16 or
    bf16 in place of f32. Kernels compute in f32: what they load is widened, what
    they store is rounded to nearest, and so are results of reductions in linalg, once
    these end, by the kernel or its epilogue.

    A pass on `func.func`, not on the interface of functions, so that
    `kas-opt` runs it on all functions of a module without a nested pipeline.

    Example: `test/Codegen/GPU/set-elements.mlir`.
  }];
  let options = [
    Option<"elements", "elements", "::kas::codegen::GPUElements",
           "::kas::codegen::GPUElements::F32",
           "What tensors of f32 are kept in: f32, f16 or bf16",
           "::kas::codegen::getElementsValues()">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"];
}

def KasGPUChannelsLastPass : Pass<"kas-gpu-channels-last", "::mlir::ModuleOp"> {
  let summary = "Keep images between convolutions with their channels last";
  let description = [{
    Input: functions as `-kas-gpu-form-kernels` makes them. Output: the same, where kernels
    write images that convolutions read or write, and all that is elementwise or
    pooled between them, with the channels innermost; filters are copied to the same order.
    What reads an image reads it through a `linalg.transpose`, a view that is no kernel.

    Decided for each function by the cost model, for NVIDIA's GPUs: the cycles of all
    contractions in the order that they have, with the images inside of the function in the
    other one, and with arguments and results copied to and from it as well, by a
    kernel each. With `libraries=auto` each contraction counts as the faster one of its kernel
    and a library: cuDNN has convolutions in one order of all tensors only, and with windows is up to twice as fast with channels last.
    What is not a contraction counts nothing. The order stays unless another one gains a
    twentieth, and where an operation has a schedule.

    Images stay as they are where anything else than kernels and paddings reads them, such as operators and reshapes.

    Example: `test/Codegen/GPU/channels-last.mlir`.
  }];
  let options = [
    Option<"device", "device", "std::string", /*default=*/"",
           "sm_80, sm_90, ..., vulkan or vulkan-cpu; by default that of the "
           "module, or sm_90">,
    Option<"strategy", "strategy", "::kas::codegen::GPUStrategyChoice",
           "::kas::codegen::GPUStrategyChoice::Auto",
           "direct, staged, tensor_core or warpgroup, for operators that can be "
           "computed so; auto: the cheapest one",
           "::kas::codegen::getStrategyValues()">,
    Option<"precision", "precision", "::kas::GPUPrecision",
           "::kas::GPUPrecision::F32",
           "What factors of products may be rounded to: f32, or tf32, f16 or "
           "bf16 for tensor cores",
           "::kas::codegen::getPrecisionValues()">,
    Option<"libraries", "libraries", "::kas::codegen::GPULibraries",
           "::kas::codegen::GPULibraries::None",
           "What may compute kernels: none, or auto for cuBLASLt and cuDNN where "
           "they are expected to be faster, or cublaslt or cudnn for one of them",
           "::kas::codegen::getLibrariesValues()">,
    Option<"layout", "layout", "::kas::codegen::GPULayout",
           "::kas::codegen::GPULayout::Auto",
           "The order of images in functions: auto, as_is, inside (channels last but for arguments and results) or whole",
           "::kas::codegen::getLayoutValues()">
  ];
  let dependentDialects = [
    "::kas::KasGPUDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"];
}

def KasGPUTransposeWeightsPass : Pass<"kas-gpu-transpose-weights", "::mlir::ModuleOp"> {
  let summary = "Copy weights into the order in which kernels read them";
  let description = [{
    Input: functions as `-kas-gpu-form-kernels` makes them. Output: the same, where
    sums of products read some weights in another order of dimensions, which a
    `linalg.generic` of its own, one more kernel, makes of them.

    Kernels copy blocks of weights to workgroup memory by steps along the reduction
    with the most values; the window of a convolution is put in one after another.
    Where the weights of a convolution are in memory as PyTorch has them, the window
    is innermost: neighbouring steps are as far apart as a window is large, and each
    element is read for itself. On an H200 this took half of the time of 3x3
    convolutions (research/reports/gpu.md). What depends on weights (see `kas.data`) and
    constants alone is copied once for all calls (`-kas-gpu-plan-buffers`), anything else where
    what kernels gain is more than what a kernel takes: by the number of blocks that read it.

    With `libraries=auto` what a library is expected to compute in less time than such a kernel keeps its weights and gets
    the attribute `kas_gpu.library` (see `-kas-gpu-schedule`); the kernel is one with `strategy` and `precision`.

    Example: `test/Codegen/GPU/transpose-weights.mlir`.
  }];
  let options = [
    Option<"device", "device", "std::string", /*default=*/"",
           "sm_80, sm_90, ..., vulkan or vulkan-cpu; by default that of the "
           "module, or sm_90">,
    Option<"strategy", "strategy", "::kas::codegen::GPUStrategyChoice",
           "::kas::codegen::GPUStrategyChoice::Auto",
           "direct, staged, tensor_core or warpgroup, for operators that can be "
           "computed so; auto: the cheapest one",
           "::kas::codegen::getStrategyValues()">,
    Option<"precision", "precision", "::kas::GPUPrecision",
           "::kas::GPUPrecision::F32",
           "What factors of products may be rounded to: f32, or tf32, f16 or "
           "bf16 for tensor cores",
           "::kas::codegen::getPrecisionValues()">,
    Option<"libraries", "libraries", "::kas::codegen::GPULibraries",
           "::kas::codegen::GPULibraries::None",
           "What may compute kernels: none, or auto for cuBLASLt and cuDNN where "
           "they are expected to be faster, or cublaslt or cudnn for one of them",
           "::kas::codegen::getLibrariesValues()">
  ];
  let dependentDialects = [
    "::kas::KasGPUDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"];
}

def KasGPUSchedulePass : Pass<"kas-gpu-schedule", "::mlir::ModuleOp"> {
  let summary = "Choose how operators are cut for a GPU";
  let description = [{
    Input: `kas.apply`s of concrete operators (`-kas-specialize` makes them so;
    `-kas-rfactor` cuts them into stages, each of which becomes a kernel) and
    `linalg.generic`s as `-kas-gpu-form-kernels` makes them. Output:
    the same, each with an attribute `kas_gpu.schedule` that says how it is cut
    into blocks, threads and register tiles, and the module with the attribute
    `kas_gpu.device` that the choice depends on. A schedule that is there already
    stays, and the epilogue of a kernel (see `-kas-gpu-outline`) gets none.
    `max-threads` and `shared-bytes` take the place of the device's. Reductions that each block of the kernel of their only
    reader is to compute get the attribute `kas_gpu.prologue` in place of a schedule, where that is expected to take less time.

    With `libraries=auto`, and a device of NVIDIA's, products of matrices and convolutions for which the cost model expects
    cuBLASLt or cuDNN to be faster than the best kernel get an attribute `kas_gpu.library` as well, a `#kas_gpu.matmul` or
    a `#kas_gpu.convolution`. What had a schedule before gets none.

    The cost model counts, for each candidate, the instructions of a thread and
    the bytes that go through each level of memory, and how many threads a
    processor can hold with their registers and workgroup memory.

    Exposed as `chooseGPUSchedule()` in `kas/Codegen/GPU/Strategy/ScheduleSpace.h`. Example:
    `test/Codegen/GPU/schedule.mlir`.
  }];
  let options = [
    Option<"device", "device", "std::string", /*default=*/"",
           "sm_80, sm_90, ..., vulkan or vulkan-cpu; by default that of the "
           "module, or sm_90">,
    Option<"maxThreads", "max-threads", "int64_t", /*default=*/"0",
           "Most threads of a block; 0: those of the device">,
    Option<"sharedBytes", "shared-bytes", "int64_t", /*default=*/"0",
           "Most bytes of workgroup memory; 0: those of the device">,
    Option<"strategy", "strategy", "::kas::codegen::GPUStrategyChoice",
           "::kas::codegen::GPUStrategyChoice::Auto",
           "direct, staged, tensor_core or warpgroup, for operators that can be "
           "computed so; auto: the cheapest one",
           "::kas::codegen::getStrategyValues()">,
    Option<"precision", "precision", "::kas::GPUPrecision",
           "::kas::GPUPrecision::F32",
           "What factors of products may be rounded to: f32, or tf32, f16 or "
           "bf16 for tensor cores",
           "::kas::codegen::getPrecisionValues()">,
    Option<"libraries", "libraries", "::kas::codegen::GPULibraries",
           "::kas::codegen::GPULibraries::None",
           "What may compute kernels: none, or auto for cuBLASLt and cuDNN where "
           "they are expected to be faster, or cublaslt or cudnn for one of them",
           "::kas::codegen::getLibrariesValues()">
  ];
  let dependentDialects = ["::kas::KasDialect", "::kas::KasGPUDialect"];
}

def KasGPURoundWeightsPass : Pass<"kas-gpu-round-weights", "::mlir::ModuleOp"> {
  let summary = "Round weights for tensor cores once";
  let description = [{
    Input: functions whose kernels have schedules (`-kas-gpu-schedule`). Output: the
    same, where sums of products of `linalg.generic`s for tensor cores, which no library computes, read those
    factors in f32 that depend on weights (see `kas.data`) and constants alone in the
    type of their `precision`: f16 or bf16, or f32 with the values of tf32, of which
    `kas_gpu.rounded` says which operands they are. A `linalg.generic`, one more kernel, rounds
    them, or that which computes them for this reader alone. These have no schedule:
    `-kas-gpu-schedule` is to run again.

    The kernels would round them wherever they read them. Values are the same.

    Example: `test/Codegen/GPU/round-weights.mlir`.
  }];
  let dependentDialects = [
    "::kas::KasGPUDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def KasGPUOutlinePass : Pass<"kas-gpu-outline", "::mlir::ModuleOp"> {
  let summary = "Make kernels of scheduled operators";
  let description = [{
    Input: `kas.apply`s and `linalg.generic`s with the attribute `kas_gpu.schedule`,
    on tensors. Output: for each different one a `gpu.func` in the `gpu.module`
    called `kernels`, and in place of each a new buffer for each result, a
    `gpu.launch_func` that fills these, and the buffers as tensors.

    Sums of products are computed alike, whether they are a `kas.apply` or a
    `linalg.generic`, by direct or staged kernels. In the kernel of any other
    `linalg.generic` a thread computes one point: such schedules are direct, with
    tiles of one point.

    An elementwise `linalg.generic` without a schedule that alone reads what a sum of
    products, an operator or a reduction computes, directly or through reshapes, and
    each element for the same one of its own, is the epilogue of that kernel: it is
    computed of the sums before they are stored. Where it reads several such results
    the last sum of products has it. Example: `test/Codegen/GPU/epilogues.mlir`.

    A reduction with the attribute `kas_gpu.prologue`, and its epilogue, become part of the kernel of the sum of products
    that alone reads the result, a direct one with a `depth`: each block computes all of it in workgroup memory first.
    Example: `test/Codegen/GPU/prologue.mlir`.

    Arguments of kernels are one-dimensional buffers of static size: the data, the
    weights, the output; of other `linalg.generic`s what they read, then their
    results; what an epilogue reads lies before the results (the attribute `kas_gpu.access` says which are read and
    which are written). There are no other arguments: constants are inside. Tiles
    at edges are guarded: nothing outside of a buffer is read or written. Indices
    are computed in the type `index`, which both back ends make 32 bits wide.

    It is an error if a schedule does not suit its operator, or if a limit of the
    device is exceeded: threads of a block, workgroup memory, blocks of a grid,
    bytes of a buffer.

    Exposed as `outlineKernels()` in `kas/Codegen/GPU/GPU.h`. Example:
    `test/Codegen/GPU/outline.mlir`.
  }];
  let statistics = [
    Statistic<"numKernels", "kernels", "kernels made">,
    Statistic<"numLaunches", "launches", "launches of kernels">];
  let dependentDialects = [
    "::kas::KasDialect", "::kas::KasGPUDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect", "::mlir::gpu::GPUDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::nvgpu::NVGPUDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

def KasGPUExpandMathPass : Pass<"kas-gpu-expand-math", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Compute functions of kernels with polynomials";
  let description = [{
    Input: kernels. Output: the same, with exponentials, logarithms, powers, error
    functions, and trigonometric and hyperbolic functions of f32 as polynomials and
    arithmetic, and divisions that round down or up as those that do not, so that they need no library (PTX), are there at all (SPIR-V has
    no error function) and give the same on every device.

    Example: `test/Codegen/GPU/expand-math.mlir`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect"];
}

def KasGPUPlanBuffersPass : Pass<"kas-gpu-plan-buffers", "::mlir::func::FuncOp"> {
  let summary = "Put temporary buffers of a function into one";
  let description = [{
    Input: functions on buffers that launch kernels. Output: all `memref.alloc`s of
    static shape in their body are parts of one allocation with the attribute
    `kas_gpu.scratch`, at offsets that are multiples of 256 bytes. Buffers that are
    needed at the same time do not overlap; the others may. Offsets are found by
    taking buffers by decreasing size and giving each the lowest place that is
    free while it lives.

    Launches that read weights (see `kas.data`) and constants alone, and write
    temporary buffers alone, are moved to the beginning. The function gets their
    number as attribute `kas_gpu.num_prepack_launches`, and what they write for
    others lives to the end: calls may leave them out while the weights stay the
    same. Example: `test/Codegen/GPU/prepack-launches.mlir`.

    A pass on `func.func`, not on the interface of functions, so that
    `kas-opt` runs it on all functions of a module without a nested pipeline.

    Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
    Inference", MLSys 2020 workshop, section 5.2 (greedy by size).
    Example: `test/Codegen/GPU/plan-buffers.mlir`.
  }];
  let dependentDialects = ["::kas::KasGPUDialect", "::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def KasGPUToCPULoopsPass : Pass<"kas-gpu-to-cpu-loops", "::mlir::ModuleOp"> {
  let summary = "Run kernels on the CPU, with loops over blocks and threads";
  let description = [{
    Input: kernels and their launches, as `-kas-gpu-outline` makes them. Output: the
    kernels as functions with loops over blocks and threads, and calls of these, so
    that what a GPU would compute can be computed and checked without one. Threads
    run one after another from barrier to barrier: the code between two barriers is
    a loop over threads, and what a thread needs after a barrier is kept in
    memory. A loop with a barrier inside must have the same bounds for all threads.
    Operations of a warp (`nvgpu.ldmatrix`, `nvgpu.mma.sync`) or warpgroup (`kas_gpu.warpgroup_mma`) are
    computed from the values of all its lanes, with the elements that the PTX ISA says each holds; descriptors of
    matrices are decoded. Copies are done where they are requested, and an assertion fails where a thread would
    wait forever. With `check-races` one also fails where two threads access the same workgroup memory, one of them
    writing it, with no barrier between them.

    Source: Stratton et al., "MCUDA: An Efficient Implementation of CUDA Kernels
    for Multi-core CPUs", LCPC 2008, section 3 (deep fission).
    Example: `test/Codegen/GPU/to-cpu-loops.mlir`.
  }];
  let options = [
    Option<"checkRaces", "check-races", "bool", "false",
           "Let an assertion fail where no barrier orders accesses to workgroup memory">];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::func::FuncDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def KasGPUPassTensorMapsPass : Pass<"kas-gpu-pass-tensor-maps", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Make descriptors of tensors parameters of kernels";
  let description = [{
    Input: kernels with `kas_gpu.tensor_copy`s from their arguments. Output: the same, with a parameter of 128 bytes
    after the others for each different map of an argument, in the order of the first copy, and the
    copies through these. Launches are not changed: the manifest lists the maps of each kernel in the same
    order (`tensor_maps`), and the runtime makes the descriptors.

    Example: `test/Codegen/GPU/tensor-maps.mlir`.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def KasGPUPrepareNVVMPass : Pass<"kas-gpu-prepare-nvvm", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Annotate kernels with what LLVM cannot know";
  let description = [{
    Input: kernels as `-kas-gpu-outline` makes them. Output: the same, where
    arguments do not alias and begin at multiples of 16 bytes, so that four
    elements are loaded at once, and so does workgroup memory: its declaration is
    aligned to its elements only otherwise, while vectors are stored there as if it
    were aligned to them. One block of a kernel on a processor is enough, so that
    ptxas does not spill registers for more of them. Loops with barriers are not
    unrolled. `math.fma`, roots and roundings become LLVM's, not calls
    of a library.

    Example: `test/Codegen/GPU/prepare-nvvm.mlir`.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def KasGPUSerializeNVVMPass : Pass<"kas-gpu-serialize-nvvm", "::mlir::ModuleOp"> {
  let summary = "Make binaries of kernels in the NVVM dialect";
  let description = [{
    Input: modules of kernels in the LLVM dialect with an NVVM target. Output: a
    `gpu.binary` in place of each: PTX, for which nothing but LLVM is needed; a
    `cubin`, machine code for one chip, or a `fatbin` with both, for which the CUDA
    toolkit is looked for (`findCUDAToolkit()` in `kas/Codegen/GPU/Toolkit.h` says where).

    Example: `test/Codegen/GPU/nvvm-pipeline.test`.
  }];
  let options = [
    Option<"format", "format", "::kas::codegen::GPUFormat",
           "::kas::codegen::GPUFormat::PTX", "ptx, cubin or fatbin",
           "::kas::codegen::getNVVMFormatValues()">,
    Option<"toolkit", "toolkit", "std::string", /*default=*/"",
           "The folder of the CUDA toolkit; by default it is looked for">
  ];
  let dependentDialects = ["::mlir::gpu::GPUDialect"];
}

def KasGPUToSPIRVPass : Pass<"kas-gpu-to-spirv", "::mlir::ModuleOp"> {
  let summary = "Lower kernels to SPIR-V for Vulkan";
  let description = [{
    Input: kernels as `-kas-gpu-outline` makes them. Output: the same, and beside
    the module of kernels a `spirv.module` with an entry point for each: argument i
    is the storage buffer of descriptor set 0, binding i; the size of a workgroup is
    that of the block. Indices have 32 bits. Storage buffers that
    are accessed as aligned vectors alone hold vectors of two or four; of others vectors are
    loaded and stored element by element. Types that the target has not, such as f16 in the profile
    `f32`, are errors; they are never emulated.

    Example: `test/Codegen/GPU/to-spirv.mlir`.
  }];
  let options = [
    Option<"profile", "profile", "::kas::codegen::SPIRVProfile",
           "::kas::codegen::SPIRVProfile::F32",
           "f32, or f16 for devices with 16-bit arithmetic and storage",
           "::kas::codegen::getProfileValues()">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::spirv::SPIRVDialect", "::mlir::vector::VectorDialect"];
}

def KasGPUSerializeSPIRVPass : Pass<"kas-gpu-serialize-spirv", "::mlir::ModuleOp"> {
  let summary = "Make binaries of SPIR-V modules";
  let description = [{
    Input: the modules of kernels and of SPIR-V that `-kas-gpu-to-spirv` makes,
    after `spirv-lower-abi-attrs` and `spirv-update-vce`. Output: a `gpu.binary` in
    place of both, with the words of the SPIR-V module, in which buffers that a kernel only
    reads (`kas_gpu.access`) are `NonWritable`.

    Example: `test/Codegen/GPU/to-spirv.mlir`.
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect"];
}

def KasGPUWriteManifestPass : Pass<"kas-gpu-write-manifest", "::mlir::ModuleOp"> {
  let summary = "Write down how kernels are launched";
  let description = [{
    Input: functions on buffers that launch kernels, and the kernels. Output: the
    same, with the attribute `kas_gpu.manifest` of the module: all that a runtime
    needs to know besides the binary, as JSON (docs/internals/gpu.md). It is an error if a
    function does something else than launching kernels.

    Exposed as `getDeviceManifest` in `kas/Codegen/GPU/Manifest.h`. Example:
    `test/Codegen/GPU/manifest.mlir`.
  }];
  let options = [
    Option<"api", "api", "::kas::codegen::GPUInterface",
           "::kas::codegen::GPUInterface::CUDA", "cuda or vulkan",
           "::kas::codegen::getInterfaceValues()">,
    Option<"chip", "chip", "std::string", /*default=*/"",
           "What the binary is made for">,
    Option<"format", "format", "::kas::codegen::GPUFormat",
           "::kas::codegen::GPUFormat::PTX", "ptx, cubin, fatbin or spirv",
           "::kas::codegen::getFormatValues()">,
    ListOption<"capabilities", "capabilities", "std::string",
               "What the device must have">
  ];
  let dependentDialects = ["::kas::KasGPUDialect"];
}

#endif // KAS_CODEGEN_GPU_PASSES_TD
