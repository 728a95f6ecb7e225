//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Batches of examples: order, normalization, crops and flips of each epoch,
// drawn from the seed.
// Each draw is a function of the seed, the epoch and the example: batches may
// be filled by any thread in any order, and a training that continues from a
// checkpoint sees the same images (docs/guide/training.md). Images are cropped,
// flipped and normalized in one pass over their pixels (PixelRows.cpp).
//
//===----------------------------------------------------------------------===//
#include "kas/Training/Batches.h"
#include "NumberText.h"
#include "PixelRows.h"
#include "kas/ExecutionEngine/Tensor.h"
#include "kas/Support/Random.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/Twine.h"
#include <cmath>
#include <numeric>

using namespace kas;
using namespace kas::training;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::MutableArrayRef;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

/// What batches need, computed once.
/// Shared by the copies of a loader and by its epochs.
struct BatchLoader::Plan {
  Dataset data;
  BatchOptions options;
  /// The batch first: [N, C, H, W] for images.
  llvm::SmallVector<int64_t> batchShape;
  /// Of one example as it is in a batch.
  int64_t numElements = 0;
  /// A pixel becomes `pixel * scale + offset`, by channel.
  llvm::SmallVector<PixelMap> maps;
};

/// Sizes and distances must not be negative nor absurd, and need images [C, H,
/// W].
static Error checkImageOptions(const Dataset &data,
                               const BatchOptions &options) {
  const Augmentation &augmentation = options.augmentation;
  if (options.height < 0 || options.width < 0 || augmentation.crop < 0 ||
      augmentation.shift < 0)
    return createStringError(
        "requires sizes and distances of images that are not negative, got " +
        Twine(options.height) + "x" + Twine(options.width) + ", crop " +
        Twine(augmentation.crop) + ", shift " + Twine(augmentation.shift));
  if ((options.height > 0 || options.width > 0 || augmentation.any()) &&
      !data.hasImages())
    return createStringError(
        "requires images CxHxW for a size or an augmentation, got examples of "
        "shape " +
        execution::shapeToString(data.getShape()));
  // Sums of these stay far from the limits of 64 bits.
  constexpr int64_t largest = 1 << 20;
  for (int64_t size :
       {options.height, options.width, augmentation.crop, augmentation.shift})
    if (size > largest)
      return createStringError("requires sizes and distances of images of at "
                               "most " +
                               Twine(largest) + " pixels, got " + Twine(size));
  return Error::success();
}

/// (pixel / unit - mean) / deviation as one multiply-add: u8 pixels count from
/// 0 to 1, as normalizations of PyTorch expect.
static PixelMap makeMap(const Dataset &data, Border border, double mean,
                        double deviation) {
  double unit = data.getElementType() == ElementType::U8 ? 255 : 1;
  PixelMap map;
  map.scale = static_cast<float>(1 / (unit * deviation));
  map.offset = static_cast<float>(-mean / deviation);
  // Pixels outside are 0 before the normalization or after it.
  map.border = border == Border::Zero ? map.offset : 0;
  return map;
}

/// One mean and deviation for each channel, whose multiply-add f32 can hold.
static Error checkNormalization(const Normalization &normalization,
                                const Dataset &data) {
  int64_t numChannels = data.getNumChannels();
  if (static_cast<int64_t>(normalization.mean.size()) != numChannels ||
      static_cast<int64_t>(normalization.deviation.size()) != numChannels)
    return createStringError(
        "requires a normalization of " + Twine(numChannels) +
        " channels, got " + Twine(normalization.mean.size()) + " means and " +
        Twine(normalization.deviation.size()) + " deviations");
  for (auto [mean, deviation] :
       llvm::zip_equal(normalization.mean, normalization.deviation)) {
    bool positive =
        std::isfinite(mean) && std::isfinite(deviation) && deviation > 0;
    // The kind of padding makes no difference to scale and offset.
    PixelMap map = makeMap(data, Border::Zero, mean, deviation);
    if (positive && std::isfinite(map.scale) && std::isfinite(map.offset))
      continue;
    return createStringError(
        Twine(positive ? "requires a normalization in the range of f32"
                       : "requires finite means and positive deviations") +
        ", got mean " + toText(mean) + ", deviation " + toText(deviation));
  }
  return Error::success();
}

