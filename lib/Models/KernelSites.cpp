//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Models/KernelSites.h"
#include "Rewriting.h"
#include "kas/Conversion/KasKernelToLinalg.h"
#include "kas/Dialect/Kas/Transforms/CanonicalizeKernel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include <numeric>

using namespace mlir;
using namespace kas;

//===----------------------------------------------------------------------===//
// Convolutions as sites
//===----------------------------------------------------------------------===//

namespace {
/// A convolution as copies of a kernel of C channels to C.
struct KernelShape {
  int64_t channels, height, width, window;
  int64_t stride, inputs, outputs;

  /// How many copies, each for a block of channels.
  int64_t getCopies() const { return std::max(inputs, outputs) / channels; }
  BindingAttr getBinding(MLIRContext *context, int64_t groups) const {
    return BindingAttr::getNormal(context, {{"C", channels},
                                            {"H", height},
                                            {"W", width},
                                            {"k", window},
                                            {"G", groups}});
  }
};
} // namespace

/// The shape of a dense convolution that keeps the size but for its stride.
static std::optional<KernelShape> getKernelShape(const Site &site) {
  static constexpr StringLiteral kinds[] = {"conv2d", "conv2d_strided",
                                            "conv1x1", "conv1x1_strided"};
  if (!llvm::is_contained(kinds, StringRef(site.kind.name)))
    return std::nullopt;
  auto lookup = [&](StringRef name) {
    const auto *found = llvm::find_if(
        site.binding, [&](const auto &entry) { return entry.first == name; });
    return found == site.binding.end() ? int64_t(1) : found->second;
  };
  KernelShape shape;
  shape.stride = lookup("s");
  shape.inputs = lookup("Cin");
  shape.outputs = lookup("Cout");
  shape.channels = std::gcd(shape.inputs, shape.outputs);
  shape.height = site.resultShape[2];
  shape.width = site.resultShape[3];
  shape.window = lookup("k");
  if (shape.height * shape.stride != site.dataShape[2] ||
      shape.width * shape.stride != site.dataShape[3])
    return std::nullopt;
  return shape;
}

//===----------------------------------------------------------------------===//
// Extraction
//===----------------------------------------------------------------------===//

namespace {
/// The sites of one binding.
struct KernelLayer {
  SmallVector<Operation *> sites;
  SmallVector<std::string> names;
  int64_t copies = 0;
};
} // namespace

/// `@convolutions<C, H, W | G, k>`: windows, and a layer over the channels.
static KernelOp writeKernel(OpBuilder &builder, SymbolTable &symbolTable,
                            ArrayRef<Attribute> bindings,
                            ArrayRef<int64_t> multiplicities,
                            DictionaryAttr budget, Location loc) {
  MLIRContext *context = builder.getContext();
  auto getSymbol = [&](StringRef name) {
    return SizeAttr::getSymbol(context, name);
  };
  SmallVector<SizeAttr> dims = {getSymbol("C"), getSymbol("H"), getSymbol("W")};
  auto type = SymbolicTensorType::get(context, dims, 1);
  auto kernel = KernelOp::create(
      builder, loc, builder.getStringAttr("convolutions"), StringAttr(),
      builder.getUnitAttr(), builder.getStrArrayAttr({"C", "H", "W"}),
      builder.getStrArrayAttr({"G", "k"}), builder.getStrArrayAttr({}),
      builder.getArrayAttr({getSymbol("G")}), builder.getStrArrayAttr({"C"}),
      TypeAttr::get(type), builder.getArrayAttr(bindings),
      builder.getDenseI64ArrayAttr(multiplicities), budget,
      builder.getDictionaryAttr({}));
  OpBuilder::InsertionGuard guard(builder);
  Block &block = kernel.getBody().emplaceBlock();
  block.addArgument(type, loc);
  builder.setInsertionPointToEnd(&block);
  auto unfold = DagUnfoldOp::create(
      builder, loc, block.getArgument(0), ArrayRef<int64_t>{1, 2},
      builder.getArrayAttr({getSymbol("k"), getSymbol("k")}), 1);
  auto layer = DagFCOp::create(builder, loc, unfold, 0, getSymbol("C"));
  DagOutputOp::create(builder, loc, layer, SizeAttr(), SizeAttr());
  symbolTable.insert(kernel);
  return kernel;
}

