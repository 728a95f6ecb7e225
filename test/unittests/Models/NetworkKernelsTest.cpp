//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whole networks with a sampled kernel in every convolution but the stem,
// compiled and run, against an interpreter that evaluates the kernels with the
// reference evaluator; and each of their layers, on the data that it gets there
// and on data of its own.
//
//===----------------------------------------------------------------------===//

#include "ModelsTest.h"
#include "NetworkInterpreter.h"
#include "Properties.h"
#include "kas/Models/KernelSites.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/FormatVariadic.h"

using namespace kas;
using namespace kas::test;
using namespace mlir;

namespace {

/// What comparisons have found.
struct Tally {
  unsigned equal = 0;
  /// Not finite, in the same elements and ways in both.
  unsigned notFinite = 0;
  /// A change of the data in its last digits changes all digits of the result.
  unsigned illConditioned = 0;
  double largestError = 0;

  unsigned getTotal() const { return equal + notFinite + illConditioned; }
  std::string print() const {
    return std::to_string(equal) + " equal (largest difference " +
           llvm::formatv("{0:e1}", largestError).str() + "), " +
           std::to_string(notFinite) + " not finite and the same, " +
           std::to_string(illConditioned) + " without digits to compare";
  }

  /// `evaluate(true)` is the expected result for data that is changed a little;
  /// `evaluateSingle()` has every step rounded. Returns what is wrong.
  std::string add(ArrayRef<float> actual,
                  llvm::function_ref<std::vector<float>(bool)> evaluate,
                  llvm::function_ref<std::vector<float>()> evaluateSingle) {
    std::vector<float> expected = evaluate(false);
    if (expected.empty())
      return "no expected result";
    if (!isFinite(actual) || !isFinite(expected)) {
      // Numbers beyond f32 between the steps count.
      std::string difference = compareKinds(actual, evaluateSingle());
      notFinite += difference.empty();
      return difference.empty() ? "" : "not finite, " + difference;
    }
    double condition = getError(evaluate(true), expected);
    if (!(condition < 1e-3)) {
      ++illConditioned;
      return "";
    }
    double error = getError(actual, expected);
    if (!(error <= 1e-4 + 20 * condition))
      return "error " + std::to_string(error) + ", condition " +
             std::to_string(condition);
    ++equal;
    largestError = std::max(largestError, error);
    return "";
  }
};

class NetworkKernelsTest : public ModelsTest {
public:
  using Convolution = linalg::Conv2DNchwFchwOp;

  static SmallVector<Convolution> getSites(ModuleOp module) {
    SmallVector<Convolution> sites;
    module.walk([&](Convolution op) {
      if (op->hasAttr("kas.site"))
        sites.push_back(op);
    });
    return sites;
  }

  static std::unique_ptr<RunnableModel> compile(ModuleOp module,
                                                KernelOp kernel,
                                                unsigned numSites,
                                                unsigned optLevel) {
    auto replaced = substituteKernel(module, kernel.getSymName());
    if (failed(replaced) || replaced->numReplaced != numSites) {
      ADD_FAILURE() << "not in all sites";
      return nullptr;
    }
    return RunnableModel::compile(module, optLevel);
  }

  /// The network as it is: its output.
  void checkNetwork(ModuleOp module, KernelOp kernel, unsigned numSites) {
    OwningOpRef<ModuleOp> copy = module.clone();
    auto model = compile(*copy, kernel, numSites, 1);
    ASSERT_TRUE(model);
    model->run(7);
    compareNetwork(module, kernel, numSites, *model);
  }

  void compareNetwork(ModuleOp module, KernelOp kernel, unsigned numSites,
                      const RunnableModel &model) {
    Arguments arguments = model.getArguments();
    Arguments nearly = arguments;
    std::vector<float> near = perturb(arguments["input"]);
    nearly["input"] = near;
    auto function = module.lookupSymbol<func::FuncOp>("forward");
    std::string wrong = networks.add(
        model.getResult(0),
        [&](bool isNear) {
          return interpretNetwork(function, kernel, isNear ? nearly : arguments,
                                  numSites);
        },
        [&] {
          return interpretNetwork(function, kernel, arguments, numSites,
                                  StepPrecision::Single);
        });
    EXPECT_EQ(wrong, "") << print(kernel);
    // What the kernels do to the result at all.
    numWithEffect +=
        getError(interpretNetwork(function, nullptr, arguments, numSites),
                 model.getResult(0)) > 1e-2;
  }

