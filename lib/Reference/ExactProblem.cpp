//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The facts about an operator or function that exact checks need: degrees,
// numbers of terms, divisors and maxima of its results.
//
// An operator is of degree 1 in each of its tensors; degrees, numbers of terms
// and divisors of a function follow operator by operator
// (docs/internals/testing.md, "Exact checks").
//
//===----------------------------------------------------------------------===//

#include "kas/Reference/ExactProblem.h"
#include "kas/Dialect/Kas/Transforms/RFactor.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/Reference/Evaluator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/MapVector.h"
#include <memory>
#include <numeric>

using namespace mlir;
using namespace kas;
using namespace kas::reference;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

unsigned ExactProblem::getDegree() const {
  unsigned degree = 0;
  for (const Input &input : inputs)
    degree += input.degree;
  return degree;
}

double ExactProblem::getDivisor() const {
  double divisor = 1;
  for (const Result &result : results)
    divisor = std::max(divisor, result.divisor);
  return divisor;
}

/// `inputs` are the data and the weights, in the order of the operands of
/// `kas.apply`.
static Error evaluate(OperatorOp op, ArrayRef<TensorValues> inputs,
                      TensorValues &result) {
  OperatorShapes shapes = getShapes(op);
  SmallVector<ReferenceTensor> weights;
  for (auto [shape, values] :
       llvm::zip_equal(shapes.weights, inputs.drop_front()))
    weights.push_back({shape, values});
  result.resize(*getNumElements(shapes.output));
  if (succeeded(evaluateOperator(op, {shapes.data, inputs.front()}, weights,
                                 result, [&] { return op.emitError(); })))
    return Error::success();
  return createStringError("the reference cannot evaluate operator '" +
                           op.getSymName() + "'");
}

ExactProblem kas::reference::getExactProblem(OperatorOp op) {
  OperatorShapes shapes = getShapes(op);
  ExactProblem problem;
  problem.inputs.push_back({"data", shapes.data, 1});
  for (auto [index, shape] : llvm::enumerate(shapes.weights))
    problem.inputs.push_back({"weight" + std::to_string(index), shape, 1});
  double divisor = 1;
  for (ReduceOp reduce : getReductions(op)) {
    auto size = static_cast<double>(getConcreteSize(reduce.getResult()));
    // A maximum adds no terms to a sum; it multiplies the values to choose
    // from.
    if (reduce.getKind() == ReduceKind::Max)
      problem.maximumSize *= size;
    else
      problem.numTerms *= size;
    if (reduce.getKind() == ReduceKind::Mean && size > 1) {
      divisor *= size;
      // A factor is rounded, and so is its product.
      problem.numScalings += 2;
    }
  }
  problem.results.push_back({shapes.output, divisor});
  // With two weights or more code generation may multiply weights first, or
  // store a partial sum.
  problem.hasIntermediates =
      shapes.weights.size() > 1 || planStages(op).stages.size() > 1;
  problem.evaluate = [op](ArrayRef<TensorValues> inputs,
                          MutableArrayRef<TensorValues> results) {
    return ::evaluate(op, inputs, results.front());
  };
  return problem;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

namespace {
/// What is known of one value of a function, as a polynomial in its arguments.
struct ValueBounds {
  /// In each argument of the function.
  SmallVector<unsigned> degrees;
  /// As in `ExactProblem`, of this value alone.
  double numTerms = 1, divisor = 1;
  unsigned numScalings = 0;
};

/// A function that applies operators, with its module.
/// Owns a clone, since specialization rewrites it and the closure of a problem
/// may outlive the caller's module.
struct AppliedFunction {
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;

  Error evaluate(ArrayRef<TensorValues> inputs,
                 MutableArrayRef<TensorValues> results) const;
};
} // namespace

Error AppliedFunction::evaluate(ArrayRef<TensorValues> inputs,
                                MutableArrayRef<TensorValues> results) const {
  func::FuncOp called = function;
  llvm::MapVector<Value, TensorValues> values;
  for (auto [argument, input] : llvm::zip_equal(called.getArguments(), inputs))
    values[argument] = input;
  Block &body = called.getBody().front();
  // Program order; `checkFunction` has let nothing else through.
  for (auto apply : body.getOps<ApplyOp>()) {
    std::vector<TensorValues> operands;
    for (Value operand : apply->getOperands())
      operands.push_back(values[operand]);
    TensorValues result;
    if (Error error = ::evaluate(apply.getOperator(), operands, result))
      return error;
    values[apply.getResult()] = std::move(result);
  }
  for (auto [result, value] :
       llvm::zip_equal(results, body.getTerminator()->getOperands()))
    result = values[value];
  return Error::success();
}

static Error checkType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (tensor && tensor.hasStaticShape() && tensor.getElementType().isF32())
    return Error::success();
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return createStringError(
      "an exact check requires static tensors of f32, got '" + text + "'");
}

