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
#include "kas/Networks/Sites/KernelSites.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace kas;
using namespace kas::reference;
using namespace kas::execution;
using namespace kas::networks;
using namespace kas::test;
using namespace mlir;

namespace {

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

  static std::string getSiteName(Convolution op) {
    return op->getAttrOfType<DictionaryAttr>("kas.site")
        .getAs<StringAttr>("name")
        .str();
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
      std::string name = getSiteName(op);
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
    SmallVector<Convolution> sites = getSites(module);
    auto compareSites = [&](Tally &tally, NamedTensors given) {
      llvm::StringSet<> only;
      for (auto &[name, tensor] : given)
        only.insert(name);
      Tensor own({1});
      own.getValues()[0] = &tally != &layers;
      given.insert({"own", std::move(own)});
      model->run(7, given);
      for (auto [index, op] : llvm::enumerate(sites))
        if (only.empty() || only.contains(getSiteName(op) + ".own"))
          compareSite(kernel, op, model->getArguments(),
                      model->getResult(1 + 2 * index),
                      model->getResult(2 + 2 * index), tally);
    };
    compareSites(ownLayers, {});
    compareSites(layers, {});
    compareNetwork(module, kernel, numSites, *model);
    // What is not finite or large, again on the same data made small.
    NamedTensors small;
    for (auto [index, op] : llvm::enumerate(sites))
      if (!isFinite(model->getResult(2 + 2 * index)) ||
          isLarge(model->getResult(1 + 2 * index)))
        small.insert({getSiteName(op) + ".own",
                      shrink(op, model->getResult(1 + 2 * index))});
    if (small.empty())
      return;
    compareSites(smallLayers, std::move(small));
  }

  /// In f32 whole numbers apart.
  static bool isLarge(ArrayRef<float> data) {
    return llvm::any_of(
        data, [](float value) { return !(std::abs(value) < 0x1p24f); });
  }

  /// Divided by the largest magnitude; what is not finite is 1 or -1.
  static Tensor shrink(Convolution op, ArrayRef<float> data) {
    Tensor tensor(cast<ShapedType>(getData(op).getType()).getShape());
    float largest = 0;
    for (float value : data)
      if (std::isfinite(value))
        largest = std::max(largest, std::abs(value));
    for (auto [to, from] : llvm::zip_equal(tensor.getValues(), data))
      to = std::isfinite(from) ? from / std::max(largest, 1e-30f)
                               : (from < 0 ? -1.0f : 1.0f);
    return tensor;
  }

  void compareSite(KernelOp kernel, Convolution op, const Arguments &arguments,
                   ArrayRef<float> input, ArrayRef<float> actual,
                   Tally &tally) {
    Layer layer = getLayer(op, kernel);
    auto bias = arguments.find(layer.name + ".bias");
    ASSERT_NE(bias, arguments.end());
    std::vector<ArrayRef<float>> weights = getWeights(layer.name, arguments);
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
        [&] { return evaluate(input, StepPrecision::Single); }, isLarge(input));
    EXPECT_EQ(wrong, "") << "layer " << layer.name << "\n" << print(kernel);
  }

  using Check = void (NetworkKernelsTest::*)(ModuleOp, KernelOp, unsigned);
  /// `count` kernels with `ratio` of the FLOPs of the convolutions.
  void checkModel(const std::string &file, unsigned numSites,
                  const std::string &ratio, const std::string &limits,
                  unsigned count, Check check) {
    auto module = parseModel(file);
    ASSERT_TRUE(module);
    findKernels(*module, "convolutions", ratio, limits, count);
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
    RecordProperty("small-layers", smallLayers.print());
    llvm::outs() << count << " kernels in " << file
                 << "\n  networks: " << networks.print()
                 << "\n  layers on the data of the network: " << layers.print()
                 << "\n  layers on data of their own: " << ownLayers.print()
                 << "\n  layers with numbers that are not finite or large, on "
                    "small data: "
                 << smallLayers.print() << "\n";
  }

  Tally networks, layers, ownLayers, smallLayers;
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
  // Nearly all is compared digit by digit, on data without overflow.
  auto getOthers = [](const Tally &tally) {
    return tally.notFinite + tally.byOrder + tally.illConditioned;
  };
  EXPECT_LE(100 * getOthers(ownLayers), ownLayers.getTotal());
  EXPECT_LE(50 * getOthers(smallLayers), smallLayers.getTotal());
  EXPECT_LE(50 * layers.byOrder, layers.getTotal());
}

TEST_F(NetworkKernelsTest, ResNet18EqualsTheReference) {
  if (!std::getenv("KAS_SLOW_TESTS"))
    GTEST_SKIP() << "takes minutes; set KAS_SLOW_TESTS";
  checkModel("resnet18_cifar.mlir", 19, "0.2", "steps=8,exp=0,softmax=0", 5,
             &NetworkKernelsTest::checkNetwork);
}

// Without products of data, which grow beyond f32 in 19 layers.
TEST_F(NetworkKernelsTest, ResNet18At224EqualsTheReference) {
  if (!std::getenv("KAS_SLOW_TESTS"))
    GTEST_SKIP() << "takes minutes; set KAS_SLOW_TESTS";
  checkModel("resnet18_224.mlir", 19, "0.1",
             "steps=8,exp=0,softmax=0,sqr=0,mul=0,matmul=0", 4,
             &NetworkKernelsTest::checkNetwork);
}
