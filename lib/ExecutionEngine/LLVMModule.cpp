//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From the LLVM dialect to LLVM IR: the target of the module, the cache key of
// what is compiled, and attributes that help LLVM (noalias, no further
// unrolling).
//
//===----------------------------------------------------------------------===//

#include "LLVMModule.h"
#include "kas/Dialect/KasCPU/IR/ModuleTarget.h"
#include "kas/Support/Resources.h"
#include "kas/Support/Version.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/OpenMP/OpenMPToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace kas;
using namespace kas::execution;
using llvm::createStringError;
using llvm::Expected;

Expected<Target> kas::execution::chooseTarget(mlir::ModuleOp module) {
  std::optional<Target> target = getModuleTarget(module);
  // A module without a target is compiled for this machine.
  if (!target)
    return getTarget();
  return getTarget({target->cpu, target->triple, target->features});
}

Expected<std::unique_ptr<llvm::Module>>
kas::execution::translateToLLVM(mlir::ModuleOp module,
                                llvm::LLVMContext &context,
                                const llvm::TargetMachine &machine) {
  mlir::DialectRegistry registry;
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  mlir::registerOpenMPDialectTranslation(registry);
  module.getContext()->appendDialectRegistry(registry);
  // LLVM's translation prints the whole function for each attribute of an
  // argument that it does not know, such as a name.
  for (auto function : module.getOps<mlir::LLVM::LLVMFuncOp>())
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      for (mlir::NamedAttribute attribute :
           mlir::function_interface_impl::getArgAttrs(function, i))
        if (!attribute.getName().strref().starts_with("llvm."))
          function.removeArgAttr(i, attribute.getName());
  for (auto global : module.getOps<mlir::LLVM::GlobalOp>())
    if (auto resource =
            llvm::dyn_cast_if_present<mlir::DenseResourceElementsAttr>(
                global.getValueAttr()))
      if (mlir::DenseElementsAttr elements = readSpecialResource(resource))
        global.setValueAttr(elements);
  auto llvmModule = mlir::translateModuleToLLVMIR(module, context, "kas");
  if (!llvmModule)
    return createStringError("the module cannot be translated to LLVM IR");
  // The translation uses MLIR's own layout; LLVM's optimizer needs that of the
  // target.
  llvmModule->setDataLayout(machine.createDataLayout());
  llvmModule->setTargetTriple(machine.getTargetTriple());
  return llvmModule;
}

// Internal functions can be inlined and dropped. The translation makes all
// functions external, whatever their visibility in MLIR.
void kas::execution::makePrivateInternal(mlir::ModuleOp module,
                                         llvm::Module &translated) {
  for (auto function : module.getOps<mlir::LLVM::LLVMFuncOp>())
    if (function.isPrivate() && !function.isExternal())
      if (auto *found = translated.getFunction(function.getSymName()))
        found->setLinkage(llvm::Function::InternalLinkage);
}

std::string kas::execution::computeKey(llvm::ArrayRef<llvm::StringRef> parts,
                                       const llvm::TargetMachine &machine,
                                       const JITOptions &options) {
  llvm::BLAKE3 hasher;
  // Each part with its length: otherwise "ab" + "c" would equal "a" + "bc".
  auto add = [&](llvm::StringRef part) {
    hasher.update((llvm::Twine(part.size()) + ":").str());
    hasher.update(part);
  };
  llvm::for_each(parts, add);
  add(getVersion());
  add(getGeneratorDigest());
  add(LLVM_VERSION_STRING);
  add(machine.getTargetTriple().str());
  add(machine.getTargetCPU());
  add(machine.getTargetFeatureString());
  add(std::to_string(options.optLevel));
  return llvm::toHex(hasher.final<16>(), /*LowerCase=*/true);
}

