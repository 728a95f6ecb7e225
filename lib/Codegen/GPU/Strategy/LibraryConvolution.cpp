//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the convolutions in kernels, as a library takes them: of images and
// filters without gaps, with channels first or last, along one or two
// dimensions.
// Each dimension of the image is read at one kind of index: an output (images),
// a reduction (channels), `group * size + reduction` (channels of groups), or
// `stride * output + dilation * reduction - pad` (height, width), which is a
// window. Dimensions of one value are nowhere.
//
//===----------------------------------------------------------------------===//

#include "LibraryConvolution.h"
#include "CostModel.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

namespace {

/// A dimension of the image that outputs move along: height, width, or the
/// images themselves.
struct Window {
  /// Position in the image's shape.
  unsigned dimension;
  /// Axes of the operator; no reduction: the window has one value.
  unsigned output;
  std::optional<unsigned> reduction;
  int64_t stride, dilation, pad;
};

/// Sizes, and elements from one to the next, of images (or channels of the
/// result), channels, height and width.
struct Layout {
  std::array<int64_t, 4> sizes = {1, 1, 1, 1}, strides = {0, 0, 0, 0};

  void set(unsigned position, int64_t size, int64_t stride) {
    sizes[position] = size;
    strides[position] = stride;
  }
  bool isPacked(bool areChannelsLast) const;
  uint64_t getNumElements() const {
    uint64_t count = 1;
    for (int64_t size : sizes)
      count = llvm::SaturatingMultiply(count, static_cast<uint64_t>(size));
    return count;
  }
};

class ConvolutionFinder {
public:
  ConvolutionFinder(const GPUKernelProblem &problem, unsigned image)
      : image(image), problem(problem), coordinates(problem.coordinates),
        indices(getIndices(image)), shape(getShape(image)) {}

  /// False where there is none.
  bool find();
  bool areChannelsLast() const { return isPacked(true) && !isPacked(false); }

  /// Tensor of the problem: the data is 0, the other one is the filter.
  unsigned image;
  Layout images, filters, results;
  /// Of height and width.
  std::array<int64_t, 2> strides = {1, 1}, dilations = {1, 1}, pads = {0, 0};

private:
  ArrayRef<AffineExpr> getIndices(unsigned tensor) const {
    return tensor == 0 ? coordinates.data : coordinates.weights[tensor - 1];
  }
  ArrayRef<int64_t> getShape(unsigned tensor) const {
    return tensor == 0 ? problem.data : problem.weights[tensor - 1];
  }
  int64_t getExtent(unsigned axis) const {
    return coordinates.axes[axis].extent;
  }
  /// Distance in the image of neighbours along one of its dimensions.
  int64_t getImageStride(unsigned dimension) const {
    int64_t stride = 1;
    for (int64_t size : shape.drop_front(dimension + 1))
      stride *= size;
    return stride;
  }
  bool isPacked(bool isLast) const {
    return images.isPacked(isLast) && filters.isPacked(isLast) &&
           results.isPacked(isLast);
  }

  bool setStrides();
  /// Takes the axis that numbers the channels of the result.
  bool setResultChannels();
  bool addDimension(unsigned dimension);
  bool addWindow(unsigned dimension, const LinearIndex &index);
  bool addChannels(unsigned dimension, unsigned reduction);
  bool addGroups(unsigned dimension, AffineExpr index);
  /// Takes the dimension that numbers images out of `windows`.
  bool setImages();
  bool setWindow(unsigned position, const Window &window);
  bool checkGuards() const;
  /// Whether `axis` was free; each has one role.
  bool take(unsigned axis) { return taken.insert(axis).second; }

  const GPUKernelProblem &problem;
  const Coordinates &coordinates;
  ArrayRef<AffineExpr> indices;
  ArrayRef<int64_t> shape;
  SmallVector<Interval> ranges;
  /// By axis.
  SmallVector<int64_t> filterStrides, resultStrides;
  llvm::SmallDenseSet<unsigned> taken;
  std::optional<unsigned> resultChannels, channels;
  SmallVector<Window> windows;
};

} // namespace

