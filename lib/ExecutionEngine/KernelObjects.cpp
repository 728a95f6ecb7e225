//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles outlined kernels to one object each, in parallel and through the
// object cache, so that equal kernels are compiled once.
//
// Stages, each with its own unit of parallelism:
//    takeKernel   caller's thread   func -> bytecode, whose hash is the key
//    translate    one batch each    bytecode -> LLVM IR, in an own context
//    compile      one kernel each   LLVM IR -> object, into the cache
// (docs/internals/code-generation.md, "Large functions").
//
//===----------------------------------------------------------------------===//

#include "KernelObjects.h"
#include "LLVMModule.h"
#include "kas/ExecutionEngine/Timing.h"
#include "kas/Support/RunPasses.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Target/TargetMachine.h"

using namespace kas;
using namespace kas::execution;
using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

namespace {

/// One kernel on its way to an object.
struct Kernel {
  /// A module with the kernel alone, named after its key.
  llvm::SmallString<0> bytecode;
  std::string key;
  /// The function's operations: a measure of the time that it takes.
  unsigned size = 0;
  /// Destroyed after the module.
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  std::unique_ptr<llvm::MemoryBuffer> object;
  std::string error;

  std::string getSymbol() const { return "kas_kernel_" + key; }
};

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

/// Where a kernel came from is no part of what it is.
void eraseLocations(Operation *op) {
  auto unknown = UnknownLoc::get(op->getContext());
  op->walk([&](Operation *inner) {
    inner->setLoc(unknown);
    for (Region &region : inner->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setLoc(unknown);
  });
}

/// Takes the body of `function` to a module of its own.
Expected<Kernel> takeKernel(func::FuncOp function, ModuleOp module,
                            const CPUPipelineOptions &pipeline,
                            const llvm::TargetMachine &machine,
                            const JITOptions &options) {
  Kernel kernel;
  OwningOpRef<ModuleOp> alone =
      ModuleOp::create(UnknownLoc::get(module.getContext()));
  // The target is an attribute of the module, and part of the key with it.
  (*alone)->setDiscardableAttrs(module->getDiscardableAttrDictionary());
  auto copy = cast<func::FuncOp>(function->cloneWithoutRegions());
  // Under one name, so that equal kernels have equal bytecode; the symbol is
  // made of the key afterwards.
  copy.setName("kernel");
  copy.getBody().takeBody(function.getBody());
  alone->push_back(copy);
  eraseLocations(*alone);
  copy.walk([&](Operation *) { ++kernel.size; });
  llvm::raw_svector_ostream stream(kernel.bytecode);
  if (failed(writeBytecodeToFile(*alone, stream)))
    return createStringError("a kernel cannot be written as bytecode");
  // Of the pipeline's options only those count that its passes after outlining
  // read.
  kernel.key = computeKey(
      {kernel.bytecode, "threads=" + std::to_string(pipeline.threads)}, machine,
      options);
  return kernel;
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

/// Notes how long a step of LLVM takes while it lives.
class StepClock {
public:
  StepClock(PassTimes *times, StringRef name)
      : times(times), run{name.str(), monotonicSeconds(), 0} {}
  ~StepClock() {
    run.end = monotonicSeconds();
    if (times)
      times->add(std::move(run));
  }

private:
  PassTimes *times;
  PassRun run;
};

/// The kernels of one thread, in a context of its own: that of the caller need
/// not be thread-safe.
class KernelBatch {
public:
  KernelBatch(const CPUPipelineOptions &pipeline, const JITOptions &options,
              PassTimes *times)
      : pipeline(pipeline), options(options), times(times) {}

  void add(Kernel &kernel) {
    kernels.push_back(&kernel);
    size += kernel.size;
  }
  unsigned getSize() const { return size; }
  ArrayRef<Kernel *> getKernels() const { return kernels; }

  /// All kernels to modules of LLVM IR.
  Error translate();

private:
  /// A module with `function` and what it refers to.
  OwningOpRef<ModuleOp> takeAlone(LLVM::LLVMFuncOp function, ModuleOp module);

  const CPUPipelineOptions &pipeline;
  const JITOptions &options;
  PassTimes *times;
  SmallVector<Kernel *> kernels;
  unsigned size = 0;
};

OwningOpRef<ModuleOp> KernelBatch::takeAlone(LLVM::LLVMFuncOp function,
                                             ModuleOp module) {
  OwningOpRef<ModuleOp> alone = ModuleOp::create(module.getLoc());
  (*alone)->setDiscardableAttrs(module->getDiscardableAttrDictionary());
  // What the function refers to, transitively: constants, external functions.
  llvm::SetVector<Operation *> used;
  SmallVector<Operation *> pending{function};
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val();
    auto uses = SymbolTable::getSymbolUses(op);
    if (!uses)
      continue;
    for (SymbolTable::SymbolUse use : *uses)
      if (Operation *symbol = SymbolTable::lookupSymbolIn(
              module, use.getSymbolRef().getRootReference());
          symbol && symbol != function && used.insert(symbol))
        pending.push_back(symbol);
  }
  // Cloned, as several kernels may refer to one declaration; the kernel is
  // moved.
  for (Operation *symbol : used)
    alone->push_back(symbol->clone());
  function->remove();
  alone->push_back(function);
  return alone;
}

Error KernelBatch::translate() {
  DialectRegistry registry;
  registerCPUPipelineDialects(registry);
  // The pool's threads are all that there should be.
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  for (Kernel *kernel : kernels) {
    auto parsed = parseSourceString<ModuleOp>(kernel->bytecode, &context);
    if (!parsed)
      return createStringError("the bytecode of a kernel cannot be read");
    (*module)->setDiscardableAttrs((*parsed)->getDiscardableAttrDictionary());
    auto function = *parsed->getOps<func::FuncOp>().begin();
    function.setName(kernel->getSymbol());
    function->remove();
    module->push_back(function);
  }
  if (Error error = runPasses(
          *module, "a kernel cannot be compiled for the CPU",
          [&](OpPassManager &manager) {
            buildCPUKernelPipeline(manager, pipeline);
          },
          times))
    return error;

  Expected<Target> target = chooseTarget(*module);
  if (!target)
    return target.takeError();
  auto machine = createTargetMachine(*target, options.optLevel, /*jit=*/true);
  if (!machine)
    return machine.takeError();
  for (Kernel *kernel : kernels) {
    auto function = module->lookupSymbol<LLVM::LLVMFuncOp>(kernel->getSymbol());
    assert(function && "kernels stay functions");
    function.setSymVisibility(std::nullopt);
    // A module each: LLVM optimizes a module at a time.
    OwningOpRef<ModuleOp> alone = takeAlone(function, *module);
    kernel->context = std::make_unique<llvm::LLVMContext>();
    StepClock clock(times, "translation");
    auto translated = translateToLLVM(*alone, *kernel->context, **machine);
    if (!translated)
      return translated.takeError();
    kernel->module = std::move(*translated);
  }
  return Error::success();
}

/// Machine code of one kernel.
Error compile(Kernel &kernel, const Target &target, const JITOptions &options,
              PassTimes *times) {
  // A target machine is not thread-safe: one for each compilation.
  auto machine = createTargetMachine(target, options.optLevel, /*jit=*/true);
  if (!machine)
    return machine.takeError();
  {
    StepClock clock(times, "optimization");
    optimize(*kernel.module, **machine, options.optLevel);
  }
  StepClock clock(times, "code");
  auto object = generateCode(*kernel.module, **machine);
  if (!object)
    return object.takeError();
  kernel.object = std::move(*object);
  if (options.cache)
    options.cache->store(kernel.key, kernel.object->getBuffer());
  return Error::success();
}

/// Compiles the kernels that have no object yet, the large ones first, on one
/// thread per core.
Error compileMissing(MutableArrayRef<Kernel> kernels, const Target &target,
                     const CPUPipelineOptions &pipeline,
                     const JITOptions &options, PassTimes *times) {
  SmallVector<Kernel *> missing;
  for (Kernel &kernel : kernels)
    if (!kernel.object)
      missing.push_back(&kernel);
  if (missing.empty())
    return Error::success();
  llvm::sort(missing, [](const Kernel *a, const Kernel *b) {
    // Largest first, keys break ties: the batches are the same in each run.
    return std::tie(b->size, a->key) < std::tie(a->size, b->key);
  });
  llvm::DefaultThreadPool pool(llvm::hardware_concurrency());
  std::vector<KernelBatch> batches(
      std::min<size_t>(pool.getMaxConcurrency(), missing.size()),
      KernelBatch(pipeline, options, times));
  // Each goes to the batch with the least work so far, which balances them
  // within the size of a kernel.
  for (Kernel *kernel : missing)
    llvm::min_element(batches, [](const KernelBatch &a, const KernelBatch &b) {
      return a.getSize() < b.getSize();
    })->add(*kernel);
  for (KernelBatch &batch : batches)
    pool.async([&] {
      if (Error error = batch.translate()) {
        // An error of the batch is reported once.
        batch.getKernels().front()->error = llvm::toString(std::move(error));
        return;
      }
      for (Kernel *kernel : batch.getKernels())
        // From here on kernels of all batches are in one queue, so that no core
        // waits for the batch of another.
        pool.async([&, kernel] {
          if (Error error = compile(*kernel, target, options, times))
            kernel->error = llvm::toString(std::move(error));
          kernel->module.reset();
          kernel->context.reset();
        });
    });
  pool.wait();
  for (Kernel *kernel : missing)
    if (!kernel->error.empty())
      return createStringError(kernel->error);
  return Error::success();
}

} // namespace

Expected<KernelObjects>
kas::execution::compileKernels(ModuleOp module,
                               ArrayRef<func::FuncOp> functions,
                               const CPUPipelineOptions &pipeline,
                               const JITOptions &options, PassTimes *times) {
  KernelObjects compiled;
  // Functions below `min-kernels` have no kernels outlined.
  if (functions.empty())
    return compiled;
  double start = monotonicSeconds();
  Expected<Target> target = chooseTarget(module);
  if (!target)
    return target.takeError();
  auto machine = createTargetMachine(*target, options.optLevel, /*jit=*/true);
  if (!machine)
    return machine.takeError();
  std::vector<Kernel> kernels;
  llvm::StringMap<FlatSymbolRefAttr> renamed;
  for (func::FuncOp function : functions) {
    auto kernel = takeKernel(function, module, pipeline, **machine, options);
    if (!kernel)
      return kernel.takeError();
    auto name = StringAttr::get(module.getContext(), kernel->getSymbol());
    renamed[function.getName()] = FlatSymbolRefAttr::get(name);
    function.setName(name);
    if (options.cache)
      kernel->object = options.cache->load(kernel->key);
    compiled.numCached += kernel->object != nullptr;
    kernels.push_back(std::move(*kernel));
  }
  // Calls are renamed like the functions: an object serves any module.
  module.walk([&](func::CallOp call) {
    if (auto found = renamed.find(call.getCallee()); found != renamed.end())
      call.setCalleeAttr(found->second);
  });
  if (Error error = compileMissing(kernels, *target, pipeline, options, times))
    return error;
  for (Kernel &kernel : kernels)
    compiled.objects.push_back(std::move(kernel.object));
  compiled.milliseconds = (monotonicSeconds() - start) * 1e3;
  return compiled;
}
