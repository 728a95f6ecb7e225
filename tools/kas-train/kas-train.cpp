//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// kas-train: trains the network of an MLIR file on a data set, without Python.
//
//===----------------------------------------------------------------------===//

#include "KasTrain.h"
#include "kas/Support/CommandLine.h"
#include "kas/Support/Signals.h"
#include "kas/Support/Version.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"

using namespace kas;
using namespace kas::networks;
using namespace kas::training;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
namespace cl = llvm::cl;

namespace {

struct Options {
  cl::OptionCategory category{"kas-train options"};
  cl::opt<std::string> file{cl::Positional, cl::Required, cl::desc("FILE.mlir"),
                            cl::cat(category)};
  cl::opt<std::string> function{
      "function", cl::value_desc("name"), cl::init("forward"),
      cl::desc("The function that computes the network (default: forward)"),
      cl::cat(category)};
  cl::opt<std::string> data{
      "data", cl::value_desc("spec"), cl::Required,
      cl::desc("Examples: fashion-mnist, mnist:FOLDER, idx:IMAGES,LABELS, "
               "npy:IMAGES,LABELS, npz:FILE, cifar10:FOLDER, cifar100:FOLDER"),
      cl::cat(category)};
  cl::opt<std::string> test{
      "test", cl::value_desc("spec"),
      cl::desc("Examples for testing at the end (default: that part of --data; "
               "none: no test)"),
      cl::cat(category)};
  cl::opt<int64_t> validation{
      "validation", cl::init(0),
      cl::desc("Examples that are not trained with but give an accuracy after "
               "each epoch"),
      cl::cat(category)};
  cl::opt<int64_t> limit{
      "limit", cl::init(0),
      cl::desc("Train with so many of the others (default: all)"),
      cl::cat(category)};
  cl::opt<int64_t> splitSeed{
      "split-seed", cl::init(-1),
      cl::desc("Draws both by this seed (default: the last ones, the first "
               "ones)"),
      cl::cat(category)};
  cl::opt<int64_t> epochs{"epochs", cl::init(10),
                          cl::desc("Passes over the examples (default: 10)"),
                          cl::cat(category)};
  cl::opt<double> learningRate{
      "learning-rate", cl::init(0.1),
      cl::desc("The largest learning rate (default: 0.1)"), cl::cat(category)};
  cl::alias stepSize{"step-size", cl::Hidden, cl::aliasopt(learningRate),
                     cl::desc("The former name of --learning-rate"),
                     cl::cat(category)};
  cl::opt<std::string> schedule{
      "schedule", cl::init("cosine"),
      cl::desc("How it changes: constant, milestones, cosine (default), "
               "one-cycle, and their options, as in cosine:warm-up=5%"),
      cl::cat(category)};
  cl::opt<OptimizerKind> optimizer{
      "optimizer", cl::init(OptimizerKind::SGD),
      cl::desc("How parameters are changed"),
      cl::values(clEnumValN(OptimizerKind::SGD, "sgd",
                            "gradient descent with momentum (default)"),
                 clEnumValN(OptimizerKind::AdamW, "adamw", "AdamW")),
      cl::cat(category)};
  cl::opt<double> momentum{"momentum", cl::init(0.9),
                           cl::desc("Of SGD (default: 0.9)"),
                           cl::cat(category)};
  cl::opt<bool> nesterov{"nesterov", cl::desc("SGD looks ahead by it"),
                         cl::cat(category)};
  cl::opt<double> weightDecay{
      "weight-decay", cl::init(0),
      cl::desc("Of parameters of rank 2 or more (default: 0)"),
      cl::cat(category)};
  cl::opt<double> labelSmoothing{
      "label-smoothing", cl::init(0),
      cl::desc("The share of the target that all classes have in equal parts"),
      cl::cat(category)};
  cl::opt<double> clipNorm{
      "clip-norm", cl::init(0),
      cl::desc("The norm that all gradients together are cut to (0: any)"),
      cl::cat(category)};
  cl::opt<std::string> augmentation{
      "augment", cl::value_desc("changes"),
      cl::desc("Random changes of images: crop=PIXELS, shift=PIXELS, flip, "
               "with commas between them"),
      cl::cat(category)};
  cl::opt<std::string> stop{
      "stop", cl::value_desc("rules"),
      cl::desc("Ends early: patience=EPOCHS, improvement=ACCURACY, "
               "milestones=STEP:ACCURACY+..."),
      cl::cat(category)};
  cl::opt<uint64_t> seed{
      "seed", cl::init(0),
      cl::desc("Of parameters, and of the order and changes of examples"),
      cl::cat(category)};
  cl::opt<unsigned> threads{"threads", cl::init(1),
                            cl::desc("Threads of parallel loops (default: 1)"),
                            cl::cat(category)};
  cl::opt<bool> winograd{
      "winograd", cl::init(true),
      cl::desc("Convolutions of 3x3 by fewer products, less exactly (default: "
               "true)"),
      cl::cat(category)};
  cl::opt<std::string> weights{"weights", cl::value_desc("file.npz"),
                               cl::desc("Parameters to begin with, by name"),
                               cl::cat(category)};
  cl::opt<std::string> output{"o", cl::value_desc("file.npz"),
                              cl::desc("Write the trained parameters"),
                              cl::cat(category)};
  cl::opt<std::string> checkpoint{
      "checkpoint", cl::value_desc("file"),
      cl::desc("Kept after each epoch; where it is there, training goes on "
               "from it"),
      cl::cat(category)};
  cl::opt<bool> json{"json", cl::desc("Report as JSON lines"),
                     cl::cat(category)};
  cl::opt<bool> worker{
      "worker",
      cl::desc("Train the network with each operator that a line of the "
               "standard input has, for the evaluator 'training'"),
      cl::cat(category)};
  cl::opt<std::string> space{
      "space", cl::value_desc("name"),
      cl::desc("--worker: the space (kas.space) whose layers they replace"),
      cl::cat(category)};

