//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Features.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace kas;
using namespace mlir;

namespace {

class FeatureFinder {
public:
  FeatureFinder(OperatorOp op, const Binding &binding)
      : op(op), symbols(op.getSymbolSet()), binding(binding) {}

  std::set<std::string> run() {
    for (auto primitive : op.getBody().getOps<PrimitiveOpInterface>())
      addPrimitive(primitive);
    addTensors();
    addSizes();
    return features;
  }

private:
  void add(bool holds, const Twine &feature) {
    if (holds)
      features.insert(feature.str());
  }

  static std::string getName(Operation *primitive) {
    return primitive->getName().stripDialect().str();
  }

  int64_t valueOf(SizeAttr size) { return *evaluate(size, symbols, binding); }

  void addPrimitive(Operation *primitive) {
    std::string name = getName(primitive);
    add(true, name);
    for (Value operand : primitive->getOperands())
      add(operand.getDefiningOp(),
          name + "(" +
              (operand.getDefiningOp() ? getName(operand.getDefiningOp())
                                       : std::string()) +
              ")");
    if (auto reduce = dyn_cast<ReduceOp>(primitive))
      add(true, "reduce " + stringifyReduceKind(reduce.getKind()));
    if (auto shift = dyn_cast<ShiftOp>(primitive))
      add(int64_t(shift.getAmount()) < 0, "negative shift");
    if (auto unfold = dyn_cast<UnfoldOp>(primitive))
      addUnfold(unfold);
  }

  void addUnfold(UnfoldOp unfold) {
    Attribute low = unfold.getLowAttr();
    int64_t window = valueOf(getSize(unfold.getWindow()));
    add(!low, "default low");
    add(isa_and_nonnull<IntegerAttr>(low), "integer low");
    add(isa_and_nonnull<SizeAttr>(low), "symbolic low");
    add(window % 2 == 0, "even window");
    add(window > valueOf(getSize(unfold.getCoord())), "wide window");
    Operation *user = *unfold.getResult().user_begin();
    auto yield = dyn_cast<YieldOp>(user);
    add(yield && !llvm::is_contained(yield.getData(), unfold.getResult()),
        "unfold in a weight");
  }

  void addTensors() {
    YieldOp yield = op.getYield();
    add(true, Twine(op.getNumWeights()) + " weights");
    add(op.getOutputs().empty(), "rank 0 output");
    add(op.getOutputs().size() >= 3, "rank 3 output");
    add(llvm::hasSingleElement(yield.getData()), "rank 1 data");
    for (OperandRange weight : yield.getWeights()) {
      llvm::SmallPtrSet<Value, 8> shared;
      for (Value coordinate : weight) {
        auto share = coordinate.getDefiningOp<ShareOp>();
        add(!share || share.getWeight() != coordinate, "direct weight");
        add(coordinate.getDefiningOp<ReduceOp>(), "reduction only in a weight");
        while (share && share.getCoord().getDefiningOp<ShareOp>())
          share = share.getCoord().getDefiningOp<ShareOp>();
        add(share && !shared.insert(share.getCoord()).second, "diagonal");
      }
    }
    SmallVector<ReduceOp> reductions = getReductions(op);
    for (auto [outer, inner] :
         llvm::zip(reductions, llvm::drop_begin(reductions)))
      add(outer.getKind() != inner.getKind(),
          stringifyReduceKind(outer.getKind()) + " of " +
              stringifyReduceKind(inner.getKind()));
    size_t numPrimitives =
        llvm::range_size(op.getBody().front().without_terminator());
    add(numPrimitives >= 10, "10 primitives");
    add(numPrimitives == 14, "14 primitives");
    add(numPrimitives > 14, "too many primitives");
    add(op.getNumWeights() > 3, "too many weights");
  }

  void addSizes() {
    auto addSize = [&](SizeAttr size) {
      add(valueOf(size) == 1, "size 1");
      add(size.getConstantValue().has_value(), "constant size");
      Size value = *size.toSize(symbols);
      for (unsigned i = 0; i < symbols.size(); ++i)
        add(value.getExponent(i) < 0, "coefficient in a denominator");
      add(!value.hasIntegerConstant(), "fraction");
    };
    for (SizeAttr size : op.getOutputSizes())
      addSize(size);
    for (auto primitive : op.getBody().getOps<PrimitiveOpInterface>())
      for (Value result : primitive->getResults())
        addSize(getSize(result));
  }

  OperatorOp op;
  SymbolSet symbols;
  const Binding &binding;
  std::set<std::string> features;
};

} // namespace

std::set<std::string> kas::test::getFeatures(OperatorOp op,
                                             const Binding &binding) {
  return FeatureFinder(op, binding).run();
}
