//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExportedFunctions.h"
#include "kas/Support/Random.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <numeric>
#include <vector>

using namespace kas;

namespace {

using Shape = std::vector<int64_t>;

struct Value {
  std::string name;
  Shape shape;
};

class FunctionWriter {
public:
  explicit FunctionWriter(uint64_t seed) : random(seed) {}

  std::string write(const std::string &name);

private:
  // Choices
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(random.below(bound));
  }
  int64_t choose(std::initializer_list<int64_t> values) {
    return values.begin()[below(static_cast<int64_t>(values.size()))];
  }
  std::vector<unsigned> choosePermutation(size_t rank);
  /// A factor of `size` other than 1 and itself, or 1.
  int64_t chooseFactor(int64_t size);

  // Text
  static std::string type(const Shape &shape);
  static std::string list(const Shape &values);
  static std::string dims(size_t count);
  static std::string map(size_t numLoops, const std::vector<unsigned> &results);
  Value define(Shape shape, const std::string &operation);
  Value argument(Shape shape, int64_t fanIn);
  Value empty(const Shape &shape);
  Value zeros(const Shape &shape);
  Value generic(const std::vector<Value> &inputs,
                const std::vector<std::vector<unsigned>> &maps, size_t numLoops,
                const Value &init, const std::vector<unsigned> &initMap,
                const std::string &body);

  // Operations on the data
  Value slice(const Value &x, size_t dim, int64_t offset, int64_t size);
  Value concat(const std::vector<Value> &parts, size_t dim);
  Value transpose(const Value &x, const std::vector<unsigned> &permutation);
  Value reshape(const Value &x, const Shape &shape,
                const std::vector<std::vector<unsigned>> &groups, bool expand);
  Value pad(const Value &x, const Shape &low, const Shape &high);
  Value binary(const std::string &operation, const Value &x, const Value &y);
  /// `y` has one dimension, that of `x` at `dim`.
  Value binary(const std::string &operation, const Value &x, const Value &y,
               size_t dim);

  // Steps
  Value roll(const Value &x);
  Value join(const Value &x);
  Value cut(const Value &x);
  Value shuffle(const Value &x);
  Value permute(const Value &x);
  Value activate(const Value &x);
  Value scale(const Value &x);
  Value weight(int64_t outputs, int64_t inputs);
  Value einsum(const Value &x);
  Value convolve(const Value &x);
  Value convolveDepthwise(const Value &x);
  Value multiply(const Value &x);
  Value step(const Value &x);

  Random random;
  std::string body, arguments;
  std::vector<Value> values;
  unsigned numValues = 0, numArguments = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Choices and text
//===----------------------------------------------------------------------===//

std::vector<unsigned> FunctionWriter::choosePermutation(size_t rank) {
  std::vector<unsigned> permutation(rank);
  std::iota(permutation.begin(), permutation.end(), 0u);
  for (size_t i = rank; i > 1; --i)
    std::swap(permutation[i - 1], permutation[below(static_cast<int64_t>(i))]);
  return permutation;
}

int64_t FunctionWriter::chooseFactor(int64_t size) {
  std::vector<int64_t> factors;
  for (int64_t factor = 2; factor < size; ++factor)
    if (size % factor == 0)
      factors.push_back(factor);
  return factors.empty() ? 1
                         : factors[below(static_cast<int64_t>(factors.size()))];
}

std::string FunctionWriter::type(const Shape &shape) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + "f32>";
}

std::string FunctionWriter::list(const Shape &values) {
  return "[" +
         llvm::join(llvm::map_range(
                        values, [](int64_t n) { return std::to_string(n); }),
                    ", ") +
         "]";
}

std::string FunctionWriter::dims(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    text += (i ? ", d" : "d") + std::to_string(i);
  return "(" + text + ")";
}

std::string FunctionWriter::map(size_t numLoops,
                                const std::vector<unsigned> &results) {
  std::string text;
  for (auto [i, dim] : llvm::enumerate(results))
    text += (i ? ", d" : "d") + std::to_string(dim);
  return "affine_map<" + dims(numLoops) + " -> (" + text + ")>";
}

