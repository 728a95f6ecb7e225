//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Examples with labels in memory: checks, subsets and splits.
// A data set never copies examples: subsets and splits are lists of pointers
// that share the storage. All labels and elements are checked once when it is
// made, so that training needs no checks.
//
//===----------------------------------------------------------------------===//
#include "kas/Training/Dataset.h"
#include "kas/ExecutionEngine/Tensor.h"
#include "kas/Support/Random.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include <cmath>

using namespace kas;
using namespace kas::training;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::Twine;

/// The most classes that a data set may have without being given their number:
/// a label of another kind of file should not become one.
static constexpr int64_t largestImpliedClasses = 65536;

/// The number of classes, or an error for a label that is out of range.
static Expected<int64_t> checkLabels(ArrayRef<int64_t> labels,
                                     std::optional<int64_t> numClasses) {
  // Labels are kept as i32.
  constexpr int64_t largestClasses = std::numeric_limits<int32_t>::max();
  if (numClasses && (*numClasses < 1 || *numClasses > largestClasses))
    return createStringError("requires from 1 to " + Twine(largestClasses) +
                             " classes, got " + Twine(*numClasses));
  int64_t end = numClasses.value_or(largestImpliedClasses), largest = 0;
  for (auto [i, label] : llvm::enumerate(labels)) {
    if (label < 0 || label >= end)
      return createStringError(
          "requires labels in [0, " + Twine(end) + ")" +
          (numClasses ? "" : " where the number of classes is not given") +
          ", got " + Twine(label) + " for example " + Twine(i));
    largest = std::max(largest, label);
  }
  // Not given: one more than the largest label.
  return numClasses.value_or(largest + 1);
}

/// One NaN would make all parameters NaN after a step, far from its cause.
static Error checkFinite(const Examples &examples, int64_t numElements) {
  for (auto [i, start] : llvm::enumerate(examples.starts)) {
    ArrayRef<float> values(static_cast<const float *>(start), numElements);
    for (auto [j, value] : llvm::enumerate(values))
      if (!std::isfinite(value))
        return createStringError("requires finite elements, got " +
                                 Twine(std::isnan(value) ? "nan"
                                       : value > 0       ? "inf"
                                                         : "-inf") +
                                 " at element " + Twine(j) + " of example " +
                                 Twine(i));
  }
  return Error::success();
}

/// Each check has its own message: these are errors of users' files.
Expected<Dataset> Dataset::create(Examples examples, ArrayRef<int64_t> labels,
                                  std::optional<int64_t> numClasses) {
  auto numElements = execution::numElements(examples.shape);
  if (!numElements)
    return numElements.takeError();
  if (examples.starts.empty() || *numElements == 0)
    return createStringError("requires at least one example and element, got " +
                             Twine(examples.starts.size()) +
                             " examples of shape " +
                             execution::shapeToString(examples.shape));
  // Two files that do not belong together are the usual reason.
  if (examples.starts.size() != labels.size())
    return createStringError("requires " + Twine(examples.starts.size()) +
                             " labels, one for each example, got " +
                             Twine(labels.size()));
  auto classes = checkLabels(labels, numClasses);
  if (!classes)
    return classes.takeError();
  // Elements of u8 are always finite.
  if (examples.type == ElementType::F32)
    if (Error error = checkFinite(examples, *numElements))
      return error;
  Dataset data;
  data.examples = std::move(examples);
  data.numElements = *numElements;
  data.numClasses = *classes;
  data.labels.assign(labels.begin(), labels.end());
  return data;
}

/// The elements of one example, where they lie in the file.
ArrayRef<uint8_t> Dataset::getBytes(int64_t example) const {
  assert(examples.type == ElementType::U8 && "examples are f32");
  return {static_cast<const uint8_t *>(examples.starts[example]),
          static_cast<size_t>(numElements)};
}

ArrayRef<float> Dataset::getFloats(int64_t example) const {
  assert(examples.type == ElementType::F32 && "examples are bytes");
  return {static_cast<const float *>(examples.starts[example]),
          static_cast<size_t>(numElements)};
}

//===----------------------------------------------------------------------===//
// Subsets
//===----------------------------------------------------------------------===//

