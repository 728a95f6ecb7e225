//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Specifications of data sets, and which files each of them reads.
// A specification is a format with paths and options, such as
// `npz:digits.npz,classes=10` or `cifar10:FOLDER` (docs/guide/training.md). A
// new format is a line in `getFormats` and a function that makes a `Dataset`.
//
//===----------------------------------------------------------------------===//

#include "DataFiles.h"
#include "kas/ExecutionEngine/Tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace kas;
using namespace kas::training;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

/// Where Debian's package dataset-fashion-mnist has its files.
static constexpr StringRef fashionMnistFolder =
    "/usr/share/datasets/fashion-mnist";

namespace {

/// A specification, taken apart.
struct Spec {
  StringRef format;
  llvm::SmallVector<StringRef, 2> paths;
  /// Nothing: one more than the largest label.
  std::optional<int64_t> numClasses;
  /// Of images of rank 3; examples in memory are always [C, H, W].
  Layout layout = Layout::NCHW;
};

/// What follows the name of a format.
struct Format {
  StringRef name;
  /// The names of its paths, as messages have them.
  llvm::SmallVector<StringRef, 2> paths;
  /// Which options it takes.
  bool hasClasses = false, hasLayout = false;
  /// Reads one part; formats of a single part refuse the other.
  Expected<Dataset> (*load)(const Spec &spec, DatasetPart part);
};

} // namespace

/// The path of a file of a data set.
static std::string inFolder(StringRef folder, const Twine &name) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

using ArrayParser = Expected<DataArray> (*)(const DataFile &);

/// The array of one file. Errors name it.
static Expected<DataArray> readArray(StringRef path, ArrayParser parse) {
  auto file = openDataFile(path);
  if (!file)
    return file.takeError();
  auto array = parse(*file);
  if (!array)
    return inFile(path, array.takeError());
  return array;
}

/// A data set of two arrays, from these files.
/// Errors of one array name its file, those of both name both.
static Expected<Dataset> makeDataset(const ArrayPair &arrays,
                                     StringRef examplesPath,
                                     StringRef labelsPath, const Spec &spec) {
  auto examples = makeExamples(arrays.examples, spec.layout);
  if (!examples)
    return inFile(examplesPath, examples.takeError());
  auto labels = makeLabels(arrays.labels);
  if (!labels)
    return inFile(labelsPath, labels.takeError());
  auto data = Dataset::create(std::move(*examples), *labels, spec.numClasses);
  if (data)
    return data;
  if (examplesPath == labelsPath)
    return inFile(examplesPath, data.takeError());
  return createStringError("'" + examplesPath + "', '" + labelsPath +
                           "': " + llvm::toString(data.takeError()));
}

/// Examples and labels in two files of the same format.
static Expected<Dataset> loadPair(StringRef examplesPath, StringRef labelsPath,
                                  const Spec &spec, ArrayParser parse) {
  auto examples = readArray(examplesPath, parse);
  if (!examples)
    return examples.takeError();
  auto labels = readArray(labelsPath, parse);
  if (!labels)
    return labels.takeError();
  return makeDataset({std::move(*examples), std::move(*labels)}, examplesPath,
                     labelsPath, spec);
}

/// Two files are one part; another specification has the other.
static Error requireTrain(const Spec &spec, DatasetPart part) {
  if (part == DatasetPart::Train)
    return Error::success();
  return llvm::make_error<NoTestPart>("data of format '" + spec.format +
                                      "' has no part for testing: requires a "
                                      "second specification");
}

static Expected<Dataset> loadIdx(const Spec &spec, DatasetPart part) {
  if (Error error = requireTrain(spec, part))
    return error;
  return loadPair(spec.paths[0], spec.paths[1], spec, parseIdx);
}

static Expected<Dataset> loadNpy(const Spec &spec, DatasetPart part) {
  if (Error error = requireTrain(spec, part))
    return error;
  return loadPair(spec.paths[0], spec.paths[1], spec, parseNpyArray);
}

static Expected<Dataset> loadNpz(const Spec &spec, DatasetPart part) {
  StringRef path = spec.paths[0];
  auto file = openDataFile(path);
  if (!file)
    return file.takeError();
  auto arrays = readNpzPair(*file, part);
  if (!arrays)
    return inFile(path, arrays.takeError());
  return makeDataset(*arrays, path, path, spec);
}

