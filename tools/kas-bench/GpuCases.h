//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cases that are timed on GPUs, in which precisions.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TOOLS_GPUCASES_H
#define KAS_TOOLS_GPUCASES_H

#include "kas/Codegen/GPU/Strategy/Options.h"

namespace kas {

/// A named operator at a binding; cases of a class have a common mean.
struct GPUCase {
  llvm::StringRef className, op, binding;
};

/// How precisely factors are multiplied, and how far results may be off.
struct GPUVariant {
  llvm::StringRef name;
  double tolerance;

  GPUPrecision getPrecision() const { return *symbolizeGPUPrecision(name); }
  /// Tensors have 16 bits where factors have.
  codegen::GPUElements getElements() const {
    return codegen::symbolizeGPUElements(name).value_or(
        codegen::GPUElements::F32);
  }
};

/// Matrix products; the layers of ResNet-50 at 224, a batch of 8; thin and wide
/// groups; operators that no library knows; small ones for slow devices.
inline constexpr GPUCase gpuCases[] = {
    {"matmul", "kas.matmul", "M=4096,N=4096,K=4096"},
    {"matmul", "kas.matmul", "M=8192,N=8192,K=8192"},
    {"dense", "kas.conv2d_strided", "N=8,Cin=3,Cout=64,H=224,W=224,k=7,s=2"},
    {"dense", "kas.conv1x1", "N=8,Cin=64,Cout=256,H=56,W=56"},
    {"dense", "kas.conv2d", "N=8,Cin=64,Cout=64,H=56,W=56,k=3"},
    {"dense", "kas.conv1x1", "N=8,Cin=512,Cout=128,H=28,W=28"},
    {"dense", "kas.conv2d", "N=8,Cin=128,Cout=128,H=28,W=28,k=3"},
    {"dense", "kas.conv1x1", "N=8,Cin=1024,Cout=256,H=14,W=14"},
    {"dense", "kas.conv2d", "N=8,Cin=256,Cout=256,H=14,W=14,k=3"},
    {"dense", "kas.conv1x1", "N=8,Cin=2048,Cout=512,H=7,W=7"},
    {"dense", "kas.conv2d", "N=8,Cin=512,Cout=512,H=7,W=7,k=3"},
    {"grouped", "kas.conv2d_grouped", "N=8,Cin=64,Cout=64,H=56,W=56,k=3,g=4"},
    {"grouped", "kas.conv2d_grouped",
     "N=8,Cin=256,Cout=256,H=14,W=14,k=3,g=32"},
    {"grouped", "kas.conv2d_depthwise", "N=8,C=64,H=56,W=56,k=3"},
    {"grouped", "kas.conv2d_dilated",
     "N=8,Cin=64,Cout=64,H=56,W=56,k=3,d=2,p=2"},
    {"new", "kas.syno_operator1", "N=8,Cin=64,Cout=64,H=56,W=56,k=3,g=2,s=2"},
    {"new", "kas.syno_operator2", "N=8,Cin=64,Cout=64,H=56,W=56,k=3,g=2,s=2"},
    {"small", "kas.matmul", "M=64,N=64,K=64"},
    {"small", "kas.conv2d", "N=1,Cin=16,Cout=16,H=14,W=14,k=3"},
};

/// Layers of other networks and batches, which no cost model was made with:
/// what shows whether it is true.
inline constexpr GPUCase gpuOtherCases[] = {
    {"matmul", "kas.matmul", "M=512,N=3072,K=768"},
    {"matmul", "kas.matmul", "M=1024,N=1024,K=1024"},
    {"matmul", "kas.matmul", "M=128,N=4096,K=4096"},
    {"dense", "kas.conv2d", "N=1,Cin=64,Cout=64,H=56,W=56,k=3"},
    {"dense", "kas.conv2d", "N=1,Cin=256,Cout=256,H=14,W=14,k=3"},
    {"dense", "kas.conv2d", "N=4,Cin=128,Cout=256,H=56,W=56,k=3"},
    {"dense", "kas.conv2d", "N=32,Cin=96,Cout=96,H=28,W=28,k=3"},
    {"dense", "kas.conv2d", "N=16,Cin=48,Cout=80,H=20,W=20,k=5"},
    {"dense", "kas.conv1x1", "N=16,Cin=96,Cout=576,H=28,W=28"},
    {"dense", "kas.conv1x1", "N=1,Cin=512,Cout=2048,H=7,W=7"},
    {"dense", "kas.conv1x1", "N=8,Cin=256,Cout=64,H=56,W=56"},
    {"grouped", "kas.conv2d_grouped",
     "N=16,Cin=128,Cout=128,H=28,W=28,k=3,g=8"},
    {"grouped", "kas.conv2d_depthwise", "N=32,C=384,H=14,W=14,k=3"},
    {"new", "kas.syno_operator2", "N=4,Cin=128,Cout=128,H=28,W=28,k=3,g=2,s=2"},
};

inline constexpr GPUVariant gpuVariants[] = {
    {"f32", 1e-4}, {"tf32", 1e-3}, {"f16", 1e-2}, {"bf16", 2e-2}};

} // namespace kas

#endif // KAS_TOOLS_GPUCASES_H
