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
#include "kas/ExecutionEngine/Timing.h"
#include "kas/Tuning/Network.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/JSON.h"

using namespace kas;
using namespace kas::execution;
using namespace kas::tuning;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

struct KasProgram {
  /// Links the code, of the functions whose numbers are known.
  llvm::Error link(CompiledCode code);

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

llvm::Error KasProgram::link(CompiledCode code) {
  auto linked = CompiledModule::link(std::move(code));
  if (!linked)
    return linked.takeError();
  module = std::move(*linked);
  for (auto &entry : functions) {
    auto found = module->lookup(entry.getKey());
    if (!found)
      return found.takeError();
    entry.getValue().code = *found;
  }
  return llvm::Error::success();
}

/// Where programs of keys are kept; errors and an unset directory mean nowhere.
static std::optional<CacheSettings> getCache() {
  auto settings = CacheSettings::getOfUser();
  if (settings && !settings->directory.empty())
    return *settings;
  llvm::consumeError(settings.takeError());
  return std::nullopt;
}

/// Keeps the program that is about to be linked.
static void keep(const KasProgram &program, const CompiledCode &code,
                 const char *key, const char *note) {
  std::optional<CacheSettings> settings = getCache();
  if (!settings)
    return;
  llvm::json::Object functions;
  for (const auto &entry : program.functions)
    functions[entry.getKey()] = llvm::json::Array(
        {entry.getValue().numTensors, entry.getValue().numPrepacked});
  SmallVector<StringRef> objects;
  for (const auto &object : code.objects)
    objects.push_back(object->getBuffer());
  std::string content;
  llvm::raw_string_ostream stream(content);
  CompiledFile::write(stream, code.target,
                      llvm::json::Object{{"functions", std::move(functions)},
                                         {"note", std::string(note)}},
                      objects);
  ObjectCache(*settings).store(key, content);
}

/// Compiles a module in the LLVM dialect at LLVM's level `optLevel`; `key` may
/// be null. Functions that take other things than pointers cannot be called.
static KasProgram *load(KasModule *module, unsigned optLevel, const char *key,
                        const char *note, KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  // Translation to LLVM IR may change the module.
  OwningOpRef<ModuleOp> clone = access.getModule().clone();
  JITOptions options;
  options.optLevel = optLevel;
  auto program = std::make_unique<KasProgram>();
  for (auto function : clone->getOps<LLVM::LLVMFuncOp>())
    // Helpers and declarations stay inside.
    if (takesPointers(function))
      program->functions[function.getName()] = {
          nullptr, static_cast<int64_t>(function.getNumArguments()),
          getNumPrepackedElements(*clone, function.getName())};
  auto code = compileCode(*clone, options);
  if (!code) {
    access.report(code.takeError());
    return nullptr;
  }
  if (key)
    keep(*program, *code, key, note);
  if (llvm::Error error = program->link(std::move(*code))) {
    access.report(std::move(error));
    return nullptr;
  }
  return program.release();
}

KasProgram *kasModuleLoad(KasModule *module, unsigned optLevel,
                          KasDiagnostics diagnostics) {
  return load(module, optLevel, nullptr, "", diagnostics);
}

KasProgram *kasModuleLoadAs(KasModule *module, unsigned optLevel,
                            const char *key, const char *note,
                            KasDiagnostics diagnostics) {
  return load(module, optLevel, key, note, diagnostics);
}

/// What cannot be read is not there: the caller makes it again.
static llvm::Expected<std::unique_ptr<KasProgram>>
readProgram(std::unique_ptr<llvm::MemoryBuffer> content, StringRef &note,
            CompiledFile &file) {
  auto read = CompiledFile::read(std::move(content));
  if (!read)
    return read.takeError();
  file = std::move(*read);
  const llvm::json::Object *functions = file.description.getObject("functions");
  std::optional<StringRef> text = file.description.getString("note");
  if (!functions || !text)
    return llvm::createStringError("requires a program");
  note = *text;
  auto program = std::make_unique<KasProgram>();
  for (const auto &[name, numbers] : *functions) {
    std::vector<int64_t> counts;
    llvm::json::Path::Root root;
    if (!fromJSON(numbers, counts, root) || counts.size() != 2)
      return llvm::createStringError("requires numbers of tensors");
    program->functions[name] = {nullptr, counts[0], counts[1]};
  }
  CompiledCode code;
  code.target = file.target;
  for (StringRef part : file.parts)
    code.objects.push_back(llvm::MemoryBuffer::getMemBufferCopy(part, "code"));
  if (llvm::Error error = program->link(std::move(code)))
    return error;
  return program;
}

KasProgram *kasProgramFind(const char *key, KasStream note) {
  std::optional<CacheSettings> settings = getCache();
  auto content = settings ? ObjectCache(*settings).load(key) : nullptr;
  if (!content)
    return nullptr;
  StringRef text;
  CompiledFile file;
  auto program = readProgram(std::move(content), text, file);
  if (!program) {
    llvm::consumeError(program.takeError());
    return nullptr;
  }
  CallbackStream(note) << text;
  return program->release();
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

const char *kasProgramCall(KasProgram *program, const char *name,
                           void *const *tensors, uint64_t runs,
                           double *milliseconds) {
  const KasProgram::Function &function = program->functions.find(name)->second;
  // Compiled code takes pointers that it may not keep but can overwrite.
  SmallVector<void *> pointers(tensors, tensors + function.numTensors);
  double start = monotonicSeconds();
  for (uint64_t run = 0; run < runs; ++run)
    if (const char *message = function.code(pointers.data()))
      return message;
  // The mean: the caller takes the least of several calls. Not of the
  // processor's time of this thread, which jumps on some virtual machines, so
  // that the least is too small.
  if (milliseconds)
    *milliseconds = (monotonicSeconds() - start) * 1e3 /
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
