//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The location of a module's file, for diagnostics.
// MLIR gives a parsed module the position 0:0 of its file, which a diagnostic
// would print as `file.mlir:0:0`. The first operation is a better position.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/FileLocation.h"

mlir::Location kas::getFileLocation(mlir::ModuleOp module) {
  // Line 0 stands for the whole file: text has lines from 1 on.
  auto file = module.getLoc()->findInstanceOf<mlir::FileLineColLoc>();
  // Modules that were built in memory have no file and keep their location.
  if (!file || file.getLine() != 0 || module.getBody()->empty())
    return module.getLoc();
  return module.getBody()->front().getLoc();
}