bool kas::execution::isCallable(const llvm::Function &function) {
  // The number of samples, or sizes, come last.
  auto sizes = llvm::make_range(
      llvm::find_if(function.args(),
                    [](const llvm::Argument &argument) {
                      return !argument.getType()->isPointerTy();
                    }),
      function.arg_end());
  // An entry point takes pointers, then integers, and returns nothing or a
  // message.
  return !function.isDeclaration() && function.hasExternalLinkage() &&
         (function.getReturnType()->isVoidTy() ||
          function.getReturnType()->isPointerTy()) &&
         !function.isVarArg() &&
         llvm::all_of(sizes, [](const llvm::Argument &argument) {
           return argument.getType()->isIntegerTy(64);
         });
}

// Buffers do not overlap by the interface of compiled functions.
void kas::execution::addNoAlias(llvm::Function &function) {
  for (llvm::Argument &argument : function.args())
    if (argument.getType()->isPointerTy())
      argument.addAttr(llvm::Attribute::NoAlias);
}

namespace {
/// Marks the innermost loops as not to be unrolled any more. Loops of a
/// few iterations are unrolled by then; the next time it would repeat the
/// bodies of large ones until the decoder's buffer is full, which makes the
/// code of operators four times as long, twice as slow to generate, and no
/// faster.
struct FinishUnrolling : llvm::PassInfoMixin<FinishUnrolling> {
  llvm::PreservedAnalyses run(llvm::Function &function,
                              llvm::FunctionAnalysisManager &manager) {
    auto &loops = manager.getResult<llvm::LoopAnalysis>(function);
    for (llvm::Loop *loop : loops.getLoopsInPreorder())
      if (loop->isInnermost())
        llvm::addStringMetadataToLoop(loop, "llvm.loop.unroll.disable", 1);
    return llvm::PreservedAnalyses::all();
  }
};
} // namespace

void kas::execution::optimize(llvm::Module &module,
                              llvm::TargetMachine &machine, unsigned level) {
  const llvm::OptimizationLevel levels[] = {
      llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1,
      llvm::OptimizationLevel::O2, llvm::OptimizationLevel::O3};
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = level >= 2;
  // The vectorizer of straight-line code finds nothing in kernels.
  tuning.SLPVectorization = false;
  // Compares all addresses of a loop with one another, for loads of what the
  // iteration before has stored: sums in registers have none.
  llvm::PassInstrumentationCallbacks callbacks;
  callbacks.registerShouldRunOptionalPassCallback(
      [](llvm::StringRef pass, llvm::Any) {
        return pass != "LoopLoadEliminationPass";
      });
  llvm::PassBuilder builder(&machine, tuning, std::nullopt, &callbacks);
  builder.registerVectorizerStartEPCallback(
      [](llvm::FunctionPassManager &manager, llvm::OptimizationLevel) {
        manager.addPass(FinishUnrolling());
      });
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::OptimizationLevel chosen = levels[std::min(level, 3u)];
  llvm::ModulePassManager manager =
      level == 0 ? builder.buildO0DefaultPipeline(chosen)
                 : builder.buildPerModuleDefaultPipeline(chosen);
  manager.run(module, modules);
}

namespace {
/// Leaves out the choice of induction variables before the selection of
/// instructions. The addresses of a kernel differ by constants, which the
/// instructions take as they are; to find that out took LLVM up to half of the
/// time of a compilation.
struct FixedInductionVariables : llvm::OptPassGate {
  bool isEnabled() const override { return true; }
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef) const override {
    return pass != "Loop Strength Reduction";
  }
};
} // namespace

Expected<std::unique_ptr<llvm::MemoryBuffer>>
kas::execution::generateCode(llvm::Module &module,
                             llvm::TargetMachine &machine) {
  // The only way to leave out a pass of the code generator without a global
  // option: the context asks this gate before each optional pass.
  FixedInductionVariables gate;
  llvm::LLVMContext &context = module.getContext();
  llvm::OptPassGate &before = context.getOptPassGate();
  context.setOptPassGate(gate);
  auto code = llvm::orc::SimpleCompiler(machine)(module);
  context.setOptPassGate(before);
  return code;
}
