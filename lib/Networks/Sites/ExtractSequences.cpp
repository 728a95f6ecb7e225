//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes a space of two-stage sequences for convolutions: windows per channel
// or group, then channel mixing.
// Separable convolutions as a space of their own: `_window` sees the window of
// the layer with a weight per channel or group, `_mixing` reaches all channels
// with weights without positions, and between them are M channels, a
// normalization and a rectifier (`kas.sequence_space`,
// docs/reference/dialect.md).
//
//===----------------------------------------------------------------------===//

#include "ExtractSequences.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace kas;
using namespace kas::networks;

namespace {
/// For the space @conv2d of [N, Cin, H, W] -> [N, Cout, H, W] it writes
///    @conv2d_window:    [N, Cin, H, W] -> [N, M, H, W]
///    @conv2d_mixing:    [N, M, H, W] -> [N, Cout, H, W]
///    @conv2d_sequences: of @conv2d [@conv2d_window, @conv2d_mixing], M = [...]
class SequenceWriter {
public:
  SequenceWriter(OpBuilder &builder, SymbolTable &symbols, SpaceOp layers,
                 ArrayRef<StringRef> windows)
      : builder(builder), symbols(symbols), layers(layers), windows(windows) {
    // Channels come second.
    channels = cast<SizeAttr>(layers.getInputSizes()[1]);
    // A name that no symbol has: M, Mm, ...
    while (layers.getSymbolSet().lookup(width))
      width += "m";
  }

  void write(BindingAttr coefficients);

private:
  ArrayAttr getBetweenSizes() const;
  /// Those of the layers and the width.
  ArrayAttr getPrimaries() const;
  ArrayAttr getBindings() const;
  /// A space like that of the layers with other sizes and limits, and without a
  /// budget: the sequence has that of the layers.
  SpaceOp writeStage(StringRef suffix, ArrayAttr outputs, ArrayAttr inputs,
                     NamedAttrList limits);
  NamedAttrList getLimits(ArrayRef<std::pair<StringRef, int64_t>> values) const;
  SmallVector<Attribute> getWidths(BindingAttr coefficients) const;

  OpBuilder &builder;
  SymbolTable &symbols;
  SpaceOp layers;
  ArrayRef<StringRef> windows;
  /// Of the input.
  SizeAttr channels;
  /// The symbol of the channels between.
  std::string width = "M";
};
} // namespace

/// The sizes of the output with the width in the place of its channels.
ArrayAttr SequenceWriter::getBetweenSizes() const {
  SmallVector<Attribute> sizes(SpaceOp(layers).getOutputSizes().getValue());
  sizes[1] = SizeAttr::getSymbol(builder.getContext(), width);
  return builder.getArrayAttr(sizes);
}

ArrayAttr SequenceWriter::getPrimaries() const {
  SmallVector<Attribute> names(SpaceOp(layers).getPrimaries().getValue());
  names.push_back(builder.getStringAttr(width));
  return builder.getArrayAttr(names);
}

/// Those of the layers, with as many channels between as the input has.
ArrayAttr SequenceWriter::getBindings() const {
  SpaceOp space = layers;
  SymbolSet known = space.getSymbolSet();
  SmallVector<Attribute> bindings;
  for (auto [binding, values] :
       llvm::zip_equal(space.getBindings().getAsRange<BindingAttr>(),
                       space.getBindingValues())) {
    SmallVector<std::pair<StringRef, int64_t>> entries;
    for (auto [name, value] :
         llvm::zip_equal(binding.getNames(), binding.getValues()))
      entries.emplace_back(name.getValue(), value);
    // The layers are legal at their bindings.
    entries.emplace_back(width, *kas::evaluate(channels, known, values));
    bindings.push_back(BindingAttr::getNormal(builder.getContext(), entries));
  }
  return builder.getArrayAttr(bindings);
}

/// `unfold_ratio` is of the images, which are the same.
NamedAttrList SequenceWriter::getLimits(
    ArrayRef<std::pair<StringRef, int64_t>> values) const {
  NamedAttrList limits;
  for (auto [name, value] : values)
    limits.append(name, builder.getI64IntegerAttr(value));
  if (Attribute ratio = SpaceOp(layers).getLimits().get("unfold_ratio"))
    limits.append("unfold_ratio", ratio);
  return limits;
}

