//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../../lib/Runtime/SpirvModule.h"
#include "SpirvText.h"
#include "gtest/gtest.h"
#include <cstring>
#include <vector>

using namespace kas::rt;

static void expectInvalid(const std::string &bytes, const std::string &got) {
  SpirvModule module;
  Status status = module.read(bytes.data(), bytes.size());
  EXPECT_EQ(status.getCode(), KAS_RT_ERROR_INVALID_MODULE);
  EXPECT_NE(status.getText().find("expected a SPIR-V module, got " + got),
            std::string::npos)
      << status.getText();
}

TEST(SpirvModule, ReadsKernels) {
  std::string bytes = getSpirvKernels();
  ASSERT_FALSE(bytes.empty());
  SpirvModule module;
  Status status = module.read(bytes.data(), bytes.size());
  ASSERT_FALSE(status.isError()) << status.getText();
  ASSERT_EQ(module.kernels.size(), 2u);
  const SpirvKernel *add = module.find("add"), *twice = module.find("twice");
  ASSERT_TRUE(add && twice);
  EXPECT_EQ(add->bufferCount, 3u);
  EXPECT_EQ(add->block, (std::array<uint32_t, 3>{32, 1, 1}));
  EXPECT_EQ(add->sharedBytes, 0u);
  EXPECT_EQ(twice->bufferCount, 2u);
  EXPECT_EQ(twice->sharedBytes, 128u);
  EXPECT_EQ(add->readOnly, std::set<uint32_t>{0});
  EXPECT_EQ(twice->readOnly, std::set<uint32_t>{0});
  EXPECT_EQ(module.find("none"), nullptr);
}

TEST(SpirvModule, RefusesOtherBytes) {
  expectInvalid("", "bytes of another format");
  expectInvalid("abc", "3 bytes, not a multiple of 4");
  expectInvalid(std::string(64, 'x'), "bytes of another format");
  std::string bytes = getSpirvKernels();
  ASSERT_FALSE(bytes.empty());
  expectInvalid(bytes.substr(0, 20), "one without an entry point");
}

TEST(SpirvModule, RefusesOtherEntryPoints) {
  std::string bytes = assembleSpirv(R"(
spirv.module Logical GLSL450 requires #spirv.vce<v1.0, [Shader], []> {
  spirv.func @draw() "None" {
    spirv.Return
  }
  spirv.EntryPoint "Vertex" @draw
})");
  ASSERT_FALSE(bytes.empty());
  expectInvalid(bytes, "an entry point 'draw' of execution model 0");
}

TEST(SpirvModule, RefusesOtherDescriptorSets) {
  std::string bytes = assembleSpirv(R"(
!array = !spirv.ptr<!spirv.struct<(!spirv.array<64 x f32, stride=4> [0])>,
                    StorageBuffer>
spirv.module Logical GLSL450
    requires #spirv.vce<v1.0, [Shader], [SPV_KHR_storage_buffer_storage_class]> {
  spirv.GlobalVariable @a bind(1, 0) : !array
  spirv.func @clear() "None" {
    %zero = spirv.Constant 0 : i32
    %value = spirv.Constant 0.0 : f32
    %a = spirv.mlir.addressof @a : !array
    %p = spirv.AccessChain %a[%zero, %zero] : !array, i32, i32
        -> !spirv.ptr<f32, StorageBuffer>
    spirv.Store "StorageBuffer" %p, %value : f32
    spirv.Return
  }
  spirv.EntryPoint "GLCompute" @clear
  spirv.ExecutionMode @clear "LocalSize", 1, 1, 1
})");
  ASSERT_FALSE(bytes.empty());
  expectInvalid(bytes,
                "a kernel 'clear' with buffers outside of descriptor set 0");
}

