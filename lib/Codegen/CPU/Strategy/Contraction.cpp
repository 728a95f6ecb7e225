//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Contraction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// Adds `factor * expr` to the coefficients of the dimensions and the constant.
/// False for anything that is not linear.
static bool addLinear(AffineExpr expr, int64_t factor,
                      MutableArrayRef<int64_t> coefficients,
                      int64_t &constant) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    coefficients[dim.getPosition()] += factor;
    return true;
  }
  if (auto value = dyn_cast<AffineConstantExpr>(expr)) {
    constant += factor * value.getValue();
    return true;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return false;
  if (binary.getKind() == AffineExprKind::Add)
    return addLinear(binary.getLHS(), factor, coefficients, constant) &&
           addLinear(binary.getRHS(), factor, coefficients, constant);
  auto scale = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (binary.getKind() != AffineExprKind::Mul || !scale)
    return false;
  return addLinear(binary.getLHS(), factor * scale.getValue(), coefficients,
                   constant);
}

static FailureOr<StridedAccess> getAccess(Value buffer, AffineMap map) {
  auto type = dyn_cast<MemRefType>(buffer.getType());
  if (!type || !type.hasStaticShape() || !type.getElementType().isF32())
    return failure();
  SmallVector<int64_t> strides;
  StridedAccess access;
  if (failed(type.getStridesAndOffset(strides, access.base)) ||
      ShapedType::isDynamic(access.base) ||
      llvm::any_of(strides, ShapedType::isDynamic))
    return failure();
  access.buffer = buffer;
  access.strides.assign(map.getNumDims(), 0);
  access.size = access.base + 1;
  for (auto [stride, size, index] :
       llvm::zip_equal(strides, type.getShape(), map.getResults())) {
    access.size += stride * (size - 1);
    if (!addLinear(index, stride, access.strides, access.base))
      return failure();
  }
  return access;
}

/// The body adds a product of all inputs to the output and does nothing else.
static bool isSumOfProducts(linalg::LinalgOp op) {
  Block *body = op.getBlock();
  auto sum = dyn_cast_or_null<arith::AddFOp>(
      body->getTerminator()->getOperand(0).getDefiningOp());
  if (!sum)
    return false;
  BlockArgument output = body->getArguments().back();
  Value product = sum.getLhs() == output   ? sum.getRhs()
                  : sum.getRhs() == output ? sum.getLhs()
                                           : Value();
  if (!product)
    return false;
  SmallVector<bool> seen(body->getNumArguments() - 1, false);
  SmallVector<Value> factors{product};
  while (!factors.empty()) {
    Value factor = factors.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(factor)) {
      if (argument == output || seen[argument.getArgNumber()])
        return false;
      seen[argument.getArgNumber()] = true;
      continue;
    }
    auto times = factor.getDefiningOp<arith::MulFOp>();
    if (!times || !times->hasOneUse())
      return false;
    factors.push_back(times.getLhs());
    factors.push_back(times.getRhs());
  }
  return !llvm::is_contained(seen, false);
}

/// Makes one loop of two neighbours that every buffer steps through as if they
/// were one: fewer loops, longer vectors.
static void mergeLoops(Contraction &contraction,
                       MutableArrayRef<StridedAccess> vectorInputs) {
  SmallVector<StridedAccess *> accesses{&contraction.output};
  for (StridedAccess &access : vectorInputs)
    accesses.push_back(&access);
  for (StridedAccess &access : contraction.scalarInputs)
    accesses.push_back(&access);
  auto &loops = contraction.loops;
  for (size_t i = 0; i + 1 < loops.size();) {
    bool merge = loops[i].isReduction == loops[i + 1].isReduction &&
                 llvm::all_of(accesses, [&](StridedAccess *access) {
                   return access->strides[i] ==
                          access->strides[i + 1] * loops[i + 1].extent;
                 });
    if (!merge) {
      ++i;
      continue;
    }
    loops[i + 1].extent *= loops[i].extent;
    loops.erase(loops.begin() + i);
    for (StridedAccess *access : accesses)
      access->strides.erase(access->strides.begin() + i);
  }
}

