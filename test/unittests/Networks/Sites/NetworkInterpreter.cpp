//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NetworkInterpreter.h"
#include "Properties.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::reference;
using namespace kas::test;
using namespace mlir;

namespace {

using Values = std::vector<float>;

/// The body of an op of linalg at one point: scalars in numbered places.
class ScalarBody {
public:
  explicit ScalarBody(Block &block) {
    for (BlockArgument argument : block.getArguments())
      getPlace(argument);
    for (Operation &op : block) {
      Step step{&op, {}, 0};
      for (Value operand : op.getOperands())
        step.operands.push_back(getPlace(operand));
      if (op.getNumResults() == 1)
        step.result = getPlace(op.getResult(0));
      steps.push_back(step);
    }
  }

  /// Scalars by place; the first ones are the arguments.
  std::vector<double> makeScalars() const { return scalars; }

  double run(std::vector<double> &at) const {
    for (const Step &step : steps) {
      auto get = [&](unsigned index) { return at[step.operands[index]]; };
      if (isa<arith::AddFOp>(step.op))
        at[step.result] = get(0) + get(1);
      else if (isa<arith::MulFOp>(step.op))
        at[step.result] = get(0) * get(1);
      else if (isa<arith::DivFOp>(step.op))
        at[step.result] = get(0) / get(1);
      else if (isa<arith::MaximumFOp>(step.op))
        at[step.result] = std::max(get(0), get(1));
      else if (isa<arith::CmpFOp>(step.op))
        at[step.result] = !(get(0) <= get(1));
      else if (isa<arith::SelectOp>(step.op))
        at[step.result] = get(0) != 0 ? get(1) : get(2);
      else if (isa<linalg::YieldOp>(step.op))
        return get(0);
    }
    return 0;
  }

  /// What cannot be interpreted; empty when all can.
  std::string getUnknown() const {
    for (const Step &step : steps) {
      auto compare = dyn_cast<arith::CmpFOp>(step.op);
      bool isKnown =
          compare ? compare.getPredicate() == arith::CmpFPredicate::UGT
                  : isa<arith::AddFOp, arith::MulFOp, arith::DivFOp,
                        arith::MaximumFOp, arith::SelectOp, linalg::YieldOp>(
                        step.op);
      if (!isKnown)
        return print(step.op);
    }
    return "";
  }

private:
  struct Step {
    Operation *op;
    SmallVector<unsigned, 3> operands;
    unsigned result;
  };

  unsigned getPlace(Value value) {
    auto [found, isNew] = places.try_emplace(value, scalars.size());
    if (isNew) {
      auto constant = value.getDefiningOp<arith::ConstantFloatOp>();
      scalars.push_back(constant ? constant.value().convertToDouble() : 0);
    }
    return found->second;
  }

  DenseMap<Value, unsigned> places;
  std::vector<double> scalars;
  std::vector<Step> steps;
};

/// Runs a function of linalg and tensor ops on batches of one; marked
/// convolutions compute `kernel`.
class NetworkInterpreter {
public:
  /// Without a kernel, marked convolutions give zeros.
  NetworkInterpreter(func::FuncOp function, KernelOp kernel,
                     const Arguments &arguments, StepPrecision precision)
      : function(function), kernel(kernel), arguments(arguments),
        precision(precision) {}

  /// Empty, with a failure of the test, when something is not known.
  Values run() {
    for (auto [index, value] : llvm::enumerate(function.getArguments())) {
      auto name = function.getArgAttrOfType<StringAttr>(index, "kas.name");
      auto found = arguments.find(name.str());
      // The weights of marked convolutions are gone.
      if (found != arguments.end())
        tensors[value] = Values(found->second);
    }
    for (Operation &op : function.getBody().front()) {
      if (isa<func::ReturnOp>(op))
        return tensors[op.getOperand(0)];
      if (!runOp(op)) {
        ADD_FAILURE() << "cannot interpret " << print(&op);
        break;
      }
    }
    return {};
  }

private:
  static int64_t getNumElements(Value value) {
    return cast<RankedTensorType>(value.getType()).getNumElements();
  }

  bool runOp(Operation &op) {
    if (isa<arith::ConstantOp>(op))
      return true;
    Values &result = tensors[op.getResult(0)];
    if (isa<tensor::EmptyOp>(op)) {
      result.assign(getNumElements(op.getResult(0)), 0);
      return true;
    }
    if (isa<tensor::CollapseShapeOp>(op)) {
      result = Values(tensors[op.getOperand(0)]);
      return true;
    }
    if (auto pad = dyn_cast<tensor::PadOp>(op))
      return runPad(pad, result);
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    if (!linalgOp)
      return false;
    Values computed = op.hasAttr("kas.site")
                          ? runSite(cast<linalg::Conv2DNchwFchwOp>(op))
                          : runLinalg(linalgOp);
    tensors[op.getResult(0)] = std::move(computed);
    return !tensors[op.getResult(0)].empty();
  }

