//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Snippets of PyTorch code: reshapes, pads, windows, numbers.
// Shapes of the dialect are without the batch, PyTorch's with it: every
// function here adds it.
//
//===----------------------------------------------------------------------===//

#include "PyTorchText.h"
#include "PyTorch.h"
#include "llvm/Support/Format.h"

using namespace kas;
using namespace kas::target;
using namespace kas::torch;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringRef;

int64_t torch::countElements(ArrayRef<int64_t> extents) {
  int64_t result = 1;
  for (int64_t extent : extents)
    result *= extent;
  return result;
}

/// Dimensions of the dialect as those of PyTorch.
SmallVector<int64_t> torch::shiftDims(ArrayRef<int64_t> dims) {
  return llvm::map_to_vector(dims, [](int64_t dim) { return dim + 1; });
}

/// The batch is -1, so the code takes any batch.
std::string torch::reshape(ArrayRef<int64_t> shape) {
  return ".reshape(-1" + std::string(shape.empty() ? "" : ", ") +
         listNumbers(shape) + ")";
}

std::string torch::reshape(StringRef tensor, ArrayRef<int64_t> from,
                           ArrayRef<int64_t> to) {
  return from == to ? tensor.str() : tensor.str() + reshape(to);
}

/// As short as it can be while it reads as the same double.
std::string torch::printNumber(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.17g", number);
  std::string shorter;
  llvm::raw_string_ostream(shorter) << llvm::format("%.6g", number);
  return std::stod(shorter) == number ? shorter : text;
}

/// Zeros on both sides of each window's dimension, as many as the window
/// reaches out.
std::string torch::pad(StringRef tensor, int64_t rank,
                       ArrayRef<TorchWindow> windows) {
  SmallVector<int64_t> low(rank, 0), high(rank, 0);
  // F.pad counts dimensions from the last one; those before `first` need no
  // pads.
  int64_t first = rank;
  for (const TorchWindow &window : windows) {
    // `low` counts elements of the window, pads count those of the tensor.
    low[window.dim] = window.dilation * window.low;
    high[window.dim] = window.dilation * (window.size - 1 - window.low);
    if (low[window.dim] + high[window.dim] > 0)
      first = std::min(first, window.dim);
  }
  if (first == rank)
    return tensor.str();
  // The last dimension comes first.
  SmallVector<int64_t> amounts;
  for (int64_t dim = rank; dim-- > first;)
    amounts.append({low[dim], high[dim]});
  return "F.pad(" + tensor.str() + ", (" + listNumbers(amounts) + "))";
}

/// A view in which each window is a dimension after the channels: [B, C...,
/// W..., k...] -> [B, C..., k..., W...].
std::string torch::unfold(StringRef tensor, ArrayRef<TorchWindow> windows,
                          int64_t numChannels) {
  std::string text = tensor.str();
  SmallVector<int64_t> from, to;
  for (auto [place, window] : llvm::enumerate(windows)) {
    text += ".unfold(" +
            listNumbers(
                {window.dim + 1, window.dilation * (window.size - 1) + 1, 1}) +
            ")";
    // `unfold` takes dense windows: every dilation-th element of them is
    // wanted.
    if (window.dilation > 1)
      text += "[..., ::" + std::to_string(window.dilation) + "]";
    from.push_back(int64_t(place) - int64_t(windows.size()));
    to.push_back(numChannels + 1 + int64_t(place));
  }
  return text + ".movedim((" + listNumbers(from, /*isTuple=*/true) + "), (" +
         listNumbers(to, /*isTuple=*/true) + "))";
}
