//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes an operator as a graph for Graphviz.
// Coordinates flow from the outputs at the top through the primitives to the
// data and weights at the bottom, as in the figures of Syno; each edge has its
// size.
//
//===----------------------------------------------------------------------===//

#include "kas/Target/Text.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace kas;
using namespace kas::target;
using namespace mlir;

/// A size as text: `C/s`.
static std::string print(SizeAttr size) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  SmallVector<StringRef> names;
  for (StringAttr name : size.getNames())
    names.push_back(name.getValue());
  printSize(stream, size.getValue(), names);
  return text;
}

/// `kas.merge by s`.
static std::string getLabel(Operation *primitive) {
  std::string name = primitive->getName().stripDialect().str();
  return llvm::TypeSwitch<Operation *, std::string>(primitive)
      .Case<MergeOp>(
          [&](auto op) { return name + " by " + print(op.getBlock()); })
      .Case<StrideOp>(
          [&](auto op) { return name + " by " + print(op.getFactor()); })
      .Case<ShiftOp>([&](auto op) {
        return name + " by " + std::to_string(op.getAmount());
      })
      .Case<ReduceOp>([&](auto op) {
        return name + " " + stringifyReduceKind(op.getKind()).str();
      })
      .Default([&](Operation *) { return name; });
}

/// A name of the dialect may have any characters, or be a keyword of DOT.
static std::string quote(StringRef name) {
  std::string text = "\"";
  for (char c : name) {
    if (c == '"' || c == '\\')
      text += '\\';
    text += c;
  }
  return text + "\"";
}

/// For example for a sum over C:
///    output0 [label="output 0"]   p0 [label="reduce sum"]   data [shape=box3d]
///    output0 -> data [label="N"]   p0 -> data [label="C"]
void kas::target::writeGraph(OperatorOp op, llvm::raw_ostream &os) {
  os << "digraph " << quote(op.getSymName()) << " {\n"
     << "  rankdir=TB\n"
     << "  node [shape=box, style=rounded, fontname=\"Helvetica\"]\n"
     << "  edge [fontname=\"Helvetica\", fontsize=10]\n";
  // The node that defines each coordinate.
  llvm::DenseMap<Value, std::string> sources;
  for (auto [index, output] : llvm::enumerate(op.getOutputs())) {
    std::string name = "output" + std::to_string(index);
    os << "  " << name << " [label=\"output " << index
       << "\", shape=ellipse]\n";
    sources[output] = name;
  }
  // Edges point in the direction of reading: from a value to those that it
  // needs.
  auto writeEdge = [&](Value coordinate, const Twine &target) {
    os << "  " << sources[coordinate] << " -> " << target << " [label=\""
       << print(getSize(coordinate)) << "\"]\n";
  };
  for (auto [index, primitive] :
       llvm::enumerate(op.getBody().front().without_terminator())) {
    std::string name = "p" + std::to_string(index);
    os << "  " << name << " [label=\"" << getLabel(&primitive) << "\"]\n";
    for (Value operand : primitive.getOperands())
      writeEdge(operand, name);
    for (Value result : primitive.getResults())
      sources[result] = name;
  }
  // An edge for each dimension, in order; DOT keeps the order of edges.
  auto writeTensor = [&](const std::string &name, ValueRange coordinates) {
    os << "  " << name
       << " [shape=box3d, style=filled, fillcolor=\"#dde8f5\"]\n";
    for (auto [index, coordinate] : llvm::enumerate(coordinates))
      writeEdge(coordinate, name);
  };
  YieldOp yield = op.getYield();
  writeTensor("data", yield.getData());
  for (auto [index, weight] : llvm::enumerate(yield.getWeights()))
    writeTensor("weight" + std::to_string(index), weight);
  os << "}\n";
}
