//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KasTrain.h"
#include "kas/Dialect/Kas/IR/KasSequenceOps.h"
#include "kas/InitAll.h"
#include "kas/Networks/Sites/Substitute.h"
#include "kas/Support/ParseModule.h"
#include "kas/Support/Requests.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/JSON.h"

using namespace kas;
using namespace kas::networks;
using namespace kas::training;
using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

namespace {

/// The accuracy that a training must exceed after an epoch to go on.
struct Milestone {
  int64_t epoch;
  double accuracy;
};

/// Trains a network with one operator after the other.
class Worker {
public:
  explicit Worker(const TrainSettings &settings) : settings(settings) {
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.disableMultithreading();
  }

  /// Reads the network and the examples.
  Error prepare();
  /// The metrics of a request.
  Expected<llvm::json::Object> train(const llvm::json::Object &request);

private:
  /// What a request is for: the network with a candidate, or itself.
  Expected<OwningOpRef<ModuleOp>>
  readNetwork(const llvm::json::Object &request);
  Expected<OwningOpRef<ModuleOp>> makeNetwork(StringRef text, bool isSequence);

  const TrainSettings &settings;
  std::optional<DataSplits> data;
  DialectRegistry registry;
  MLIRContext context;
  OwningOpRef<ModuleOp> network;
  execution::ObjectCache cache;
};

} // namespace

Error Worker::prepare() {
  auto module = parseModule(context, settings.file);
  if (!module)
    return module.takeError();
  network = std::move(*module);
  if (!network->lookupSymbol<SpaceOp>(settings.space))
    return createStringError("requires a kas.space in the module, found no '" +
                             settings.space + "'");
  auto function = network->lookupSymbol<func::FuncOp>(settings.function);
  if (!function || function.isExternal())
    return createStringError("requires a function with a body, found no '" +
                             settings.function + "'");
  if (settings.data.validation == 0)
    return createStringError("requires examples for validation "
                             "(--validation), by which operators are compared");
  auto loaded = loadSplits(settings.data);
  if (!loaded)
    return loaded.takeError();
  data = std::move(*loaded);
  return Error::success();
}

/// The ops of `text`, of which the last is `OpTy`, in `module`. Its name there.
template <typename OpTy>
static Expected<StringRef> insert(StringRef text, ModuleOp module) {
  auto parsed = parseSourceString<ModuleOp>(text, module.getContext());
  auto last = parsed && !parsed->getBody()->empty()
                  ? dyn_cast<OpTy>(parsed->getBody()->back())
                  : nullptr;
  if (!last)
    return createStringError("requires a " + OpTy::getOperationName() +
                             " as the last op of a candidate");
  FailureOr<StringRef> name = takeOperators(module, *parsed);
  if (failed(name))
    return createStringError("requires a candidate with names of symbols");
  return *name;
}

/// The network with the candidate of `text` in the layers of the space.
Expected<OwningOpRef<ModuleOp>> Worker::makeNetwork(StringRef text,
                                                    bool isSequence) {
  OwningOpRef<ModuleOp> module = network->clone();
  // Other operators of the module are of no concern.
  for (Operation &op : llvm::make_early_inc_range(*module->getBody()))
    if (isa<OperatorOp, SequenceOp>(op))
      op.erase();
  Expected<StringRef> name = isSequence ? insert<SequenceOp>(text, *module)
                                        : insert<OperatorOp>(text, *module);
  if (!name)
    return name.takeError();
  std::string reason;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    llvm::raw_string_ostream(reason)
        << (reason.empty() ? "" : "; ") << diagnostic;
    return success();
  });
  SubstituteOptions options;
  options.operatorName = name->str();
  options.space = settings.space;
  FailureOr<SubstituteResult> result = substitute(*module, options);
  if (failed(result) || result->numReplaced == 0)
    return createStringError("the operator fits no layer: " + reason);
  return module;
}

Expected<OwningOpRef<ModuleOp>>
Worker::readNetwork(const llvm::json::Object &request) {
  if (request.get("network"))
    return OwningOpRef<ModuleOp>(network->clone());
  auto sequence = request.getString("sequence");
  auto text = sequence ? sequence : request.getString("operator");
  if (!text)
    return createStringError(
        "requires an 'operator', a 'sequence' or a 'network'");
  return makeNetwork(*text, sequence.has_value());
}

static Expected<llvm::SmallVector<Milestone>>
readMilestones(const llvm::json::Object &request) {
  llvm::SmallVector<Milestone> milestones;
  const llvm::json::Array *array = request.getArray("milestones");
  if (!array)
    return milestones;
  for (const llvm::json::Value &value : *array) {
    const llvm::json::Object *object = value.getAsObject();
    auto epoch = object ? object->getInteger("epoch") : std::nullopt;
    auto accuracy = object ? object->getNumber("accuracy") : std::nullopt;
    if (!epoch || !accuracy)
      return createStringError("requires milestones that are objects with "
                               "'epoch' and 'accuracy'");
    milestones.push_back({*epoch, *accuracy});
  }
  return milestones;
}

Expected<llvm::json::Object> Worker::train(const llvm::json::Object &request) {
  auto milestones = readMilestones(request);
  if (!milestones)
    return milestones.takeError();
  auto module = readNetwork(request);
  if (!module)
    return module.takeError();
  ProgramOptions options = settings.program;
  options.cache = &cache;
  auto program = TrainingProgram::compile(**module, settings.function, options);
  if (!program)
    return program.takeError();
  auto trainer = Trainer::create(
      std::make_shared<const TrainingProgram>(std::move(*program)), *data,
      settings.trainer);
  if (!trainer)
    return trainer.takeError();

  llvm::json::Object metrics;
  while (!trainer->isDone()) {
    auto report = trainer->trainEpoch();
    if (!report)
      return report.takeError();
    if (!report->validation)
      return createStringError("the training has ended after epoch " +
                               Twine(report->epoch) + ": " +
                               report->stopped.value_or("no accuracy"));
    double accuracy = report->validation->accuracy;
    metrics["accuracy"] = accuracy;
    metrics["epochs"] = report->epoch;
    metrics["loss"] = report->validation->loss;
    const auto *milestone = llvm::find_if(*milestones, [&](const Milestone &m) {
      return m.epoch == report->epoch;
    });
    if (milestone == milestones->end())
      continue;
    metrics[("accuracy_" + Twine(report->epoch)).str()] = accuracy;
    if (accuracy <= milestone->accuracy)
      break;
  }
  return metrics;
}

Error kas::training::runWorker(const TrainSettings &settings) {
  // What takes no time comes first: a search waits but a moment for a worker
  // that cannot work.
  Worker worker(settings);
  if (Error error = worker.prepare())
    return error;
  return answerRequests({}, [&](const llvm::json::Object &request) {
    return worker.train(request);
  });
}
