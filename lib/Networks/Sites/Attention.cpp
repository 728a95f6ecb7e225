//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds blocks of attention: from the output projection back to the data, with
// every element of queries, keys and values traced to a projection.
// Exporters write attention in many forms (fused or separate projections,
// reshapes, transpositions, scaled queries or scores), so nothing is matched by
// its form but the two products and the softmax. `traceViews` gives, for each
// element of a tensor, the element of the origin that it is a copy of; the
// block is one of attention if every element is where it has to be. This costs
// time linear in the tensors, once for a network. All else is checked on
// numbers of elements.
//
//===----------------------------------------------------------------------===//

#include "Matching.h"
#include "ViewTrace.h"
#include "kas/Dialect/Kas/Analysis/Contraction.h"
#include "kas/Networks/Sites/KernelSites.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace kas;
using namespace kas::networks;

namespace {

/// A product of two tensors that are no weights, matrix by matrix.
/// For the scores [batch..., queries, keys], for the result [batch..., tokens,
/// channels].
struct Product {
  linalg::LinalgOp op;
  /// The operand with the rows; the other one has the columns.
  unsigned rowsOperand = 0;
  /// Loops, outermost first.
  SmallVector<unsigned> batch;
  /// The loops of rows, columns and the sum.
  unsigned row = 0, column = 0, common = 0;
  /// By loop.
  SmallVector<int64_t> extents;
  /// For each operand and the result by loop: how far its next element is.
  /// 0 for loops that do not index it.
  SmallVector<SmallVector<int64_t>, 3> steps;

  /// The other way to see it: the transposed product.
  Product getTransposed() const {
    Product other = *this;
    other.rowsOperand = 1 - rowsOperand;
    std::swap(other.row, other.column);
    return other;
  }
  int64_t getNumMatrices() const {
    int64_t count = 1;
    for (unsigned loop : batch)
      count *= extents[loop];
    return count;
  }
  /// Which element of its operand `operand` (2: the result) is at these places.
  /// `matrix` counts through the batch loops.
  int64_t getElement(unsigned operand, int64_t matrix, int64_t atRow,
                     int64_t atColumn, int64_t atCommon) const {
    const SmallVector<int64_t> &step = steps[operand];
    int64_t element =
        atRow * step[row] + atColumn * step[column] + atCommon * step[common];
    for (unsigned loop : llvm::reverse(batch)) {
      element += matrix % extents[loop] * step[loop];
      matrix /= extents[loop];
    }
    return element;
  }
};

/// `reason` gets the first condition that a block nearly meets, for a remark.
class AttentionMatcher {
public:
  AttentionMatcher(Site output, std::string &reason)
      : output(std::move(output)), reason(reason) {}

  FailureOr<KernelSite> match();

private:
  /// Fails for anything but a contraction with one loop each for rows, columns
  /// and the sum that starts from zero; adds the operation to `ops`.
  FailureOr<Product> getProduct(Value result);
  /// The scores that `shares` are the softmax of, along the last dimension.
  FailureOr<Value> matchSoftmax(Value shares);
  /// Each of these sets members that the later ones need.
  LogicalResult matchValues();
  LogicalResult matchScores();
  LogicalResult checkOutput();
  bool checkScores(const Product &candidate, ArrayRef<int64_t> elements);
  /// Finds the projection that `operand` of a product is made of; `getElement`
  /// says which element of the operand has a token of a head and a channel.
  LogicalResult matchProjection(
      Value operand, double &scale,
      llvm::function_ref<int64_t(int64_t, int64_t, int64_t)> getElement);
  LogicalResult checkProjections();
  LogicalResult checkUsers();
  KernelSite makeSite();

  /// The part of a projection that queries, keys or values are.
  /// Fused projections have several parts.
  struct Projection {
    Site layer;
    int64_t firstColumn = 0;
  };

  Site output;
  std::string &reason;
  Product values, scores;
  /// Of the data of the output projection: the product with the values.
  ViewTrace merged;
  /// Of the product with the values: that with the shares.
  ViewTrace shares;
  /// Of the softmax's input: the product of queries and keys.
  ViewTrace scoreViews;
  Value scoreInput;
  int64_t heads = 0, headSize = 0, tokens = 0;
  SmallVector<Projection, 3> projections;
  /// All but the output projection, which is the last.
  llvm::SmallSetVector<Operation *, 32> ops;
};

} // namespace

