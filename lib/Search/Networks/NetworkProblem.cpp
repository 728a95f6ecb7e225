//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The problem of a search for transformations: the convolutions of a network
// and their shapes.
//
// Layers of the same text share programs, transformed modules, and
// measurements: a ResNet has few different convolutions.
// docs/guide/network-search.md has the error N1.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/TransformOps/IteratorDomain.h"
#include "kas/Networks/Scores/Proxies.h"
#include "kas/Search/Networks/NetworkState.h"
#include "kas/Support/Bytecode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

using namespace kas;
using namespace kas::networks;
using namespace kas::search;
using namespace mlir;

/// Integers up to 2^20, switches 0 or 1, at most 8 steps. The message lists
/// what there is.
llvm::Error kas::search::parseNetworkLimit(StringRef text,
                                           NetworkLimits &limits) {
  auto [name, number] = text.split('=');
  int64_t value = -1;
  if (number.getAsInteger(10, value) || value < 0 || value > 1 << 20)
    return llvm::createStringError(
        "requires name=integer with an integer from 0 to 2^20, got '" + text +
        "'");
  if (name == "steps" && value <= 8)
    limits.steps = value;
  else if (name == "groups")
    limits.choices.groups = value;
  else if (name == "slabs")
    limits.choices.slabs = value;
  else if (name == "factor")
    limits.choices.factor = value;
  else if (name == "schedules" && value <= 1)
    limits.choices.schedules = value;
  else if (name == "kernel")
    limits.kernel = value;
  else if (name == "normalize" && value <= 1)
    limits.normalize = value;
  else
    return llvm::createStringError(
        "requires one of steps (at most 8), groups, slabs, factor, schedules "
        "(0 or 1), kernel, normalize (0 or 1), got '" +
        text + "'");
  return llvm::Error::success();
}

/// In the order of the block; index and order are those that `LayerScorer` has.
SmallVector<linalg::LinalgOp>
kas::search::findConvolutions(func::FuncOp function) {
  SmallVector<linalg::LinalgOp> found;
  for (linalg::LinalgOp op :
       function.getBody().front().getOps<linalg::LinalgOp>())
    if (matchConvolution(op))
      found.push_back(op);
  return found;
}

/// Only linalg operations that multiply and reduce: convolutions and matrix
/// products, not poolings or elementwise operations. In f64, as products of
/// large networks exceed 32 bits by far.
double kas::search::countMACs(Operation *op) {
  double macs = 0;
  op->walk([&](linalg::LinalgOp inner) {
    if (inner.getNumReductionLoops() == 0 ||
        inner.getBlock()->getOps<arith::MulFOp>().empty())
      return;
    double points = 1;
    for (int64_t size : inner.getStaticLoopRanges())
      points *= static_cast<double>(size);
    macs += points;
  });
  return macs;
}

static double countElements(TypeRange types) {
  double elements = 0;
  for (Type type : types)
    elements += static_cast<double>(cast<ShapedType>(type).getNumElements());
  return elements;
}

/// Multiply-adds and parameters of the whole network are counted first, then
/// those of each layer to transform are taken off: the rest is constant during
/// the search.
FailureOr<NetworkProblem> NetworkProblem::get(func::FuncOp function,
                                              const NetworkLimits &limits) {
  NetworkProblem problem;
  problem.limits = limits;
  auto report = [&](const Twine &got) {
    return function.emitError("requires a network of one block with "
                              "'linalg.conv_2d_nchw_fchw' of a kernel of at "
                              "least ")
           << limits.kernel << " rows, by arguments, got " << got; // N1
  };
  if (function.isDeclaration() || !function.getBody().hasOneBlock())
    return report("no such block");
  problem.otherMacs = countMACs(function);
  // The first argument is the data.
  problem.otherParams = countElements(function.getArgumentTypes().drop_front());
  // By text, in the order of first appearance.
  llvm::MapVector<std::string, unsigned, llvm::StringMap<unsigned>> shapes;
  llvm::StringSet<> names;
  for (auto [index, op] : llvm::enumerate(findConvolutions(function))) {
    auto weight = cast<ShapedType>(op.getDpsInputs()[1].getType());
    // The weight must be an argument, as the steps replace it by one of another
    // shape; its dimension 2 is the kernel's height.
    if (!isa<linalg::Conv2DNchwFchwOp>(op) ||
        !isa<BlockArgument>(op.getDpsInputs()[1]) || !weight.hasStaticShape() ||
        weight.getDimSize(2) < limits.kernel)
      continue;
    // The layer as a function of its own, with its shapes.
    CutLayer cut = cutLayer(op);
    std::string text;
    llvm::raw_string_ostream(text) << *cut.module;
    auto [shape, isNew] = shapes.insert({text, shapes.size()});
    if (isNew)
      problem.modules.push_back(writeBytecode(*cut.module));
    // Names come from the model; a number makes repeated ones unique, also
    // where a layer is really called so.
    const std::string given =
        cut.name.empty() ? "layer" + std::to_string(index) : cut.name;
    std::string name = given;
    for (unsigned count = 1; !names.insert(name).second; ++count)
      name = given + "#" + std::to_string(count);
    problem.layers.push_back(
        {name, static_cast<unsigned>(index), shape->second});
    problem.otherMacs -= countMACs(op);
    problem.otherParams -= countElements(weight);
  }
  if (problem.layers.empty())
    return report("none");
  return problem;
}

/// All steps were made on copies of the layers before, so a failure means that
/// the function is not the one of the problem.
LogicalResult
kas::search::applyConfiguration(func::FuncOp function,
                                const NetworkProblem &problem,
                                const NetworkConfiguration &configuration) {
  SmallVector<linalg::LinalgOp> convolutions = findConvolutions(function);
  IRRewriter rewriter(function.getContext());
  NamedAttrList programs;
  for (auto [layer, program] :
       llvm::zip_equal(problem.layers, configuration.programs)) {
    // An empty program keeps the layer.
    if (program.empty())
      continue;
    std::string reason;
    if (failed(
            applyProgram(rewriter, convolutions[layer.index], program, reason)))
      return function.emitError("cannot transform layer '")
             << layer.name << "' by '" << toString(program) << "': " << reason;
    programs.append(layer.name, rewriter.getStringAttr(toString(program)));
  }
  // The programs stay on the function, for people and for later passes.
  function->setAttr(KasDialect::programsAttrName,
                    programs.getDictionary(function.getContext()));
  return success();
}

/// A script for `-transform-interpreter`. Layers are found by the name that the
/// target has put on them; those that are kept do not appear.
std::string
kas::search::printScript(const NetworkProblem &problem,
                         const NetworkConfiguration &configuration) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "module attributes {transform.with_named_sequence} {\n"
            "  transform.named_sequence @__transform_main(%root: "
            "!transform.any_op {transform.readonly}) {\n";
  for (auto [number, layer, program] :
       llvm::enumerate(problem.layers, configuration.programs)) {
    if (program.empty())
      continue;
    std::string name = "layer" + std::to_string(number);
    stream << "    // " << layer.name << ": " << toString(program) << "\n    %"
           << name
           << " = transform.structured.match "
              "ops{[\"linalg.conv_2d_nchw_fchw\"]} attributes {"
           << KasDialect::layerAttrName << " = \"" << layer.name
           << "\"} in %root : (!transform.any_op) -> !transform.any_op\n"
           << printTransforms(program, name, "    ");
  }
  stream << "    transform.yield\n  }\n}\n";
  return text;
}
