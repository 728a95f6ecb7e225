//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the layers of a network that operators can replace, groups them by
// kind, and writes a `kas.space` for each kind.
// `-kas-extract`: layers of one kind get one space, whose bindings are their
// sizes with multiplicities; a layer is marked with its space and binding
// (`kas.site`), by which `-kas-substitute` finds it. Limits and budgets are
// defaults that users edit (docs/guide/searching.md).
//
//===----------------------------------------------------------------------===//

#include "kas/Networks/Sites/Extract.h"
#include "ExtractSequences.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace kas;
using namespace kas::networks;

namespace {

/// The layers of one kind.
struct Group {
  LayerKind kind;
  /// Per distinct binding the layers that have it, in the order of the module.
  /// Layers of equal sizes share a binding and count as several.
  llvm::MapVector<BindingAttr, SmallVector<Site *>> layers;
};

} // namespace

/// Adds the coefficients that the layer lacks, as many as a space can declare.
/// Fails for a name that is a size of the layer; what does not fit is left out
/// with a warning.
static LogicalResult addCoefficients(Site &site, BindingAttr coefficients) {
  if (!coefficients)
    return success();
  for (auto [name, value] :
       llvm::zip_equal(coefficients.getNames(), coefficients.getValues())) {
    if (llvm::is_contained(site.kind.primaries, name.getValue()))
      return site.op.emitError()
             << "requires other names than the sizes of layers for "
                "coefficients, got '"
             << name.getValue() << "'";
    // The layer has a value for it.
    if (llvm::is_contained(site.kind.coefficients, name.getValue()))
      continue;
    if (site.binding.size() == SymbolSet::maxSymbols) {
      site.op.emitWarning()
          << "the space of this layer has " << SymbolSet::maxSymbols
          << " symbols without coefficient '" << name.getValue()
          << "', which is left out";
      continue;
    }
    site.kind.coefficients.push_back(name.str());
    site.binding.emplace_back(name.str(), value);
  }
  return success();
}

static BindingAttr getBindingAttr(const Site &site) {
  SmallVector<std::pair<StringRef, int64_t>> entries;
  for (auto &[name, value] : site.binding)
    entries.emplace_back(name, value);
  return BindingAttr::getNormal(site.op->getContext(), entries);
}

/// In the order of the first layer of each kind; layers with the same values of
/// symbols share an entry.
static std::vector<Group> groupByKind(MutableArrayRef<Site> sites) {
  std::vector<Group> groups;
  for (Site &site : sites) {
    auto group = llvm::find_if(groups, [&](const Group &group) {
      // Rectangular kinds of one name may differ in what is rectangular.
      return group.kind.name == site.kind.name &&
             group.kind.coefficients == site.kind.coefficients;
    });
    if (group == groups.end())
      group = groups.insert(group, Group{site.kind, {}});
    group->layers[getBindingAttr(site)].push_back(&site);
  }
  return groups;
}

//===----------------------------------------------------------------------===//
// Writing a space
//===----------------------------------------------------------------------===//

/// `C/s` and so on as attributes with the space's symbols.
static ArrayAttr getSizes(Builder &builder, ArrayRef<std::string> texts,
                          const SymbolSet &symbols) {
  return builder.getArrayAttr(
      llvm::map_to_vector(texts, [&](const std::string &text) -> Attribute {
        // The texts are our own.
        Size size = llvm::cantFail(parseSize(text, symbols));
        return SizeAttr::getNormal(builder.getContext(), size, symbols);
      }));
}

namespace {
/// The least number of pixels of an image for each point of a window along one
/// axis, or less, and the layers that have it.
/// For example 8 for an image of 56 rows and windows of 7.
struct LeastRatio {
  double ratio = std::numeric_limits<double>::infinity();
  BindingAttr binding;
  Site *site = nullptr;

  void meet(const Group &group, StringRef image, StringRef window);
};
} // namespace

/// A symbol that a layer lacks has the value 1.
void LeastRatio::meet(const Group &group, StringRef image, StringRef window) {
  for (auto &[layer, sites] : group.layers) {
    double next = static_cast<double>(layer.lookup(image).value_or(1)) /
                  static_cast<double>(layer.lookup(window).value_or(1));
    if (next < ratio)
      *this = {next, layer, sites.front()};
  }
}

/// Over all layers of the group and all axes.
static LeastRatio getLeastRatio(const Group &group,
                                ArrayRef<StringRef> windows) {
  LeastRatio least;
  // Positions come last.
  for (auto [image, window] : llvm::zip_equal(
           ArrayRef(group.kind.inputSizes).take_back(windows.size()), windows))
    least.meet(group, image, window);
  return least;
}

