//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes an operator as views, pads and one einsum in PyTorch, where it is a
// contraction.
// The primitives of an operator are taken off one by one, from the data side
// (`Peeler`, include/kas/Conversion/Peeling.h, which lowers to linalg in the
// same way): each becomes a view or a pad of a tensor, until every dimension is
// a sum of loops. Windows become views by `unfold`; the rest is one product of
// all tensors, summed by einsum, or several with the cheapest order of pairs.
// Example, a 1-D convolution:
//    x = F.pad(data, (1, 1))
//    x = x.unfold(2, 3, 1)
//    y = torch.einsum("abcd,ebd->aec", x, weight0)
//
//===----------------------------------------------------------------------===//

#include "PyTorch.h"
#include "kas/Conversion/Peeling.h"
#include "kas/Dialect/Kas/Analysis/Coordinates.h"
#include "kas/Reference/Evaluator.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <limits>

using namespace kas;
using namespace kas::reference;
using namespace kas::target;
using namespace mlir;

namespace {
/// A tensor of the code: the expression that gives it, which is a name or calls
/// on one, its shape and what indexes it.
struct TorchTensor : Labels {
  std::string code;
  SmallVector<int64_t> shape;
  /// Padding that has not been written yet, per dimension.
  /// Kept back so that several pads become one call.
  std::vector<std::pair<int64_t, int64_t>> pads;
  /// 0, or minus infinity where a maximum follows.
  double fill = 0;
};

/// Rearranges tensors as `TensorRewriter` does, by lines of code.
/// The members have the contracts of `TensorRewriter` in
/// lib/Conversion/KasToLinalg.
class TorchRewriter {
public:
  using Tensor = TorchTensor;

  explicit TorchRewriter(llvm::raw_ostream &os) : os(os) {}

  /// Writes `NAME = CODE  # SHAPE` and lets the tensor be NAME. Padding that is
  /// still to be written is not in that shape.
  void assign(TorchTensor &tensor, const Twine &code) {
    std::string name = tensor.code;
    // A parameter of the function stays what it is; its variants share one
    // name.
    if (name == "data")
      name = "x";
    else if (StringRef rest(name); rest.consume_front("weight"))
      name = ("w" + rest).str();
    std::string text = code.str();
    SmallVector<int64_t> shape(tensor.shape);
    // The comment says what the line gives: the shape before pads that are
    // pending.
    for (auto [dim, pad] : llvm::enumerate(tensor.pads))
      shape[dim] -= pad.first + pad.second;
    os << "    " << name << " = " << text << "  # " << listNumbers(shape)
       << "\n";
    tensor.code = name;
  }

  /// Writes the padding that has been requested.
  void flush(TorchTensor &tensor) {
    if (tensor.pads.empty())
      return;
    SmallVector<int64_t> amounts;
    // F.pad takes pairs from the last dimension on.
    for (auto [low, high] : llvm::reverse(tensor.pads)) {
      amounts.push_back(low);
      amounts.push_back(high);
    }
    // The last dimensions are left out where they can be; PyTorch counts from
    // the end.
    while (amounts.size() > 2 && amounts.back() == 0 &&
           amounts[amounts.size() - 2] == 0)
      amounts.pop_back_n(2);
    tensor.pads.clear();
    std::string value = tensor.fill == 0 ? "" : ", value=float(\"-inf\")";
    assign(tensor, "F.pad(" + tensor.code + ", (" + listNumbers(amounts) + ")" +
                       value + ")");
  }

  /// `coordinate` = outer * size(inner) + inner, in all labels. A dimension
  /// that is the coordinate alone is split into two, which costs nothing.
  void substitute(TorchTensor &tensor, Value coordinate, Value outer,
                  Value inner) {
    Label sum;
    sum[outer] = getConcreteSize(inner);
    sum[inner] = 1;
    SmallVector<Label> dims;
    SmallVector<int64_t> shape;
    std::string code = tensor.code;
    bool isSplit = false;
    for (auto [label, size] : llvm::zip_equal(tensor.dims, tensor.shape)) {
      // Part of a window: only the label changes.
      if (!isSole(label, coordinate)) {
        dims.push_back(replaceInLabel(label, coordinate, sum));
        shape.push_back(size);
        continue;
      }
      isSplit = true;
      int64_t outerSize = getConcreteSize(outer);
      int64_t innerSize = getConcreteSize(inner);
      code += ".unflatten(" + std::to_string(dims.size()) + ", (" +
              std::to_string(outerSize) + ", " + std::to_string(innerSize) +
              "))";
      dims.push_back(getSoleLabel(outer));
      shape.push_back(outerSize);
      dims.push_back(getSoleLabel(inner));
      shape.push_back(innerSize);
    }
    if (isSplit) {
      // Pads are per dimension, and the dimensions change.
      if (!tensor.pads.empty()) {
        flush(tensor);
        return substitute(tensor, coordinate, outer, inner);
      }
      tensor.shape = shape;
      assign(tensor, code);
    }
    tensor.dims = dims;
  }

