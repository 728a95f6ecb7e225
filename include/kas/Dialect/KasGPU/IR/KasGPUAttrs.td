//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The attributes that say what a GPU offers and how a kernel is cut for it.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KASGPU_IR_KASGPUATTRS_TD
#define KAS_DIALECT_KASGPU_IR_KASGPUATTRS_TD

include "kas/Dialect/Kas/IR/ScheduleInterface.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def KasGPU_Dialect : Dialect {
  let name = "kas_gpu";
  let cppNamespace = "::kas";
  let summary = "How operators are compiled for GPUs";
  let description = [{
    Its operations are those of warpgroups, and the copies that feed them. Its attribute `kas_gpu.schedule` is set on `kas.apply` and
    `linalg.generic`, `kas_gpu.device` on modules, and `kas_gpu.library` on what a library may compute. Passes write `kas_gpu.access` on the arguments of
    kernels, `kas_gpu.dynamic_bytes` on kernels, `kas_gpu.scratch` on the buffer of temporaries, `kas_gpu.manifest` on
    modules, `kas_gpu.assertions` and `kas_gpu.num_prepack_launches` on functions, `kas_gpu.rounded` on what reads
    factors that were rounded to tf32 before, `kas_gpu.prologue` on reductions that the kernel of their reader computes.

    Constraints (those of the first two attributes are C7, C8, D2 and D3, below):
    - A1: an operation has no attribute of this dialect but `kas_gpu.schedule`, `kas_gpu.device`,
      `kas_gpu.dynamic_bytes`, `kas_gpu.num_tensor_maps`, `kas_gpu.num_prepack_launches`, `kas_gpu.rounded`, `kas_gpu.prologue`, `kas_gpu.scratch`,
      `kas_gpu.manifest`, `kas_gpu.assertions` and `kas_gpu.library`, a function's argument none but `kas_gpu.access`, a function's result none.
    - A2: `kas_gpu.access` is `"read"` or `"write"`.
    - A3: `kas_gpu.dynamic_bytes` is a number of type `i64` of at least 0, on a function.
    - A4: `kas_gpu.num_tensor_maps` is a number of type `i64` of at least 0, on a function.
    - A5: `kas_gpu.scratch` is a unit, on a `memref.alloc`.
    - A6: `kas_gpu.manifest` is a string, the text of a JSON object, on a module.
    - A7: `kas_gpu.assertions` is an array of strings, on a function.
    - A8: `kas_gpu.num_prepack_launches` is a number of type `i64` of at least 0, on a function.
    - A9: `kas_gpu.library` is a `#kas_gpu.matmul` or a `#kas_gpu.convolution`, on a `kas.apply`, a `linalg.generic`
      or a function.
    - A10: `kas_gpu.rounded` is an array of type `i64` with positions of operands of the operation, of f32.
    - A11: `kas_gpu.prologue` is a unit, on a `linalg.generic` without a `kas_gpu.schedule`.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    /// The attribute of `kas.apply`s and `linalg.generic`s.
    static constexpr ::llvm::StringLiteral scheduleName = "kas_gpu.schedule";
    /// The attribute of modules.
    static constexpr ::llvm::StringLiteral deviceName = "kas_gpu.device";
    /// The attribute of arguments of kernels: "read" or "write".
    static constexpr ::llvm::StringLiteral accessName = "kas_gpu.access";
    /// The attribute of kernels with the bytes of workgroup memory that they do
    /// not declare, and that a launch has to ask for.
    static constexpr ::llvm::StringLiteral dynamicBytesName =
        "kas_gpu.dynamic_bytes";
    /// The attribute of the buffer that holds all temporary ones.
    static constexpr ::llvm::StringLiteral scratchName = "kas_gpu.scratch";
    /// The attribute of functions whose last result, an i32, is the position of
    /// the assertion that failed: an array of their texts.
    static constexpr ::llvm::StringLiteral assertionsName =
        "kas_gpu.assertions";
    /// The attribute of modules with the manifest, a JSON text.
    static constexpr ::llvm::StringLiteral manifestName = "kas_gpu.manifest";
    /// The attribute of kernels with the number of tensor maps that they take
    /// after their buffers.
    static constexpr ::llvm::StringLiteral numTensorMapsName =
        "kas_gpu.num_tensor_maps";
    /// The attribute of functions with the number of their first launches that
    /// depend on weights and constants alone.
    static constexpr ::llvm::StringLiteral numPrepackLaunchesName =
        "kas_gpu.num_prepack_launches";
    /// The attribute of kernels, and of the operations that become some, that
    /// says what a library may compute in their place.
    static constexpr ::llvm::StringLiteral libraryName = "kas_gpu.library";
    /// The attribute of kernels for tensor cores, and of their products, with the
    /// positions of operands that have been rounded to tf32 before.
    static constexpr ::llvm::StringLiteral roundedName = "kas_gpu.rounded";
    static bool isRounded(::mlir::Operation *op, int64_t position);
    /// The attribute of reductions that each block of the kernel that alone
    /// reads their result computes for itself.
    static constexpr ::llvm::StringLiteral prologueName = "kas_gpu.prologue";

  private:
    void addKasGPUOps();
  public:
  }];
}

