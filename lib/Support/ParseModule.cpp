//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads a module from a file or the standard input, text or bytecode, with
// errors for what is neither.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/ParseModule.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/SourceMgr.h"

using llvm::createStringError;
using llvm::StringRef;

/// The parser would echo the line that it cannot read, which may be megabytes
/// of another format.
static bool isText(StringRef content) {
  const auto *begin = reinterpret_cast<const llvm::UTF8 *>(content.begin());
  // UTF-8 allows zero bytes, but no text has them.
  return !content.contains('\0') &&
         llvm::isLegalUTF8String(
             &begin, reinterpret_cast<const llvm::UTF8 *>(content.end()));
}

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
kas::parseModule(mlir::MLIRContext &context, StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(path);
  if (!buffer)
    return createStringError(buffer.getError(),
                             "cannot load '" + path +
                                 "': " + buffer.getError().message());
  // Bytecode begins with its own magic number and is not looked at further.
  if (!mlir::isBytecode(**buffer) && !isText((*buffer)->getBuffer()))
    return createStringError(
        "cannot load '" + path +
        "': requires MLIR as text in UTF-8 or as bytecode, got other bytes");
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  // Prints diagnostics with the line of the file; the error that is returned
  // need not repeat them.
  mlir::SourceMgrDiagnosticHandler handler(sources, &context);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
  if (!module)
    return createStringError("cannot load '" + path + "'");
  return module;
}
