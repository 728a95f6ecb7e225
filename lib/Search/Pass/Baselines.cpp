//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The baselines of a search: the network as it was, the operator that the space
// names, and others by name.
//
// Baselines are read back into graphs (`readOperator`, `readSequence`), so they
// pass through the same evaluators as candidates. They are made before the
// search; errors of names are errors of the pass.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Pass/Baselines.h"
#include "kas/Library/Operators.h"
#include "kas/Search/Evaluators/SequenceEvaluators.h"
#include "kas/Search/Operators/ReadOperator.h"
#include "llvm/ADT/TypeSwitch.h"
#include <mutex>

using namespace kas;
using namespace kas::search;
using llvm::Error;
using llvm::Expected;

namespace {
/// The settings are those of the candidates' evaluators, with reports off.
class BaselineBuilder {
public:
  BaselineBuilder(SpaceOp layers, const EvaluatorSettings &given)
      : layers(layers), problem(SearchProblem::get(layers)), settings(given) {
    settings.space = layers;
    // The evaluators of the candidates say it.
    settings.report = nullptr;
  }

  /// Nothing but the name where the space names no operator that can be read.
  /// The network is a baseline even then: a worker that trains can evaluate it.
  Baseline makeNetwork();
  mlir::FailureOr<Baseline> make(llvm::StringRef name);

private:
  /// Fill in the text, the graph and the evaluators of `baseline`. Errors say
  /// why the operation does not fit the layers.
  Error read(OperatorOp op, Baseline &baseline);
  Error read(SequenceOp op, Baseline &baseline);
  /// The operation `name` of the module or, in `library`, of the library. The
  /// library's operator is parsed into a module of its own, which must live as
  /// long as the operation is used.
  mlir::Operation *find(llvm::StringRef name,
                        mlir::OwningOpRef<mlir::ModuleOp> &library);

  SpaceOp layers;
  SearchProblem problem;
  EvaluatorSettings settings;
  /// Evaluators of baselines are made by several threads, operations are made
  /// by one at a time.
  std::shared_ptr<std::mutex> mutex = std::make_shared<std::mutex>();
};
} // namespace

/// The baseline has a problem of its own, made of the operator's symbols and
/// the bindings of the layers.
Error BaselineBuilder::read(OperatorOp op, Baseline &baseline) {
  Expected<GivenOperator> given = readOperator(op, problem);
  if (!given)
    return given.takeError();
  Expected<CandidateText> text =
      makeOperatorDescription(given->problem)(*given->graph);
  if (!text)
    return text.takeError();
  baseline.text = std::move(*text);
  baseline.solution = given->graph;
  EvaluatorSettings own = settings;
  own.problem = given->problem;
  // Captured by value: evaluators are made long after this object is gone.
  baseline.makeEvaluator = [own, mutex = mutex](llvm::StringRef name) {
    std::lock_guard<std::mutex> lock(*mutex);
    return kas::search::makeEvaluator(name, own);
  };
  return Error::success();
}

/// As above, for sequences: their evaluators need a sequence problem.
Error BaselineBuilder::read(SequenceOp op, Baseline &baseline) {
  Expected<GivenSequence> given = readSequence(op, problem);
  if (!given)
    return given.takeError();
  Expected<CandidateText> text =
      makeSequenceDescription(given->problem)(*given->solution);
  if (!text)
    return text.takeError();
  baseline.text = std::move(*text);
  baseline.solution = given->solution;
  baseline.makeEvaluator = [own = settings, problem = given->problem,
                            mutex = mutex](llvm::StringRef name) {
    std::lock_guard<std::mutex> lock(*mutex);
    return makeSequenceEvaluator(name, own, problem);
  };
  return Error::success();
}

mlir::Operation *
BaselineBuilder::find(llvm::StringRef name,
                      mlir::OwningOpRef<mlir::ModuleOp> &library) {
  // Names with the prefix are those of the library, also when the module has a
  // symbol of this name.
  if (name.starts_with("kas.")) {
    library = library::parseNamedOperator(layers.getContext(), name);
    return library ? &library->getBody()->front() : nullptr;
  }
  return mlir::SymbolTable::lookupSymbolIn(layers->getParentOp(), name);
}

/// `kas-extract` notes the library operator that the layers compute. A failure
/// is no error: then only workers can evaluate the network.
Baseline BaselineBuilder::makeNetwork() {
  Baseline network;
  network.name = Baseline::networkName.str();
  network.isNetwork = true;
  auto named = layers->getAttrOfType<mlir::StringAttr>(
      KasDialect::namedOperatorAttrName);
  mlir::OwningOpRef<mlir::ModuleOp> library;
  if (named && named.getValue().starts_with("kas."))
    if (auto op =
            llvm::dyn_cast_or_null<OperatorOp>(find(named.getValue(), library)))
      llvm::consumeError(read(op, network));
  return network;
}

/// Reports an unknown name at the module, a misfit at the operation.
mlir::FailureOr<Baseline> BaselineBuilder::make(llvm::StringRef name) {
  name.consume_front("@");
  Baseline baseline;
  baseline.name = name.str();
  mlir::OwningOpRef<mlir::ModuleOp> library;
  mlir::Operation *op = find(name, library);
  if (!llvm::isa_and_nonnull<OperatorOp, SequenceOp>(op))
    return mlir::emitError(layers->getParentOp()->getLoc())
           << "requires a kas.operator or a kas.sequence @" << name
           << " in the module, or kas.NAME of the library, as a baseline, got "
              "none of that name";
  Error error = llvm::TypeSwitch<mlir::Operation *, Error>(op)
                    .Case<OperatorOp, SequenceOp>(
                        [&](auto found) { return read(found, baseline); });
  if (error)
    // Operations of the library have no location of use to the user.
    return mlir::emitError(library ? layers.getLoc() : op->getLoc())
           << "the baseline '" << name
           << "' does not fit the layers: " << llvm::toString(std::move(error));
  return baseline;
}

/// The network comes first, so it gets the reserved identifier.
mlir::FailureOr<std::vector<Baseline>>
kas::search::makeBaselines(SpaceOp layers, llvm::ArrayRef<std::string> names,
                           const EvaluatorSettings &settings) {
  BaselineBuilder builder(layers, settings);
  std::vector<Baseline> baselines{builder.makeNetwork()};
  for (const std::string &name : names) {
    mlir::FailureOr<Baseline> baseline = builder.make(name);
    if (mlir::failed(baseline))
      return mlir::failure();
    if (llvm::any_of(baselines, [&](const Baseline &other) {
          return other.name == baseline->name;
        }))
      return mlir::emitError(layers->getParentOp()->getLoc())
             << "requires different baselines, got '" << baseline->name
             << "' twice";
    baselines.push_back(std::move(*baseline));
  }
  return baselines;
}