/// All files of a part one after the other. `labelBytes` is 1 for CIFAR-10 and
/// 2 for CIFAR-100, of which the fine label counts.
static Expected<Dataset> loadCifar(StringRef folder,
                                   llvm::ArrayRef<StringRef> names,
                                   int64_t labelBytes, int64_t numClasses) {
  Examples examples;
  std::vector<int64_t> labels;
  // Examples point into the mapped files: all of them have to live on.
  auto storage = std::make_shared<std::vector<std::shared_ptr<const void>>>();
  for (StringRef name : names) {
    std::string path = inFolder(folder, name);
    auto file = openDataFile(path);
    if (!file)
      return file.takeError();
    if (Error error = appendCifar(*file, labelBytes, examples, labels))
      return inFile(path, std::move(error));
    storage->push_back(std::move(file->storage));
  }
  examples.storage = std::move(storage);
  auto data = Dataset::create(std::move(examples), labels, numClasses);
  if (!data)
    return inFile(folder, data.takeError());
  return data;
}

static Expected<Dataset> loadCifar10(const Spec &spec, DatasetPart part) {
  static constexpr StringRef train[] = {"data_batch_1.bin", "data_batch_2.bin",
                                        "data_batch_3.bin", "data_batch_4.bin",
                                        "data_batch_5.bin"};
  static constexpr StringRef test[] = {"test_batch.bin"};
  llvm::ArrayRef<StringRef> names = train;
  if (part == DatasetPart::Test)
    names = test;
  return loadCifar(spec.paths[0], names, 1, 10);
}

static Expected<Dataset> loadCifar100(const Spec &spec, DatasetPart part) {
  StringRef name = part == DatasetPart::Train ? "train.bin" : "test.bin";
  return loadCifar(spec.paths[0], name, 2, 100);
}

/// Both data sets have the names of LeCun's files, compressed or not.
static Expected<Dataset> loadMnist(const Spec &spec, DatasetPart part) {
  bool fashion = spec.paths.empty();
  StringRef folder = fashion ? fashionMnistFolder : spec.paths[0];
  if (fashion && !llvm::sys::fs::is_directory(folder))
    return createStringError(
        "requires the Debian package dataset-fashion-mnist, got no folder '" +
        folder + "'");
  auto find = [&](StringRef kind) {
    std::string path = inFolder(
        folder, (part == DatasetPart::Train ? "train-" : "t10k-") + kind);
    return llvm::sys::fs::exists(path) ? path : path + ".gz";
  };
  Spec ofDigits = spec;
  // A subset of the files may lack a class.
  ofDigits.numClasses = 10;
  return loadPair(find("images-idx3-ubyte"), find("labels-idx1-ubyte"),
                  ofDigits, parseIdx);
}

/// The order is that of error messages.
static llvm::ArrayRef<Format> getFormats() {
  static const Format formats[] = {
      {"fashion-mnist", {}, false, false, loadMnist},
      {"mnist", {"FOLDER"}, false, false, loadMnist},
      {"idx", {"IMAGES", "LABELS"}, true, false, loadIdx},
      {"npy", {"IMAGES", "LABELS"}, true, true, loadNpy},
      {"npz", {"FILE"}, true, true, loadNpz},
      {"cifar10", {"FOLDER"}, false, false, loadCifar10},
      {"cifar100", {"FOLDER"}, false, false, loadCifar100},
  };
  return formats;
}

//===----------------------------------------------------------------------===//
// Specifications
//===----------------------------------------------------------------------===//

static Error badSpec(StringRef text, const Twine &message) {
  return createStringError("bad data set '" + text + "': " + message);
}

/// `KEY=VALUE`; only options that the format has.
static Error parseOption(StringRef text, const Format &format, StringRef option,
                         Spec &spec) {
  auto [key, value] = option.split('=');
  if (key == "classes" && format.hasClasses) {
    int64_t number;
    if (value.getAsInteger(10, number) || number < 1)
      return badSpec(text, "requires a positive integer for 'classes', got '" +
                               value + "'");
    spec.numClasses = number;
    return Error::success();
  }
  if (key == "layout" && format.hasLayout) {
    if (value != "nchw" && value != "nhwc")
      return badSpec(text, "requires 'nchw' or 'nhwc' for 'layout', got '" +
                               value + "'");
    spec.layout = value == "nhwc" ? Layout::NHWC : Layout::NCHW;
    return Error::success();
  }
  // The options that the format would have taken.
  StringRef known = format.hasLayout    ? "'classes' and 'layout'"
                    : format.hasClasses ? "'classes'"
                                        : "none";
  return badSpec(text, "unknown option '" + key + "', format '" + format.name +
                           "' has " + known);
}

/// The form is printed as a whole: it says more than which part is wrong.
static Error badForm(StringRef text, const Format &format) {
  std::string form = format.name.str();
  if (!format.paths.empty())
    form += ":" + llvm::join(format.paths, ",");
  return badSpec(text, "requires '" + form + "', got '" + text + "'");
}

