//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The dialects that pipelines read and make: all of MLIR, since the programs
// and the Python package run any passes of upstream on what they are given
// (the sparsifier on layers of a study, say). Dialects are loaded on demand.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "kas/Pipelines/CPU.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"

using namespace kas;
using namespace mlir;

void kas::registerCPUPipelineDialects(DialectRegistry &registry) {
  registerAllDialects(registry);
  // Interfaces of dialects that are attached from outside, such as
  // bufferization.
  registerAllExtensions(registry);
  registry.insert<KasDialect, KasCPUDialect>();
}
