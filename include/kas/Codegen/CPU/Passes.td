//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes that only the pipelines need: they prepare modules of linalg on
// tensors for the CPU.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CODEGEN_CPU_PASSES_TD
#define KAS_CODEGEN_CPU_PASSES_TD

include "kas/Codegen/CPU/BatchPasses.td"
include "kas/Codegen/CPU/ContractionPasses.td"
include "mlir/Pass/PassBase.td"

def KasDenseOutputsPass : Pass<"kas-dense-outputs", "::mlir::func::FuncOp"> {
  let summary = "Let contractions write tensors without holes";
  let description = [{
    Register tiles need an output whose columns lie side by side. A contraction
    that adds to every other element of a tensor, as a bottleneck of rows or
    columns does, adds to a tensor of its own instead, and one whose columns lie
    between those of others, as slabs of columns do, to one with the slabs
    first, followed by a transpose. The initial value is not copied where it is
    part of a broadcast or a fill: a smaller one is made. Operations with a
    schedule stay as they are.

    ```mlir
    %init = linalg.broadcast ins(%bias) outs(%empty) dimensions = [1, 2]
    %some = tensor.extract_slice %init[0, 0, 0] [8, 4, 4] [1, 2, 2]
    %sums = linalg.generic ... outs(%some)
    // becomes
    %some = linalg.broadcast ins(%bias) outs(%smaller) dimensions = [1, 2]
    %sums = linalg.generic ... outs(%some)
    ```

    A pass on `func.func`, not on the interface of functions, so that
    `kas-opt` runs it on all functions of a module without a nested pipeline.

    Example: `test/Codegen/CPU/dense-outputs.mlir`.
  }];
  let dependentDialects = [
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"
  ];
}

def KasGrowConcatsPass : Pass<"kas-grow-concats", "::mlir::func::FuncOp"> {
  let summary = "Let concatenations that extend each other share a tensor";
  let description = [{
    In densely connected networks a layer reads what all layers before it have
    computed. Each `tensor.concat` would copy all of that again. Where one has the
    inputs of an earlier one and more after them, both become slices from the
    beginning of one tensor, in which the inputs are inserted, each once, when
    there are all of an earlier concatenation.

    This is done where such a slice lies together, that is where all dimensions
    before the one of the concatenation have one element, and where nothing reads
    an earlier concatenation after a later one: else bufferization would have to
    copy the tensor.

    ```mlir
    %ab = tensor.concat dim(0) %a, %b
    %c = ... %ab
    %abc = tensor.concat dim(0) %a, %b, %c
    // becomes
    %0 = tensor.empty() : tensor<12x8xf32>
    %1 = tensor.insert_slice %a into %0[0, 0] [4, 8] [1, 1]
    %2 = tensor.insert_slice %b into %1[4, 0] [4, 8] [1, 1]
    %ab = tensor.extract_slice %2[0, 0] [8, 8] [1, 1]
    %c = ... %ab
    %abc = tensor.insert_slice %c into %2[8, 0] [4, 8] [1, 1]
    ```

    Example: `test/Codegen/CPU/grow-concats.mlir`.
  }];
  let statistics = [
    Statistic<"numShared", "concatenations",
              "Concatenations that share the tensor of a larger one">
  ];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
}

