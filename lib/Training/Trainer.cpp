//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Trains a compiled network: epochs, evaluation, and the state of a checkpoint.
//
//===----------------------------------------------------------------------===//

#include "kas/Training/Trainer.h"
#include "NumberText.h"
#include "kas/ExecutionEngine/Timing.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/xxhash.h"

using namespace kas;
using namespace kas::execution;
using namespace kas::training;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

/// The label of what fills the last batch: no sample.
static constexpr int32_t noSample = -1;

/// What batches of `data` for `program` have in common.
static Expected<BatchOptions> makeBatchOptions(const TrainingProgram &program,
                                               const Dataset &data,
                                               const TrainerOptions &options) {
  BatchOptions batches;
  batches.batchSize = program.getBatchSize();
  batches.seed = options.seed;
  batches.border = options.border;
  batches.normalization = options.normalization;
  batches.paddingLabel = noSample;
  ArrayRef<int64_t> wanted = program.getDataShape().drop_front();
  if (data.getNumClasses() > program.getNumClasses())
    return createStringError(
        "requires a network of at least as many classes as the data has, " +
        llvm::Twine(data.getNumClasses()) + ", got " +
        llvm::Twine(program.getNumClasses()));
  // Vectors are what images are in memory.
  int64_t elements = 1;
  for (int64_t size : wanted)
    elements *= size;
  if (data.hasImages() && wanted.size() == 3 &&
      wanted.front() == data.getShape().front()) {
    batches.height = wanted[1];
    batches.width = wanted[2];
    return batches;
  }
  if (elements != data.getNumElements())
    return createStringError("requires examples of the shape " +
                             shapeToString(wanted) + ", got " +
                             shapeToString(data.getShape()));
  return batches;
}

static Expected<BatchLoader> makeLoader(const TrainingProgram &program,
                                        const Dataset &data,
                                        const TrainerOptions &options,
                                        bool isTraining) {
  auto batches = makeBatchOptions(program, data, options);
  if (!batches)
    return batches.takeError();
  batches->shuffle = batches->dropLast = isTraining;
  if (isTraining)
    batches->augmentation = options.augmentation;
  return BatchLoader::create(data, *batches);
}

Trainer::Trainer(std::shared_ptr<const TrainingProgram> program,
                 TrainerOptions options, BatchLoader loader, Schedule schedule,
                 StopRule rule)
    : program(std::move(program)), options(std::move(options)),
      loader(std::move(loader)), schedule(std::move(schedule)),
      rule(std::move(rule)) {}

Expected<Trainer>
Trainer::create(std::shared_ptr<const TrainingProgram> program,
                const DataSplits &data, const TrainerOptions &given,
                const NamedTensors &parameters) {
  if (given.epochs < 1)
    return createStringError("requires at least one epoch, got " +
                             llvm::Twine(given.epochs));
  TrainerOptions options = given;
  if (!options.normalization)
    options.normalization = computeNormalization(data.train);
  auto loader = makeLoader(*program, data.train, options, true);
  if (!loader)
    return loader.takeError();
  auto schedule = parseSchedule(options.schedule, options.stepSize,
                                options.epochs * loader->getNumBatches());
  if (!schedule)
    return schedule.takeError();
  auto rule = parseStopRule(options.stop);
  if (!rule)
    return rule.takeError();
  Trainer trainer(program, options, std::move(*loader), std::move(*schedule),
                  std::move(*rule));
  trainer.examples = data.train.checkSum();
  if (data.validation) {
    auto validation = makeLoader(*program, *data.validation, options, false);
    if (!validation)
      return validation.takeError();
    trainer.validation = std::move(*validation);
    trainer.examples += " " + data.validation->checkSum();
  }
  auto state = program->makeState(parameters, options.seed);
  if (!state)
    return state.takeError();
  trainer.state = std::move(*state);
  for (const Tensor &tensor : trainer.state)
    trainer.spare.emplace_back(tensor.getShape());
  return trainer;
}

/// The sums over all batches of `loader`, as means.
static Expected<Evaluation> evaluateAll(const TrainingProgram &program,
                                        const BatchLoader &loader,
                                        const TrainingState &state) {
  std::vector<float> data(loader.getNumElements() * loader.getBatchSize());
  std::vector<float> labels(loader.getBatchSize());
  Epoch epoch = loader.startEpoch(0);
  double loss = 0, correct = 0;
  for (int64_t batch = 0; batch < epoch.getNumBatches(); ++batch) {
    epoch.fill(batch, data, llvm::MutableArrayRef(labels));
    auto outcome = program.evaluate(data, labels, state);
    if (!outcome)
      return outcome.takeError();
    loss += outcome->loss * static_cast<double>(loader.getBatchSize());
    correct += outcome->correct;
  }
  auto count = static_cast<double>(loader.getDataset().size());
  return Evaluation{loss / count, correct / count};
}

