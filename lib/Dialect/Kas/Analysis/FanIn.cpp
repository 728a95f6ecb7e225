//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fan-in that an operator's weights are initialized by, after He et al.,
// "Delving Deep into Rectifiers", ICCV 2015.
// The definition, and why neighbours count as correlated, is in
// kas/Dialect/Kas/Analysis/FanIn.h.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Analysis/FanIn.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace mlir;
using namespace kas;

using ReductionSet = llvm::SmallSetVector<Operation *, 4>;

/// Adds the reductions, but for maxima, that `coordinate` depends on.
/// Recursive over the primitives, which are few.
static void collectReductions(Value coordinate, ReductionSet &reductions) {
  Operation *op = coordinate.getDefiningOp();
  if (!op)
    return;
  auto reduce = dyn_cast<ReduceOp>(op);
  if (reduce && reduce.getKind() != ReduceKind::Max)
    reductions.insert(op);
  for (Value operand : op->getOperands())
    collectReductions(operand, reductions);
}

/// What `kas.share` has made `coordinate` from.
static Value getShared(Value coordinate) {
  while (auto share = coordinate.getDefiningOp<ShareOp>())
    coordinate = share->getOperand(0);
  return coordinate;
}

double kas::getFanIn(OperatorOp op, const Binding &binding) {
  SymbolSet symbols = op.getSymbolSet();
  auto getValue = [&](SizeAttr size) -> double {
    return kas::evaluate(size, symbols, binding).value_or(1);
  };
  // Doubles: a fan-in is an estimate, and cannot overflow.
  double terms = 1, means = 1;
  for (ReduceOp reduce : getReductions(op)) {
    if (reduce.getKind() != ReduceKind::Max)
      terms *= getValue(reduce.getSize());
    if (reduce.getKind() == ReduceKind::Mean)
      means *= getValue(reduce.getSize());
  }
  llvm::SmallSetVector<Value, 8> coordinates;
  for (OperandRange weight : op.getYield().getWeights())
    for (Value coordinate : weight)
      coordinates.insert(getShared(coordinate));
  double products = 1;
  for (Value coordinate : coordinates) {
    ReductionSet reductions;
    collectReductions(coordinate, reductions);
    double reached = 1;
    for (Operation *reduce : reductions)
      reached *= getValue(cast<ReduceOp>(reduce).getSize());
    // A coordinate takes no more values than it has, nor than the reductions
    // below it have points.
    products *= std::min(reached, getValue(getSize(coordinate)));
  }
  // Two coordinates of one reduction are counted twice above.
  products = std::min(products, terms);
  // W * (T / W)^2 = T^2 / W.
  return terms * terms / products / (means * means);
}

/// `kaiming(F)` has the variance 2 / F: n weights with (2 / F)^(1/n) each.
std::string kas::getWeightInitializer(OperatorOp op, const Binding &binding) {
  double fanIn = 2 * std::pow(getFanIn(op, binding) / 2,
                              1.0 / std::max(op.getNumWeights(), 1u));
  std::string text;
  llvm::raw_string_ostream(text)
      << "kaiming(" << llvm::format("%.6g", fanIn) << ")";
  return text;
}
