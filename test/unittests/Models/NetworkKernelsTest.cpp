//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A whole ResNet-18 with a sampled kernel in every convolution but the stem,
// compiled and run, against an interpreter of the network that evaluates the
// kernels with the reference evaluator, in double precision elsewhere.
//
//===----------------------------------------------------------------------===//

#include "Properties.h"
#include "SiteReference.h"
#include "kas/InitAll.h"
#include "kas/Models/KernelSites.h"
#include "kas/Pipelines/CPU.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "gtest/gtest.h"
#include <map>

using namespace kas;
using namespace kas::test;
using namespace mlir;

namespace {

using Values = std::vector<float>;
using Arguments = std::map<std::string, ArrayRef<float>>;

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
      bool isKnown = compare
                         ? compare.getPredicate() == arith::CmpFPredicate::UGT
                         : isa<arith::AddFOp, arith::MulFOp, arith::DivFOp,
                               arith::SelectOp, linalg::YieldOp>(step.op);
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
                     const Arguments &arguments)
      : function(function), kernel(kernel), arguments(arguments) {}

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

  /// Zeros around images.
  bool runPad(tensor::PadOp pad, Values &result) {
    auto from = pad.getSourceType(), to = pad.getResultType();
    ArrayRef<int64_t> low = pad.getStaticLow();
    if (from.getRank() != 4 || low[0] != 0 || low[1] != 0)
      return false;
    result.assign(to.getNumElements(), 0);
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
    auto site = op->getAttrOfType<DictionaryAttr>("kas.site");
    Value image = op.getInputs()[0];
    if (auto pad = image.getDefiningOp<tensor::PadOp>())
      image = pad.getSource();
    auto from = cast<RankedTensorType>(image.getType());
    auto to = cast<RankedTensorType>(op.getResult(0).getType());
    Layer layer;
    layer.name = site.getAs<StringAttr>("name").str();
    layer.binding = site.getAs<IntegerAttr>("binding").getInt();
    layer.inputs = from.getDimSize(1);
    layer.outputs = to.getDimSize(1);
    layer.size = from.getDimSize(2);
    layer.stride = layer.size / to.getDimSize(2);
    // The first symbol.
    layer.channels = getSizeRules(kernel).bindings[layer.binding][0];
    layer.copies = std::max(layer.inputs, layer.outputs) / layer.channels;
    std::vector<ArrayRef<float>> weights;
    for (unsigned number = 0;; ++number) {
      auto found =
          arguments.find(layer.name + ".weight." + std::to_string(number));
      if (found == arguments.end())
        break;
      weights.push_back(found->second);
    }
    EXPECT_FALSE(weights.empty()) << layer.name;
    Values result = evaluateSite(kernel, layer, tensors[image], weights);
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
  DenseMap<Value, Values> tensors;

public:
  unsigned numSites = 0;
};

class NetworkKernelsTest : public testing::Test {
protected:
  NetworkKernelsTest() {
    DialectRegistry registry;
    registerCPUPipelineDialects(registry);
    kas::registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    static bool once = (kas::registerAllPasses(), true);
    (void)once;
  }

  /// The network with the kernel in all sites, compiled and interpreted.
  void check(ModuleOp module, KernelOp kernel, unsigned numSites) {
    OwningOpRef<ModuleOp> copy = module.clone();
    auto replaced = substituteKernel(*copy, kernel.getSymName());
    ASSERT_TRUE(succeeded(replaced));
    EXPECT_EQ(replaced->numReplaced, numSites);
    CPUPipelineOptions pipeline;
    pipeline.threads = 1;
    JITOptions jit;
    jit.optLevel = 1;
    auto compiled = compileForCPU(*copy, "forward", pipeline, jit);
    ASSERT_TRUE(bool(compiled)) << llvm::toString(compiled.takeError());
    const FunctionSignature &signature = compiled->getSignature();
    auto tensors = signature.makeArguments({}, 7);
    ASSERT_TRUE(bool(tensors)) << llvm::toString(tensors.takeError());
    auto results = signature.makeResults();
    ASSERT_TRUE(bool(results)) << llvm::toString(results.takeError());
    (*compiled)(*tensors, *results);

    Arguments arguments;
    for (auto [argument, given] :
         llvm::zip_equal(signature.arguments, *tensors))
      arguments[argument.name] = given.getValues();
    auto function = module.lookupSymbol<func::FuncOp>("forward");
    auto interpret = [&](KernelOp inSites) {
      NetworkInterpreter interpreter(function, inSites, arguments);
      Values output = interpreter.run();
      EXPECT_EQ(interpreter.numSites, numSites);
      return output;
    };
    Values expected = interpret(kernel);
    ASSERT_FALSE(expected.empty());
    // What the kernels do to the result at all.
    double effect = getError(interpret(nullptr), expected);
    // What a change of the input in its last digits does: networks that are
    // nearly chaotic, or not a number, have no digits to compare.
    Values near(arguments["input"]);
    for (auto [index, value] : llvm::enumerate(near))
      value *= index % 2 ? 1 + 1e-6f : 1 - 1e-6f;
    arguments["input"] = near;
    double condition = getError(interpret(kernel), expected);
    double error = getError(results->front().getValues(), expected);
    RecordProperty(kernel.getSymName().str(), std::to_string(error));
    if (!(condition < 1e-3) || !(effect > 1e-2)) {
      ++numLeftOut;
      return;
    }
    ++numCompared;
    EXPECT_LE(error, 1e-4 + 20 * condition) << print(kernel);
  }

  /// `count` kernels with `ratio` of the FLOPs of the convolutions. Powers of
  /// powers have no digits left after all layers; behind a softmax over an
  /// image its mean, which the last layer reads, is the same for all images.
  /// Both are compared layer by layer in KernelSitesTest.
  void checkModel(const std::string &file, unsigned numSites,
                  const std::string &ratio, unsigned count) {
    auto module = parseSourceFile<ModuleOp>(
        std::string(KAS_MODELS_DIRECTORY) + "/" + file, &context);
    ASSERT_TRUE(module);
    PassManager manager(&context);
    std::string number = std::to_string(count);
    ASSERT_TRUE(succeeded(parsePassPipeline(
        "kas-extract{kernel=true min-flops-ratio=0.01 flops-ratio=" + ratio +
            "},kas-search{kernel=@convolutions groups=G algorithm=random "
            "kernel-limits=steps=8,exp=0,softmax=0 evaluations=" +
            number + " top=" + number + "}",
        manager)));
    ASSERT_TRUE(succeeded(manager.run(*module)));
    for (KernelOp kernel : module->getOps<KernelOp>()) {
      // The convolution itself is the one that is not found.
      if (kernel.getSymName() == "convolutions")
        continue;
      SCOPED_TRACE(kernel.getSymName().str());
      check(*module, kernel, numSites);
    }
    EXPECT_EQ(numCompared + numLeftOut, count);
    EXPECT_GE(numCompared, count / 2);
  }

  MLIRContext context;
  unsigned numCompared = 0, numLeftOut = 0;
};

} // namespace

TEST_F(NetworkKernelsTest, SmallNetworkEqualsTheReference) {
  checkModel("tiny.mlir", 2, "1.0", 6);
}

TEST_F(NetworkKernelsTest, ResNet18EqualsTheReference) {
  if (!std::getenv("KAS_SLOW_TESTS"))
    GTEST_SKIP() << "takes minutes; set KAS_SLOW_TESTS";
  checkModel("resnet18_cifar.mlir", 19, "0.2", 5);
}
