//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The translations to object files and C headers.
// Apart from the other translations, because they need LLVM's code generation
// and the dialects of the CPU pipeline; tools without it link the rest alone.
//
//===----------------------------------------------------------------------===//

#include "kas/Target/ObjectTranslations.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/ExecutionEngine/ObjectFile.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Support/FileLocation.h"
#include "kas/Support/ParseModule.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace kas;
using namespace kas::execution;
using namespace kas::target;
using namespace mlir;

/// The module has no better location than its file.
static LogicalResult fail(ModuleOp module, llvm::Error error) {
  return emitError(getFileLocation(module), llvm::toString(std::move(error)));
}

/// The dialects that a module lowered up to LLVM may have.
static void registerDialects(DialectRegistry &registry) {
  registerCPUPipelineDialects(registry);
  registry.insert<KasDialect>();
}

/// Signatures come from the module with tensors. The lowered one, at `path`,
/// says which functions need prepacked weights; without a path none does.
static LogicalResult writeHeader(ModuleOp module, llvm::raw_ostream &stream,
                                 StringRef path) {
  // In the same context: the header writer compares functions by name.
  OwningOpRef<ModuleOp> lowered;
  if (!path.empty()) {
    auto parsed = parseModule(*module.getContext(), path);
    if (!parsed)
      return fail(module, parsed.takeError());
    lowered = std::move(*parsed);
  }
  if (llvm::Error error =
          writeCHeader(module, stream, lowered ? *lowered : ModuleOp()))
    return fail(module, std::move(error));
  return success();
}

/// `getLowered` gives the path of the lowered module: the option belongs to the
/// tool, since libraries have no options.
void kas::target::registerTranslations(
    std::function<std::string()> getLowered) {
  TranslateFromMLIRRegistration object(
      "kas-to-object",
      // For the target that the module names, whatever machine this is.
      "compile the LLVM dialect to an ELF object for the module's target",
      [](ModuleOp module, llvm::raw_ostream &stream) -> LogicalResult {
        auto object = compileToObject(module);
        if (!object)
          return fail(module, object.takeError());
        stream << (*object)->getBuffer();
        return success();
      },
      registerDialects);
  TranslateFromMLIRRegistration header(
      "kas-to-c-header",
      "declare the public functions on tensors in C, before lowering",
      [getLowered = std::move(getLowered)](ModuleOp module,
                                           llvm::raw_ostream &stream) {
        return writeHeader(module, stream, getLowered());
      },
      registerDialects);
}
