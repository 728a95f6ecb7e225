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
#include "kas/Dialect/Kas/TransformOps/KasTransformOps.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "kas/Networks/Differentiation/Passes.h"
#include "kas/Networks/Passes.h"
#include "kas/Networks/Quantization/Passes.h"
#include "kas/Networks/Training/Passes.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Search/Evaluators/ProxyEvaluator.h"
#include "kas/Search/Networks/NetworkTarget.h"
#include "kas/Search/Pass/Passes.h"
#include "kas/Support/Features.h"
#if KAS_ENABLE_GPU
#include "kas/Pipelines/GPU/GPU.h"
#endif

namespace kas {

inline void registerAllDialects(mlir::DialectRegistry &registry) {
  registry.insert<KasDialect, KasCPUDialect, KasGPUDialect>();
  registerBufferizableOpInterfaceExternalModels(registry);
  registerCPUPipelineDialects(registry);
#if KAS_ENABLE_GPU
  registerGPUPipelineDialects(registry);
#endif
  registerTransformDialectExtension(registry);
}

/// Passes and pipelines.
inline void registerAllPasses() {
  registerKasConversionPasses();
  search::registerKasSearchPasses();
  search::registerProxyEvaluators();
  search::registerNetworkSearch();
  registerKasAnalysisPasses();
  networks::registerKasNetworksPasses();
  networks::registerKasDifferentiationPasses();
  networks::registerKasQuantizationPasses();
  networks::registerKasTrainingPasses();
  registerKasTransformsPasses();
  registerCPUPipeline();
#if KAS_ENABLE_GPU
  registerGPUPipelines();
#endif
}

} // namespace kas

#endif // KAS_INITALL_H
