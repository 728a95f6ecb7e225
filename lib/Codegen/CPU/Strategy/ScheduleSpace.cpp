//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lists the schedules of an operation: each candidate is planned, and those
// whose plan exists are kept.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/CPU/Strategy/ScheduleSpace.h"
#include "ContractionTarget.h"
#include "MatchContraction.h"
#include "kas/Conversion/KasToAffine.h"
#include "kas/Support/PrimeFactors.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <set>

using namespace kas;
using namespace kas::codegen;
using namespace mlir;
using llvm::Expected;

namespace {

/// Plans the candidates of one contraction.
class SpaceBuilder {
public:
  SpaceBuilder(MLIRContext *context, const StridedContraction &nest,
               const ContractionTarget &target, int64_t threads,
               ScheduleSpace &space)
      : context(context), nest(nest.getNest()), target(target),
        threads(threads), space(space) {}

  void addPanels();
  void addDirect();
  void addRowVectors();

private:
  CPUScheduleAttr make(CPUStrategy strategy, int64_t rows, int64_t columns,
                       int64_t vectors, int64_t tile = 0, int64_t depth = 0) {
    return CPUScheduleAttr::get(context, strategy, rows, columns, vectors, tile,
                                depth);
  }
  void add(CPUScheduleAttr schedule, int64_t time, int64_t stepTime = 0) {
    space.add(schedule,
              {static_cast<double>(time), static_cast<double>(stepTime)});
  }
  static void ignore(const Twine &) {}

  MLIRContext *context;
  schedule::TileNest nest;
  const ContractionTarget &target;
  int64_t threads;
  ScheduleSpace &space;
};

/// Tiles that lie together in the output, from half a vector on, and all
/// depths; then the registers of each.
void SpaceBuilder::addPanels() {
  if (!makePanelPlan(nest, target, threads, nullptr, ignore))
    return;
  // Larger panels do not fit the second-level cache.
  constexpr int64_t maxTile = 1024;
  std::set<int64_t> tiles;
  int64_t inner = 1;
  for (unsigned loop : llvm::reverse(nest.columns)) {
    if (nest.output.strides[loop] != inner)
      break;
    int64_t extent = nest.loops[loop].extent;
    for (int64_t divisor : listDivisors(extent))
      if (int64_t tile = divisor * inner;
          tile <= maxTile && tile * 2 >= target.lanes)
        tiles.insert(tile);
    inner *= extent;
  }
  int64_t outer = nest.loops[nest.reductions.front()].extent;
  int64_t limit = target.registers - 4;
  for (int64_t tile : tiles)
    for (int64_t depth : listDivisors(outer)) {
      schedule::TileNumbers numbers{0, 0, 0, tile, depth};
      if (!makePanelPlan(nest, target, threads, &numbers, ignore))
        continue;
      for (int64_t rows = 1; rows <= limit; ++rows)
        for (int64_t vectors = 1; rows * vectors <= limit; ++vectors) {
          CPUScheduleAttr schedule =
              make(CPUStrategy::Panels, rows, 0, vectors, tile, depth);
          schedule::TileNumbers numbers = getTileNumbers(schedule);
          std::optional<PanelPlan> plan =
              makePanelPlan(nest, target, threads, &numbers, ignore);
          if (plan)
            add(schedule, plan->time, plan->stepTime);
        }
    }
}

void SpaceBuilder::addDirect() {
  constexpr int64_t maxRows = 12, maxColumns = 28, maxVectors = 4;
  if (!makeDirectPlan(nest, target, threads, nullptr, ignore))
    return;
  for (int64_t rows = 1; rows <= maxRows; ++rows)
    for (int64_t columns = 1; columns <= maxColumns; ++columns)
      for (int64_t vectors = 1; vectors <= maxVectors; ++vectors) {
        if (rows * columns * vectors > target.registers)
          break;
        CPUScheduleAttr schedule =
            make(CPUStrategy::Direct, rows, columns, vectors);
        schedule::TileNumbers numbers = getTileNumbers(schedule);
        std::optional<DirectPlan> plan =
            makeDirectPlan(nest, target, threads, &numbers, ignore);
        if (plan)
          add(schedule, plan->time);
      }
}

void SpaceBuilder::addRowVectors() {
  constexpr int64_t maxVectors = 5;
  bool mayOverlap = !nest.accumulates;
  if (!makeRowVectorPlan(nest, target, threads, nullptr, ignore, mayOverlap))
    return;
  for (int64_t columns = 1; columns <= target.registers; ++columns)
    for (int64_t vectors = 1; vectors <= maxVectors; ++vectors) {
      CPUScheduleAttr schedule =
          make(CPUStrategy::RowVectors, 0, columns, vectors);
      schedule::TileNumbers numbers = getTileNumbers(schedule);
      std::optional<RowVectorPlan> plan = makeRowVectorPlan(
          nest, target, threads, &numbers, ignore, mayOverlap);
      if (plan)
        add(schedule, plan->time);
    }
}

/// Buffers of an operation's tensors that exist as long as this.
class ScratchBuffers {
public:
  explicit ScratchBuffers(Operation *op) : builder(op), loc(op->getLoc()) {}
  ~ScratchBuffers() {
    for (Operation *op : llvm::reverse(made))
      op->erase();
  }
  Value get(Value tensor) {
    auto type = bufferization::getMemRefTypeWithStaticIdentityLayout(
        cast<TensorType>(tensor.getType()));
    auto buffer = bufferization::ToBufferOp::create(builder, loc, type, tensor,
                                                    /*read_only=*/true);
    made.push_back(buffer);
    return buffer;
  }
  Value getOutput(Value tensor) {
    auto type =
        cast<MemRefType>(bufferization::getMemRefTypeWithStaticIdentityLayout(
            cast<TensorType>(tensor.getType())));
    auto buffer = memref::AllocOp::create(builder, loc, type);
    made.push_back(buffer);
    return buffer;
  }

