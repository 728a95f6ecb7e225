//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Expressions of PyTorch code on tensors with a leading batch. Dimensions
// and shapes are those without it.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_TARGET_PYTORCHTEXT_H
#define LIB_TARGET_PYTORCHTEXT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace kas::torch {

/// The product of some extents.
int64_t countElements(llvm::ArrayRef<int64_t> extents);

/// Dimensions, counted with the batch.
llvm::SmallVector<int64_t> shiftDims(llvm::ArrayRef<int64_t> dims);

/// `.reshape(-1, 2, 3)`
std::string reshape(llvm::ArrayRef<int64_t> shape);
/// `tensor` in another shape; itself where it has that.
std::string reshape(llvm::StringRef tensor, llvm::ArrayRef<int64_t> from,
                    llvm::ArrayRef<int64_t> to);

/// A constant that reads back as itself.
std::string printNumber(double number);

/// Elements i + dilation * (k - low) for k < size along a dimension.
struct TorchWindow {
  int64_t dim, size, dilation, low;
};

/// `tensor` of `rank` dimensions with the zeros around that `windows` read.
std::string pad(llvm::StringRef tensor, int64_t rank,
                llvm::ArrayRef<TorchWindow> windows);

/// The windows of the padded `tensor`, as dimensions after `numChannels`.
std::string unfold(llvm::StringRef tensor, llvm::ArrayRef<TorchWindow> windows,
                   int64_t numChannels);

} // namespace kas::torch

#endif // LIB_TARGET_PYTORCHTEXT_H