  /// Makes `coordinate` the label of a dimension of its own.
  LogicalResult isolate(TorchTensor &tensor, Value coordinate) {
    if (tensor.findSole(coordinate))
      return success();
    flush(tensor);
    // Every dimension that the coordinate is in is taken apart; that may show
    // other coordinates twice, which einsum or a later diagonal takes.
    for (unsigned dim = 0; dim < tensor.dims.size(); ++dim)
      if (tensor.dims[dim].contains(coordinate))
        spread(tensor, dim);
    takeDiagonals(tensor, coordinate);
    return success();
  }

  /// More elements at both ends of `dim`, requested and not written yet.
  LogicalResult pad(TorchTensor &tensor, unsigned dim, int64_t low,
                    int64_t high, double fill) {
    if (low == 0 && high == 0)
      return success();
    if (tensor.pads.empty())
      tensor.pads.assign(tensor.shape.size(), {0, 0});
    tensor.pads[dim].first += low;
    tensor.pads[dim].second += high;
    tensor.shape[dim] += low + high;
    tensor.fill = fill;
    return success();
  }

  /// Element i of the result is element (i + amount) mod size of the tensor.
  LogicalResult rotate(TorchTensor &tensor, unsigned dim, int64_t amount) {
    flush(tensor);
    assign(tensor,
           tensor.code + ".roll(" + Twine(-amount) + ", " + Twine(dim) + ")");
    return success();
  }

  /// Two dimensions that are quotient and remainder become one that is the
  /// coordinate. A half that does not index the tensor is a dimension along
  /// which it repeats.
  LogicalResult join(TorchTensor &tensor, Value outer, Value inner,
                     Value coordinate) {
    for (Value half : {outer, inner})
      if (tensor.mentions(half) && failed(isolate(tensor, half)))
        return failure();
    flush(tensor);
    std::optional<unsigned> outerDim = tensor.findSole(outer);
    std::optional<unsigned> innerDim = tensor.findSole(inner);
    assert((outerDim || innerDim) && "one half must index the tensor");
    // The outer half belongs directly before the inner one.
    if (!outerDim) {
      outerDim = *innerDim;
      repeat(tensor, *outerDim, outer);
    } else if (!innerDim) {
      repeat(tensor, *outerDim + 1, inner);
    } else if (*innerDim != *outerDim + 1) {
      bool isBefore = *innerDim < *outerDim;
      moveDimension(tensor, *innerDim, isBefore ? *outerDim : *outerDim + 1);
      // The dimension that moved was before it.
      if (isBefore)
        outerDim = *outerDim - 1;
    }
    unsigned dim = *outerDim;
    tensor.shape[dim] *= tensor.shape[dim + 1];
    tensor.shape.erase(tensor.shape.begin() + dim + 1);
    tensor.dims.erase(tensor.dims.begin() + dim + 1);
    tensor.dims[dim] = getSoleLabel(coordinate);
    assign(tensor, tensor.code + ".flatten(" + Twine(dim) + ", " +
                       Twine(dim + 1) + ")");
    return success();
  }

  /// A factor of ones for what no operand mentions, so that einsum knows its
  /// size.
  TorchTensor createOnes(Value coordinate, const TorchTensor &) {
    TorchTensor tensor;
    tensor.code = "ones" + std::to_string(numOnes++);
    tensor.dims.push_back(getSoleLabel(coordinate));
    tensor.shape.push_back(getConcreteSize(coordinate));
    assign(tensor, "data.new_ones(" + Twine(tensor.shape[0]) + ")");
    return tensor;
  }

  const std::string &getReason() const { return reason; }

