//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matches convolutions as sites of an operator: windows, strides, dilations,
// padding and groups, with symbols for their sizes. A match describes the layer
// with symbols: sizes N, Cin, Cout, H, W and coefficients k, s, d, p, g, so
// that layers of other sizes are layers of the same kind, and one operator can
// replace all of them. Kinds that the library has get its named operator,
// others one written by ConvolutionOperator.cpp.
//
//===----------------------------------------------------------------------===//

#include "Matching.h"
#include "Rewriting.h"
#include "kas/Library/Operators.h"
#include "kas/Support/Size.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace kas;
using namespace kas::library;
using namespace kas::networks;

namespace {

/// One spatial dimension: `output` reads `stride * i + dilation * j - low`,
/// where j counts to `kernel`. `low` is the padding before; padding after
/// follows from the sizes.
struct Window {
  unsigned outputLoop = 0, kernelLoop = 0;
  int64_t stride = 0, dilation = 0, low = 0;
  int64_t input = 0, output = 0, kernel = 0;

  /// As `kas.unfold` without `low`.
  bool isCentered() const { return low == kernel / 2; }
};

class ConvolutionMatcher {
public:
  ConvolutionMatcher(linalg::LinalgOp op,
                     const linalg::ConvolutionDimensions &dims,
                     std::string &reason)
      : op(op), dims(dims), reason(reason),
        loopSizes(op.getStaticLoopRanges()) {}

  FailureOr<Site> match(int64_t stemChannels);

private:
  /// Depthwise: a group for each channel, so there are no loops of channels.
  bool isGrouped() const { return !dims.depth.empty() && !isDepthwise(); }
  bool isDepthwise() const {
    return !dims.depth.empty() && dims.outputChannel.empty() &&
           dims.inputChannel.empty();
  }
  /// Dimensions of the data before the spatial ones.
  /// Batch and channels; grouped convolutions have the channels as [g, Cin/g].
  unsigned getNumLeading() const { return isGrouped() ? 3 : 2; }

  /// Each fails with the reason.
  LogicalResult checkChannels();
  LogicalResult checkLayout();
  LogicalResult decodeWindows(AffineMap input, AffineMap filter);
  LogicalResult lookThroughPadding();
  LogicalResult checkSizes();
  void describeKind(int64_t stemChannels);
  void describeSizes();
  void describeWindows();
  LogicalResult describeWeight();

  /// All spatial dimensions have the same `value`.
  bool agree(int64_t Window::*value) const {
    return llvm::all_equal(llvm::map_range(
        windows, [&](const Window &window) { return window.*value; }));
  }
  /// The symbol for `value` of the spatial dimension `index`: `stem`, with the
  /// letter of the dimension where dimensions differ.
  std::string getSymbol(StringRef stem, int64_t Window::*value,
                        unsigned index) const {
    return (stem + (agree(value) ? "" : index == 0 ? "h" : "w")).str();
  }
  void describeOperator();
  void addCoefficients(StringRef stem, int64_t Window::*value);

  linalg::LinalgOp op;
  const linalg::ConvolutionDimensions &dims;
  std::string &reason;
  SmallVector<int64_t> loopSizes;
  SmallVector<Window, 2> windows;
  /// All spatial dimensions have the same kernel, stride, dilation, padding.
  bool isUniform = false;
  /// The parts of the kind's name.
  bool isStrided = false, isPointwise = false, isCentered = true,
       isUnpadded = false, isStem = false;
  Site site;
};

} // namespace

LogicalResult ConvolutionMatcher::checkChannels() {
  if (dims.batch.size() != 1)
    return miss(reason, "requires one batch dimension, got ",
                dims.batch.size());
  if (dims.outputImage.size() > 2)
    return miss(reason, "requires 1 or 2 spatial dimensions, got ",
                dims.outputImage.size());
  if (dims.depth.size() > 1 || dims.outputChannel.size() > 1 ||
      dims.inputChannel.size() > 1 ||
      dims.outputChannel.size() != dims.inputChannel.size() ||
      dims.depth.size() + dims.outputChannel.size() == 0)
    return miss(reason,
                "requires the channels of a dense, grouped or depthwise "
                "convolution, got ",
                dims.depth.size(), " group, ", dims.outputChannel.size(),
                " output and ", dims.inputChannel.size(),
                " input channel dimensions");
  return success();
}

/// Adds the dimension in `expr`, with the factor before it, to `terms`.
/// `2 * i + j` gives (i, 2), (j, 1); fails for anything else.
static LogicalResult
collectTerms(AffineExpr expr,
             SmallVectorImpl<std::pair<unsigned, int64_t>> &terms) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    terms.emplace_back(dim.getPosition(), 1);
    return success();
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (binary && binary.getKind() == AffineExprKind::Add)
    return failure(failed(collectTerms(binary.getLHS(), terms)) ||
                   failed(collectTerms(binary.getRHS(), terms)));
  if (!binary || binary.getKind() != AffineExprKind::Mul)
    return failure();
  auto dim = dyn_cast<AffineDimExpr>(binary.getLHS());
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (!dim || !factor || factor.getValue() < 1)
    return failure();
  terms.emplace_back(dim.getPosition(), factor.getValue());
  return success();
}

