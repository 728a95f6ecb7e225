//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `kas.dag.apply`: a coordinate-level operator as a step of a kernel.
//
// The op gives each symbol of the operator a size over the symbols of the
// kernel, such as `<Cin = C*G, k = 3>`; shapes and costs of the operator are
// translated by it (docs/reference/tensor-level.md, D16 to D18).
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/IR/KasDag.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace kas;
using namespace kas::solver;

//===----------------------------------------------------------------------===//
// Sizes of the operator in those of the kernel
//===----------------------------------------------------------------------===//

OperatorOp DagApplyOp::getOperator() {
  return SymbolTable::lookupNearestSymbolFrom<OperatorOp>(*this,
                                                          getCalleeAttr());
}

/// The size that `name` gets, or null.
static SizeAttr lookup(DagApplyOp op, StringRef name) {
  for (auto [symbol, size] : llvm::zip(op.getSymbols().getAsRange<StringAttr>(),
                                       op.getSizes().getAsRange<SizeAttr>()))
    if (symbol.getValue() == name)
      return size;
  return {};
}

/// Substitutes all symbols at once; null when a symbol has no size or the
/// result does not fit.
SizeAttr DagApplyOp::translate(SizeAttr size) {
  const Size &value = size.getValue();
  SizeAttr result = SizeAttr::getConstant(getContext(), value.getNumerator());
  // Multiplies `result` by a power of `factor`.
  auto apply = [&](SizeAttr factor, int exponent) {
    for (; factor && result && exponent != 0; exponent += exponent > 0 ? -1 : 1)
      result = exponent > 0 ? result.multiply(factor) : result.divide(factor);
    if (!factor)
      result = {};
  };
  apply(SizeAttr::getConstant(getContext(), value.getDenominator()), -1);
  for (auto [index, name] : llvm::enumerate(size.getNames()))
    apply(lookup(*this, name.getValue()), value.getExponent(index));
  return result;
}

