//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations to bytecode and back, for other processes and contexts.
// MLIR's bytecode is smaller than text and several times faster to read; worker
// processes get candidates in it, and threads use it to move an operation from
// one MLIRContext to another.
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
  // A module is the only root that the reader takes without knowing what to
  // expect; other operations are wrapped in one.
  OwningOpRef<ModuleOp> module;
  if (auto own = dyn_cast<ModuleOp>(op)) {
    module = own.clone();
  } else {
    module = ModuleOp::create(unknown);
    module->push_back(op->clone());
  }
  // Locations say where an operation came from and not what it is: without them
  // equal operators have equal bytes, and no paths of files reach other
  // processes.
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
  // The parser looks at the first bytes and reads bytecode as well as text.
  return parseSourceString<ModuleOp>(bytecode, context);
}
