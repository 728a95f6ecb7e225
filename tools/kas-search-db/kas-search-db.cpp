//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// kas-search-db: reads the databases that kas-search writes. A tool of its own,
// not a translation: a database is a file that SQLite must open and lock by its
// name, not a buffer, and two of them make one.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Search/Core/SearchStore.h"
#include "kas/Search/Operators/Score.h"
#include "kas/Support/CommandLine.h"
#include "kas/Support/NearName.h"
#include "kas/Support/OutputFile.h"
#include "kas/Support/Signals.h"
#include "kas/Support/Version.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/WithColor.h"
#include <limits>
#include <set>

using namespace kas;
using namespace kas::search;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
namespace cl = llvm::cl;

namespace {

enum class OutcomeState { Any, Asked, Evaluated, Failed };

struct Options {
  cl::OptionCategory category{"kas-search-db options"};
  // A text: LLVM ignores errors of positional options.
  cl::opt<std::string> action{cl::Positional, cl::Required,
                              cl::desc("list|export|merge|check"),
                              cl::cat(category)};
  cl::list<std::string> files{cl::Positional, cl::OneOrMore,
                              cl::desc("FILE..."), cl::cat(category)};
  cl::opt<std::string> output{
      "o", cl::value_desc("file"), cl::init("-"),
      cl::desc("Where to write (default: standard output)"), cl::cat(category)};
  cl::opt<bool> json{"json", cl::desc("list: one JSON object per line"),
                     cl::cat(category)};
  cl::opt<std::string> sort{
      "sort", cl::value_desc("metric"),
      cl::desc("Smallest first; what lacks the metric last (default: in the "
               "order of proposal)"),
      cl::cat(category)};
  cl::opt<uint64_t> top{"top", cl::value_desc("N"), cl::init(0),
                        cl::desc("The first N only (0: all)"),
                        cl::cat(category)};
  cl::opt<OutcomeState> state{
      "state", cl::init(OutcomeState::Any),
      cl::desc("Only candidates of this state (export: default evaluated)"),
      cl::values(
          clEnumValN(OutcomeState::Asked, "asked", "proposed, without outcome"),
          clEnumValN(OutcomeState::Evaluated, "evaluated", "with metrics"),
          clEnumValN(OutcomeState::Failed, "failed",
                     "whose evaluation failed")),
      cl::cat(category)};
};

} // namespace

static OutcomeState getState(const StoredCandidate &candidate) {
  if (!candidate.outcome)
    return OutcomeState::Asked;
  return std::holds_alternative<Failure>(*candidate.outcome)
             ? OutcomeState::Failed
             : OutcomeState::Evaluated;
}

static llvm::StringRef getStateName(const StoredCandidate &candidate) {
  OutcomeState state = getState(candidate);
  return state == OutcomeState::Asked    ? "asked"
         : state == OutcomeState::Failed ? "failed"
                                         : "evaluated";
}

static std::optional<double> getMetric(const StoredCandidate &candidate,
                                       const std::string &name) {
  if (!candidate.outcome)
    return std::nullopt;
  const auto *metrics = std::get_if<Metrics>(&*candidate.outcome);
  if (!metrics)
    return std::nullopt;
  auto found = metrics->find(name);
  return found == metrics->end() ? std::nullopt : std::optional(found->second);
}

/// The metrics that the candidates have.
static std::set<std::string>
getMetricNames(llvm::ArrayRef<StoredCandidate> candidates) {
  std::set<std::string> names;
  for (const StoredCandidate &candidate : candidates)
    if (candidate.outcome)
      if (const auto *metrics = std::get_if<Metrics>(&*candidate.outcome))
        for (const auto &[name, value] : *metrics)
          names.insert(name);
  return names;
}

/// Without any metric there is nothing to sort, and no name is wrong.
static Error checkSort(const std::string &name,
                       llvm::ArrayRef<StoredCandidate> candidates) {
  std::set<std::string> known = getMetricNames(candidates);
  if (name.empty() || known.empty() || known.count(name))
    return Error::success();
  llvm::SmallVector<llvm::StringRef> names(known.begin(), known.end());
  return createStringError("requires a metric of the candidates for --sort, "
                           "of " +
                           llvm::join(names, ", ") + ", got '" + name + "'" +
                           suggestNearName(name, names));
}

