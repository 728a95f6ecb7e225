//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles modules of the LLVM dialect in process with ORC: entry points,
// machine code, libraries that the code needs.
//
// Only what is called through `lookup` gets an entry point, which takes one
// array of pointers. Machine code, just compiled or from a file, is linked with
// functions of this process: the buffer pool, special functions, conversions of
// 16-bit floats.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/JIT.h"
#include "LLVMModule.h"
#include "ModuleParts.h"
#include "SpecialFunctions.h"
#include "kas/Dialect/KasCPU/IR/ModuleTarget.h"
#include "kas/ExecutionEngine/BufferPool.h"
#include "kas/ExecutionEngine/Timing.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Target/TargetMachine.h"

#include <cmath>
#include <dlfcn.h>

using namespace kas;
using namespace kas::execution;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

/// What `lookup` finds: takes the array of pointers and calls the function.
static std::string getEntryName(StringRef name) {
  return ("_kas_entry_" + name).str();
}

//===----------------------------------------------------------------------===//
// LLVM IR
//===----------------------------------------------------------------------===//

/// Makes a function that unpacks an array of pointers, of which the last ones
/// may be a number of samples or sizes, calls `function`, which becomes
/// internal, and returns what that returns, null if nothing. It is not inlined:
/// LLVM would describe by metadata at each access what the attributes of the
/// arguments say once.
static void createEntry(llvm::Function &function) {
  llvm::LLVMContext &context = function.getContext();
  auto *pointerType = llvm::PointerType::get(context, 0);
  auto *type = llvm::FunctionType::get(pointerType, {pointerType},
                                       /*isVarArg=*/false);
  auto *entry = llvm::Function::Create(type, llvm::Function::ExternalLinkage,
                                       getEntryName(function.getName()),
                                       function.getParent());
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "", entry));
  llvm::SmallVector<llvm::Value *> arguments;
  addNoAlias(function);
  for (llvm::Argument &argument : function.args()) {
    // Slots are 8 bytes, whatever the argument is; a number is in the slot
    // itself.
    llvm::Value *slot = builder.CreateConstGEP1_64(
        pointerType, entry->getArg(0), argument.getArgNo());
    arguments.push_back(builder.CreateLoad(argument.getType(), slot));
  }
  llvm::Value *message = builder.CreateCall(&function, arguments);
  if (!message->getType()->isPointerTy())
    message = llvm::ConstantPointerNull::get(pointerType);
  builder.CreateRet(message);
  // LLVM may choose the calling convention of what only the entry calls.
  function.setLinkage(llvm::Function::InternalLinkage);
  function.addFnAttr(llvm::Attribute::NoInline);
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