  /// Sums over the coordinates that are dimensions of their own: there are no
  /// windows yet, so the tensor is small.
  /// A reduction that only this tensor mentions is summed at once: einsum would
  /// carry it through the products with the others.
  void sum(TorchTensor &tensor, ArrayRef<Value> coordinates) {
    SmallVector<int64_t> places;
    for (auto [dim, label] : llvm::enumerate(tensor.dims)) {
      Value coordinate = label.begin()->first;
      if (llvm::is_contained(coordinates, coordinate) &&
          tensor.findSole(coordinate) &&
          tensor.shape[dim] == getConcreteSize(coordinate))
        places.push_back(static_cast<int64_t>(dim));
    }
    if (places.empty())
      return;
    for (int64_t dim : llvm::reverse(places)) {
      tensor.shape.erase(tensor.shape.begin() + dim);
      tensor.dims.erase(tensor.dims.begin() + dim);
      // Of these there is none; that of others comes after the sum.
      if (!tensor.pads.empty())
        tensor.pads.erase(tensor.pads.begin() + dim);
    }
    assign(tensor, tensor.code + ".sum((" +
                       listNumbers(places, /*isTuple=*/true) + "))");
  }

  /// Lets every dimension have one coordinate as label: windows become
  /// dimensions of their own, as views.
  void spreadAll(TorchTensor &tensor) {
    flush(tensor);
    for (unsigned dim = 0; dim < tensor.dims.size(); ++dim)
      spread(tensor, dim);
  }

private:
  /// One dimension per coordinate of the label of `dim`: `unfold` gives a
  /// window for each value of the first, the window is indexed by the rest.
  void spread(TorchTensor &tensor, unsigned dim) {
    // One coordinate with stride 1 that covers the dimension.
    if (tensor.dims[dim].size() == 1 && tensor.dims[dim].begin()->second == 1 &&
        tensor.shape[dim] == getConcreteSize(tensor.dims[dim].begin()->first))
      return;
    SmallVector<std::pair<Value, int64_t>> terms(tensor.dims[dim].begin(),
                                                 tensor.dims[dim].end());
    // Windows inside windows: the largest steps are outermost.
    // Insertion sort, stable for equal ones; a label has two or three terms.
    for (size_t end = 1; end < terms.size(); ++end)
      for (size_t at = end; at > 0 && terms[at].second > terms[at - 1].second;
           --at)
        std::swap(terms[at], terms[at - 1]);
    std::string code = tensor.code;
    SmallVector<int64_t> shape(tensor.shape);
    SmallVector<Label> dims(tensor.dims);
    shape.erase(shape.begin() + dim);
    dims.erase(dims.begin() + dim);
    SmallVector<int64_t> sizes;
    SmallVector<Label> labels;
    unsigned windowDim = dim;
    int64_t available = tensor.shape[dim];
    for (auto [index, term] : llvm::enumerate(terms)) {
      auto [coordinate, step] = term;
      int64_t size = getConcreteSize(coordinate);
      sizes.push_back(size);
      labels.push_back(getSoleLabel(coordinate));
      if (index + 1 == terms.size()) {
        code += getSlice(windowDim, size, step, available);
        break;
      }
      // Elements that the remaining terms reach over: 1 + sum of coefficient *
      // (size - 1).
      int64_t window = 1;
      for (auto [other, coefficient] : ArrayRef(terms).drop_front(index + 1))
        window += coefficient * (getConcreteSize(other) - 1);
      int64_t count = (available - window) / step + 1;
      code += ".unfold(" + std::to_string(windowDim) + ", " +
              std::to_string(window) + ", " + std::to_string(step) + ")";
      // The dimension may be longer than the window needs, after padding for a
      // stride.
      if (count != size)
        code += ".narrow(" + std::to_string(windowDim) + ", 0, " +
                std::to_string(size) + ")";
      // The window is the last dimension now; the others keep their places.
      windowDim = tensor.shape.size() + index;
      available = window;
    }
    // The first coordinate stays at `dim`, the others are at the end.
    shape.insert(shape.begin() + dim, sizes[0]);
    dims.insert(dims.begin() + dim, labels[0]);
    for (size_t index = 1; index < terms.size(); ++index) {
      shape.push_back(sizes[index]);
      dims.push_back(labels[index]);
    }
    tensor.shape = shape;
    tensor.dims = dims;
    assign(tensor, code);
  }

  /// `[:, :, ::step]` for the dimension of `size` values among `available`.
  static std::string getSlice(unsigned dim, int64_t size, int64_t step,
                              int64_t available) {
    if (size == available && step == 1)
      return "";
    if (step == 1)
      return ".narrow(" + std::to_string(dim) + ", 0, " + std::to_string(size) +
             ")";
    std::string text = "[";
    for (unsigned before = 0; before < dim; ++before)
      text += ":, ";
    return text + ":" + std::to_string(step * (size - 1) + 1) + ":" +
           std::to_string(step) + "]";
  }

