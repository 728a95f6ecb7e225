//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles a lowered module to a relocatable object file for the target that it
// names.
//
// An object must link on its own with the C library (and OpenMP's where threads
// are used), so functions that a JIT gets from this process are either added to
// it or an error.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/ObjectFile.h"
#include "LLVMModule.h"
#include "SpecialFunctions.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Target/TargetMachine.h"

using namespace kas;
using namespace kas::execution;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

/// Functions of the LLVM dialect can be compiled, everything else cannot.
static Error checkOperations(mlir::ModuleOp module) {
  for (mlir::Operation &op : *module.getBody())
    if (op.getDialect() !=
        module.getContext()->getLoadedDialect<mlir::LLVM::LLVMDialect>())
      return createStringError("expected operations of the LLVM dialect, as "
                               "-kas-cpu-pipeline makes them, got '" +
                               op.getName().getStringRef() + "'");
  return Error::success();
}

/// What LLVM calls to round to bf16 on processors of x86 without an instruction
/// for it; few systems have it in their libraries. To nearest, ties to even. A
/// f64 is rounded to a f32 whose last bit says that something was lost, so that
/// it is not rounded twice.
static constexpr llvm::StringLiteral roundingFunctions = R"(
define weak_odr hidden bfloat @__truncsfbf2(float %x) nounwind {
  %bits = bitcast float %x to i32
  %none = fcmp uno float %x, %x
  %quiet = or i32 %bits, 4194304
  %high = lshr i32 %bits, 16
  %odd = and i32 %high, 1
  %half = add i32 %odd, 32767
  %sum = add i32 %bits, %half
  %chosen = select i1 %none, i32 %quiet, i32 %sum
  %rounded = lshr i32 %chosen, 16
  %short = trunc i32 %rounded to i16
  %result = bitcast i16 %short to bfloat
  ret bfloat %result
}
define weak_odr hidden bfloat @__truncdfbf2(double %x) nounwind {
  %near = fptrunc double %x to float
  %wide = fpext float %near to double
  %bits = bitcast float %near to i32
  %sizeWide = call double @llvm.fabs.f64(double %wide)
  %size = call double @llvm.fabs.f64(double %x)
  %above = fcmp ogt double %sizeWide, %size
  %step = zext i1 %above to i32
  %down = sub i32 %bits, %step
  %lost = fcmp one double %wide, %x
  %sticky = zext i1 %lost to i32
  %odd = or i32 %down, %sticky
  %single = bitcast i32 %odd to float
  %result = call bfloat @__truncsfbf2(float %single)
  ret bfloat %result
}
declare double @llvm.fabs.f64(double)
)";

/// Extremes that are NaN where one number is, and -0 below 0: without an
/// instruction they are calls of functions that C has since 2023 only, and
/// libraries for small processors have not. Equal numbers have the same bits,
/// but for zeros.
/// For the maximum (`and`, `ogt`): zeros of both signs give +0, as +0 has no
/// bit set; for the minimum (`or`, `olt`) they give -0.
static std::string makeExtreme(const llvm::Twine &name,
                               const llvm::Twine &ofZeros,
                               const llvm::Twine &takesFirst) {
  return ("define weak_odr hidden float @" + name +
          R"((float %x, float %y) nounwind {
  %xBits = bitcast float %x to i32
  %yBits = bitcast float %y to i32
  %bothBits = )" +
          ofZeros + R"( i32 %xBits, %yBits
  %both = bitcast i32 %bothBits to float
  %isSame = fcmp oeq float %x, %y
  %isNaN = fcmp uno float %x, %x
  %isBeyond = fcmp )" +
          takesFirst + R"( float %x, %y
  %isFirst = or i1 %isNaN, %isBeyond
  %chosen = select i1 %isFirst, float %x, float %y
  %result = select i1 %isSame, float %both, float %chosen
  ret float %result
}
)")
      .str();
}

/// Whether code generation may call a rounding to bf16.
static bool hasBFloat(const llvm::Module &module) {
  auto isBFloat = [](const llvm::Type *type) {
    return type->getScalarType()->isBFloatTy();
  };
  return llvm::any_of(module, [&](const llvm::Function &function) {
    return llvm::any_of(llvm::instructions(function),
                        [&](const llvm::Instruction &instruction) {
                          return isBFloat(instruction.getType()) ||
                                 llvm::any_of(instruction.operands(),
                                              [&](const llvm::Use &use) {
                                                return isBFloat(use->getType());
                                              });
                        });
  });
}

/// Adds functions; each object may have them, and the linker keeps one.
static void addFunctions(llvm::Module &module, llvm::StringRef text) {
  llvm::SMDiagnostic error;
  // Weak definitions: the linker keeps one of those of all objects.
  auto functions = llvm::parseAssemblyString(text, error, module.getContext());
  assert(functions && "the texts above are valid");
  functions->setDataLayout(module.getDataLayout());
  functions->setTargetTriple(module.getTargetTriple());
  bool failed = llvm::Linker::linkModules(module, std::move(functions));
  assert(!failed && "no function of kas has these names");
  (void)failed;
}

/// What objects call that the compiler's library or the C library may lack.
static void addLibraryFunctions(llvm::Module &module) {
  const llvm::Triple &triple = module.getTargetTriple();
  if (triple.isX86() && hasBFloat(module))
    addFunctions(module, roundingFunctions);
  // 32-bit targets are those that may have a C library from before C23 and no
  // instructions for extremes.
  if (triple.isArch32Bit())
    addFunctions(module, makeExtreme("fmaximumf", "and", "ogt") +
                             makeExtreme("fminimumf", "or", "olt"));
}

/// An error where an object would call what only this process has.
static Error checkCalls(const llvm::Module &module) {
  for (const SpecialFunction &special : getSpecialFunctions()) {
    const llvm::Function *function = module.getFunction(special.name);
    // Declarations that nothing calls do no harm.
    if (function && function->isDeclaration() && !function->use_empty())
      return createStringError("expected calls of functions that objects can "
                               "be linked with, got '" +
                               special.name +
                               "', which is there for code that is compiled "
                               "and run at once");
  }
  return Error::success();
}

Expected<std::unique_ptr<llvm::MemoryBuffer>>
kas::execution::compileToObject(mlir::ModuleOp module, unsigned optLevel) {
  if (Error error = checkOperations(module))
    return error;
  Expected<Target> target = chooseTarget(module);
  if (!target)
    return target.takeError();
  auto machine = createTargetMachine(*target, optLevel, /*jit=*/false);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  auto llvmModule = translateToLLVM(module, context, **machine);
  if (!llvmModule)
    return llvmModule.takeError();
  if (Error error = checkCalls(**llvmModule))
    return error;
  makePrivateInternal(module, **llvmModule);
  unsigned numEntries = 0;
  for (auto function : module.getOps<mlir::LLVM::LLVMFuncOp>()) {
    llvm::Function *translated =
        (*llvmModule)->getFunction(function.getSymName());
    if (!translated || translated->isDeclaration())
      continue;
    // Other functions are compiled as they are, without a promise about
    // pointers.
    if (!isCallable(*translated))
      continue;
    addNoAlias(*translated);
    ++numEntries;
  }
  if (numEntries == 0)
    return createStringError("expected at least one public function that takes "
                             "pointers and returns nothing or a message, "
                             "got none");
  // Before code generation, which calls them.
  addLibraryFunctions(**llvmModule);
  // An object may become part of a shared library.
  (*llvmModule)->setPICLevel(llvm::PICLevel::BigPIC);
  optimize(**llvmModule, **machine, optLevel);
  return generateCode(**llvmModule, **machine);
}
