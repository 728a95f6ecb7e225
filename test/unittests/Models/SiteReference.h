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

#ifndef KAS_TEST_UNITTESTS_MODELS_SITEREFERENCE_H
#define KAS_TEST_UNITTESTS_MODELS_SITEREFERENCE_H

#include "kas/Dialect/Kas/IR/KasDag.h"
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

/// Means of windows, the kernel on blocks, means of blocks; `weights` are those
/// of the first copy, then those of the next one. Empty, with a diagnostic,
/// when the kernel cannot be evaluated.
std::vector<float> evaluateSite(KernelOp kernel, const Layer &layer,
                                llvm::ArrayRef<float> input,
                                llvm::ArrayRef<llvm::ArrayRef<float>> weights);

} // namespace kas::test

#endif // KAS_TEST_UNITTESTS_MODELS_SITEREFERENCE_H
