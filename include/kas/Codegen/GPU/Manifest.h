//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a runtime needs to know to launch the kernels of a binary.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CODEGEN_GPU_MANIFEST_H
#define KAS_CODEGEN_GPU_MANIFEST_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <array>
#include <string>
#include <vector>

namespace kas::codegen {

/// What a binary is made for.
struct GPUTarget {
  /// `cuda` or `vulkan`.
  std::string api;
  /// Such as `sm_90`; empty: any.
  std::string chip;
  /// `ptx`, `cubin`, `fatbin` or `spirv`.
  std::string format;
  /// What the device must have, such as `Float16`.
  std::vector<std::string> capabilities = {};
};

/// All sizes are static, all tensors row-major and contiguous.
/// docs/internals/gpu.md describes the JSON form.
struct GPUManifest {
  struct TensorShape {
    /// `f32`, `f16`, `bf16`.
    std::string dtype;
    std::vector<int64_t> shape;
    int64_t getBytes() const;
  };

  /// A buffer that a kernel takes, the i-th one at binding i.
  struct Argument : TensorShape {
    /// `read` or `write`; what is written is written as a whole.
    std::string access;
  };

  /// A descriptor of a tensor that a kernel takes after its buffers: 128 bytes
  /// that the runtime makes (cuTensorMapEncodeTiled), with lines of 128 bytes
  /// whose units are exchanged. Dimensions are innermost first.
  struct TensorMap {
    /// Position among the kernel's arguments.
    int64_t argument;
    std::vector<int64_t> sizes;
    /// In bytes, of all dimensions but the innermost one.
    std::vector<int64_t> strides;
    std::vector<int64_t> box;
  };

  struct Kernel {
    std::string name;
    std::array<int64_t, 3> grid, block;
    /// Workgroup memory that the kernel declares.
    int64_t sharedBytes = 0;
    /// What a launch has to ask for besides.
    int64_t dynamicSharedBytes = 0;
    std::vector<Argument> arguments;
    std::vector<TensorMap> tensorMaps;
  };

  struct Buffer : TensorShape {
    /// A status is an i32, the position in `assertions` of the first one that
    /// failed, or one that is not there.
    enum class Kind { Argument, Result, Status, Constant, Scratch };
    Kind kind;
    std::string name;
    /// In the scratch buffer, a multiple of 256.
    int64_t offset = 0;
    /// The bytes of a constant.
    std::string data = {};
  };

  struct Launch {
    unsigned kernel;
    /// Positions among the function's buffers.
    std::vector<unsigned> arguments;
  };

  struct Function {
    std::string name;
    /// Arguments in order, then results in order, then constants and
    /// temporaries.
    std::vector<Buffer> buffers;
    int64_t scratchBytes = 0;
    /// What those assertions say that may fail, with their places.
    std::vector<std::string> assertions;
    /// In order: each sees what those before it wrote.
    std::vector<Launch> launches;
  };

  GPUTarget target;
  std::vector<Kernel> kernels;
  std::vector<Function> functions;

  /// Reads it off a module of functions on buffers, as `buildGPUFrontHalf`
  /// makes them. Reports what is not a launch.
  static mlir::FailureOr<GPUManifest> get(mlir::ModuleOp module,
                                          GPUTarget target);

  /// The text that `DeviceManifest::parse` reads.
  std::string toJSON() const;
};

} // namespace kas::codegen

#endif // KAS_CODEGEN_GPU_MANIFEST_H
