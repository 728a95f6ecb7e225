//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Files of NumPy: f32 arrays in .npy, and collections of them in .npz.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_EXECUTIONENGINE_NPY_H
#define KAS_EXECUTIONENGINE_NPY_H

#include "kas/ExecutionEngine/Tensor.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace kas::execution {

/// Arrays by name, in the order of the file.
using NamedTensors =
    llvm::MapVector<std::string, Tensor, llvm::StringMap<unsigned>>;

/// The header of a .npy file, and its data where they are.
struct NpyView {
  /// As NumPy writes it, such as `<f4` or `|u1`; a list for structured types.
  std::string dtype;
  /// Whether the first dimension is the contiguous one.
  bool fortranOrder = false;
  llvm::SmallVector<int64_t> shape;
  llvm::StringRef data;
};

/// Parses the header of a .npy file (format versions 1 to 3). The size of the
/// data is not compared with the shape, which may be any integers.
llvm::Expected<NpyView> viewNpy(llvm::StringRef bytes);

/// Parses the bytes of a .npy file (format versions 1 to 3). The dtype must be
/// little-endian f32 (`<f4`); Fortran order is converted to C order. Missing or
/// trailing bytes, another dtype or byte order, a malformed header: an error.
/// NaNs and infinities are values like any other.
llvm::Expected<Tensor> parseNpy(llvm::StringRef bytes);

/// Reads a .npy file; errors name the file.
llvm::Expected<Tensor> readNpy(llvm::StringRef path);

/// Reads a .npz file: a zip archive of .npy members, stored or deflated. Names
/// lose their `.npy`. Check sums are verified; encryption, several disks and
/// zip64 sizes beyond the file are errors.
llvm::Expected<NamedTensors> readNpz(llvm::StringRef path);

/// The bytes before the data of a .npy file (version 1, C order) of f32.
std::string formatNpyHeader(llvm::ArrayRef<int64_t> shape);

/// The bytes of a .npy file (version 1, C order) of `tensor`.
std::string formatNpy(const Tensor &tensor);

/// Writes a .npy file through a temporary file in the same directory and a
/// rename: on any failure an old file of that name stays as it was.
llvm::Error writeNpy(llvm::StringRef path, const Tensor &tensor);

/// Writes a .npz file of stored members, in the same way.
llvm::Error writeNpz(llvm::StringRef path, const NamedTensors &tensors);

} // namespace kas::execution

#endif // KAS_EXECUTIONENGINE_NPY_H