/// The candidates that the options choose, in their order.
static Expected<std::vector<StoredCandidate>>
select(const SearchStore &store, const Options &options,
       OutcomeState defaultState) {
  OutcomeState state =
      options.state == OutcomeState::Any ? defaultState : options.state;
  Expected<std::vector<StoredCandidate>> candidates = store.readCandidates();
  if (!candidates)
    return candidates;
  for (StoredCandidate &candidate : *candidates)
    candidate.outcome = candidate.getOutcome();
  if (Error error = checkSort(options.sort, *candidates))
    return error;
  if (state != OutcomeState::Any)
    llvm::erase_if(*candidates, [&](const StoredCandidate &candidate) {
      return getState(candidate) != state;
    });
  if (!options.sort.empty())
    llvm::sort(*candidates, [&](const auto &a, const auto &b) {
      constexpr double none = std::numeric_limits<double>::infinity();
      return std::pair(getMetric(a, options.sort).value_or(none), a.id) <
             std::pair(getMetric(b, options.sort).value_or(none), b.id);
    });
  if (options.top && candidates->size() > options.top)
    candidates->resize(options.top);
  return candidates;
}

static void printJson(llvm::raw_ostream &stream,
                      const StoredCandidate &candidate) {
  llvm::json::OStream json(stream);
  json.object([&] {
    json.attribute("id", static_cast<int64_t>(candidate.id));
    // As text: numbers of JSON have 53 bits.
    json.attribute("key", llvm::formatv("{0:x16}", candidate.key).str());
    json.attribute("state", getStateName(candidate));
    if (candidate.parent)
      json.attribute("parent", static_cast<int64_t>(*candidate.parent));
    json.attribute("asked_at", candidate.askedAt);
    if (candidate.outcome) {
      json.attribute("seconds", candidate.seconds);
      if (const auto *failure = std::get_if<Failure>(&*candidate.outcome))
        json.attribute("failure", failure->reason);
      else
        json.attributeObject("metrics", [&] {
          for (const auto &[name, value] :
               std::get<Metrics>(*candidate.outcome))
            json.attribute(name, value);
        });
    }
    json.attribute("operator", candidate.text);
  });
  stream << "\n";
}

static void printTable(llvm::raw_ostream &stream,
                       llvm::ArrayRef<StoredCandidate> candidates) {
  std::set<std::string> names = getMetricNames(candidates);
  stream << llvm::formatv("{0,8} {1,-9}", "id", "state");
  for (const std::string &name : names)
    stream << llvm::formatv(" {0,14}", name);
  stream << "\n";
  for (const StoredCandidate &candidate : candidates) {
    stream << llvm::formatv("{0,8} {1,-9}", candidate.id,
                            getStateName(candidate));
    if (candidate.outcome) {
      if (const auto *failure = std::get_if<Failure>(&*candidate.outcome))
        stream << " " << failure->reason;
      else
        for (const std::string &name : names)
          if (std::optional<double> value = getMetric(candidate, name))
            stream << " " << llvm::format("%14.6g", *value);
          else
            stream << llvm::formatv(" {0,14}", "-");
    }
    stream << "\n";
  }
}

/// To a file, or to the standard output for `-`.
static Error write(llvm::StringRef path,
                   llvm::function_ref<Error(llvm::raw_ostream &)> print) {
  return path == "-" ? print(llvm::outs()) : kas::writeFile(path, print);
}

static Error list(const SearchStore &store, const Options &options) {
  auto candidates = select(store, options, OutcomeState::Any);
  if (!candidates)
    return candidates.takeError();
  return write(options.output, [&](llvm::raw_ostream &stream) {
    if (options.json)
      for (const StoredCandidate &candidate : *candidates)
        printJson(stream, candidate);
    else
      printTable(stream, *candidates);
    return Error::success();
  });
}

/// Parses `text`, an op of the dialect after those that it refers to, to the
/// end of `module`. With a `name` the op gets it, and the others names that
/// begin with it.
static Expected<mlir::Operation *> append(mlir::ModuleOp module,
                                          llvm::StringRef text,
                                          llvm::StringRef what,
                                          llvm::StringRef name = "") {
  auto parsed =
      mlir::parseSourceString<mlir::ModuleOp>(text, module.getContext());
  if (!parsed || parsed->getBody()->empty())
    return createStringError("the database holds no IR of " + what);
  mlir::SymbolTable symbols(*parsed);
  llvm::StringRef old =
      mlir::SymbolTable::getSymbolName(&parsed->getBody()->back());
  for (mlir::Operation &op : *parsed->getBody()) {
    llvm::StringRef ending = mlir::SymbolTable::getSymbolName(&op);
    ending.consume_front(old);
    if (!name.empty() && failed(symbols.rename(&op, (name + ending).str())))
      return createStringError("the database holds no IR of " + what);
  }
  mlir::Operation *last = &parsed->getBody()->back();
  module.getBody()->getOperations().splice(module.getBody()->end(),
                                           parsed->getBody()->getOperations());
  return last;
}