/// Without a normalization pixels are only divided by their unit.
static llvm::SmallVector<PixelMap> makeMaps(const Dataset &data,
                                            const BatchOptions &options) {
  llvm::SmallVector<PixelMap> maps;
  for (int64_t channel : llvm::seq(data.getNumChannels())) {
    double mean = 0, deviation = 1;
    if (options.normalization) {
      mean = options.normalization->mean[channel];
      deviation = options.normalization->deviation[channel];
    }
    maps.push_back(makeMap(data, options.border, mean, deviation));
  }
  return maps;
}

Expected<BatchLoader> BatchLoader::create(Dataset data,
                                          const BatchOptions &options) {
  if (options.batchSize < 1)
    return createStringError("requires a batch of at least one example, got " +
                             Twine(options.batchSize));
  if (options.dropLast && options.batchSize > data.size())
    return createStringError(
        "requires batches of at most " + Twine(data.size()) +
        " examples, those of the data set, got " + Twine(options.batchSize));
  // -1 marks examples that are not there: losses and counts leave them out.
  if (options.paddingLabel < -1 || options.paddingLabel >= data.getNumClasses())
    return createStringError("requires a padding label in [-1, " +
                             Twine(data.getNumClasses()) + "), got " +
                             Twine(options.paddingLabel));
  if (Error error = checkImageOptions(data, options))
    return error;
  if (options.normalization)
    if (Error error = checkNormalization(*options.normalization, data))
      return error;
  // Examples [C, H, W] with other height and width: windows are cut or padded.
  llvm::SmallVector<int64_t> shape(data.getShape());
  if (options.height > 0)
    shape[1] = options.height;
  if (options.width > 0)
    shape[2] = options.width;
  shape.insert(shape.begin(), options.batchSize);
  auto count = execution::numElements(shape);
  if (!count)
    return count.takeError();
  auto maps = makeMaps(data, options);
  return BatchLoader(std::make_shared<Plan>(
      Plan{std::move(data), options, shape, *count / options.batchSize, maps}));
}

const Dataset &BatchLoader::getDataset() const { return plan->data; }
const BatchOptions &BatchLoader::getOptions() const { return plan->options; }
ArrayRef<int64_t> BatchLoader::getBatchShape() const {
  return plan->batchShape;
}
int64_t BatchLoader::getNumElements() const { return plan->numElements; }

int64_t BatchLoader::getNumBatches() const {
  int64_t size = plan->data.size(), batch = plan->options.batchSize;
  // The last batch may be smaller, and is filled up with padding.
  return plan->options.dropLast ? size / batch : llvm::divideCeil(size, batch);
}

//===----------------------------------------------------------------------===//
// Epochs
//===----------------------------------------------------------------------===//

Epoch BatchLoader::startEpoch(int64_t epoch) const { return {*this, epoch}; }

Epoch::Epoch(BatchLoader loader, int64_t epoch)
    : loader(std::move(loader)), epoch(epoch),
      order(this->loader.getDataset().size()) {
  std::iota(order.begin(), order.end(), 0);
  const BatchOptions &options = this->loader.getOptions();
  if (!options.shuffle)
    return;
  // Fisher and Yates: all orders are as likely.
  Random random(RandomStream(options.seed, "order").bits(epoch));
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random.below(i)]);
}

/// Where the window of an image with `from` pixels along an axis starts, if it
/// has `to` pixels: negative inside of a border. The bits are uniform.
static int64_t placeWindow(int64_t from, int64_t to,
                           const Augmentation &augmentation, uint64_t cropBits,
                           uint64_t shiftBits) {
  // The larger half of a border is below and to the right.
  int64_t first = from >= to ? 0 : -((to - from) / 2);
  int64_t last = from >= to ? from - to : first;
  // 32 random bits times the bound, upper half: a number in [0, bound) without
  // a division. The bias is below bound / 2^32.
  auto below = [](uint64_t bits, int64_t bound) {
    return static_cast<int64_t>((bits >> 32) * static_cast<uint64_t>(bound) >>
                                32);
  };
  // Centred, unless crops are drawn.
  int64_t place = first + (last - first) / 2;
  if (augmentation.crop > 0) {
    // As many positions as the window has within an image with `crop` more
    // pixels on each side.
    int64_t count = last - first + 2 * augmentation.crop + 1;
    place = first - augmentation.crop + below(cropBits, count);
  }
  if (augmentation.shift > 0)
    // A shift is drawn uniformly from [-shift, shift] and added to the crop.
    place += below(shiftBits, 2 * augmentation.shift + 1) - augmentation.shift;
  return place;
}