/// Each spatial index of the data is stride * i + dilation * j, in either
/// order.
LogicalResult ConvolutionMatcher::decodeWindows(AffineMap input,
                                                AffineMap filter) {
  for (AffineExpr expr : input.getResults().drop_front(getNumLeading())) {
    SmallVector<std::pair<unsigned, int64_t>> terms;
    if (failed(collectTerms(expr, terms)) || terms.size() != 2)
      return failure();
    if (llvm::is_contained(dims.filterLoop, terms[0].first))
      std::swap(terms[0], terms[1]);
    if (!llvm::is_contained(dims.outputImage, terms[0].first) ||
        !llvm::is_contained(dims.filterLoop, terms[1].first) ||
        // The window's loop must index the weight.
        !filter.getResultPosition(
            getAffineDimExpr(terms[1].first, op.getContext())))
      return failure();
    Window &window = windows.emplace_back();
    std::tie(window.outputLoop, window.stride) = terms[0];
    std::tie(window.kernelLoop, window.dilation) = terms[1];
    window.output = loopSizes[window.outputLoop];
    window.kernel = loopSizes[window.kernelLoop];
  }
  return success();
}

/// Batch, channels, then the spatial dimensions, in data and output alike.
LogicalResult ConvolutionMatcher::checkLayout() {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  auto startsWith = [&](AffineMap map, ArrayRef<unsigned> loops) {
    return map.getNumResults() == loops.size() + dims.outputImage.size() &&
           llvm::all_of(llvm::enumerate(loops), [&](auto entry) {
             return map.getResult(entry.index()) ==
                    getAffineDimExpr(entry.value(), op.getContext());
           });
  };
  SmallVector<unsigned> dataLoops{dims.batch.front()}, resultLoops = dataLoops;
  dataLoops.append(dims.depth.begin(), dims.depth.end());
  resultLoops.append(dims.depth.begin(), dims.depth.end());
  dataLoops.append(dims.inputChannel.begin(), dims.inputChannel.end());
  resultLoops.append(dims.outputChannel.begin(), dims.outputChannel.end());
  StringRef expected = "requires batch, channels, then spatial dimensions, in "
                       "data and result";
  if (!startsWith(maps[0], dataLoops) || !startsWith(maps[2], resultLoops) ||
      // The weight has its dimensions in any order, none twice.
      maps[1].getNumResults() != dims.depth.size() + dims.outputChannel.size() +
                                     dims.inputChannel.size() +
                                     dims.filterLoop.size() ||
      failed(decodeWindows(maps[0], maps[1])))
    return miss(reason, expected);
  for (auto [window, expr] :
       llvm::zip_equal(windows, maps[2].getResults().take_back(windows.size())))
    if (expr != getAffineDimExpr(window.outputLoop, op.getContext()))
      return miss(reason, expected);
  // The sizes of 3x3 windows do not tell rows from columns: transposed weights
  // would be taken for these.
  auto getKernelPosition = [&](const Window &window) {
    return *maps[1].getResultPosition(
        getAffineDimExpr(window.kernelLoop, op.getContext()));
  };
  if (!llvm::is_sorted(llvm::map_range(windows, getKernelPosition)))
    return miss(reason, "requires the spatial dimensions of the weight in the "
                        "order of those of the data");
  return success();
}

/// Data before the split of channels into groups, and before the padding.
LogicalResult ConvolutionMatcher::lookThroughPadding() {
  site.data = op.getDpsInputs()[0];
  if (isGrouped())
    site.data = lookThroughChannelSplit(site.data);
  auto pad = site.data.getDefiningOp<tensor::PadOp>();
  if (!pad)
    return success();
  // Operators clip windows, which is a padding of zero.
  Value fill = pad.getConstantPaddingValue();
  if (!fill || !(matchPattern(fill, m_PosZeroFloat()) ||
                 matchPattern(fill, m_NegZeroFloat())))
    return miss(reason, "requires a padding of zero, got another value");
  SmallVector<int64_t> low, high;
  if (!llvm::all_of(pad.getMixedLowPad(), [&](OpFoldResult amount) {
        low.push_back(getConstantIntValue(amount).value_or(-1));
        return low.back() >= 0;
      }))
    return miss(reason, "requires static padding of at least 0");
  // Padding after follows from the sizes, which are checked next.
  for (OpFoldResult amount : pad.getMixedHighPad())
    high.push_back(getConstantIntValue(amount).value_or(0));
  unsigned numLeading = low.size() - windows.size();
  for (unsigned index = 0; index < numLeading; ++index)
    if (low[index] != 0 || high[index] != 0)
      return miss(reason, "requires padding of spatial dimensions only, got ",
                  low[index] + high[index], " at dimension ", index);
  if (!pad.getSourceType().hasStaticShape())
    return miss(reason, "requires static shapes, got ", pad.getSourceType());
  for (auto [index, window] : llvm::enumerate(windows))
    window.low = low[numLeading + index];
  site.data = pad.getSource();
  return success();
}

