//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KasTrain.h"
#include "kas/InitAll.h"
#include "kas/Support/ParseModule.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

using namespace kas;
using namespace kas::execution;
using namespace kas::training;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

Expected<Augmentation> kas::training::parseAugmentation(llvm::StringRef text) {
  Augmentation changes;
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (llvm::StringRef part : parts) {
    auto [name, value] = part.split('=');
    int64_t pixels = 0;
    bool isCount = !value.getAsInteger(10, pixels) && pixels >= 0;
    if (part == "flip")
      changes.flip = true;
    else if (name == "crop" && isCount)
      changes.crop = pixels;
    else if (name == "shift" && isCount)
      changes.shift = pixels;
    else
      return createStringError("requires changes of images among crop=PIXELS, "
                               "shift=PIXELS and flip, got '" +
                               part + "'");
  }
  return changes;
}

static void print(const EpochReport &report, bool json) {
  if (json) {
    llvm::json::OStream stream(llvm::outs());
    stream.object([&] {
      stream.attribute("epoch", report.epoch);
      stream.attribute("step", report.step);
      stream.attribute("loss", report.training.loss);
      stream.attribute("training_accuracy", report.training.accuracy);
      if (report.validation) {
        stream.attribute("validation_loss", report.validation->loss);
        stream.attribute("accuracy", report.validation->accuracy);
      }
      stream.attribute("seconds", report.trainingSeconds);
      if (report.stopped)
        stream.attribute("stopped", *report.stopped);
    });
  } else {
    llvm::outs() << llvm::formatv("epoch {0}: loss {1:f4}, accuracy {2:f4}",
                                  report.epoch, report.training.loss,
                                  report.training.accuracy);
    if (report.validation)
      llvm::outs() << llvm::formatv(
          "; validation: loss {0:f4}, accuracy {1:f4}", report.validation->loss,
          report.validation->accuracy);
    llvm::outs() << llvm::formatv("; {0:f1} s", report.trainingSeconds);
    if (report.stopped)
      llvm::outs() << "; stopped: " << *report.stopped;
  }
  llvm::outs() << "\n";
  llvm::outs().flush();
}

static void printTest(const Evaluation &evaluation, bool json) {
  if (!json) {
    llvm::outs() << llvm::formatv("test: loss {0:f4}, accuracy {1:f4}\n",
                                  evaluation.loss, evaluation.accuracy);
    return;
  }
  llvm::json::OStream stream(llvm::outs());
  stream.object([&] {
    stream.attribute("test_loss", evaluation.loss);
    stream.attribute("test_accuracy", evaluation.accuracy);
  });
  llvm::outs() << "\n";
}

static Expected<std::shared_ptr<const TrainingProgram>>
compileFile(const TrainSettings &settings) {
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto module = parseModule(context, settings.file);
  if (!module)
    return module.takeError();
  auto cache = execution::ObjectCache::openOfUser();
  if (!cache)
    return cache.takeError();
  ProgramOptions options = settings.program;
  options.cache = cache->get();
  auto program = TrainingProgram::compile(**module, settings.function, options);
  if (!program)
    return program.takeError();
  return std::make_shared<const TrainingProgram>(std::move(*program));
}

static Expected<Trainer> makeTrainer(const TrainSettings &settings,
                                     const DataSplits &data) {
  auto program = compileFile(settings);
  if (!program)
    return program.takeError();
  NamedTensors given;
  if (!settings.weights.empty()) {
    auto read = readNpz(settings.weights);
    if (!read)
      return read.takeError();
    given = std::move(*read);
  }
  auto trainer = Trainer::create(*program, data, settings.trainer, given);
  if (!trainer || settings.checkpoint.empty() ||
      !llvm::sys::fs::exists(settings.checkpoint))
    return trainer;
  if (Error error = trainer->restore(settings.checkpoint))
    return error;
  return trainer;
}

/// A training is not to be lost for the place where its result goes.
static Error checkFolder(llvm::StringRef path) {
  if (path.empty())
    return Error::success();
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  std::error_code code = llvm::sys::fs::access(
      folder.empty() ? "." : folder, llvm::sys::fs::AccessMode::Write);
  if (!code && llvm::sys::fs::is_directory(path))
    code = std::make_error_code(std::errc::is_a_directory);
  if (!code)
    return Error::success();
  return createStringError("cannot write '" + path + "': " + code.message());
}

Error kas::training::trainFile(const TrainSettings &settings) {
  for (llvm::StringRef path : {settings.output, settings.checkpoint})
    if (Error error = checkFolder(path))
      return error;
  auto data = loadSplits(settings.data);
  if (!data)
    return data.takeError();
  auto trainer = makeTrainer(settings, *data);
  if (!trainer)
    return trainer.takeError();
  while (!trainer->isDone()) {
    auto report = trainer->trainEpoch();
    if (!report)
      return report.takeError();
    print(*report, settings.json);
    if (!settings.checkpoint.empty())
      if (Error error = trainer->save(settings.checkpoint))
        return error;
  }
  if (data->test) {
    auto evaluation = trainer->evaluate(*data->test);
    if (!evaluation)
      return evaluation.takeError();
    printTest(*evaluation, settings.json);
  }
  if (settings.output.empty())
    return Error::success();
  return writeNpz(settings.output, trainer->getParameters());
}
