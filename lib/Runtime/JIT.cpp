//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Runtime/JIT.h"
#include "kas/Runtime/Timing.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/OpenMP/OpenMPToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace kas;
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

/// Makes a function that unpacks an array of pointers and calls `function`,
/// which becomes internal. It is not inlined: LLVM would describe by metadata
/// at each access what the attributes of the arguments say once.
static void createEntry(llvm::Function &function) {
  llvm::LLVMContext &context = function.getContext();
  auto *pointerType = llvm::PointerType::get(context, 0);
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                       {pointerType}, /*isVarArg=*/false);
  auto *entry = llvm::Function::Create(type, llvm::Function::ExternalLinkage,
                                       getEntryName(function.getName()),
                                       function.getParent());
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "", entry));
  llvm::SmallVector<llvm::Value *> arguments;
  for (llvm::Argument &argument : function.args()) {
    // Inputs are only read, outputs are buffers of their own.
    argument.addAttr(llvm::Attribute::NoAlias);
    llvm::Value *slot = builder.CreateConstGEP1_64(
        pointerType, entry->getArg(0), argument.getArgNo());
    arguments.push_back(builder.CreateLoad(pointerType, slot));
  }
  builder.CreateCall(&function, arguments);
  builder.CreateRetVoid();
  function.setLinkage(llvm::Function::InternalLinkage);
  function.addFnAttr(llvm::Attribute::NoInline);
}

static bool isCallable(const llvm::Function &function) {
  return !function.isDeclaration() && function.hasExternalLinkage() &&
         function.getReturnType()->isVoidTy() && !function.isVarArg() &&
         llvm::all_of(function.args(), [](const llvm::Argument &argument) {
           return argument.getType()->isPointerTy();
         });
}

static Expected<std::unique_ptr<llvm::Module>>
translate(mlir::ModuleOp module, llvm::LLVMContext &context,
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
  auto llvmModule = mlir::translateModuleToLLVMIR(module, context, "kas");
  if (!llvmModule)
    return createStringError("the module cannot be translated to LLVM IR");
  llvmModule->setDataLayout(machine.createDataLayout());
  llvmModule->setTargetTriple(machine.getTargetTriple());
  llvm::SmallVector<llvm::Function *> callable;
  for (llvm::Function &function : *llvmModule)
    if (isCallable(function))
      callable.push_back(&function);
  for (llvm::Function *function : callable)
    createEntry(*function);
  return llvmModule;
}

/// Asked first, because a target machine only warns and takes another CPU.
static bool isKnownCPU(const llvm::Triple &triple, StringRef cpu) {
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return false;
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      target->createMCSubtargetInfo(triple, /*CPU=*/"", /*Features=*/""));
  return info && info->isCPUStringValid(cpu);
}

static Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const JITOptions &options) {
  static const bool initialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialized;
  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder)
    return builder.takeError();
  if (!options.cpu.empty()) {
    if (!isKnownCPU(builder->getTargetTriple(), options.cpu))
      return createStringError("unknown CPU '" + options.cpu + "'");
    builder->setCPU(options.cpu);
    builder->getFeatures() = llvm::SubtargetFeatures();
  }
  builder->setCodeGenOptLevel(
      llvm::CodeGenOpt::getLevel(std::min(options.optLevel, 3u))
          .value_or(llvm::CodeGenOptLevel::Aggressive));
  llvm::TargetOptions targetOptions;
  targetOptions.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  builder->setOptions(targetOptions);
  return builder->createTargetMachine();
}

/// LLVM's own pipeline, without the vectorizer of straight-line code, which
/// finds nothing in kernels and takes its time.
static void optimize(llvm::Module &module, llvm::TargetMachine &machine,
                     unsigned level) {
  const llvm::OptimizationLevel levels[] = {
      llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1,
      llvm::OptimizationLevel::O2, llvm::OptimizationLevel::O3};
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = level >= 2;
  tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
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

/// Everything that the object depends on: the IR before optimization, the
/// target, the level, the compiler's version.
static std::string computeKey(const llvm::Module &module,
                              const llvm::TargetMachine &machine,
                              const JITOptions &options) {
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::WriteBitcodeToFile(module, stream);
  stream << LLVM_VERSION_STRING << '\0' << machine.getTargetTriple().str()
         << '\0' << machine.getTargetCPU() << '\0'
         << machine.getTargetFeatureString() << '\0' << options.optLevel;
  auto digest = llvm::BLAKE3::hash<16>(llvm::arrayRefFromStringRef(bytes));
  return llvm::toHex(digest, /*LowerCase=*/true);
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

/// True if the module calls OpenMP's runtime library.
static bool usesOpenMP(const llvm::Module &module) {
  return llvm::any_of(module, [](const llvm::Function &function) {
    return function.isDeclaration() &&
           (function.getName().starts_with("__kmpc_") ||
            function.getName().starts_with("omp_"));
  });
}

/// Makes the symbols of OpenMP's runtime visible to the compiled code: of the
/// library found at configuration, or of one on the loader's path.
static Error addOpenMP(llvm::orc::LLJIT &jit) {
  char prefix = jit.getDataLayout().getGlobalPrefix();
  std::string failures;
  for (const char *library : {KAS_OPENMP_LIBRARY, "libomp.so.5", "libomp.so"}) {
    auto generator =
        llvm::orc::DynamicLibrarySearchGenerator::Load(library, prefix);
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

Expected<std::unique_ptr<CompiledModule>>
CompiledModule::compile(mlir::ModuleOp module, const JITOptions &options) {
  std::unique_ptr<CompiledModule> compiled(new CompiledModule());
  CompileTimes &times = compiled->times;
  double last = monotonicSeconds();
  auto lap = [&last](double &time) {
    double now = monotonicSeconds();
    time = (now - last) * 1e3;
    last = now;
  };

  auto machine = createTargetMachine(options);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  auto llvmModule = translate(module, context, **machine);
  if (!llvmModule)
    return llvmModule.takeError();
  lap(times.translate);

  std::unique_ptr<llvm::MemoryBuffer> object;
  std::string key;
  if (options.cache) {
    key = computeKey(**llvmModule, **machine, options);
    object = options.cache->load(key);
    times.cached = object != nullptr;
  }
  bool openMP = usesOpenMP(**llvmModule);
  if (!object) {
    optimize(**llvmModule, **machine, options.optLevel);
    lap(times.optimize);
    auto buffer = llvm::orc::SimpleCompiler(**machine)(**llvmModule);
    if (!buffer)
      return buffer.takeError();
    object = std::move(*buffer);
    if (options.cache)
      options.cache->store(key, *object);
    lap(times.codegen);
  }

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
  if (openMP)
    if (Error error = addOpenMP(session))
      return error;
  if (Error error = session.addObjectFile(std::move(object)))
    return error;
  lap(times.link);
  return compiled;
}

Expected<CompiledModule::Function> CompiledModule::lookup(StringRef name) {
  auto address = impl->jit->lookup(getEntryName(name));
  if (!address)
    return createStringError("function '" + name + "' cannot be called: " +
                             llvm::toString(address.takeError()) +
                             impl->complaints);
  return address->toPtr<Function>();
}