/// Loops of one iteration index nothing.
static void dropUnitLoops(Contraction &contraction,
                          MutableArrayRef<StridedAccess> inputs = {}) {
  MLIRContext *context = contraction.output.buffer.getContext();
  SmallVector<AffineExpr> dims;
  unsigned numKept = 0;
  SmallVector<StridedAccess *> accesses{&contraction.output};
  for (StridedAccess &input : inputs)
    accesses.push_back(&input);
  for (StridedAccess &input : contraction.scalarInputs)
    accesses.push_back(&input);
  for (size_t i = 0, kept = 0; i < contraction.loops.size(); ++i) {
    bool keep = contraction.loops[i].extent != 1;
    dims.push_back(keep ? getAffineDimExpr(numKept++, context)
                        : getAffineConstantExpr(0, context));
    if (!keep)
      continue;
    contraction.loops[kept] = contraction.loops[i];
    for (StridedAccess *access : accesses)
      access->strides[kept] = access->strides[i];
    ++kept;
  }
  contraction.loops.truncate(numKept);
  for (StridedAccess *access : accesses)
    access->strides.truncate(numKept);
  for (PackedAccess &access : contraction.vectorInputs) {
    access.address = access.address.replaceDims(dims);
    for (AffineExpr &expr : access.index)
      expr = expr.replaceDims(dims);
  }
  for (Guard &guard : contraction.guards)
    guard.expr = guard.expr.replaceDims(dims);
}

bool Contraction::stepsWithVectors(unsigned loop) const {
  return llvm::any_of(vectorInputs,
                      [&](const PackedAccess &access) {
                        return access.address.isFunctionOfDim(loop);
                      }) ||
         llvm::any_of(guards, [&](const Guard &guard) {
           return guard.expr.isFunctionOfDim(loop);
         });
}

static void classifyLoops(Contraction &contraction) {
  for (unsigned dim = 0; dim < contraction.loops.size(); ++dim) {
    bool scalar = llvm::any_of(
        contraction.scalarInputs,
        [&](const StridedAccess &access) { return access.strides[dim] != 0; });
    bool vector = contraction.stepsWithVectors(dim);
    if (contraction.loops[dim].isReduction)
      contraction.reductions.push_back(dim);
    else if (scalar == vector)
      contraction.batches.push_back(dim);
    else
      (vector ? contraction.columns : contraction.rows).push_back(dim);
  }
  // Ties by position: the order must not depend on the sorting algorithm.
  llvm::sort(contraction.columns, [&](unsigned a, unsigned b) {
    return std::pair(-contraction.output.strides[a], a) <
           std::pair(-contraction.output.strides[b], b);
  });
  // The last row loop is the one that registers are blocked along.
  llvm::sort(contraction.rows, [&](unsigned a, unsigned b) {
    return std::pair(contraction.loops[a].extent, a) <
           std::pair(contraction.loops[b].extent, b);
  });
}

std::optional<int64_t> kas::codegen::getCoefficient(AffineExpr expr,
                                                    unsigned dim) {
  if (!expr.isFunctionOfDim(dim))
    return 0;
  if (isa<AffineDimExpr>(expr))
    return 1;
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  if (binary.getKind() == AffineExprKind::Add) {
    auto left = getCoefficient(binary.getLHS(), dim);
    auto right = getCoefficient(binary.getRHS(), dim);
    if (left && right)
      return *left + *right;
    return std::nullopt;
  }
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  auto scaled = getCoefficient(binary.getLHS(), dim);
  if (binary.getKind() == AffineExprKind::Mul && factor && scaled)
    return *scaled * factor.getValue();
  return std::nullopt;
}

ContractionTarget::ContractionTarget(const Target &target)
    : lanes(target.vectorBits / 32),
      arithmeticLanes(target.arithmeticBits / 32),
      registers(target.vectorRegisters),
      accumulators(target.vectorRegisters * 3 / 4),
      panelElements(target.l2Bytes / sizeof(float) * 3 / 8),
      l1Elements(target.l1Bytes / sizeof(float)), hasFMA(target.hasFMA),
      hasMaskedLoads(target.vectorBits > 128) {}

