//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares libraries with each other and with kernels, by the cost model.
//
//===----------------------------------------------------------------------===//

#include "LibraryChoice.h"
#include "LibraryConvolution.h"
#include "LibraryMatmul.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

Attribute kas::codegen::chooseLibrary(Operation *op, GPUPrecision precision,
                                      GPUDeviceAttr device, double &cycles) {
  std::optional<LibraryProblem> problem = LibraryProblem::get(op);
  Attribute best;
  if (!problem)
    return best;
  auto consider = [&](auto description) {
    if (!description)
      return;
    double expected =
        getLibraryCycles(description, device, problem->getBytes());
    if (expected < cycles) {
      best = description;
      cycles = expected;
    }
  };
  consider(getLibraryMatmul(*problem, precision));
  consider(getLibraryConvolution(*problem, precision));
  return best;
}