  /// The operation as it is when tensors have become buffers.
  linalg::LinalgOp cloneOnBuffers(linalg::LinalgOp op, Value output) {
    SmallVector<Value> operands;
    for (Value input : op.getDpsInputs())
      operands.push_back(isa<TensorType>(input.getType()) ? get(input) : input);
    operands.push_back(output);
    Operation *copy = clone(builder, op.getOperation(), TypeRange(), operands);
    made.push_back(copy);
    return cast<linalg::LinalgOp>(copy);
  }

private:
  OpBuilder builder;
  Location loc;
  SmallVector<Operation *> made;
};

/// What an operation computes: as `-kas-pack-contractions` sees it, and, if it
/// reads padding, as `-kas-pack-operators` does.
struct Views {
  StridedContraction plain;
  std::optional<StridedContraction> unpadded;
};

} // namespace

static FailureOr<Views>
matchApply(ApplyOp apply, ScratchBuffers &buffers,
           function_ref<void(const Twine &)> emitReason) {
  OperatorOp op = apply.getOperator();
  if (!op || !op.isConcrete()) {
    emitReason("expected a concrete operator");
    return failure();
  }
  auto inputs = llvm::map_to_vector(
      apply->getOperands(), [&](Value tensor) { return buffers.get(tensor); });
  FailureOr<Contraction> source =
      Contraction::match(getCoordinates(op), inputs, emitReason);
  if (failed(source))
    return failure();
  FailureOr<StridedContraction> plain = getStridedContraction(
      *source, buffers.getOutput(apply->getResult(0)), emitReason);
  if (failed(plain))
    return failure();
  return Views{*plain, std::nullopt};
}

static FailureOr<Views>
matchLinalg(linalg::LinalgOp op, ScratchBuffers &buffers, bool prepacked,
            function_ref<void(const Twine &)> emitReason) {
  if (!op.hasPureTensorSemantics() || op->getNumResults() != 1) {
    emitReason("expected an operation on tensors with one result");
    return failure();
  }
  if (op.getNumReductionLoops() == 0) {
    emitReason("expected a contraction");
    return failure();
  }
  Value output = buffers.getOutput(op->getResult(0));
  FailureOr<StridedContraction> plain =
      matchContraction(buffers.cloneOnBuffers(op, output), emitReason);
  if (failed(plain))
    return failure();
  Views views{*plain, std::nullopt};
  if (!prepacked || !readsPadding(op))
    return views;
  auto toBuffer = [&](Value tensor) { return buffers.get(tensor); };
  FailureOr<Contraction> source = matchUnpadded(op, toBuffer);
  if (failed(source))
    return views;
  FailureOr<StridedContraction> unpadded =
      getStridedContraction(*source, output, [](const Twine &) {});
  if (succeeded(unpadded))
    views.unpadded = *unpadded;
  return views;
}