/// The window of an image that belongs to the random bits of its example.
static ImageWindow drawWindow(ArrayRef<int64_t> from, ArrayRef<int64_t> to,
                              const Augmentation &augmentation,
                              const RandomStream &random, int64_t example) {
  ImageWindow window;
  window.height = from[1];
  window.width = from[2];
  window.toHeight = to[1];
  window.toWidth = to[2];
  // The number of draws is a part of what a seed means: it stays.
  auto bits = [&](uint64_t draw) {
    return random.bits(5 * static_cast<uint64_t>(example) + draw);
  };
  window.top = placeWindow(from[1], to[1], augmentation, bits(0), bits(1));
  window.left = placeWindow(from[2], to[2], augmentation, bits(2), bits(3));
  // The highest bit of a draw of its own.
  window.flip = augmentation.flip && (bits(4) >> 63) != 0;
  return window;
}

/// Lets the processor fetch an example: shuffled ones are anywhere in memory.
static void prefetch(const Dataset &data, int64_t example) {
  constexpr int64_t cacheLine = 64;
  bool isBytes = data.getElementType() == ElementType::U8;
  const void *start =
      isBytes ? static_cast<const void *>(data.getBytes(example).data())
              : data.getFloats(example).data();
  // No more than what the next cache of a core holds beside the batch.
  int64_t size = std::min<int64_t>(
      data.getNumElements() * (isBytes ? 1 : sizeof(float)), 1 << 14);
  for (int64_t offset = 0; offset < size; offset += cacheLine)
    LLVM_PREFETCH(static_cast<const char *>(start) + offset, /*rw=*/0,
                  /*locality=*/3);
}

template <typename Label>
int64_t Epoch::fillAll(int64_t batch, MutableArrayRef<float> images,
                       MutableArrayRef<Label> labels) const {
  const BatchLoader::Plan &plan = *loader.plan;
  const Dataset &data = plan.data;
  int64_t batchSize = plan.options.batchSize;
  assert(batch >= 0 && batch < getNumBatches() && "no such batch");
  assert(static_cast<int64_t>(images.size()) == batchSize * plan.numElements &&
         static_cast<int64_t>(labels.size()) == batchSize &&
         "requires the sizes of a batch");
  int64_t count = std::min(batchSize, static_cast<int64_t>(order.size()) -
                                          batch * batchSize);
  // The rest of a last batch: zeros with the padding label.
  llvm::fill(images.drop_front(count * plan.numElements), 0.0f);
  llvm::fill(labels.drop_front(count),
             static_cast<Label>(plan.options.paddingLabel));

  // One stream for each epoch, numbers 5*i to 5*i + 4 for example i.
  RandomStream random(
      RandomStream(plan.options.seed, "augmentation").bits(epoch));
  // Examples that are no images are copied as one row of all elements.
  ImageWindow row;
  row.width = row.toWidth = plan.numElements;
  for (int64_t i : llvm::seq(count)) {
    int64_t example = order[batch * batchSize + i];
    if (i + 1 < count)
      prefetch(data, order[batch * batchSize + i + 1]);
    labels[i] = static_cast<Label>(data.getLabels()[example]);
    ImageWindow window =
        data.hasImages()
            ? drawWindow(data.getShape(),
                         ArrayRef(plan.batchShape).drop_front(),
                         plan.options.augmentation, random, example)
            : row;
    float *to = images.data() + i * plan.numElements;
    if (data.getElementType() == ElementType::U8)
      writeWindow(data.getBytes(example).data(), window, plan.maps, to);
    else
      writeWindow(data.getFloats(example).data(), window, plan.maps, to);
  }
  return count;
}

/// Labels are integers for programs of ours, floats for modules that take them
/// so.
int64_t Epoch::fill(int64_t batch, MutableArrayRef<float> images,
                    MutableArrayRef<int32_t> labels) const {
  return fillAll(batch, images, labels);
}

int64_t Epoch::fill(int64_t batch, MutableArrayRef<float> images,
                    MutableArrayRef<float> labels) const {
  return fillAll(batch, images, labels);
}
