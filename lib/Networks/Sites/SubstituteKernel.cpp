//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Puts kernels of the tensor level into the marked places of a model.
// Layers are replaced by `emitKernel` on tensors with channels first. The
// kernel has C channels in and out, so a layer with more outputs than inputs is
// several copies of it, each with weights of its own:
//    data -> mean of windows (stride) -> blocks of C channels
//         -> kernel of each block -> mean of blocks -> result
// `amplify` repeats channels, `output` takes means
// (docs/reference/tensor-level.md).
//
//===----------------------------------------------------------------------===//

#include "Rewriting.h"
#include "kas/Conversion/KasKernelToLinalg.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/Transforms/CanonicalizeKernel.h"
#include "kas/Networks/Sites/KernelSites.h"
#include "kas/Support/FileLocation.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace kas;
using namespace kas::networks;
using namespace kas::solver;

namespace {
/// Replaces marked layers by one solved kernel at the binding of each mark.
class KernelSubstituter {
public:
  KernelSubstituter(ModuleOp module, KernelOp kernel, StringRef family)
      : module(module), kernel(kernel), family(family),
        symbols(kernel.getSymbolSet()), rules(getSizeRules(kernel)),
        builder(module.getContext()) {}

  FailureOr<SubstituteResult> run();

private:
  bool isWanted(DictionaryAttr mark) const;
  FailureOr<int64_t> readMark(linalg::LinalgOp op);
  /// Fails with a reason.
  LogicalResult replace(linalg::LinalgOp op, const Binding &binding,
                        std::string &reason);
  /// Arguments at the end of the function, copy by copy.
  FailureOr<SmallVector<Value>> addWeights(const KernelSite &site,
                                           const Binding &binding);
  /// The result of the layer's shape with channels first.
  FailureOr<Value> emitCopies(Location loc, const KernelSite &site,
                              const Binding &binding, Value data,
                              ValueRange weights);
  void finishArguments();

  ModuleOp module;
  KernelOp kernel;
  /// The kernel whose sites they are; empty for any.
  StringRef family;
  SymbolSet symbols;
  /// The bindings of the kernel.
  SizeRules rules;
  OpBuilder builder;
  /// Old weights by function, and the new ones that need a name.
  llvm::MapVector<Operation *, SmallVector<Value>> oldWeights;
  SmallVector<std::pair<BlockArgument, std::string>> newWeights;
};
} // namespace

/// Of the kernel whose sites are wanted.
bool KernelSubstituter::isWanted(DictionaryAttr mark) const {
  auto marked = mark ? mark.getAs<FlatSymbolRefAttr>("kernel") : nullptr;
  return marked && (family.empty() || marked.getValue() == family);
}

/// The binding that the mark names.
/// Fails with a diagnostic for a mark that is malformed.
FailureOr<int64_t> KernelSubstituter::readMark(linalg::LinalgOp op) {
  auto entries =
      dyn_cast<DictionaryAttr>(op->getAttr(KasDialect::siteAttrName));
  auto index = entries ? entries.getAs<IntegerAttr>("binding") : IntegerAttr();
  if (!index || !index.getType().isInteger(64))
    return op.emitOpError("requires a binding in '")
           << KasDialect::siteAttrName << "', got "
           << op->getAttr(KasDialect::siteAttrName);
  if (index.getInt() < 0 || index.getInt() >= int64_t(rules.bindings.size()))
    return op.emitOpError("requires one of ")
           << rules.bindings.size() << " bindings of '@" << kernel.getSymName()
           << "' in '" << KasDialect::siteAttrName << "', got "
           << Attribute(index);
  return index.getInt();
}

