//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the compiler says about a binary of kernels, as the runtime reads it.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_EXECUTIONENGINE_DEVICEMANIFEST_H
#define KAS_EXECUTIONENGINE_DEVICEMANIFEST_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace kas::execution {

/// The manifest of `-kas-nvvm-pipeline` and `-kas-spirv-pipeline`: kernels, and
/// functions that launch them one after another on buffers. All sizes are
/// static, all tensors row-major and contiguous.
struct DeviceManifest {
  /// A descriptor that a kernel takes after its buffers. Dimensions are
  /// innermost first, strides in bytes.
  struct TensorMap {
    uint64_t argument = 0;
    bool isBFloat16 = false;
    std::vector<uint64_t> sizes, strides, box;
  };

  struct Kernel {
    std::string name;
    std::array<uint32_t, 3> grid, block;
    uint32_t dynamicSharedBytes = 0;
    /// Bytes of each argument.
    std::vector<uint64_t> argumentBytes;
    std::vector<TensorMap> tensorMaps;
  };

  /// A status is an i32, the position in `assertions` of the first one that
  /// failed, or one that is not there.
  enum class BufferKind { Argument, Result, Status, Constant, Scratch };
  struct Buffer {
    BufferKind kind;
    std::string name;
    /// `f32`, `f16` or `bf16` for arguments and results.
    std::string dtype;
    std::vector<int64_t> shape;
    uint64_t bytes = 0;
    /// In the scratch buffer, a multiple of 256.
    uint64_t offset = 0;
    /// The bytes of a constant.
    std::string data;
  };

  struct Launch {
    /// Positions in `kernels` and `buffers`.
    size_t kernel;
    std::vector<size_t> arguments;
  };

  struct Function {
    std::string name;
    /// Arguments in their order, results in theirs, and what is between them.
    std::vector<Buffer> buffers;
    uint64_t scratchBytes = 0;
    /// What those assertions say that may fail, with their places.
    std::vector<std::string> assertions;
    /// Each sees what those before it wrote.
    std::vector<Launch> launches;
  };

  /// `cuda` or `vulkan`.
  std::string api;
  /// Such as `sm_90`; empty: any.
  std::string chip;
  std::vector<Kernel> kernels;
  std::vector<Function> functions;

  /// Reads the JSON text. What it says is consistent afterwards: positions,
  /// shapes and sizes of buffers agree. Unknown keys are ignored.
  static llvm::Expected<DeviceManifest> parse(llvm::StringRef json);

  /// Null when there is none.
  const Function *find(llvm::StringRef name) const;
};

} // namespace kas::execution

#endif // KAS_EXECUTIONENGINE_DEVICEMANIFEST_H