Value FunctionWriter::define(Shape shape, const std::string &operation) {
  Value value{"%" + std::to_string(numValues++), std::move(shape)};
  body += "  " + value.name + " = " + operation + "\n";
  return value;
}

Value FunctionWriter::argument(Shape shape, int64_t fanIn) {
  Value value{"%arg" + std::to_string(numArguments), std::move(shape)};
  arguments += (numArguments++ ? ", " : "") + value.name + ": " +
               type(value.shape) + " {kas.init = \"" +
               (fanIn ? "kaiming(" + std::to_string(fanIn) + ")" : "normal") +
               "\"}";
  return value;
}

Value FunctionWriter::empty(const Shape &shape) {
  return define(shape, "tensor.empty() : " + type(shape));
}

Value FunctionWriter::zeros(const Shape &shape) {
  Value init = empty(shape);
  return define(shape, "linalg.fill ins(%zero : f32) outs(" + init.name +
                           " : " + type(shape) + ") -> " + type(shape));
}

/// Loops that do not belong to the result are summed.
Value FunctionWriter::generic(const std::vector<Value> &inputs,
                              const std::vector<std::vector<unsigned>> &maps,
                              size_t numLoops, const Value &init,
                              const std::vector<unsigned> &initMap,
                              const std::string &bodyText) {
  std::string mapText, loops, names, types, bodyArguments;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    mapText += map(numLoops, maps[i]) + ", ";
    names += (i ? ", " : "") + input.name;
    types += (i ? ", " : "") + type(input.shape);
    bodyArguments += "%a" + std::to_string(i) + ": f32, ";
  }
  for (unsigned loop = 0; loop < numLoops; ++loop)
    loops +=
        std::string(loop ? ", " : "") +
        (llvm::is_contained(initMap, loop) ? "\"parallel\"" : "\"reduction\"");
  return define(init.shape,
                "linalg.generic {indexing_maps = [" + mapText +
                    map(numLoops, initMap) + "], iterator_types = [" + loops +
                    "]} ins(" + names + " : " + types + ") outs(" + init.name +
                    " : " + type(init.shape) + ") {\n  ^bb0(" + bodyArguments +
                    "%o: f32):\n" + bodyText + "  } -> " + type(init.shape));
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

Value FunctionWriter::slice(const Value &x, size_t dim, int64_t offset,
                            int64_t size) {
  Shape offsets(x.shape.size(), 0), shape = x.shape, strides(x.shape.size(), 1);
  offsets[dim] = offset;
  shape[dim] = size;
  return define(shape, "tensor.extract_slice " + x.name + list(offsets) + " " +
                           list(shape) + " " + list(strides) + " : " +
                           type(x.shape) + " to " + type(shape));
}

/// By tensor.concat, or by insertions.
Value FunctionWriter::concat(const std::vector<Value> &parts, size_t dim) {
  Shape shape = parts.front().shape;
  shape[dim] = 0;
  for (const Value &part : parts)
    shape[dim] += part.shape[dim];
  std::string names, types;
  for (auto [i, part] : llvm::enumerate(parts)) {
    names += (i ? ", " : "") + part.name;
    types += (i ? ", " : "") + type(part.shape);
  }
  if (below(3))
    return define(shape, "tensor.concat dim(" + std::to_string(dim) + ") " +
                             names + " : (" + types + ") -> " + type(shape));
  Value whole = below(2) ? empty(shape) : zeros(shape);
  Shape offsets(shape.size(), 0), strides(shape.size(), 1);
  for (const Value &part : parts) {
    whole = define(shape, "tensor.insert_slice " + part.name + " into " +
                              whole.name + list(offsets) + " " +
                              list(part.shape) + " " + list(strides) + " : " +
                              type(part.shape) + " into " + type(shape));
    offsets[dim] += part.shape[dim];
  }
  return whole;
}

Value FunctionWriter::transpose(const Value &x,
                                const std::vector<unsigned> &permutation) {
  Shape shape, order;
  for (unsigned dim : permutation) {
    shape.push_back(x.shape[dim]);
    order.push_back(dim);
  }
  Value init = empty(shape);
  return define(shape, "linalg.transpose ins(" + x.name + " : " +
                           type(x.shape) + ") outs(" + init.name + " : " +
                           type(shape) + ") permutation = " + list(order));
}

