//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SpirvText.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Target/SPIRV/Serialization.h"

std::string assembleSpirv(const std::string &text) {
  mlir::MLIRContext context;
  context.loadDialect<mlir::spirv::SPIRVDialect>();
  auto module = mlir::parseSourceString<mlir::spirv::ModuleOp>(text, &context);
  llvm::SmallVector<uint32_t> words;
  if (!module || failed(mlir::spirv::serialize(*module, words)))
    return {};
  return std::string(reinterpret_cast<const char *>(words.data()),
                     words.size() * sizeof(uint32_t));
}

std::string getSpirvKernels() {
  return assembleSpirv(R"(
!array = !spirv.ptr<!spirv.struct<(!spirv.array<64 x f32, stride=4> [0])>,
                    StorageBuffer>
!element = !spirv.ptr<f32, StorageBuffer>
!shared = !spirv.ptr<!spirv.array<32 x f32>, Workgroup>
spirv.module Logical GLSL450
    requires #spirv.vce<v1.0, [Shader], [SPV_KHR_storage_buffer_storage_class]> {
  spirv.GlobalVariable @id built_in("GlobalInvocationId")
      : !spirv.ptr<vector<3xi32>, Input>
  spirv.GlobalVariable @local built_in("LocalInvocationId")
      : !spirv.ptr<vector<3xi32>, Input>
  spirv.GlobalVariable @a bind(0, 0) {non_writable} : !array
  spirv.GlobalVariable @b bind(0, 1) : !array
  spirv.GlobalVariable @out bind(0, 2) : !array
  spirv.GlobalVariable @tile : !shared
  spirv.func @add() "None" {
    %zero = spirv.Constant 0 : i32
    %id = spirv.mlir.addressof @id : !spirv.ptr<vector<3xi32>, Input>
    %ids = spirv.Load "Input" %id : vector<3xi32>
    %i = spirv.CompositeExtract %ids[0 : i32] : vector<3xi32>
    %a = spirv.mlir.addressof @a : !array
    %b = spirv.mlir.addressof @b : !array
    %out = spirv.mlir.addressof @out : !array
    %pa = spirv.AccessChain %a[%zero, %i] : !array, i32, i32 -> !element
    %pb = spirv.AccessChain %b[%zero, %i] : !array, i32, i32 -> !element
    %pout = spirv.AccessChain %out[%zero, %i] : !array, i32, i32 -> !element
    %x = spirv.Load "StorageBuffer" %pa : f32
    %y = spirv.Load "StorageBuffer" %pb : f32
    %sum = spirv.FAdd %x, %y : f32
    spirv.Store "StorageBuffer" %pout, %sum : f32
    spirv.Return
  }
  spirv.func @twice() "None" {
    %zero = spirv.Constant 0 : i32
    %last = spirv.Constant 31 : i32
    %id = spirv.mlir.addressof @id : !spirv.ptr<vector<3xi32>, Input>
    %ids = spirv.Load "Input" %id : vector<3xi32>
    %i = spirv.CompositeExtract %ids[0 : i32] : vector<3xi32>
    %local = spirv.mlir.addressof @local : !spirv.ptr<vector<3xi32>, Input>
    %locals = spirv.Load "Input" %local : vector<3xi32>
    %l = spirv.CompositeExtract %locals[0 : i32] : vector<3xi32>
    %a = spirv.mlir.addressof @a : !array
    %b = spirv.mlir.addressof @b : !array
    %tile = spirv.mlir.addressof @tile : !shared
    %pa = spirv.AccessChain %a[%zero, %i] : !array, i32, i32 -> !element
    %x = spirv.Load "StorageBuffer" %pa : f32
    %other = spirv.ISub %last, %l : i32
    %to = spirv.AccessChain %tile[%other] : !shared, i32
        -> !spirv.ptr<f32, Workgroup>
    spirv.Store "Workgroup" %to, %x : f32
    spirv.ControlBarrier <Workgroup>, <Workgroup>, <AcquireRelease|WorkgroupMemory>
    %from = spirv.AccessChain %tile[%other] : !shared, i32
        -> !spirv.ptr<f32, Workgroup>
    %y = spirv.Load "Workgroup" %from : f32
    %sum = spirv.FAdd %y, %y : f32
    %pb = spirv.AccessChain %b[%zero, %i] : !array, i32, i32 -> !element
    spirv.Store "StorageBuffer" %pb, %sum : f32
    spirv.Return
  }
  spirv.EntryPoint "GLCompute" @add, @id
  spirv.EntryPoint "GLCompute" @twice, @id, @local
  spirv.ExecutionMode @add "LocalSize", 32, 1, 1
  spirv.ExecutionMode @twice "LocalSize", 32, 1, 1
})");
}
