//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Recognizes contractions on buffers and on tensors, and finds for each tensor
// how far each loop steps in memory; loops that every tensor steps through as
// one become one.
//
//===----------------------------------------------------------------------===//

#include "MatchContraction.h"
#include "DotProducts.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

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

static FailureOr<StridedAccess> getAccess(Value buffer, unsigned numLoops,
                                          ArrayRef<AffineExpr> indices,
                                          Type element) {
  auto type = dyn_cast<MemRefType>(buffer.getType());
  if (!type || !type.hasStaticShape() || type.getElementType() != element)
    return failure();
  SmallVector<int64_t> strides;
  StridedAccess access;
  if (failed(type.getStridesAndOffset(strides, access.base)) ||
      ShapedType::isDynamic(access.base) ||
      llvm::any_of(strides, ShapedType::isDynamic))
    return failure();
  access.buffer = buffer;
  access.strides.assign(numLoops, 0);
  access.size = access.base + 1;
  for (auto [stride, size, index] :
       llvm::zip_equal(strides, type.getShape(), indices)) {
    access.size += stride * (size - 1);
    if (!addLinear(index, stride, access.strides, access.base))
      return failure();
  }
  return access;
}

std::optional<SmallVector<int64_t>> kas::codegen::getZeros(tensor::PadOp op) {
  Value value = op.getConstantPaddingValue();
  std::optional<SmallVector<int64_t>> low =
      getConstantIntValues(op.getMixedLowPad());
  if (!value || !matchPattern(value, m_AnyZeroFloat()) || op.getNofold() ||
      !op.getSourceType().hasStaticShape() ||
      !op.getResultType().hasStaticShape())
    return std::nullopt;
  return low;
}

bool kas::codegen::beginsWithBias(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumReductionLoops() == 0 ||
      op.getNumDpsInits() != 1)
    return false;
  Operation *init = op.getDpsInits().front().getDefiningOp();
  if (auto fill = dyn_cast_or_null<linalg::FillOp>(init))
    return matchPattern(fill.getInputs().front(), m_AnyZeroFloat());
  auto bias = dyn_cast_or_null<linalg::BroadcastOp>(init);
  return bias && cast<ShapedType>(bias.getInput().getType()).getRank() == 1;
}

bool kas::codegen::readsPadding(linalg::LinalgOp op) {
  return beginsWithBias(op) && llvm::any_of(op.getDpsInputs(), [](Value input) {
           auto pad = input.getDefiningOp<tensor::PadOp>();
           return pad && getZeros(pad);
         });
}

