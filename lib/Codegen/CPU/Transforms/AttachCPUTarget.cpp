//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass that writes the target of the command line to the module, where
// later passes read it.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/CPU/Passes.h"
#include "kas/Dialect/KasCPU/IR/ModuleTarget.h"
#include "kas/Support/FileLocation.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/TargetParser/Triple.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASATTACHCPUTARGETPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;

namespace {

struct AttachCPUTarget
    : kas::codegen::impl::KasAttachCPUTargetPassBase<AttachCPUTarget> {
  using KasAttachCPUTargetPassBase::KasAttachCPUTargetPassBase;

  void runOnOperation() override {
    // Options win over what the module says; without any, a target that it
    // names is checked and kept, so that one file compiles to the same code
    // everywhere.
    bool isNamed = !cpu.empty() || !triple.empty() || !features.empty();
    if (!isNamed && failed(verifyModuleTarget(getOperation())))
      return signalPassFailure();
    if (!isNamed && getModuleTarget(getOperation()))
      return;
    TargetNames names;
    if (!cpu.empty())
      names.cpu = cpu;
    names.triple = triple;
    names.features = features;
    // What every CPU of an architecture has is another machine's safest guess.
    if (cpu.empty() && !triple.empty()) {
      names.cpu = "generic";
      // Linux distributions for 64-bit RISC-V assume at least RV64GC, of which
      // "generic" has almost nothing.
      if (llvm::Triple(llvm::Triple::normalize(triple)).isRISCV64())
        names.features =
            "+m,+a,+f,+d,+c" + (features.empty() ? "" : "," + features);
    }
    auto target = getTarget(names);
    if (target)
      return setModuleTarget(getOperation(), *target);
    mlir::emitError(getFileLocation(getOperation()),
                    llvm::toString(target.takeError()));
    signalPassFailure();
  }
};

} // namespace
