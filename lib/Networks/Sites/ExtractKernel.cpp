//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes kernels of the tensor level that stand for the layers of a model.
// `-kas-extract=kernel`: layers of a family become one symbolic kernel
// (Canvas's search space, docs/reference/tensor-level.md): the number of
// channels C in and out, so that layers that change it count as several copies,
// and groups G.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Networks/Sites/KernelSites.h"
#include "llvm/ADT/MapVector.h"
#include <numeric>

using namespace mlir;
using namespace kas;
using namespace kas::networks;

namespace {
/// The sites of one binding.
struct KernelLayer {
  SmallVector<const KernelSite *> sites;
  int64_t copies = 0;
};

/// The kernel of a family: its name and symbols.
/// `spatial` are the symbols of positions.
struct FamilyTraits {
  StringLiteral name;
  SmallVector<StringRef, 2> spatial;

  bool hasWindow() const { return !spatial.empty(); }
};
} // namespace

/// The names of kernels, and the symbols of their positions.
static FamilyTraits getTraits(KernelFamily family) {
  switch (family) {
  case KernelFamily::Convolution:
    return {"convolutions", {"H", "W"}};
  case KernelFamily::TokenLinear:
    return {"token_linears", {"L"}};
  case KernelFamily::Linear:
    return {"linears", {}};
  case KernelFamily::Attention:
    return {"attentions", {"L"}};
  }
  llvm_unreachable("a family of sites");
}

/// C, positions, G, and k where the family has windows.
static BindingAttr getBinding(MLIRContext *context, const KernelSite &site,
                              int64_t groups) {
  FamilyTraits traits = getTraits(site.family);
  SmallVector<std::pair<StringRef, int64_t>> entries = {
      {"C", site.getChannels()}};
  for (auto [name, extent] : llvm::zip_equal(traits.spatial, site.spatial))
    entries.emplace_back(name, extent);
  entries.emplace_back("G", site.heads ? site.heads : groups);
  if (traits.hasWindow())
    entries.emplace_back("k", site.window);
  return BindingAttr::getNormal(context, entries);
}

/// Multi-head attention in steps of the tensor level: three projections cut
/// into G heads, softmax(K^T Q / sqrt(C/G)) along the keys, the values mixed by
/// it, and a projection.
static Value writeAttention(OpBuilder &builder, Location loc, Value input) {
  MLIRContext *context = builder.getContext();
  auto channels = SizeAttr::getSymbol(context, "C");
  auto groups = SizeAttr::getSymbol(context, "G");
  // [C, L] -> [G, C/G, L]
  auto project = [&] {
    Value all = DagFCOp::create(builder, loc, input, 0, channels);
    return DagGroupOp::create(builder, loc, all, 0, groups).getResult();
  };
  Value queries = project(), keys = project(), values = project();
  Value scores = DagMatMulOp::create(builder, loc, keys, queries, /*batch=*/1,
                                     /*transpose_left=*/true,
                                     /*transpose_right=*/false,
                                     /*scaled=*/true);
  Value shares =
      DagSoftmaxOp::create(builder, loc, scores, ArrayRef<int64_t>{1});
  Value mixed = DagMatMulOp::create(builder, loc, values, shares, /*batch=*/1,
                                    /*transpose_left=*/false,
                                    /*transpose_right=*/false,
                                    /*scaled=*/false);
  return DagFCOp::create(builder, loc, mixed, 0, channels);
}

/// What all layers of a family compute, but for the ratio of channels and for
/// strides.
static Value writeSteps(OpBuilder &builder, Location loc, KernelFamily family,
                        Value input) {
  MLIRContext *context = builder.getContext();
  if (family == KernelFamily::Attention)
    return writeAttention(builder, loc, input);
  if (family == KernelFamily::Convolution) {
    Attribute window = SizeAttr::getSymbol(context, "k");
    input = DagUnfoldOp::create(builder, loc, input, ArrayRef<int64_t>{1, 2},
                                builder.getArrayAttr({window, window}), 1);
  }
  return DagFCOp::create(builder, loc, input, 0,
                         SizeAttr::getSymbol(context, "C"));
}

