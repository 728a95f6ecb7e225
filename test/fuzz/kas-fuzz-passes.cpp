//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs passes, pipelines and translations of kas on generated modules, a few on
// each, drawn by the seed. Each must end in success or in a diagnostic. They
// run in a process of their own, which is started again where a run ended it:
// each such run is reported, with its module in --save.
//
//===----------------------------------------------------------------------===//

#include "Corpus.h"
#include "ModuleGenerator.h"
#include "PassRuns.h"
#include "TimeLimit.h"
#include "kas/InitAll.h"
#include "kas/Support/Features.h"
#include "kas/Target/ObjectTranslations.h"
#include "kas/Target/Text.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Signals.h"
#include <csignal>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#if KAS_ENABLE_GPU
#include "kas/Target/GPU/DeviceTranslations.h"
#endif

using namespace kas::fuzz;
using namespace mlir;

static llvm::cl::opt<std::string>
    templatesPath("templates", llvm::cl::Required,
                  llvm::cl::desc("file of templates"));
static llvm::cl::list<std::string>
    corpusPaths("corpus", llvm::cl::CommaSeparated,
                llvm::cl::desc(".mlir files or folders of them"));
static llvm::cl::opt<uint64_t> count("count", llvm::cl::init(1000),
                                     llvm::cl::desc("number of modules"));
static llvm::cl::opt<uint64_t> first("first", llvm::cl::init(0),
                                     llvm::cl::desc("number of the first"));
static llvm::cl::opt<unsigned>
    runsEach("runs", llvm::cl::init(4),
             llvm::cl::desc("runs on each valid module; 0: all"));
static llvm::cl::opt<uint64_t> seed("seed", llvm::cl::init(1),
                                    llvm::cl::desc("seed of all draws"));
static llvm::cl::opt<unsigned>
    limit("limit", llvm::cl::init(10),
          llvm::cl::desc("seconds of the processor that one run may take"));
static llvm::cl::opt<std::string>
    only("only", llvm::cl::desc("the name of the only pass to run"));
static llvm::cl::opt<std::string>
    savePath("save", llvm::cl::init("kas-fuzz-passes"),
             llvm::cl::desc("folder for modules that failed"));
static llvm::cl::opt<bool> traces("traces",
                                  llvm::cl::desc("print the stack of a crash"));

namespace {

/// The progress of a worker process, in memory that its parent reads.
struct Progress {
  uint64_t number, valid, runs;
  /// The index of the run, or -1 before the first.
  int64_t run;
};

/// Ends of more memory than this are errors of the process.
constexpr uint64_t maxMemory = uint64_t(6) << 30;
/// Modules of one process: attributes live as long as their context.
constexpr uint64_t maxModules = 4000;

} // namespace

static std::vector<size_t> drawRuns(std::mt19937_64 &random,
                                    const std::vector<Run> &runs) {
  std::vector<size_t> result;
  for (size_t i = 0; i < runs.size(); ++i)
    if (only.empty() || runs[i].name == only)
      result.push_back(i);
  if (runsEach == 0 || result.size() <= runsEach)
    return result;
  for (size_t i = 0; i < runsEach; ++i)
    std::swap(result[i], result[i + random() % (result.size() - i)]);
  result.resize(runsEach);
  return result;
}

static void report(const Run *run, uint64_t number, const std::string &reason,
                   const std::string &text) {
  std::string name = run ? run->name : "generate";
  (void)llvm::sys::fs::create_directories(savePath.getValue());
  std::string path =
      savePath + "/" + name + "-" + std::to_string(number) + ".mlir";
  std::error_code error;
  llvm::raw_fd_ostream file(path, error);
  if (!error)
    file << "// " << (run ? run->getText() : name) << ": " << reason << "\n"
         << text;
  llvm::errs() << "error: " << (run ? run->getText() : name) << ": " << reason
               << "; the module is in " << path << "\n";
}

