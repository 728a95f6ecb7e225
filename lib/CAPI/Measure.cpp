//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface to programs, timing and tuning: a lowered module as machine
// code, the clocks that callers time with, schedule databases.
// `kas.measure` and `kas.tune` of Python are on top of it. A program is any
// module in the LLVM dialect, whatever pipeline made it, so that pipelines of
// others can be compared by the same clock.
//
//===----------------------------------------------------------------------===//

#include "kas-c/Measure.h"
#include "Handles.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/ExecutionEngine/JIT.h"
#include "kas/Tuning/Network.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/JSON.h"
#include <chrono>
#include <ctime>

using namespace kas;
using namespace kas::execution;
using namespace kas::tuning;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

struct KasProgram {
  // `numPrepacked` is how many elements of packed weights it takes as an
  // argument.
  struct Function {
    CompiledModule::Function code;
    int64_t numTensors, numPrepacked;
  };
  std::unique_ptr<CompiledModule> module;
  llvm::StringMap<Function> functions;
};

/// Whether `function` can be called with pointers alone.
/// Such functions are what `-kas-cpu-pipeline` leaves of functions on tensors:
/// pointers to elements, and null or the text of a failed assertion as result.
static bool takesPointers(LLVM::LLVMFuncOp function) {
  return !function.isExternal() && function.isPublic() &&
         isa<LLVM::LLVMVoidType, LLVM::LLVMPointerType>(
             function.getFunctionType().getReturnType()) &&
         llvm::all_of(function.getArgumentTypes(),
                      llvm::IsaPred<LLVM::LLVMPointerType>);
}

/// Compiles a module in the LLVM dialect at LLVM's level `optLevel`;
/// `cacheDirectory` may be null. Functions that take other things than pointers
/// cannot be called.
KasProgram *kasModuleLoad(KasModule *module, unsigned optLevel,
                          const char *cacheDirectory,
                          KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  // Translation to LLVM IR may change the module.
  OwningOpRef<ModuleOp> clone = access.getModule().clone();
  JITOptions options;
  options.optLevel = optLevel;
  std::optional<ObjectCache> cache;
  if (cacheDirectory)
    // Compiled objects are found there by a hash of the module.
    options.cache = &cache.emplace(cacheDirectory);
  auto compiled = CompiledModule::compile(*clone, options);
  if (!compiled) {
    access.report(compiled.takeError());
    return nullptr;
  }
  auto program = std::make_unique<KasProgram>();
  program->module = std::move(*compiled);
  for (auto function : clone->getOps<LLVM::LLVMFuncOp>()) {
    // Helpers and declarations stay inside.
    if (!takesPointers(function))
      continue;
    auto code = program->module->lookup(function.getName());
    if (!code) {
      access.report(code.takeError());
      return nullptr;
    }
    program->functions[function.getName()] = {
        *code, static_cast<int64_t>(function.getNumArguments()),
        getNumPrepackedElements(*clone, function.getName())};
  }
  return program.release();
}

void kasProgramDestroy(KasProgram *program) { delete program; }

/// Arguments and results together; -1 for a function that cannot be called.
int64_t kasProgramGetNumTensors(const KasProgram *program, const char *name) {
  auto found = program->functions.find(name);
  return found == program->functions.end() ? -1 : found->second.numTensors;
}

int64_t kasProgramGetNumPrepackedElements(const KasProgram *program,
                                          const char *name) {
  auto found = program->functions.find(name);
  return found == program->functions.end() ? 0 : found->second.numPrepacked;
}