  /// A number around images.
  bool runPad(tensor::PadOp pad, Values &result) {
    auto from = pad.getSourceType(), to = pad.getResultType();
    ArrayRef<int64_t> low = pad.getStaticLow();
    if (from.getRank() != 4 || low[0] != 0 || low[1] != 0)
      return false;
    auto number =
        pad.getConstantPaddingValue().getDefiningOp<arith::ConstantFloatOp>();
    result.assign(to.getNumElements(), number.value().convertToFloat());
    const Values &source = tensors[pad.getSource()];
    for (int64_t c = 0; c < from.getDimSize(1); ++c)
      for (int64_t h = 0; h < from.getDimSize(2); ++h)
        for (int64_t w = 0; w < from.getDimSize(3); ++w)
          result[(c * to.getDimSize(2) + h + low[2]) * to.getDimSize(3) + w +
                 low[3]] =
              source[(c * from.getDimSize(2) + h) * from.getDimSize(3) + w];
    return true;
  }

  /// The kernel on what was there before the padding; then what the result
  /// started from, a bias.
  Values runSite(linalg::Conv2DNchwFchwOp op) {
    const Values &start = tensors[op.getOutputs()[0]];
    ++numSites;
    if (!kernel)
      return start;
    Layer layer = getLayer(op, kernel);
    Value image = getData(op);
    std::vector<ArrayRef<float>> weights = getWeights(layer.name, arguments);
    EXPECT_FALSE(weights.empty()) << layer.name;
    Values result =
        evaluateSite(kernel, layer, tensors[image], weights, precision);
    for (auto [value, bias] : llvm::zip_equal(result, start))
      value += bias;
    return result;
  }

  /// At every point of the loops, in order.
  Values runLinalg(linalg::LinalgOp op) {
    ScalarBody body(*op.getBlock());
    if (!body.getUnknown().empty())
      return {};
    SmallVector<int64_t> ranges = op.getStaticLoopRanges();
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    std::vector<Operand> operands;
    std::vector<double> scalars = body.makeScalars();
    Values result = tensors[op.getDpsInits()[0]];
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      auto type = dyn_cast<RankedTensorType>(operand.getType());
      if (!type) {
        scalars[index] = operand.getDefiningOp<arith::ConstantFloatOp>()
                             .value()
                             .convertToDouble();
        continue;
      }
      bool isResult = index + 1 == op->getNumOperands();
      operands.push_back({static_cast<unsigned>(index),
                          isResult ? &result : &tensors[operand],
                          getSteps(maps[index], type, ranges.size()), 0});
    }
    SmallVector<int64_t> point(ranges.size(), 0);
    while (true) {
      for (Operand &operand : operands)
        scalars[operand.place] = (*operand.values)[operand.offset];
      result[operands.back().offset] = static_cast<float>(body.run(scalars));
      unsigned dim = ranges.size();
      while (dim > 0) {
        --dim;
        bool wraps = ++point[dim] == ranges[dim];
        for (Operand &operand : operands)
          operand.offset +=
              operand.steps[dim] * (wraps ? 1 - ranges[dim] : int64_t(1));
        if (!wraps)
          break;
        point[dim] = 0;
        if (dim == 0)
          return result;
      }
    }
  }

  struct Operand {
    unsigned place;
    Values *values;
    /// By loop: how far its next point is.
    SmallVector<int64_t> steps;
    int64_t offset;
  };

  static SmallVector<int64_t> getSteps(AffineMap map, RankedTensorType type,
                                       unsigned numLoops) {
    SmallVector<int64_t> steps;
    for (unsigned loop = 0; loop < numLoops; ++loop) {
      SmallVector<int64_t> unit(numLoops, 0);
      unit[loop] = 1;
      int64_t offset = 0;
      for (auto [dim, index] : llvm::enumerate(map.compose(unit)))
        offset = offset * type.getDimSize(dim) + index;
      steps.push_back(offset);
    }
    return steps;
  }

  func::FuncOp function;
  KernelOp kernel;
  const Arguments &arguments;
  StepPrecision precision;
  DenseMap<Value, Values> tensors;

public:
  unsigned numSites = 0;
};

} // namespace

std::vector<float> kas::test::interpretNetwork(func::FuncOp function,
                                               KernelOp kernel,
                                               const Arguments &arguments,
                                               unsigned numSites,
                                               StepPrecision precision) {
  NetworkInterpreter interpreter(function, kernel, arguments, precision);
  Values output = interpreter.run();
  EXPECT_EQ(interpreter.numSites, numSites);
  return output;
}
