//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the named kernels compute, as plain loops that know nothing of kas.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_LIBRARY_KERNELFORMULAS_H
#define TEST_UNITTESTS_LIBRARY_KERNELFORMULAS_H

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace formulas {

/// The values of a kernel's symbols.
using KernelSizes = std::map<std::string, int>;

/// The values of a tensor; weights are in the order of the kernel.
using List = std::vector<double>;

struct KernelFormula {
  std::string name;
  /// At which to compare; sizes are odd and different where they can be.
  std::vector<KernelSizes> sizes;
  /// The output of one image.
  std::function<List(const KernelSizes &sizes, const List &input,
                     const std::vector<List> &weights)>
      compute;
  /// The costs at `costSizes`, counted by hand.
  KernelSizes costSizes;
  int64_t flops, params;
};

/// The formulas of all named kernels, sorted by name.
std::vector<KernelFormula> getKernelFormulas();

} // namespace formulas

#endif // TEST_UNITTESTS_LIBRARY_KERNELFORMULAS_H
