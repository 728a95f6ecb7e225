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
  struct Function {
    CompiledModule::Function code;
    int64_t numTensors, numPrepared;
  };
  std::unique_ptr<CompiledModule> module;
  llvm::StringMap<Function> functions;
};

/// Whether `function` can be called with pointers alone.
static bool takesPointers(LLVM::LLVMFuncOp function) {
  return !function.isExternal() && function.isPublic() &&
         isa<LLVM::LLVMVoidType, LLVM::LLVMPointerType>(
             function.getFunctionType().getReturnType()) &&
         llvm::all_of(function.getArgumentTypes(),
                      llvm::IsaPred<LLVM::LLVMPointerType>);
}

KasProgram *kasModuleLoad(KasModule *module, unsigned optLevel,
                          const char *cacheDirectory,
                          KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  OwningOpRef<ModuleOp> clone = access.getModule().clone();
  JITOptions options;
  options.optLevel = optLevel;
  std::optional<ObjectCache> cache;
  if (cacheDirectory)
    options.cache = &cache.emplace(cacheDirectory);
  auto compiled = CompiledModule::compile(*clone, options);
  if (!compiled) {
    access.report(compiled.takeError());
    return nullptr;
  }
  auto program = std::make_unique<KasProgram>();
  program->module = std::move(*compiled);
  for (auto function : clone->getOps<LLVM::LLVMFuncOp>()) {
    if (!takesPointers(function))
      continue;
    auto code = program->module->lookup(function.getName());
    if (!code) {
      access.report(code.takeError());
      return nullptr;
    }
    program->functions[function.getName()] = {
        *code, static_cast<int64_t>(function.getNumArguments()),
        getNumPreparedElements(*clone, function.getName())};
  }
  return program.release();
}

void kasProgramDestroy(KasProgram *program) { delete program; }

int64_t kasProgramGetNumTensors(const KasProgram *program, const char *name) {
  auto found = program->functions.find(name);
  return found == program->functions.end() ? -1 : found->second.numTensors;
}

int64_t kasProgramGetNumPreparedElements(const KasProgram *program,
                                         const char *name) {
  auto found = program->functions.find(name);
  return found == program->functions.end() ? 0 : found->second.numPrepared;
}

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
  SmallVector<void *> pointers(tensors, tensors + function.numTensors);
  double start = getMilliseconds(wallClock);
  for (uint64_t run = 0; run < runs; ++run)
    if (const char *message = function.code(pointers.data()))
      return message;
  if (milliseconds)
    *milliseconds = (getMilliseconds(wallClock) - start) /
                    static_cast<double>(std::max<uint64_t>(runs, 1));
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Tuning
//===----------------------------------------------------------------------===//

static bool report(llvm::Error error, KasDiagnostics diagnostics) {
  diagnostics.report(KasSeverityError, "",
                     llvm::toString(std::move(error)).c_str(),
                     diagnostics.userData);
  return false;
}

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

bool kasModuleTune(KasModule *module, const char *name, KasTuneOptions options,
                   KasStream json, KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
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
  module->module = std::move(copy);
  return true;
}
