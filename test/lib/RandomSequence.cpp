//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sequences are drawn as text. Channels are counted in halves of C, so that
// what is joined has a size.
//
//===----------------------------------------------------------------------===//

#include "RandomSequence.h"
#include "kas/Support/Random.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace kas;
using namespace kas::test;

namespace {

/// Draws the text of one operator.
class StageWriter {
public:
  StageWriter(kas::Random &random, std::string &text,
              std::vector<AxisPart> &parts)
      : random(random), text(text), parts(parts) {}

  /// From channels of the size `input` to those of the size `output`.
  void write(StringRef name, const std::string &input,
             const std::string &output);

private:
  void writeChannels(const std::string &input, const std::string &output);
  void writeAxis(const std::string &name, const std::string &size);
  void writeCyclic(const std::string &name, const std::string &size,
                   const std::string &window, unsigned weight);
  /// The line, and a share of what it makes between data and a weight.
  void addShared(const std::string &value, const std::string &line,
                 const std::string &size, unsigned weight);
  void addLine(const std::string &line) { text += "  " + line + "\n"; }

  kas::Random &random;
  std::string &text;
  std::vector<AxisPart> &parts;
  std::vector<std::string> data;
  std::vector<std::string> weights[2];
};

} // namespace

void StageWriter::addShared(const std::string &value, const std::string &line,
                            const std::string &size, unsigned weight) {
  if (!line.empty())
    addLine(value + " = " + line);
  addLine(llvm::formatv("{0}_d, {0}_w = kas.share {0} : {1}", value, size));
  weights[weight].push_back(value + "_w");
}

/// Each channel alone, groups of them, or all with all.
void StageWriter::writeChannels(const std::string &input,
                                const std::string &output) {
  unsigned kind = input == output ? random.below(3) : 2;
  if (kind == 0) {
    addShared("%o", "", output, 0);
    data.push_back("%o_d");
    return;
  }
  std::string size = kind == 1 ? input + "/g" : input;
  if (kind == 1) {
    addLine(llvm::formatv("%q, %p = kas.merge %o by {0} : {1}", size, output));
    addShared("%q", "", "g", 0);
    weights[0].push_back("%p");
  } else {
    weights[0].push_back("%o");
  }
  addShared("%c", "kas.reduce sum : " + size, size, 0);
  if (kind == 1)
    addLine(llvm::formatv("%x = kas.split %q_d, %c_d : g, {0}", size));
  data.push_back(kind == 1 ? "%x" : "%c_d");
}

void StageWriter::writeAxis(const std::string &name, const std::string &size) {
  std::string axis = "%" + name, r = "%r" + name, x = "%x" + name;
  unsigned weight = random.below(2);
  auto addWindow = [&](const std::string &window, const std::string &low) {
    addShared(r, "kas.reduce sum : " + window, window, weight);
    addLine(llvm::formatv("{0} = kas.unfold {1}, {2}_d{3} : {4}, {5}", x, axis,
                          r, low, size, window));
    data.push_back(x);
  };
  parts.push_back(static_cast<AxisPart>(random.below(numAxisParts)));
  switch (parts.back()) {
  case AxisPart::Nothing:
    data.push_back(axis);
    return;
  case AxisPart::Window:
    return addWindow("k", "");
  case AxisPart::CausalWindow:
    return addWindow("k", " causal");
  case AxisPart::WindowWithGaps:
    addShared(r, "kas.reduce sum : k", "k", weight);
    addLine(llvm::formatv("%s{0} = kas.stride {1}_d by 2 : k", name, r));
    addLine(llvm::formatv("{0} = kas.unfold {1}, %s{2} low 2 : {3}, 2*k", x,
                          axis, name, size));
    data.push_back(x);
    return;
  case AxisPart::CyclicWindow:
    return writeCyclic(name, size, "k", weight);
  case AxisPart::ByDistance: // A Toeplitz matrix.
    return addWindow("2*" + size, " low " + size);
  case AxisPart::ByCyclicDistance: // A circulant matrix.
    return writeCyclic(name, size, size, weight);
  case AxisPart::ByPosition:
    addShared(r, "kas.reduce sum : " + size, size, weight);
    weights[weight].push_back(axis);
    data.push_back(r + "_d");
    return;
  case AxisPart::AtLowRank: // By position, as a product of two matrices.
    addShared(r, "kas.reduce sum : " + size, size, weight);
    addLine(llvm::formatv("%t{0} = kas.reduce sum : g", name));
    addLine(llvm::formatv("%t{0}_0, %t{0}_1 = kas.share %t{0} : g", name));
    for (unsigned side : {0, 1})
      weights[side].push_back(llvm::formatv("%t{0}_{1}", name, side).str());
    weights[1 - weight].push_back(axis);
    data.push_back(r + "_d");
    return;
  case AxisPart::Shift:
    addLine(llvm::formatv("{0} = kas.shift {1} by 1 : {2}", x, axis, size));
    data.push_back(x);
    return;
  }
  llvm_unreachable("all parts are handled");
}

