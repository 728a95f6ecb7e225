//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PassOptions.h"
#include "kas/InitAll.h"
#include "kas/Support/Signals.h"
#include "kas/Support/Version.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  kas::ignoreFileSizeSignal();
  kas::addVersionPrinter();
  kas::registerAllPasses();
  llvm::ArrayRef<const char *> arguments(argv + 1, argc - 1);
  // Those of kas would be lost among the hundreds of upstream.
  if (llvm::any_of(arguments, [](llvm::StringRef argument) {
        return argument == "--help" || argument == "-help" || argument == "-h";
      })) {
    llvm::outs() << "Passes and pipelines of kas; those of MLIR follow below\n";
    // Pipelines are not among the registered passes, and cannot be listed.
    for (llvm::StringRef pipeline : {"kas-cpu-pipeline", "kas-gpu-front-half",
                                     "kas-nvvm-pipeline", "kas-spirv-pipeline"})
      if (const auto *entry = mlir::PassPipelineInfo::lookup(pipeline))
        entry->printHelpStr(/*indent=*/2, /*descIndent=*/41);
    mlir::printRegisteredPasses();
    llvm::outs() << "\n";
  }
  if (!checkPassOptions(arguments))
    return 1;
  mlir::registerAllPasses();

  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  kas::registerAllDialects(registry);
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "kas optimizer driver\n", registry));
}