ExtractKernelResult kas::extractKernel(ModuleOp module,
                                       const ExtractOptions &options) {
  ExtractKernelResult result;
  std::vector<Site> sites = findSites(
      module,
      [&](linalg::LinalgOp op, StringRef reason) {
        ++result.numNearMisses;
        op.emitRemark() << "not extracted: " << reason;
      },
      options.stemChannels);
  SmallVector<std::pair<Site *, KernelShape>> found;
  // One number of groups for all layers.
  int64_t groups = 4;
  double flops = 0, parameters = 0;
  for (Site &site : sites) {
    std::optional<KernelShape> shape = getKernelShape(site);
    if (!shape || site.op->hasAttr(siteAttributeName))
      continue;
    found.emplace_back(&site, *shape);
    groups = std::gcd(groups, shape->channels);
    // Kernels count one sample.
    flops += 2.0 * double(site.macs / site.dataShape[0]);
    parameters += double(site.parameters);
  }
  result.numSites = found.size();
  if (found.empty())
    return result;

  MLIRContext *context = module.getContext();
  llvm::MapVector<BindingAttr, KernelLayer> layers;
  for (auto &[site, shape] : found) {
    KernelLayer &layer = layers[shape.getBinding(context, groups)];
    layer.sites.push_back(site->op);
    layer.names.push_back(site->name);
    layer.copies += shape.getCopies();
  }
  SmallVector<Attribute> bindings;
  SmallVector<int64_t> multiplicities;
  for (auto &[binding, layer] : layers) {
    bindings.push_back(binding);
    multiplicities.push_back(layer.copies);
  }
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  SymbolTable symbolTable(module);
  constexpr double largest = 9.2e18;
  NamedAttrList budget;
  budget.append("flops", builder.getI64IntegerAttr(
                             std::min(flops * options.flopsRatio, largest)));
  budget.append("params",
                builder.getI64IntegerAttr(std::min(parameters, largest)));
  result.kernel =
      writeKernel(builder, symbolTable, bindings, multiplicities,
                  budget.getDictionary(context), found[0].first->op.getLoc());
  for (auto [index, layer] : llvm::enumerate(layers))
    for (auto [op, name] :
         llvm::zip_equal(layer.second.sites, layer.second.names)) {
      NamedAttrList entries;
      entries.append("kernel",
                     FlatSymbolRefAttr::get(result.kernel.getSymNameAttr()));
      entries.append("binding", builder.getI64IntegerAttr(index));
      if (!name.empty())
        entries.append("name", builder.getStringAttr(name));
      op->setAttr(siteAttributeName, entries.getDictionary(context));
    }
  return result;
}

//===----------------------------------------------------------------------===//
// Substitution
//===----------------------------------------------------------------------===//

namespace {
class KernelSubstituter {
public:
  KernelSubstituter(ModuleOp module, KernelOp kernel)
      : module(module), kernel(kernel), symbols(kernel.getSymbolSet()),
        rules(getSizeRules(kernel)), builder(module.getContext()) {}

  FailureOr<SubstituteResult> run();

private:
  FailureOr<int64_t> readMark(linalg::LinalgOp op);
  LogicalResult replace(linalg::LinalgOp op, const Binding &binding,
                        std::string &reason);
  FailureOr<SmallVector<Value>> addWeights(const Site &site,
                                           const Binding &binding);
  FailureOr<Value> emitCopies(Location loc, const KernelShape &shape,
                              const Binding &binding, Value data,
                              ValueRange weights);
  void finishArguments();

  ModuleOp module;
  KernelOp kernel;
  SymbolSet symbols;
  SizeRules rules;
  OpBuilder builder;
  /// Old weights by function, and the new ones that need a name.
  llvm::MapVector<Operation *, SmallVector<Value>> oldWeights;
  SmallVector<std::pair<BlockArgument, std::string>> newWeights;
};
} // namespace

