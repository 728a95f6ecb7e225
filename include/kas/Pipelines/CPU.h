//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The road from operators and linalg to the CPU: one pipeline, and one call
// that compiles a function with it.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_PIPELINES_CPU_H
#define KAS_PIPELINES_CPU_H

#include "kas/Pipelines/Algorithm.h"
#include "kas/Runtime/JIT.h"
#include "kas/Runtime/Signature.h"
#include "kas/Runtime/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace kas {

struct CPUPipelineOptions {
  /// Threads of parallel loops: 1 makes serial code that needs no OpenMP, 0
  /// leaves the number to OpenMP (OMP_NUM_THREADS, else one per core).
  unsigned threads = 0;
  /// What to compile for; an empty CPU: the target that the module names, else
  /// the host.
  TargetNames target = {.cpu = "", .triple = "", .features = ""};
  /// Width of the vector registers; 0: those of the target.
  unsigned vectorBits = 0;
  /// Lower operators directly to packed panels where they suit; without it all
  /// take the road over linalg.
  bool packOperators = true;
  /// Rearrange weights in a function of its own, which is to be called once
  /// before (`-kas-prepare-weights`); else at each call.
  bool prepareWeights = false;
  /// Cut sums of products into register tiles; without it they are plain loops,
  /// as an independent way to compute the same.
  bool registerTiles = true;
  /// How convolutions are computed where it suits them.
  ConvolutionAlgorithm algorithm = ConvolutionAlgorithm::Auto;
};

/// Lowers a module of functions on tensors (linalg, tensor, arith, math,
/// affine, scf, func) to the LLVM dialect. A function takes plain pointers, to
/// its arguments, then to its results. Registered as `-kas-cpu-pipeline`.
void buildCPUPipeline(mlir::OpPassManager &manager,
                      const CPUPipelineOptions &options = {});

/// Registers `-kas-cpu-pipeline` and the passes that it alone uses.
void registerCPUPipeline();

/// Registers every dialect and extension that the pipeline reads or makes.
void registerCPUPipelineDialects(mlir::DialectRegistry &registry);

/// A function that was compiled for the CPU.
class CompiledFunction {
public:
  const FunctionSignature &getSignature() const { return signature; }
  /// Milliseconds from the module to the callable function.
  double getCompileMilliseconds() const { return compileMilliseconds; }
  const CompileTimes &getTimes() const { return module->getTimes(); }

  /// How many elements the weights take as `prepare` packs them; 0 where none
  /// are packed ahead.
  int64_t getNumPreparedElements() const { return numPrepared; }
  /// Packs the weights, that is all arguments but the first, for the calls that
  /// follow; these do not look at them again where that is all that they are
  /// needed for. Must run before the first call, and again when a weight has
  /// changed. Does nothing without `prepareWeights` of the pipeline.
  void prepare(llvm::ArrayRef<Tensor> arguments);

  /// Runs the function. The tensors must have the shapes of the signature;
  /// results are overwritten.
  void operator()(llvm::ArrayRef<Tensor> arguments,
                  llvm::MutableArrayRef<Tensor> results) const;

  /// Runs the function on memory of somebody else: dense, row-major f32, one
  /// pointer per argument, then one per result. Not with `prepareWeights`.
  void operator()(llvm::ArrayRef<float *> tensors) const;

private:
  friend llvm::Expected<CompiledFunction>
  compileForCPU(mlir::ModuleOp module, llvm::StringRef name,
                const CPUPipelineOptions &pipeline, const JITOptions &jit);

  FunctionSignature signature;
  std::unique_ptr<CompiledModule> module;
  CompiledModule::Function function = nullptr, prepareFunction = nullptr;
  /// The weights as `prepareFunction` packs them.
  Tensor packed;
  int64_t numPrepared = 0;
  double compileMilliseconds = 0;
};

/// How many elements `@NAME_prepare` of a lowered module fills; 0 if there is
/// no such function.
int64_t getNumPreparedElements(mlir::ModuleOp module, llvm::StringRef name);

/// Compiles the function `name` of `module`, which stays as it is. Diagnostics
/// of passes that fail are part of the error.
llvm::Expected<CompiledFunction>
compileForCPU(mlir::ModuleOp module, llvm::StringRef name,
              const CPUPipelineOptions &pipeline = {},
              const JITOptions &jit = {});

} // namespace kas

#endif // KAS_PIPELINES_CPU_H