  /// Where `coordinate` labels several dimensions alone, the first of them is
  /// left.
  /// A coordinate twice is a diagonal: x[i, i].
  void takeDiagonals(TorchTensor &tensor, Value coordinate) {
    SmallVector<unsigned> places;
    for (auto [dim, label] : llvm::enumerate(tensor.dims))
      if (isSole(label, coordinate))
        places.push_back(dim);
    if (places.size() < 2)
      return;
    unsigned first = places[0], second = places[1];
    // Both dimensions have the size of the coordinate.
    int64_t size = tensor.shape[first];
    Label label = tensor.dims[first];
    // From the last one, so that positions stay valid. `diagonal` puts its
    // dimension last.
    for (unsigned dim : {second, first}) {
      tensor.shape.erase(tensor.shape.begin() + dim);
      tensor.dims.erase(tensor.dims.begin() + dim);
    }
    tensor.shape.push_back(size);
    tensor.dims.push_back(label);
    assign(tensor, tensor.code + ".diagonal(0, " + Twine(first) + ", " +
                       Twine(second) + ")");
    // Three times: the diagonal of the diagonal.
    takeDiagonals(tensor, coordinate);
  }

  /// A new dimension at `position` along which the tensor repeats, without a
  /// copy.
  void repeat(TorchTensor &tensor, unsigned position, Value coordinate) {
    tensor.shape.insert(tensor.shape.begin() + position,
                        getConcreteSize(coordinate));
    tensor.dims.insert(tensor.dims.begin() + position,
                       getSoleLabel(coordinate));
    assign(tensor, tensor.code + ".unsqueeze(" + Twine(position) + ").expand(" +
                       listNumbers(tensor.shape) + ")");
  }

  void moveDimension(TorchTensor &tensor, unsigned from, unsigned to) {
    int64_t size = tensor.shape[from];
    Label label = tensor.dims[from];
    tensor.shape.erase(tensor.shape.begin() + from);
    tensor.dims.erase(tensor.dims.begin() + from);
    tensor.shape.insert(tensor.shape.begin() + to, size);
    tensor.dims.insert(tensor.dims.begin() + to, label);
    assign(tensor,
           tensor.code + ".movedim(" + Twine(from) + ", " + Twine(to) + ")");
  }

  llvm::raw_ostream &os;
  std::string reason;
  unsigned numOnes = 0;
};

/// Writes what is left when all primitives are gone.
/// The product of the operands, the sum over what is not an output, the scale
/// of means, and the shape of the result.
class ContractionWriter {
public:
  ContractionWriter(BasicContraction<TorchTensor> contraction,
                    ArrayRef<int64_t> outputShape, llvm::raw_ostream &os)
      : contraction(std::move(contraction)), outputShape(outputShape), os(os) {}

  void write() {
    SmallVector<Value> present;
    SmallVector<int64_t> partial;
    // An output that no operand mentions repeats one value: computed once and
    // expanded.
    for (Value output : contraction.outputs) {
      bool isPresent = isMentioned(output);
      if (isPresent)
        present.push_back(output);
      partial.push_back(isPresent ? getConcreteSize(output) : 1);
    }
    SmallVector<int64_t> shape =
        llvm::map_to_vector(contraction.outputs, getConcreteSize);
    // Lines of partial products are written by this.
    std::string reduced = getReduced(present);
    os << "    y = " << reduced;
    if (contraction.scale != 1)
      os << getScale();
    os << "\n";
    if (present.size() != contraction.outputs.size())
      os << "    y = y.reshape(" << listNumbers(partial) << ").expand("
         << listNumbers(shape) << ")\n";
    os << "    return y";
    // Outputs that were split become one dimension again.
    if (shape != outputShape)
      os << ".reshape("
         << (outputShape.empty() ? "()" : listNumbers(outputShape)) << ")";
    os << "\n";
  }

private:
  bool isMentioned(Value coordinate) const {
    return llvm::any_of(contraction.operands, [&](const TorchTensor &operand) {
      return operand.mentions(coordinate);
    });
  }