static KernelOp writeKernel(OpBuilder &builder, SymbolTable &symbolTable,
                            KernelFamily family, ArrayRef<Attribute> bindings,
                            ArrayRef<int64_t> multiplicities,
                            DictionaryAttr budget, Location loc) {
  MLIRContext *context = builder.getContext();
  FamilyTraits traits = getTraits(family);
  SmallVector<StringRef> primaries = {"C"}, coefficients = {"G"};
  llvm::append_range(primaries, traits.spatial);
  if (traits.hasWindow())
    coefficients.push_back("k");
  // The kernel maps [C, positions...] to the same shape.
  SmallVector<SizeAttr> dims =
      llvm::map_to_vector(primaries, [&](StringRef name) {
        return SizeAttr::getSymbol(context, name);
      });
  auto type = SymbolicTensorType::get(context, dims, 1);
  auto kernel = KernelOp::create(
      builder, loc, builder.getStringAttr(traits.name), StringAttr(),
      builder.getUnitAttr(), builder.getStrArrayAttr(primaries),
      builder.getStrArrayAttr(coefficients), builder.getStrArrayAttr({}),
      builder.getArrayAttr({SizeAttr::getSymbol(context, "G")}),
      builder.getStrArrayAttr({"C"}), TypeAttr::get(type),
      builder.getArrayAttr(bindings),
      builder.getDenseI64ArrayAttr(multiplicities), budget,
      builder.getDictionaryAttr({}));
  // The caller goes on after the kernel.
  OpBuilder::InsertionGuard guard(builder);
  Block &block = kernel.getBody().emplaceBlock();
  block.addArgument(type, loc);
  builder.setInsertionPointToEnd(&block);
  Value result = writeSteps(builder, loc, family, block.getArgument(0));
  DagOutputOp::create(builder, loc, result, SizeAttr(), SizeAttr());
  symbolTable.insert(kernel, builder.getInsertionPoint());
  return kernel;
}

/// FLOPs by the ratio of the options; parameters at most as many as now.
static DictionaryAttr getBudget(Builder &builder,
                                ArrayRef<const KernelSite *> sites,
                                const ExtractOptions &options) {
  double flops = 0, parameters = 0;
  for (const KernelSite *site : sites) {
    flops += site->flops;
    parameters += double(site->parameters);
  }
  constexpr double largest = 9.2e18;
  NamedAttrList budget;
  budget.append("flops", builder.getI64IntegerAttr(
                             std::min(flops * options.flopsRatio, largest)));
  budget.append("params",
                builder.getI64IntegerAttr(std::min(parameters, largest)));
  return budget.getDictionary(builder.getContext());
}

/// `attention` tells that several operations are replaced.
static void mark(Builder &builder, const KernelSite &site, KernelOp kernel,
                 unsigned binding) {
  NamedAttrList entries;
  entries.append("kernel", FlatSymbolRefAttr::get(kernel.getSymNameAttr()));
  entries.append("binding", builder.getI64IntegerAttr(binding));
  if (!site.name.empty())
    entries.append("name", builder.getStringAttr(site.name));
  if (site.family == KernelFamily::Attention)
    entries.append("attention", builder.getUnitAttr());
  site.layer.op->setAttr(KasDialect::siteAttrName,
                         entries.getDictionary(builder.getContext()));
}

/// Sites of one family: equal sizes share a binding, whose multiplicity counts
/// the copies of the kernel that the layers need.
static KernelOp extractFamily(OpBuilder &builder, SymbolTable &symbolTable,
                              ArrayRef<const KernelSite *> sites,
                              const ExtractOptions &options) {
  // One number of groups for all layers: the largest divisor of 4 that divides
  // all channels.
  int64_t groups = 4;
  for (const KernelSite *site : sites)
    groups = std::gcd(groups, site->getChannels());
  llvm::MapVector<BindingAttr, KernelLayer> layers;
  for (const KernelSite *site : sites) {
    KernelLayer &layer =
        layers[getBinding(builder.getContext(), *site, groups)];
    layer.sites.push_back(site);
    // A layer that doubles its channels is two copies.
    layer.copies += site->getCopies();
  }
  SmallVector<Attribute> bindings;
  SmallVector<int64_t> multiplicities;
  for (auto &[binding, layer] : layers) {
    bindings.push_back(binding);
    multiplicities.push_back(layer.copies);
  }
  KernelOp kernel = writeKernel(
      builder, symbolTable, sites.front()->family, bindings, multiplicities,
      getBudget(builder, sites, options), sites.front()->layer.op->getLoc());
  // Marks name the binding by its position.
  for (auto [index, layer] : llvm::enumerate(layers))
    for (const KernelSite *site : layer.second.sites)
      mark(builder, *site, kernel, index);
  return kernel;
}

/// Near misses are reported as by `extractSpaces`.
ExtractKernelResult
kas::networks::extractKernel(ModuleOp module, const ExtractOptions &options) {
  ExtractKernelResult result;
  std::vector<KernelSite> sites = findKernelSites(
      module,
      [&](linalg::LinalgOp op, StringRef reason) {
        ++result.numNearMisses;
        op.emitRemark() << "not extracted: " << reason;
      },
      options.stemChannels);
  // In the order of the first layer of each family.
  llvm::MapVector<KernelFamily, SmallVector<const KernelSite *>> families;
  for (const KernelSite &site : sites) {
    if (site.layer.op->hasAttr(KasDialect::siteAttrName))
      continue;
    families[site.family].push_back(&site);
    ++result.numSites;
  }
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  SymbolTable symbolTable(module);
  for (auto &[family, ofFamily] : families)
    result.kernels.push_back(
        extractFamily(builder, symbolTable, ofFamily, options));
  return result;
}