/// The paths and then the options of a format. `text` is for messages.
static Expected<Spec> parseWords(StringRef text, const Format &format,
                                 llvm::ArrayRef<StringRef> words) {
  Spec spec;
  spec.format = format.name;
  size_t count = format.paths.size();
  auto isPath = [](StringRef word) { return !word.empty(); };
  if (words.size() < count || !llvm::all_of(words.take_front(count), isPath))
    return badForm(text, format);
  spec.paths.assign(words.begin(), words.begin() + count);
  for (StringRef option : words.drop_front(count))
    if (Error error = parseOption(text, format, option, spec))
      return error;
  return spec;
}

static Expected<const Format *> findFormat(StringRef text, StringRef name) {
  for (const Format &format : getFormats())
    if (format.name == name)
      return &format;
  auto names = llvm::map_range(
      getFormats(), [](const Format &format) { return format.name; });
  return badSpec(text, "requires one of the formats " +
                           llvm::join(names, ", ") + ", got '" + name + "'");
}

static Expected<Dataset> load(StringRef text, const Format &format,
                              llvm::ArrayRef<StringRef> words,
                              DatasetPart part) {
  auto spec = parseWords(text, format, words);
  if (!spec)
    return spec.takeError();
  return format.load(*spec, part);
}

/// A comma belongs to the specification, so paths cannot have one.
Expected<Dataset> kas::training::loadDataset(StringRef text, DatasetPart part) {
  // The longest name that the text can begin with, so that `cifar10` does not
  // stand for `cifar100`.
  StringRef name = text.take_until([](char c) { return c == ':' || c == ','; });
  auto format = findFormat(text, name);
  if (!format)
    return format.takeError();
  StringRef rest = text.drop_front(name.size());
  // Formats without paths take options at once: `fashion-mnist,...`.
  if (rest.starts_with(":") == (*format)->paths.empty())
    return badForm(text, **format);
  llvm::SmallVector<StringRef> words;
  if (rest.size() > 1)
    rest.drop_front().split(words, ',');
  return load(text, **format, words, part);
}

Expected<Dataset> kas::training::loadDataset(StringRef name,
                                             llvm::ArrayRef<StringRef> words,
                                             DatasetPart part) {
  std::string text = (name + ":" + llvm::join(words, ",")).str();
  auto format = findFormat(text, name);
  if (!format)
    return format.takeError();
  return load(text, **format, words, part);
}

//===----------------------------------------------------------------------===//
// Splits
//===----------------------------------------------------------------------===//

static StringRef getName(ElementType type) {
  return type == ElementType::U8 ? "u8" : "f32";
}

/// The part for testing: of `spec.test` where it is given.
/// Examples must be of the shape and type of those for training, because one
/// compiled program takes both.
static Expected<Dataset> loadTest(const SplitSpec &spec, const Dataset &train) {
  auto test = spec.test.empty() ? loadDataset(spec.train, DatasetPart::Test)
                                : loadDataset(spec.test);
  if (!test)
    return test;
  if (test->getShape() != train.getShape() ||
      test->getElementType() != train.getElementType())
    return createStringError("requires examples for testing of shape " +
                             execution::shapeToString(train.getShape()) +
                             " and type " + getName(train.getElementType()) +
                             ", as those for training, got " +
                             execution::shapeToString(test->getShape()) +
                             " and " + getName(test->getElementType()));
  // Labels beyond the classes of the network would be errors at run time.
  auto same = test->withClasses(train.getNumClasses());
  if (!same)
    return createStringError("in the part for testing: " +
                             llvm::toString(same.takeError()));
  return same;
}

/// Test first, then validation, then the limit: the limit shortens the training
/// part alone, so results with different limits can be compared.
Expected<DataSplits> kas::training::loadSplits(const SplitSpec &spec) {
  auto train = loadDataset(spec.train);
  if (!train)
    return train.takeError();
  std::optional<Dataset> validation, test;
  if (spec.hasTest) {
    auto loaded = loadTest(spec, *train);
    if (!loaded)
      return loaded.takeError();
    test = std::move(*loaded);
  }
  if (spec.validation != 0) {
    auto parts = train->split(spec.validation, spec.seed);
    if (!parts)
      return parts.takeError();
    train = std::move(parts->first);
    validation = std::move(parts->second);
  }
  // With a seed the validation part was drawn from the same seed by another
  // stream.
  if (spec.limit != 0) {
    train = spec.seed ? train->takeRandom(spec.limit, *spec.seed)
                      : train->takeFirst(spec.limit);
    if (!train)
      return train.takeError();
  }
  return DataSplits{std::move(*train), std::move(validation), std::move(test)};
}
