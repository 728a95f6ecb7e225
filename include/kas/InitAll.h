//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Registers the dialects, passes and pipelines of kas: for the tools, the
// plug-in and programs that link kas.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_INITALL_H
#define KAS_INITALL_H

#include "kas/Conversion/KasToAffine.h"
#include "kas/Conversion/Passes.h"
#include "kas/Dialect/Kas/Analysis/Passes.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "kas/Differentiation/Passes.h"
#include "kas/GPU/GPU.h"
#include "kas/GraphSearch/Passes.h"
#include "kas/Models/Passes.h"
#include "kas/NetworkSearch/NetworkTarget.h"
#include "kas/NetworkSearch/ProxyEvaluator.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Pipelines/Schedule.h"
#include "kas/TransformOps/KasTransformOps.h"

namespace kas {

inline void registerAllDialects(mlir::DialectRegistry &registry) {
  registry.insert<KasDialect, KasCPUDialect, KasGPUDialect>();
  registerBufferizableOpInterfaceExternalModels(registry);
  registerGPUPipelineDialects(registry);
  registerTransformDialectExtension(registry);
}

/// Passes and pipelines.
inline void registerAllPasses() {
  registerKasConversionPasses();
  registerKasGraphSearchPasses();
  registerProxyEvaluators();
  registerNetworkSearch();
  registerKasAnalysisPasses();
  registerKasModelsPasses();
  registerKasDifferentiationPasses();
  registerKasTransformsPasses();
  registerCPUPipeline();
  registerGPUPipelines();
}

} // namespace kas

#endif // KAS_INITALL_H
