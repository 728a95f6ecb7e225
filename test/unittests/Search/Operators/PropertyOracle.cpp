//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PropertyOracle.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/Reference/Evaluator.h"
#include "llvm/ADT/STLExtras.h"
#include <map>
#include <set>

using namespace kas;
using namespace kas::search;

PropertyOracle::PropertyOracle(mlir::MLIRContext &context,
                               std::shared_ptr<const SearchProblem> problem)
    : module(mlir::ModuleOp::create(mlir::UnknownLoc::get(&context))),
      problem(problem), axes(problem->getAxes()) {}

llvm::SmallVector<int64_t>
PropertyOracle::Shape::getIndices(int64_t element) const {
  llvm::SmallVector<int64_t> indices(extents.size());
  for (unsigned dimension = extents.size(); dimension-- > 0;) {
    indices[dimension] = element % extents[dimension];
    element /= extents[dimension];
  }
  return indices;
}

PropertyOracle::Shape
PropertyOracle::getShape(llvm::ArrayRef<Dimension> dimensions,
                         const Binding &binding) {
  Shape shape;
  for (const Dimension &dimension : dimensions) {
    shape.extents.push_back(*dimension.size.evaluate(binding));
    shape.count *= shape.extents.back();
  }
  return shape;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

PropertyOracle::Counts PropertyOracle::count(const OperatorGraph &graph,
                                             const Binding &binding) {
  mlir::OpBuilder builder = mlir::OpBuilder::atBlockEnd(module->getBody());
  mlir::Location location = builder.getUnknownLoc();
  OperatorOp op = buildOperator(builder, location, "symbolic", *problem, graph);
  OperatorOp concrete = *specialize(builder, op, binding, "concrete",
                                    [&] { return op.emitError(); });
  reference::OperatorShapes shapes = reference::getShapes(concrete);
  std::vector<std::vector<float>> ones;
  for (llvm::ArrayRef<int64_t> shape : shapes.weights)
    ones.emplace_back(*reference::getNumElements(shape), 1.0f);
  llvm::SmallVector<reference::ReferenceTensor> weights;
  for (auto [shape, values] : llvm::zip_equal(shapes.weights, ones))
    weights.push_back({shape, values});
  std::vector<float> data(*reference::getNumElements(shapes.data), 0.0f);
  std::vector<float> output(*reference::getNumElements(shapes.output));
  Counts counts(output.size(), std::vector<int64_t>(data.size()));
  for (unsigned input = 0; input < data.size(); ++input) {
    data[input] = 1;
    (void)reference::evaluateOperator(concrete, {shapes.data, data}, weights,
                                      output, [&] { return op.emitError(); });
    data[input] = 0;
    for (unsigned element = 0; element < output.size(); ++element)
      counts[element][input] = static_cast<int64_t>(output[element]);
  }
  concrete.erase();
  op.erase();
  return counts;
}

bool PropertyOracle::sees(const Counts &counts,
                          llvm::ArrayRef<std::optional<Size>> windows,
                          const Binding &binding) const {
  Shape outputs = getShape(problem->outputs, binding);
  Shape inputs = getShape(problem->inputs, binding);
  for (int64_t element = 0; element < outputs.count; ++element) {
    llvm::SmallVector<int64_t> output = outputs.getIndices(element);
    // All positions of the window, which must be in the image.
    std::set<std::vector<int64_t>> window = {{}};
    bool isInside = true;
    for (auto [axis, size] : llvm::zip_equal(axes, windows)) {
      int64_t points =
          size ? *size->evaluate(binding) : inputs.extents[axis.input];
      int64_t begin =
          size ? output[axis.output] * *axis.stride.evaluate(binding) -
                     problem->limits.getReach(points)
               : 0;
      std::set<std::vector<int64_t>> longer;
      for (const std::vector<int64_t> &known : window)
        for (int64_t at = begin; at < begin + points; ++at) {
          isInside &= at >= 0 && at < inputs.extents[axis.input];
          longer.insert(known);
          std::vector<int64_t> next = known;
          next.push_back(at);
          longer.erase(known);
          longer.insert(next);
        }
      window = longer;
    }
    if (!isInside)
      continue;
    for (int64_t input = 0; input < inputs.count; ++input) {
      if (counts[element][input] == 0)
        continue;
      llvm::SmallVector<int64_t> indices = inputs.getIndices(input);
      std::vector<int64_t> position;
      for (const SpaceAxis &axis : axes)
        position.push_back(indices[axis.input]);
      window.erase(position);
    }
    if (!window.empty())
      return false;
  }
  return true;
}

bool PropertyOracle::reaches(const Counts &counts, unsigned layers,
                             const Binding &binding) const {
  Shape outputs = getShape(problem->outputs, binding);
  Shape inputs = getShape(problem->inputs, binding);
  // What is left of the indices without axes and a batch.
  auto getChannel = [&](llvm::ArrayRef<int64_t> indices,
                        unsigned SpaceAxis::*part) {
    std::vector<int64_t> channel;
    for (unsigned dimension = problem->hasBatch(); dimension < indices.size();
         ++dimension)
      if (llvm::none_of(axes, [&](const SpaceAxis &axis) {
            return axis.*part == dimension;
          }))
        channel.push_back(indices[dimension]);
    return channel;
  };
  std::map<std::vector<int64_t>, std::set<std::vector<int64_t>>> relation;
  std::set<std::vector<int64_t>> all;
  for (int64_t input = 0; input < inputs.count; ++input)
    all.insert(getChannel(inputs.getIndices(input), &SpaceAxis::input));
  for (int64_t element = 0; element < outputs.count; ++element) {
    auto &row =
        relation[getChannel(outputs.getIndices(element), &SpaceAxis::output)];
    for (int64_t input = 0; input < inputs.count; ++input)
      if (counts[element][input])
        row.insert(getChannel(inputs.getIndices(input), &SpaceAxis::input));
  }
  std::map<std::vector<int64_t>, size_t> readers;
  for (auto &[channel, row] : relation)
    for (const std::vector<int64_t> &input : row)
      ++readers[input];
  return llvm::all_of(relation, [&](auto &entry) {
    return llvm::all_of(all, [&](const std::vector<int64_t> &input) {
      return entry.second.size() * (layers == 1 ? 1 : readers[input]) >=
             all.size();
    });
  });
}

bool PropertyOracle::hasOneProduct(const Counts &counts) {
  return llvm::all_of(counts, [](const std::vector<int64_t> &row) {
    return llvm::all_of(row, [](int64_t count) { return count <= 1; });
  });
}

/// What is read is not later along any axis.
bool PropertyOracle::isCausal(const Counts &counts,
                              const Binding &binding) const {
  Shape outputs = getShape(problem->outputs, binding);
  Shape inputs = getShape(problem->inputs, binding);
  for (int64_t element = 0; element < outputs.count; ++element)
    for (int64_t input = 0; input < inputs.count; ++input)
      for (const SpaceAxis &axis : axes)
        if (counts[element][input] &&
            inputs.getIndices(input)[axis.input] >
                outputs.getIndices(element)[axis.output] *
                    *axis.stride.evaluate(binding))
          return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Points
//===----------------------------------------------------------------------===//

namespace {

/// One point: values of outputs and reductions, by coordinate.
struct Point {
  const OperatorGraph &graph;
  const Binding &binding;
  bool wraps;
  std::vector<int64_t> values;

  Point(const OperatorGraph &graph, const Binding &binding, bool wraps)
      : graph(graph), binding(binding), wraps(wraps),
        values(graph.coords.size(), 0) {}

  int64_t getExtent(unsigned index) const {
    return *graph.coords[index].size.evaluate(binding);
  }
  bool isLeaf(unsigned index) const {
    return graph.coords[index].kind == CoordKind::Output ||
           graph.coords[index].kind == CoordKind::Reduce;
  }
  bool advance(llvm::function_ref<bool(unsigned)> isMoved) {
    for (unsigned index = 0; index < values.size(); ++index) {
      if (!isLeaf(index) || !isMoved(index))
        continue;
      if (++values[index] < getExtent(index))
        return true;
      values[index] = 0;
    }
    return false;
  }
  /// Sets all other values; false when the point does not exist.
  bool complete() {
    bool exists = true;
    for (unsigned index = 0; index < values.size(); ++index) {
      const GraphCoord &coord = graph.coords[index];
      int64_t extent = getExtent(index), first = values[coord.first];
      auto parameter = [&] { return *coord.parameter.evaluate(binding); };
      switch (coord.kind) {
      case CoordKind::Output:
      case CoordKind::Reduce:
        continue;
      case CoordKind::Split:
        first = first * getExtent(coord.second) + values[coord.second];
        break;
      case CoordKind::Unfold:
        first += values[coord.second] - coord.getLow(getExtent(coord.second));
        exists &= wraps || (first >= 0 && first < extent);
        first = (first + extent) % extent;
        break;
      case CoordKind::Shift:
        first = (first + coord.amount + extent) % extent;
        break;
      case CoordKind::MergeQuotient:
        first /= parameter();
        break;
      case CoordKind::MergeRemainder:
        first %= parameter();
        break;
      case CoordKind::Stride:
        first *= parameter();
        break;
      }
      values[index] = first;
    }
    return exists;
  }
  std::vector<int64_t> get(llvm::ArrayRef<unsigned> indices) const {
    std::vector<int64_t> result;
    for (unsigned index : indices)
      result.push_back(values[index]);
    return result;
  }
};

} // namespace

/// The polynomial of each output element: of each input element the products of
/// weights, with how often they occur.
bool PropertyOracle::isEquivariant(const OperatorGraph &graph,
                                   const Binding &binding,
                                   llvm::ArrayRef<SpaceAxis> along,
                                   bool wraps) const {
  using Indices = std::vector<int64_t>;
  std::map<Indices, std::map<std::pair<Indices, std::vector<Indices>>, int>>
      polynomials;
  llvm::SmallVector<unsigned> outputs;
  for (unsigned index = 0; index < problem->outputs.size(); ++index)
    outputs.push_back(index);
  Point point(graph, binding, wraps);
  do {
    auto &polynomial = polynomials[point.get(outputs)];
    if (!point.complete())
      continue;
    std::vector<Indices> weights;
    for (llvm::ArrayRef<unsigned> weight : graph.weights)
      weights.push_back(point.get(weight));
    ++polynomial[{point.get(graph.data), weights}];
  } while (point.advance([](unsigned) { return true; }));
  Shape outputShape = getShape(problem->outputs, binding);
  Shape inputShape = getShape(problem->inputs, binding);
  for (const SpaceAxis &axis : along)
    for (auto &[output, polynomial] : polynomials) {
      Indices next = output;
      next[axis.output] =
          (next[axis.output] + 1) % outputShape.extents[axis.output];
      std::map<std::pair<Indices, std::vector<Indices>>, int> moved;
      for (auto &[term, count] : polynomial) {
        auto [element, weights] = term;
        int64_t &index = element[axis.input];
        index = (index + *axis.stride.evaluate(binding)) %
                inputShape.extents[axis.input];
        moved[{element, weights}] += count;
      }
      if (moved != polynomials[next])
        return false;
    }
  return true;
}

bool PropertyOracle::isLinear(const OperatorGraph &graph,
                              const Binding &binding) const {
  for (unsigned reduction = 0; reduction < graph.coords.size(); ++reduction) {
    if (graph.coords[reduction].kind != CoordKind::Reduce)
      continue;
    bool isRead = false;
    Point point(graph, binding, /*wraps=*/false);
    if (point.getExtent(reduction) == 1)
      continue;
    do {
      std::set<std::vector<int64_t>> elements;
      do {
        if (point.complete())
          elements.insert(point.get(graph.data));
      } while (point.advance([&](unsigned at) { return at == reduction; }));
      isRead |= elements.size() > 1;
    } while (!isRead &&
             point.advance([&](unsigned at) { return at != reduction; }));
    if (!isRead)
      return false;
  }
  return true;
}

bool PropertyOracle::fitsAnyGrid(const OperatorGraph &graph) const {
  for (llvm::ArrayRef<unsigned> weight : graph.weights)
    for (unsigned index : weight)
      for (unsigned symbol = 0; symbol < problem->symbols.size(); ++symbol)
        for (const SpaceAxis &axis : axes)
          if (problem->symbols.getKind(symbol) == SymbolKind::Primary &&
              problem->outputs[axis.output].size.getExponent(symbol) &&
              graph.coords[index].size.getExponent(symbol))
            return false;
  return true;
}

PropertyOracle::Facts PropertyOracle::describe(const OperatorGraph &graph,
                                               llvm::ArrayRef<Size> windows) {
  Facts facts;
  facts.fitsAnyGrid = fitsAnyGrid(graph);
  for (const Binding &binding : problem->bindings) {
    Counts counts = count(graph, binding);
    llvm::SmallVector<std::optional<Size>> small(windows),
        whole(windows.size()), first(windows);
    if (!first.empty())
      first.front() = std::nullopt;
    facts.sees &= sees(counts, small, binding);
    facts.seesAll &= sees(counts, whole, binding);
    facts.seesAllOfFirst &= sees(counts, first, binding);
    facts.reachesInOne &= reaches(counts, 1, binding);
    facts.reachesInTwo &= reaches(counts, 2, binding);
    facts.hasOneProduct &= hasOneProduct(counts);
    facts.isZeroPadded &= isEquivariant(graph, binding, axes, /*wraps=*/true);
    facts.isCyclic &= isEquivariant(graph, binding, axes, /*wraps=*/false);
    facts.isCyclicAlongFirst &=
        isEquivariant(graph, binding, llvm::ArrayRef(axes).take_front(),
                      /*wraps=*/false);
    facts.isLinear &= isLinear(graph, binding);
    facts.isCausal &= isCausal(counts, binding);
  }
  return facts;
}