/// `steps` of the product are strides of row-major tensors, by loop.
FailureOr<Product> AttentionMatcher::getProduct(Value result) {
  auto op = result.getDefiningOp<linalg::LinalgOp>();
  if (!op || op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 ||
      op.getNumReductionLoops() != 1 || !op.hasPureTensorSemantics() ||
      op.hasDynamicShape())
    return failure();
  FailureOr<linalg::ContractionDimensions> dims =
      linalg::inferContractionDims(op);
  // More than one loop of a kind would need an order to compare elements by.
  if (!hasContractionBody(op) || failed(dims) || dims->m.size() != 1 ||
      dims->n.size() != 1 || dims->k.size() != 1 ||
      !llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isProjectedPermutation(); }))
    return failure();
  auto fill = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  if (!fill || !matchPattern(fill.value(), m_AnyZeroFloat()) ||
      // A product with a weight is a linear layer.
      traceWeight(op.getDpsInputs()[0]) || traceWeight(op.getDpsInputs()[1]))
    return failure();
  Product product;
  product.op = op;
  product.batch.assign(dims->batch.begin(), dims->batch.end());
  product.row = dims->m.front();
  product.column = dims->n.front();
  product.common = dims->k.front();
  product.extents = op.getStaticLoopRanges();
  for (auto [operand, map] :
       llvm::zip_equal(op->getOperands(), op.getIndexingMapsArray())) {
    SmallVector<int64_t> &steps = product.steps.emplace_back();
    steps.resize(product.extents.size(), 0);
    ArrayRef<int64_t> shape = cast<ShapedType>(operand.getType()).getShape();
    for (auto [expr, step] :
         // Row-major tensors.
         llvm::zip_equal(map.getResults(), computeStrides(shape)))
      steps[cast<AffineDimExpr>(expr).getPosition()] = step;
  }
  ops.insert(op);
  return product;
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

/// All dimensions but the last, in order, perhaps with a last one of size 1.
static bool isRowMap(AffineMap map) {
  unsigned rank = map.getNumDims();
  ArrayRef<AffineExpr> results = map.getResults();
  if (results.size() == rank) {
    auto last = dyn_cast<AffineConstantExpr>(results.back());
    if (!last || last.getValue() != 0)
      return false;
    results = results.drop_back();
  }
  return results.size() + 1 == rank &&
         llvm::all_of(llvm::enumerate(results), [](auto entry) {
           auto dim = dyn_cast<AffineDimExpr>(entry.value());
           return dim && dim.getPosition() == entry.index();
         });
}

/// The values of rows that `value` is, through reshapes: of `input` reduced
/// along its last dimension by `Steps`.
/// Exporters keep the reduced dimension with size 1 or drop it, so reshapes are
/// allowed; they are added to `ops`.
template <typename... Steps>
static linalg::LinalgOp
matchRowReduction(Value value, Value input,
                  llvm::SmallSetVector<Operation *, 32> &ops) {
  SmallVector<Operation *> reshapes;
  while (auto *op = value.getDefiningOp()) {
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      break;
    reshapes.push_back(op);
    value = op->getOperand(0);
  }
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  if (!op || value != op->getResult(0) || op.getNumDpsInputs() != 1 ||
      op.getDpsInputs()[0] != input || op.getNumReductionLoops() != 1 ||
      !op.getIndexingMapsArray()[0].isIdentity() ||
      !isRowMap(op.getIndexingMapsArray()[1]) ||
      !isa_and_nonnull<Steps...>(getYielded(op)))
    return nullptr;
  ops.insert(op);
  ops.insert(reshapes.begin(), reshapes.end());
  return op;
}

/// A step on the elements of two operands, or of one, all in place but the rows
/// of the second.
/// Such as `scores - maximum`: the second operand has a value for each row.
template <typename Step>
static linalg::LinalgOp matchElementwise(Value value) {
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  if (!op || op.getNumLoops() != op.getNumParallelLoops() ||
      op.getNumDpsInits() != 1 || !isa_and_nonnull<Step>(getYielded(op)))
    return nullptr;
  Operation *step = getYielded(op);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (int64_t(step->getNumOperands()) != op.getNumDpsInputs() ||
      !maps.front().isIdentity() || !maps.back().isIdentity() ||
      (maps.size() == 3 && !isRowMap(maps[1])))
    return nullptr;
  for (unsigned index = 0; index < step->getNumOperands(); ++index)
    if (getInputOperand(op, step->getOperand(index)) !=
        op.getDpsInputOperand(index))
      return nullptr;
  return op;
}

