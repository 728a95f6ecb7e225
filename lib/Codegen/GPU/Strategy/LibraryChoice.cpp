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
#include "kas/Codegen/GPU/Strategy/Device.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

Attribute kas::codegen::chooseLibrary(Operation *op, GPULibraries libraries,
                                      GPUPrecision precision,
                                      GPUDeviceAttr device, double &cycles) {
  Attribute best;
  if (libraries == GPULibraries::None || !isNVIDIADevice(device))
    return best;
  std::optional<LibraryProblem> problem = LibraryProblem::get(op);
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
  if (libraries != GPULibraries::CuDNN)
    consider(getLibraryMatmul(*problem, precision));
  if (libraries != GPULibraries::CuBLASLt)
    consider(getLibraryConvolution(*problem, precision));
  return best;
}