def KasGPU_Strategy : I32EnumAttr<"GPUStrategy", "how a kernel reads its data", [
    I32EnumAttrCase<"Direct", 0, "direct">,
    I32EnumAttrCase<"Staged", 1, "staged">,
    I32EnumAttrCase<"TensorCore", 2, "tensor_core">,
    I32EnumAttrCase<"Warpgroup", 3, "warpgroup">]> {
  let cppNamespace = "::kas";
}

def KasGPU_Precision : I32EnumAttr<"GPUPrecision",
    "what the factors of products are rounded to; sums have f32", [
    I32EnumAttrCase<"F32", 0, "f32">,
    I32EnumAttrCase<"TF32", 1, "tf32">,
    I32EnumAttrCase<"F16", 2, "f16">,
    I32EnumAttrCase<"BF16", 3, "bf16">]> {
  let cppNamespace = "::kas";
}

def KasGPU_ScheduleAttr : AttrDef<KasGPU_Dialect, "GPUSchedule",
    [DeclareAttrInterfaceMethods<Kas_ScheduleAttrInterface>]> {
  let mnemonic = "schedule";
  let summary = "how an operator is cut into blocks, threads and register tiles";
  let description = [{
    **Direct** kernels read all tensors where they are. A thread computes a tile of
    outputs, `tile` points along each output coordinate; the tiles are numbered row
    by row, and `threads` consecutive ones are a block. Every operator can be
    computed so. With a `depth`, so many neighbouring threads share the steps of a
    tile, those of the innermost reduction whose size it divides, and add up their
    sums in workgroup memory: for sums of products with few outputs.

    ```mlir
    #kas_gpu.schedule<strategy = direct, threads = 256, tile = [1, 4, 1, 1]>
    ```

    **Staged** kernels are for sums of products. Output coordinates that only the
    data depends on are numbered through as columns, those that only weights depend
    on as rows, the others as batches. A block computes `block = [rows, columns]` of
    outputs in steps of `depth` reductions: products of weights and the data of a
    step are copied to workgroup memory, in lines that are `padding` elements longer
    than they must be so that banks do not conflict, and each thread adds up
    `tile = [rows, columns]` sums in registers. With `stages = 2` the data of the
    next step is loaded while that of the last one is multiplied.

    ```mlir
    #kas_gpu.schedule<strategy = staged, threads = 256, tile = [4, 4], block = [64, 64],
                      depth = 16, padding = 4, stages = 2>
    ```

    **Tensor-core** kernels are staged kernels whose products are computed by
    matrix instructions (`mma.sync`, of NVIDIA's GPUs since sm_80) on numbers that
    are rounded to `precision`; sums are in f32. A warp, not a thread, computes a
    `tile`, and `stages` parts of the workgroup memory are filled in turn. Lines of
    workgroup memory hold neighbouring steps, or neighbouring rows or columns,
    whichever are neighbours in the tensors; of tf32, the latter are longer by
    twice the `padding`.

    ```mlir
    #kas_gpu.schedule<strategy = tensor_core, threads = 128, tile = [64, 32],
                      block = [128, 64], depth = 32, padding = 8, stages = 3,
                      precision = f16>
    ```

    **Warpgroup** kernels are for products of two matrices of 16-bit numbers whose rows, columns and steps lie
    at constant distances, on Hopper (sm_90a): a tensor of the data, one of a weight, and no guards. Four warps
    together compute a `tile` with `wgmma`, on 64 steps at once that the copy engine (TMA) has written to one of
    `stages` buffers.

    ```mlir
    #kas_gpu.schedule<strategy = warpgroup, threads = 256, tile = [64, 256], block = [128, 256],
                      depth = 64, stages = 4, precision = f16>
    ```

    Constraints:
    - C1: `threads` is 1 to 1024.
    - C2: all entries of `tile` are at least 1, their product is at most 256, or 8192 for tensor cores, or 16384
      for warpgroups.
    - C3: direct kernels have no `block`, `padding`, one stage, and a `depth` of 0, or a power of two above 1 that
      divides `threads`.
    - C4: staged kernels have two entries in `tile` and in `block`, and a `depth` of at least 1.
    - C5: entries of `tile` divide those of `block`, and the quotients' product is `threads`.
    - C6: `padding` is at least 0; `stages` is 1 or 2.
    - C7: the attribute `kas_gpu.schedule` of an operation is of this kind.
    - C8: it is on a `kas.apply` or a `linalg.generic`.
    - C9: tensor-core kernels have a `precision` of tf32, f16 or bf16; direct and staged ones have f32.
    - C10: tensor-core kernels have `tile`s of multiples of 16 that divide `block`, a warp of 32 threads for
      each tile, a `depth` that is a multiple of 16 and lines of workgroup memory that begin at multiples of
      16 bytes.
    - C11: tensor-core kernels have 2 to 8 `stages`.
    - C12: warpgroup kernels have a `precision` of f16 or bf16.
    - C13: warpgroup kernels have `tile`s of multiples of 64 that divide `block`, whose entries are at most 256, and
      128 threads for each tile.
    - C14: warpgroup kernels have a `depth` of 64, no `padding`, and 2 to 8 `stages`.
    - C15: `depth` and `padding` are at most 65536, so that bytes of workgroup memory can be counted.

    A schedule that does not suit the operator or the device is an error of
    `-kas-gpu-outline`.
  }];
  let parameters = (ins
    EnumParameter<KasGPU_Strategy>:$strategy,
    "int64_t":$threads,
    OptionalParameter<"::mlir::DenseI64ArrayAttr">:$tile,
    OptionalParameter<"::mlir::DenseI64ArrayAttr">:$block,
    DefaultValuedParameter<"int64_t", "0">:$depth,
    DefaultValuedParameter<"int64_t", "0">:$padding,
    DefaultValuedParameter<"int64_t", "1">:$stages,
    DefaultValuedParameter<"GPUPrecision", "GPUPrecision::F32">:$precision);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let builders = [AttrBuilder<(ins "GPUStrategy":$strategy, "int64_t":$threads,
      "::mlir::DenseI64ArrayAttr":$tile, "::mlir::DenseI64ArrayAttr":$block,
      "int64_t":$depth, "int64_t":$padding, "int64_t":$stages), [{
    return $_get($_ctxt, strategy, threads, tile, block, depth, padding, stages,
                 GPUPrecision::F32);
  }]>];
  let extraClassDeclaration = [{
    /// At most so many bytes of workgroup memory are taken.
    int64_t getSharedBytes() const;
  }];
}

def KasGPU_DeviceAttr : AttrDef<KasGPU_Dialect, "GPUDevice"> {
  let mnemonic = "device";
  let summary = "what a GPU offers";
  let description = [{
    The limits that kernels obey, and the numbers that the choice of schedules
    depends on. `max_threads` of a block and `shared_bytes` of its workgroup memory
    are limits, and so are `max_blocks` along each dimension of a grid and
    `max_bytes` of a buffer. A processor holds `processor_threads`,
    `processor_shared_bytes` and `registers` (of 32 bits) at once; a thread uses at
    most `thread_registers`. Threads run in groups of `subgroup`.

    ```mlir
    module attributes {kas_gpu.device = #kas_gpu.device<name = "sm_90",
      processors = 132, max_threads = 1024, ...>}
    ```

    Constraints:
    - D1: all numbers are at least 1, `max_threads` at most 1024.
    - D2: the attribute `kas_gpu.device` of a module is of this kind.
    - D3: it is on a module.
  }];
  let parameters = (ins
    StringRefParameter<>:$name,
    "int64_t":$processors,
    "int64_t":$max_threads,
    "int64_t":$shared_bytes,
    "int64_t":$max_blocks,
    "int64_t":$max_bytes,
    "int64_t":$processor_threads,
    "int64_t":$processor_shared_bytes,
    "int64_t":$registers,
    "int64_t":$thread_registers,
    "int64_t":$subgroup);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def KasGPU_MatmulAttr : AttrDef<KasGPU_Dialect, "GPUMatmul"> {
  let mnemonic = "matmul";
  let summary = "a product of matrices that a library may compute";
  let description = [{
    The kernel with this attribute computes

    ```
    result[batch, row, column] = f(sum over steps of left[batch, row, step] * right[batch, column, step]
                                   + bias[column] + residual[batch, row, column])
    ```

    with sums in f32, where `f` is the larger one of its argument and 0 if it is `rectified`, else nothing. Factors
    may be rounded to `precision`. `sizes` are those of batches, rows, columns and steps. `left`, `right` and
    `result` are each the position of a buffer among the kernel's arguments, and the elements from one batch to the
    next, from one row (of `right`: column) to the next, and from one step (of `result`: column) to the next. `bias`
    and `residual` are positions of buffers, -1 where there is none; the residual lies as the result does.

    ```mlir
    #kas_gpu.matmul<sizes = [1, 64, 32, 128], left = [0, 0, 128, 1], right = [1, 0, 1, 32],
                    result = [3, 0, 32, 1], bias = 2, rectified = true>
    ```

    Constraints:
    - M1: `sizes` has 4 entries from 1 to 2147483647.
    - M2: `left`, `right` and `result` have 4 entries of at least 0.
    - M3: the last stride of `result` is 1, and one of the last two of `left` and of `right`.
    - M4: `bias` and `residual` are at least -1.
  }];
  let parameters = (ins
    "::mlir::DenseI64ArrayAttr":$sizes,
    "::mlir::DenseI64ArrayAttr":$left,
    "::mlir::DenseI64ArrayAttr":$right,
    "::mlir::DenseI64ArrayAttr":$result,
    DefaultValuedParameter<"int64_t", "-1">:$bias,
    DefaultValuedParameter<"int64_t", "-1">:$residual,
    DefaultValuedParameter<"bool", "false">:$rectified,
    DefaultValuedParameter<"GPUPrecision", "GPUPrecision::F32">:$precision);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def KasGPU_ConvolutionAttr : AttrDef<KasGPU_Dialect, "GPUConvolution"> {
  let mnemonic = "convolution";
  let summary = "a convolution that a library may compute";
  let description = [{
    The kernel with this attribute computes

    ```
    result[n, k, y, x] = f(sum over c, i, j of image[n, group(k) * C + c, y * strides[0] + i * dilations[0] - pads[0],
                                                     x * strides[1] + j * dilations[1] - pads[1]] * filter[k, c, i, j]
                           + bias[k] + residual[n, k, y, x])
    ```

    with sums in f32, where `f` is the larger one of its argument and 0 if it is `rectified`, else nothing. There is nothing
    beyond the ends of an image. `image_sizes` are those of n, channels, height and width, `filter_sizes` those of k, c, i
    and j; there are as many groups as `filter_sizes` has channels (C) in those of the image, each with as many k. All results are computed
    whose windows fit with the same pad at both ends. Factors may be rounded to `precision`. `image`, `filter`, `result`,
    `bias` and `residual` are positions of buffers among the kernel's arguments, -1 where there is no bias or residual. Buffers
    have no gaps, and the dimensions are in memory as in the formula, or with `channels_last` as n, height, width,
    channels, those of the filter as k, i, j, c.

    ```mlir
    #kas_gpu.convolution<image = 0, filter = 1, result = 3, image_sizes = [8, 64, 56, 56], filter_sizes = [128, 64, 3, 3],
                         strides = [2, 2], dilations = [1, 1], pads = [1, 1], bias = 2, rectified = true>
    ```

    Constraints:
    - V1: `image_sizes` and `filter_sizes` have 4 entries from 1 to 2147483647.
    - V2: `strides` and `dilations` have 2 entries from 1 to 2147483647, `pads` 2 from 0 to 2147483647.
    - V3: the channels of the filter divide those of the image, and the groups the channels of the result.
    - V4: a window fits.
    - V5: `image`, `filter` and `result` are at least 0, `bias` and `residual` at least -1.
  }];
  let parameters = (ins
    "int64_t":$image,
    "int64_t":$filter,
    "int64_t":$result,
    "::mlir::DenseI64ArrayAttr":$image_sizes,
    "::mlir::DenseI64ArrayAttr":$filter_sizes,
    "::mlir::DenseI64ArrayAttr":$strides,
    "::mlir::DenseI64ArrayAttr":$dilations,
    "::mlir::DenseI64ArrayAttr":$pads,
    DefaultValuedParameter<"bool", "false">:$channels_last,
    DefaultValuedParameter<"int64_t", "-1">:$bias,
    DefaultValuedParameter<"int64_t", "-1">:$residual,
    DefaultValuedParameter<"bool", "false">:$rectified,
    DefaultValuedParameter<"GPUPrecision", "GPUPrecision::F32">:$precision);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Of n, k, y and x.
    ::llvm::SmallVector<int64_t> getResultSizes() const;
  }];
}

#endif // KAS_DIALECT_KASGPU_IR_KASGPUATTRS_TD