/// The binding that the mark names.
FailureOr<int64_t> KernelSubstituter::readMark(linalg::LinalgOp op) {
  auto entries = dyn_cast<DictionaryAttr>(op->getAttr(siteAttributeName));
  auto index = entries ? entries.getAs<IntegerAttr>("binding") : IntegerAttr();
  if (!index || !index.getType().isInteger(64))
    return op.emitOpError("requires a binding in '")
           << siteAttributeName << "', got " << op->getAttr(siteAttributeName);
  if (index.getInt() < 0 || index.getInt() >= int64_t(rules.bindings.size()))
    return op.emitOpError("requires one of ")
           << rules.bindings.size() << " bindings of '@" << kernel.getSymName()
           << "' in '" << siteAttributeName << "', got " << Attribute(index);
  return index.getInt();
}

/// The shapes and initializers of the weights, from a function that is then
/// thrown away.
FailureOr<SmallVector<Value>>
KernelSubstituter::addWeights(const Site &site, const Binding &binding) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(kernel);
  FailureOr<func::FuncOp> made =
      createKernelFunction(builder, kernel, binding, "kas.weights");
  if (failed(made))
    return failure();
  auto function = site.op->getParentOfType<func::FuncOp>();
  unsigned numInputs = kernel.getBody().getNumArguments();
  SmallVector<Value> weights;
  int64_t copies = getKernelShape(site)->getCopies();
  std::string name =
      (site.name.empty() ? "convolutions.unnamed" : site.name) + ".weight.";
  for (int64_t copy = 0, number = 0; copy < copies; ++copy)
    for (unsigned i = numInputs; i < made->getNumArguments(); ++i, ++number) {
      unsigned position = function.getNumArguments();
      NamedAttrList attributes;
      attributes.append(argumentInitAttributeName,
                        made->getArgAttr(i, argumentInitAttributeName));
      LogicalResult inserted = function.insertArgument(
          position, made->getArgument(i).getType(),
          attributes.getDictionary(builder.getContext()), site.op->getLoc());
      assert(succeeded(inserted) && "a func.func takes arguments");
      (void)inserted;
      BlockArgument argument = function.getArgument(position);
      weights.push_back(argument);
      newWeights.emplace_back(argument, name + std::to_string(number));
    }
  made->erase();
  return weights;
}

/// A kernel without weights between two shapes; `addSteps` makes the steps and
/// returns what the output reads.
static OwningOpRef<ModuleOp>
makeAdapter(MLIRContext *context, Location loc, SymbolicTensorType from,
            SymbolicTensorType to, SizeAttr copies, SizeAttr channels,
            llvm::function_ref<Value(OpBuilder &, Value)> addSteps) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  auto none = builder.getStrArrayAttr({});
  auto kernel = KernelOp::create(
      builder, loc, builder.getStringAttr("adapter"), StringAttr(), UnitAttr(),
      none, none, none, builder.getArrayAttr({}), none, TypeAttr::get(to),
      builder.getArrayAttr({}), builder.getDenseI64ArrayAttr({}),
      builder.getDictionaryAttr({}), builder.getDictionaryAttr({}));
  Block &block = kernel.getBody().emplaceBlock();
  block.addArgument(from, loc);
  builder.setInsertionPointToEnd(&block);
  Value result = addSteps(builder, block.getArgument(0));
  DagOutputOp::create(builder, loc, result, copies, channels);
  return module;
}

static SymbolicTensorType getConcreteType(MLIRContext *context,
                                          ArrayRef<int64_t> sizes,
                                          unsigned numChannelDims) {
  SmallVector<SizeAttr> dims = llvm::map_to_vector(sizes, [&](int64_t size) {
    return SizeAttr::getConstant(context, size);
  });
  return SymbolicTensorType::get(context, dims, numChannelDims);
}