/// docs/reference/dialect.md, "What fields need".
void StageWriter::writeCyclic(const std::string &name, const std::string &size,
                              const std::string &window, unsigned weight) {
  std::string r = "%r" + name;
  addShared(r, "kas.reduce sum : " + window, window, weight);
  for (StringRef line :
       {"%z{0} = kas.reduce sum : 1", "%t{0} = kas.stride %z{0} by 3 : 1",
        "%m{0} = kas.shift %t{0} by 1 : 3",
        "%b{0} = kas.split %m{0}, %{0} : 3, {1}",
        "%u{0} = kas.unfold %b{0}, {2}_d : 3*{1}, {3}",
        "%q{0}, %x{0} = kas.merge %u{0} by {1} : 3*{1}",
        "kas.expand %q{0} : 3"})
    addLine(llvm::formatv(line.data(), name, size, r, window));
  data.push_back("%x" + name);
}

void StageWriter::write(StringRef name, const std::string &input,
                        const std::string &output) {
  text += llvm::formatv("kas.operator @{0}<N, C, H, W | g, k>(%n: N, %o: {1}, "
                        "%h: H, %w: W) from [N, {2}, H, W] {{\n",
                        name, output, input);
  data.push_back("%n");
  writeChannels(input, output);
  writeAxis("h", "H");
  writeAxis("w", "W");
  std::string line = "kas.yield data(" + llvm::join(data, ", ") + ")";
  for (const auto &weight : weights)
    if (!weight.empty())
      line += " weight(" + llvm::join(weight, ", ") + ")";
  addLine(line);
  text += "}\n";
}

static std::string getChannels(unsigned halves) {
  if (halves == 2)
    return "C";
  std::string factor = halves % 2 ? std::to_string(halves) + "*C/2"
                                  : std::to_string(halves / 2) + "*C";
  return halves == 1 ? "C/2" : factor;
}

RandomSequence
kas::test::makeRandomSequence(MLIRContext *context, uint64_t seed,
                              const RandomSequenceOptions &options) {
  RandomSequence result;
  kas::Random random(seed);
  std::string text, stages, steps;
  unsigned count = 0, halves = 2;
  unsigned numGroups = 1 + random.below(options.maxGroups);
  for (unsigned group = 0; group < numGroups; ++group) {
    if (group > 0) {
      static constexpr StringRef names[] = {"none", "relu", "normalize",
                                            "normalize_relu"};
      stages += ", ";
      steps += (group > 1 ? ", " : "") +
               names[random.below(options.normalizes ? 4 : 2)].str();
    }
    std::string input = getChannels(halves);
    unsigned numParallel = 1 + random.below(options.maxParallel), total = 0;
    for (unsigned number = 0; number < numParallel; ++number, ++count) {
      static constexpr StringRef names[] = {"add", "multiply", "join"};
      // What is added has as many channels as there are; the first group is
      // often narrow.
      StringRef step = number ? names[random.below(3)] : "join";
      unsigned own = step == "join" ? 1 + random.below(2) : total;
      total = step == "join" ? total + own : total;
      std::string name = "stage" + std::to_string(count);
      stages += (number ? " " + step.str() + " " : "") + "@" + name;
      StageWriter(random, text, result.parts)
          .write(name, input, getChannels(own));
    }
    halves = total;
  }
  text += "kas.sequence @random [" + stages + "] between [" + steps + "]\n";
  result.module = parseSourceString<ModuleOp>(text, context);
  assert(result.module && "sequences are valid by construction");
  result.op = cast<SequenceOp>(result.module->getBody()->back());
  result.binding =
      BindingAttr::getNormal(context, {{"N", 1 + random.below(2)},
                                       {"C", 4 * (1 + random.below(2))},
                                       {"H", 3 + random.below(4)},
                                       {"W", 3 + random.below(6)},
                                       {"g", 2},
                                       {"k", 3}});
  return result;
}