int64_t ContractionTarget::getLanes(int64_t elements) const {
  int64_t size = lanes;
  while (size > 4 && size / 2 >= elements)
    size /= 2;
  return size;
}

static AffineExpr getAddress(const StridedAccess &access,
                             MLIRContext *context) {
  AffineExpr address = getAffineConstantExpr(access.base, context);
  for (auto [dim, stride] : llvm::enumerate(access.strides))
    address = address + getAffineDimExpr(dim, context) * stride;
  return address;
}

/// What both kinds of sums need at last: the kinds of the loops.
static FailureOr<Contraction>
finish(Contraction contraction, function_ref<void(const Twine &)> emitReason) {
  classifyLoops(contraction);
  // Guards alone, on data that do not step, would leave nothing to load.
  if (!contraction.vectorInputs.empty() && !contraction.columns.empty() &&
      contraction.output.strides[contraction.columns.back()] == 1) {
    contraction.findSegments();
    return contraction;
  }
  emitReason("no input steps with the output's last dimension");
  return failure();
}

/// The loops of a sum of products of at least two inputs, and the output where
/// it lies in `buffer`.
static FailureOr<Contraction>
matchLoopsAndOutput(linalg::LinalgOp op, Value buffer,
                    function_ref<void(const Twine &)> emitReason) {
  auto fail = [&](const Twine &reason) {
    emitReason(reason);
    return failure();
  };
  if (op.getNumDpsInits() != 1 || op.getNumReductionLoops() == 0 ||
      op.getNumDpsInputs() < 2)
    return fail("it is no reduction of at least two inputs to one output");
  if (!isSumOfProducts(op))
    return fail("its body is no sum of products");
  Contraction contraction;
  for (auto [extent, kind] :
       llvm::zip(op.getStaticLoopRanges(), op.getIteratorTypesArray()))
    contraction.loops.push_back(
        {extent, kind == utils::IteratorType::reduction});
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  FailureOr<StridedAccess> output = getAccess(buffer, map);
  if (failed(output) || !map.isProjectedPermutation())
    return fail("its output is not strided");
  contraction.output = *output;
  return contraction;
}

FailureOr<Contraction>
Contraction::match(linalg::LinalgOp op,
                   function_ref<void(const Twine &)> emitReason) {
  auto fail = [&](const Twine &reason) {
    emitReason(reason);
    return failure();
  };
  FailureOr<Contraction> loops =
      matchLoopsAndOutput(op, op.getDpsInitOperand(0)->get(), emitReason);
  if (failed(loops))
    return failure();
  Contraction contraction = std::move(*loops);
  SmallVector<StridedAccess> inputs;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    FailureOr<StridedAccess> access =
        getAccess(operand->get(), op.getMatchingIndexingMap(operand));
    if (failed(access))
      return fail("an input is not strided");
    inputs.push_back(*access);
  }
  dropUnitLoops(contraction, inputs);

  auto *innermost = llvm::find(contraction.output.strides, 1);
  if (innermost == contraction.output.strides.end())
    return fail("no loop steps along the output's last dimension");
  unsigned vectorLoop = innermost - contraction.output.strides.begin();
  SmallVector<StridedAccess> vectorInputs;
  for (StridedAccess &input : inputs)
    (input.strides[vectorLoop] ? vectorInputs : contraction.scalarInputs)
        .push_back(input);
  mergeLoops(contraction, vectorInputs);
  for (const StridedAccess &input : vectorInputs)
    contraction.vectorInputs.push_back(
        {input.buffer, getAddress(input, op.getContext()), input.size});
  return finish(std::move(contraction), emitReason);
}

namespace {
/// The loops of an operator and the indices of its tensors, while loops are
/// being split.
struct IndexedNest {
  SmallVector<Contraction::Loop> loops;
  /// The output, the data, the weights.
  SmallVector<SmallVector<AffineExpr>> indices;
  SmallVector<Guard> guards;

  void transform(function_ref<AffineExpr(AffineExpr)> function) {
    for (SmallVector<AffineExpr> &index : indices)
      for (AffineExpr &expr : index)
        expr = function(expr);
    for (Guard &guard : guards)
      guard.expr = function(guard.expr);
  }
};
} // namespace