/// The kernel on each block of channels, between means of windows for the
/// stride and means of blocks.
FailureOr<Value> KernelSubstituter::emitCopies(Location loc,
                                               const KernelShape &shape,
                                               const Binding &binding,
                                               Value data, ValueRange weights) {
  MLIRContext *context = builder.getContext();
  int64_t copies = shape.getCopies();
  auto getSize = [&](int64_t size) {
    return SizeAttr::getConstant(context, size);
  };
  auto blocks = getConcreteType(
      context, {copies, shape.channels, shape.height, shape.width}, 2);
  auto emitAdapter = [&](OwningOpRef<ModuleOp> adapter, Value input) {
    return emitKernel(builder, loc, *adapter->getOps<KernelOp>().begin(),
                      Binding(), input, {});
  };
  FailureOr<Value> input = emitAdapter(
      makeAdapter(context, loc,
                  getConcreteType(context,
                                  {shape.inputs, shape.height * shape.stride,
                                   shape.width * shape.stride},
                                  1),
                  blocks, SizeAttr(), SizeAttr(),
                  [&](OpBuilder &nested, Value value) -> Value {
                    if (shape.stride > 1)
                      value = DagPoolOp::create(
                          nested, loc, DagFoldKind::Mean, value,
                          ArrayRef<int64_t>{1, 2},
                          nested.getArrayAttr(
                              {getSize(shape.stride), getSize(shape.stride)}));
                    return DagAmplifyOp::create(nested, loc, value,
                                                getSize(copies),
                                                getSize(shape.channels));
                  }),
      data);
  if (failed(input))
    return failure();

  auto type = cast<RankedTensorType>(input->getType());
  Value results = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                          type.getElementType());
  size_t perCopy = weights.size() / copies;
  SmallVector<int64_t> sliceShape(type.getShape());
  sliceShape.erase(sliceShape.begin() + 1);
  for (int64_t copy = 0; copy < copies; ++copy) {
    auto asAttributes = [&](ArrayRef<int64_t> numbers) {
      return getAsIndexOpFoldResult(context, numbers);
    };
    SmallVector<int64_t> offsets(type.getRank(), 0), ones(type.getRank(), 1);
    SmallVector<int64_t> sizes(type.getShape());
    offsets[1] = copy;
    sizes[1] = 1;
    Value slice = tensor::ExtractSliceOp::create(
        builder, loc, type.clone(sliceShape), *input, asAttributes(offsets),
        asAttributes(sizes), asAttributes(ones));
    FailureOr<Value> value = emitKernel(builder, loc, kernel, binding, slice,
                                        weights.slice(copy * perCopy, perCopy));
    if (failed(value))
      return failure();
    results = tensor::InsertSliceOp::create(
        builder, loc, *value, results, asAttributes(offsets),
        asAttributes(sizes), asAttributes(ones));
  }
  return emitAdapter(
      makeAdapter(context, loc, blocks,
                  getConcreteType(
                      context, {shape.outputs, shape.height, shape.width}, 1),
                  getSize(copies), getSize(shape.channels),
                  [](OpBuilder &, Value value) { return value; }),
      results);
}

LogicalResult KernelSubstituter::replace(linalg::LinalgOp op,
                                         const Binding &binding,
                                         std::string &reason) {
  auto function = op->getParentOfType<func::FuncOp>();
  if (!function || function->getParentOp() != module ||
      !SymbolTable::symbolKnownUseEmpty(function, module)) {
    reason = "requires a function of the module around the layer that is not "
             "called, because its arguments change";
    return failure();
  }
  FailureOr<Site> site = matchSite(op, reason);
  if (failed(site)) {
    if (reason.empty())
      reason = "requires a layer";
    return failure();
  }
  std::optional<KernelShape> shape = getKernelShape(*site);
  auto getValue = [&](StringRef name) -> int64_t {
    std::optional<unsigned> symbol = symbols.lookup(name);
    return symbol ? binding[*symbol] : 0;
  };
  if (!shape || getValue("C") != shape->channels ||
      getValue("H") != shape->height || getValue("W") != shape->width) {
    reason = "requires a dense convolution of the sizes of the binding";
    return failure();
  }
  if (!cast<ShapedType>(site->data.getType()).getElementType().isF32()) {
    reason = "requires elements of f32";
    return failure();
  }
  builder.setInsertionPoint(op);
  Value data = reshape(builder, op.getLoc(), site->data, site->dataShape);
  FailureOr<SmallVector<Value>> weights = addWeights(*site, binding);
  // What could fail then has been lowered by addWeights.
  FailureOr<Value> result = failure();
  if (succeeded(weights))
    result = emitCopies(op.getLoc(), *shape, binding, data, *weights);
  if (failed(result)) {
    reason = "requires a kernel that can be lowered";
    return failure();
  }
  if (site->weightArgument)
    oldWeights[function].push_back(site->weightArgument);
  op->getResult(0).replaceAllUsesWith(
      addAccumulatorStart(builder, *site, *result));
  eraseWithDeadOperands(op);
  return success();
}

