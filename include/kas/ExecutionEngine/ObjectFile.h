//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Object files that C programs link, and the headers that declare what is in
// them.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_EXECUTIONENGINE_OBJECTFILE_H
#define KAS_EXECUTIONENGINE_OBJECTFILE_H

#include "kas/ExecutionEngine/Signature.h"

namespace llvm {
class MemoryBuffer;
class raw_ostream;
} // namespace llvm

namespace kas::execution {

/// Compiles `module`, which must be in the LLVM dialect, to a relocatable ELF
/// object for the target that it names (see ModuleTarget.h), else for the host.
/// Public functions are its symbols; they need the C library, libm, and libomp
/// where there are parallel loops. Errors: an unknown target, operations of
/// other dialects, no public function on pointers, what LLVM cannot translate.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
compileToObject(mlir::ModuleOp module, unsigned optLevel = 2);

/// Writes the declarations of all public functions of `module`, which must be
/// on tensors, before lowering. A function takes pointers to contiguous f32
/// buffers in row-major order: the arguments, then the results; it returns null
/// or the text of the assertion that failed, a constant of the object.
/// `lowered`, what `-kas-cpu-pipeline` made of the module, says which of them
/// need prepacked weights: what prepacks them is declared as well. Errors: what
/// `FunctionSignature::get` says, names that C does not allow, no function, a
/// lowered module of other functions.
llvm::Error writeCHeader(mlir::ModuleOp module, llvm::raw_ostream &stream,
                         mlir::ModuleOp lowered = {});

} // namespace kas::execution

#endif // KAS_EXECUTIONENGINE_OBJECTFILE_H