bool Layout::isPacked(bool areChannelsLast) const {
  std::array<unsigned, 4> order = {0, 1, 2, 3};
  if (areChannelsLast)
    order = {0, 2, 3, 1};
  int64_t expected = 1;
  for (unsigned position : llvm::reverse(order)) {
    if (sizes[position] != 1 && strides[position] != expected)
      return false;
    expected *= sizes[position];
  }
  return true;
}

bool ConvolutionFinder::setStrides() {
  auto found = getStrides(problem, 1 - image);
  if (!found)
    return false;
  filterStrides = std::move(*found);
  resultStrides.assign(coordinates.numOutputs, 0);
  int64_t stride = 1;
  for (unsigned axis = coordinates.numOutputs; axis-- > 0;) {
    resultStrides[axis] = stride;
    stride *= getExtent(axis);
  }
  for (const Axis &axis : coordinates.axes)
    ranges.push_back({0, axis.extent - 1});
  return true;
}

bool ConvolutionFinder::setResultChannels() {
  for (unsigned axis = 0; axis < coordinates.numOutputs; ++axis) {
    if (filterStrides[axis] == 0)
      continue;
    if (resultChannels)
      return false;
    resultChannels = axis;
    take(axis);
    filters.set(0, getExtent(axis), filterStrides[axis]);
    results.set(1, getExtent(axis), resultStrides[axis]);
  }
  return true;
}

bool ConvolutionFinder::addChannels(unsigned dimension, unsigned reduction) {
  if (channels || !take(reduction))
    return false;
  channels = dimension;
  images.set(1, shape[dimension], getImageStride(dimension));
  filters.set(1, getExtent(reduction), filterStrides[reduction]);
  return true;
}

// Channels of the result are numbered through, those of one group one after
// another.
bool ConvolutionFinder::addGroups(unsigned dimension, AffineExpr index) {
  if (!resultChannels)
    return false;
  for (unsigned axis = coordinates.numOutputs; axis < coordinates.axes.size();
       ++axis) {
    if (!index.isFunctionOfDim(axis))
      continue;
    int64_t size = getExtent(axis), groups = shape[dimension] / size,
            extent = getExtent(*resultChannels);
    MLIRContext *context = index.getContext();
    if (groups * size != shape[dimension] || extent % groups != 0)
      return false;
    AffineExpr expected =
        getAffineDimExpr(*resultChannels, context).floorDiv(extent / groups) *
            size +
        getAffineDimExpr(axis, context);
    return simplifyInRanges(index - expected, ranges) == 0 &&
           addChannels(dimension, axis);
  }
  return false;
}

bool ConvolutionFinder::addWindow(unsigned dimension,
                                  const LinearIndex &index) {
  std::optional<unsigned> output, reduction;
  for (auto [axis, factor] : llvm::enumerate(index.factors)) {
    if (factor == 0)
      continue;
    auto &role = axis < coordinates.numOutputs ? output : reduction;
    if (role || factor < 0)
      return false;
    role = axis;
  }
  if (!output)
    return reduction && index.constant == 0 && index.factors[*reduction] == 1 &&
           getExtent(*reduction) == shape[dimension] &&
           addChannels(dimension, *reduction);
  if (!take(*output) || (reduction && !take(*reduction)) || index.constant > 0)
    return false;
  windows.push_back({dimension, *output, reduction, index.factors[*output],
                     reduction ? index.factors[*reduction] : 1,
                     -index.constant});
  return true;
}

bool ConvolutionFinder::addDimension(unsigned dimension) {
  AffineExpr index = simplifyInRanges(indices[dimension], ranges);
  if (index == 0)
    return shape[dimension] == 1;
  if (auto linear = getLinearIndex(index, coordinates))
    return addWindow(dimension, *linear);
  return addGroups(dimension, index);
}