/// The shapes and initializers of the weights, from a function that is then
/// thrown away.
/// `createKernelFunction` knows them; lowering would make them again.
FailureOr<SmallVector<Value>>
KernelSubstituter::addWeights(const KernelSite &site, const Binding &binding) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(kernel);
  // The name cannot be one of the module's.
  FailureOr<func::FuncOp> made =
      createKernelFunction(builder, kernel, binding, "kas.weights");
  if (failed(made))
    return failure();
  Operation *layer = site.layer.op;
  auto function = layer->getParentOfType<func::FuncOp>();
  unsigned numInputs = kernel.getBody().getNumArguments();
  SmallVector<Value> weights;
  std::string name = (site.name.empty() ? "unnamed" : site.name) + ".weight.";
  for (int64_t copy = 0, number = 0; copy < site.getCopies(); ++copy)
    for (unsigned i = numInputs; i < made->getNumArguments(); ++i, ++number) {
      unsigned position = function.getNumArguments();
      NamedAttrList attributes;
      attributes.append(KasDialect::initializerAttrName,
                        made->getArgAttr(i, KasDialect::initializerAttrName));
      LogicalResult inserted = function.insertArgument(
          position, made->getArgument(i).getType(),
          attributes.getDictionary(builder.getContext()), layer->getLoc());
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
/// With sizes that are numbers, in a module of its own: `emitKernel` takes any
/// kernel. `copies` and `channels` are those of the output's mean, or null.
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

/// `[sizes... ]`, the first `numChannelDims` of them channels.
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
                                               const KernelSite &site,
                                               const Binding &binding,
                                               Value data, ValueRange weights) {
  MLIRContext *context = builder.getContext();
  int64_t copies = site.getCopies(), channels = site.getChannels();
  auto getSize = [&](int64_t size) {
    return SizeAttr::getConstant(context, size);
  };
  // The type of channels, followed by the spatial dimensions.
  auto getType = [&](SmallVector<int64_t> sizes, int64_t stride) {
    unsigned numChannelDims = sizes.size();
    for (int64_t extent : site.spatial)
      sizes.push_back(extent * stride);
    return getConcreteType(context, sizes, numChannelDims);
  };
  // [copies, channels, positions...]
  auto blocks = getType({copies, channels}, 1);
  auto emitAdapter = [&](OwningOpRef<ModuleOp> adapter, Value input) {
    return emitKernel(builder, loc, *adapter->getOps<KernelOp>().begin(),
                      Binding(), input, {});
  };
  FailureOr<Value> input =
      emitAdapter(makeAdapter(context, loc, getType({site.inputs}, site.stride),
                              blocks, SizeAttr(), SizeAttr(),
                              [&](OpBuilder &nested, Value value) -> Value {
                                Attribute window = getSize(site.stride);
                                // A strided layer reads means of stride x
                                // stride pixels: kernels have no stride.
                                if (site.stride > 1)
                                  value = DagPoolOp::create(
                                      nested, loc, DagFoldKind::Mean, value,
                                      ArrayRef<int64_t>{1, 2},
                                      nested.getArrayAttr({window, window}));
                                return DagAmplifyOp::create(nested, loc, value,
                                                            getSize(copies),
                                                            getSize(channels));
                              }),
                  data);
  if (failed(input))
    return failure();

  auto type = cast<RankedTensorType>(input->getType());
  Value results = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                          type.getElementType());
  // Weights are copy by copy.
  size_t perCopy = weights.size() / copies;
  SmallVector<int64_t> sliceShape(type.getShape());
  sliceShape.erase(sliceShape.begin() + 1);
  // A slice without the dimension of copies, and back.
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
      makeAdapter(context, loc, blocks, getType({site.outputs}, 1),
                  getSize(copies), getSize(channels),
                  [](OpBuilder &, Value value) { return value; }),
      results);
}

/// Swaps the last two dimensions of `[samples, tokens, channels]`.
static Value transposeTokens(OpBuilder &builder, Location loc, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  ArrayRef<int64_t> shape = type.getShape();
  Value empty = tensor::EmptyOp::create(
      builder, loc, ArrayRef<int64_t>{shape[0], shape[2], shape[1]},
      type.getElementType());
  return linalg::TransposeOp::create(builder, loc, value, empty,
                                     ArrayRef<int64_t>{0, 2, 1})
      ->getResult(0);
}

/// The data with the channels after the samples.
/// Convolutions have them there; tokens are rows.
static Value getChannelsFirst(OpBuilder &builder, const KernelSite &site) {
  Location loc = site.layer.op->getLoc();
  if (site.family == KernelFamily::Convolution)
    return reshape(builder, loc, site.data, site.layer.dataShape);
  // [samples, C]
  if (site.spatial.empty())
    return site.data;
  Value tokens = reshape(builder, loc, site.data,
                         {site.samples, site.spatial[0], site.inputs});
  return transposeTokens(builder, loc, tokens);
}

/// `result` in the shape that the layer has.
static Value getLayerResult(OpBuilder &builder, const KernelSite &site,
                            Value result) {
  if (site.family != KernelFamily::Convolution && !site.spatial.empty())
    result = transposeTokens(builder, site.layer.op->getLoc(), result);
  return reshape(builder, site.layer.op->getLoc(), result,
                 site.layer.resultShape);
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
  bool isBlock = op->getAttrOfType<DictionaryAttr>(KasDialect::siteAttrName)
                     .contains("attention");
  // Matched again: the module may have changed since it was marked.
  FailureOr<KernelSite> site =
      isBlock ? matchAttention(op, reason) : matchKernelSite(op, reason);
  if (failed(site)) {
    if (reason.empty())
      reason = "requires a layer that kernels can take the place of";
    return failure();
  }
  // The kernel's shape at the binding must be that of the site.
  SmallVector<int64_t> expected = {site->getChannels()};
  llvm::append_range(expected, site->spatial);
  auto type = cast<SymbolicTensorType>(kernel.getResultType());
  auto sizes = llvm::map_to_vector(type.getDims(), [&](SizeAttr size) {
    return kas::evaluate(size, symbols, binding).value_or(0);
  });
  if (sizes != expected) {
    reason = "requires a layer of the sizes of the binding";
    return failure();
  }
  // `emitKernel` computes in f32.
  if (!cast<ShapedType>(site->data.getType()).getElementType().isF32()) {
    reason = "requires elements of f32";
    return failure();
  }
  builder.setInsertionPoint(op);
  Value data = getChannelsFirst(builder, *site);
  FailureOr<SmallVector<Value>> weights = addWeights(*site, binding);
  // What could fail then has been lowered by addWeights.
  FailureOr<Value> result = failure();
  if (succeeded(weights))
    result = emitCopies(op.getLoc(), *site, binding, data, *weights);
  if (failed(result)) {
    reason = "requires a kernel that can be lowered";
    return failure();
  }
  // Dropped at the end, if nothing reads them then.
  llvm::append_range(oldWeights[function], site->weights);
  op->getResult(0).replaceAllUsesWith(addAccumulatorStart(
      builder, site->layer, getLayerResult(builder, *site, *result)));
  eraseWithDeadOperands(op);
  return success();
}

