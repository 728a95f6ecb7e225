//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The transform operations of the dialect: neural transformations of layers and
// operators (docs/guide/transformations.md).
//
// The ops are thin: parameters, iterators, effects. The transformations are
// free functions (Group.cpp, Bottleneck.cpp, Slabs.cpp, Weights.cpp), with an
// overload for `kas.apply` next to the one for structured operations. A
// condition that does not hold is a silenceable failure with its reason (T1 to
// T18).
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/TransformOps/KasTransformOps.h"
#include "kas/Dialect/Kas/TransformOps/IteratorDomain.h"
#include "kas/Dialect/Kas/TransformOps/OperatorDomain.h"
#include "kas/Support/Reason.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kas;

//===----------------------------------------------------------------------===//
// Integers that may be parameters
//===----------------------------------------------------------------------===//

/// `%param` or `4`; the attribute is dynamic where there is a parameter.
static ParseResult
parseIntegerOrParam(OpAsmParser &parser,
                    std::optional<OpAsmParser::UnresolvedOperand> &param,
                    IntegerAttr &integer) {
  OpAsmParser::UnresolvedOperand operand;
  OptionalParseResult parsed = parser.parseOptionalOperand(operand);
  int64_t value = ShapedType::kDynamic;
  if (parsed.has_value()) {
    if (failed(*parsed))
      return failure();
    param = operand;
  } else if (parser.parseInteger(value)) {
    return failure();
  }
  integer = parser.getBuilder().getI64IntegerAttr(value);
  return success();
}

static void printIntegerOrParam(OpAsmPrinter &printer, Operation *, Value param,
                                IntegerAttr integer) {
  if (param)
    printer << param;
  else
    printer << integer.getInt();
}

/// The value of `param` if there is one, else `integer`.
static FailureOr<int64_t> getInteger(transform::TransformState &state,
                                     Value param, int64_t integer) {
  if (!param)
    return integer;
  ArrayRef<Attribute> values = state.getParams(param);
  auto value =
      values.size() == 1 ? dyn_cast<IntegerAttr>(values[0]) : IntegerAttr();
  if (!value)
    return failure();
  return value.getInt();
}

//===----------------------------------------------------------------------===//
// Application
//===----------------------------------------------------------------------===//

/// Replaces the operations of `target` one by one by what `transform` makes of
/// them and of the integer; stops at the first one that does not qualify.
/// `transform` takes structured operations and applications of operators.
template <typename TransformFn>
static DiagnosedSilenceableFailure
applyToEach(transform::TransformOpInterface op, Value target, Value param,
            int64_t integer, transform::TransformResults &results,
            transform::TransformState &state, TransformFn transform) {
  FailureOr<int64_t> value = getInteger(state, param, integer);
  // A mistake of the script, not of the payload: no alternative can help.
  if (failed(value))
    return emitDefiniteFailure(op, "requires a parameter with one integer");
  SmallVector<Operation *> transformed;
  for (Operation *payload : llvm::to_vector(state.getPayloadOps(target))) {
    std::string reason =
        "requires a structured operation or 'kas.apply', got '" +
        payload->getName().getStringRef().str() + "'";
    FailureOr<Operation *> replacement = failure();
    auto replace = [&](auto specific) {
      auto made = transform(specific, *value, reason);
      if (succeeded(made))
        replacement = made->getOperation();
    };
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(payload))
      replace(linalgOp);
    else if (auto apply = dyn_cast<ApplyOp>(payload))
      replace(apply);
    if (failed(replacement)) {
      // The interpreter demands a result also where the failure is suppressed.
      results.set(op->getResult(0), ArrayRef<Operation *>());
      DiagnosedSilenceableFailure failure = emitSilenceableFailure(op, reason);
      failure.attachNote(payload->getLoc()) << "target operation";
      return failure;
    }
    transformed.push_back(*replacement);
  }
  results.set(op->getResult(0), transformed);
  return DiagnosedSilenceableFailure::success();
}

/// The iterators that are named or those over the channels.
template <typename OpTy>
static FailureOr<std::pair<int64_t, int64_t>>
findIterators(std::optional<ArrayRef<int64_t>> iterators, OpTy target,
              std::string &reason) {
  if (!iterators)
    return inferChannelIterators(target, reason);
  if (iterators->size() == 2)
    return std::pair((*iterators)[0], (*iterators)[1]);
  return miss(reason, "requires two iterators, got ", iterators->size()); // T2
}

