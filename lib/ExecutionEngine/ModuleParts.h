//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Large modules are compiled in parts, on all cores.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_EXECUTIONENGINE_MODULEPARTS_H
#define LIB_EXECUTIONENGINE_MODULEPARTS_H

#include "LLVMModule.h"

namespace kas::execution {

/// In how many parts `module` is compiled: 1 unless it has many functions, such
/// as the kernels of a network, which are not inlined. It depends on the module
/// alone, so that code is the same on any machine.
unsigned getNumParts(const llvm::Module &module);

/// The machine code of `module` in `numParts` objects. Functions become visible
/// to other parts, hidden from what is outside. Adds milliseconds that pass to
/// `times`.
llvm::Expected<llvm::SmallVector<std::unique_ptr<llvm::MemoryBuffer>>>
compileParts(llvm::Module &module, unsigned numParts, const Target &target,
             const JITOptions &options, CompileTimes &times);

} // namespace kas::execution

#endif // LIB_EXECUTIONENGINE_MODULEPARTS_H
