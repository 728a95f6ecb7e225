//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Batches of a data set: shuffled, normalized, augmented, written into the
// buffers of a caller.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TRAINING_BATCHES_H
#define KAS_TRAINING_BATCHES_H

#include "kas/Training/Dataset.h"
#include "llvm/Support/Compiler.h"

namespace kas::training {

/// (x - mean) / deviation for each channel. Bytes are divided by 255 before.
struct Normalization {
  llvm::SmallVector<double> mean, deviation;
};

/// The mean and the standard deviation of each channel over all elements of a
/// data set (its training part, usually). A channel that is constant gets the
/// deviation 1. Sums have a fixed order.
Normalization computeNormalization(const Dataset &data);

/// Random changes of images, drawn anew for each example and epoch.
struct Augmentation {
  /// The window that is read is drawn uniformly from the image with a border of
  /// this many pixels on each side.
  int64_t crop = 0;
  /// After that, the window moves by up to this many pixels along each axis.
  int64_t shift = 0;
  /// Left and right change places in half of the images.
  bool flip = false;

  bool any() const { return crop > 0 || shift > 0 || flip; }
};

/// What the pixels outside of an image are: 0 in the file, so that they are
/// normalized as the others are, or the mean, which is 0 after normalization.
enum class Border { Zero, Mean };

struct BatchOptions {
  int64_t batchSize = 64;
  /// Of the order of the examples and of the augmentation.
  uint64_t seed = 0;
  bool shuffle = true;
  /// Whether the examples that are left after the last whole batch are left
  /// out. Else the last batch is padded, see `Epoch::fill`.
  bool dropLast = false;
  /// The label of what the last batch is padded with: no class, or one in
  /// [0, numClasses) for code that requires one.
  int32_t paddingLabel = -1;
  /// Height and width of the images in a batch. Smaller images get a border on
  /// all sides (the smaller half above and to the left), of larger ones the
  /// middle is taken. 0: those of the data set.
  int64_t height = 0, width = 0;
  Border border = Border::Zero;
  /// None: bytes are divided by 255, f32 values stay as they are.
  std::optional<Normalization> normalization;
  Augmentation augmentation;
};

class Epoch;

/// Makes batches of a data set. A small value type over shared, immutable
/// data: threads may share one, and each batch is a function of the options,
/// the epoch and its number alone.
class BatchLoader {
public:
  /// Errors: sizes that are not positive, more examples in a batch than in the
  /// data set where `dropLast` is set, a padding label that is neither -1 nor a
  /// class, image options for data that are no
  /// images, a normalization of another number of channels or with a deviation
  /// that is not positive.
  static llvm::Expected<BatchLoader> create(Dataset data,
                                            const BatchOptions &options);

  const Dataset &getDataset() const;
  const BatchOptions &getOptions() const;
  /// The shape of a batch of images or other data: NxCxHxW or Nx...
  llvm::ArrayRef<int64_t> getBatchShape() const;
  int64_t getBatchSize() const { return getOptions().batchSize; }
  /// The elements of one example in a batch.
  int64_t getNumElements() const;
  /// The batches of an epoch.
  int64_t getNumBatches() const;

  /// The batches of an epoch, in the order that belongs to it.
  Epoch startEpoch(int64_t epoch) const;

private:
  friend class Epoch;
  struct Plan;
  explicit BatchLoader(std::shared_ptr<const Plan> plan)
      : plan(std::move(plan)) {}

  std::shared_ptr<const Plan> plan;
};

/// One pass over a data set. Const functions may run in several threads.
class Epoch {
public:
  int64_t getNumBatches() const { return loader.getNumBatches(); }
  /// The numbers of the examples, in the order of this epoch.
  llvm::ArrayRef<int64_t> getOrder() const LLVM_LIFETIME_BOUND { return order; }

  /// Writes batch number `batch`: `images` has the elements of `getBatchShape`,
  /// `labels` the batch size. Returns the number of examples: where the last
  /// batch has fewer than its size, the remaining elements become 0 and the
  /// remaining labels `paddingLabel`.
  int64_t fill(int64_t batch, llvm::MutableArrayRef<float> images,
               llvm::MutableArrayRef<int32_t> labels) const;
  /// The same with labels as f32, which are exact up to 2^24 classes.
  int64_t fill(int64_t batch, llvm::MutableArrayRef<float> images,
               llvm::MutableArrayRef<float> labels) const;

private:
  friend class BatchLoader;
  Epoch(BatchLoader loader, int64_t epoch);

  template <typename Label>
  int64_t fillAll(int64_t batch, llvm::MutableArrayRef<float> images,
                  llvm::MutableArrayRef<Label> labels) const;

  BatchLoader loader;
  int64_t epoch;
  std::vector<int64_t> order;
};

} // namespace kas::training

#endif // KAS_TRAINING_BATCHES_H