/// The target is replaced, so its handle is consumed.
static void
getNeuralEffects(OpOperand &target, MutableArrayRef<OpOperand> operands,
                 ResultRange results,
                 SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  for (OpOperand &operand : operands)
    if (&operand == &target)
      transform::consumesHandle(operand, effects);
    else
      transform::onlyReadsHandle(operand, effects);
  transform::producesHandle(results, effects);
  transform::modifiesPayload(effects);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

DiagnosedSilenceableFailure
transform::NeuralGroupOp::apply(TransformRewriter &rewriter,
                                TransformResults &results,
                                TransformState &state) {
  return applyToEach(
      *this, getTarget(), getGroups(), getStaticGroups(), results, state,
      [&](auto target, int64_t groups,
          std::string &reason) -> FailureOr<decltype(target)> {
        auto iterators = findIterators(getIterators(), target, reason);
        if (failed(iterators))
          return failure();
        return groupIterators(rewriter, target, iterators->first,
                              iterators->second, groups, reason);
      });
}

DiagnosedSilenceableFailure
transform::NeuralDepthwiseOp::apply(TransformRewriter &rewriter,
                                    TransformResults &results,
                                    TransformState &state) {
  return applyToEach(
      *this, getTarget(), /*param=*/nullptr, /*integer=*/0, results, state,
      [&](auto target, int64_t,
          std::string &reason) -> FailureOr<decltype(target)> {
        auto iterators = findIterators(getIterators(), target, reason);
        if (failed(iterators))
          return failure();
        return depthwiseIterators(rewriter, target, iterators->first,
                                  iterators->second, reason);
      });
}

DiagnosedSilenceableFailure
transform::NeuralBottleneckOp::apply(TransformRewriter &rewriter,
                                     TransformResults &results,
                                     TransformState &state) {
  return applyToEach(*this, getTarget(), getFactor(), getStaticFactor(),
                     results, state,
                     [&](auto target, int64_t factor, std::string &reason) {
                       return bottleneckIterator(rewriter, target,
                                                 getIterator(), factor, reason);
                     });
}

DiagnosedSilenceableFailure
transform::NeuralRestrictOp::apply(TransformRewriter &rewriter,
                                   TransformResults &results,
                                   TransformState &state) {
  return applyToEach(*this, getTarget(), getOffset(), getStaticOffset(),
                     results, state,
                     [&](auto target, int64_t offset, std::string &reason) {
                       return restrictReduction(rewriter, target, getIterator(),
                                                offset, reason);
                     });
}

DiagnosedSilenceableFailure
transform::NeuralSlabsOp::apply(TransformRewriter &rewriter,
                                TransformResults &results,
                                TransformState &state) {
  return applyToEach(
      *this, getTarget(), getCount(), getStaticCount(), results, state,
      [&](auto target, int64_t count, std::string &reason) {
        return splitIntoSlabs(rewriter, target, getIterator(), count, reason);
      });
}

DiagnosedSilenceableFailure
transform::NeuralNewWeightsOp::apply(TransformRewriter &rewriter,
                                     TransformResults &results,
                                     TransformState &state) {
  return applyToEach(*this, getTarget(), /*param=*/nullptr, /*integer=*/0,
                     results, state,
                     [&](auto target, int64_t,
                         std::string &reason) -> FailureOr<decltype(target)> {
                       if (failed(renewWeights(rewriter, target, reason)))
                         return failure();
                       return target;
                     });
}

//===----------------------------------------------------------------------===//
// Effects: the target is consumed, parameters are read
//===----------------------------------------------------------------------===//

#define KAS_NEURAL_EFFECTS(OP)                                                 \
  void transform::OP::getEffects(                                              \
      SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {               \
    getNeuralEffects(getTargetMutable(), getOperation()->getOpOperands(),      \
                     getOperation()->getResults(), effects);                   \
  }
KAS_NEURAL_EFFECTS(NeuralGroupOp)
KAS_NEURAL_EFFECTS(NeuralDepthwiseOp)
KAS_NEURAL_EFFECTS(NeuralBottleneckOp)
KAS_NEURAL_EFFECTS(NeuralRestrictOp)
KAS_NEURAL_EFFECTS(NeuralSlabsOp)
KAS_NEURAL_EFFECTS(NeuralNewWeightsOp)
#undef KAS_NEURAL_EFFECTS

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

#define GET_OP_CLASSES
#include "kas/Dialect/Kas/TransformOps/KasTransformOps.cpp.inc"

namespace {

class KasTransformDialectExtension
    : public transform::TransformDialectExtension<
          KasTransformDialectExtension> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(KasTransformDialectExtension)

  using Base::Base;

  void init() {
    // Dialects that the transformations make ops of.
    declareGeneratedDialect<func::FuncDialect>();
    declareGeneratedDialect<KasDialect>();
    declareGeneratedDialect<linalg::LinalgDialect>();
    declareGeneratedDialect<tensor::TensorDialect>();
    registerTransformOps<
#define GET_OP_LIST
#include "kas/Dialect/Kas/TransformOps/KasTransformOps.cpp.inc"
        >();
  }
};

} // namespace

void kas::registerTransformDialectExtension(DialectRegistry &registry) {
  registry.addExtensions<KasTransformDialectExtension>();
}
