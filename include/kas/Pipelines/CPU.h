//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The lowering path from operators and linalg to the CPU, as one pipeline.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_PIPELINES_CPU_H
#define KAS_PIPELINES_CPU_H

#include "kas/Codegen/CPU/Strategy/Algorithm.h"
#include "kas/Support/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace kas {

struct CPUPipelineOptions {
  /// Threads of parallel loops: 1 makes serial code that needs no OpenMP, 0
  /// leaves the number to OpenMP (OMP_NUM_THREADS, else one per core).
  unsigned threads = 0;
  /// Let threads share loops however short they are. It takes longer, and is
  /// for tests of what threads do.
  bool sharesShortLoops = false;
  /// What to compile for; an empty CPU: the target that the module names, else
  /// the host.
  TargetNames target = {.cpu = "", .triple = "", .features = ""};
  /// Width of the vector registers; 0: those of the target.
  unsigned vectorBits = 0;
  /// Lower operators directly to packed panels where they suit; without it all
  /// take the lowering path over linalg.
  bool packOperators = true;
  /// Rearrange weights in a function of its own, which is to be called once
  /// before (`-kas-prepack-weights`); else at each call.
  bool prepackWeights = false;
  /// Let functions take batches of any size, with the number of samples as
  /// their last argument; the batch that a function has is the largest that it
  /// is fast for (`-kas-batch-versions`). An error for functions that do not
  /// compute samples one by one.
  bool anyBatch = false;
  /// Let functions take memory for their buffers as their last argument
  /// (`-kas-use-workspace`), instead of `malloc`. Only with one thread.
  bool workspace = false;
  /// Compute a batch in parts, all layers of each before the next one, where
  /// that takes less time by the cost model (`-kas-split-batch`). Only with
  /// weights that are prepacked.
  bool splitBatch = true;
  /// Cut contractions into register tiles; without it they are plain loops,
  /// as an independent way to compute the same.
  bool registerTiles = true;
  /// How convolutions are computed where it suits them.
  codegen::ConvolutionAlgorithm algorithm = codegen::ConvolutionAlgorithm::Auto;
  /// What the factors of products of f32 may be rounded to where the target has
  /// instructions for that and it saves time
  /// (`-kas-set-contraction-precision`).
  codegen::ContractionPrecision precision = codegen::ContractionPrecision::F32;
  /// Round factors also where that takes longer, for tests of such products.
  bool roundAll = false;
  /// Functions with at least so many loop nests are split into one function for
  /// each, equal ones once (`-kas-outline-kernels`); 0: none.
  unsigned minKernels = 32;
  /// Prove that the stages, the linalg ops and the loops that operators become
  /// compute them; an error when they do not.
  bool verifyLowering = false;
};

/// Lowers a module of functions on tensors (linalg, tensor, arith, math,
/// affine, scf, func) to the LLVM dialect. A function takes plain pointers, to
/// its arguments, then to its results, and returns null, or a pointer to the
/// text of the assertion (`cf.assert`) that failed, which lives as long as the
/// code; the results are not specified then. Registered as `-kas-cpu-pipeline`.
void buildCPUPipeline(mlir::OpPassManager &manager,
                      const CPUPipelineOptions &options = {});

/// The two parts of that pipeline, before and after `-kas-outline-kernels`: to
/// functions on buffers, where all that depends on several loop nests is
/// decided, and from there to the LLVM dialect, each function for itself.
void buildCPUBufferPipeline(mlir::OpPassManager &manager,
                            const CPUPipelineOptions &options = {});
void buildCPUKernelPipeline(mlir::OpPassManager &manager,
                            const CPUPipelineOptions &options = {});

/// Registers `-kas-cpu-pipeline` and the passes that it alone uses.
void registerCPUPipeline();

/// Registers every dialect and extension that the pipeline reads or makes.
void registerCPUPipelineDialects(mlir::DialectRegistry &registry);

} // namespace kas

#endif // KAS_PIPELINES_CPU_H
