//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Trains a compiled network: epochs, evaluation, and the state of a checkpoint.
// Epochs over `BatchLoader`, steps by `TrainingProgram`, learning rates by
// `Schedule`, ends by `StopRule` (docs/internals/training.md). Everything that
// a result depends on is an option, and named in checkpoints: a training that
// continues has the same bits as one that was never interrupted.
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
/// Images are brought to the height and width of the network; other examples
/// must have as many elements as it takes.
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
  // The channels must agree; no rule says how to make three of one.
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

/// Training shuffles, drops an incomplete last batch and augments; evaluation
/// takes all examples once, in their order.
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
  // By the statistics of the part for training: the others are not to be known.
  if (!options.normalization)
    options.normalization = computeNormalization(data.train);
  auto loader = makeLoader(*program, data.train, options, true);
  if (!loader)
    return loader.takeError();
  auto schedule = parseSchedule(options.schedule, options.learningRate,
                                // Schedules count steps, not epochs.
                                options.epochs * loader->getNumBatches());
  if (!schedule)
    return schedule.takeError();
  auto rule = parseStopRule(options.stop);
  if (!rule)
    return rule.takeError();
  Trainer trainer(program, options, std::move(*loader), std::move(*schedule),
                  std::move(*rule));
  // A checkpoint belongs to these examples.
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
    // The step reads one state and writes the other; the two are exchanged
    // after it.
    trainer.spare.emplace_back(tensor.getShape());
  return trainer;
}

/// The sums over all batches of `loader`, as means.
/// Padding of the last batch counts as no sample: its loss is 0, and no answer
/// is right.
static Expected<Evaluation> evaluateAll(const TrainingProgram &program,
                                        const BatchLoader &loader,
                                        const TrainingState &state) {
  std::vector<float> data(loader.getNumElements() * loader.getBatchSize());
  std::vector<float> labels(loader.getBatchSize());
  // Evaluation is not shuffled, so the number makes no difference.
  Epoch epoch = loader.startEpoch(0);
  double loss = 0, correct = 0;
  for (int64_t batch = 0; batch < epoch.getNumBatches(); ++batch) {
    epoch.fill(batch, data, llvm::MutableArrayRef(labels));
    auto outcome = program.evaluate(data, labels, state);
    if (!outcome)
      return outcome.takeError();
    // The compiled loss is a mean over the batch with its padding; weighted by
    // the batch size it is a sum again.
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

/// Copies: the next step overwrites these.
NamedTensors Trainer::getParameters() const {
  NamedTensors parameters;
  for (unsigned place : program->getParameterPositions())
    parameters[program->getState()[place].name] = state[place].clone();
  return parameters;
}

Expected<EpochReport> Trainer::trainEpoch() {
  assert(!isDone() && "the training is over");
  double start = monotonicSeconds();
  Epoch batches = loader.startEpoch(epoch);
  int64_t numBatches = batches.getNumBatches();
  // One pair of buffers for all batches.
  std::vector<float> data(loader.getNumElements() * loader.getBatchSize());
  // The compiled functions take labels as f32, which have integers up to 2^24.
  std::vector<float> labels(loader.getBatchSize());
  EpochReport report;
  int64_t done = 0;
  for (; done < numBatches && !report.stopped; ++done) {
    // Steps count over all epochs, also after a restart.
    int64_t step = epoch * numBatches + done;
    batches.fill(done, data, llvm::MutableArrayRef(labels));
    auto outcome = program->step(
        data, labels, {schedule.getLearningRate(step), options.seed, step},
        state, spare);
    if (!outcome)
      return outcome.takeError();
    report.training.loss += outcome->loss;
    report.training.accuracy += outcome->correct;
    // After each step: the rest of the epoch would be wasted.
    report.stopped = StopRule::checkLoss(step, outcome->loss);
  }
  report.training.loss /= static_cast<double>(done);
  // Training batches are full: the incomplete one is dropped.
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
    // Without a part for validation only the loss can stop a training.
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
/// `readCheckpoint` compares it with that of the file, so a difference in any
/// of these is an error and not a training that silently continues another way.
std::string Trainer::getDescription() const {
  std::string network = program->getDescription(), text;
  llvm::raw_string_ostream networkStream(network);
  for (ArrayRef<double> numbers :
       {ArrayRef<double>(options.learningRate),
        ArrayRef<double>(options.normalization->mean),
        ArrayRef<double>(options.normalization->deviation)})
    for (double number : numbers)
      // By bits: two numbers that print the same may differ.
      networkStream << " " << llvm::bit_cast<uint64_t>(number);
  const Augmentation &changes = options.augmentation;
  llvm::raw_string_ostream(text)
      << "network " << llvm::utohexstr(llvm::xxh3_64bits(network))
      << " examples " << examples << " epochs " << options.epochs
      << " schedule " << options.schedule << " " << toText(options.learningRate)
      << " stop '" << options.stop << "' seed " << options.seed << " crop "
      << changes.crop << " shift " << changes.shift << " flip " << changes.flip
      << " border " << static_cast<int>(options.border);
  return text;
}

/// The tensors of a state with their names, as checkpoints take them; the data
/// is not copied.
llvm::SmallVector<NamedBuffer>
Trainer::getBuffers(TrainingState &tensors) const {
  llvm::SmallVector<NamedBuffer> buffers;
  for (auto [signature, tensor] : llvm::zip_equal(program->getState(), tensors))
    buffers.push_back({signature.name, signature.shape, tensor.data()});
  return buffers;
}

/// The state of parameters and optimizer as arrays, everything else as
/// counters.
Error Trainer::save(llvm::StringRef path) const {
  Counters counters{
      // As bits where a number is no integer.
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
  // Its own checks are the last that can fail.
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