/// The work of a process: modules from `begin` on. Never returns.
[[noreturn]] static void work(ModuleGenerator &generator, PassRuns &passes,
                              const DialectRegistry &registry, uint64_t begin,
                              Progress *progress) {
  rlimit memory{maxMemory, maxMemory};
  setrlimit(RLIMIT_AS, &memory);
  rlimit core{0, 0};
  setrlimit(RLIMIT_CORE, &core);
  if (traces)
    llvm::sys::PrintStackTraceOnErrorSignal("kas-fuzz-passes");
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  const std::vector<Run> &runs = passes.getRuns();
  bool failed = false;
  uint64_t end = std::min<uint64_t>(first + count, begin + maxModules);
  for (uint64_t number = begin; number < end; ++number) {
    progress->number = number;
    progress->run = -1;
    limitTime(limit);
    std::string text = generator.make(context, seed, number);
    OwningOpRef<ModuleOp> module;
    {
      ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) {});
      module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
    }
    if (!module)
      continue;
    ++progress->valid;
    std::seed_seq both{seed.getValue(), number, uint64_t(1)};
    std::mt19937_64 random(both);
    for (size_t index : drawRuns(random, runs)) {
      progress->run = static_cast<int64_t>(index);
      ++progress->runs;
      limitTime(limit);
      if (auto reason = passes.execute(runs[index], *module, text)) {
        report(&runs[index], number, *reason, text);
        failed = true;
      }
    }
  }
  progress->number = end;
  limitTime(0);
  // The destructors of everything take as long as they like.
  llvm::errs().flush();
  _exit(failed ? 1 : 0);
}

/// Starts processes until all modules are done; the number of runs that failed
/// or ended their process.
static unsigned runAll(ModuleGenerator &generator, PassRuns &passes,
                       const DialectRegistry &registry, Progress *progress) {
  unsigned failures = 0;
  for (uint64_t begin = first; begin < first + count;) {
    llvm::outs().flush();
    pid_t child = fork();
    if (child == 0)
      work(generator, passes, registry, begin, progress);
    int status = 0;
    waitpid(child, &status, 0);
    begin = progress->number;
    if (WIFEXITED(status) && WEXITSTATUS(status) <= 1) {
      failures += WEXITSTATUS(status);
      continue;
    }
    ++failures;
    ++begin;
    const Run *run =
        progress->run < 0 ? nullptr : &passes.getRuns()[progress->run];
    std::string reason = !WIFSIGNALED(status) ? "ended the process"
                         : isTimeLimit(WTERMSIG(status))
                             ? "took more than " + std::to_string(limit) + " s"
                             : "signal " + std::to_string(WTERMSIG(status));
    MLIRContext context(registry, MLIRContext::Threading::DISABLED);
    context.loadAllAvailableDialects();
    // Operations that end their own parser are no errors of kas.
    if (run)
      report(run, progress->number, reason,
             generator.make(context, seed, progress->number));
    else
      --failures;
  }
  return failures;
}

/// Templates that are wrong test nothing.
static bool checkTemplates(ModuleGenerator &generator,
                           const DialectRegistry &registry) {
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  bool good = true;
  for (size_t i = 0; i < generator.getNumTemplates(); ++i) {
    std::string text = generator.instantiate(i, seed);
    if (parseSourceString<ModuleOp>(text, ParserConfig(&context)))
      continue;
    llvm::errs() << "error: template " << i << " is no module:\n" << text;
    good = false;
  }
  return good;
}

int main(int argc, char **argv) {
  kas::registerAllPasses();
  kas::target::registerTranslations([] { return std::string(); });
  kas::target::registerTextTranslations(
      [] { return std::string("N=1,C=4,Cin=2,Cout=2,W=4,k=3"); });
#if KAS_ENABLE_GPU
  kas::target::registerGPUTranslations();
#endif
  PassRuns passes;
  llvm::cl::ParseCommandLineOptions(argc, argv, "fuzz test of all passes\n");
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  kas::registerAllDialects(registry);

  auto file = llvm::MemoryBuffer::getFile(templatesPath);
  if (!file) {
    llvm::errs() << "error: cannot read '" << templatesPath << "'\n";
    return 1;
  }
  ModuleGenerator generator(
      splitTemplates((*file)->getBuffer()),
      readCorpus({corpusPaths.begin(), corpusPaths.end()}));
  if (!checkTemplates(generator, registry))
    return 1;
  auto *progress = static_cast<Progress *>(
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  *progress = {};
  unsigned failures = runAll(generator, passes, registry, progress);
  llvm::outs() << count << " modules with seed " << seed << ": "
               << progress->valid << " valid, " << progress->runs << " runs of "
               << passes.getRuns().size() << ", " << failures << " failures\n";
  return failures ? 1 : 0;
}
