//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions compiled for the CPU of this process.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_EXECUTIONENGINE_CPUFUNCTION_H
#define KAS_EXECUTIONENGINE_CPUFUNCTION_H

#include "kas/ExecutionEngine/JIT.h"
#include "kas/ExecutionEngine/Signature.h"
#include "kas/Pipelines/CPU.h"
#include <optional>

namespace kas::execution {

struct CompileRecord;

/// A function that was compiled for the CPU.
class CompiledFunction {
public:
  const FunctionSignature &getSignature() const { return signature; }
  /// Milliseconds from the module to the callable function.
  double getCompileMilliseconds() const { return compileMilliseconds; }
  const CompileTimes &getTimes() const { return module->getTimes(); }

  /// How many elements the weights take as `prepack` packs them; 0 where none
  /// are packed ahead.
  int64_t getNumPrepackedElements() const { return numPrepacked; }
  /// Whether it was compiled with `anyBatch` of the pipeline, so that the first
  /// dimension of the data and of the results may have any size.
  bool hasAnyBatch() const { return anyBatch; }
  /// Packs the weights, that is all arguments but the data, for the calls that
  /// follow; these do not look at them again where that is all that they are
  /// needed for. Must run before the first call, and again when a weight has
  /// changed. Does nothing without `prepackWeights` of the pipeline, and where
  /// weights came from a file. Error: the assertion that failed.
  llvm::Error prepack(llvm::ArrayRef<Tensor> arguments);
  /// The same of memory of somebody else, one pointer per argument; returns
  /// null or the message, which lives as long as this object.
  const char *prepack(llvm::ArrayRef<float *> arguments);

  /// Runs the function. The tensors must have the shapes of the signature, but
  /// for the number of samples where there may be any, which the data says;
  /// results are overwritten. Error: what the assertion (`cf.assert`) says that
  /// failed, with its place ("FILE:LINE:COLUMN: TEXT"); the results are not
  /// specified then, everything else is as it was. Also where weights have to
  /// be prepacked first. For functions of f32 alone.
  llvm::Error operator()(llvm::ArrayRef<Tensor> arguments,
                         llvm::MutableArrayRef<Tensor> results) const;

  /// Runs the function on memory of somebody else: dense, row-major elements of
  /// the types of the signature, one pointer per argument, then one per result.
  /// `numSamples` is the size of the batch where it may be any, else an error;
  /// by default that of the signature.
  llvm::Error operator()(llvm::ArrayRef<float *> tensors,
                         std::optional<int64_t> numSamples = {}) const;
  /// The same; returns null or the message, which lives as long as this object.
  const char *call(llvm::ArrayRef<float *> tensors,
                   std::optional<int64_t> numSamples = {}) const;

  /// Writes a function that was compiled with `keepCode` to a file for `load`,
  /// with the weights that are given: one pointer per argument, null for those
  /// that callers give. Weights that are prepacked must be given all or not at
  /// all; data is never. Errors: otherwise, an assertion that fails while they
  /// are prepacked, a file that cannot be written.
  llvm::Error save(llvm::StringRef path, llvm::ArrayRef<float *> weights);
  /// The function of a file. Its signature has the arguments alone that are not
  /// in there; its weights stay in the file, which is mapped. Errors: those of
  /// `CompiledFile::read` and of `CompiledModule::link`.
  static llvm::Expected<CompiledFunction> load(llvm::StringRef path,
                                               const JITOptions &jit = {});

private:
  friend llvm::Expected<CompiledFunction>
  compileForCPU(mlir::ModuleOp module, llvm::StringRef name,
                const CPUPipelineOptions &pipeline, const JITOptions &jit,
                CompileRecord *record);

  /// Compiles what the cache does not have; stored there under the `key`, if
  /// there is one.
  static llvm::Expected<CompiledFunction>
  compile(mlir::ModuleOp module, FunctionSignature signature,
          const CPUPipelineOptions &pipeline, const JITOptions &jit,
          CompileRecord *record, const std::optional<std::string> &key);
  /// Links the code, and finds the functions in it.
  llvm::Error link(CompiledCode code, const JITOptions &jit);
  /// The content of a file without weights.
  std::string makeFile(const CompiledCode &code) const;
  static llvm::Expected<CompiledFunction> fromFile(CompiledFile file,
                                                   const JITOptions &jit);
  llvm::Error takeWeights(CompiledFile &file, unsigned numObjects);
  /// Pointers to the arguments of the code, of which `tensors` are those that
  /// have no weight here, and to all that comes after them.
  llvm::SmallVector<void *> getPointers(llvm::ArrayRef<float *> tensors) const;

  FunctionSignature signature;
  /// Whether the function reads an argument: weights may be prepacked.
  std::vector<bool> areRead;
  std::unique_ptr<CompiledModule> module;
  CompiledModule::Function function = nullptr, prepackFunction = nullptr;
  /// The weights as `prepackFunction` packs them.
  Tensor packed;
  /// These, or those of a file.
  float *packedWeights = nullptr;
  int64_t numPrepacked = 0;
  /// For each argument of the code the weight of a file, if it has one; empty
  /// without such.
  llvm::SmallVector<std::optional<float *>> weights;
  /// Of a file with weights; or the file itself, of code that was kept.
  std::unique_ptr<llvm::MemoryBuffer> memory, file;
  bool anyBatch = false;
  double compileMilliseconds = 0;
};

/// The key of a function in the cache: of all that its code depends on. Nothing
/// where its target is none that can be compiled for.
std::optional<std::string> getFunctionKey(mlir::ModuleOp module,
                                          llvm::StringRef name,
                                          const CPUPipelineOptions &pipeline,
                                          const JITOptions &jit);

/// How many elements `@NAME_prepack` of a lowered module fills; 0 if there is
/// no such function.
int64_t getNumPrepackedElements(mlir::ModuleOp module, llvm::StringRef name);

/// Whether the function `name` of a lowered module takes a number of samples.
bool takesNumSamples(mlir::ModuleOp module, llvm::StringRef name);

/// Compiles the function `name` of `module`, which stays as it is. Diagnostics
/// of passes that fail are part of the error. With a `record` (Profile.h) the
/// function calls a clock, and the record says what it stands for; otherwise
/// the whole function is looked up in the cache first.
llvm::Expected<CompiledFunction>
compileForCPU(mlir::ModuleOp module, llvm::StringRef name,
              const CPUPipelineOptions &pipeline = {},
              const JITOptions &jit = {}, CompileRecord *record = nullptr);

} // namespace kas::execution

#endif // KAS_EXECUTIONENGINE_CPUFUNCTION_H