/// Examples by number, in any order, also several times.
Dataset Dataset::select(ArrayRef<int64_t> numbers) const {
  assert(!numbers.empty() && "a data set has at least one example");
  // The storage is shared: no element is copied.
  Dataset result;
  result.examples.type = examples.type;
  result.examples.shape = examples.shape;
  result.examples.storage = examples.storage;
  result.numElements = numElements;
  result.numClasses = numClasses;
  result.labels.reserve(numbers.size());
  result.examples.starts.reserve(numbers.size());
  for (int64_t number : numbers) {
    assert(number >= 0 && number < size() && "no such example");
    result.labels.push_back(labels[number]);
    result.examples.starts.push_back(examples.starts[number]);
  }
  return result;
}

/// A part of no examples is no data set.
static Error checkCount(int64_t count, int64_t size) {
  if (count >= 1 && count <= size)
    return Error::success();
  return createStringError("requires from 1 to " + Twine(size) +
                           " examples, got " + Twine(count));
}

Expected<Dataset> Dataset::takeFirst(int64_t count) const {
  if (Error error = checkCount(count, size()))
    return error;
  return select(llvm::to_vector(llvm::seq(count)));
}

/// Selection sampling (Knuth, volume 2, algorithm S): draws `count` of the
/// numbers below `size` in one pass. True for each that is drawn.
static std::vector<bool> drawSubset(int64_t size, int64_t count,
                                    uint64_t seed) {
  Random random(RandomStream(seed, "subset").bits(0));
  std::vector<bool> drawn(size);
  for (int64_t i : llvm::seq(size))
    if (random.below(size - i) < static_cast<uint64_t>(count)) {
      drawn[i] = true;
      --count;
    }
  return drawn;
}

/// The numbers of those that are drawn, or of the others.
static std::vector<int64_t> getNumbers(const std::vector<bool> &drawn,
                                       bool wanted) {
  std::vector<int64_t> numbers;
  for (auto [i, isDrawn] : llvm::enumerate(drawn))
    if (isDrawn == wanted)
      numbers.push_back(i);
  return numbers;
}

/// In the order of the data set, not of the draws.
Expected<Dataset> Dataset::takeRandom(int64_t count, uint64_t seed) const {
  if (Error error = checkCount(count, size()))
    return error;
  return select(getNumbers(drawSubset(size(), count, seed), true));
}

Expected<std::pair<Dataset, Dataset>>
Dataset::split(int64_t count, std::optional<uint64_t> seed) const {
  if (size() < 2)
    return createStringError("requires at least two examples to split, got 1");
  if (Error error = checkCount(count, size() - 1))
    return error;
  // True for the second part: `count` random examples, or the last ones.
  std::vector<bool> drawn(size());
  if (seed)
    // Not the examples that `takeRandom` draws by this seed.
    drawn = drawSubset(size(), count, RandomStream(*seed, "split").bits(0));
  else
    std::fill(drawn.end() - count, drawn.end(), true);
  return std::make_pair(select(getNumbers(drawn, false)),
                        select(getNumbers(drawn, true)));
}

/// The training part of a data set may lack the largest class, so both parts
/// are given the number of the whole.
Expected<Dataset> Dataset::withClasses(int64_t numClasses) const {
  auto checked = checkLabels(llvm::to_vector_of<int64_t>(labels), numClasses);
  if (!checked)
    return checked.takeError();
  Dataset result(*this);
  result.numClasses = *checked;
  return result;
}

/// 128 bits over everything that batches depend on, for checkpoints; not
/// cryptographic.
std::string Dataset::checkSum() const {
  int64_t size =
      numElements * (examples.type == ElementType::U8 ? 1 : sizeof(float));
  // A sum of sums: the examples are not next to each other. Type, shape and
  // number of classes first, so that no two data sets give the same sequence.
  std::vector<uint64_t> words = {static_cast<uint64_t>(examples.type),
                                 static_cast<uint64_t>(numClasses),
                                 examples.shape.size()};
  words.insert(words.end(), examples.shape.begin(), examples.shape.end());
  for (auto [start, label] : llvm::zip_equal(examples.starts, labels)) {
    auto hash = llvm::xxh3_128bits(
        {static_cast<const uint8_t *>(start), static_cast<size_t>(size)});
    words.insert(words.end(),
                 {hash.high64, hash.low64, static_cast<uint64_t>(label)});
  }
  auto sum =
      llvm::xxh3_128bits({reinterpret_cast<const uint8_t *>(words.data()),
                          words.size() * sizeof(uint64_t)});
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(
      "%016llx%016llx", static_cast<unsigned long long>(sum.high64),
      static_cast<unsigned long long>(sum.low64));
  return text;
}
