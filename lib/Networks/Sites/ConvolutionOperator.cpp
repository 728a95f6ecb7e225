//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes the operator that computes what a matched convolution computes.
// For example, of kind conv2d with stride 2 (one window of two shown):
//    kas.operator @conv2d_strided_layer<N, Cin, Cout, H, W | k, s>
//        (%n: N, %o: Cout, %x0: H/s, ...) from [N, Cin, H, W] {
//      %c = kas.reduce sum : Cin
//      %s0 = kas.stride %x0 by s : H/s
//      %y0 = kas.unfold %s0, %i0_d : H, k
// The text is parsed when it is needed (docs/reference/dialect.md).
//
//===----------------------------------------------------------------------===//

#include "Matching.h"

using namespace kas;
using namespace kas::networks;

namespace {

/// Writes the body of an operator, one coordinate after the other.
class BodyWriter {
public:
  explicit BodyWriter(llvm::raw_ostream &os) : os(os) {}

  /// `%name = kas.reduce sum`, shared: data side `%name_d`, weight side
  /// `%name_w`.
  void reduceShared(llvm::StringRef name, llvm::StringRef size) {
    os << "  %" << name << " = kas.reduce sum : " << size << "\n";
    share(name, name, size);
  }

  /// `%name_d, %name_w = kas.share %operand`.
  void share(llvm::StringRef name, llvm::StringRef operand,
             llvm::StringRef size) {
    os << "  %" << name << "_d, %" << name << "_w = kas.share %" << operand
       << " : " << size << "\n";
  }

  /// `%name = kas.stride %operand by factor`, or `operand` when there is no
  /// factor. Returns the name of what it made.
  std::string stride(const llvm::Twine &name, std::string operand,
                     llvm::StringRef factor, llvm::StringRef size) {
    if (factor.empty())
      return operand;
    os << "  %" << name << " = kas.stride %" << operand << " by " << factor
       << " : " << size << "\n";
    return name.str();
  }

private:
  llvm::raw_ostream &os;
};

} // namespace

/// `i + stride * h - low` and so on, for the spatial dimension `index`.
/// Reads the window's coordinate `%y<index>`, and leaves `%i<index>_w` for the
/// weight.
static void writeWindow(llvm::raw_ostream &os, BodyWriter &writer,
                        const WindowSymbols &window, unsigned index) {
  std::string kernel = "i" + std::to_string(index);
  writer.reduceShared(kernel, window.kernel);
  std::string position =
      writer.stride("s" + llvm::Twine(index), "x" + std::to_string(index),
                    window.stride, window.output);
  std::string offset = writer.stride("t" + llvm::Twine(index), kernel + "_d",
                                     window.dilation, window.kernel);
  os << "  %y" << index << " = kas.unfold %" << position << ", %" << offset;
  // Without `low` the window is centred; 0 has no symbol.
  if (!window.isCentered)
    os << " low " << (window.low.empty() ? "0" : window.low);
  os << " : " << window.input << ", ";
  os << (window.dilation.empty() ? window.kernel
                                 : window.dilation + "*" + window.kernel)
     << "\n";
}

std::string
kas::networks::writeConvolution(const LayerKind &kind, ChannelKind channels,
                                llvm::ArrayRef<WindowSymbols> windows) {
  std::string text;
  llvm::raw_string_ostream os(text);
  BodyWriter writer(os);
  os << "kas.operator @" << kind.name << "_layer<";
  llvm::interleaveComma(kind.primaries, os);
  if (!kind.coefficients.empty())
    os << " | ";
  llvm::interleaveComma(kind.coefficients, os);
  os << ">\n    (%n: N, %o: " << kind.outputSizes[1];
  for (auto [index, window] : llvm::enumerate(windows))
    os << ", %x" << index << ": " << window.output;
  os << ") from [";
  llvm::interleaveComma(kind.inputSizes, os);
  os << "] {\n";

  // Dense: the channel is summed over, the weight has output and input channel.
  std::string channel = "c_d", weight = "%o, %c_w";
  if (channels == ChannelKind::Depthwise) {
    // Depthwise: the output's channel is that of the data and of the weight.
    writer.share("c", "o", "C");
    weight = "%c_w";
  } else if (channels == ChannelKind::Grouped) {
    // Grouped: the output channel is (group, channel in it), the input channel
    // (group, summed channel).
    writer.reduceShared("c", "Cin/g");
    os << "  %G, %f = kas.merge %o by Cout/g : Cout\n";
    writer.share("G", "G", "g");
    os << "  %gc = kas.split %G_d, %c_d : g, Cin/g\n";
    channel = "gc";
    weight = "%G_w, %f, %c_w";
  } else {
    writer.reduceShared("c", "Cin");
  }
  for (auto [index, window] : llvm::enumerate(windows))
    writeWindow(os, writer, window, index);

  os << "  kas.yield data(%n, %" << channel;
  for (unsigned index = 0; index < windows.size(); ++index)
    os << ", %y" << index;
  os << ") weight(" << weight;
  for (unsigned index = 0; index < windows.size(); ++index)
    os << ", %i" << index << "_w";
  os << ")\n}\n";
  return text;
}
