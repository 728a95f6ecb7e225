//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library of named operators and kernels, embedded as text: look-up,
// documentation from the comments, insertion into modules.
// The texts are the .mlir files of this folder and of kernels/, packed into two
// sorted arrays when kas is built; the comment at the head of each file is its
// documentation.
//
//===----------------------------------------------------------------------===//

#include "kas/Library/Operators.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/IR/Builders.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace kas;
using namespace kas::library;
using namespace mlir;

/// Sorted by name, so that a look-up is a binary search. Operators are
/// `kas.operator`s, kernels are those of the tensor level.
static constexpr NamedOperator operators[] = {
#include "NamedOperators.inc"
};

static constexpr NamedOperator kernels[] = {
#include "NamedKernels.inc"
};

/// The words of the comment's paragraph that starts with `label`; the title is
/// the paragraph without a label.
static std::string getParagraph(StringRef text, StringRef label) {
  // Paragraphs look like this; an empty comment line ends one:
  //    // Title of the operator.
  //    // Formula: y[n, c] = ...
  //    // Source: a paper, with the section.
  SmallVector<StringRef> lines, words;
  text.split(lines, '\n');
  bool inside = label.empty();
  for (StringRef line : lines) {
    // The comment ends at the first line of MLIR.
    if (!line.consume_front("//"))
      break;
    bool starts = line.starts_with(" Formula:") || line.starts_with(" Source:");
    if (starts || line.empty()) {
      if (inside)
        break;
      inside = starts && line.consume_front((" " + label).str());
    }
    if (inside)
      words.push_back(line.trim());
  }
  return llvm::join(words, " ");
}

std::string NamedOperator::getTitle() const { return getParagraph(text, ""); }

std::string NamedOperator::getFormula() const {
  return getParagraph(text, "Formula: ");
}

std::string NamedOperator::getSource() const {
  return getParagraph(text, "Source: ");
}

ArrayRef<NamedOperator> kas::library::getNamedOperators() { return operators; }

ArrayRef<NamedOperator> kas::library::getNamedKernels() { return kernels; }

/// The entry called `name`, with or without the dialect's prefix `kas.`, or
/// null.
static const NamedOperator *lookup(ArrayRef<NamedOperator> list,
                                   StringRef name) {
  name.consume_front("kas.");
  const NamedOperator *found = llvm::lower_bound(
      list, name,
      [](const NamedOperator &op, StringRef name) { return op.name < name; });
  return found != list.end() && found->name == name ? found : nullptr;
}

const NamedOperator *kas::library::lookupNamedOperator(StringRef name) {
  return lookup(operators, name);
}

const NamedOperator *kas::library::lookupNamedKernel(StringRef name) {
  return lookup(kernels, name);
}

/// Parses `op` and moves it to the end of `module`. The text is our own, so a
/// failure is our own mistake.
static void parseInto(ModuleOp module, const NamedOperator &op) {
  OwningOpRef<ModuleOp> parsed = parseSourceString<ModuleOp>(
      op.text, ParserConfig(module.getContext()), ("kas." + op.name).str());
  assert(parsed && "a named operator does not parse");
  // Operators refer to nothing outside themselves, so moving them needs no
  // mapping.
  module.getBody()->getOperations().splice(module.getBody()->end(),
                                           parsed->getBody()->getOperations());
}

/// A module of all `operators`, which must not share symbol names.
static OwningOpRef<ModuleOp> parseAll(MLIRContext *context,
                                      ArrayRef<NamedOperator> operators) {
  context->loadDialect<KasDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context));
  for (const NamedOperator &op : operators)
    parseInto(*module, op);
  return module;
}

OwningOpRef<ModuleOp> kas::library::parseNamedOperator(MLIRContext *context,
                                                       StringRef name) {
  if (const NamedOperator *op = lookupNamedOperator(name))
    return parseAll(context, *op);
  return nullptr;
}

OwningOpRef<ModuleOp> kas::library::parseNamedKernel(MLIRContext *context,
                                                     StringRef name) {
  if (const NamedOperator *kernel = lookupNamedKernel(name))
    return parseAll(context, *kernel);
  return nullptr;
}

/// Names are distinct, so one module takes all of them.
OwningOpRef<ModuleOp> kas::library::parseNamedOperators(MLIRContext *context) {
  return parseAll(context, operators);
}
