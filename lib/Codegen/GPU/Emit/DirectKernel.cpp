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
#include "kas/Codegen/GPU/Strategy/Device.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

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
                      const LaunchShape &launch, gpu::GPUFuncOp kernel,
                      ValueRange arguments)
      : GPUKernelEmitter(builder, loc, problem, schedule, launch, arguments),
        kernel(kernel), coordinates(problem.coordinates),
        depth(schedule.getDepth()), hasMax(coordinates.hasMax()),
        hasFlags(hasMax && !coordinates.guards.empty()) {}

  void emit() {
    // `addTileId` may move into an `scf.if`.
    OpBuilder::InsertionGuard guard(b);
    for (unsigned axis = 0; axis < coordinates.numOutputs; ++axis) {
      counts.push_back(
          llvm::divideCeil(coordinates.axes[axis].extent, getTile(axis)));
      numTiles *= counts.back();
      numPoints *= getTile(axis);
    }
    planStores();
    AffineExpr id = depth == 0 ? addTileId() : addSharedTileId();
    addPoints(delinearize(id, counts));
    // Sums and means are linear: all reductions are one accumulator with fused
    // multiply-adds. A maximum within them needs the nested form.
    SmallVector<Value> values = hasMax ? emitReduction(coordinates.numOutputs)
                                       : emitSums(coordinates.numOutputs);
    if (depth != 0)
      values = emitSharedSums(values);
    finish(values);
    if (exchange)
      emitExchanged();
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
  AffineExpr addTileId() {
    int64_t threads = launch.block[0];
    Value block = emitBlockId(b, index, launch);
    firstTile = arith::MulIOp::create(b, block, index.createConstant(threads));
    thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
    Value id = arith::AddIOp::create(b, firstTile, thread);
    if (Value inside = emitTileGuard(id)) {
      branch = scf::IfOp::create(b, inside, /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    return index.add(id, {0, numTiles - 1});
  }

  /// The same where several threads share a tile. As none may leave before the
  /// barriers, those beyond the last tile compute that one again.
  AffineExpr addSharedTileId() {
    int64_t threads = launch.block[0], perBlock = threads / depth;
    thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
    AffineExpr own = index.add(thread, {0, threads - 1});
    // Neighbouring threads read neighbours: of the steps, or of the tiles.
    SmallVector<unsigned> tensors = llvm::to_vector(llvm::seq(getNumInputs()));
    bool areStepsInner =
        isContiguous(tensors, *getSharedAxis(coordinates, depth));
    laneDistance = areStepsInner ? 1 : perBlock;
    auto add = [&](AffineExpr expr, int64_t extent) {
      return index.add(index.emit(expr), {0, extent - 1});
    };
    lane = add(areStepsInner ? own % depth : own.floorDiv(perBlock), depth);
    AffineExpr inBlock = areStepsInner ? own.floorDiv(depth) : own % perBlock;
    AffineExpr block = addBlockId(launch.getNumBlocks());
    Value tile = index.emit(block * perBlock + inBlock);
    if (launch.getNumBlocks() * perBlock > numTiles)
      tile =
          arith::MinUIOp::create(b, tile, index.createConstant(numTiles - 1));
    return index.add(tile, {0, numTiles - 1});
  }

  /// Whether there is a tile of this number; null: always.
  Value emitTileGuard(Value id) {
    if (launch.getNumBlocks() * launch.block[0] <= numTiles)
      return Value();
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, id,
                                 index.createConstant(numTiles));
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

  //===--------------------------------------------------------------------===//
  // Results
  //===--------------------------------------------------------------------===//

  /// Neighbours in the result are a thread's own, or those of its neighbours:
  /// then the threads of a block exchange numbers of 16 bits, which are slow to
  /// store one by one, in workgroup memory.
  void planStores() {
    int64_t bytes = elementType.getIntOrFloatBitWidth() / 8;
    SmallVector<unsigned> outputs =
        llvm::to_vector(llvm::seq(0u, coordinates.numOutputs));
    std::optional<unsigned> inner = getInnerAxis(outputs);
    if (!inner)
      return;
    // Points of the tile are numbered along its last axis first.
    bool isNumbered =
        llvm::all_of(llvm::drop_begin(outputs, *inner + 1),
                     [&](unsigned axis) { return getTile(axis) == 1; });
    bool isNVIDIA = isNVIDIADevice(getGPUDevice(kernel));
    // SPIR-V has at most four lanes.
    int64_t most = isNVIDIA ? 16 / bytes : 4;
    while (isNumbered && getTile(*inner) % most != 0)
      most /= 2;
    if (isNumbered)
      width = getResultWidth({}, ArrayRef(outputs).take_front(*inner), *inner);
    width = std::min(width, most);
    if (width > 1 || bytes != 2 || !isNVIDIA || depth != 0)
      return;
    // Tiles that follow each other, as dimensions of the result.
    ResultSide tiles, offsets;
    int64_t stride = 1;
    SmallVector<int64_t> strides(coordinates.numOutputs);
    for (unsigned axis : llvm::reverse(outputs)) {
      strides[axis] = stride;
      stride *= getExtent(axis);
    }
    for (unsigned axis : outputs) {
      tiles.add(counts[axis], strides[axis] * getTile(axis));
      offsets.add(getTile(axis), strides[axis]);
    }
    int64_t exchanged = offsets.getAlignment(tiles.getWidth(8));
    int64_t threads = launch.block[0];
    if (exchanged == 1 || threads % exchanged != 0 ||
        threads * numPoints * getExchangeBytes() > declaredBytes)
      return;
    width = exchanged;
    exchange = addMemory(getExchangeType());
  }

  /// Workgroup memory with an element for each point of each thread.
  Value addMemory(Type type) {
    auto space = gpu::AddressSpaceAttr::get(b.getContext(),
                                            gpu::AddressSpace::Workgroup);
    return kernel.addWorkgroupAttribution(
        MemRefType::get({launch.block[0] * numPoints}, type,
                        MemRefLayoutAttrInterface(), space),
        b.getLoc());
  }

  /// Stores the values of all outputs of the tile that exist.
  void finish(ArrayRef<Value> values) {
    size_t numParts = hasFlags ? 2 : 1;
    SmallVector<Value> results;
    for (size_t i = 0; i < points.size(); ++i) {
      Value value = values[i * numParts];
      // A maximum over no term at all, all of them in the padding, is zero.
      if (hasFlags)
        value = arith::SelectOp::create(b, values[i * numParts + 1], value,
                                        createConstant(0));
      // Means of nested reductions were divided in `emitReduction`.
      results.push_back(hasMax ? value : emitMean(value));
    }
    if (exchange)
      return emitExchange(results);
    for (size_t i = 0; i < points.size(); i += width) {
      const Point &point = points[i];
      Value value = results[i];
      if (width > 1)
        value = vector::FromElementsOp::create(
            b, VectorType::get({width}, computeType),
            ArrayRef(results).slice(i, width));
      OpBuilder::InsertionGuard guard(b);
      // A vector exists as a whole: its width divides the extent of its axis.
      if (point.exists) {
        auto exists =
            scf::IfOp::create(b, point.exists, /*withElseRegion=*/false);
        b.setInsertionPointToStart(exists.thenBlock());
      }
      emitStore(getAddress(point.axes),
                emitEpilogue(value, getOutput(point.axes)));
    }
  }

  ArrayRef<AffineExpr> getOutput(ArrayRef<AffineExpr> axes) const {
    return axes.take_front(coordinates.numOutputs);
  }
  AffineExpr getAddress(ArrayRef<AffineExpr> axes) const {
    return linearize(getOutput(axes), problem.output, b.getContext());
  }
  int64_t getExchangeBytes() const {
    return getExchangeType().getIntOrFloatBitWidth() / 8;
  }

  /// Hands on the results of a thread: point by point, those of all threads.
  void emitExchange(ArrayRef<Value> results) {
    int64_t threads = launch.block[0];
    for (auto [i, value] : llvm::enumerate(results)) {
      Value place = arith::AddIOp::create(
          b, thread, index.createConstant(static_cast<int64_t>(i) * threads));
      Value handed = value;
      if (handed.getType() != getExchangeType())
        handed = arith::TruncFOp::create(b, getExchangeType(), handed);
      memref::StoreOp::create(b, handed, exchange, place);
    }
  }

  /// Stores what all threads have handed on, as vectors of tiles that follow
  /// each other. All threads of the block come here.
  void emitExchanged() {
    if (branch)
      b.setInsertionPointAfter(branch);
    gpu::BarrierOp::create(b);
    int64_t threads = launch.block[0], groups = threads / width;
    SmallVector<int64_t> tile;
    for (unsigned axis = 0; axis < coordinates.numOutputs; ++axis)
      tile.push_back(getTile(axis));
    AffineExpr own = index.add(thread, {0, threads - 1});
    for (int64_t first = 0; first < numPoints * groups; first += threads) {
      OpBuilder::InsertionGuard guard(b);
      AffineExpr number = own + first;
      emitIf(index.emitGuard({number, numPoints * groups}));
      auto add = [&](AffineExpr expr, int64_t extent) {
        return index.add(index.emit(expr), {0, extent - 1});
      };
      AffineExpr point = add(number.floorDiv(groups), numPoints);
      AffineExpr place = add(number % groups, groups) * width;
      Value id = arith::AddIOp::create(b, firstTile, index.emit(place));
      // Vectors are whole: they do not go beyond the last tile.
      emitIf(emitTileGuard(id));
      SmallVector<AffineExpr> axes =
          delinearize(index.add(id, {0, numTiles - 1}), counts);
      for (auto [axis, offset] : llvm::enumerate(delinearize(point, tile))) {
        axes[axis] = axes[axis] * tile[axis] + offset;
        emitIf(index.emitGuard(
            {axes[axis], getExtent(static_cast<unsigned>(axis))}));
      }
      int64_t bytes = std::min<int64_t>(width * getExchangeBytes(), 16);
      Value values = vector::LoadOp::create(
          b, VectorType::get({width}, getExchangeType()), exchange,
          ValueRange(index.emit(point * threads + place)),
          /*nontemporal=*/false, llvm::MaybeAlign(bytes));
      emitStore(getAddress(axes), emitEpilogue(values, getOutput(axes)));
    }
  }

  /// What follows is left out where `condition` does not hold; null: nothing.
  void emitIf(Value condition) {
    if (!condition)
      return;
    auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }

  //===--------------------------------------------------------------------===//
  // Sums
  //===--------------------------------------------------------------------===//

  /// The sums of all outputs over the reductions from `axis` on.
  SmallVector<Value> emitSums(unsigned axis) {
    SmallVector<Value> zeros(points.size(), createConstant(0));
    return addTerms(axis, zeros);
  }

  /// The sums of the threads that share a tile, in the first of them. What
  /// follows is left out by the others. Halves are added to each other, so that
  /// the order is always the same.
  SmallVector<Value> emitSharedSums(ArrayRef<Value> values) {
    Value memory = addMemory(computeType);
    auto getPlace = [&](size_t point, int64_t distance) -> Value {
      return arith::AddIOp::create(
          b, thread,
          index.createConstant(static_cast<int64_t>(point) * launch.block[0] +
                               distance));
    };
    for (auto [i, value] : llvm::enumerate(values))
      memref::StoreOp::create(b, value, memory, getPlace(i, 0));
    // Of a thread in the first half of `2 * distance`, with the other half's.
    auto addHalf = [&](int64_t distance) {
      gpu::BarrierOp::create(b);
      emitIf(index.emitGuard({lane, distance}));
      return llvm::map_to_vector(
          llvm::seq<size_t>(0, values.size()), [&](size_t i) -> Value {
            Value own = memref::LoadOp::create(b, memory, getPlace(i, 0));
            Value other = memref::LoadOp::create(
                b, memory, getPlace(i, distance * laneDistance));
            return arith::AddFOp::create(b, own, other);
          });
    };
    for (int64_t distance = depth / 2; distance > 1; distance /= 2) {
      OpBuilder::InsertionGuard guard(b);
      for (auto [i, sum] : llvm::enumerate(addHalf(distance)))
        memref::StoreOp::create(b, sum, memory, getPlace(i, 0));
    }
    return addHalf(1);
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
    bool isShared = depth != 0 && axis == getSharedAxis(coordinates, depth);
    if (isShared)
      extent /= depth;
    auto setAxis = [&](AffineExpr expr) {
      // Neighbouring threads read neighbours.
      if (isShared)
        expr = expr * depth + lane;
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

  gpu::GPUFuncOp kernel;
  const Coordinates &coordinates;
  /// How many threads share a tile, and this one among them; 0: none do. The
  /// next of them is `laneDistance` threads away.
  int64_t depth, laneDistance = 1;
  AffineExpr lane;
  bool hasMax, hasFlags;
  SmallVector<Point> points;
  /// Tiles along each axis, all of them, and points of a tile.
  SmallVector<int64_t> counts;
  int64_t numTiles = 1, numPoints = 1;
  /// Results that a store writes, and where threads exchange them; null: they
  /// do not.
  int64_t width = 1;
  Value exchange;
  /// The first tile of the block, the thread in it, and the branch of those
  /// that have a tile.
  Value firstTile, thread;
  scf::IfOp branch;
};

} // namespace

void kas::codegen::emitDirectKernel(OpBuilder &builder, Location loc,
                                    const GPUKernelProblem &problem,
                                    GPUScheduleAttr schedule,
                                    const LaunchShape &launch,
                                    gpu::GPUFuncOp kernel,
                                    ValueRange arguments) {
  DirectKernelEmitter(builder, loc, problem, schedule, launch, kernel,
                      arguments)
      .emit();
}
