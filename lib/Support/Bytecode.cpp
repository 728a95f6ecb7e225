//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations to bytecode and back, for other processes and contexts.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/Bytecode.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

using namespace kas;
using namespace mlir;

std::string kas::writeBytecode(Operation *op) {
  Location unknown = UnknownLoc::get(op->getContext());
  OwningOpRef<ModuleOp> module;
  if (auto own = dyn_cast<ModuleOp>(op)) {
    module = own.clone();
  } else {
    module = ModuleOp::create(unknown);
    module->push_back(op->clone());
  }
  module->walk([&](Operation *inner) {
    inner->setLoc(unknown);
    for (Region &region : inner->getRegions())
      for (BlockArgument argument : region.getArguments())
        argument.setLoc(unknown);
  });
  std::string bytecode;
  llvm::raw_string_ostream stream(bytecode);
  LogicalResult written = writeBytecodeToFile(*module, stream);
  assert(succeeded(written) && "the current version has all that is in use");
  (void)written;
  return bytecode;
}

OwningOpRef<ModuleOp> kas::readBytecode(llvm::StringRef bytecode,
                                        MLIRContext *context) {
  return parseSourceString<ModuleOp>(bytecode, context);
}