  /// Written as a quotient where it is the inverse of an integer.
  std::string getScale() const {
    double inverse = 1 / contraction.scale;
    std::string text;
    llvm::raw_string_ostream stream(text);
    // `/ 9` says more than `* 0.1111111111111111`.
    if (inverse > 1 && std::abs(inverse - std::round(inverse)) < 1e-9 * inverse)
      stream << " / " << llvm::format("%.0f", inverse);
    else
      stream << " * " << llvm::format("%.17g", contraction.scale);
    return text;
  }

  /// The letter of einsum for a coordinate; 52 are far more than operators
  /// have.
  char getLetter(Value coordinate) {
    auto [entry, isNew] = letters.insert({coordinate, letters.size()});
    unsigned number = entry->second;
    return number < 26 ? 'a' + number : 'A' + (number - 26);
  }

  /// Every label is a single coordinate here (`spreadAll`).
  std::string getSubscripts(ArrayRef<Label> dims) {
    std::string text;
    for (const Label &label : dims)
      text += getLetter(label.begin()->first);
    return text;
  }
  std::string getSubscripts(ArrayRef<Value> coordinates) {
    std::string text;
    for (Value coordinate : coordinates)
      text += getLetter(coordinate);
    return text;
  }

  /// The expression of the result; products of a part of the operands are
  /// written before.
  std::string getReduced(ArrayRef<Value> outputs) {
    SmallVector<Value> results(outputs);
    // Einsum only sums: for a maximum the products keep their reductions, and
    // `amax` comes after.
    if (contraction.isMax)
      llvm::append_range(results, contraction.reductions);
    SmallVector<Factor> factors;
    for (const TorchTensor &operand : contraction.operands) {
      Factor factor{operand.code, getSubscripts(operand.dims), {}};
      for (const Label &label : operand.dims)
        factor.coordinates.insert(label.begin()->first);
      factors.push_back(std::move(factor));
    }
    std::string result = getSubscripts(results);
    // The last product gives the result.
    SmallVector<std::pair<size_t, size_t>> steps =
        orderProducts(factors, results);
    // All products but the last become lines `p0 = ...`, `p1 = ...`.
    for (auto [number, step] :
         llvm::enumerate(ArrayRef(steps).drop_back(steps.empty() ? 0 : 1))) {
      Factor product = multiply(factors, step.first, step.second, results);
      product.code = "p" + std::to_string(number);
      SmallVector<Value> kept(product.coordinates.getArrayRef());
      product.subscripts = getSubscripts(kept);
      os << "    " << product.code << " = torch.einsum(\""
         << factors[step.first].subscripts << ","
         << factors[step.second].subscripts << "->" << product.subscripts
         << "\", " << factors[step.first].code << ", "
         << factors[step.second].code << ")\n";
      // From here on the product stands for the two.
      replacePair(factors, step, std::move(product));
    }
    auto codes = llvm::map_range(factors, [](auto &f) { return f.code; });
    auto subscripts =
        llvm::map_range(factors, [](auto &f) { return f.subscripts; });
    std::string code;
    // A copy without any change needs no einsum.
    if (factors.size() == 1 && factors[0].subscripts == result)
      code = factors[0].code;
    else
      code = "torch.einsum(\"" + llvm::join(subscripts, ",") + "->" + result +
             "\", " + llvm::join(codes, ", ") + ")";
    if (contraction.isMax && !contraction.reductions.empty()) {
      SmallVector<int64_t> dims;
      for (size_t dim = outputs.size(); dim < results.size(); ++dim)
        dims.push_back(static_cast<int64_t>(dim));
      code += ".amax((" + listNumbers(dims, /*isTuple=*/true) + "))";
    }
    return code;
  }

  /// A tensor of the product that is left.
  struct Factor {
    std::string code, subscripts;
    llvm::SmallSetVector<Value, 8> coordinates;
  };

  /// The product of two factors, summed over what nothing else mentions; its
  /// name is still to be given.
  static Factor multiply(ArrayRef<Factor> factors, size_t first, size_t second,
                         ArrayRef<Value> results) {
    Factor product;
    for (size_t index : {first, second})
      for (Value coordinate : factors[index].coordinates) {
        // Coordinates that neither results nor other factors mention are summed
        // in this product.
        bool isNeeded = llvm::is_contained(results, coordinate);
        for (auto [other, factor] : llvm::enumerate(factors))
          isNeeded |= other != first && other != second &&
                      factor.coordinates.contains(coordinate);
        if (isNeeded)
          product.coordinates.insert(coordinate);
      }
    return product;
  }

