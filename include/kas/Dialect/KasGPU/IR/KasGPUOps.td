//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the four warps of a warpgroup do together on Hopper, the copies that
// feed them, and stores of fragments.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KASGPU_IR_KASGPUOPS_TD
#define KAS_DIALECT_KASGPU_IR_KASGPUOPS_TD

include "kas/Dialect/KasGPU/IR/KasGPUAttrs.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def KasGPU_TensorMapAttr : AttrDef<KasGPU_Dialect, "TensorMap"> {
  let mnemonic = "tensor_map";
  let summary = "how a tensor lies in global memory, and what one copy takes of it";
  let description = [{
    A tensor of 1 to 5 dimensions, innermost first: the element at `i` is `i[0] + sum of i[d] * strides[d - 1]`
    elements past the start of a buffer. A copy takes a `box` of it. The host makes a descriptor of the buffer's
    address and these numbers, which the kernel gets as a parameter.

    ```mlir
    #kas_gpu.tensor_map<sizes = [4096, 1024], strides = [4096], box = [64, 128]>
    ```

    Constraints:
    - T1: there are 1 to 5 `sizes`, one stride less, and as many entries of `box`.
    - T2: sizes are 1 to 2^32.
    - T3: strides are at least as large as what they step over, and multiples of the stride before them.
    - T4: entries of `box` are 1 to 256.
    - T5: strides are less than 2^40, as those in bytes must be.
    - T6: offsets of elements are less than 2^63.

    Source: CUDA Driver API, `cuTensorMapEncodeTiled`.
  }];
  let parameters = (ins
    "::mlir::DenseI64ArrayAttr":$sizes,
    OptionalParameter<"::mlir::DenseI64ArrayAttr">:$strides,
    "::mlir::DenseI64ArrayAttr":$box);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The strides of all dimensions but the innermost one.
    ::llvm::ArrayRef<int64_t> getOuterStrides() const;
    /// Elements that a copy writes.
    int64_t getBoxElements() const;
    /// One more than the largest address, in elements.
    int64_t getEnd() const;
  }];
}

class KasGPU_Op<string mnemonic, list<Trait> traits = []>
    : Op<KasGPU_Dialect, mnemonic, traits>;

/// Objects of 64 bits in workgroup memory.
def KasGPU_Barriers : MemRefRankOf<[I64], [1]>;
def KasGPU_Factors : MemRefRankOf<[F16, BF16], [1]>;

def KasGPU_InitBarriersOp : KasGPU_Op<"init_barriers",
    [MemoryEffects<[MemWrite]>]> {
  let summary = "begin the first phase of barriers in workgroup memory";
  let description = [{
    A phase of each of `barriers` ends when one thread has said how many bytes it expects
    (`kas_gpu.expect_bytes`) and copies have written as many. One thread does this; others may use the
    barriers after a `gpu.barrier`.

    ```mlir
    kas_gpu.init_barriers %barriers : memref<4xi64, #gpu.address_space<workgroup>>
    ```

    Becomes `nvvm.mbarrier.init` and `nvvm.fence.mbarrier.init`.
  }];
  let arguments = (ins KasGPU_Barriers:$barriers);
  let assemblyFormat = "$barriers attr-dict `:` type($barriers)";
}

def KasGPU_ExpectBytesOp : KasGPU_Op<"expect_bytes",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "say how many bytes end the phase of a barrier";
  let description = [{
    ```mlir
    kas_gpu.expect_bytes %barriers[%i], 32768 : memref<4xi64, #gpu.address_space<workgroup>>
    ```

    Constraints:
    - E1: `bytes` is 1 to 2^20 - 1.

    Becomes `nvvm.mbarrier.arrive.expect_tx`. Source: PTX ISA, "Contents of the mbarrier object" (range of the
    count).
  }];
  let arguments = (ins KasGPU_Barriers:$barriers, Index:$number,
                       I64Attr:$bytes);
  let assemblyFormat =
      "$barriers `[` $number `]` `,` $bytes attr-dict `:` type($barriers)";
  let hasVerifier = 1;
}

def KasGPU_AwaitPhaseOp : KasGPU_Op<"await_phase",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait for the end of a phase of a barrier";
  let description = [{
    Waits until the phase of `parity`, 0 for the first one, has ended. What copies wrote can be read then.

    ```mlir
    kas_gpu.await_phase %barriers[%i], %parity : memref<4xi64, #gpu.address_space<workgroup>>
    ```

    Becomes `nvvm.mbarrier.try_wait.parity`.
  }];
  let arguments = (ins KasGPU_Barriers:$barriers, Index:$number, Index:$parity);
  let assemblyFormat =
      "$barriers `[` $number `]` `,` $parity attr-dict `:` type($barriers)";
}