/// The symbols of the windows along the axes of layers that have them at their
/// centres; none for others.
/// Only odd windows have a centre.
static SmallVector<StringRef> getWindows(const Group &group) {
  StringRef name = group.kind.name;
  if (!name.starts_with("conv") || name.contains("dilated") ||
      name.contains("unpadded"))
    return {};
  // Every layer has the symbol, with an odd value.
  auto has = [&](StringRef symbol) {
    return llvm::is_contained(group.kind.coefficients, symbol) &&
           llvm::all_of(group.layers, [&](auto &layer) {
             return layer.first.lookup(symbol).value_or(0) % 2 == 1;
           });
  };
  if (name.starts_with("conv1d"))
    return has("k") ? SmallVector<StringRef>{"k"} : SmallVector<StringRef>{};
  if (has("kh") && has("kw"))
    return {"kh", "kw"};
  return has("k") ? SmallVector<StringRef>{"k", "k"} : SmallVector<StringRef>{};
}

/// The properties `sees` and `reaches` (docs/reference/properties.md): a
/// replacement must read a window as large as that of the layers, and carry
/// data between channels. `sees` is left out, with a remark, where an image is
/// no larger than the window.
static void addProperties(Builder &builder, const Group &group,
                          NamedAttrList &limits) {
  if (group.kind.hasUnorderedChannels)
    limits.append("reaches", builder.getI64IntegerAttr(2));
  SmallVector<StringRef> windows = getWindows(group);
  if (windows.empty())
    return;
  LeastRatio least = getLeastRatio(group, windows);
  double ratio = least.ratio;
  if (ratio <= 1) {
    least.site->op.emitRemark()
        << "limit 'sees' of '@" << group.kind.name
        << "' is left out: requires images larger than the window, got "
        << least.binding;
    return;
  }
  // Images of at least 2 pixels for each element of the window are the default;
  // rounded down to two decimals, so that all layers fit.
  if (ratio < 2)
    limits.append("unfold_ratio",
                  builder.getF64FloatAttr(std::floor(ratio * 100) / 100));
  // Each channel of a depthwise layer sees itself.
  SmallVector<Attribute> sees;
  const LayerKind &kind = group.kind;
  if (!kind.hasUnorderedChannels && kind.inputSizes[1] == kind.outputSizes[1])
    sees.push_back(builder.getI64IntegerAttr(1));
  for (StringRef window : windows)
    sees.push_back(builder.getStringAttr(window));
  limits.append("sees", builder.getArrayAttr(sees));
}

/// What fits the layers themselves, and a bit more for what may replace them.
/// No `expand`: it drops outputs or weights, which is hardly what a network
/// gains from.
/// The depth has room for the layer's own primitives and a few more.
static DictionaryAttr getDefaultLimits(Builder &builder, const Group &group,
                                       const ExtractOptions &options) {
  const LayerKind &kind = group.kind;
  unsigned numSpatial = kind.name.starts_with("conv2d")   ? 2
                        : kind.name.starts_with("conv1d") ? 1
                                                          : 0;
  bool isStrided = StringRef(kind.name).contains("strided") ||
                   StringRef(kind.name).contains("dilated");
  NamedAttrList limits;
  auto add = [&](StringRef name, int64_t value) {
    limits.append(name, builder.getI64IntegerAttr(value));
  };
  add("depth", 8 + numSpatial);
  add("reduce", 2 + numSpatial);
  add("split", 2);
  add("merge", 2);
  add("shift", 1);
  add("expand", 0);
  add("unfold", numSpatial);
  add("stride", isStrided ? 2 : 0);
  add("weights", 2);
  if (options.writesProperties)
    addProperties(builder, group, limits);
  return limits.getDictionary(builder.getContext());
}

/// The layers' own cost, of all of them together, and bounds as ratios to it.
static DictionaryAttr getBudget(Builder &builder, const Group &group,
                                const ExtractOptions &options) {
  double flops = 0, parameters = 0;
  for (auto &[binding, sites] : group.layers)
    for (Site *site : sites) {
      flops += 2.0 * site->macs;
      parameters += site->parameters;
    }
  NamedAttrList budget;
  // A double that is too large for an integer is written as what still fits.
  auto getInteger = [&](double value) {
    constexpr double largest = 9.2e18;
    return builder.getI64IntegerAttr(std::min(value, largest));
  };
  budget.append("baseline_flops", getInteger(flops));
  budget.append("baseline_params", getInteger(parameters));
  budget.append("flops_ratio", builder.getF64FloatAttr(options.flopsRatio));
  budget.append("min_flops_ratio",
                builder.getF64FloatAttr(options.minFlopsRatio));
  return budget.getDictionary(builder.getContext());
}