def KasKeepReadsPass : Pass<"kas-keep-reads", "::mlir::func::FuncOp"> {
  let summary = "Keep the positions at which loops on buffers read tensors";
  let description = [{
    Operators become loops on buffers while the operations around them are still
    on tensors. `bufferization.to_buffer` before such loops is all that
    bufferization knows of what they read, and when: merged with an earlier one
    of the same tensor, it would let an operation in between overwrite the tensor
    before the loops read it. This pass numbers them, so that `-cse` sees
    different operations. A `bufferization.to_buffer` of a
    `bufferization.to_tensor` folds, so that nothing is known of the read: where
    such a buffer is read later and its tensor has other uses, that is no longer
    `writable`.

    A pass on `func.func`, not on the interface of functions, so that
    `kas-opt` runs it on all functions of a module without a nested pipeline.

    Example: `test/Codegen/CPU/keep-reads.mlir`.
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect"];
}

def KasAttachCPUTargetPass : Pass<"kas-attach-cpu-target", "::mlir::ModuleOp"> {
  let summary = "Write down the CPU that a module is compiled for";
  let description = [{
    Looks up a CPU in LLVM's tables and attaches to the module its names, as
    `llvm.target`, and the numbers that the choice of tiles depends on, as
    `dlti.target_system_spec`: bits and number of the vector registers, whether
    there is a fused multiply-add, the caches of a core. Later passes read
    them, and so do compilation in memory and to object files, so that the same
    `cpu` gives the same code on every machine. A module that names its target
    already keeps it if no option is given.

    ```mlir
    module attributes {
      llvm.target = #llvm.target<triple = "x86_64-unknown-linux-gnu",
                                 chip = "x86-64-v3">,
      dlti.target_system_spec = #dlti.target_system_spec<
        "CPU" = #dlti.target_device_spec<
          "max_vector_op_width" = 256, "arithmetic_vector_width" = 256,
          "vector_registers" = 16,
          "L1_cache_size_in_bytes" = 32768, "L2_cache_size_in_bytes" = 524288,
          "fused_multiply_add" = true>>}
    ```

    Example: `test/Codegen/CPU/attach-cpu-target.mlir`.
  }];
  let options = [
    Option<"cpu", "cpu", "std::string", /*default=*/"",
           "A CPU that LLVM knows, such as x86-64-v3 or neoverse-n1, or host; "
           "by default host">,
    Option<"triple", "triple", "std::string", /*default=*/"",
           "The target's triple; by default Linux on the CPU">,
    Option<"features", "features", "std::string", /*default=*/"",
           "Changes to what the CPU has, such as +avx512f,-fma">
  ];
  let dependentDialects = ["::mlir::DLTIDialect", "::mlir::LLVM::LLVMDialect"];
}

def KasLowerPoolingPass : Pass<"kas-lower-pooling", "::mlir::func::FuncOp"> {
  let summary = "Lower maximum and sum pooling to loops on the image";
  let description = [{
    Input: `linalg.pooling_nchw_max` on f32 tensors of static shape, without
    dilation, that begins with minus infinity, of a tensor that may be padded with
    minus infinity; and `linalg.pooling_nchw_sum` that begins with zeros, of at
    most 16 elements. Output: loops over planes and rows, with the window unrolled,
    in vectors along the row where the stride is 1 or 2. Maxima read the tensor
    without the padding: a row outside counts as the nearest one inside, which
    each window has; the left and the right edge are computed by themselves.
    Maxima take any order of the elements, and any of two zeros. The elements of a
    window are summed in the order of the rows. A sum over a whole image becomes
    a `linalg.generic` with two reductions.

    Where the only reader of a maximum quantizes it to unsigned bytes, and what it
    reads is the result of an elementwise operation, the image is quantized
    instead, and the maxima are of bytes. The result is the same, but for
    elements that are no numbers (NaN).

    Maxima whose windows may lie outside as a whole, and poolings with dilation,
    stay as they are.

    A pass on `func.func`, not on the interface of functions, so that
    `kas-opt` runs it on all functions of a module without a nested pipeline.

    Example: `test/Codegen/CPU/lower-pooling.mlir`.
  }];
  let options = [
    Option<"threads", "threads", "int64_t", /*default=*/"0",
           "Threads to share the planes; 1: no parallel loop, 0: unknown">,
    Option<"minParallelWork", "min-parallel-work", "int64_t",
           /*default=*/"32768",
           "Iterations of windows below which threads cost more than they bring">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def KasExpandMathPass : Pass<"kas-expand-math", "::mlir::func::FuncOp"> {
  let summary = "Replace functions by arithmetic that a CPU has vectors for";
  let description = [{
    Input: `math.exp`, `math.erf` and `math.tanh` of f32. Output:
    approximations by polynomials, exact to a few units in the last place (one
    of `math.exp`), which LLVM vectorizes with the loop around them; a function
    of the C library is called for each element. Results below the least normal
    number may be zero. They need fused multiply-adds: on a target without, they
    stay.
    `math.log1p` and `math.expm1`, of which LLVM would lose what is near zero,
    become logarithms and exponentials whose error is divided out.

    A pass on `func.func`, not on the interface of functions, so that
    `kas-opt` runs it on all functions of a module without a nested pipeline.

    Example: `test/Codegen/CPU/expand-math.mlir`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def KasOutlineKernelsPass : Pass<"kas-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Split large functions into one function for each loop nest";
  let description = [{
    Input: functions on buffers. Output: each loop nest and each linalg
    operation of a public function is a private function, together with the
    `linalg.fill` before it of a buffer that it works on; equal ones, whatever
    their buffers, are one function. The arguments are whole buffers of static
    shape, which do not overlap, and scalars; constants and views are copied into
    the functions.

    LLVM takes more than twice as long for a function of twice the size, and the
    layers of a network repeat one another. `compileForCPU` compiles these
    functions in parallel, and each only once
    (`docs/internals/code-generation.md`).

    Left alone are loops with results, with assertions (`cf.assert`) or with
    calls, and those on buffers of dynamic shape.

    ```mlir
    func.func @f(%x: memref<4xf32>, %y: memref<4xf32>) {
      linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
      return
    }
    // becomes, with min-kernels=1
    func.func private @f_kernel(%0: memref<4xf32> {llvm.noalias},
                                %1: memref<4xf32> {llvm.noalias})
        attributes {no_inline} {
      linalg.exp ins(%0 : memref<4xf32>) outs(%1 : memref<4xf32>)
      return
    }
    func.func @f(%x: memref<4xf32>, %y: memref<4xf32>) {
      call @f_kernel(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()
      return
    }
    ```

    Example: `test/Codegen/CPU/outline-kernels.mlir`.
  }];
  let options = [
    Option<"minKernels", "min-kernels", "unsigned", /*default=*/"32",
           "Functions with fewer loop nests stay as they are; 0: all do">
  ];
  let statistics = [
    Statistic<"numKernels", "kernels", "functions that were made">
  ];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def KasLabelOperationsPass : Pass<"kas-label-operations", "::mlir::func::FuncOp"> {
  let summary = "Number the operations of a function in their locations";
  let description = [{
    Each operation in the body of the function, but for constants and empty
    tensors, gets its number as metadata of its location, and so do all in its
    regions. Operations that passes make of it have that location, so that
    `-kas-insert-profile-timestamps` and optimization remarks are related to the
    operations of the model: the first half of a profile
    (`docs/guide/profiling.md`).

    A pass on `func.func`, not on the interface of functions, so that
    `kas-opt` runs it on all functions of a module without a nested pipeline.

    Example: `test/Codegen/CPU/label-operations.mlir`.
  }];
}

def KasInsertProfileTimestampsPass : Pass<"kas-insert-profile-timestamps", "::mlir::ModuleOp"> {
  let summary = "Call a clock after each loop nest";
  let description = [{
    Input: functions on buffers. Output: public ones of one block call
    `kas_profile_timestamp(-1)` first, and `kas_profile_timestamp(n)` after the n-th loop
    nest, linalg operation, copy or call. All that a function does is between
    two such calls, so the times add up to that of the function but for what is
    after the last one. Loops inside of a nest are as before: the calls are
    outside of parallel loops, and as many as there are nests.

    ```mlir
    func.func @f(%x: memref<4xf32>, %y: memref<4xf32>) {
      linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
      return
    }
    // becomes
    func.func private @kas_profile_timestamp(i64)
    func.func @f(%x: memref<4xf32>, %y: memref<4xf32>) {
      %begin = arith.constant -1 : i64
      call @kas_profile_timestamp(%begin) : (i64) -> ()
      linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
      %0 = arith.constant 0 : i64
      call @kas_profile_timestamp(%0) : (i64) -> ()
      return
    }
    ```

    Example: `test/Codegen/CPU/insert-profile-timestamps.mlir`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect"];
}

def KasLinalgToCPULoopsPass : Pass<"kas-linalg-to-cpu-loops", "::mlir::func::FuncOp"> {
  let summary = "Lower linalg on buffers to loops that suit a CPU";
  let description = [{
    Loops are ordered so that reductions are outside of the innermost parallel
    loop and that one steps through consecutive memory: LLVM vectorizes it then,
    and is instructed not to unroll it before where it is short. Sums along the
    innermost loop are vectorized, too, in another order (`reassoc`).
    The outermost parallel loops become one `scf.parallel` if the operation has at
    least `min-parallel-work` iterations: as few of them as give each of
    `threads` threads the same work within 6 %, so that two images can keep three
    threads busy.
    A `linalg.transpose` of f32 that makes other matrices of matrices becomes
    blocks of as many vectors as a vector has lanes, transposed in registers.

    A pass on `func.func`, not on the interface of functions, so that
    `kas-opt` runs it on all functions of a module without a nested pipeline.

    Example: `test/Codegen/CPU/linalg-to-cpu-loops.mlir`.
  }];
  let options = [
    Option<"threads", "threads", "int64_t", /*default=*/"0",
           "Threads to share the loops; 1: no parallel loop, 0: unknown">,
    Option<"minParallelWork", "min-parallel-work", "int64_t",
           /*default=*/"32768",
           "Iterations below which threads cost more than they bring">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def KasSerializeLoopsPass : Pass<"kas-serialize-loops", "::mlir::func::FuncOp"> {
  let summary = "Make parallel loops serial where threads share nothing";
  let description = [{
    Each `scf.parallel` of a function with the attribute `kas_cpu.serial` becomes
    `scf.for` loops. Such a function is called by several threads at once.

    A pass on `func.func`, not on the interface of functions, so that
    `kas-opt` runs it on all functions of a module without a nested pipeline.

    Example: `test/Codegen/CPU/serialize-loops.mlir`.
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect"];
}

def KasLowerScalarsPass : Pass<"kas-lower-scalars", "::mlir::ModuleOp"> {
  let summary = "Lower complex numbers, and what else has no LLVM operation";
  let description = [{
    Runs upstream's `-convert-complex-to-standard`, `-convert-complex-to-llvm`
    and `-convert-math-to-funcs` where a module has complex numbers, `math.ipowi`
    or `math.fpowi`. `math.isinf`, `math.isnormal` and `math.clampf` become
    comparisons, and powers and `arith.addui_extended` of `index` those of `i64`.
    Other modules are left as they are.

    Example: `test/Codegen/CPU/lower-scalars.mlir`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def KasUseWorkspacePass : Pass<"kas-use-workspace", "::mlir::ModuleOp"> {
  let summary = "Let callers give functions the memory for their buffers";
  let description = [{
    Input: functions on buffers with structured control flow, for one thread.
    Each public function takes one more buffer, of bytes, at the end, and the
    buffers that it made are places of that: those that are in use at the same
    time do not overlap. Private functions that make buffers are passed a part.
    For a public function `@f` there is `@f_workspace_bytes`, which returns how
    many bytes `@f` and `@f_prepack` need. The workspace should begin at a
    multiple of 64 bytes.

    ```mlir
    func.func @f(%x: memref<4xf32>) {
      %a = memref.alloc() : memref<16xf32>
      ...
      memref.dealloc %a : memref<16xf32>
      return
    }
    // becomes
    func.func @f(%x: memref<4xf32>, %workspace: memref<64xi8>) {
      %a = memref.view %workspace[%c0][] : memref<64xi8> to memref<16xf32>
      ...
      return
    }
    func.func @f_workspace_bytes() -> i64
    ```

    Buffers of dynamic shape, in parallel loops, and those that leave the block
    that makes them are errors.

    Example: `test/Codegen/CPU/use-workspace.mlir`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"
  ];
}

def KasPassSizesPass : Pass<"kas-pass-sizes", "::mlir::ModuleOp"> {
  let summary = "Pass buffers of dynamic shape as pointers and sizes";
  let description = [{
    Compiled functions take plain pointers. A buffer of dynamic shape becomes a
    pointer, too, and its dynamic sizes become arguments after all others, in
    the order of the buffers and of their dimensions, as 64-bit integers. Calls
    inside the module pass them on. Buffers without elements become pointers as
    well.

    ```mlir
    func.func @f(%x: memref<?x8xf32>, %result: memref<?x8xf32>)
    // becomes, with %x and %result made of them,
    func.func @f(%x: memref<f32>, %result: memref<f32>, %n: index, %m: index)
    ```

    Functions whose arguments are strided in another way, or whose results have
    dynamic shape after bufferization, are an error.

    Example: `test/Codegen/CPU/pass-sizes.mlir`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"
  ];
}

def KasReturnAssertionsPass : Pass<"kas-return-assertions", "::mlir::ModuleOp"> {
  let summary = "Let failing assertions end functions, not the process";
  let description = [{
    Input: functions on buffers whose control flow is branches, with parallel
    loops of the OpenMP dialect. Each public function without results returns a
    pointer: null, or the text of the assertion (`cf.assert`) that failed, with
    its place in the model before it, as a string that lives as long as the
    code. Private functions that can fail return such a pointer after their
    results, and calls pass it on. Memory that the function has allocated is freed
    then; results that it has written so far stay.

    In a parallel loop the iteration ends, the others run on, and the function
    returns after the loop: the message of the first iteration that failed, in
    the order of serial loops, so that it does not depend on the threads.

    ```mlir
    func.func @f(%x: memref<f32>) {
      %ok = ...
      cf.assert %ok, "requires x > 0"
      return
    }
    // becomes
    func.func @f(%x: memref<f32>) -> !llvm.ptr {
      %ok = ...
      cf.cond_br %ok, ^rest, ^failure
    ^rest:
      %none = llvm.mlir.zero : !llvm.ptr
      return %none : !llvm.ptr
    ^failure:
      %message = llvm.mlir.addressof @kas_assertion_messages : !llvm.ptr
      return %message : !llvm.ptr
    }
    ```

    Example: `test/Codegen/CPU/return-assertions.mlir`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::ub::UBDialect"
  ];
}

#endif // KAS_CODEGEN_CPU_PASSES_TD
