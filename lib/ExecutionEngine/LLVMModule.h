//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From modules in the LLVM dialect to optimized LLVM IR: what compilation in
// memory and to files share.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_EXECUTIONENGINE_LLVMMODULE_H
#define LIB_EXECUTIONENGINE_LLVMMODULE_H

#include "kas/ExecutionEngine/JIT.h"
#include "kas/Support/Target.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MemoryBuffer.h"

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace kas::execution {

/// The target that the module names, with its names checked, because people may
/// have written them; else the host.
llvm::Expected<Target> chooseTarget(mlir::ModuleOp module);

/// Translates a module in the LLVM dialect; attributes of arguments that LLVM
/// does not know are taken off.
llvm::Expected<std::unique_ptr<llvm::Module>>
translateToLLVM(mlir::ModuleOp module, llvm::LLVMContext &context,
                const llvm::TargetMachine &machine);

/// Makes the private functions of `module` internal to its translation.
void makePrivateInternal(mlir::ModuleOp module, llvm::Module &translated);

/// The key in the cache of what is compiled from `parts` (IR before
/// optimization, options), for the target and the level, by these versions of
/// kas, of the sources of its code generator, and of LLVM.
std::string computeKey(llvm::ArrayRef<llvm::StringRef> parts,
                       const llvm::TargetMachine &machine,
                       const JITOptions &options);

/// Whether `function` can be called from outside with pointers to buffers: it
/// returns nothing, or the text of the assertion that failed.
bool isCallable(const llvm::Function &function);

/// Says that no two buffers overlap: inputs are only read, outputs are buffers
/// of their own.
void addNoAlias(llvm::Function &function);

/// LLVM's own pipeline of `level`, 0 to 3.
void optimize(llvm::Module &module, llvm::TargetMachine &machine,
              unsigned level);

/// The machine code of an optimized module.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
generateCode(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace kas::execution

#endif // LIB_EXECUTIONENGINE_LLVMMODULE_H