Expected<Evaluation> Trainer::evaluate(const Dataset &data) const {
  auto loader = makeLoader(*program, data, options, false);
  if (!loader)
    return loader.takeError();
  return evaluateAll(*program, *loader, state);
}

NamedTensors Trainer::getParameters() const {
  NamedTensors parameters;
  for (unsigned place : program->getParameterPlaces())
    parameters[program->getState()[place].name] = state[place].clone();
  return parameters;
}

Expected<EpochReport> Trainer::trainEpoch() {
  assert(!isDone() && "the training is over");
  double start = monotonicSeconds();
  Epoch batches = loader.startEpoch(epoch);
  int64_t numBatches = batches.getNumBatches();
  std::vector<float> data(loader.getNumElements() * loader.getBatchSize());
  std::vector<float> labels(loader.getBatchSize());
  EpochReport report;
  int64_t done = 0;
  for (; done < numBatches && !report.stopped; ++done) {
    int64_t step = epoch * numBatches + done;
    batches.fill(done, data, llvm::MutableArrayRef(labels));
    auto outcome = program->step(
        data, labels, {schedule.getStepSize(step), options.seed, step}, state,
        spare);
    if (!outcome)
      return outcome.takeError();
    report.training.loss += outcome->loss;
    report.training.accuracy += outcome->correct;
    report.stopped = StopRule::checkLoss(step, outcome->loss);
  }
  report.training.loss /= static_cast<double>(done);
  report.training.accuracy /= static_cast<double>(done * loader.getBatchSize());
  report.epoch = ++epoch;
  report.step = (epoch - 1) * numBatches + done;
  double trained = monotonicSeconds();
  report.trainingSeconds = trained - start;
  if (validation && !report.stopped) {
    auto evaluation = evaluateAll(*program, *validation, state);
    if (!evaluation)
      return evaluation.takeError();
    report.validation = *evaluation;
    accuracy = evaluation->accuracy;
    report.stopped = rule.observe(report.step, *accuracy);
  }
  report.evaluationSeconds = monotonicSeconds() - trained;
  stopped = report.stopped.has_value();
  return report;
}

//===----------------------------------------------------------------------===//
// Checkpoints
//===----------------------------------------------------------------------===//

/// All that the state after a step follows from: what people choose in words,
/// what would be long as a check sum.
std::string Trainer::getDescription() const {
  std::string network = program->getDescription(), text;
  llvm::raw_string_ostream networkStream(network);
  for (ArrayRef<double> numbers :
       {ArrayRef<double>(options.stepSize),
        ArrayRef<double>(options.normalization->mean),
        ArrayRef<double>(options.normalization->deviation)})
    for (double number : numbers)
      networkStream << " " << llvm::bit_cast<uint64_t>(number);
  const Augmentation &changes = options.augmentation;
  llvm::raw_string_ostream(text)
      << "network " << llvm::utohexstr(llvm::xxh3_64bits(network))
      << " examples " << examples << " epochs " << options.epochs
      << " schedule " << options.schedule << " " << toText(options.stepSize)
      << " stop '" << options.stop << "' seed " << options.seed << " crop "
      << changes.crop << " shift " << changes.shift << " flip " << changes.flip
      << " border " << static_cast<int>(options.border);
  return text;
}

llvm::SmallVector<NamedBuffer>
Trainer::getBuffers(TrainingState &tensors) const {
  llvm::SmallVector<NamedBuffer> buffers;
  for (auto [signature, tensor] : llvm::zip_equal(program->getState(), tensors))
    buffers.push_back({signature.name, signature.shape, tensor.data()});
  return buffers;
}

Error Trainer::save(llvm::StringRef path) const {
  Counters counters{
      {"epoch", static_cast<uint64_t>(epoch)},
      {"stopped", stopped},
      {"has-accuracy", accuracy.has_value()},
      {"accuracy", llvm::bit_cast<uint64_t>(accuracy.value_or(0))}};
  rule.save(counters);
  // What is written is not changed.
  return writeCheckpoint(path, getDescription(), counters,
                         getBuffers(const_cast<TrainingState &>(state)));
}

Error Trainer::restore(llvm::StringRef path) {
  // Read beside, so that an error leaves everything as it was.
  auto counters = readCheckpoint(path, getDescription(), getBuffers(spare));
  if (!counters)
    return counters.takeError();
  for (const char *name : {"epoch", "stopped", "has-accuracy", "accuracy"})
    if (!counters->count(name))
      return createStringError("requires a checkpoint with the counter '" +
                               llvm::Twine(name) + "', found none in '" + path +
                               "'");
  if (Error error = rule.restore(*counters))
    return error;
  std::swap(state, spare);
  epoch = static_cast<int64_t>(counters->at("epoch"));
  stopped = counters->at("stopped") != 0;
  if (counters->at("has-accuracy"))
    accuracy = llvm::bit_cast<double>(counters->at("accuracy"));
  else
    accuracy.reset();
  return Error::success();
}
