//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The location of a module's file, for diagnostics.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/Place.h"

mlir::Location kas::getPlace(mlir::ModuleOp module) {
  auto file = module.getLoc()->findInstanceOf<mlir::FileLineColLoc>();
  if (!file || file.getLine() != 0 || module.getBody()->empty())
    return module.getLoc();
  return module.getBody()->front().getLoc();
}
