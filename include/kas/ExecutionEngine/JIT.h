//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Just-in-time compilation of modules in the LLVM dialect for the CPU at hand.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_EXECUTIONENGINE_JIT_H
#define KAS_EXECUTIONENGINE_JIT_H

#include "kas/ExecutionEngine/CompiledFile.h"
#include "kas/ExecutionEngine/ObjectCache.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace kas::execution {

struct JITOptions {
  /// Optimization level of LLVM, 0 to 3.
  unsigned optLevel = 2;
  /// Of functions (`compileForCPU`) and their kernels. Not owned; none: all is
  /// compiled anew.
  ObjectCache *cache = nullptr;
  /// Keep the machine code of functions, for `CompiledFunction::save`.
  bool keepCode = false;
  /// Symbols that the code gets from here, not from the process: for instance
  /// another `malloc`.
  std::vector<std::pair<std::string, void *>> symbols = {};
};

/// What was compiled beforehand, each part by itself: the kernels of a large
/// function (`minKernels` of the pipeline).
struct KernelObjects {
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> objects;
  /// How many of them the cache had.
  unsigned numCached = 0;
  double milliseconds = 0;
};

/// Milliseconds that the steps of one compilation took.
struct CompileTimes {
  double translate = 0, optimize = 0, codegen = 0, link = 0;
  /// From kernels to their objects, before all other steps.
  double kernels = 0;
  unsigned numKernels = 0, numCachedKernels = 0;
  /// Whether all of the code came from the cache.
  bool cached = false;
};

/// Machine code that is not linked yet.
struct CompiledCode {
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> objects;
  CodeTarget target;
  CompileTimes times;
};

/// Translates `module`, which must be in the LLVM dialect, to LLVM IR, and
/// compiles it for the target that the module names (see ModuleTarget.h), else
/// for this machine. Attributes of arguments that LLVM does not know are taken
/// off. `kernels` define what `module` only declares. Errors: what cannot be
/// translated, a target that this machine does not run.
llvm::Expected<CompiledCode> compileCode(mlir::ModuleOp module,
                                         const JITOptions &options = {},
                                         KernelObjects kernels = {});

/// A module in memory, ready to be called. Functions are called with plain
/// pointers: first the inputs, then the outputs, then dynamic sizes, as the
/// pipeline `kas-cpu-pipeline` makes them. The code lives as long as this
/// object.
class CompiledModule {
public:
  /// Compiles `module` and links it. Functions that take pointers, then 64-bit
  /// integers, and return nothing or a message can be called. Errors: those of
  /// `compileCode` and of `link`.
  static llvm::Expected<std::unique_ptr<CompiledModule>>
  compile(mlir::ModuleOp module, const JITOptions &options = {},
          KernelObjects kernels = {});
  /// Links code that `compileCode` has made, in whatever process. Errors:
  /// symbols that neither the module nor the process defines, OpenMP's runtime
  /// library not found though the module starts threads.
  static llvm::Expected<std::unique_ptr<CompiledModule>>
  link(CompiledCode code, const JITOptions &options = {});
  ~CompiledModule();

  /// A callable function; its argument is the array of the pointers, and of
  /// 64-bit integers in the places of pointers for sizes. Returns
  /// null, or what the assertion says that failed ("FILE:LINE:COLUMN: TEXT");
  /// that string lives as long as the code.
  using Function = const char *(*)(void **);
  llvm::Expected<Function> lookup(llvm::StringRef name);

  const CompileTimes &getTimes() const { return times; }

private:
  struct Impl;
  CompiledModule();
  std::unique_ptr<Impl> impl;
  CompileTimes times;
};

/// Calls `function`; what the assertion says that failed is the error.
llvm::Error call(CompiledModule::Function function, void **pointers);

} // namespace kas::execution

#endif // KAS_EXECUTIONENGINE_JIT_H