/// Makes one loop of two neighbours that every buffer steps through as if they
/// were one: fewer loops, longer vectors.
static void mergeLoops(StridedContraction &contraction,
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
static void dropUnitLoops(StridedContraction &contraction,
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

static AffineExpr getAddress(const StridedAccess &access,
                             MLIRContext *context) {
  AffineExpr address = getAffineConstantExpr(access.base, context);
  for (auto [dim, stride] : llvm::enumerate(access.strides))
    address = address + getAffineDimExpr(dim, context) * stride;
  return address;
}

//===----------------------------------------------------------------------===//
// Plain data
//===----------------------------------------------------------------------===//

schedule::LoopNest kas::codegen::getLoopNest(const Contraction &source,
                                             ArrayRef<int64_t> output,
                                             ArrayRef<bool> prepacked) {
  schedule::LoopNest nest;
  nest.packsScalars = prepacked.empty();
  for (const Contraction::Loop &loop : source.loops)
    nest.loops.push_back({loop.extent, loop.isReduction});
  auto set = [](schedule::LoopNest::Tensor &tensor,
                ArrayRef<AffineExpr> indices, ArrayRef<int64_t> shape) {
    tensor.shape.assign(shape.begin(), shape.end());
    for (AffineExpr index : indices)
      tensor.indices.push_back(getIndexExpr(index));
  };
  set(nest.output, source.output, output);
  for (auto [number, input] : llvm::enumerate(source.inputs)) {
    schedule::LoopNest::Tensor &tensor = nest.inputs.emplace_back();
    set(tensor, input.indices,
        cast<ShapedType>(input.value.getType()).getShape());
    tensor.isPrepacked = !prepacked.empty() && prepacked[number];
  }
  for (const Guard &guard : source.guards)
    nest.guards.push_back({getIndexExpr(guard.expr), guard.extent});
  return nest;
}

/// What both kinds of sums need at last: the kinds of the loops.
static FailureOr<StridedContraction>
finish(StridedContraction contraction, Contraction::EmitReasonFn emitReason) {
  schedule::TileNest nest = contraction.getNest();
  if (!nest.classify()) {
    emitReason("no input steps with the output's last dimension");
    return failure();
  }
  contraction.batches.assign(nest.batches.begin(), nest.batches.end());
  contraction.rows.assign(nest.rows.begin(), nest.rows.end());
  contraction.columns.assign(nest.columns.begin(), nest.columns.end());
  contraction.reductions.assign(nest.reductions.begin(), nest.reductions.end());
  // What was not cut is as it was written.
  MLIRContext *context = contraction.output.buffer.getContext();
  auto getExpr = [&](const schedule::IndexExpr &expr, AffineExpr written) {
    return written && getIndexExpr(written) == expr
               ? written
               : getAffineExpr(expr, context);
  };
  for (const schedule::ColumnSegment &part : nest.segments) {
    ColumnSegment &segment = contraction.segments.emplace_back();
    for (auto [address, input] :
         llvm::zip_equal(part.addresses, contraction.vectorInputs))
      segment.addresses.push_back(getExpr(address, input.address));
    for (auto [number, guard] : llvm::enumerate(part.guards))
      segment.guards.push_back(
          {getExpr(guard.expr, number < contraction.guards.size()
                                   ? contraction.guards[number].expr
                                   : AffineExpr()),
           guard.extent});
  }
  return contraction;
}

/// Where the output of `source` lies in `output`, and what does not depend on
/// how its inputs are read.
static FailureOr<StridedContraction> begin(const Contraction &source,
                                           Value output, bool accumulates,
                                           Contraction::EmitReasonFn emitReason,
                                           Type element) {
  if (llvm::any_of(source.loops,
                   [](const auto &loop) { return loop.extent < 1; })) {
    emitReason("a loop has no iteration");
    return failure();
  }
  // Costs count products.
  int64_t points = 16;
  for (const Contraction::Loop &loop : source.loops)
    if (llvm::MulOverflow(points, loop.extent, points)) {
      emitReason("expected less than 2^59 products");
      return failure();
    }
  StridedContraction contraction;
  contraction.loops = source.loops;
  contraction.guards = source.guards;
  contraction.factor = source.factor;
  contraction.accumulates = accumulates;
  FailureOr<StridedAccess> access =
      getAccess(output, source.loops.size(), source.output, element);
  if (failed(access)) {
    emitReason("its output is not strided");
    return failure();
  }
  contraction.output = *access;
  return contraction;
}

/// `input` as VNNI groups of `size` elements, without `vnniLoop`, which steps
/// through them.
static StridedAccess getVNNIGroups(StridedAccess input, unsigned vnniLoop,
                                   int64_t size) {
  input.strides[vnniLoop] = 0;
  for (int64_t &stride : input.strides)
    stride /= size;
  input.base /= size;
  input.size /= size;
  return input;
}

FailureOr<StridedContraction>
kas::codegen::matchContraction(linalg::LinalgOp op,
                               Contraction::EmitReasonFn emitReason) {
  auto fail = [&](const Twine &reason) {
    emitReason(reason);
    return failure();
  };
  FailureOr<Contraction> source = Contraction::match(op, emitReason);
  if (failed(source))
    return failure();
  std::optional<DotProduct> product = DotProduct::match(op);
  std::optional<unsigned> vnniLoop;
  Type element = Float32Type::get(op.getContext());
  Type sum = element;
  if (product) {
    if (product->isOfInt8() && !product->getUnsignedInput())
      return fail("its bytes are not unsigned in one input and signed in the "
                  "other");
    vnniLoop = findVNNILoop(op, product->getVNNIGroupSize());
    if (!vnniLoop)
      return fail("its elements are not in VNNI groups");
    source->loops[*vnniLoop].extent = 1;
    element = product->element;
    if (product->isOfInt8() || product->isOfInt16())
      sum = IntegerType::get(op.getContext(), 32);
  }
  FailureOr<StridedContraction> begun =
      begin(*source, op.getDpsInitOperand(0)->get(), /*accumulates=*/true,
            emitReason, sum);
  if (failed(begun))
    return failure();
  StridedContraction contraction = std::move(*begun);
  SmallVector<StridedAccess> inputs;
  for (const Contraction::Input &input : source->inputs) {
    FailureOr<StridedAccess> access =
        getAccess(input.value, source->loops.size(), input.indices, element);
    if (failed(access) ||
        (vnniLoop &&
         !cast<MemRefType>(input.value.getType()).getLayout().isIdentity()))
      return fail("an input is not strided");
    if (vnniLoop)
      access = getVNNIGroups(*access, *vnniLoop, product->getVNNIGroupSize());
    inputs.push_back(*access);
  }
  dropUnitLoops(contraction, inputs);

  auto *innermost = llvm::find(contraction.output.strides, 1);
  if (innermost == contraction.output.strides.end())
    return fail("no loop steps along the output's last dimension");
  unsigned vectorLoop = innermost - contraction.output.strides.begin();
  if (product) {
    unsigned number = product->getUnsignedInput().value_or(0);
    bool isVector = inputs[number].strides[vectorLoop] != 0;
    if (isVector == (inputs[1 - number].strides[vectorLoop] != 0))
      return fail("both or no inputs step with the output's last dimension");
    contraction.elements = product->isOfInt16()   ? ElementKind::Int16
                           : !product->isOfInt8() ? ElementKind::BFloats
                           : isVector ? ElementKind::UnsignedVectorInt8
                                      : ElementKind::UnsignedScalarInt8;
  }
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

/// Whether `input` has its element at all iterations.
static bool staysInside(const Contraction::Input &input,
                        ArrayRef<Interval> ranges) {
  ArrayRef<int64_t> shape = cast<ShapedType>(input.value.getType()).getShape();
  return llvm::all_of(llvm::zip_equal(input.indices, shape), [&](auto entry) {
    Interval interval = getInterval(std::get<0>(entry), ranges);
    return interval.lower >= 0 && interval.upper < std::get<1>(entry);
  });
}

/// The address of each element of an input that is a plain buffer of f32.
static FailureOr<PackedAccess> getPackedAccess(const Contraction::Input &input,
                                               MLIRContext *context) {
  auto type = dyn_cast<MemRefType>(input.value.getType());
  if (!type || !type.hasStaticShape() || !type.getElementType().isF32() ||
      !type.getLayout().isIdentity())
    return failure();
  AffineExpr address = getAffineConstantExpr(0, context);
  for (auto [expr, size] : llvm::zip_equal(input.indices, type.getShape()))
    address = address * size + expr;
  return PackedAccess{input.value, address, type.getNumElements(),
                      input.indices, SmallVector<int64_t>(type.getShape())};
}

FailureOr<StridedContraction>
kas::codegen::getStridedContraction(const Contraction &source, Value output,
                                    Contraction::EmitReasonFn emitReason,
                                    ArrayRef<bool> prepacked) {
  auto fail = [&](const Twine &reason) {
    emitReason(reason);
    return failure();
  };
  FailureOr<StridedContraction> begun =
      begin(source, output, /*accumulates=*/false, emitReason,
            Float32Type::get(output.getContext()));
  if (failed(begun))
    return failure();
  StridedContraction contraction = std::move(*begun);
  // The loop that steps along the output's last dimension.
  std::optional<unsigned> vectorLoop;
  for (auto [i, loop] : llvm::enumerate(contraction.loops))
    if (loop.extent > 1 && contraction.output.strides[i] == 1)
      vectorLoop = i;
  if (!vectorLoop)
    return fail("its output has one element");

  SmallVector<Interval> ranges = source.getRanges();
  for (auto [number, input] : llvm::enumerate(source.inputs)) {
    bool isVector = llvm::any_of(input.indices, [&](AffineExpr expr) {
      return expr.isFunctionOfDim(*vectorLoop);
    });
    if (isVector) {
      auto packed = getPackedAccess(input, output.getContext());
      if (failed(packed))
        return fail("an input is no plain buffer of f32");
      packed->isPrepacked = !prepacked.empty() && prepacked[number];
      contraction.vectorInputs.push_back(*packed);
      continue;
    }
    FailureOr<StridedAccess> strided =
        getAccess(input.value, ranges.size(), input.indices,
                  Float32Type::get(output.getContext()));
    if (failed(strided))
      return fail("an input that is constant along the output's last "
                  "dimension is not strided");
    // The guards are for packing; this input is read everywhere.
    if (!contraction.guards.empty() && !staysInside(input, ranges))
      return fail("an input that is constant along the output's last "
                  "dimension is clipped");
    strided->isPrepacked = prepacked.empty() || prepacked[number];
    contraction.scalarInputs.push_back(*strided);
  }
  dropUnitLoops(contraction);
  return finish(std::move(contraction), emitReason);
}

FailureOr<Contraction> kas::codegen::matchUnpadded(linalg::LinalgOp op,
                                                   ToBufferFn toBuffer) {
  // `kas-pack-contractions` says why if it does no better.
  FailureOr<Contraction> source = Contraction::match(op, [](const Twine &) {});
  if (failed(source))
    return failure();
  for (Contraction::Input &input : source->inputs) {
    auto pad = input.value.getDefiningOp<tensor::PadOp>();
    auto zeros = pad ? getZeros(pad) : std::nullopt;
    if (zeros) {
      input.value = pad.getSource();
      ArrayRef<int64_t> padded = pad.getResultType().getShape();
      ArrayRef<int64_t> inside = pad.getSourceType().getShape();
      for (size_t i = 0; i < padded.size(); ++i) {
        input.indices[i] = input.indices[i] - (*zeros)[i];
        if (padded[i] != inside[i])
          source->guards.push_back({input.indices[i], inside[i]});
      }
    }
    input.value = toBuffer(input.value);
  }
  return source;
}
