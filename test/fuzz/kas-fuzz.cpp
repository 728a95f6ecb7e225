//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parses, verifies and prints many mutated texts in one process. Each must end
// in success or in a diagnostic; a crash, a failure without a diagnostic, a
// printed form that does not parse, or more than --limit seconds of the
// processor for one text ends the run with exit code 1 and leaves the text in
// --save.
//
//===----------------------------------------------------------------------===//

#include "Corpus.h"
#include "Mutator.h"
#include "TimeLimit.h"
#include "kas/InitAll.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Regex.h"
#include <csignal>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/common_interface_defs.h>
#define KAS_HAS_SANITIZER
#endif
#endif

using namespace mlir;

static llvm::cl::list<std::string>
    corpusPaths(llvm::cl::Positional, llvm::cl::OneOrMore,
                llvm::cl::desc("<.mlir files or folders of them>"));
static llvm::cl::opt<unsigned> count("count", llvm::cl::init(1000),
                                     llvm::cl::desc("number of texts"));
static llvm::cl::opt<uint64_t> seed("seed", llvm::cl::init(1),
                                    llvm::cl::desc("seed of the mutations"));
static llvm::cl::opt<unsigned>
    limit("limit", llvm::cl::init(5),
          llvm::cl::desc("seconds of the processor that one text may take"));
static llvm::cl::opt<std::string>
    pipeline("pass-pipeline",
             llvm::cl::desc("passes that valid texts go through, without "
                            "'builtin.module(...)' around them"));
static llvm::cl::opt<std::string>
    savePath("save", llvm::cl::init("kas-fuzz-failure.mlir"),
             llvm::cl::desc("file for the text that failed"));

/// What a signal handler needs: the text at work, and where to write it.
static std::string currentText;
static std::string currentSavePath;

/// Writes the text at work; only calls that a signal handler may make.
static void saveCurrentText() {
  int file = open(currentSavePath.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0)
    return;
  const char *data = currentText.data();
  for (size_t left = currentText.size(); left;) {
    ssize_t written = write(file, data, left);
    if (written <= 0)
      break;
    data += written;
    left -= written;
  }
  close(file);
}

static void fail(llvm::StringRef reason) {
  saveCurrentText();
  llvm::errs() << "error: " << reason << "; the text is in " << currentSavePath
               << "\n";
  llvm::errs().flush();
  _exit(1);
}

extern "C" void handleSignal(int signal) {
  saveCurrentText();
  const char *message = kas::fuzz::isTimeLimit(signal)
                            ? "error: the text took too long\n"
                            : "error: the text crashed the parser\n";
  (void)!write(STDERR_FILENO, message, strlen(message));
  _exit(1);
}

static void installHandlers() {
  signal(SIGALRM, handleSignal);
  signal(SIGPROF, handleSignal);
#ifdef KAS_HAS_SANITIZER
  // The sanitizer reports crashes itself.
  __sanitizer_set_death_callback(saveCurrentText);
#else
  // On a stack of its own: running out of stack is one of the crashes.
  static std::array<char, 1 << 16> stack;
  stack_t alternative = {};
  alternative.ss_sp = stack.data();
  alternative.ss_size = stack.size();
  sigaltstack(&alternative, nullptr);
  struct sigaction action = {};
  action.sa_handler = handleSignal;
  action.sa_flags = SA_ONSTACK;
  for (int crash : {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE})
    sigaction(crash, &action, nullptr);
#endif
}

static std::unique_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  registry
      .insert<arith::ArithDialect, func::FuncDialect, tensor::TensorDialect>();
  kas::registerAllDialects(registry);
  auto context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

/// True if the passes of --pass-pipeline accept the module.
static bool runPasses(ModuleOp module, const bool &diagnosed) {
  if (pipeline.empty())
    return true;
  PassManager passes(module.getContext(), "builtin.module");
  if (failed(parsePassPipeline(pipeline, passes)))
    fail("--pass-pipeline does not parse");
  bool succeeded = mlir::succeeded(passes.run(module));
  if (!succeeded && !diagnosed)
    fail("the passes rejected a text without a diagnostic");
  return succeeded;
}

/// True if the text is valid. Whatever is wrong must have been said.
static bool runOne(MLIRContext &context, llvm::StringRef text) {
  bool diagnosed = false;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    // A message is printed by every user, so it must survive that.
    std::string message = diagnostic.str();
    diagnosed |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return success();
  });
  ParserConfig config(&context);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, config);
  if (!module) {
    if (!diagnosed)
      fail("a text was rejected without a diagnostic");
    return false;
  }
  for (bool generic : {false, true}) {
    std::string printed;
    llvm::raw_string_ostream stream(printed);
    OpPrintingFlags flags;
    module->print(stream, flags.printGenericOpForm(generic));
    if (!parseSourceString<ModuleOp>(printed, config))
      fail(generic ? "the generic form of a valid text does not parse"
                   : "the printed form of a valid text does not parse");
  }
  return runPasses(*module, diagnosed);
}

/// Whether the text has an operation of linalg without the list of numbers that
/// it needs: upstream's parser of these (release 22) then uses an attribute
/// that is not there.
static bool hitsParserOfLinalg(llvm::StringRef text) {
  static const llvm::Regex list("^[^\n]*(dimensions|permutation) = "
                                "\\[([0-9]{1,18}(, [0-9]{1,18})*)?\\]");
  for (llvm::StringRef name :
       {"linalg.broadcast", "linalg.transpose", "linalg.reduce"})
    for (llvm::StringRef rest = text.split(name).second; !rest.empty();
         rest = rest.split(name).second)
      if (!list.match(rest))
        return true;
  return false;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  llvm::cl::ParseCommandLineOptions(argc, argv,
                                    "fuzz test of the kas dialect\n");
  currentSavePath = savePath;
  kas::registerAllPasses();
  mlir::registerTransformsPasses();
  std::vector<std::string> corpus =
      kas::fuzz::readCorpus({corpusPaths.begin(), corpusPaths.end()});
  if (corpus.empty()) {
    llvm::errs() << "error: the corpus has no text\n";
    return 1;
  }
  installHandlers();
  kas::fuzz::Mutator mutator(corpus, seed);
  std::unique_ptr<MLIRContext> context;
  unsigned valid = 0;
  for (unsigned i = 0; i < count; ++i) {
    // Attributes live as long as their context.
    if (i % 1000 == 0)
      context = makeContext();
    currentText = mutator.next();
    if (hitsParserOfLinalg(currentText))
      continue;
    kas::fuzz::limitTime(limit);
    valid += runOne(*context, currentText);
    kas::fuzz::limitTime(0);
  }
  llvm::outs() << count << " texts from " << corpus.size() << " with seed "
               << seed << ": " << valid << " valid, " << count - valid
               << " rejected with a diagnostic\n";
  return 0;
}