/// The processor's time of this thread leaves out what other processes take; it
/// counts only one thread, so callers with several take the wall clock.
static double getMilliseconds(bool wallClock) {
  timespec now = {};
  if (!wallClock && ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0)
    return static_cast<double>(now.tv_sec) * 1e3 +
           static_cast<double>(now.tv_nsec) * 1e-6;
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

const char *kasProgramCall(KasProgram *program, const char *name,
                           void *const *tensors, uint64_t runs, bool wallClock,
                           double *milliseconds) {
  const KasProgram::Function &function = program->functions.find(name)->second;
  // Compiled code takes pointers that it may not keep but can overwrite.
  SmallVector<void *> pointers(tensors, tensors + function.numTensors);
  double start = getMilliseconds(wallClock);
  for (uint64_t run = 0; run < runs; ++run)
    if (const char *message = function.code(pointers.data()))
      return message;
  // The mean: the caller takes the least of several calls.
  if (milliseconds)
    *milliseconds = (getMilliseconds(wallClock) - start) /
                    static_cast<double>(std::max<uint64_t>(runs, 1));
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Tuning
//===----------------------------------------------------------------------===//

/// For functions without a module; those with one report through
/// `ModuleAccess`.
static bool report(llvm::Error error, KasDiagnostics diagnostics) {
  diagnostics.report(KasSeverityError, "",
                     llvm::toString(std::move(error)).c_str(),
                     diagnostics.userData);
  return false;
}

/// Checks the file and creates it if need be: a tuning of hours should not fail
/// at the first row that it writes.
bool kasTuningDatabaseOpen(const char *path, KasStream json,
                           KasDiagnostics diagnostics) {
  llvm::Expected<Target> target = getTarget();
  if (!target)
    return report(target.takeError(), diagnostics);
  auto environment =
      TuningEnvironment::get(*target, MeasureOptions().getProtocol());
  auto store = TuningStore::open(path, environment);
  if (!store)
    return report(store.takeError(), diagnostics);
  CallbackStream stream(json);
  llvm::json::OStream writer(stream);
  writer.object([&] {
    writer.attribute("target", environment.target);
    writer.attribute("toolchain", environment.toolchain);
  });
  return true;
}

/// One object for each kernel, in the order of the module.
static void write(const NetworkReport &report, KasStream json) {
  CallbackStream stream(json);
  llvm::json::OStream writer(stream);
  writer.array([&] {
    for (const KernelReport &kernel : report.kernels)
      writer.object([&] {
        writer.attribute("tensors", kernel.tensors);
        writer.attribute("measured", kernel.tuned.measured);
        writer.attribute("failed", kernel.tuned.failed);
        writer.attribute("ratio", kernel.tuned.ratio);
        writer.attribute("schedule", kernel.tuned.schedule.getText());
      });
  });
}

/// The module then has the best schedules found, and the function the form in
/// which they were measured (specialized, in stages).
bool kasModuleTune(KasModule *module, const char *name, KasTuneOptions options,
                   KasStream json, KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  // The module changes only on success.
  OwningOpRef<ModuleOp> copy = access.getModule().clone();
  auto function = copy->lookupSymbol<func::FuncOp>(name);
  if (!function || function.isExternal() ||
      !llvm::hasSingleElement(function.getBody())) {
    access.report("requires a function '" + llvm::Twine(name) +
                  "' of one block, found none");
    return false;
  }
  NetworkOptions network;
  network.tuner.network = options.network;
  network.tuner.trials = options.trials;
  network.tuner.seed = options.seed;
  network.tuner.measure.runs = options.runs;
  network.tuner.measure.threads = options.threads;
  // The caller measures the whole network if it wants to.
  network.measureInModel = false;
  auto run = [&]() -> llvm::Expected<NetworkReport> {
    std::unique_ptr<TuningDevice> device = makeCPUTuningDevice(options.threads);
    if (llvm::Error error = device->prepare(*copy))
      return error;
    auto environment = device->getEnvironment(network.tuner.measure);
    if (!environment)
      return environment.takeError();
    auto store = TuningStore::open(options.database, *environment);
    if (!store)
      return store.takeError();
    return tuneNetwork(function, *device, **store, network,
                       [](const KernelReport &) {});
  };
  auto found = run();
  if (!found) {
    access.report(found.takeError());
    return false;
  }
  write(*found, json);
  // The schedules are attributes of its operations.
  module->module = std::move(copy);
  return true;
}