/// An operator has outputs of the size input / stride: a convolution that
/// shrinks the image by its window is none.
LogicalResult ConvolutionMatcher::checkSizes() {
  ArrayRef<int64_t> shape = cast<ShapedType>(site.data.getType()).getShape();
  for (auto [window, input] :
       llvm::zip_equal(windows, shape.take_back(windows.size()))) {
    window.input = input;
    if (input % window.stride != 0)
      return miss(reason,
                  "requires an input size that is a multiple of the "
                  "stride ",
                  window.stride, ", got ", input);
    if (window.output != input / window.stride)
      return miss(reason, "requires padding that gives ", input / window.stride,
                  " outputs for ", input, " inputs at stride ", window.stride,
                  ", got ", window.output);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Description of a match
//===----------------------------------------------------------------------===//

/// The name is made of these parts in this order: conv1d, conv1x1 or conv2d;
/// _depthwise or _grouped; _strided; _unpadded or _dilated; _rectangular;
/// _stem.
void ConvolutionMatcher::describeKind(int64_t stemChannels) {
  isUniform = agree(&Window::kernel) && agree(&Window::stride) &&
              agree(&Window::dilation) && agree(&Window::low);
  isStrided = llvm::any_of(windows, [](auto &w) { return w.stride != 1; });
  bool isPoint = llvm::all_of(windows, [](auto &w) { return w.kernel == 1; });
  bool isDense = dims.depth.empty();
  isPointwise = isPoint && isDense && windows.size() == 2;
  isCentered = isPoint || llvm::all_of(windows, [](auto &w) {
                 return w.dilation == 1 && w.isCentered();
               });
  isUnpadded =
      !isCentered && llvm::all_of(windows, [](auto &w) { return w.low == 0; });
  // Few input channels, as of an image: nothing to gain, and often left out of
  // searches.
  isStem = isDense && loopSizes[dims.inputChannel.front()] <= stemChannels;

  LayerKind &kind = site.kind;
  kind.name = windows.size() == 1 ? "conv1d"
              : isPointwise       ? "conv1x1"
                                  : "conv2d";
  kind.name += isDepthwise() ? "_depthwise" : isGrouped() ? "_grouped" : "";
  kind.name += isStrided ? "_strided" : "";
  kind.name += isCentered ? "" : isUnpadded ? "_unpadded" : "_dilated";
  kind.name += isUniform ? "" : "_rectangular";
  // The operators of the library are named after kinds.
  if (isUniform && lookupNamedOperator(kind.name))
    kind.namedOperator = "kas." + kind.name;
  kind.name += isStem ? "_stem" : "";
  kind.hasUnorderedChannels = isDense;
}

/// The symbols of data and result, and their values for this layer.
void ConvolutionMatcher::describeSizes() {
  LayerKind &kind = site.kind;
  auto addPrimary = [&](StringRef name, int64_t value) {
    kind.primaries.push_back(name.str());
    site.binding.emplace_back(name.str(), value);
  };
  int64_t batch = loopSizes[dims.batch.front()];
  // Cin and Cout count the channels of all groups.
  int64_t groups = dims.depth.empty() ? 1 : loopSizes[dims.depth.front()];
  int64_t inputs = groups, outputs = groups;
  addPrimary("N", batch);
  if (isDepthwise()) {
    addPrimary("C", groups);
    kind.inputSizes = kind.outputSizes = {"N", "C"};
  } else {
    inputs *= loopSizes[dims.inputChannel.front()];
    outputs *= loopSizes[dims.outputChannel.front()];
    addPrimary("Cin", inputs);
    addPrimary("Cout", outputs);
    kind.inputSizes = {"N", "Cin"};
    kind.outputSizes = {"N", "Cout"};
  }
  site.dataShape = {batch, inputs};
  site.resultShape = {batch, outputs};
  for (auto [index, window] : llvm::enumerate(windows)) {
    // L of one dimension, H and W of two.
    std::string name = windows.size() == 1 ? "L" : index == 0 ? "H" : "W";
    addPrimary(name, window.input);
    kind.inputSizes.push_back(name);
    kind.outputSizes.push_back(
        // H/s, or H/sh where strides differ.
        isStrided ? name + "/" + getSymbol("s", &Window::stride, index) : name);
    site.dataShape.push_back(window.input);
    site.resultShape.push_back(window.output);
  }
}

/// One symbol, or one for each dimension where they differ.
void ConvolutionMatcher::addCoefficients(StringRef stem,
                                         int64_t Window::*value) {
  unsigned count = agree(value) ? 1 : windows.size();
  for (unsigned index = 0; index < count; ++index) {
    // No padding has no symbol: a coefficient is at least 1.
    if (windows[index].*value == 0)
      continue;
    std::string symbol = getSymbol(stem, value, index);
    site.kind.coefficients.push_back(symbol);
    site.binding.emplace_back(symbol, windows[index].*value);
  }
}

/// A pointwise layer has no k, a dense one no g: symbols that are always 1
/// would only enlarge search spaces.
void ConvolutionMatcher::describeWindows() {
  if (!isPointwise)
    addCoefficients("k", &Window::kernel);
  if (isStrided)
    addCoefficients("s", &Window::stride);
  if (!isCentered)
    addCoefficients("d", &Window::dilation);
  if (!isCentered)
    addCoefficients("p", &Window::low);
  if (isGrouped()) {
    site.kind.coefficients.push_back("g");
    site.binding.emplace_back("g", loopSizes[dims.depth.front()]);
  }
}

/// For kinds that the library does not have.
/// `-kas-substitute` parses the text where no other operator is named.
void ConvolutionMatcher::describeOperator() {
  LayerKind &kind = site.kind;
  if (!kind.namedOperator.empty())
    return;
  SmallVector<WindowSymbols, 2> symbols;
  for (auto [index, window] : llvm::enumerate(windows)) {
    WindowSymbols &entry = symbols.emplace_back();
    entry.input = kind.inputSizes[2 + index];
    entry.output = kind.outputSizes[2 + index];
    entry.kernel = getSymbol("k", &Window::kernel, index);
    entry.isCentered = isCentered;
    if (isStrided)
      entry.stride = getSymbol("s", &Window::stride, index);
    if (!isCentered)
      entry.dilation = getSymbol("d", &Window::dilation, index);
    if (!isCentered && window.low != 0)
      entry.low = getSymbol("p", &Window::low, index);
  }
  kind.definition = writeConvolution(kind,
                                     isDepthwise() ? ChannelKind::Depthwise
                                     : isGrouped() ? ChannelKind::Grouped
                                                   : ChannelKind::Dense,
                                     symbols);
}

/// The sizes of the weight in its own order of dimensions.
LogicalResult ConvolutionMatcher::describeWeight() {
  SmallVector<std::string, 5> sizes;
  for (AffineExpr expr : op.getIndexingMapsArray()[1].getResults()) {
    unsigned loop = cast<AffineDimExpr>(expr).getPosition();
    if (llvm::is_contained(dims.depth, loop))
      sizes.push_back(isDepthwise() ? "C" : "g");
    else if (llvm::is_contained(dims.outputChannel, loop))
      sizes.push_back(isGrouped() ? "Cout/g" : "Cout");
    else if (llvm::is_contained(dims.inputChannel, loop))
      sizes.push_back(isGrouped() ? "Cin/g" : "Cin");
    else
      sizes.push_back(isPointwise
                          ? "1"
                          : getSymbol("k", &Window::kernel,
                                      windows[0].kernelLoop == loop ? 0 : 1));
  }
  return setWeight(site, op.getDpsInputs()[1], sizes, reason);
}

/// Checks before descriptions: these assume that the layer fits.
FailureOr<Site> ConvolutionMatcher::match(int64_t stemChannels) {
  site.op = op;
  // Data and result are [N, g, C/g, ...] around a grouped convolution.
  site.hasSplitChannels = isGrouped();
  if (failed(checkChannels()) || failed(checkLayout()) ||
      failed(lookThroughPadding()) || failed(checkSizes()))
    return failure();
  describeKind(stemChannels);
  describeSizes();
  describeWindows();
  // Rectangular layers may have kh, kw, sh, sw, dh, dw, ph, pw.
  if (site.binding.size() > SymbolSet::maxSymbols)
    return miss(reason, "requires at most ", SymbolSet::maxSymbols,
                " symbols for kernels, strides, dilations and paddings that "
                "differ between dimensions, got ",
                site.binding.size());
  describeOperator();
  if (failed(describeWeight()))
    return failure();
  // All loops, padding included, as frameworks count.
  site.macs = 1;
  for (int64_t size : loopSizes)
    site.macs *= size;
  return site;
}

FailureOr<Site>
kas::networks::matchConvolution(linalg::LinalgOp op,
                                const linalg::ConvolutionDimensions &dims,
                                int64_t stemChannels, std::string &reason) {
  return ConvolutionMatcher(op, dims, reason).match(stemChannels);
}