def KasGPU_TensorCopyOp : KasGPU_Op<"tensor_copy",
    [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "copy a box of a tensor to workgroup memory";
  let description = [{
    Copies the box of `map` that begins at `coordinates`, innermost first, from `buffer` to `memory` at
    `offset`, as lines of 128 bytes, and tells barrier `number`. What is outside of the tensor is zero. The units
    of 16 bytes of a line are exchanged: unit u of the line that begins at byte 128 l is where unit u xor (l mod 8)
    would be, so that eight units at the same place of eight lines lie in different banks.

    ```mlir
    kas_gpu.tensor_copy %x[%step, %row] to %memory[%offset], %barriers[%i]
      {map = #kas_gpu.tensor_map<sizes = [4096, 1024], strides = [4096], box = [64, 128]>}
      : memref<4194304xf16>, memref<32768xf16, #gpu.address_space<workgroup>>, memref<4xi64, #gpu.address_space<workgroup>>
    ```

    Constraints:
    - K1: there are as many `coordinates` as dimensions of `map`.
    - K2: the innermost entry of `box` is 128 bytes.
    - K3: strides of `map` are multiples of 16 bytes, less than 2^40.
    - K4: the tensor of `map` is inside of `buffer`.
    - K5: `buffer` and `memory` have the same type of elements.

    Becomes `nvvm.cp.async.bulk.tensor.shared.cluster.global`, with the `descriptor` that
    `-kas-gpu-pass-tensor-maps` makes a parameter of the kernel. Source: PTX ISA, "cp.async.bulk.tensor",
    "Swizzling modes".
  }];
  let arguments = (ins KasGPU_Factors:$buffer, Variadic<Index>:$coordinates,
                       KasGPU_Factors:$memory, Index:$offset,
                       KasGPU_Barriers:$barriers, Index:$number,
                       Optional<AnyType>:$descriptor,
                       KasGPU_TensorMapAttr:$map);
  let assemblyFormat = [{
    $buffer `[` $coordinates `]` `to` $memory `[` $offset `]` `,`
    $barriers `[` $number `]` (`through` $descriptor^ `:` type($descriptor))?
    attr-dict `:` type($buffer) `,` type($memory) `,` type($barriers)
  }];
  let hasVerifier = 1;
}

def KasGPU_MatrixDescriptorOp : KasGPU_Op<"matrix_descriptor", [Pure]> {
  let summary = "where a matrix lies in workgroup memory, for the matrix instructions of warpgroups";
  let description = [{
    The 64 bits that describe a matrix in lines of 128 bytes with exchanged units (`kas_gpu.tensor_copy`), from
    `offset` of `memory` on: bits 0 to 13 are its address, 16 to 29 `leading`, 32 to 45 `stride`, each in units of 16
    bytes, and bits 62 and 63, as a number, are 1: lines of 128 bytes. Adding to it moves the address.

    ```mlir
    %d = kas_gpu.matrix_descriptor %memory[%offset], leading = 8192, stride = 1024
      : memref<32768xf16, #gpu.address_space<workgroup>>
    ```

    Constraints:
    - M1: `leading` and `stride` are multiples of 16 bytes, less than 2^18.

    Source: PTX ISA, "Matrix descriptor format".
  }];
  let arguments = (ins KasGPU_Factors:$memory, Index:$offset,
                       I64Attr:$leading, I64Attr:$stride);
  let results = (outs I64:$descriptor);
  let assemblyFormat = [{
    $memory `[` $offset `]` `,` `leading` `=` $leading `,` `stride` `=` $stride
    attr-dict `:` type($memory)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// All bits but those of the address.
    int64_t getFixedBits();
  }];
}