  /// The product takes the place of the first of the two.
  static void replacePair(SmallVectorImpl<Factor> &factors,
                          std::pair<size_t, size_t> pair, Factor product) {
    factors[pair.first] = std::move(product);
    factors.erase(factors.begin() + pair.second);
  }

  /// Iterations of the loops over these; in floating point, since they may
  /// exceed 64 bits.
  static double
  countIterations(const llvm::SmallSetVector<Value, 8> &coordinates) {
    double points = 1;
    for (Value coordinate : coordinates)
      points *= static_cast<double>(getConcreteSize(coordinate));
    return points;
  }

  /// Which two factors to multiply, one pair after another: the order with the
  /// fewest multiplications and numbers written. `torch.einsum` itself goes
  /// from left to right, which may be a hundred times as much.
  static SmallVector<std::pair<size_t, size_t>>
  orderProducts(ArrayRef<Factor> factors, ArrayRef<Value> results) {
    // All orders are tried; nothing of the language gives that many factors.
    if (factors.size() < 2 || factors.size() > 6)
      return {};
    return findOrder(factors, results).second;
  }

  /// The cheapest cost and pairs for `factors`: for each pair first, the best
  /// order of the rest. 6 factors have 2700 orders.
  static std::pair<double, SmallVector<std::pair<size_t, size_t>>>
  findOrder(ArrayRef<Factor> factors, ArrayRef<Value> results) {
    std::pair<double, SmallVector<std::pair<size_t, size_t>>> best;
    if (factors.size() < 2)
      return best;
    best.first = std::numeric_limits<double>::infinity();
    for (size_t first = 0; first < factors.size(); ++first)
      for (size_t second = first + 1; second < factors.size(); ++second) {
        llvm::SmallSetVector<Value, 8> all(factors[first].coordinates);
        all.insert_range(factors[second].coordinates);
        Factor product = multiply(factors, first, second, results);
        // Multiplications of this product and elements that it writes.
        double cost =
            countIterations(all) + countIterations(product.coordinates);
        SmallVector<Factor> rest(factors);
        replacePair(rest, {first, second}, std::move(product));
        auto [others, steps] = findOrder(rest, results);
        if (cost + others >= best.first)
          continue;
        best.first = cost + others;
        steps.insert(steps.begin(), {first, second});
        best.second = std::move(steps);
      }
    return best;
  }

  BasicContraction<TorchTensor> contraction;
  ArrayRef<int64_t> outputShape;
  llvm::raw_ostream &os;
  llvm::SmallDenseMap<Value, unsigned> letters;
};
} // namespace

LogicalResult kas::target::writeTorchContraction(OperatorOp op,
                                                 llvm::raw_ostream &os) {
  // Nobody asks for it: the gather form is written instead.
  std::string reason;
  if (failed(checkIsContraction(op, reason)))
    return failure();
  OperatorShapes shapes = getShapes(op);
  // Into a string first, so that nothing is written on failure.
  std::string text;
  llvm::raw_string_ostream stream(text);
  TorchRewriter rewriter(stream);
  Peeler<TorchRewriter> peeler(rewriter, op, getCoordinates(op).hasMax());
  auto addOperand = [&](const Twine &name, ArrayRef<int64_t> shape,
                        ValueRange coordinates) {
    TorchTensor tensor;
    tensor.code = name.str();
    tensor.shape.assign(shape.begin(), shape.end());
    peeler.addOperand(std::move(tensor), coordinates);
  };
  YieldOp yield = op.getYield();
  addOperand("data", shapes.data, yield.getData());
  for (auto [index, coordinates] : llvm::enumerate(yield.getWeights()))
    addOperand("weight" + Twine(index), shapes.weights[index], coordinates);
  if (failed(peeler.peelAll()))
    return failure();
  // From here on labels are of loops alone.
  auto contraction = peeler.getContraction();
  for (auto [index, operand] : llvm::enumerate(contraction.operands)) {
    // Reductions that no other operand mentions. A maximum must see all
    // products first.
    SmallVector<Value> own;
    for (Value reduction : contraction.reductions) {
      bool isShared = false;
      for (auto [other, tensor] : llvm::enumerate(contraction.operands))
        isShared |= other != index && tensor.mentions(reduction);
      if (!isShared)
        own.push_back(reduction);
    }
    if (!contraction.isMax)
      rewriter.sum(operand, own);
    rewriter.spreadAll(operand);
  }
  ContractionWriter(std::move(contraction), shapes.output, stream).write();
  os << text;
  return success();
}
