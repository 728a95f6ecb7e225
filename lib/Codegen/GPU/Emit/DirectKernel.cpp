//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels that read all tensors where they are: for every operator.
// A thread accumulates a register tile of outputs; an operand that several
// outputs of the tile use is loaded once per iteration of the reductions. All
// index arithmetic, guards and kinds of reduction of an operator occur here, so
// this is the fallback of the other strategies (docs/internals/gpu.md,
// "Direct").
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

/// A thread computes a tile of points. Values of points go through the
/// reductions together: `numParts` for each point, its value and, with maxima
/// under guards, whether any term existed.
class DirectKernelEmitter : GPUKernelEmitter {
public:
  DirectKernelEmitter(OpBuilder &builder, Location loc,
                      const GPUKernelProblem &problem, GPUScheduleAttr schedule,
                      const LaunchShape &launch, ValueRange arguments)
      : GPUKernelEmitter(builder, loc, problem, schedule, launch, arguments),
        coordinates(problem.coordinates), hasMax(coordinates.hasMax()),
        hasFlags(hasMax && !coordinates.guards.empty()) {}

  void emit() {
    // `addTileId` may move into an `scf.if`.
    OpBuilder::InsertionGuard guard(b);
    SmallVector<int64_t> counts;
    int64_t numTiles = 1;
    for (unsigned axis = 0; axis < coordinates.numOutputs; ++axis) {
      counts.push_back(
          llvm::divideCeil(coordinates.axes[axis].extent, getTile(axis)));
      numTiles *= counts.back();
    }
    AffineExpr id = addTileId(numTiles);
    addPoints(delinearize(id, counts));
    // Sums and means are linear: all reductions are one accumulator with fused
    // multiply-adds. A maximum within them needs the nested form.
    SmallVector<Value> values = hasMax ? emitReduction(coordinates.numOutputs)
                                       : emitSums(coordinates.numOutputs);
    finish(values);
  }

private:
  /// One output of the tile.
  struct Point {
    /// For each axis of the operator, in terms of the emitter's values.
    SmallVector<AffineExpr> axes;
    /// Whether the output has the point; null: always.
    Value exists;
  };

  int64_t getTile(unsigned axis) const { return schedule.getTile()[axis]; }
  int64_t getExtent(unsigned axis) const {
    return coordinates.axes[axis].extent;
  }

  /// The number of the tile that this thread computes. What follows is skipped
  /// by threads that have none.
  AffineExpr addTileId(int64_t numTiles) {
    int64_t threads = launch.block[0];
    Value block = emitBlockId(b, index, launch);
    Value id = arith::AddIOp::create(
        b, arith::MulIOp::create(b, block, index.createConstant(threads)),
        gpu::ThreadIdOp::create(b, gpu::Dimension::x));
    if (launch.getNumBlocks() * threads > numTiles) {
      Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, id,
                                           index.createConstant(numTiles));
      auto branch = scf::IfOp::create(b, inside, /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    return index.add(id, {0, numTiles - 1});
  }

  /// The points of the tile, the last coordinate fastest. Points beyond the end
  /// are computed at the last index, and not stored.
  void addPoints(ArrayRef<AffineExpr> tile) {
    points.emplace_back();
    for (unsigned axis = 0; axis < coordinates.numOutputs; ++axis) {
      SmallVector<std::pair<AffineExpr, Value>> positions;
      for (int64_t i = 0; i < getTile(axis); ++i)
        positions.push_back(
            getPosition(tile[axis] * getTile(axis) + i, getExtent(axis)));
      SmallVector<Point> product;
      for (const Point &point : points)
        for (auto [expr, exists] : positions) {
          Point next = point;
          next.axes.push_back(expr);
          next.exists = emitAnd({point.exists, exists});
          product.push_back(std::move(next));
        }
      points = std::move(product);
    }
  }

  /// The position of an output along an axis, and whether it exists. `expr` may
  /// exceed `extent` in the last tile: it is clamped there.
  std::pair<AffineExpr, Value> getPosition(AffineExpr expr, int64_t extent) {
    expr = index.simplify(expr);
    Interval range = index.getRange(expr);
    if (range.upper < extent)
      return {expr, Value()};
    Value position = index.emit(expr);
    Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, position,
                                         index.createConstant(extent));
    Value inside =
        arith::MinUIOp::create(b, position, index.createConstant(extent - 1));
    return {index.add(inside, {range.lower, extent - 1}), exists};
  }