static SymbolSet getSymbols(const LayerKind &kind) {
  SymbolSet symbols;
  // The names are distinct, and there is room for them.
  for (StringRef name : kind.primaries)
    llvm::cantFail(symbols.add(name, SymbolKind::Primary));
  for (StringRef name : kind.coefficients)
    llvm::cantFail(symbols.add(name, SymbolKind::Coefficient));
  return symbols;
}

/// Inserts `kas.space @KIND`; the symbol table makes the name unique.
static SpaceOp writeSpace(OpBuilder &builder, SymbolTable &symbolTable,
                          Group &group, const ExtractOptions &options) {
  const LayerKind &kind = group.kind;
  SymbolSet symbols = getSymbols(kind);
  auto getStrings = [&](ArrayRef<std::string> names) {
    return builder.getStrArrayAttr(llvm::to_vector_of<StringRef>(names));
  };
  // Channels have no order that a network relies on: any permutation is as
  // good.
  auto getUnordered = [&](size_t rank, unsigned channel) {
    SmallVector<bool> flags(rank, false);
    flags[channel] = kind.hasUnorderedChannels;
    return builder.getDenseBoolArrayAttr(flags);
  };
  // Channels come second in convolutions and last in products.
  bool isConvolution = StringRef(kind.name).starts_with("conv");
  unsigned channel = isConvolution ? 1 : kind.inputSizes.size() - 1;
  SmallVector<Attribute> bindings;
  SmallVector<int64_t> multiplicities;
  SmallVector<Location> locations;
  for (auto &[binding, sites] : group.layers) {
    bindings.push_back(binding);
    multiplicities.push_back(sites.size());
    locations.push_back(sites.front()->op.getLoc());
  }
  auto space = SpaceOp::create(
      builder, locations.front(), builder.getStringAttr(kind.name),
      /*sym_visibility=*/nullptr, getStrings(kind.primaries),
      getStrings(kind.coefficients),
      getSizes(builder, kind.outputSizes, symbols),
      getUnordered(kind.outputSizes.size(), channel),
      getSizes(builder, kind.inputSizes, symbols),
      getUnordered(kind.inputSizes.size(), channel),
      builder.getArrayAttr(bindings),
      builder.getDenseI64ArrayAttr(multiplicities),
      getDefaultLimits(builder, group, options),
      getBudget(builder, group, options));
  if (!kind.namedOperator.empty())
    space->setAttr(KasDialect::namedOperatorAttrName,
                   builder.getStringAttr(kind.namedOperator));
  symbolTable.insert(space, builder.getInsertionPoint());
  return space;
}

/// The name helps people; space and binding are what substitution reads.
static void markSites(Builder &builder, SpaceOp space, const Group &group) {
  // The index is the position of the binding in the space.
  for (auto [index, layer] : llvm::enumerate(group.layers))
    for (Site *site : layer.second) {
      NamedAttrList entries;
      entries.append("space", FlatSymbolRefAttr::get(space.getSymNameAttr()));
      entries.append("binding", builder.getI64IntegerAttr(index));
      if (!site->name.empty())
        entries.append("name", builder.getStringAttr(site->name));
      site->op->setAttr(KasDialect::siteAttrName,
                        entries.getDictionary(builder.getContext()));
    }
}

/// Layers that are marked already keep their space.
FailureOr<ExtractResult>
kas::networks::extractSpaces(ModuleOp module, const ExtractOptions &options) {
  ExtractResult result;
  std::vector<Site> sites = findSites(
      module,
      [&](linalg::LinalgOp op, StringRef reason) {
        ++result.numNearMisses;
        // Near misses are reported, so that a user sees why a layer is missing.
        op.emitRemark() << "not extracted: " << reason;
      },
      options.stemChannels);
  llvm::erase_if(sites, [](Site &site) {
    return site.op->hasAttr(KasDialect::siteAttrName);
  });
  result.numSites = sites.size();

  for (Site &site : sites)
    if (failed(addCoefficients(site, options.coefficients)))
      return failure();
  std::vector<Group> groups = groupByKind(sites);
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  SymbolTable symbolTable(module);
  // In the order of the first layer of each kind.
  for (Group &group : groups) {
    SpaceOp space = writeSpace(builder, symbolTable, group, options);
    markSites(builder, space, group);
    result.spaces.push_back(space);
    SmallVector<StringRef> windows = getWindows(group);
    // Two stages instead of a convolution: only where windows and channels can
    // be parted.
    if (options.writesSequences && group.kind.hasUnorderedChannels &&
        !windows.empty() && getLeastRatio(group, windows).ratio > 1)
      writeSequenceSpace(builder, symbolTable, space, windows,
                         options.coefficients);
  }
  return result;
}