/// Panels of two vectors of elements that lie together, over all of the
/// reduction, in tiles of six rows; the nearest of them that suits.
static std::optional<size_t> findFixed(const ScheduleSpace &space) {
  constexpr int64_t rows = 6, vectors = 2;
  int64_t width = vectors * space.lanes;
  auto getDistance = [&](size_t point) {
    auto schedule = cast<CPUScheduleAttr>(space.points[point].schedule);
    int64_t tile = schedule.getTile();
    // A tile that is too wide is better than one that is too narrow.
    return std::tuple(tile < width, std::abs(tile - width),
                      -schedule.getDepth(),
                      std::abs(schedule.getVectors() - vectors),
                      std::abs(schedule.getRows() - rows));
  };
  std::optional<size_t> nearest;
  for (auto [index, point] : llvm::enumerate(space.points))
    if (cast<CPUScheduleAttr>(point.schedule).getStrategy() ==
            CPUStrategy::Panels &&
        (!nearest || getDistance(index) < getDistance(*nearest)))
      nearest = index;
  return nearest;
}

Expected<ScheduleSpace>
kas::codegen::getScheduleSpace(Operation *op,
                               const ScheduleSpaceOptions &options) {
  std::string reason = "expected a kas.apply or a linalg operation";
  auto emitReason = [&](const Twine &why) { reason = why.str(); };
  op->getContext()
      ->loadDialect<KasCPUDialect, bufferization::BufferizationDialect,
                    memref::MemRefDialect>();
  auto isStatic = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return !tensor || tensor.hasStaticShape();
  };
  if (!llvm::all_of(op->getOperandTypes(), isStatic) ||
      !llvm::all_of(op->getResultTypes(), isStatic))
    return llvm::createStringError("expected tensors of static shape");
  ScratchBuffers buffers(op);
  FailureOr<Views> views = failure();
  if (auto apply = dyn_cast<ApplyOp>(op))
    views = matchApply(apply, buffers, emitReason);
  else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    views = matchLinalg(linalgOp, buffers, options.prepacked, emitReason);
  if (failed(views))
    return llvm::createStringError(reason);

  ContractionTarget target(getContractionTarget(op, /*vectorBits=*/0));
  int64_t threads = options.threads ? options.threads : 8;
  std::optional<CombinedInputs> combined = CombinedInputs::get(views->plain);
  const StridedContraction &nest =
      combined ? combined->getRemainder() : views->plain;
  const StridedContraction &vectorNest =
      views->unpadded ? *views->unpadded : nest;
  ScheduleSpace space;
  SpaceBuilder plain(op->getContext(), nest, target, threads, space);
  plain.addPanels();
  plain.addDirect();
  if (options.prepacked)
    SpaceBuilder(op->getContext(), vectorNest, target, threads, space)
        .addRowVectors();
  if (space.points.empty())
    return llvm::createStringError("no register tile suits its shape");

  space.batches = nest.getExtent(nest.batches);
  space.rows = nest.getExtent(nest.rows);
  space.columns = nest.getExtent(nest.columns);
  space.reductions = nest.getExtent(nest.reductions);
  if (!nest.rows.empty())
    space.innermostRows = nest.loops[nest.rows.back()].extent;
  if (!nest.columns.empty())
    space.innermostColumns = nest.loops[nest.columns.back()].extent;
  if (!nest.reductions.empty())
    space.outermostReduction = nest.loops[nest.reductions.front()].extent;
  space.lanes = target.lanes;
  space.registers = target.registers;
  space.fixed = findFixed(space);
  space.computeFeatures();
  return space;
}