  /// Stores the values of all outputs of the tile that exist.
  void finish(ArrayRef<Value> values) {
    size_t numParts = hasFlags ? 2 : 1;
    double divisor = hasMax ? 1 : coordinates.getMeanDivisor();
    for (auto [i, point] : llvm::enumerate(points)) {
      Value value = values[i * numParts];
      // A maximum over no term at all, all of them in the padding, is zero.
      if (hasFlags)
        value = arith::SelectOp::create(b, values[i * numParts + 1], value,
                                        createConstant(0));
      if (divisor != 1)
        // Means of nested reductions were divided in `emitReduction`.
        value = arith::DivFOp::create(b, value, createConstant(divisor));
      AffineExpr address =
          linearize(ArrayRef(point.axes).take_front(coordinates.numOutputs),
                    problem.output, b.getContext());
      if (!point.exists) {
        emitStore(address, value);
        continue;
      }
      auto branch =
          scf::IfOp::create(b, point.exists, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      emitStore(address, value);
    }
  }

  //===--------------------------------------------------------------------===//
  // Sums
  //===--------------------------------------------------------------------===//

  /// The sums of all outputs over the reductions from `axis` on.
  SmallVector<Value> emitSums(unsigned axis) {
    SmallVector<Value> zeros(points.size(), createConstant(0));
    return addTerms(axis, zeros);
  }

  /// Adds all terms of the reductions from `axis` on to `sums`.
  SmallVector<Value> addTerms(unsigned axis, ValueRange sums) {
    if (axis == coordinates.axes.size())
      return addProducts(sums);
    return emitLoop(axis, sums, [&](ValueRange carried) {
      return addTerms(axis + 1, carried);
    });
  }

  /// Adds one term to each sum. Operands are shared by outputs through
  /// `factors`.
  SmallVector<Value> addProducts(ValueRange sums) {
    SmallVector<Value> results;
    Factors factors;
    for (auto [point, sum] : llvm::zip_equal(points, sums)) {
      Value condition = emitCondition(point, factors);
      SmallVector<Value> product = emitFactors(point, condition, factors);
      // The data alone is replaced: weights were read at an address that
      // exists.
      // Zero times a weight adds nothing.
      if (condition)
        product[0] = arith::SelectOp::create(b, condition, product[0],
                                             createConstant(0));
      Value last = product.pop_back_val();
      if (product.empty()) {
        results.push_back(arith::AddFOp::create(b, sum, last));
        continue;
      }
      results.push_back(
          math::FmaOp::create(b, emitProduct(product), last, sum));
    }
    return results;
  }

  //===--------------------------------------------------------------------===//
  // Nested reductions of all kinds
  //===--------------------------------------------------------------------===//

  /// The reductions from `axis` on, each with a loop and accumulators of its
  /// own, since a maximum of sums or a sum of maxima does not commute. Returns
  /// `numParts` values per output.
  SmallVector<Value> emitReduction(unsigned axis) {
    if (axis == coordinates.axes.size())
      return emitTerms();
    ReduceKind kind = *coordinates.axes[axis].kind;
    double identity = kind == ReduceKind::Max
                          ? -std::numeric_limits<double>::infinity()
                          : 0.0;
    SmallVector<Value> initial;
    for (size_t i = 0; i < points.size(); ++i) {
      initial.push_back(createConstant(identity));
      if (hasFlags)
        initial.push_back(createFlag(false));
    }
    SmallVector<Value> results =
        emitLoop(axis, initial, [&](ValueRange carried) {
          return combine(kind, carried, emitReduction(axis + 1));
        });
    // Divided here and not at the end: an outer maximum compares means.
    if (kind == ReduceKind::Mean && getExtent(axis) != 1) {
      Value extent = createConstant(static_cast<double>(getExtent(axis)));
      for (size_t i = 0; i < results.size(); i += hasFlags ? 2 : 1)
        results[i] = arith::DivFOp::create(b, results[i], extent);
    }
    return results;
  }

  Value createFlag(bool flag) {
    return arith::ConstantOp::create(b, b.getBoolAttr(flag));
  }

  /// Adds the results of the inner reductions, `inner`, to the accumulators.
  SmallVector<Value> combine(ReduceKind kind, ValueRange carried,
                             ArrayRef<Value> inner) {
    SmallVector<Value> results;
    for (size_t i = 0; i < inner.size(); i += hasFlags ? 2 : 1) {
      Value value =
          kind == ReduceKind::Max
              ? Value(arith::MaximumFOp::create(b, carried[i], inner[i]))
              : Value(arith::AddFOp::create(b, carried[i], inner[i]));
      if (!hasFlags) {
        results.push_back(value);
        continue;
      }
      // A term that does not exist leaves the accumulator as it is: its value
      // was read from another address.
      results.push_back(
          arith::SelectOp::create(b, inner[i + 1], value, carried[i]));
      results.push_back(arith::OrIOp::create(b, carried[i + 1], inner[i + 1]));
    }
    return results;
  }

  /// One term of each output, and with flags whether it exists.
  SmallVector<Value> emitTerms() {
    SmallVector<Value> results;
    Factors factors;
    for (const Point &point : points) {
      Value condition = emitCondition(point, factors);
      results.push_back(emitProduct(emitFactors(point, condition, factors)));
      if (hasFlags)
        results.push_back(condition ? condition : createFlag(true));
    }
    return results;
  }

  //===--------------------------------------------------------------------===//
  // Loops and products
  //===--------------------------------------------------------------------===//

  /// A loop over `axis` that carries `initial`; a single step needs none.
  SmallVector<Value>
  emitLoop(unsigned axis, ValueRange initial,
           llvm::function_ref<SmallVector<Value>(ValueRange)> emitBody) {
    int64_t extent = getExtent(axis);
    auto setAxis = [&](AffineExpr expr) {
      for (Point &point : points) {
        point.axes.resize(axis);
        point.axes.push_back(expr);
      }
    };
    // No loop for a reduction of extent 1.
    if (extent == 1) {
      setAxis(b.getAffineConstantExpr(0));
      return emitBody(initial);
    }
    auto loop = scf::ForOp::create(b, index.createConstant(0),
                                   index.createConstant(extent),
                                   index.createConstant(1), initial);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    setAxis(index.add(loop.getInductionVar(), {0, extent - 1}));
    scf::YieldOp::create(b, emitBody(loop.getRegionIterArgs()));
    return SmallVector<Value>(loop.getResults());
  }

  /// What the points of one step share.
  struct Factors {
    /// By tensor, address, and the condition under which it is read.
    llvm::SmallMapVector<std::tuple<unsigned, AffineExpr, void *>, Value, 8>
        loads;
    llvm::SmallMapVector<std::pair<AffineExpr, int64_t>, Value, 8> guards;
  };

  AffineExpr substitute(AffineExpr expr, const Point &point) const {
    return index.simplify(expr.replaceDims(point.axes));
  }

  /// Whether the term of `point` exists; null: always.
  Value emitCondition(const Point &point, Factors &factors) {
    SmallVector<Value> conditions;
    for (const Guard &guard : coordinates.guards) {
      AffineExpr expr = substitute(guard.expr, point);
      auto [entry, isNew] =
          factors.guards.insert({{expr, guard.extent}, Value()});
      if (isNew)
        entry->second = index.emitGuard({expr, guard.extent});
      conditions.push_back(entry->second);
    }
    return emitAnd(conditions);
  }

  /// The data and the weights of the term of `point`.
  SmallVector<Value> emitFactors(const Point &point, Value condition,
                                 Factors &factors) {
    SmallVector<Value> values;
    for (unsigned i = 0; i < getNumInputs(); ++i) {
      SmallVector<AffineExpr> indices;
      for (AffineExpr expr : getIndices(i))
        indices.push_back(substitute(expr, point));
      // Two outputs with the same address and the same condition share one
      // load; the condition belongs to the key because it selects the address.
      AffineExpr address =
          index.simplify(linearize(indices, getShape(i), b.getContext()));
      Value &load = factors.loads[{i, address, condition.getAsOpaquePointer()}];
      if (!load)
        load = emitLoad(i, indices, condition);
      values.push_back(load);
    }
    return values;
  }

  Value emitProduct(ArrayRef<Value> values) {
    Value product = values[0];
    for (Value value : values.drop_front())
      product = arith::MulFOp::create(b, product, value);
    return product;
  }

  const Coordinates &coordinates;
  bool hasMax, hasFlags;
  SmallVector<Point> points;
};

} // namespace

void kas::codegen::emitDirectKernel(OpBuilder &builder, Location loc,
                                    const GPUKernelProblem &problem,
                                    GPUScheduleAttr schedule,
                                    const LaunchShape &launch,
                                    ValueRange arguments) {
  DirectKernelEmitter(builder, loc, problem, schedule, launch, arguments)
      .emit();
}