/// Functions on static tensors of f32 that apply operators, nothing else.
static Error checkFunction(func::FuncOp function) {
  if (function.isExternal())
    return createStringError("an exact check requires a function with a body, "
                             "got '" +
                             function.getSymName() + "' without one");
  for (Type type : function.getFunctionType().getInputs())
    if (Error error = checkType(type))
      return error;
  for (Operation &op : function.getBody().front().without_terminator()) {
    if (!isa<ApplyOp>(op))
      return createStringError("an exact check requires a function of "
                               "'kas.apply' alone, got '" +
                               op.getName().getStringRef() + "'");
    if (Error error = checkType(op.getResult(0).getType()))
      return error;
  }
  return Error::success();
}

/// Degrees add up and numbers of terms multiply, operand by operand.
static ValueBounds
getBounds(ApplyOp apply, const ExactProblem &alone,
          const llvm::MapVector<Value, ValueBounds> &bounds) {
  ValueBounds result;
  result.numTerms = alone.numTerms;
  result.divisor = alone.getDivisor();
  result.numScalings = alone.numScalings;
  for (Value operand : apply->getOperands()) {
    const ValueBounds &other = bounds.find(operand)->second;
    result.degrees.resize(other.degrees.size());
    for (auto [degree, added] : llvm::zip_equal(result.degrees, other.degrees))
      degree += added;
    // Each term is a product of one element of each operand, which are sums of
    // terms themselves.
    result.numTerms *= other.numTerms;
    result.divisor *= other.divisor;
    result.numScalings += other.numScalings;
  }
  return result;
}

/// Fills in all but `evaluate`.
/// The largest degree, number of terms and of scalings over all results: one
/// choice of magnitudes has to suit them all.
static void describe(func::FuncOp function, ExactProblem &problem) {
  llvm::MapVector<Value, ValueBounds> bounds;
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto name = function.getArgAttrOfType<StringAttr>(
        index, KasDialect::argumentNameAttrName);
    problem.inputs.push_back(
        {name ? name.str() : "arg" + std::to_string(index),
         llvm::to_vector(cast<ShapedType>(argument.getType()).getShape())});
    bounds[argument].degrees.resize(function.getNumArguments());
    bounds[argument].degrees[index] = 1;
  }
  Block &body = function.getBody().front();
  unsigned numApplies = 0;
  for (auto apply : body.getOps<ApplyOp>()) {
    ExactProblem alone = getExactProblem(apply.getOperator());
    bounds[apply.getResult()] = getBounds(apply, alone, bounds);
    problem.maximumSize *= alone.maximumSize;
    problem.hasIntermediates |= alone.hasIntermediates || ++numApplies > 1;
  }
  for (Value value : body.getTerminator()->getOperands()) {
    const ValueBounds &result = bounds.find(value)->second;
    problem.results.push_back(
        {llvm::to_vector(cast<ShapedType>(value.getType()).getShape()),
         result.divisor});
    problem.numTerms = std::max(problem.numTerms, result.numTerms);
    problem.numScalings = std::max(problem.numScalings, result.numScalings);
    for (auto [input, degree] : llvm::zip_equal(problem.inputs, result.degrees))
      input.degree = std::max(input.degree, degree);
  }
}

Expected<ExactProblem> kas::reference::getExactProblem(ModuleOp module,
                                                       StringRef name) {
  auto applied = std::make_shared<AppliedFunction>();
  applied->module = module.clone();
  applied->function = applied->module->lookupSymbol<func::FuncOp>(name);
  if (!applied->function)
    return createStringError("no function '" + name + "' in the module");
  if (Error error = checkFunction(applied->function))
    return error;
  // The reference takes concrete operators only.
  if (failed(specializeApplies(applied->module.get())))
    return createStringError("the operators of function '" + name +
                             "' have no concrete form");
  ExactProblem problem;
  describe(applied->function, problem);
  problem.evaluate = [applied](ArrayRef<TensorValues> inputs,
                               MutableArrayRef<TensorValues> results) {
    return applied->evaluate(inputs, results);
  };
  return problem;
}