/// A loop and the largest divisor B of its extent such that some index has the
/// loop `floordiv B` or `mod B`: smaller ones then divide the inner loop.
static std::optional<std::pair<unsigned, int64_t>>
findSplit(const IndexedNest &nest) {
  std::optional<std::pair<unsigned, int64_t>> found;
  auto visit = [&](AffineExpr expr) {
    expr.walk([&](AffineExpr part) {
      auto binary = dyn_cast<AffineBinaryOpExpr>(part);
      if (!binary || (part.getKind() != AffineExprKind::FloorDiv &&
                      part.getKind() != AffineExprKind::Mod))
        return;
      auto loop = dyn_cast<AffineDimExpr>(binary.getLHS());
      auto divisor = dyn_cast<AffineConstantExpr>(binary.getRHS());
      if (loop && divisor && divisor.getValue() > 1 &&
          (!found || divisor.getValue() > found->second) &&
          nest.loops[loop.getPosition()].extent % divisor.getValue() == 0)
        found = {loop.getPosition(), divisor.getValue()};
    });
  };
  for (ArrayRef<AffineExpr> index : nest.indices)
    llvm::for_each(index, visit);
  for (const Guard &guard : nest.guards)
    visit(guard.expr);
  return found;
}

/// Makes two loops of one that indices divide: `d` becomes `B * outer + inner`,
/// `d floordiv B` just `outer`, and what depends on one of them only, such as
/// the data of a grouped convolution, says so.
static void splitLoops(IndexedNest &nest, MLIRContext *context) {
  while (auto split = findSplit(nest)) {
    auto [loop, divisor] = *split;
    SmallVector<AffineExpr> dims;
    for (unsigned i = 0; i < nest.loops.size(); ++i)
      dims.push_back(getAffineDimExpr(i + (i > loop), context));
    dims[loop] = getAffineDimExpr(loop, context) * divisor +
                 getAffineDimExpr(loop + 1, context);
    Contraction::Loop inner = nest.loops[loop];
    inner.extent = divisor;
    nest.loops[loop].extent /= divisor;
    nest.loops.insert(nest.loops.begin() + loop + 1, inner);
    SmallVector<Interval> ranges;
    for (const Contraction::Loop &entry : nest.loops)
      ranges.push_back({0, entry.extent - 1});
    nest.transform([&](AffineExpr expr) {
      return simplifyInRanges(expr.replaceDims(dims), ranges);
    });
  }
}

/// Whether `index` is an element of `input` at all iterations.
static bool staysInside(ArrayRef<AffineExpr> index, Value input,
                        ArrayRef<Contraction::Loop> loops) {
  auto ranges = llvm::map_to_vector(loops, [](const Contraction::Loop &loop) {
    return Interval{0, loop.extent - 1};
  });
  ArrayRef<int64_t> shape = cast<ShapedType>(input.getType()).getShape();
  return llvm::all_of(llvm::zip_equal(index, shape), [&](auto entry) {
    Interval interval = getInterval(std::get<0>(entry), ranges);
    return interval.lower >= 0 && interval.upper < std::get<1>(entry);
  });
}

