//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where CUDA's compiler of PTX and its library of functions are.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CODEGEN_GPU_TOOLKIT_H
#define KAS_CODEGEN_GPU_TOOLKIT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace kas::codegen {

/// The folder with `bin/ptxas` and `nvvm/libdevice`: `given` if it is not
/// empty; else that of the environment variables CUDA_ROOT, CUDA_HOME and
/// CUDA_PATH; the one that contains the `ptxas` found through PATH;
/// /usr/local/cuda; the package `nvidia-cuda-nvcc` of the Python environment
/// (VIRTUAL_ENV, or KAS_PYTHON_SITE for a folder `site-packages` elsewhere).
/// The error says where was looked.
llvm::Expected<std::string> findCUDAToolkit(llvm::StringRef given = "");

} // namespace kas::codegen

#endif // KAS_CODEGEN_GPU_TOOLKIT_H