  /// Lets each site read `NAME.own` where `own` is positive, and adds what it
  /// reads and gives to the results.
  static void instrument(ModuleOp module) {
    auto function = module.lookupSymbol<func::FuncOp>("forward");
    auto addArgument = [&](Type type, const std::string &name) -> Value {
      unsigned position = function.getNumArguments();
      OpBuilder builder(module.getContext());
      NamedAttrList attributes;
      attributes.append("kas.name", builder.getStringAttr(name));
      attributes.append("kas.init", builder.getStringAttr("normal"));
      EXPECT_TRUE(succeeded(function.insertArgument(
          position, type, attributes.getDictionary(module.getContext()),
          function.getLoc())));
      return function.getArgument(position);
    };
    Operation *end = function.getBody().front().getTerminator();
    Value isOwn = addArgument(
        RankedTensorType::get({1}, Float32Type::get(module.getContext())),
        "own");
    for (Convolution op : getSites(module)) {
      Value data = getData(op);
      std::string name = op->getAttrOfType<DictionaryAttr>("kas.site")
                             .getAs<StringAttr>("name")
                             .str();
      Operation *reader = op;
      if (auto pad = op.getInputs()[0].getDefiningOp<tensor::PadOp>())
        reader = pad;
      Value chosen = choose(reader, isOwn,
                            addArgument(data.getType(), name + ".own"), data);
      reader->replaceUsesOfWith(data, chosen);
      end->insertOperands(end->getNumOperands(), {chosen, op.getResult(0)});
    }
    function.setFunctionType(FunctionType::get(module.getContext(),
                                               function.getArgumentTypes(),
                                               end->getOperandTypes()));
    function.removeResAttrsAttr();
  }

  static Value choose(Operation *reader, Value isOwn, Value own, Value data) {
    OpBuilder builder(reader);
    Location loc = reader->getLoc();
    auto type = cast<RankedTensorType>(data.getType());
    AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
    AffineMap zero =
        AffineMap::get(type.getRank(), 0, builder.getAffineConstantExpr(0));
    SmallVector<utils::IteratorType> loops(type.getRank(),
                                           utils::IteratorType::parallel);
    Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                          type.getElementType());
    return linalg::GenericOp::create(
               builder, loc, type, ValueRange{isOwn, own, data},
               ValueRange{empty},
               ArrayRef<AffineMap>{zero, identity, identity, identity}, loops,
               [](OpBuilder &nested, Location where, ValueRange args) {
                 Value none = arith::ConstantOp::create(
                     nested, where, nested.getF32FloatAttr(0));
                 Value isPositive = arith::CmpFOp::create(
                     nested, where, arith::CmpFPredicate::OGT, args[0], none);
                 Value value = arith::SelectOp::create(
                     nested, where, isPositive, args[1], args[2]);
                 linalg::YieldOp::create(nested, where, value);
               })
        .getResult(0);
  }

  /// The network, and each of its sites by itself.
  void checkAllSites(ModuleOp module, KernelOp kernel, unsigned numSites) {
    OwningOpRef<ModuleOp> copy = module.clone();
    instrument(*copy);
    auto model = compile(*copy, kernel, numSites, 0);
    ASSERT_TRUE(model);
    for (bool isOwn : {true, false}) {
      NamedTensors given;
      Tensor own({1});
      own.getValues()[0] = isOwn;
      given.insert({"own", std::move(own)});
      model->run(7, given);
      for (auto [index, op] : llvm::enumerate(getSites(module)))
        compareSite(
            kernel, op, model->getArguments(), model->getResult(1 + 2 * index),
            model->getResult(2 + 2 * index), isOwn ? ownLayers : layers);
    }
    compareNetwork(module, kernel, numSites, *model);
  }