/// Adds the inputs of `contraction`, which has its loops, its output, and all
/// guards.
static FailureOr<Contraction>
addInputs(Contraction contraction, ValueRange inputs,
          ArrayRef<SmallVector<AffineExpr>> indices,
          function_ref<void(const Twine &)> emitReason) {
  auto fail = [&](const Twine &reason) {
    emitReason(reason);
    return failure();
  };
  MLIRContext *context = contraction.output.buffer.getContext();
  unsigned numLoops = contraction.loops.size();
  // The loop that steps along the output's last dimension.
  std::optional<unsigned> vectorLoop;
  for (unsigned i = 0; i < numLoops; ++i)
    if (contraction.loops[i].extent > 1 && contraction.output.strides[i] == 1)
      vectorLoop = i;
  if (!vectorLoop)
    return fail("its output has one element");

  for (auto [input, index] : llvm::zip_equal(inputs, indices)) {
    bool isVector = llvm::any_of(index, [&](AffineExpr expr) {
      return expr.isFunctionOfDim(*vectorLoop);
    });
    if (!isVector) {
      FailureOr<StridedAccess> strided =
          getAccess(input, AffineMap::get(numLoops, 0, index, context));
      if (failed(strided))
        return fail("an input that is constant along the output's last "
                    "dimension is not strided");
      // The guards are for packing; this input is read everywhere.
      if (!contraction.guards.empty() &&
          !staysInside(index, input, contraction.loops))
        return fail("an input that is constant along the output's last "
                    "dimension is clipped");
      contraction.scalarInputs.push_back(*strided);
      continue;
    }
    auto type = dyn_cast<MemRefType>(input.getType());
    if (!type || !type.hasStaticShape() || !type.getElementType().isF32() ||
        !type.getLayout().isIdentity())
      return fail("an input is no plain buffer of f32");
    AffineExpr address = getAffineConstantExpr(0, context);
    for (auto [expr, size] : llvm::zip_equal(index, type.getShape()))
      address = address * size + expr;
    contraction.vectorInputs.push_back({input, address, type.getNumElements(),
                                        index,
                                        SmallVector<int64_t>(type.getShape())});
  }
  dropUnitLoops(contraction);
  return finish(std::move(contraction), emitReason);
}

FailureOr<Contraction>
Contraction::match(const Coordinates &coordinates, ValueRange inputs,
                   Value output, function_ref<void(const Twine &)> emitReason) {
  auto fail = [&](const Twine &reason) {
    emitReason(reason);
    return failure();
  };
  if (coordinates.hasMax())
    return fail("it takes a maximum");
  MLIRContext *context = output.getContext();
  IndexedNest nest;
  for (const Axis &axis : coordinates.axes)
    nest.loops.push_back({axis.extent, axis.kind.has_value()});
  SmallVector<AffineExpr> &outputIndices = nest.indices.emplace_back();
  for (unsigned i = 0; i < coordinates.numOutputs; ++i)
    outputIndices.push_back(getAffineDimExpr(i, context));
  nest.indices.push_back(coordinates.data);
  llvm::append_range(nest.indices, coordinates.weights);
  nest.guards = coordinates.guards;
  splitLoops(nest, context);

  unsigned numLoops = nest.loops.size();
  Contraction contraction;
  contraction.loops = nest.loops;
  contraction.guards = nest.guards;
  contraction.factor = 1 / coordinates.getMeanDivisor();
  contraction.accumulates = false;
  FailureOr<StridedAccess> access = getAccess(
      output, AffineMap::get(numLoops, 0, nest.indices.front(), context));
  if (failed(access))
    return fail("its output is not strided");
  contraction.output = *access;
  return addInputs(std::move(contraction), inputs,
                   ArrayRef(nest.indices).drop_front(), emitReason);
}

FailureOr<Contraction>
Contraction::match(linalg::LinalgOp op, ValueRange inputs,
                   ArrayRef<SmallVector<int64_t>> padding, Value output,
                   function_ref<void(const Twine &)> emitReason) {
  FailureOr<Contraction> loops = matchLoopsAndOutput(op, output, emitReason);
  if (failed(loops))
    return failure();
  Contraction contraction = std::move(*loops);
  contraction.accumulates = false;
  SmallVector<SmallVector<AffineExpr>> indices;
  for (auto [operand, input, zeros] :
       llvm::zip_equal(op.getDpsInputOperands(), inputs, padding)) {
    SmallVector<AffineExpr> &index =
        indices.emplace_back(op.getMatchingIndexingMap(operand).getResults());
    if (zeros.empty())
      continue;
    auto before = cast<ShapedType>(operand->get().getType()).getShape();
    auto inside = cast<ShapedType>(input.getType()).getShape();
    for (size_t i = 0; i < index.size(); ++i) {
      index[i] = index[i] - zeros[i];
      if (before[i] != inside[i])
        contraction.guards.push_back({index[i], inside[i]});
    }
  }
  return addInputs(std::move(contraction), inputs, indices, emitReason);
}