Value FunctionWriter::reshape(const Value &x, const Shape &shape,
                              const std::vector<std::vector<unsigned>> &groups,
                              bool expand) {
  std::string text;
  for (auto [i, group] : llvm::enumerate(groups))
    text += (i ? ", " : "") + list(Shape(group.begin(), group.end()));
  return define(shape,
                (expand ? "tensor.expand_shape " : "tensor.collapse_shape ") +
                    x.name + " [" + text + "] " +
                    (expand ? "output_shape " + list(shape) + " " : "") + ": " +
                    type(x.shape) + " into " + type(shape));
}

Value FunctionWriter::pad(const Value &x, const Shape &low, const Shape &high) {
  Shape shape = x.shape;
  std::string indices;
  for (size_t i = 0; i < shape.size(); ++i) {
    shape[i] += low[i] + high[i];
    indices += (i ? ", %i" : "%i") + std::to_string(i) + ": index";
  }
  return define(shape, "tensor.pad " + x.name + " low" + list(low) + " high" +
                           list(high) + " {\n  ^bb0(" + indices +
                           "):\n    tensor.yield %zero : f32\n  } : " +
                           type(x.shape) + " to " + type(shape));
}

Value FunctionWriter::binary(const std::string &operation, const Value &x,
                             const Value &y) {
  std::vector<unsigned> all(x.shape.size());
  std::iota(all.begin(), all.end(), 0u);
  return generic({x, y}, {all, all}, all.size(), empty(x.shape), all,
                 "    %r = " + operation +
                     " %a0, %a1 : f32\n    linalg.yield %r : f32\n");
}