/// The operator's binding at one binding of the kernel; nothing when a size is
/// no integer there (D16).
std::optional<Binding> DagApplyOp::getBinding(OperatorOp op,
                                              const SymbolSet &symbols,
                                              const Binding &binding) {
  SymbolSet inner = op.getSymbolSet();
  Binding values;
  for (unsigned index = 0; index < inner.size(); ++index) {
    SizeAttr size = lookup(*this, inner.getName(index));
    std::optional<int64_t> value =
        size ? kas::evaluate(size, symbols, binding) : std::nullopt;
    if (!value)
      return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

/// All of them must be integers (K3), whether or not a dimension has them.
SmallVector<SizeAttr> DagApplyOp::getImpliedSizes() {
  return llvm::to_vector(getSizes().getAsRange<SizeAttr>());
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

/// The product of sizes of the operator.
/// A size that does not fit is null in the product; `verifyFits` reports it.
static SizeProduct translateProduct(DagApplyOp op, int64_t factor,
                                    ArrayRef<SizeAttr> sizes) {
  SizeProduct product{factor, {}};
  for (SizeAttr size : sizes)
    product.sizes.push_back(op.translate(size));
  return product;
}

SmallVector<SizeProduct> DagApplyOp::getFlops() {
  OperatorOp op = getOperator();
  if (!op)
    return {};
  SmallVector<SizeAttr> space = op.getOutputSizes();
  SmallVector<ReduceOp> reductions = getReductions(op);
  for (ReduceOp reduce : reductions)
    space.push_back(reduce.getSize());
  // Multiply-adds: one per weight beyond the data. Of a sum without weights the
  // additions count, of a view nothing.
  int64_t perIteration = op.getNumWeights();
  if (perIteration == 0)
    perIteration = reductions.empty() ? 0 : 1;
  if (perIteration == 0)
    return {};
  return {translateProduct(*this, 2 * perIteration, space)};
}

SmallVector<SizeProduct> DagApplyOp::getParams() {
  SmallVector<SizeProduct> products;
  if (OperatorOp op = getOperator())
    for (ArrayRef<SizeAttr> weight : op.getWeightSizes())
      products.push_back(translateProduct(*this, 1, weight));
  return products;
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

LogicalResult DagApplyOp::verify() {
  // D16, as far as the op itself tells.
  if (getSymbols().size() != getSizes().size())
    return emitOpError("requires a size for each symbol (D16), got ")
           << getSizes().size();
  llvm::SmallSet<StringRef, 8> seen;
  for (auto name : getSymbols().getAsRange<StringAttr>())
    if (!seen.insert(name.getValue()).second)
      return emitOpError("requires one size for each symbol (D16), got '")
             << name.getValue() << "' twice";
  return success();
}

/// D16: each symbol has a size, and no other has one.
static LogicalResult verifySymbols(DagApplyOp op, const SymbolSet &symbols) {
  for (auto name : op.getSymbols().getAsRange<StringAttr>())
    if (!symbols.lookup(name.getValue()))
      return op.emitOpError("requires symbols of operator '@")
             << op.getCallee() << "' (D16), got '" << name.getValue() << "'";
  for (unsigned index = 0; index < symbols.size(); ++index)
    if (!lookup(op, symbols.getName(index)))
      return op.emitOpError("requires a size for symbol '")
             << symbols.getName(index) << "' of operator '@" << op.getCallee()
             << "' (D16), got none";
  return success();
}

/// D17
static LogicalResult verifyShape(DagApplyOp op, ArrayRef<SizeAttr> sizes,
                                 Type type, StringRef what) {
  SmallVector<SizeAttr> actual;
  for (SizeAttr size : sizes) {
    actual.push_back(op.translate(size));
    if (!actual.back())
      return op.emitOpError(
          "requires a size whose exponents and constant fit (K3)");
  }
  ArrayRef<SizeAttr> wanted = cast<SymbolicTensorType>(type).getDims();
  ArrayRef<SizeAttr> front(actual);
  // Leading sizes of 1 are the batch, which tensors of a kernel do not have.
  while (front.size() > wanted.size() && front[0].getConstantValue() == 1)
    front = front.drop_front();
  if (front == wanted)
    return success();
  InFlightDiagnostic diagnostic = op.emitOpError("requires the sizes of the ")
                                  << what << " of operator '@" << op.getCallee()
                                  << "' (D17), [";
  llvm::interleaveComma(actual, diagnostic);
  return diagnostic << "], got " << type;
}

/// K3: every size of a cost fits.
static LogicalResult verifyFits(DagApplyOp op) {
  for (const SmallVector<SizeProduct> &products :
       {op.getFlops(), op.getParams()})
    for (const SizeProduct &product : products)
      if (llvm::is_contained(product.sizes, SizeAttr()))
        return op.emitOpError(
            "requires a size whose exponents and constant fit (K3)");
  return success();
}

/// D18
static LogicalResult verifySizes(DagApplyOp op, OperatorOp callee) {
  auto kernel = op->getParentOfType<KernelOp>();
  SymbolSet symbols = kernel.getSymbolSet();
  SizeRules rules = getSizeRules(kernel);
  auto emitError = [&] {
    return op.emitOpError("requires a legal operator (D18): ");
  };
  // With bindings numbers decide, and the operator's own verifier is exact.
  if (kernel.isSolved()) {
    for (const Binding &binding : rules.bindings) {
      // Sizes that are no integers are for K3 to report.
      std::optional<Binding> values = op.getBinding(callee, symbols, binding);
      if (values && failed(verifyBinding(callee, *values, emitError)))
        return failure();
    }
    if (!rules.bindings.empty())
      return success();
  }
  // Without, the facts of the kernel have to prove that sizes are integers.
  for (const SizeProduct &weight : op.getParams())
    for (SizeAttr size : weight.sizes)
      if (!rules.isLegal(*size.toSize(symbols)))
        return op.emitOpError("requires sizes of weights that are integers "
                              "(D18), got ")
               << size;
  return success();
}

LogicalResult DagApplyOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  // D16
  auto callee =
      symbolTable.lookupNearestSymbolFrom<OperatorOp>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError("requires a kas.operator (D16), got '@")
           << getCallee() << "'";
  if (failed(verifySymbols(*this, callee.getSymbolSet())) ||
      failed(verifyShape(*this, callee.getDataSizes(), getInput().getType(),
                         "data")) ||
      failed(verifyShape(*this, callee.getOutputSizes(), getResult().getType(),
                         "output")) ||
      failed(verifyFits(*this)))
    return failure();
  return verifySizes(*this, callee);
}
