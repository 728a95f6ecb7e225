//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/ObjectFile.h"
#include "LLVMModule.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Target/TargetMachine.h"

using namespace kas;
using namespace kas::execution;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

/// Functions of the LLVM dialect can be compiled, everything else cannot.
static Error checkOperations(mlir::ModuleOp module) {
  for (mlir::Operation &op : *module.getBody())
    if (op.getDialect() !=
        module.getContext()->getLoadedDialect<mlir::LLVM::LLVMDialect>())
      return createStringError("expected operations of the LLVM dialect, as "
                               "-kas-cpu-pipeline makes them, got '" +
                               op.getName().getStringRef() + "'");
  return Error::success();
}

Expected<std::unique_ptr<llvm::MemoryBuffer>>
kas::execution::compileToObject(mlir::ModuleOp module, unsigned optLevel) {
  if (Error error = checkOperations(module))
    return error;
  Expected<Target> target = chooseTarget(module);
  if (!target)
    return target.takeError();
  auto machine = createTargetMachine(*target, optLevel, /*jit=*/false);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  auto llvmModule = translateToLLVM(module, context, **machine);
  if (!llvmModule)
    return llvmModule.takeError();
  makePrivateInternal(module, **llvmModule);
  unsigned numEntries = 0;
  for (auto function : module.getOps<mlir::LLVM::LLVMFuncOp>()) {
    llvm::Function *translated =
        (*llvmModule)->getFunction(function.getSymName());
    if (!translated || translated->isDeclaration())
      continue;
    if (!isCallable(*translated))
      continue;
    addNoAlias(*translated);
    ++numEntries;
  }
  if (numEntries == 0)
    return createStringError("expected at least one public function that takes "
                             "pointers and returns nothing or a message, "
                             "got none");
  (*llvmModule)->setPICLevel(llvm::PICLevel::BigPIC);
  optimize(**llvmModule, **machine, optLevel);
  return generateCode(**llvmModule, **machine);
}
