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

#ifndef KAS_SUPPORT_DEVICEMANIFEST_H
#define KAS_SUPPORT_DEVICEMANIFEST_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kas {

/// The manifest of `-kas-nvvm-pipeline` and `-kas-spirv-pipeline`: kernels, and
/// functions that launch them one after another on buffers. All sizes are
/// static, all tensors row-major and contiguous. docs/internals/gpu.md
/// describes the JSON form.
struct DeviceManifest {
  /// What the kernels are compiled for.
  struct Target {
    /// `cuda` or `vulkan`.
    std::string api;
    /// Such as `sm_90`; empty: any.
    std::string chip;
    /// `ptx`, `cubin`, `fatbin` or `spirv`.
    std::string format;
    /// What the device must have, such as `Float16`.
    std::vector<std::string> capabilities = {};
  };

  struct TensorShape {
    /// `f64`, `f32`, `f16`, `bf16`, or an integer from `i1` to `i64`.
    std::string dtype;
    std::vector<int64_t> shape;
    uint64_t getBytes() const;
  };

  /// A buffer that a kernel takes, the i-th one at binding i.
  struct Argument : TensorShape {
    /// `read` or `write`; what is written is written as a whole.
    std::string access = {};
  };

  /// A descriptor of a tensor of f16 or bf16 that a kernel takes after its
  /// buffers: 128 bytes that the runtime makes (cuTensorMapEncodeTiled), with
  /// lines of 128 bytes whose units are exchanged. Dimensions are innermost
  /// first.
  struct TensorMap {
    /// Position among the kernel's arguments.
    uint64_t argument = 0;
    std::vector<uint64_t> sizes;
    /// In bytes, of all dimensions but the innermost one.
    std::vector<uint64_t> strides;
    std::vector<uint64_t> box;
  };

  /// A matrix for each batch, in a buffer of a kernel.
  struct Matrix {
    /// Position among the kernel's arguments.
    uint64_t argument = 0;
    /// Elements to the next batch, to the next row (of the right factor:
    /// column), and to the next step (of the result: column).
    std::vector<uint64_t> strides;
  };

  /// What a library adds to sums of products and makes of them, which are at
  /// least 0 if they are rectified; sums in f32.
  struct Epilogue {
    /// Positions among the kernel's arguments.
    std::optional<uint64_t> bias, residual;
    bool isRectified = false;
    /// What factors may be rounded to: `f32`, `tf32`, `f16` or `bf16`.
    std::string precision = "f32";
  };

  /// What a kernel computes, where it is a product of matrices that a library
  /// may compute in its place: `left` times `right`, plus a bias for each
  /// column and a residual.
  struct Matmul : Epilogue {
    /// Of batches, rows, columns and steps.
    std::vector<uint64_t> sizes;
    Matrix left, right, result;
  };

  /// The same, where it is a convolution of images with filters, plus a bias
  /// for each channel and a residual. Tensors have no gaps.
  struct Convolution : Epilogue {
    /// Positions among the kernel's arguments.
    uint64_t image = 0, filter = 0, result = 0;
    /// Of images, channels, height and width; of channels of the result,
    /// channels of a group of the image, height and width.
    std::vector<uint64_t> imageSizes, filterSizes;
    /// Along height and width; pads are the same at both ends.
    std::vector<uint64_t> strides, dilations, pads;
    /// Whether channels, not widths, are neighbours in memory.
    bool areChannelsLast = false;

    /// Of images, channels, height and width of the result, 0 where nothing
    /// fits.
    std::vector<uint64_t> getResultSizes() const;
  };

  struct Kernel {
    std::string name;
    std::array<uint32_t, 3> grid, block;
    /// Workgroup memory that the kernel declares.
    uint64_t sharedBytes = 0;
    /// Workgroup memory that a launch requests in addition.
    uint32_t dynamicSharedBytes = 0;
    std::vector<Argument> arguments;
    std::vector<TensorMap> tensorMaps;
    /// At most one of them.
    std::optional<Matmul> matmul;
    std::optional<Convolution> convolution;
  };

  /// A status is an i32, the position in `assertions` of the first one that
  /// failed, or one that is not there.
  enum class BufferKind { Argument, Result, Status, Constant, Scratch };
  /// The word for it in the JSON form.
  static llvm::StringRef getName(BufferKind kind);
  /// Arguments and results are of `f32`, `f16` or `bf16`.
  struct Buffer : TensorShape {
    BufferKind kind = BufferKind::Argument;
    std::string name = {};
    /// In the scratch buffer, a multiple of 256.
    uint64_t offset = 0;
    /// The bytes of a constant.
    std::string data = {};
  };

  struct Launch {
    /// Positions in `kernels` and `buffers`.
    size_t kernel;
    std::vector<size_t> arguments;
  };

  struct Function {
    std::string name;
    /// Arguments in order, then results in order, then constants and
    /// temporaries.
    std::vector<Buffer> buffers;
    uint64_t scratchBytes = 0;
    /// What those assertions say that may fail, with their places.
    std::vector<std::string> assertions;
    /// In order: each sees what those before it wrote.
    std::vector<Launch> launches;
    /// How many of the first ones depend on weights and constants alone: calls
    /// may leave them out while these are the same, as nothing else writes to
    /// what they write.
    size_t numPrepackLaunches = 0;
  };

  Target target;
  std::vector<Kernel> kernels;
  std::vector<Function> functions;

  std::string toJSON() const;

  /// Reads the JSON text. What it says is consistent afterwards: positions,
  /// shapes and sizes of buffers agree. Unknown keys are ignored.
  static llvm::Expected<DeviceManifest> fromJSON(llvm::StringRef json);

  /// Null when there is none.
  const Function *find(llvm::StringRef name) const;
};

} // namespace kas

#endif // KAS_SUPPORT_DEVICEMANIFEST_H