  Expected<TrainSettings> get() const;
};

} // namespace

Expected<TrainSettings> Options::get() const {
  TrainSettings settings;
  settings.file = file;
  settings.function = function;
  settings.data.train = data;
  settings.data.hasTest = test != "none";
  if (settings.data.hasTest)
    settings.data.test = test;
  settings.data.validation = validation;
  settings.data.limit = limit;
  if (splitSeed >= 0)
    settings.data.seed = static_cast<uint64_t>(splitSeed.getValue());
  TrainingStepOptions &step = settings.program.step;
  step.optimizer = optimizer;
  step.momentum = momentum;
  step.nesterov = nesterov;
  step.weightDecay = weightDecay;
  step.labelSmoothing = labelSmoothing;
  step.clipNorm = clipNorm;
  settings.program.threads = threads;
  settings.program.winograd = winograd;
  TrainerOptions &trainer = settings.trainer;
  trainer.epochs = epochs;
  trainer.learningRate = learningRate;
  trainer.schedule = schedule;
  trainer.stop = stop;
  trainer.seed = seed;
  auto changes = parseAugmentation(augmentation);
  if (!changes)
    return changes.takeError();
  trainer.augmentation = *changes;
  settings.weights = weights;
  settings.output = output;
  settings.checkpoint = checkpoint;
  settings.json = json;
  settings.space = space;
  if (threads < 1)
    return createStringError("requires at least one thread, got 0");
  if (worker && (!output.empty() || !checkpoint.empty() || !weights.empty()))
    return createStringError(
        "--worker requires that -o, --checkpoint and --weights are not given");
  if (worker == space.empty())
    return createStringError("requires both of --worker and --space or none");
  return settings;
}

static Error run(const Options &options) {
  auto settings = options.get();
  if (!settings)
    return settings.takeError();
  return options.worker ? runWorker(*settings) : trainFile(*settings);
}

int main(int argc, char **argv) {
  kas::ignoreFileSizeSignal();
  kas::addVersionPrinter();
  llvm::InitLLVM initialize(argc, argv);
  removeLibraryOptions();
  Options options;
  cl::HideUnrelatedOptions(options.category);
  if (!cl::ParseCommandLineOptions(
          argc, argv, "Train a network on a data set\n", &llvm::errs()))
    return 1;
  if (Error error = run(options)) {
    llvm::WithColor::error(llvm::errs(), "kas-train")
        << llvm::toString(std::move(error)) << "\n";
    return 1;
  }
  return 0;
}
