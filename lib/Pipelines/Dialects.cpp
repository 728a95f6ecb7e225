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
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Pipelines/GPU.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"

using namespace kas;
using namespace mlir;

void kas::registerCPUPipelineDialects(DialectRegistry &registry) {
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registry.insert<KasDialect, KasCPUDialect>();
}

void kas::registerGPUPipelineDialects(DialectRegistry &registry) {
  registerCPUPipelineDialects(registry);
  registry.insert<KasGPUDialect>();
  registerAllGPUToLLVMIRTranslations(registry);
}
