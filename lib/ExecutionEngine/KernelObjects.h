//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Objects of kernels: each compiled by itself, several at once, and only those
// that the cache has not.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_EXECUTIONENGINE_KERNELOBJECTS_H
#define LIB_EXECUTIONENGINE_KERNELOBJECTS_H

#include "kas/ExecutionEngine/JIT.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Support/PassTimes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/MemoryBuffer.h"

namespace kas::execution {

/// Compiles `kernels`, private functions on buffers of `module` as
/// `outlineKernels` makes them, to one object each. They are declarations in
/// `module` then, whose names are made of what they compute. `times` notes when
/// passes and LLVM ran.
llvm::Expected<KernelObjects>
compileKernels(mlir::ModuleOp module,
               llvm::ArrayRef<mlir::func::FuncOp> kernels,
               const CPUPipelineOptions &pipeline, const JITOptions &options,
               PassTimes *times = nullptr);

} // namespace kas::execution

#endif // LIB_EXECUTIONENGINE_KERNELOBJECTS_H