// Buffers and workgroup memory that only a called function names, or only a
// copy.
TEST(SpirvModule, FollowsCalls) {
  std::string bytes = assembleSpirv(R"(
!array = !spirv.ptr<!spirv.struct<(!spirv.array<64 x f32, stride=4> [0])>,
                    StorageBuffer>
!element = !spirv.ptr<f32, StorageBuffer>
!state = !spirv.ptr<!spirv.struct<(f32, i1)>, Workgroup>
!number = !spirv.ptr<f32, Workgroup>
spirv.module Logical GLSL450
    requires #spirv.vce<v1.0, [Shader], [SPV_KHR_storage_buffer_storage_class]> {
  spirv.GlobalVariable @a bind(0, 0) : !array
  spirv.GlobalVariable @from : !state
  spirv.GlobalVariable @to : !state
  spirv.func @store(%value: f32) "None" {
    %zero = spirv.Constant 0 : i32
    %a = spirv.mlir.addressof @a : !array
    %p = spirv.AccessChain %a[%zero, %zero] : !array, i32, i32 -> !element
    spirv.Store "StorageBuffer" %p, %value : f32
    %from = spirv.mlir.addressof @from : !state
    %to = spirv.mlir.addressof @to : !state
    spirv.CopyMemory "Workgroup" %to, "Workgroup" %from
        : !spirv.struct<(f32, i1)>
    spirv.Return
  }
  spirv.func @call() "None" {
    %value = spirv.Constant 0.0 : f32
    spirv.FunctionCall @store(%value) : (f32) -> ()
    spirv.Return
  }
  spirv.EntryPoint "GLCompute" @call
  spirv.ExecutionMode @call "LocalSize", 1, 1, 1
})");
  ASSERT_FALSE(bytes.empty());
  SpirvModule module;
  Status status = module.read(bytes.data(), bytes.size());
  ASSERT_FALSE(status.isError()) << status.getText();
  const SpirvKernel *call = module.find("call");
  ASSERT_TRUE(call);
  EXPECT_EQ(call->bufferCount, 1u);
  EXPECT_EQ(call->sharedBytes, 16u);
}

// Instructions that end before their operands do.
TEST(SpirvModule, RefusesInstructionsThatAreCutOff) {
  std::string bytes = getSpirvKernels();
  ASSERT_FALSE(bytes.empty());
  auto append = [&](std::vector<uint32_t> words) {
    words.front() |= static_cast<uint32_t>(words.size()) << 16;
    return bytes.substr(0, 20) +
           std::string(reinterpret_cast<const char *>(words.data()),
                       4 * words.size());
  };
  expectInvalid(append({15, 5}), "an instruction 15 with 1 operands");
  expectInvalid(append({15, 5, 1, 0x41414141}),
                "a kernel with a name that does not end");
  expectInvalid(append({16, 1}), "an instruction 16 with 1 operands");
  expectInvalid(append({16, 1, 17, 32}), "an instruction 16 with 3 operands");
  expectInvalid(append({71, 1}), "an instruction 71 with 1 operands");
  expectInvalid(append({71, 1, 33}), "an instruction 71 with 2 operands");
  expectInvalid(append({32, 1, 12}), "an instruction 32 with 2 operands");
  expectInvalid(append({43, 1, 2}), "an instruction 43 with 2 operands");
  expectInvalid(append({59, 1, 2}), "an instruction 59 with 2 operands");
}

/// Whatever bytes are damaged or cut off, reading ends with a result.
TEST(SpirvModule, SurvivesDamage) {
  std::string bytes = getSpirvKernels();
  ASSERT_FALSE(bytes.empty());
  int refused = 0;
  for (size_t size = 0; size < bytes.size(); size += 4) {
    SpirvModule module;
    refused += module.read(bytes.data(), size).isError();
  }
  EXPECT_GT(refused, 100);
  refused = 0;
  for (size_t word = 0; word < bytes.size() / 4; ++word)
    for (uint32_t value : {0u, 1u, 0xffffffffu, 0x00010000u, 0x0003003bu}) {
      std::string damaged = bytes;
      std::memcpy(damaged.data() + word * 4, &value, 4);
      SpirvModule module;
      refused += module.read(damaged.data(), damaged.size()).isError();
    }
  EXPECT_GT(refused, 100);
}