SpaceOp SequenceWriter::writeStage(StringRef suffix, ArrayAttr outputs,
                                   ArrayAttr inputs, NamedAttrList limits) {
  auto space = SpaceOp::create(
      builder, layers.getLoc(),
      builder.getStringAttr(layers.getSymName() + "_" + suffix),
      /*sym_visibility=*/nullptr, getPrimaries(), layers.getCoefficients(),
      outputs, layers.getOutputUnorderedAttr(), inputs,
      layers.getInputUnorderedAttr(), getBindings(),
      layers.getMultiplicitiesAttr(),
      limits.getDictionary(builder.getContext()),
      builder.getDictionaryAttr({}));
  symbols.insert(space, builder.getInsertionPoint());
  return space;
}

/// The number of channels, its double, and its quotients by coefficients where
/// these are integers at all bindings.
SmallVector<Attribute>
SequenceWriter::getWidths(BindingAttr coefficients) const {
  SizeAttr two = SizeAttr::getConstant(builder.getContext(), 2);
  SmallVector<Attribute> widths{channels};
  // Twice as many channels between, where the size does not overflow.
  if (SizeAttr wide = channels.multiply(two))
    widths.push_back(wide);
  SymbolSet known = SpaceOp(layers).getSymbolSet();
  SmallVector<Binding> bindings = SpaceOp(layers).getBindingValues();
  if (!coefficients)
    return widths;
  for (auto [name, value] :
       llvm::zip_equal(coefficients.getNames(), coefficients.getValues())) {
    SizeAttr narrow = channels.divide(
        SizeAttr::getSymbol(builder.getContext(), name.getValue()));
    std::optional<Size> size = narrow ? narrow.toSize(known) : std::nullopt;
    if (value > 1 && size && size->isLegal(bindings))
      widths.push_back(narrow);
  }
  return widths;
}

/// Each stage has the primitives of its half: the first takes one weight and no
/// mixing of all channels, the second no windows.
void SequenceWriter::write(BindingAttr coefficients) {
  int64_t axes = windows.size(), strides = layers.getLimit("stride", 0);
  ArrayAttr between = getBetweenSizes();
  NamedAttrList limits = getLimits({{"depth", 6 + axes + strides},
                                    {"reduce", 1 + axes},
                                    {"split", 1},
                                    {"merge", 1},
                                    {"shift", 0},
                                    {"unfold", axes},
                                    {"stride", strides},
                                    {"weights", 1},
                                    {"weight_takes", 0},
                                    {"weights_by_position", 0},
                                    {"equivariant", 1}});
  // The window along each axis, as the layer has it.
  SmallVector<Attribute> sees;
  for (StringRef window : windows)
    sees.push_back(builder.getStringAttr(window));
  limits.append("sees", builder.getArrayAttr(sees));
  SpaceOp first = writeStage("window", between, layers.getInputSizes(), limits);
  // Two weights: the mixing may be of low rank.
  SpaceOp second = writeStage("mixing", layers.getOutputSizes(), between,
                              getLimits({{"depth", 6},
                                         {"reduce", 2},
                                         {"split", 1},
                                         {"merge", 1},
                                         {"shift", 0},
                                         {"unfold", 0},
                                         {"weights", 2},
                                         {"weights_by_position", 0},
                                         {"equivariant", 1},
                                         {"reaches", 1}}));
  // Each width is one space of sequences.
  auto widths = builder.getDictionaryAttr(builder.getNamedAttr(
      width, builder.getArrayAttr(getWidths(coefficients))));
  auto sequences = SequenceSpaceOp::create(
      builder, layers.getLoc(),
      builder.getStringAttr(layers.getSymName() + "_sequences"),
      /*sym_visibility=*/nullptr,
      FlatSymbolRefAttr::get(layers.getSymNameAttr()),
      builder.getArrayAttr({FlatSymbolRefAttr::get(first.getSymNameAttr()),
                            FlatSymbolRefAttr::get(second.getSymNameAttr())}),
      builder.getDenseI32ArrayAttr(
          {static_cast<int32_t>(SequenceStep::NormalizeRelu),
           static_cast<int32_t>(SequenceStep::Normalize)}),
      widths);
  symbols.insert(sequences, builder.getInsertionPoint());
}

void kas::networks::writeSequenceSpace(OpBuilder &builder, SymbolTable &symbols,
                                       SpaceOp layers,
                                       ArrayRef<StringRef> windows,
                                       BindingAttr coefficients) {
  SequenceWriter(builder, symbols, layers, windows).write(coefficients);
}
