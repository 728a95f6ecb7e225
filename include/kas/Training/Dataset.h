//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Labelled examples for training: read from files or given in memory, never
// copied by subsets, splits and candidates that share them.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TRAINING_DATASET_H
#define KAS_TRAINING_DATASET_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kas::training {

/// The type of the elements of an example: bytes from 0 to 255, which batches
/// scale to [0, 1], or f32 values, which they take as they are.
enum class ElementType { U8, F32 };

/// Examples in memory, before they have labels.
struct Examples {
  ElementType type = ElementType::U8;
  /// The shape of one example, without the number of examples: CxHxW for
  /// images, anything else for other data.
  llvm::SmallVector<int64_t> shape;
  /// Where each example starts: dense, in C order; f32 aligned to 4 bytes.
  std::vector<const void *> starts;
  /// Keeps alive what `starts` points into.
  std::shared_ptr<const void> storage;
};

/// Examples of one shape with a class each. A value type: copies and subsets
/// share the examples. Immutable, so that threads may share it.
class Dataset {
public:
  /// A data set of `examples` with their classes. `numClasses` is by default
  /// one more than the largest label, which must then be below 65536. Errors:
  /// no examples, another number of labels than of examples, a label that is
  /// not in [0, numClasses), an f32 element that is not finite.
  static llvm::Expected<Dataset>
  create(Examples examples, llvm::ArrayRef<int64_t> labels,
         std::optional<int64_t> numClasses = std::nullopt);

  /// The number of examples, at least 1.
  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  int64_t getNumClasses() const { return numClasses; }
  ElementType getElementType() const { return examples.type; }
  /// The shape of one example.
  llvm::ArrayRef<int64_t> getShape() const { return examples.shape; }
  /// The elements of one example.
  int64_t getNumElements() const { return numElements; }
  /// Whether examples are images CxHxW.
  bool hasImages() const { return examples.shape.size() == 3; }
  /// The channels that normalization distinguishes: C of images, else 1.
  int64_t getNumChannels() const { return hasImages() ? getShape()[0] : 1; }

  llvm::ArrayRef<int32_t> getLabels() const { return labels; }
  /// The elements of an example, of a data set of bytes or of f32 values.
  llvm::ArrayRef<uint8_t> getBytes(int64_t example) const;
  llvm::ArrayRef<float> getFloats(int64_t example) const;

  /// The examples of these numbers, in this order. They must not be empty, and
  /// each must be in [0, size()).
  Dataset select(llvm::ArrayRef<int64_t> numbers) const;
  /// The first `count` examples; an error unless 1 <= count <= size().
  llvm::Expected<Dataset> takeFirst(int64_t count) const;
  /// `count` different examples, drawn uniformly by `seed`, in the order of
  /// this data set; the same on every machine.
  llvm::Expected<Dataset> takeRandom(int64_t count, uint64_t seed) const;

  /// All but `count` of the examples, and these: drawn uniformly by `seed`, or
  /// the last ones. Both in the order of this data set. An error unless
  /// 1 <= count < size().
  llvm::Expected<std::pair<Dataset, Dataset>>
  split(int64_t count, std::optional<uint64_t> seed) const;
  /// The same with another number of classes, which all labels must be below.
  llvm::Expected<Dataset> withClasses(int64_t numClasses) const;

  /// 32 hexadecimal digits of the type, the shape, the classes, and all
  /// examples and labels in their order (XXH3 of 128 bits).
  std::string checkSum() const;

private:
  Dataset() = default;

  Examples examples;
  int64_t numElements = 0;
  int64_t numClasses = 0;
  std::vector<int32_t> labels;
};

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// The part of a data set that its authors meant for training or for testing.
enum class DatasetPart { Train, Test };

/// The data have no part for testing of their own; others can do.
class NoTestPart : public llvm::ErrorInfo<NoTestPart, llvm::StringError> {
public:
  explicit NoTestPart(const llvm::Twine &message)
      : ErrorInfo(message, llvm::inconvertibleErrorCode()) {}
  static char ID;
};

/// Reads a data set from files. Uncompressed ones are mapped, not copied: they
/// must not change while the data set is in use. `spec` is one of
///
///   fashion-mnist           of Debian's package dataset-fashion-mnist
///   mnist:FOLDER            `train-images-idx3-ubyte` and so on, with or
///                           without .gz; 10 classes
///   idx:IMAGES,LABELS       two files of LeCun's idx format, plain or .gz
///   npy:IMAGES,LABELS       two files of NumPy
///   npz:FILE                arrays x_train, y_train, x_test, y_test, or
///                           images, labels, test_images, test_labels
///   cifar10:FOLDER          the binary version: data_batch_1.bin to
///   cifar100:FOLDER         data_batch_5.bin and test_batch.bin; train.bin
///                           and test.bin (fine labels)
///
/// followed by options, each after a comma: `classes=N` for idx, npy and npz,
/// `layout=nhwc` for npy and npz (default nchw). Images NxHxW have one channel.
/// Elements are u8, f32 or f64 (made f32), labels integers of any width. `idx`
/// and `npy` have no part for testing: it is a second specification. Errors
/// name the file and what it should have been.
llvm::Expected<Dataset> loadDataset(llvm::StringRef spec,
                                    DatasetPart part = DatasetPart::Train);
/// The same of a format and its words: the paths, which may have commas here,
/// and the options.
llvm::Expected<Dataset> loadDataset(llvm::StringRef format,
                                    llvm::ArrayRef<llvm::StringRef> words,
                                    DatasetPart part);

/// What to train, validate and test with.
struct SplitSpec {
  /// Specifications of `loadDataset`. Without the second, the part for testing
  /// of the first one is meant.
  std::string train, test;
  /// Whether there are examples for testing at all.
  bool hasTest = true;
  /// How many examples for training are used for validation instead; 0 for
  /// none.
  int64_t validation = 0;
  /// How many of the others are used; 0 for all.
  int64_t limit = 0;
  /// Draws both. Without it, the last examples are for validation, and the
  /// first ones are used.
  std::optional<uint64_t> seed;
};

struct DataSplits {
  Dataset train;
  std::optional<Dataset> validation, test;
};

/// Loads the data sets of `spec`: the same on every machine, compare their
/// check sums. Examples for testing must have the shape, type and classes of
/// those for training.
llvm::Expected<DataSplits> loadSplits(const SplitSpec &spec);

} // namespace kas::training

#endif // KAS_TRAINING_DATASET_H
