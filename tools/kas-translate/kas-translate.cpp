//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Translations from and to MLIR: those of mlir-translate.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/Version.h"
#include "mlir/InitAllTranslations.h"
#include "mlir/Support/LogicalResult.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"

int main(int argc, char **argv) {
  kas::addVersionPrinter();
  mlir::registerAllTranslations();
  return failed(mlir::mlirTranslateMain(argc, argv, "kas translation driver"));
}