def KasGPU_WarpgroupMmaOp : KasGPU_Op<"warpgroup_mma",
    [MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["sums", "result"]>]> {
  let summary = "begin 64 rows, some columns and 16 steps of products";
  let description = [{
    The 128 threads of a warpgroup begin to add the product of a matrix of 64 rows in `row_memory` and one of columns
    in `column_memory` to their sums, which must not be read before `kas_gpu.warpgroup_wait`. The vector of
    sums has, for each eight columns, rows l / 4 and l / 4 + 8 of the 16 of warp w that lane l is in, and of these
    columns 2 (l mod 4) and the next one. Lines of memory are steps (eight lines of rows or columns are
    `stride` of the descriptor apart from the next eight), or, with `transpose_rows` and `transpose_columns`,
    64 rows or columns (`leading` from the next 64; eight steps are `stride` apart).

    ```mlir
    %next = kas_gpu.warpgroup_mma %a of %rows, %b of %columns, %sums
      : memref<16384xf16, #gpu.address_space<workgroup>>, memref<32768xf16, #gpu.address_space<workgroup>>, vector<32x2x2xf32>
    ```

    Constraints:
    - W1: the sums are a vector of 1 to 32 by 2 by 2 numbers of f32.
    - W2: both memories have the same type of elements.

    Becomes `nvvm.wgmma.mma_async`. Source: PTX ISA, "Asynchronous warpgroup level matrix multiply-accumulate
    instructions".
  }];
  let arguments = (ins I64:$rows, KasGPU_Factors:$row_memory, I64:$columns,
                       KasGPU_Factors:$column_memory,
                       VectorOfRankAndType<[3], [F32]>:$sums,
                       UnitAttr:$transpose_rows, UnitAttr:$transpose_columns);
  let results = (outs VectorOfRankAndType<[3], [F32]>:$result);
  let assemblyFormat = [{
    $rows `of` $row_memory `,` $columns `of` $column_memory `,` $sums attr-dict
    `:` type($row_memory) `,` type($column_memory) `,` type($sums)
  }];
  let hasVerifier = 1;
}

def KasGPU_WarpgroupFenceOp : KasGPU_Op<"warpgroup_fence",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "order the registers of sums before products";
  let description = [{
    Before the first products, and before products whose sums were changed otherwise since. Becomes
    `nvvm.wgmma.fence.aligned`.
  }];
  let assemblyFormat = "attr-dict";
}

def KasGPU_WarpgroupCommitOp : KasGPU_Op<"warpgroup_commit",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "make a group of the products since the last one";
  let description = [{
    Becomes `nvvm.wgmma.commit.group.sync.aligned`.
  }];
  let assemblyFormat = "attr-dict";
}

def KasGPU_WarpgroupWaitOp : KasGPU_Op<"warpgroup_wait",
    [MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["values", "results"]>]> {
  let summary = "wait for all but some groups of products";
  let description = [{
    The results are the sums after all but the last `groups` groups. Everything that reads or carries sums on goes
    through such an operation: else LLVM would be free to read registers that are being written. Indices that go
    through it are the same afterwards; what is computed of them is not computed before.

    ```mlir
    %done, %thread = kas_gpu.warpgroup_wait 0, %sums, %id : vector<32x2x2xf32>, index
    ```

    Constraints:
    - G1: `groups` is 0 to 7.

    Becomes the instruction `wgmma.wait_group`, with all registers of the values as operands.
  }];
  let arguments = (ins I64Attr:$groups,
    Variadic<AnyTypeOf<[VectorOfRankAndType<[3], [F32]>, Index]>>:$values);
  let results = (outs
    Variadic<AnyTypeOf<[VectorOfRankAndType<[3], [F32]>, Index]>>:$results);
  let assemblyFormat = "$groups `,` $values attr-dict `:` type($values)";
  let hasVerifier = 1;
}

def KasGPU_StoreMatrixOp : KasGPU_Op<"store_matrix",
    [MemoryEffects<[MemWrite]>]> {
  let summary = "store fragments of a warp to workgroup memory";
  let description = [{
    All lanes of a warp store 1, 2 or 4 matrices of 8x8 numbers of 16 bits, of which lane l holds those of row l / 4 in
    columns 2 (l mod 4) and the next one. Lane 8 m + r says with `address` where the eight numbers of row r of matrix m
    begin, a multiple of 16 bytes. It is the inverse of `nvgpu.ldmatrix`, and fragments of sums have this form once they are rounded.

    ```mlir
    kas_gpu.store_matrix %fragments to %memory[%address]
      : vector<4x2xf16>, memref<8704xf16, #gpu.address_space<workgroup>>
    ```

    Constraints:
    - F1: the fragments are a vector of 1, 2 or 4 by 2 numbers, of the type of the elements of `memory`.

    Becomes `nvvm.stmatrix`, for sm_90 and later. Source: PTX ISA, "Warp-level matrix store instruction: stmatrix".
  }];
  let arguments = (ins VectorOfRankAndType<[2], [F16, BF16]>:$fragments,
                       KasGPU_Factors:$memory, Index:$address);
  let assemblyFormat = [{
    $fragments `to` $memory `[` $address `]` attr-dict `:`
    type($fragments) `,` type($memory)
  }];
  let hasVerifier = 1;
}

#endif // KAS_DIALECT_KASGPU_IR_KASGPUOPS_TD