  void compareSite(KernelOp kernel, Convolution op, const Arguments &arguments,
                   ArrayRef<float> input, ArrayRef<float> actual,
                   Tally &tally) {
    Layer layer = getLayer(op, kernel);
    auto bias = arguments.find(layer.name + ".bias");
    ASSERT_NE(bias, arguments.end());
    std::vector<ArrayRef<float>> weights = getWeights(layer, arguments);
    auto evaluate = [&](ArrayRef<float> data, StepPrecision precision) {
      std::vector<float> result =
          evaluateSite(kernel, layer, data, weights, precision);
      for (auto [index, value] : llvm::enumerate(result))
        value += bias->second[index * layer.outputs / result.size()];
      return result;
    };
    std::vector<float> near = perturb(input);
    std::string wrong = tally.add(
        actual,
        [&](bool isNear) {
          return evaluate(isNear ? ArrayRef<float>(near) : input,
                          StepPrecision::Double);
        },
        [&] { return evaluate(input, StepPrecision::Single); });
    EXPECT_EQ(wrong, "") << "layer " << layer.name << "\n" << print(kernel);
  }

  using Check = void (NetworkKernelsTest::*)(ModuleOp, KernelOp, unsigned);
  /// `count` kernels with `ratio` of the FLOPs of the convolutions.
  void checkModel(const std::string &file, unsigned numSites,
                  const std::string &ratio, const std::string &limits,
                  unsigned count, Check check) {
    auto module = parseModel(file);
    ASSERT_TRUE(module);
    findKernels(*module, ratio, limits, count);
    unsigned numKernels = 0;
    for (KernelOp kernel : module->getOps<KernelOp>()) {
      // The convolution itself is the one that is not found.
      if (kernel.getSymName() == "convolutions")
        continue;
      SCOPED_TRACE(kernel.getSymName().str());
      (this->*check)(*module, kernel, numSites);
      ++numKernels;
      if (HasFatalFailure())
        return;
    }
    EXPECT_EQ(numKernels, count);
    EXPECT_EQ(networks.getTotal(), count);
    EXPECT_GE(2 * networks.equal, count);
    EXPECT_GE(2 * numWithEffect, count);
    RecordProperty("networks", networks.print());
    RecordProperty("layers", layers.print());
    RecordProperty("own-layers", ownLayers.print());
    llvm::outs() << count << " kernels in " << file
                 << "\n  networks: " << networks.print()
                 << "\n  layers on the data of the network: " << layers.print()
                 << "\n  layers on data of their own: " << ownLayers.print()
                 << "\n";
  }

  Tally networks, layers, ownLayers;
  unsigned numWithEffect = 0;
};

} // namespace

TEST_F(NetworkKernelsTest, SmallNetworkEqualsTheReference) {
  checkModel("tiny.mlir", 2, "1.0", "steps=8", 6,
             &NetworkKernelsTest::checkNetwork);
}

// Every convolution of a small ResNet-18 but the stem, with any primitive.
TEST_F(NetworkKernelsTest, AllSitesOfSmallResNet18EqualTheReference) {
  unsigned count = getNumOperators(1, 500);
  checkModel("resnet18_small.mlir", 19, "1.0", "steps=8", count,
             &NetworkKernelsTest::checkAllSites);
  EXPECT_EQ(ownLayers.getTotal(), 19 * count);
  EXPECT_EQ(layers.getTotal(), 19 * count);
  // One in a hundred at most is not compared digit by digit.
  EXPECT_LE(ownLayers.illConditioned + ownLayers.notFinite,
            1 + 19 * count / 100);
}

TEST_F(NetworkKernelsTest, ResNet18EqualsTheReference) {
  if (!std::getenv("KAS_SLOW_TESTS"))
    GTEST_SKIP() << "takes minutes; set KAS_SLOW_TESTS";
  checkModel("resnet18_cifar.mlir", 19, "0.2", "steps=8,exp=0,softmax=0", 5,
             &NetworkKernelsTest::checkNetwork);
}