// Of dimensions that no window moves along, the outermost one, if it is not
// within the channels.
bool ConvolutionFinder::setImages() {
  auto *found = llvm::find_if(windows, [&](const Window &window) {
    return !window.reduction && window.stride == 1 && window.pad == 0 &&
           getExtent(window.output) == shape[window.dimension] &&
           (!channels || window.dimension < *channels);
  });
  if (found == windows.end())
    return true;
  images.set(0, shape[found->dimension], getImageStride(found->dimension));
  results.set(0, getExtent(found->output), resultStrides[found->output]);
  windows.erase(found);
  return true;
}

bool ConvolutionFinder::setWindow(unsigned position, const Window &window) {
  int64_t size = shape[window.dimension], extent = getExtent(window.output),
          points = window.reduction ? getExtent(*window.reduction) : 1;
  images.set(2 + position, size, getImageStride(window.dimension));
  results.set(2 + position, extent, resultStrides[window.output]);
  if (window.reduction)
    filters.set(2 + position, points, filterStrides[*window.reduction]);
  strides[position] = window.stride;
  dilations[position] = window.dilation;
  pads[position] = window.pad;
  // The library computes as many as fit, with the same pad at both ends.
  int64_t room = size + 2 * window.pad - window.dilation * (points - 1) - 1;
  return room >= 0 && room / window.stride + 1 == extent;
}

// Terms are left out beyond the ends of the image, and nowhere else.
bool ConvolutionFinder::checkGuards() const {
  return llvm::all_of(coordinates.guards, [&](const Guard &guard) {
    return llvm::any_of(windows, [&](const Window &window) {
      return guard.extent == shape[window.dimension] &&
             simplifyInRanges(guard.expr - indices[window.dimension], ranges) ==
                 0;
    });
  });
}

bool ConvolutionFinder::find() {
  if (coordinates.hasMax() || !setStrides() || !setResultChannels())
    return false;
  for (unsigned dimension = 0; dimension < shape.size(); ++dimension)
    if (!addDimension(dimension))
      return false;
  for (auto [axis, extent] : llvm::enumerate(coordinates.axes))
    if (extent.extent > 1 && !taken.contains(axis))
      return false;
  if (!checkGuards() || !setImages() || windows.size() > 2)
    return false;
  // Of one dimension alone the height is 1.
  for (auto [number, window] : llvm::enumerate(windows))
    if (!setWindow(number + 2 - windows.size(), window))
      return false;
  return (isPacked(false) || isPacked(true)) &&
         llvm::all_of(std::array{images, filters, results},
                      [](const Layout &layout) {
                        return layout.getNumElements() <= INT32_MAX;
                      });
}

//===----------------------------------------------------------------------===//
// The convolution
//===----------------------------------------------------------------------===//

/// The epilogue in terms of images, channels, height and width of the result.
static std::optional<LibraryEpilogue> getEpilogue(const LibraryProblem &problem,
                                                  const Layout &results) {
  MLIRContext *context = problem.type.getContext();
  AffineExpr address = getAffineConstantExpr(0, context);
  SmallVector<Interval> ranges;
  for (auto [position, size] : llvm::enumerate(results.sizes)) {
    address = address +
              getAffineDimExpr(position, context) * results.strides[position];
    ranges.push_back({0, size - 1});
  }
  return problem.getEpilogue(address, getAffineDimExpr(1, context), ranges);
}

