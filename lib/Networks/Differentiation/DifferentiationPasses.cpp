//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes of this folder: gradients of a function, Fisher Potential,
// zero-cost proxies.
// Each pass checks its options and calls the function that does the work, which
// library users call as well; texts of options are in Passes.td.
//
//===----------------------------------------------------------------------===//

#include "../FindFunction.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Networks/Differentiation/Differentiate.h"
#include "kas/Networks/Differentiation/Passes.h"
#include "kas/Networks/Scores/Fisher.h"
#include "kas/Networks/Scores/Proxies.h"
#include "kas/Networks/Sites/Site.h"

namespace kas::networks {
#define GEN_PASS_DEF_KASDIFFERENTIATEPASS
#define GEN_PASS_DEF_KASFISHERPASS
#define GEN_PASS_DEF_KASPROXIESPASS
#include "kas/Networks/Differentiation/Passes.h.inc"
} // namespace kas::networks

using namespace mlir;
using namespace kas;
using namespace kas::networks;

/// The position of the argument that `text` names or numbers.
/// Names first: a name may be a number.
static std::optional<unsigned> findArgument(func::FuncOp function,
                                            StringRef text) {
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    auto name = function.getArgAttrOfType<StringAttr>(
        index, KasDialect::argumentNameAttrName);
    if (name && name.getValue() == text)
      return index;
  }
  unsigned number;
  if (text.getAsInteger(10, number) || number >= function.getNumArguments())
    return std::nullopt;
  return number;
}

namespace {

/// Adds
///    @f_gradient(arguments of f, gradients of its results)
///        -> results of f, gradients by the wanted arguments
struct KasDifferentiatePass
    : kas::networks::impl::KasDifferentiatePassBase<KasDifferentiatePass> {
  using KasDifferentiatePassBase::KasDifferentiatePassBase;

  void runOnOperation() override {
    std::string name = function + "_gradient";
    func::FuncOp target = findFunction(getOperation(), function, name);
    if (!target)
      return signalPassFailure();
    SmallVector<unsigned> positions;
    for (const std::string &text : arguments) {
      std::optional<unsigned> position = findArgument(target, text);
      if (!position) {
        target.emitError("option 'arguments' requires names or numbers of "
                         "arguments, got '")
            << text << "'";
        return signalPassFailure();
      }
      positions.push_back(*position);
    }
    // No arguments named: the gradients of all.
    if (positions.empty())
      llvm::append_range(positions,
                         llvm::seq<unsigned>(target.getNumArguments()));
    auto gradient = makeGradientFunction(target, name, positions);
    if (failed(gradient) || failed(eraseUnusedOperands(*gradient)))
      signalPassFailure();
  }
};

/// Adds `@f_fisher(arguments, labels) -> logits, scores`, with the names of the
/// layers as an attribute.
struct KasFisherPass : kas::networks::impl::KasFisherPassBase<KasFisherPass> {
  using KasFisherPassBase::KasFisherPassBase;

  void runOnOperation() override {
    std::string name = function + "_fisher";
    func::FuncOp target = findFunction(getOperation(), function, name);
    if (!target)
      return signalPassFailure();
    FisherOptions options{residualOnly, normalize};
    SmallVector<std::string> names;
    auto fisher = makeFisherFunction(target, name, options, names);
    if (failed(fisher) || failed(eraseUnusedOperands(*fisher)))
      return signalPassFailure();
    // The names tell which element of the result is which layer.
    SmallVector<StringRef> layers(names.begin(), names.end());
    (*fisher)->setAttr(KasDialect::layersAttrName,
                       Builder(&getContext()).getStrArrayAttr(layers));
  }
};

/// The names that the vectors of proxies are indexed by.
static ArrayAttr getNames(MLIRContext *context, ArrayRef<std::string> names) {
  return Builder(context).getStrArrayAttr(llvm::to_vector_of<StringRef>(names));
}

/// Adds `@f_proxies` and `@f_synflow`: SynFlow takes no labels, and reads
/// magnitudes.
struct KasProxiesPass
    : kas::networks::impl::KasProxiesPassBase<KasProxiesPass> {
  using KasProxiesPassBase::KasProxiesPassBase;

  void runOnOperation() override {
    std::string name = function + "_proxies", flowName = function + "_synflow";
    func::FuncOp target = findFunction(getOperation(), function, name);
    // Both names must be free before anything is added.
    if (!target || !findFunction(getOperation(), function, flowName))
      return signalPassFailure();
    ProxyNames names;
    auto proxies =
        makeProxyFunction(target, name, {residualOnly, normalize}, names);
    if (failed(proxies))
      return signalPassFailure();
    auto synflow = makeSynflowFunction(target, flowName);
    if (failed(synflow) || failed(eraseUnusedOperands(*proxies)) ||
        failed(eraseUnusedOperands(*synflow)))
      return signalPassFailure();
    ArrayAttr parameters = getNames(&getContext(), names.parameters);
    (*proxies)->setAttr(KasDialect::layersAttrName,
                        getNames(&getContext(), names.layers));
    (*proxies)->setAttr(KasDialect::parametersAttrName, parameters);
    (*synflow)->setAttr(KasDialect::parametersAttrName, parameters);
  }
};

} // namespace
