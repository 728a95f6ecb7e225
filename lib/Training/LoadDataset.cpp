//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Specifications of data sets, and which files each of them reads.
//
//===----------------------------------------------------------------------===//

#include "DataFiles.h"
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
  std::optional<int64_t> numClasses;
  Layout layout = Layout::NCHW;
};

/// What follows the name of a format.
struct Format {
  StringRef name;
  /// The names of its paths, as messages have them.
  llvm::SmallVector<StringRef, 2> paths;
  bool hasClasses = false, hasLayout = false;
  Expected<Dataset> (*load)(const Spec &spec, DatasetPart part);
};

} // namespace

static std::string join(StringRef folder, const Twine &name) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

using ArrayParser = Expected<DataArray> (*)(const DataFile &);

static Expected<DataArray> readArray(StringRef path, ArrayParser parse) {
  auto file = openDataFile(path);
  if (!file)
    return file.takeError();
  auto array = parse(*file);
  if (!array)
    return inFile(path, array.takeError());
  return array;
}

/// A data set of two files with one array each.
static Expected<Dataset> loadPair(StringRef examplesPath, StringRef labelsPath,
                                  const Spec &spec, ArrayParser parse) {
  auto exampleArray = readArray(examplesPath, parse);
  if (!exampleArray)
    return exampleArray.takeError();
  auto labelArray = readArray(labelsPath, parse);
  if (!labelArray)
    return labelArray.takeError();
  auto examples = makeExamples(*exampleArray, spec.layout);
  if (!examples)
    return inFile(examplesPath, examples.takeError());
  auto labels = makeLabels(*labelArray);
  if (!labels)
    return inFile(labelsPath, labels.takeError());
  auto data = Dataset::create(std::move(*examples), *labels, spec.numClasses);
  if (!data)
    return createStringError("'" + examplesPath + "', '" + labelsPath +
                             "': " + llvm::toString(data.takeError()));
  return data;
}

/// Two parts in one file are a part for training and none for testing.
static Error requireTrain(const Spec &spec, DatasetPart part) {
  if (part == DatasetPart::Train)
    return Error::success();
  return createStringError("data of format '" + spec.format +
                           "' has no part for testing: requires a second "
                           "specification");
}

static Expected<Dataset> loadIdx(const Spec &spec, DatasetPart part) {
  if (Error error = requireTrain(spec, part))
    return error;
  return loadPair(spec.paths[0], spec.paths[1], spec, parseIdx);
}

static Expected<Dataset> loadMnist(const Spec &spec, DatasetPart part) {
  bool fashion = spec.paths.empty();
  StringRef folder = fashion ? fashionMnistFolder : spec.paths[0];
  if (fashion && !llvm::sys::fs::is_directory(folder))
    return createStringError(
        "requires the Debian package dataset-fashion-mnist, got no folder '" +
        folder + "'");
  auto find = [&](StringRef kind) {
    std::string path =
        join(folder, (part == DatasetPart::Train ? "train-" : "t10k-") + kind);
    return llvm::sys::fs::exists(path) ? path : path + ".gz";
  };
  Spec ofDigits = spec;
  ofDigits.numClasses = 10;
  return loadPair(find("images-idx3-ubyte"), find("labels-idx1-ubyte"),
                  ofDigits, parseIdx);
}

static llvm::ArrayRef<Format> getFormats() {
  static const Format formats[] = {
      {"fashion-mnist", {}, false, false, loadMnist},
      {"mnist", {"FOLDER"}, false, false, loadMnist},
      {"idx", {"IMAGES", "LABELS"}, true, false, loadIdx},
  };
  return formats;
}

//===----------------------------------------------------------------------===//
// Specifications
//===----------------------------------------------------------------------===//

static Error badSpec(StringRef text, const Twine &message) {
  return createStringError("bad data set '" + text + "': " + message);
}

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
  StringRef known = format.hasLayout    ? "'classes' and 'layout'"
                    : format.hasClasses ? "'classes'"
                                        : "none";
  return badSpec(text, "unknown option '" + key + "', format '" + format.name +
                           "' has " + known);
}

static Expected<Spec> parseSpec(StringRef text, const Format &format,
                                StringRef rest) {
  Spec spec;
  spec.format = format.name;
  llvm::SmallVector<StringRef> items;
  if (!rest.empty())
    rest.split(items, ',');
  size_t count = format.paths.size();
  auto isPath = [](StringRef item) { return !item.empty(); };
  if (items.size() < count ||
      !llvm::all_of(llvm::ArrayRef(items).take_front(count), isPath))
    return badSpec(text, "requires '" + format.name + ":" +
                             llvm::join(format.paths, ",") + "', got '" + text +
                             "'");
  spec.paths.assign(items.begin(), items.begin() + count);
  for (StringRef option : llvm::ArrayRef(items).drop_front(count))
    if (Error error = parseOption(text, format, option, spec))
      return error;
  return spec;
}

Expected<Dataset> kas::training::loadDataset(StringRef text, DatasetPart part) {
  StringRef name = text.take_until([](char c) { return c == ':' || c == ','; });
  for (const Format &format : getFormats()) {
    if (format.name != name)
      continue;
    auto spec =
        parseSpec(text, format, text.drop_front(name.size()).drop_front());
    if (!spec)
      return spec.takeError();
    return format.load(*spec, part);
  }
  auto names = llvm::map_range(
      getFormats(), [](const Format &format) { return format.name; });
  return badSpec(text, "requires one of the formats " +
                           llvm::join(names, ", ") + ", got '" + name + "'");
}
