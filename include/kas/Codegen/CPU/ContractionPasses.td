//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes that give products of tensors their tiles, layouts and types.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CODEGEN_CPU_PRODUCTPASSES_TD
#define KAS_CODEGEN_CPU_PRODUCTPASSES_TD

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

/// Those of all passes that cut contractions.
defvar KasPipelines_ContractionOptions = [
  Option<"threads", "threads", "int64_t", /*default=*/"0",
         "Threads to share the tiles; 1: no parallel loop, 0: unknown">,
  Option<"minParallelTime", "min-parallel-time", "int64_t",
         /*default=*/"40000",
         "Cycles below which threads cost more than they bring">,
  Option<"prepacked", "prepacked", "bool", /*default=*/"false",
         "Weights are packed ahead (kas-prepack-weights): packing costs "
         "nothing">,
  Option<"vectorBits", "vector-bits", "int64_t", /*default=*/"0",
         "Width of the vector registers; 0: of the module's target, or 256">
];

def KasSetContractionPrecisionPass : Pass<"kas-set-contraction-precision", "::mlir::func::FuncOp"> {
  let summary = "Choose the types in which contractions are computed";
  let description = [{
    For linalg operations on tensors that sum products of f32, bf16 or f16:

    - Sums are of f32. Where the result is narrower, it is rounded once, at the end.
    - Products are of bf16 where both inputs are, the target has instructions for dot products of bf16, and some
      reduction is a dimension of both inputs and may take two elements at once (`-kas-pack-dot-products`).
    - With `precision=bf16` inputs of f32 are rounded to bf16 where that holds, too, and does not take longer than it
      saves: each element is read often enough, or is `prepacked` ahead. Operators (`kas.apply`) of which that is true
      become linalg operations.
    - All other inputs are widened to f32, which is exact.

    ```mlir
    %y = linalg.matmul ins(%x, %w : tensor<64x64xbf16>, tensor<64x32xbf16>) outs(%init : tensor<64x32xbf16>)
    // becomes, on a target with such instructions
    %sums = linalg.generic ins(%x, %w : tensor<64x64xbf16>, tensor<64x32xbf16>) outs(%wide : tensor<64x32xf32>)
    %y = linalg.generic ins(%sums : tensor<64x32xf32>) outs(%empty : tensor<64x32xbf16>)
    ```

    Example: `test/Codegen/CPU/set-contraction-precision.mlir`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let options = [
    Option<"precision", "precision", "::kas::codegen::ContractionPrecision",
           "::kas::codegen::ContractionPrecision::F32",
           "The type that factors of products of f32 may be rounded to",
           [{::llvm::cl::values(
             clEnumValN(::kas::codegen::ContractionPrecision::F32, "f32", "as they are"),
             clEnumValN(::kas::codegen::ContractionPrecision::BF16, "bf16", "two products at once"))}]>,
    Option<"prepacked", "prepacked", "bool", "false",
           "Weights are rounded ahead of the calls">,
    Option<"roundAll", "round-all", "bool", "false",
           "Round where it takes longer, too: for tests">,
    Option<"verifyLowering", "verify-lowering", "bool", "false",
           "Prove that linalg operations compute the operators">,
  ];
}

def KasPackDotProductsPass : Pass<"kas-pack-dot-products", "::mlir::func::FuncOp"> {
  let summary = "Lay out contractions of i8 and of bf16 in VNNI groups";
  let description = [{
    A contraction of i8, widened to i32, gets an innermost reduction over four elements that lie together in
    both inputs (upstream's data tiling of one loop), unsigned ones in one input and signed ones in the other, as
    instructions for bytes want it; one of bf16, widened to f32, over two. Where both are signed, 128 is added to one
    of them, and 128 times the sums of the other is subtracted from the output; they are made once where they are
    weights. Of the reductions that are a dimension of both inputs the one that needs the fewest zeros at its end is
    taken. Where there is none, or both inputs are unsigned, nothing changes.

    On targets that multiply i16 in pairs and no bytes (x86 without VNNI) bytes are widened to i16 before, and groups are
    of two; signs do not matter then. Contractions of signed i16 are laid out there as well.

    ```mlir
    %c = linalg.matmul ins(%a, %b : tensor<8x64xi8>, tensor<64x32xi8>) outs(%init : tensor<8x32xi32>)
    // becomes
    %c = linalg.generic {iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %y : tensor<8x16x4xi8>, tensor<16x32x4xi8>) outs(%less : tensor<8x32xi32>)
    ```

    Example: `test/Codegen/CPU/pack-dot-products.mlir`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def KasPackContractionsPass : Pass<"kas-pack-contractions", "::mlir::func::FuncOp"> {
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
  let options = KasPipelines_ContractionOptions # [KasPipelines_AlgorithmOption];
  let dependentDialects = [
    "::kas::KasCPUDialect", "::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def KasPackOperatorsPass : Pass<"kas-pack-operators"> {
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

    With `prepacked`, an elementwise `linalg.generic` that alone reads the result,
    such as a bias, a residual and a rectifier, is computed with the sums where
    tiles are vectors along the rows. Linalg operations on tensors that read one
    which `tensor.pad` fills up with zeros become such tiles, too, if those are
    the cheapest: what is padded is read where it is. Those of one pixel read
    copies of their weights with the output channels last.

    Where a weight is infinite or NaN, points that do not exist may
    contribute NaN, as with any convolution on a padded image.

    Examples: `test/Codegen/CPU/pack-operators.mlir`,
    `test/Codegen/CPU/row-vector-padding.mlir`.
  }];
  let options = KasPipelines_ContractionOptions # [KasPipelines_AlgorithmOption];
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

def KasWinogradPass : Pass<"kas-winograd", "::mlir::ModuleOp"> {
  let summary = "Compute convolutions of 3x3 by fewer products";
  let description = [{
    Input: `kas.apply` of concrete operators that are convolutions of 3x3 with
    stride 1, dense or in groups, on an image with or without zeros around it,
    and `linalg.conv_2d_nchw_fchw` or a `linalg.generic` of such a shape, as
    gradients by the data are, or of the gradient by the weight; f32, of static shape, with at least 16 tiles of 4x4
    outputs in the batch, and more than a few channels. One thread computes as many
    images at a time as leave their tiles in the cache. Output: loops that transform tiles of 6x6 of the
    data, 36 matrix products in register tiles, and loops that transform these
    back to 4x4 outputs, or to windows: 36 products for 144. The weights are transformed once where
    they are `prepacked` ahead.

    All others stay as they are, also those that have a schedule, and all on
    targets without masked loads.

    The results are less exact than a contraction: by some 1e-6 to 1e-5 of the
    largest one, see `docs/internals/convolutions.md`. `-kas-cpu-pipeline` runs this pass for
    `algorithm=winograd` only.

    Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks",
    CVPR 2016, section 4.
    Examples: `test/Codegen/CPU/winograd.mlir`, `test/Codegen/CPU/winograd-linalg.mlir`,
    `test/Codegen/CPU/winograd-gradient.mlir`.
  }];
  let options = [
    Option<"threads", "threads", "int64_t", /*default=*/"0",
           "Threads to share the loops; 1: no parallel loop, 0: unknown">,
    Option<"minParallelTime", "min-parallel-time", "int64_t",
           /*default=*/"40000",
           "Cycles below which threads cost more than they bring">,
    Option<"prepacked", "prepacked", "bool", /*default=*/"false",
           "Weights are transformed ahead (kas-prepack-weights)">,
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

def KasPrepackWeightsPass : Pass<"kas-prepack-weights", "::mlir::ModuleOp"> {
  let summary = "Move what rearranges weights to a function that runs once";
  let description = [{
    Input: functions on buffers whose weights are copied to another order by
    loops that `kas-pack-contractions` and `kas-pack-operators` have marked.
    Output: for each public function `@f` with such loops that depend on its
    weights only

    - `@f_prepack`, which takes the weights and a buffer, and fills the buffer;
    - `@f_prepacked_elements`, which returns how many f32 the buffer holds;
    - `@f` with that buffer as one more argument after its results.

    The weights of a function are the arguments that nothing writes to, but for
    the first one, which is the data. Functions without such loops stay as they
    are.

    ```mlir
    func.func @f(%x: memref<1x64x14x14xf32>, %w: memref<256x64xf32>,
                 %y: memref<1x256x14x14xf32>)
    // becomes
    func.func @f_prepack(%w: memref<256x64xf32>, %packed: memref<65536xi8>)
    func.func @f_prepacked_elements() -> i64
    func.func @f(%x: memref<1x64x14x14xf32>, %w: memref<256x64xf32>,
                 %y: memref<1x256x14x14xf32>, %packed: memref<65536xi8>)
    ```

    Example: `test/Codegen/CPU/prepack-weights.mlir`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def KasLowerDotProductsPass : Pass<"kas-lower-dot-products", "::mlir::func::FuncOp"> {
  let summary = "Replace products of narrow elements by instructions of the target";
  let description = [{
    `kas_cpu.dot` becomes one instruction where the target has one for vectors of its size: `vpdpbusd` of AVX-512
    or AVX VNNI and `usdot` of Arm's int8 matrix extension for bytes, `vpmaddwd` and an addition for i16 (and, for bytes
    that a module has in groups itself, two of each) on x86 without VNNI, `vdpbf16ps` and `bfdot` for bf16. Elsewhere
    elements are taken out of VNNI groups and multiplied one after the other; the values are the same. `kas_cpu.view_vnni_groups`
    becomes a descriptor of the same memory.

    Example: `test/Codegen/CPU/lower-dot-products.mlir`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::vector::VectorDialect"
  ];
}

#endif // KAS_CODEGEN_CPU_PRODUCTPASSES_TD