struct CompiledModule::Impl {
  /// What the session complained about; it outlives the session.
  std::string complaints;
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

CompiledModule::CompiledModule() : impl(std::make_unique<Impl>()) {}
CompiledModule::~CompiledModule() = default;

/// True if the object calls OpenMP's runtime library.
static bool usesOpenMP(const llvm::MemoryBuffer &object) {
  auto file = llvm::object::ObjectFile::createObjectFile(object);
  if (!file) {
    // Whoever links the object reports that it is none.
    llvm::consumeError(file.takeError());
    return false;
  }
  for (const llvm::object::SymbolRef &symbol : (*file)->symbols()) {
    StringRef name = llvm::cantFail(symbol.getName());
    if (name.starts_with("__kmpc_") || name.starts_with("omp_"))
      return true;
  }
  return false;
}

/// Where packages that bring OpenMP's runtime have it: lib/ beside the file
/// that this code is in, or beside its folder.
static llvm::SmallVector<std::string> getBundledOpenMP() {
  namespace path = llvm::sys::path;
  static char anchor;
  Dl_info info;
  std::string file;
  if (dladdr(&anchor, &info) && StringRef(info.dli_fname).contains('/'))
    file = info.dli_fname;
  else
    file = llvm::sys::fs::getMainExecutable(nullptr, &anchor);
  llvm::SmallVector<std::string> found;
  StringRef folder = path::parent_path(file);
  for (StringRef parent : {folder, path::parent_path(folder)}) {
    llvm::SmallString<256> library = parent;
    path::append(library, "lib", "libomp.so.5");
    if (llvm::sys::fs::exists(library))
      found.push_back(std::string(library));
  }
  return found;
}

/// Makes the symbols of OpenMP's runtime visible to the compiled code: of the
/// library that the package has, that was found at configuration, or of one on
/// the loader's path.
static Error addOpenMP(llvm::orc::LLJIT &jit) {
  char prefix = jit.getDataLayout().getGlobalPrefix();
  std::string failures;
  llvm::SmallVector<std::string> libraries = getBundledOpenMP();
  libraries.append({KAS_OPENMP_LIBRARY, "libomp.so.5", "libomp.so"});
  // The first one that loads; all reasons are reported if none does.
  for (const std::string &library : libraries) {
    auto generator =
        llvm::orc::DynamicLibrarySearchGenerator::Load(library.c_str(), prefix);
    if (generator) {
      jit.getMainJITDylib().addGenerator(std::move(*generator));
      return Error::success();
    }
    failures += "\n  " + llvm::toString(generator.takeError());
  }
  return createStringError(
      "OpenMP's runtime library (libomp) cannot be loaded; install it, or "
      "compile for one thread:" +
      failures);
}

/// What LLVM calls to round to 16 bits on processors without an instruction for
/// it; not every runtime library has it. To nearest, ties to even; NaN
/// stays NaN. The result is the low half of a register for floats.
template <typename Source>
static float roundTo(const llvm::fltSemantics &semantics, Source value) {
  llvm::APFloat number(value);
  bool losesInfo = false;
  number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return llvm::bit_cast<float>(
      static_cast<uint32_t>(number.bitcastToAPInt().getZExtValue()));
}
static float roundDoubleToHalf(double value) {
  return roundTo(llvm::APFloat::IEEEhalf(), value);
}
static float roundDoubleToBFloat16(double value) {
  return roundTo(llvm::APFloat::BFloat(), value);
}
static float roundToHalf(float value) {
  return roundTo(llvm::APFloat::IEEEhalf(), value);
}
/// The same for bf16, which takes little time: whole networks are of it.
static float roundToBFloat16(float value) {
  auto bits = llvm::bit_cast<uint32_t>(value);
  // Made quiet: truncation alone could leave an infinity.
  if (std::isnan(value))
    bits |= 1u << 22;
  else
    // Half of the last place, and one less where the place is even.
    bits += 0x7fff + (bits >> 16 & 1);
  return llvm::bit_cast<float>(bits >> 16);
}
/// `value` is the low half of a register for floats.
static float extendHalf(float value) {
  llvm::APInt bits(16, llvm::bit_cast<uint32_t>(value) & 0xffff);
  llvm::APFloat number(llvm::APFloat::IEEEhalf(), bits);
  bool losesInfo = false;
  number.convert(llvm::APFloat::IEEEsingle(),
                 llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return number.convertToFloat();
}

static void *allocate(size_t size) { return BufferPool::get().allocate(size); }
static void release(void *data) { BufferPool::get().release(data); }

Expected<CompiledCode> kas::execution::compileCode(mlir::ModuleOp module,
                                                   const JITOptions &options,
                                                   KernelObjects kernels) {
  CompiledCode code;
  CompileTimes &times = code.times;
  times.kernels = kernels.milliseconds;
  times.numKernels = kernels.objects.size();
  times.numCachedKernels = kernels.numCached;
  double start = monotonicSeconds();
  Expected<Target> target = chooseTarget(module);
  if (!target)
    return target.takeError();
  auto machine = createTargetMachine(*target, options.optLevel, /*jit=*/true);
  if (!machine)
    return machine.takeError();
  code.target = CodeTarget::get(**machine);
  // Code for another machine cannot be called.
  if (Error error = code.target.checkRunsHere())
    return error;
  llvm::LLVMContext context;
  auto llvmModule = translateToLLVM(module, context, **machine);
  if (!llvmModule)
    return llvmModule.takeError();
  makePrivateInternal(module, **llvmModule);
  // Collected first: entries are functions of the module, too.
  llvm::SmallVector<llvm::Function *> callable;
  for (llvm::Function &function : **llvmModule)
    if (isCallable(function))
      callable.push_back(&function);
  for (llvm::Function *function : callable)
    createEntry(*function);
  times.translate = (monotonicSeconds() - start) * 1e3;
  auto objects = compileParts(**llvmModule, getNumParts(**llvmModule), *target,
                              options, times);
  if (!objects)
    return objects.takeError();
  code.objects = std::move(kernels.objects);
  std::move(objects->begin(), objects->end(), std::back_inserter(code.objects));
  return code;
}

/// What compiled code calls of this process.
static llvm::orc::SymbolMap getSymbols(llvm::orc::LLJIT &session,
                                       const JITOptions &options) {
  llvm::orc::SymbolMap symbols;
  auto add = [&](StringRef name, void *address) {
    symbols.try_emplace(session.mangleAndIntern(name),
                        llvm::orc::ExecutorAddr::fromPtr(address),
                        llvm::JITSymbolFlags::Exported |
                            llvm::JITSymbolFlags::Callable);
  };
  auto addFunction = [&](StringRef name, auto *function) {
    add(name, reinterpret_cast<void *>(function));
  };
  // Symbols that the caller gives come first and win over those below.
  for (const auto &[name, address] : options.symbols)
    add(name, address);
  addFunction("malloc", &allocate);
  addFunction("free", &release);
  addFunction("__truncsfbf2", &roundToBFloat16);
  addFunction("__truncdfbf2", &roundDoubleToBFloat16);
  addFunction("__truncsfhf2", &roundToHalf);
  addFunction("__truncdfhf2", &roundDoubleToHalf);
  addFunction("__extendhfsf2", &extendHalf);
  // Functions of math that no C library has, such as Bessel's.
  for (const SpecialFunction &function : getSpecialFunctions())
    add(function.name, function.address);
  return symbols;
}

Expected<std::unique_ptr<CompiledModule>>
CompiledModule::link(CompiledCode code, const JITOptions &options) {
  std::unique_ptr<CompiledModule> compiled(new CompiledModule());
  compiled->times = code.times;
  double start = monotonicSeconds();
  // Nothing else of LLVM may have been used yet.
  initializeHostTarget();
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit)
    return jit.takeError();
  compiled->impl->jit = std::move(*jit);
  llvm::orc::LLJIT &session = *compiled->impl->jit;
  // Nothing is printed: `lookup` returns it all.
  std::string &complaints = compiled->impl->complaints;
  session.getExecutionSession().setErrorReporter([&complaints](Error error) {
    complaints += ": " + llvm::toString(std::move(error));
  });
  if (Error error = session.getMainJITDylib().define(
          llvm::orc::absoluteSymbols(getSymbols(session, options))))
    return error;
  // Loaded only for code that needs it: most machines have no libomp.
  if (llvm::any_of(code.objects,
                   [](auto &object) { return usesOpenMP(*object); }))
    if (Error error = addOpenMP(session))
      return error;
  for (std::unique_ptr<llvm::MemoryBuffer> &object : code.objects)
    if (Error error = session.addObjectFile(std::move(object)))
      return error;
  compiled->times.link = (monotonicSeconds() - start) * 1e3;
  return compiled;
}

Expected<std::unique_ptr<CompiledModule>>
CompiledModule::compile(mlir::ModuleOp module, const JITOptions &options,
                        KernelObjects kernels) {
  auto code = compileCode(module, options, std::move(kernels));
  if (!code)
    return code.takeError();
  return link(std::move(*code), options);
}

Error kas::execution::call(CompiledModule::Function function, void **pointers) {
  const char *message = function(pointers);
  return message ? createStringError(message) : Error::success();
}

Expected<CompiledModule::Function> CompiledModule::lookup(StringRef name) {
  auto address = impl->jit->lookup(getEntryName(name));
  if (!address)
    return createStringError("function '" + name + "' cannot be called: " +
                             llvm::toString(address.takeError()) +
                             impl->complaints);
  return address->toPtr<Function>();
}
