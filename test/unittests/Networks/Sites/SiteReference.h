//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a kernel computes in the place of a convolution: the reference evaluator
// on each block of channels, and plain loops around it.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_NETWORKS_SITES_SITEREFERENCE_H
#define TEST_UNITTESTS_NETWORKS_SITES_SITEREFERENCE_H

#include "kas/Reference/KernelEvaluator.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <map>
#include <string>
#include <vector>

namespace kas::test {

/// A convolution that a kernel takes the place of.
struct Layer {
  std::string name;
  int64_t inputs, outputs, size, stride, window;
  /// The blocks of channels that the kernel works on.
  int64_t channels, copies;
  /// Among the bindings of the kernel.
  unsigned binding;

  int64_t getOutputSize() const { return size / stride; }
};

/// Values by the names of arguments.
using Arguments = std::map<std::string, llvm::ArrayRef<float>>;

/// What a marked convolution reads, before its padding.
mlir::Value getData(mlir::linalg::Conv2DNchwFchwOp op);

/// The layer that a marked convolution is, for `kernel`, whose first symbol is
/// the number of channels.
Layer getLayer(mlir::linalg::Conv2DNchwFchwOp op, KernelOp kernel);

/// `NAME.weight.0` and those that follow.
std::vector<llvm::ArrayRef<float>> getWeights(const std::string &name,
                                              const Arguments &arguments);

/// Copies of a kernel, each on a block of channels.
struct Copies {
  int64_t inputs, outputs, channels, count;
  /// Of one channel; the dimension after that of the channels.
  int64_t points;
  /// Among the bindings of the kernel.
  unsigned binding;
};

/// The kernel on blocks of `input`, means of blocks; `weights` are those of the
/// first copy, then those of the next one. Empty, with a diagnostic, when the
/// kernel cannot be evaluated.
std::vector<float> evaluateCopies(
    KernelOp kernel, const Copies &copies, llvm::ArrayRef<float> input,
    llvm::ArrayRef<llvm::ArrayRef<float>> weights,
    reference::StepPrecision precision = reference::StepPrecision::Double);

/// The same for a convolution, with means of windows before it.
std::vector<float> evaluateSite(
    KernelOp kernel, const Layer &layer, llvm::ArrayRef<float> input,
    llvm::ArrayRef<llvm::ArrayRef<float>> weights,
    reference::StepPrecision precision = reference::StepPrecision::Double);

/// Whether all values are finite.
bool isFinite(llvm::ArrayRef<float> values);

/// Whether the same elements are finite, of vectors of one size.
bool isSameKind(llvm::ArrayRef<float> actual, llvm::ArrayRef<float> expected);

} // namespace kas::test

#endif // TEST_UNITTESTS_NETWORKS_SITES_SITEREFERENCE_H