/// Drops old weights that nothing uses any more; names the new ones.
/// Names are given last, when the dropped weights have freed theirs.
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
              i, KasDialect::argumentNameAttrName))
        entry->second.insert(name.getValue());
    std::string name = wanted;
    for (unsigned count = 1; !entry->second.insert(name).second; ++count)
      name = wanted + "_" + std::to_string(count);
    function.setArgAttr(argument.getArgNumber(),
                        KasDialect::argumentNameAttrName,
                        builder.getStringAttr(name));
  }
}

/// Marks are read before anything changes, so a malformed one leaves the module
/// alone.
FailureOr<SubstituteResult> KernelSubstituter::run() {
  SmallVector<std::pair<linalg::LinalgOp, int64_t>> marked;
  WalkResult walked = module.walk([&](linalg::LinalgOp op) {
    auto mark = op->getAttrOfType<DictionaryAttr>(KasDialect::siteAttrName);
    if (!isWanted(mark))
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
    mlir::emitWarning(getFileLocation(module))
        << "requires layers that are marked with '" << KasDialect::siteAttrName
        << "' for " << (family.empty() ? "a kernel" : "'@") << family
        << (family.empty() ? "" : "'") << ", got none; kas-extract marks them";
  return result;
}

/// The kernel whose sites `kernel` is for: its own, or that which the search
/// for it began with, if there are any; empty for any.
/// A solved kernel has the name of the searched one in `kas.origin`.
static StringRef getFamily(ModuleOp module, KernelOp kernel) {
  SmallVector<StringRef> candidates = {kernel.getSymName()};
  if (auto origin =
          kernel->getAttrOfType<StringAttr>(KasDialect::originAttrName))
    candidates.push_back(origin.getValue());
  StringRef family;
  module.walk([&](linalg::LinalgOp op) {
    auto mark = op->getAttrOfType<DictionaryAttr>(KasDialect::siteAttrName);
    auto marked = mark ? mark.getAs<FlatSymbolRefAttr>("kernel") : nullptr;
    if (marked && llvm::is_contained(candidates, marked.getValue()))
      family = marked.getValue();
  });
  return family;
}

/// `family` names the kernel whose sites are meant; empty: see `getFamily`.
FailureOr<SubstituteResult>
kas::networks::substituteKernel(ModuleOp module, StringRef kernelName,
                                StringRef family) {
  kernelName.consume_front("@");
  family.consume_front("@");
  auto kernel = module.lookupSymbol<KernelOp>(kernelName);
  if (!kernel)
    return mlir::emitError(getFileLocation(module))
           << "requires a kas.kernel, got '@" << kernelName << "'";
  // Sizes must be numbers at each binding.
  if (!kernel.isSolved() || kernel.getBindings().empty())
    return kernel.emitOpError("requires bindings with values for all variables "
                              "(see -kas-solve-budget)");
  if (kernel.getBody().getNumArguments() != 1)
    return kernel.emitOpError("requires one input, got ")
           << kernel.getBody().getNumArguments();
  auto type = cast<SymbolicTensorType>(kernel.getResultType());
  auto input =
      cast<SymbolicTensorType>(kernel.getBody().getArgument(0).getType());
  // One shape in and out, so that copies can be put together.
  if (type != input || type.getNumChannelDims() != 1)
    return kernel.emitOpError(
               "requires an input and a result of one shape with "
               "one channel dimension, such as [C | H, W], got ")
           << input << " and " << type;
  // Steps that do nothing are removed for lowering; the kernel of the module
  // gets its own body back afterwards.
  OwningOpRef<KernelOp> copy(kernel.clone());
  canonicalizeKernel(kernel);
  FailureOr<SubstituteResult> result =
      KernelSubstituter(module, kernel,
                        family.empty() ? getFamily(module, kernel) : family)
          .run();
  kernel.getBody().takeBody(copy->getBody());
  return result;
}
