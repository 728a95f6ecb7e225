//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the options of passes, pipelines and tools choose from for GPUs.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CODEGEN_GPU_STRATEGY_OPTIONS_H
#define KAS_CODEGEN_GPU_STRATEGY_OPTIONS_H

#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "llvm/Support/CommandLine.h"
#include <optional>
#include <string>

namespace kas::codegen {

/// The strategy of kernels: `Auto`, the cheapest one for each, or one of
/// `GPUStrategy` for those that can be computed so.
enum class GPUStrategyChoice { Auto, Direct, Staged, TensorCore, Warpgroup };

/// What tensors of f32 are kept in.
enum class GPUElements { F32, F16, BF16 };

/// Which libraries of the system may compute kernels: `Auto` is both.
enum class GPULibraries { None, CuBLASLt, CuDNN, Auto };

/// The order of images in functions: what the cost model expects to be fastest,
/// as they are, channels last between arguments and results, or also in copies
/// of these.
enum class GPULayout { Auto, AsIs, Inside, Whole };

/// What device code is made as. A `Fatbin` holds PTX and machine code.
enum class GPUFormat { PTX, Cubin, Fatbin, SPIRV };

/// What launches kernels.
enum class GPUInterface { CUDA, Vulkan };

/// What devices with Vulkan have.
enum class SPIRVProfile { F32, F16 };

/// Nothing for `Auto`.
inline std::optional<GPUStrategy> getStrategy(GPUStrategyChoice choice) {
  if (choice == GPUStrategyChoice::Auto)
    return std::nullopt;
  return static_cast<GPUStrategy>(static_cast<unsigned>(choice) - 1);
}

/// The inverse of `toString`; nothing for another text.
inline std::optional<GPUElements> symbolizeGPUElements(llvm::StringRef text) {
  if (text == "f32")
    return GPUElements::F32;
  if (text == "f16")
    return GPUElements::F16;
  if (text == "bf16")
    return GPUElements::BF16;
  return std::nullopt;
}

inline llvm::StringRef toString(GPUElements elements) {
  return elements == GPUElements::F32   ? "f32"
         : elements == GPUElements::F16 ? "f16"
                                        : "bf16";
}

inline llvm::StringRef toString(GPUFormat format) {
  return format == GPUFormat::PTX      ? "ptx"
         : format == GPUFormat::Cubin  ? "cubin"
         : format == GPUFormat::Fatbin ? "fatbin"
                                       : "spirv";
}

inline llvm::StringRef toString(GPUInterface interface) {
  return interface == GPUInterface::CUDA ? "cuda" : "vulkan";
}

/// The texts of the options' values.
inline llvm::cl::ValuesClass getLayoutValues() {
  return llvm::cl::values(
      clEnumValN(GPULayout::Auto, "auto", "the one expected to be fastest"),
      clEnumValN(GPULayout::AsIs, "as_is", "as they are"),
      clEnumValN(GPULayout::Inside, "inside",
                 "channels last but for arguments and results"),
      clEnumValN(GPULayout::Whole, "whole",
                 "channels last, with copies of arguments and results"));
}

inline llvm::cl::ValuesClass getStrategyValues() {
  return llvm::cl::values(
      clEnumValN(GPUStrategyChoice::Auto, "auto", "the cheapest one"),
      clEnumValN(GPUStrategyChoice::Direct, "direct",
                 "all data read where it is"),
      clEnumValN(GPUStrategyChoice::Staged, "staged",
                 "sums of products in tiles, through workgroup memory"),
      clEnumValN(GPUStrategyChoice::TensorCore, "tensor_core",
                 "the same with matrix instructions of warps"),
      clEnumValN(GPUStrategyChoice::Warpgroup, "warpgroup",
                 "the same with matrix instructions of four warps"));
}

inline llvm::cl::ValuesClass getPrecisionValues() {
  return llvm::cl::values(
      clEnumValN(GPUPrecision::F32, "f32", "as they are"),
      clEnumValN(GPUPrecision::TF32, "tf32",
                 "10 bits of fraction, for tensor "
                 "cores"),
      clEnumValN(GPUPrecision::F16, "f16", "for tensor cores"),
      clEnumValN(GPUPrecision::BF16, "bf16", "for tensor cores"));
}

inline llvm::cl::ValuesClass getElementsValues() {
  return llvm::cl::values(
      clEnumValN(GPUElements::F32, "f32", "32 bits"),
      clEnumValN(GPUElements::F16, "f16", "16 bits, 10 of fraction"),
      clEnumValN(GPUElements::BF16, "bf16", "16 bits, 7 of fraction"));
}

inline llvm::cl::ValuesClass getLibrariesValues() {
  return llvm::cl::values(
      clEnumValN(GPULibraries::None, "none", "kernels compute everything"),
      clEnumValN(GPULibraries::Auto, "auto",
                 "cuBLASLt and cuDNN, where they are there and expected to be "
                 "faster"),
      clEnumValN(GPULibraries::CuBLASLt, "cublaslt", "cuBLASLt alone"),
      clEnumValN(GPULibraries::CuDNN, "cudnn", "cuDNN alone"));
}

inline llvm::cl::ValuesClass getNVVMFormatValues() {
  return llvm::cl::values(
      clEnumValN(GPUFormat::PTX, "ptx", "text that the driver compiles"),
      clEnumValN(GPUFormat::Cubin, "cubin", "machine code for one chip"),
      clEnumValN(GPUFormat::Fatbin, "fatbin", "both"));
}

inline llvm::cl::ValuesClass getFormatValues() {
  return llvm::cl::values(
      clEnumValN(GPUFormat::PTX, "ptx", "text that the driver compiles"),
      clEnumValN(GPUFormat::Cubin, "cubin", "machine code for one chip"),
      clEnumValN(GPUFormat::Fatbin, "fatbin", "both"),
      clEnumValN(GPUFormat::SPIRV, "spirv", "words of SPIR-V"));
}

inline llvm::cl::ValuesClass getInterfaceValues() {
  return llvm::cl::values(
      clEnumValN(GPUInterface::CUDA, "cuda", "NVIDIA's GPUs"),
      clEnumValN(GPUInterface::Vulkan, "vulkan", "devices with Vulkan"));
}

inline llvm::cl::ValuesClass getProfileValues() {
  return llvm::cl::values(
      clEnumValN(SPIRVProfile::F32, "f32", "any device with Vulkan"),
      clEnumValN(SPIRVProfile::F16, "f16",
                 "devices with 16-bit arithmetic and storage"));
}

/// The text of options, with `strategy=` for its former name `road=`, which is
/// read for one release.
std::string renameFormerOptions(llvm::StringRef options);

/// What an error of options with a former name says, besides the current name.
constexpr llvm::StringLiteral formerOptionNote =
    "the option 'road' is now called 'strategy'";

} // namespace kas::codegen

#endif // KAS_CODEGEN_GPU_STRATEGY_OPTIONS_H