/// Drops old weights that nothing uses any more; names the new ones.
void KernelSubstituter::finishArguments() {
  for (auto &[operation, weights] : oldWeights) {
    auto function = cast<func::FuncOp>(operation);
    BitVector dead(function.getNumArguments());
    for (Value weight : weights)
      if (weight.use_empty())
        dead.set(cast<BlockArgument>(weight).getArgNumber());
    LogicalResult erased = function.eraseArguments(dead);
    assert(succeeded(erased) && "a func.func takes arguments");
    (void)erased;
  }
  llvm::MapVector<Operation *, llvm::StringSet<>> names;
  for (auto &[argument, wanted] : newWeights) {
    auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    auto [entry, isNew] = names.insert({function, {}});
    for (unsigned i = 0; isNew && i < function.getNumArguments(); ++i)
      if (auto name = function.getArgAttrOfType<StringAttr>(
              i, argumentNameAttributeName))
        entry->second.insert(name.getValue());
    std::string name = wanted;
    for (unsigned count = 1; !entry->second.insert(name).second; ++count)
      name = wanted + "_" + std::to_string(count);
    function.setArgAttr(argument.getArgNumber(), argumentNameAttributeName,
                        builder.getStringAttr(name));
  }
}

FailureOr<SubstituteResult> KernelSubstituter::run() {
  SmallVector<std::pair<linalg::LinalgOp, int64_t>> marked;
  WalkResult walked = module.walk([&](linalg::LinalgOp op) {
    auto mark = op->getAttrOfType<DictionaryAttr>(siteAttributeName);
    if (!mark || !mark.get("kernel"))
      return WalkResult::advance();
    FailureOr<int64_t> index = readMark(op);
    if (failed(index))
      return WalkResult::interrupt();
    marked.emplace_back(op, *index);
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  SubstituteResult result;
  for (auto [op, index] : marked) {
    std::string reason;
    if (succeeded(replace(op, rules.bindings[index], reason))) {
      ++result.numReplaced;
      continue;
    }
    ++result.numLeft;
    op.emitRemark() << "not replaced: " << reason;
  }
  finishArguments();
  if (marked.empty())
    mlir::emitWarning(module.getLoc())
        << "requires convolutions that are marked with '" << siteAttributeName
        << "', got none; kas-extract marks them";
  return result;
}

FailureOr<SubstituteResult> kas::substituteKernel(ModuleOp module,
                                                  StringRef kernelName) {
  kernelName.consume_front("@");
  auto kernel = module.lookupSymbol<KernelOp>(kernelName);
  if (!kernel)
    return mlir::emitError(module.getLoc())
           << "requires a kas.kernel, got '@" << kernelName << "'";
  if (!kernel.isSolved() || kernel.getBindings().empty())
    return kernel.emitOpError("requires bindings with values for all variables "
                              "(see -kas-solve-budget)");
  if (kernel.getBody().getNumArguments() != 1)
    return kernel.emitOpError("requires one input, got ")
           << kernel.getBody().getNumArguments();
  auto type = cast<SymbolicTensorType>(kernel.getResultType());
  auto input =
      cast<SymbolicTensorType>(kernel.getBody().getArgument(0).getType());
  if (type != input || type.getRank() != 3 || type.getNumChannelDims() != 1)
    return kernel.emitOpError(
               "requires an input and a result of one shape [C | H, W], got ")
           << input << " and " << type;
  // The original keeps its steps.
  OwningOpRef<KernelOp> copy(kernel.clone());
  canonicalizeKernel(kernel);
  FailureOr<SubstituteResult> result = KernelSubstituter(module, kernel).run();
  kernel.getBody().takeBody(copy->getBody());
  return result;
}