Value FunctionWriter::binary(const std::string &operation, const Value &x,
                             const Value &y, size_t dim) {
  std::vector<unsigned> all(x.shape.size());
  std::iota(all.begin(), all.end(), 0u);
  return generic({x, y}, {all, {static_cast<unsigned>(dim)}}, all.size(),
                 empty(x.shape), all,
                 "    %r = " + operation +
                     " %a0, %a1 : f32\n    linalg.yield %r : f32\n");
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

Value FunctionWriter::roll(const Value &x) {
  size_t dim = below(static_cast<int64_t>(x.shape.size()));
  int64_t size = x.shape[dim];
  if (size < 2)
    return x;
  int64_t amount = 1 + below(size - 1);
  return concat(
      {slice(x, dim, amount, size - amount), slice(x, dim, 0, amount)}, dim);
}

/// With a value from before, or a part of itself, as circular padding is.
Value FunctionWriter::join(const Value &x) {
  size_t dim = 1 + below(static_cast<int64_t>(x.shape.size()) - 1);
  if (x.shape[dim] > 20)
    return cut(x);
  for (const Value &other : llvm::reverse(values))
    if (other.shape == x.shape && other.name != x.name && below(2))
      return concat({x, other}, dim);
  return concat({x, slice(x, dim, 0, 1 + below(x.shape[dim]))}, dim);
}

Value FunctionWriter::cut(const Value &x) {
  size_t dim = 1 + below(static_cast<int64_t>(x.shape.size()) - 1);
  int64_t size = x.shape[dim];
  if (size < 4)
    return x;
  int64_t kept = size - 1 - below(size / 2);
  return slice(x, dim, below(size - kept + 1), kept);
}

/// Groups of channels are transposed, as ShuffleNet does.
Value FunctionWriter::shuffle(const Value &x) {
  int64_t groups = chooseFactor(x.shape[1]);
  if (groups == 1)
    return permute(x);
  Shape split = {x.shape[0], groups, x.shape[1] / groups, x.shape[2],
                 x.shape[3]};
  std::vector<std::vector<unsigned>> map = {{0}, {1, 2}, {3}, {4}};
  Value parts = reshape(x, split, map, /*expand=*/true);
  Value turned = transpose(parts, {0, 2, 1, 3, 4});
  return reshape(turned, x.shape, map, /*expand=*/false);
}

Value FunctionWriter::permute(const Value &x) {
  return transpose(x, choosePermutation(x.shape.size()));
}

Value FunctionWriter::activate(const Value &x) {
  std::vector<unsigned> all = {0, 1, 2, 3};
  const char *bodies[] = {"    %r = arith.maximumf %a0, %zero : f32\n",
                          ("    %c = arith.cmpf ugt, %a0, %zero : f32\n"
                           "    %r = arith.select %c, %a0, %zero : f32\n"),
                          "    %r = math.tanh %a0 : f32\n",
                          "    %r = math.absf %a0 : f32\n"};
  return generic({x}, {all}, 4, empty(x.shape), all,
                 bodies[below(std::size(bodies))] +
                     std::string("    linalg.yield %r : f32\n"));
}

/// A residual, or a bias or factor along one dimension.
Value FunctionWriter::scale(const Value &x) {
  for (const Value &other : llvm::reverse(values))
    if (other.shape == x.shape && other.name != x.name)
      return binary("arith.addf", x, other);
  size_t dim = below(4);
  return binary(below(2) ? "arith.addf" : "arith.mulf", x,
                argument({x.shape[dim]}, /*fanIn=*/0), dim);
}

/// An argument, or a product of two, either way round.
Value FunctionWriter::weight(int64_t outputs, int64_t inputs) {
  if (below(2))
    return argument({outputs, inputs}, inputs);
  int64_t inner = choose({2, 3, 4, 8});
  bool turned = below(2);
  Value left = argument({outputs, inner}, inner);
  Value right =
      argument(turned ? Shape{inputs, inner} : Shape{inner, inputs}, inputs);
  std::vector<unsigned> rightMap =
      turned ? std::vector<unsigned>{1, 2} : std::vector<unsigned>{2, 1};
  return generic({left, right}, {{0, 2}, rightMap}, 3, zeros({outputs, inputs}),
                 {0, 1},
                 "    %p = arith.mulf %a0, %a1 : f32\n"
                 "    %s = arith.addf %o, %p : f32\n"
                 "    linalg.yield %s : f32\n");
}

/// Sums along one dimension with a weight; the result's dimensions may come in
/// another order.
Value FunctionWriter::einsum(const Value &x) {
  unsigned dim = 1 + static_cast<unsigned>(below(3));
  int64_t outputs = choose({3, 4, 8, 12, 16, 17});
  Value w = weight(outputs, x.shape[dim]);
  // Loop 4 is summed, loop `dim` is the result's.
  std::vector<unsigned> data = {0, 1, 2, 3};
  data[dim] = 4;
  std::vector<unsigned> order =
      below(2) ? std::vector<unsigned>{0, 1, 2, 3} : choosePermutation(4);
  Shape shape;
  for (unsigned loop : order)
    shape.push_back(loop == dim ? outputs : x.shape[loop]);
  std::vector<Value> inputs = {x, w};
  std::vector<std::vector<unsigned>> maps = {data, {dim, 4}};
  if (below(3) == 0) {
    std::swap(inputs[0], inputs[1]);
    std::swap(maps[0], maps[1]);
  }
  return generic(inputs, maps, 5, zeros(shape), order,
                 "    %p = arith.mulf %a0, %a1 : f32\n"
                 "    %s = arith.addf %o, %p : f32\n"
                 "    linalg.yield %s : f32\n");
}

Value FunctionWriter::convolve(const Value &x) {
  int64_t outputs = choose({4, 6, 8, 16, 20}), inputs = x.shape[1];
  int64_t window = std::min({choose({1, 2, 3}), x.shape[2], x.shape[3]});
  int64_t stride = choose({1, 1, 2}), width = below(2) ? (window - 1) / 2 : 0;
  Value data = width ? pad(x, {0, 0, width, width}, {0, 0, width, width}) : x;
  Value w{"", {outputs, inputs, window, window}};
  if (window == 1 && below(2))
    w = reshape(weight(outputs, inputs), w.shape, {{0}, {1, 2, 3}},
                /*expand=*/true);
  else
    w = argument(w.shape, inputs * window * window);
  Shape shape = {x.shape[0], outputs, (data.shape[2] - window) / stride + 1,
                 (data.shape[3] - window) / stride + 1};
  Value init = zeros(shape);
  if (below(2)) {
    Value bias = argument({outputs}, /*fanIn=*/0), whole = empty(shape);
    init = define(shape, "linalg.broadcast ins(" + bias.name + " : " +
                             type(bias.shape) + ") outs(" + whole.name + " : " +
                             type(shape) + ") dimensions = [0, 2, 3]");
  }
  return define(shape, "linalg.conv_2d_nchw_fchw {dilations = dense<1> : "
                       "tensor<2xi64>, strides = dense<" +
                           std::to_string(stride) + "> : tensor<2xi64>} ins(" +
                           data.name + ", " + w.name + " : " +
                           type(data.shape) + ", " + type(w.shape) + ") outs(" +
                           init.name + " : " + type(shape) + ") -> " +
                           type(shape));
}

Value FunctionWriter::convolveDepthwise(const Value &x) {
  int64_t window = std::min({choose({2, 3}), x.shape[2], x.shape[3]});
  Value w = argument({x.shape[1], window, window}, window * window);
  Shape shape = {x.shape[0], x.shape[1], x.shape[2] - window + 1,
                 x.shape[3] - window + 1};
  Value init = zeros(shape);
  return define(shape, "linalg.depthwise_conv_2d_nchw_chw {dilations = "
                       "dense<1> : tensor<2xi64>, strides = dense<1> : "
                       "tensor<2xi64>} ins(" +
                           x.name + ", " + w.name + " : " + type(x.shape) +
                           ", " + type(w.shape) + ") outs(" + init.name +
                           " : " + type(shape) + ") -> " + type(shape));
}

/// A matrix product of the last dimension with the others.
Value FunctionWriter::multiply(const Value &x) {
  int64_t rows = x.shape[0] * x.shape[1] * x.shape[2], columns = x.shape[3];
  int64_t outputs = choose({4, 5, 8, 16});
  Value flat = reshape(x, {rows, columns}, {{0, 1, 2}, {3}}, false);
  Value w = transpose(weight(outputs, columns), {1, 0});
  Value init = zeros({rows, outputs});
  Value product =
      define(init.shape, "linalg.matmul ins(" + flat.name + ", " + w.name +
                             " : " + type(flat.shape) + ", " + type(w.shape) +
                             ") outs(" + init.name + " : " + type(init.shape) +
                             ") -> " + type(init.shape));
  return reshape(product, {x.shape[0], x.shape[1], x.shape[2], outputs},
                 {{0, 1, 2}, {3}}, true);
}

Value FunctionWriter::step(const Value &x) {
  using Step = Value (FunctionWriter::*)(const Value &);
  static constexpr Step steps[] = {
      &FunctionWriter::roll,     &FunctionWriter::join,
      &FunctionWriter::cut,      &FunctionWriter::shuffle,
      &FunctionWriter::permute,  &FunctionWriter::activate,
      &FunctionWriter::scale,    &FunctionWriter::einsum,
      &FunctionWriter::einsum,   &FunctionWriter::convolve,
      &FunctionWriter::convolve, &FunctionWriter::convolveDepthwise,
      &FunctionWriter::multiply};
  return (this->*steps[below(std::size(steps))])(x);
}

std::string FunctionWriter::write(const std::string &name) {
  Value x = argument({choose({1, 1, 2}), choose({3, 4, 6, 8, 12, 16}),
                      choose({4, 5, 7, 8, 12}), choose({4, 6, 8, 9, 16})},
                     /*fanIn=*/0);
  values.push_back(x);
  int64_t numSteps = 3 + below(6);
  for (int64_t i = 0; i < numSteps; ++i)
    values.push_back(step(values.back()));
  // A result that is an argument, or a view of one, is the caller's affair.
  Value result = activate(values.back());
  return "func.func @" + name + "(" + arguments + ") -> " + type(result.shape) +
         " {\n  %zero = arith.constant 0.0 : f32\n" + body + "  return " +
         result.name + " : " + type(result.shape) + "\n}\n";
}

std::string kas::test::makeExportedFunction(const std::string &name,
                                            uint64_t seed) {
  return FunctionWriter(seed).write(name);
}