GPUConvolutionAttr
kas::codegen::getLibraryConvolution(const LibraryProblem &problem,
                                    GPUPrecision precision) {
  if (problem.type != problem.resultType)
    return nullptr;
  for (unsigned image : {0, 1}) {
    ConvolutionFinder finder(problem.problem, image);
    if (!finder.find())
      continue;
    auto added = getEpilogue(problem, finder.results);
    // What the library adds or rectifies has a bias.
    if (!added ||
        (added->bias < 0 && (added->residual >= 0 || added->isRectified)))
      return nullptr;
    MLIRContext *context = problem.type.getContext();
    auto getArray = [&](ArrayRef<int64_t> entries) {
      return DenseI64ArrayAttr::get(context, entries);
    };
    return GPUConvolutionAttr::get(
        context, image, 1 - image, problem.getResultArgument(),
        getArray(finder.images.sizes), getArray(finder.filters.sizes),
        getArray(finder.strides), getArray(finder.dilations),
        getArray(finder.pads), finder.areChannelsLast(), added->bias,
        added->residual, added->isRectified, problem.getPrecision(precision));
  }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Cycles
//===----------------------------------------------------------------------===//

namespace {

/// Of a launch; for each product that all channels of images and results have,
/// also those of different groups; for each byte; for each step of a sum, which
/// one block adds up; of copies to channels last and back, in all and for each
/// byte.
struct Factors {
  double launch, products, bytes, steps, copies, copiedBytes;
};

} // namespace

/// Fitted to the times of cuDNN for 19 dense convolutions on an H200 in both
/// orders of dimensions (research/data/gpu-h200-3.jsonl.xz), in a CUDA graph:
/// within 0.20, 0.16 and 0.21 of them (root of the mean square of logarithms)
/// in f32, tf32 and 16 bits, in f32 of those with channels first; six grouped
/// ones are within 0.8 and 1.8. Bytes of 16-bit tensors are hidden.
static constexpr Factors fullFactors = {6775, 1.24, 1.99, 28, 0, 0},
                         tf32Factors = {8196, 1.53, 0.74, 3.33, 5353, 2.12},
                         halfFactors = {6072, 1.99, 0, 1.91, 7933, 2.71};

double kas::codegen::getLibraryCycles(GPUConvolutionAttr convolution,
                                      GPUDeviceAttr device,
                                      LibraryBytes bytes) {
  auto getProduct = [](ArrayRef<int64_t> sizes) {
    double product = 1;
    for (int64_t size : sizes)
      product *= static_cast<double>(size);
    return product;
  };
  ArrayRef<int64_t> images = convolution.getImageSizes(),
                    filters = convolution.getFilterSizes();
  SmallVector<int64_t> resultSizes = convolution.getResultSizes();
  double results = getProduct(resultSizes),
         steps = getProduct(filters.drop_front()),
         window = getProduct(filters.drop_front(2)),
         processors = static_cast<double>(device.getProcessors());
  double rate =
      getProductsPerCycle(convolution.getPrecision(), device, bytes.factor);
  bool isFull = rate == 128;
  const Factors &factors = isFull              ? fullFactors
                           : bytes.factor == 4 ? tf32Factors
                                               : halfFactors;
  double products = results * static_cast<double>(images[1]) * window / rate;
  // Vectors of 16 bytes; without them most tensor cores are idle.
  int64_t unit = isFull ? 1 : 16 / bytes.factor;
  if (filters[1] % unit != 0)
    products *= 8;
  double traffic = (getProduct(images) + getProduct(filters) + results) *
                   static_cast<double>(bytes.factor) / bytesPerCycle;
  double cycles =
      factors.launch + factors.steps * steps +
      (factors.products * products + factors.bytes * traffic) / processors;
  // 1x1 convolutions of channels first are products of matrices where rows of
  // points are vectors.
  bool isPoint = window == 1 &&
                 ArrayRef(resultSizes).drop_front(2) == images.drop_front(2);
  if (!convolution.getChannelsLast() &&
      (!isPoint || images[2] * images[3] % unit != 0))
    cycles += factors.copies + factors.copiedBytes * traffic / processors;
  return std::max(cycles, CostModel::launchCycles + traffic / processors);
}