/// Either `linalg.softmax`, or exp(x - max) / sum written out.
FailureOr<Value> AttentionMatcher::matchSoftmax(Value shares) {
  if (auto softmax = shares.getDefiningOp<linalg::SoftmaxOp>()) {
    if (int64_t(softmax.getDimension()) + 1 !=
        // Along the keys, which are the last dimension.
        cast<ShapedType>(shares.getType()).getRank())
      return failure();
    ops.insert(softmax);
    return softmax.getInput();
  }
  linalg::LinalgOp quotient = matchElementwise<arith::DivFOp>(shares);
  if (!quotient)
    return failure();
  // shares = powers / sum of powers along the row.
  Value powers = quotient.getDpsInputs()[0];
  linalg::LinalgOp sum =
      matchRowReduction<arith::AddFOp>(quotient.getDpsInputs()[1], powers, ops);
  linalg::LinalgOp power = matchElementwise<math::ExpOp>(powers);
  if (!sum || !power)
    return failure();
  ops.insert(quotient);
  ops.insert(power);
  // The largest score is subtracted, so that no power overflows.
  Value input = power.getDpsInputs()[0];
  linalg::LinalgOp difference = matchElementwise<arith::SubFOp>(input);
  // Some exporters leave the maximum out.
  if (!difference)
    return input;
  ops.insert(difference);
  input = difference.getDpsInputs()[0];
  if (!matchRowReduction<arith::MaximumFOp, arith::MaxNumFOp>(
          difference.getDpsInputs()[1], input, ops))
    return failure();
  return input;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The product with the values, whose one operand are shares of a softmax.
/// The transposed product has the shares as its other operand.
LogicalResult AttentionMatcher::matchValues() {
  // From the projection's data back over the reshape that joins the heads.
  merged = traceViews(output.data, ops);
  FailureOr<Product> product = getProduct(merged.origin);
  if (failed(product))
    return failure();
  for (Product candidate : {*product, product->getTransposed()}) {
    shares =
        traceViews(candidate.op.getDpsInputs()[candidate.rowsOperand], ops);
    FailureOr<Value> input = matchSoftmax(shares.origin);
    if (failed(input))
      continue;
    values = candidate;
    scoreInput = *input;
    return success();
  }
  return miss(reason, "requires a product of values with the softmax of scores "
                      "for a block of attention");
}

/// The scores are a product, with every one at its query and its key.
LogicalResult AttentionMatcher::matchScores() {
  scoreViews = traceViews(scoreInput, ops);
  FailureOr<Product> product = getProduct(scoreViews.origin);
  if (failed(product) || !scoreViews.biases.empty())
    return miss(reason,
                "requires scores that are a product of queries and keys "
                "for a block of attention");
  // It is not known which operand has the queries: both ways are tried.
  for (const Product &candidate : {*product, product->getTransposed()})
    if (checkScores(candidate, scoreViews.elements)) {
      scores = candidate;
      return success();
    }
  return miss(reason, "requires a softmax over the keys for a block of "
                      "attention");
}

/// Share (query, key) must be normalized along the keys, and be the score of
/// this query and this key in the same matrix.
bool AttentionMatcher::checkScores(const Product &candidate,
                                   ArrayRef<int64_t> elements) {
  int64_t numMatrices = values.getNumMatrices();
  if (candidate.getNumMatrices() != numMatrices ||
      candidate.extents[candidate.row] != tokens ||
      candidate.extents[candidate.column] != tokens ||
      candidate.extents[candidate.common] != headSize ||
      int64_t(elements.size()) != numMatrices * tokens * tokens)
    return false;
  for (int64_t matrix = 0; matrix < numMatrices; ++matrix)
    for (int64_t query = 0; query < tokens; ++query)
      for (int64_t key = 0; key < tokens; ++key) {
        int64_t share = shares.elements[values.getElement(
            values.rowsOperand, matrix, query, 0, key)];
        // The last dimension of the shares is the one of the softmax.
        if (share % tokens != key ||
            elements[share] != candidate.getElement(2, matrix, query, key, 0))
          return false;
      }
  return true;
}

/// The heads are side by side in what the output projection reads.
/// Element [token, head * headSize + channel] of the projection's data is
/// element [token, channel] of the head's matrix.
LogicalResult AttentionMatcher::checkOutput() {
  int64_t channels = output.dataShape.back();
  headSize = values.extents[values.column];
  tokens = values.extents[values.row];
  heads = channels / headSize;
  int64_t numMatrices = values.getNumMatrices();
  // Between the products nothing may be added or scaled.
  bool fits =
      heads * headSize == channels && numMatrices % heads == 0 &&
      values.extents[values.common] == tokens &&
      int64_t(merged.elements.size()) == numMatrices * tokens * headSize &&
      !shares.elements.empty() && merged.biases.empty() &&
      shares.biases.empty() && merged.scale == 1 && shares.scale == 1;
  for (int64_t matrix = 0; fits && matrix < numMatrices; ++matrix)
    for (int64_t token = 0; token < tokens; ++token)
      for (int64_t channel = 0; channel < headSize; ++channel) {
        // Matrices are samples times heads, heads innermost.
        int64_t row = matrix / heads * tokens + token;
        int64_t column = matrix % heads * headSize + channel;
        fits &= merged.elements[row * channels + column] ==
                values.getElement(2, matrix, token, channel, 0);
      }
  if (!fits)
    return miss(reason, "requires an output projection that reads the heads of "
                        "each token side by side for a block of attention");
  return success();
}

//===----------------------------------------------------------------------===//
// Projections
//===----------------------------------------------------------------------===//

/// From the operand back through views to a linear layer; `first` is its first
/// column for this part, and heads follow each other from there.
LogicalResult AttentionMatcher::matchProjection(
    Value operand, double &scale,
    llvm::function_ref<int64_t(int64_t, int64_t, int64_t)> getElement) {
  ViewTrace trace = traceViews(operand, ops);
  scale = trace.scale;
  auto op = trace.origin.getDefiningOp<linalg::LinalgOp>();
  std::string ignored;
  FailureOr<Site> layer = failure();
  if (op)
    layer = matchSite(op, ignored);
  if (failed(layer) || trace.elements.empty() ||
      (layer->kind.name != "linear" && layer->kind.name != "batched_linear"))
    return miss(reason,
                "requires queries, keys and values of linear layers for "
                "a block of attention");
  ops.insert(op);
  int64_t columns = layer->resultShape.back();
  auto getSource = [&](int64_t matrix, int64_t token, int64_t channel) {
    return trace.elements[getElement(matrix, token, channel)];
  };
  // Where element (0, 0, 0) comes from says which part of a fused projection it
  // is.
  int64_t first = getSource(0, 0, 0);
  bool fits = layer->dataShape == output.dataShape &&
              first + heads * headSize <= columns;
  for (int64_t matrix = 0; fits && matrix < values.getNumMatrices(); ++matrix)
    for (int64_t token = 0; token < tokens; ++token)
      for (int64_t channel = 0; channel < headSize; ++channel)
        fits &= getSource(matrix, token, channel) ==
                (matrix / heads * tokens + token) * columns + first +
                    matrix % heads * headSize + channel;
  if (!fits)
    return miss(reason, "requires heads that are side by side in queries, keys "
                        "and values for a block of attention");
  projections.push_back({std::move(*layer), first});
  return success();
}

/// The value before the reshape that makes rows of tokens.
static Value getTokens(Value data) {
  auto collapse = data.getDefiningOp<tensor::CollapseShapeOp>();
  return collapse ? collapse.getSrc() : data;
}

/// All projections read one tensor, the three parts differ, and nothing of a
/// fused projection is left over: its weights would be dropped by a
/// replacement.
LogicalResult AttentionMatcher::checkProjections() {
  int64_t channels = heads * headSize, numColumns = 0;
  llvm::SmallSetVector<Operation *, 3> layers;
  llvm::SmallSetVector<std::pair<Operation *, int64_t>, 3> parts;
  for (const Projection &part : projections) {
    if (getTokens(part.layer.data) != getTokens(projections[0].layer.data))
      return miss(reason, "requires queries, keys and values of the same data "
                          "for a block of attention");
    if (layers.insert(part.layer.op))
      numColumns += part.layer.resultShape.back();
    parts.insert({part.layer.op, part.firstColumn});
  }
  if (parts.size() != 3 || numColumns != 3 * channels ||
      output.resultShape.back() != channels)
    return miss(reason, "requires ", channels,
                " outputs of each projection for a block of attention");
  return success();
}

/// Nothing else reads what is between the data and the result. Values that
/// others read would have to be computed still.
LogicalResult AttentionMatcher::checkUsers() {
  for (Operation *op : ops)
    for (Operation *user : op->getUsers())
      if (user != output.op && !ops.contains(user))
        return miss(reason,
                    "requires a block of attention whose steps have no "
                    "other users, got '",
                    user->getName().getStringRef(), "'");
  return success();
}

/// What the names have in common, up to a dot.
/// `layers.0.attn.qkv` and `layers.0.attn.proj` have `layers.0.attn`.
static std::string getCommonName(ArrayRef<std::string> names) {
  StringRef common = names.front();
  for (StringRef name : names)
    while (!common.empty() &&
           !(name + ".").str().starts_with((common + ".").str()))
      common = common.contains('.') ? common.rsplit('.').first : "";
  return common.str();
}

/// FLOPs are those of one sample, of projections and products; parameters are
/// those of all projections.
KernelSite AttentionMatcher::makeSite() {
  KernelSite site;
  site.family = KernelFamily::Attention;
  site.data = projections[0].layer.data;
  site.inputs = site.outputs = heads * headSize;
  site.heads = heads;
  site.samples = values.getNumMatrices() / heads;
  site.spatial = {tokens};
  // Kernels take a window; attention has none, and 3 is the usual one.
  site.window = 3;
  double macs =
      double(output.macs) + 2.0 * double(values.getNumMatrices() * tokens) *
                                double(tokens * headSize);
  site.parameters = output.parameters;
  SmallVector<std::string> names = {output.name};
  llvm::SmallSetVector<Operation *, 3> layers;
  for (const Projection &part : projections)
    if (layers.insert(part.layer.op)) {
      macs += double(part.layer.macs);
      site.parameters += part.layer.parameters;
      names.push_back(part.layer.name);
    }
  site.flops = 2 * macs / double(site.samples);
  site.name = getCommonName(names);
  ops.insert(output.op);
  // Weights are arguments of the function that anything in the block is made
  // of.
  for (Operation *op : ops) {
    site.ops.push_back(op);
    for (Value operand : op->getOperands())
      if (auto argument = dyn_cast_or_null<BlockArgument>(traceWeight(operand)))
        if (!llvm::is_contained(site.weights, argument) &&
            argument != site.data)
          site.weights.push_back(argument);
  }
  site.layer = std::move(output);
  return site;
}

/// The output first: it says how many heads and tokens there are.
FailureOr<KernelSite> AttentionMatcher::match() {
  if (failed(matchValues()) || failed(checkOutput()) || failed(matchScores()))
    return failure();
  double queryScale = 1, keyScale = 1, valueScale = 1;
  if (failed(matchProjection(
          scores.op.getDpsInputs()[scores.rowsOperand], queryScale,
          [&](int64_t matrix, int64_t token, int64_t channel) {
            return scores.getElement(scores.rowsOperand, matrix, token, 0,
                                     channel);
          })) ||
      failed(matchProjection(
          scores.op.getDpsInputs()[1 - scores.rowsOperand], keyScale,
          [&](int64_t matrix, int64_t token, int64_t channel) {
            return scores.getElement(1 - scores.rowsOperand, matrix, 0, token,
                                     channel);
          })) ||
      failed(matchProjection(
          values.op.getDpsInputs()[1 - values.rowsOperand], valueScale,
          [&](int64_t matrix, int64_t token, int64_t channel) {
            return values.getElement(1 - values.rowsOperand, matrix, 0, channel,
                                     token);
          })) ||
      failed(checkProjections()) || failed(checkUsers()))
    return failure();
  double scale = scoreViews.scale * queryScale * keyScale;
  double expected = 1 / std::sqrt(double(headSize));
  // f32 constants of exporters are rounded; values must not be scaled at all.
  if (std::abs(scale - expected) > 1e-5 * expected || valueScale != 1)
    return miss(reason, "requires scores over the root of ", headSize,
                " channels for a block of attention, got a factor of ", scale);
  return makeSite();
}

/// A candidate is any linear layer: it could be the output projection. The
/// reason is empty where nothing looked like attention.
FailureOr<KernelSite> kas::networks::matchAttention(linalg::LinalgOp op,
                                                    std::string &reason) {
  std::string ignored;
  FailureOr<Site> site = matchSite(op, ignored);
  reason.clear();
  if (failed(site) ||
      (site->kind.name != "linear" && site->kind.name != "batched_linear"))
    return failure();
  return AttentionMatcher(std::move(*site), reason).match();
}
