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

include "mlir/Pass/PassBase.td"

def KasPipelines_AlgorithmOption
    : Option<"algorithm", "algorithm", "::kas::codegen::ConvolutionAlgorithm",
             "::kas::codegen::ConvolutionAlgorithm::Auto",
             "The tiles to take where they suit: direct, im2col (panels), "
             "spatial-pack (vectors along the rows), or auto: those that take "
             "the least time by the cost model",
             [{::llvm::cl::values(
               clEnumValN(::kas::codegen::ConvolutionAlgorithm::Auto, "auto",
                          "the least time by the cost model"),
               clEnumValN(::kas::codegen::ConvolutionAlgorithm::Direct, "direct",
                          "direct tiles"),
               clEnumValN(::kas::codegen::ConvolutionAlgorithm::Im2col, "im2col",
                          "panels"),
               clEnumValN(::kas::codegen::ConvolutionAlgorithm::SpatialPack,
                          "spatial-pack", "vectors along the rows"))}]>;

def DenseOutputs : Pass<"kas-dense-outputs", "::mlir::func::FuncOp"> {
  let summary = "Let contractions write tensors without holes";
  let description = [{
    Register tiles need an output whose columns lie side by side. A contraction
    that adds to every other element of a tensor, as a bottleneck of rows or
    columns does, adds to a tensor of its own instead, and one whose columns lie
    between those of others, as slabs of columns do, to one with the slabs
    first, followed by a transpose. What is added to is not copied where it is
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

def GrowConcats : Pass<"kas-grow-concats", "::mlir::func::FuncOp"> {
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

def KeepReads : Pass<"kas-keep-reads", "::mlir::func::FuncOp"> {
  let summary = "Keep the places where loops on buffers read tensors";
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

def AttachCPUTarget : Pass<"kas-attach-cpu-target", "::mlir::ModuleOp"> {
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

def FloatProducts : Pass<"kas-float-products", "::mlir::func::FuncOp"> {
  let summary = "Choose the types in which sums of products are computed";
  let description = [{
    For linalg operations on tensors that sum products of f32, bf16 or f16:

    - Sums are of f32. Where the result is narrower, it is rounded once, at the end.
    - Products are of bf16 where both inputs are, the target has instructions for dot products of bf16, and some
      reduction is a dimension of both inputs and may take two elements at once (`-kas-pack-dots`).
    - With `precision=bf16` inputs of f32 are rounded to bf16 where that holds, too, and does not take longer than it
      saves: each element is read often enough, or is `prepared` ahead. Operators (`kas.apply`) of which that is true
      become linalg operations.
    - All other inputs are widened to f32, which is exact.

    ```mlir
    %y = linalg.matmul ins(%x, %w : tensor<64x64xbf16>, tensor<64x32xbf16>) outs(%init : tensor<64x32xbf16>)
    // becomes, on a target with such instructions
    %sums = linalg.generic ins(%x, %w : tensor<64x64xbf16>, tensor<64x32xbf16>) outs(%wide : tensor<64x32xf32>)
    %y = linalg.generic ins(%sums : tensor<64x32xf32>) outs(%empty : tensor<64x32xbf16>)
    ```

    Example: `test/Codegen/CPU/float-products.mlir`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let options = [
    Option<"precision", "precision", "::kas::codegen::ProductPrecision",
           "::kas::codegen::ProductPrecision::F32",
           "What the factors of products of f32 may be rounded to",
           [{::llvm::cl::values(
             clEnumValN(::kas::codegen::ProductPrecision::F32, "f32", "as they are"),
             clEnumValN(::kas::codegen::ProductPrecision::BF16, "bf16", "two products at once"))}]>,
    Option<"prepared", "prepared", "bool", "false",
           "Weights are rounded ahead of the calls">,
    Option<"roundAll", "round-all", "bool", "false",
           "Round where it takes longer, too: for tests">,
    Option<"verifyLowering", "verify-lowering", "bool", "false",
           "Prove that linalg operations compute the operators">,
  ];
}

def PackDots : Pass<"kas-pack-dots", "::mlir::func::FuncOp"> {
  let summary = "Lay out products of bytes and of bf16 in words";
  let description = [{
    A sum of products of i8, widened to i32, gets an innermost reduction over four elements that lie together in
    both inputs (upstream's data tiling of one loop), unsigned ones in one input and signed ones in the other, as
    instructions for bytes want it; one of bf16, widened to f32, over two. Where both are signed, 128 is added to one
    of them, and 128 times the sums of the other is subtracted from the output; they are made once where they are
    weights. Of the reductions that are a dimension of both inputs the one that needs the fewest zeros at its end is
    taken. Where there is none, or both inputs are unsigned, nothing changes.

    ```mlir
    %c = linalg.matmul ins(%a, %b : tensor<8x64xi8>, tensor<64x32xi8>) outs(%init : tensor<8x32xi32>)
    // becomes
    %c = linalg.generic {iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %y : tensor<8x16x4xi8>, tensor<16x32x4xi8>) outs(%less : tensor<8x32xi32>)
    ```

    Example: `test/Codegen/CPU/pack-dots.mlir`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def PackContractions : Pass<"kas-pack-contractions", "::mlir::func::FuncOp"> {
  let summary = "Lower contractions on buffers to packed panels and register "
                "tiles";
  let description = [{
    A linalg operation that adds products of its inputs to its output, over
    static shapes and with sums of loops as indices (matrix products, dense and
    grouped convolutions with any stride and dilation, products with several
    weights), becomes loops over tiles of consecutive output columns. The data
    of a tile is copied to a panel once for all reductions and multiplied with
    all rows; a few rows times a few vectors of sums stay in registers. Tiles
    are shared by `threads` threads as iterations of an `scf.parallel`.

    Where a datum is used too few times to pay for the copy, as in depthwise
    convolutions and those with many groups, the tiles read the inputs directly:
    some rows times some columns times some vectors of sums, for which each
    vector of the inputs is loaded once. The estimated time decides.

    Left alone are operations whose inputs are not strided or whose last
    dimension fills less than half a vector.

    Optimization remarks of the category `kas-panels` say what was packed and how
    it was cut, and why the rest was not: `--remarks-filter=kas-panels`. An operation
    may say itself how, by the attribute `kas_cpu.schedule`; it is an error if that
    does not suit.

    A pass on `func.func`, not on the interface of functions, so that
    `kas-opt` runs it on all functions of a module without a nested pipeline.

    Source: Goto and van de Geijn, "Anatomy of High-Performance Matrix
    Multiplication", ACM TOMS 34(3), 2008, sections 3 to 5.
    Example: `test/Codegen/CPU/pack-contractions.mlir`.
  }];
  let options = [
    Option<"threads", "threads", "int64_t", /*default=*/"0",
           "Threads to share the tiles; 1: no parallel loop, 0: unknown">,
    Option<"minParallelTime", "min-parallel-time", "int64_t",
           /*default=*/"40000",
           "Cycles below which threads cost more than they bring">,
    Option<"prepared", "prepared", "bool", /*default=*/"false",
           "Weights are packed ahead (kas-prepare-weights): packing costs "
           "nothing">,
    Option<"vectorBits", "vector-bits", "int64_t", /*default=*/"0",
           "Width of the vector registers; 0: of the module's target, or 256">,
    KasPipelines_AlgorithmOption
  ];
  let dependentDialects = [
    "::kas::KasCPUDialect", "::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def PackOperators : Pass<"kas-pack-operators"> {
  let summary = "Lower kas.apply to packed panels and register tiles";
  let description = [{
    Input: `kas.apply`s of concrete operators on f32 tensors. Output: those whose
    reductions are all `sum` or `mean`, and whose data step with the output's last
    dimension, as loops like those of `kas-pack-contractions`: the panel holds the
    data at whatever indices the primitives give it, with zeros at points that do
    not exist, so that unfold, shift, merge, split and stride cost time in the
    packing only; tiles without panels leave such points out, or load only the
    lanes that exist. The others are left to `kas-to-linalg` and `kas-to-affine`.

    Optimization remarks of the category `kas-panels` say what was packed and how
    it was cut, and why the rest was not: `--remarks-filter=kas-panels`. A `kas.apply`
    may say itself how, by the attribute `kas_cpu.schedule`; it is an error if that
    does not suit. `-kas-rfactor` makes other operators: set it afterwards.

    With `prepared`, an elementwise `linalg.generic` that alone reads the result,
    such as a bias, a residual and a rectifier, is computed with the sums where
    tiles are vectors along the rows. Linalg operations on tensors that read one
    which `tensor.pad` fills up with zeros become such tiles, too, if those are
    the cheapest: what is padded is read where it is. Those of one pixel read
    copies of their weights with the output channels last.

    Where a weight is infinite or not a number, points that do not exist may
    contribute NaN, as with any convolution on a padded image.

    Examples: `test/Codegen/CPU/pack-operators.mlir`,
    `test/Codegen/CPU/row-vector-borders.mlir`.
  }];
  let options = [
    Option<"threads", "threads", "int64_t", /*default=*/"0",
           "Threads to share the tiles; 1: no parallel loop, 0: unknown">,
    Option<"minParallelTime", "min-parallel-time", "int64_t",
           /*default=*/"40000",
           "Cycles below which threads cost more than they bring">,
    Option<"prepared", "prepared", "bool", /*default=*/"false",
           "Weights are packed ahead (kas-prepare-weights): packing costs "
           "nothing">,
    Option<"vectorBits", "vector-bits", "int64_t", /*default=*/"0",
           "Width of the vector registers; 0: of the module's target, or 256">,
    KasPipelines_AlgorithmOption
  ];
  let statistics = [
    Statistic<"numPacked", "packed", "kas.apply ops lowered to panels">
  ];
  let dependentDialects = [
    "::kas::KasCPUDialect", "::kas::KasDialect",
    "::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect", "::mlir::vector::VectorDialect"
  ];
}

def Winograd : Pass<"kas-winograd", "::mlir::ModuleOp"> {
  let summary = "Compute convolutions of 3x3 by fewer products";
  let description = [{
    Input: `kas.apply` of concrete operators that are convolutions of 3x3 with
    stride 1, dense or in groups, on an image with or without zeros around it,
    and `linalg.conv_2d_nchw_fchw` or a `linalg.generic` of such a shape, as
    gradients by the data are; f32, of static shape, with at least 16 tiles of 4x4
    outputs in the batch, and more than a few channels. One thread computes as many
    images at a time as leave their tiles in the cache. Output: loops that transform tiles of 6x6 of the
    data, 36 matrix products in register tiles, and loops that transform these
    back to 4x4 outputs: 36 products for 144. The weights are transformed once where
    they are `prepared` ahead.

    All others stay as they are, also those that have a schedule, and all on
    targets without masked loads.

    The results are less exact than a sum of products: by some 1e-6 to 1e-5 of the
    largest one, see `docs/internals/convolutions.md`. `-kas-cpu-pipeline` runs this pass for
    `algorithm=winograd` only.

    Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks",
    CVPR 2016, section 4.
    Examples: `test/Codegen/CPU/winograd.mlir`, `test/Codegen/CPU/winograd-linalg.mlir`.
  }];
  let options = [
    Option<"threads", "threads", "int64_t", /*default=*/"0",
           "Threads to share the loops; 1: no parallel loop, 0: unknown">,
    Option<"minParallelTime", "min-parallel-time", "int64_t",
           /*default=*/"40000",
           "Cycles below which threads cost more than they bring">,
    Option<"prepared", "prepared", "bool", /*default=*/"false",
           "Weights are transformed ahead (kas-prepare-weights)">,
    Option<"vectorBits", "vector-bits", "int64_t", /*default=*/"0",
           "Width of the vector registers; 0: of the module's target, or 256">
  ];
  let dependentDialects = [
    "::kas::KasCPUDialect", "::kas::KasDialect",
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect", "::mlir::vector::VectorDialect"
  ];
}

def PrepareWeights : Pass<"kas-prepare-weights", "::mlir::ModuleOp"> {
  let summary = "Move what rearranges weights to a function that runs once";
  let description = [{
    Input: functions on buffers whose weights are copied to another order by
    loops that `kas-pack-contractions` and `kas-pack-operators` have marked.
    Output: for each public function `@f` with such loops that depend on its
    weights only

    - `@f_prepare`, which takes the weights and a buffer, and fills the buffer;
    - `@f_prepared_elements`, which returns how many f32 the buffer holds;
    - `@f` with that buffer as one more argument after its results.

    The weights of a function are the arguments that nothing writes to, but for
    the first one, which is the data. Functions without such loops stay as they
    are.

    ```mlir
    func.func @f(%x: memref<1x64x14x14xf32>, %w: memref<256x64xf32>,
                 %y: memref<1x256x14x14xf32>)
    // becomes
    func.func @f_prepare(%w: memref<256x64xf32>, %packed: memref<65536xi8>)
    func.func @f_prepared_elements() -> i64
    func.func @f(%x: memref<1x64x14x14xf32>, %w: memref<256x64xf32>,
                 %y: memref<1x256x14x14xf32>, %packed: memref<65536xi8>)
    ```

    Example: `test/Codegen/CPU/prepare-weights.mlir`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def LowerPooling : Pass<"kas-lower-pooling", "::mlir::func::FuncOp"> {
  let summary = "Lower maximum and sum pooling to loops on the image";
  let description = [{
    Input: `linalg.pooling_nchw_max` on f32 tensors of static shape, without
    dilation, that begins with minus infinity, of a tensor that may be padded with
    minus infinity; and `linalg.pooling_nchw_sum` that begins with zeros, of at
    most 16 points. Output: loops over planes and lines, with the window unrolled,
    in vectors along the line where the stride is 1 or 2. Maxima read the tensor
    without the padding: a line outside counts as the nearest one inside, which
    each window has; the left and the right border are computed by themselves.
    The points of a window are summed in the order of the lines.

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
           "Points of windows below which threads cost more than they bring">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def ExpandMath : Pass<"kas-expand-math", "::mlir::func::FuncOp"> {
  let summary = "Replace functions by arithmetic that a CPU has vectors for";
  let description = [{
    Input: `math.exp`, `math.erf` and `math.tanh` of f32. Output: upstream's
    approximations by polynomials, exact to a few units in the last place, which
    LLVM vectorizes with the loop around them; a function of the C library is
    called for each element. What is below the least normal number may be
    zero. They need fused multiply-adds: on a target without, nothing changes.

    A pass on `func.func`, not on the interface of functions, so that
    `kas-opt` runs it on all functions of a module without a nested pipeline.

    Example: `test/Codegen/CPU/expand-math.mlir`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def LowerDots : Pass<"kas-lower-dots", "::mlir::func::FuncOp"> {
  let summary = "Replace products of narrow elements by instructions of the target";
  let description = [{
    `kas_cpu.dot` becomes one instruction where the target has one for vectors of its size: `vpdpbusd` of AVX-512
    or AVX VNNI and `usdot` of Arm's int8 matrix extension for bytes, `vdpbf16ps` and `bfdot` for bf16. Elsewhere
    elements are taken out of words and multiplied one after the other; the values are the same. `kas_cpu.view_words`
    becomes a descriptor of the same memory.

    Example: `test/Codegen/CPU/lower-dots.mlir`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def OutlineKernels : Pass<"kas-outline-kernels", "::mlir::ModuleOp"> {
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

def LabelOperations : Pass<"kas-label-operations", "::mlir::func::FuncOp"> {
  let summary = "Number the operations of a function in their locations";
  let description = [{
    Each operation in the body of the function, but for constants and empty
    tensors, gets its number as metadata of its location, and so do all in its
    regions. What passes make of it has that location, so that
    `-kas-insert-profile-laps` and optimization remarks are related to the
    operations of the model: the first half of a profile
    (`docs/guide/profiling.md`).

    A pass on `func.func`, not on the interface of functions, so that
    `kas-opt` runs it on all functions of a module without a nested pipeline.

    Example: `test/Codegen/CPU/label-operations.mlir`.
  }];
}

def InsertProfileLaps : Pass<"kas-insert-profile-laps", "::mlir::ModuleOp"> {
  let summary = "Call a clock after each loop nest";
  let description = [{
    Input: functions on buffers. Output: public ones of one block call
    `kas_profile_lap(-1)` first, and `kas_profile_lap(n)` after the n-th loop
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
    func.func private @kas_profile_lap(i64)
    func.func @f(%x: memref<4xf32>, %y: memref<4xf32>) {
      %begin = arith.constant -1 : i64
      call @kas_profile_lap(%begin) : (i64) -> ()
      linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
      %0 = arith.constant 0 : i64
      call @kas_profile_lap(%0) : (i64) -> ()
      return
    }
    ```

    Example: `test/Codegen/CPU/insert-profile-laps.mlir`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect"];
}

def LinalgToCPULoops : Pass<"kas-linalg-to-cpu-loops", "::mlir::func::FuncOp"> {
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

def SamplesLast : Pass<"kas-samples-last", "::mlir::ModuleOp"> {
  let summary = "Choose where the samples are in tensors between operators";
  let description = [{
    Input: `kas.apply`s of concrete operators on f32 tensors, such as the stages
    of `-kas-rfactor`, that compute one by one the samples of their first
    dimension, the first of them on lists of channels. Where groups of channels
    have weights of their own, few of them fit a vector, but many samples do. So
    in a chain of such operators each tensor gets the samples in its first or its
    last dimension, such that all take the least time by the cost model of
    `-kas-pack-operators`. The first and the last tensor of the chain keep their
    layout: others are made by `linalg.transpose`, whose time counts.

    ```mlir
    kas.operator private @blocks(%n: 64, %c: 16, %r: 8) from [64, 16, 32] {
      %k = kas.reduce sum : 32
      %k_d, %k_w = kas.share %k : 32
      %c_d, %c_w = kas.share %c : 16
      kas.yield data(%n, %c_d, %k_d) weight(%c_w, %r, %k_w)
    }
    // gets another form, if that is faster:
    kas.operator private @blocks_samples_last(%c: 16, %r: 8, %n: 64) from [16, 32, 64]
    ```

    Example: `test/Codegen/CPU/samples-last.mlir`.
  }];
  let options = [
    Option<"threads", "threads", "int64_t", /*default=*/"0",
           "Threads to share the tiles; 1: no parallel loop, 0: unknown">,
    Option<"minParallelTime", "min-parallel-time", "int64_t",
           /*default=*/"40000",
           "Cycles below which threads cost more than they bring">,
    Option<"prepared", "prepared", "bool", /*default=*/"false",
           "Weights are packed ahead (kas-prepare-weights): packing costs "
           "nothing">,
    Option<"vectorBits", "vector-bits", "int64_t", /*default=*/"0",
           "Width of the vector registers; 0: of the module's target, or 256">
  ];
  let statistics = [
    Statistic<"numChains", "chains", "chains of operators with samples last">
  ];
  let dependentDialects = [
    "::mlir::bufferization::BufferizationDialect", "::kas::KasDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def SplitBatch : Pass<"kas-split-batch", "::mlir::ModuleOp"> {
  let summary = "Let networks compute parts of a batch, one after the other";
  let description = [{
    A public function whose first argument is a batch, whose others are weights,
    and which computes samples one by one (`-kas-check-samples`) becomes one for
    a part of the batch, with the attribute `kas_cpu.batch_parts`, from which
    `-kas-loop-over-batch` makes the loop. All layers of a part are computed
    before the next part, so that tensors between them remain in the cache, and
    threads share the parts, not the layers of each.

    The part is `size` samples. With 0, it is chosen by the time that arithmetic
    takes, and bytes that come from beyond the second-level cache: tensors that
    do not fit, and weights that are read again for each part. Where that gains
    less than 3 % the function stays as it is, as does one with a schedule
    (`kas_cpu.schedule`), which was chosen for the whole batch. There are at most
    4 096 parts.

    ```mlir
    func.func @forward(%x: tensor<16x48x8x8xf32>, %w: tensor<48x3x3xf32>)
        -> tensor<16x48xf32>
    // becomes
    func.func @forward(%x: tensor<4x48x8x8xf32>, %w: tensor<48x3x3xf32>)
        -> tensor<4x48xf32> attributes {
      kas_cpu.batch_parts = #kas_cpu.batch_parts<count = 4, bytes = [49152, 0, 768]>,
      kas_cpu.serial}
    ```

    Example: `test/Codegen/CPU/split-batch.mlir`.
  }];
  let options = [
    Option<"size", "size", "int64_t", /*default=*/"0",
           "Samples of a part; 0: by the cost model">,
    Option<"threads", "threads", "int64_t", /*default=*/"0",
           "Threads to share the parts; 0: unknown">
  ];
  let statistics = [
    Statistic<"numSplit", "split", "functions that compute parts">
  ];
  let dependentDialects = [
    "::kas::KasCPUDialect", "::kas::KasDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"
  ];
}

def BatchVersions : Pass<"kas-batch-versions", "::mlir::ModuleOp"> {
  let summary = "Make versions of networks for batches of any size";
  let description = [{
    Each public function, whose first argument is a batch, whose others are weights,
    and which computes samples one by one (`-kas-check-samples`, else an error),
    becomes one to three functions for parts of a batch, with the attribute
    `kas_cpu.batch_version`, from which `-kas-dispatch-batch` makes one for batches
    of any size. They are those that `-kas-split-batch` chooses for the batch that
    the function has, for one of 8 samples, and for one sample, so that these sizes
    are as fast as functions for them alone. A batch has 2 to 4 096 samples here.

    ```mlir
    func.func @forward(%x: tensor<64x48x8x8xf32>, %w: tensor<48x3x3xf32>)
        -> tensor<64x48xf32>
    // becomes, beside @forward_batch1,
    func.func @forward_batch4(%x: tensor<4x48x8x8xf32>, %w: tensor<48x3x3xf32>)
        -> tensor<4x48xf32> attributes {
      kas_cpu.batch_version = #kas_cpu.batch_version<of = "forward", samples = 4,
        most = 64, cycles = 12000, bytes = [49152, 0, 768]>,
      kas_cpu.serial}
    ```

    Example: `test/Codegen/CPU/batch-versions.mlir`.
  }];
  let options = [
    Option<"threads", "threads", "int64_t", /*default=*/"0",
           "Threads to share the parts; 0: unknown">
  ];
  let statistics = [
    Statistic<"numFunctions", "functions", "functions with versions">
  ];
  let dependentDialects = [
    "::kas::KasCPUDialect", "::kas::KasDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"
  ];
}

def SerializeLoops : Pass<"kas-serialize-loops", "::mlir::func::FuncOp"> {
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

def LoopOverBatch : Pass<"kas-loop-over-batch", "::mlir::ModuleOp"> {
  let summary = "Call functions that compute parts of a batch for all of it";
  let description = [{
    Input: functions of the LLVM dialect on plain pointers. One with the
    attribute `kas_cpu.batch_parts` becomes an internal one, `@NAME_part`, and
    `@NAME` calls it for each part, in a loop of the OpenMP dialect where threads
    share the parts. Where parts return messages of assertions, `@NAME` returns
    the first one, in the order of the parts.

    ```mlir
    llvm.func @f(%x: !llvm.ptr, %y: !llvm.ptr) attributes {
      kas_cpu.batch_parts = #kas_cpu.batch_parts<count = 4, bytes = [64, 8]>}
    ```

    Example: `test/Codegen/CPU/loop-over-batch.mlir`.
  }];
  let options = [
    Option<"threads", "threads", "int64_t", /*default=*/"0",
           "Threads to share the parts; 1: a serial loop, 0: unknown">
  ];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::omp::OpenMPDialect"
  ];
}

def DispatchBatch : Pass<"kas-dispatch-batch", "::mlir::ModuleOp"> {
  let summary = "Call versions for parts of a batch of any size";
  let description = [{
    Input: functions of the LLVM dialect on plain pointers. Those with the attribute
    `kas_cpu.batch_version` become internal, and the function that they are versions
    of calls them, with the number of samples as its last argument. Which ones is
    read from a table: the calls that take the least time together, by the cost
    model. Threads share the parts of serial versions. Where parts return messages
    of assertions, the first one is returned, as is one for a negative number of
    samples. With prepared weights there are functions `@NAME_prepare` and
    `@NAME_prepared_elements` for all versions together.

    ```mlir
    llvm.func @f_batch1(%x: !llvm.ptr, %y: !llvm.ptr) attributes {
      kas_cpu.batch_version = #kas_cpu.batch_version<of = "f", samples = 1, most = 64,
        cycles = 100, bytes = [64, 8]>}
    // gets a caller
    llvm.func @f(%x: !llvm.ptr, %y: !llvm.ptr, %samples: i64) -> !llvm.ptr
    ```

    Example: `test/Codegen/CPU/dispatch-batch.mlir`.
  }];
  let options = [
    Option<"threads", "threads", "int64_t", /*default=*/"0",
           "Threads to share the parts; 1: a serial loop, 0: unknown">
  ];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::omp::OpenMPDialect"
  ];
}

def ReturnAssertions : Pass<"kas-return-assertions", "::mlir::ModuleOp"> {
  let summary = "Let failing assertions end functions, not the process";
  let description = [{
    Input: functions on buffers whose control flow is branches, with parallel
    loops of the OpenMP dialect. Each public function without results returns a
    pointer: null, or the text of the assertion (`cf.assert`) that failed, with
    its place in the model before it, as a string that lives as long as the
    code. Private functions that can fail return such a pointer after their
    results, and calls pass it on. What the function has allocated is freed
    then; what it has written so far stays.

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