/// Candidates of a network are scripts, each a module of its own.
static Error exportScripts(llvm::ArrayRef<StoredCandidate> candidates,
                           const Options &options) {
  return write(options.output, [&](llvm::raw_ostream &stream) {
    llvm::interleave(
        candidates, stream,
        [&](const StoredCandidate &candidate) {
          stream << "// candidate " << candidate.id << "\n" << candidate.text;
        },
        "\n// -----\n\n");
    return Error::success();
  });
}

static Error exportOperators(const SearchStore &store, const Options &options) {
  auto candidates = select(store, options, OutcomeState::Evaluated);
  if (!candidates)
    return candidates.takeError();
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<KasDialect>();
  mlir::OpBuilder builder(&context);
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::ModuleOp::create(builder.getUnknownLoc());
  auto settings = store.getSettings().find("space");
  if (settings == store.getSettings().end())
    return createStringError("the database names no space");
  if (llvm::StringRef(settings->second).starts_with("func.func"))
    return exportScripts(*candidates, options);
  auto space = append(*module, settings->second, "the space");
  if (!space)
    return space.takeError();
  auto name = mlir::SymbolTable::getSymbolName(*space);
  for (const StoredCandidate &candidate : *candidates) {
    std::string id = std::to_string(candidate.id);
    auto op = append(*module, candidate.text, "candidate " + id,
                     (name.getValue() + "_" + id).str());
    if (!op)
      return op.takeError();
    Metrics metrics;
    if (candidate.outcome)
      if (const auto *known = std::get_if<Metrics>(&*candidate.outcome))
        metrics = *known;
    setScore(*op, metrics, name, candidate.id);
  }
  return write(options.output, [&](llvm::raw_ostream &stream) {
    module->print(stream);
    stream << "\n";
    return Error::success();
  });
}

static Error merge(const SearchStore &first, const Options &options) {
  if (options.output == "-")
    return createStringError("merge requires -o FILE");
  auto second = SearchStore::openToRead(options.files[1]);
  if (!second)
    return second.takeError();
  Expected<MergeCounts> counts = mergeSearches(first, **second, options.output);
  if (!counts)
    return counts.takeError();
  llvm::outs() << counts->candidates << " candidates, " << counts->duplicates
               << " were in both\n";
  return Error::success();
}

static Error run(const Options &options) {
  bool isMerge = options.action == "merge";
  if (!isMerge && options.action != "list" && options.action != "export" &&
      options.action != "check")
    return createStringError("requires list, export, merge or check, got '" +
                             options.action.getValue() + "'");
  size_t wanted = isMerge ? 2 : 1;
  if (options.files.size() != wanted)
    return createStringError(options.action.getValue() + " requires " +
                             llvm::Twine(wanted) +
                             (isMerge ? " files, got " : " file, got ") +
                             llvm::Twine(options.files.size()));
  auto store = SearchStore::openToRead(options.files[0]);
  if (!store)
    return store.takeError();
  if (isMerge)
    return merge(**store, options);
  if (options.action == "list")
    return list(**store, options);
  if (options.action == "export")
    return exportOperators(**store, options);
  return (*store)->checkIntegrity();
}

int main(int argc, char **argv) {
  kas::ignoreFileSizeSignal();
  kas::addVersionPrinter();
  llvm::InitLLVM initialize(argc, argv);
  removeLibraryOptions();
  Options options;
  cl::HideUnrelatedOptions(options.category);
  if (!cl::ParseCommandLineOptions(
          argc, argv,
          "Read databases of searches\n\n"
          "  list FILE            the candidates, as a table or as JSON\n"
          "  export FILE          the operators as MLIR; of a network, "
          "scripts\n"
          "  merge FILE FILE -o   one file of two searches of a space\n"
          "  check FILE           all that can be checked of a file\n",
          &llvm::errs()))
    return 1;
  if (Error error = run(options)) {
    llvm::WithColor::error(llvm::errs(), "kas-search-db")
        << llvm::toString(std::move(error)) << "\n";
    return 1;
  }
  return 0;
}
