//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "kas/Training/Trainer.h"
#include "kas/Pipelines/CPU.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>

using namespace kas;
using namespace kas::execution;
using namespace kas::training;

namespace {

/// Logistic regression on vectors of two numbers, three classes.
constexpr llvm::StringLiteral network = R"(
func.func @forward(%x: tensor<4x2xf32> {kas.name = "x"}, %w: tensor<2x3xf32> {kas.name = "w"},
    %b: tensor<3xf32> {kas.name = "b"}) -> tensor<4x3xf32> {
  %zero = arith.constant 0.0 : f32
  %start = tensor.splat %zero : tensor<4x3xf32>
  %scores = linalg.matmul ins(%x, %w : tensor<4x2xf32>, tensor<2x3xf32>) outs(%start : tensor<4x3xf32>) -> tensor<4x3xf32>
  %logits = linalg.generic {indexing_maps = [affine_map<(n, c) -> (n, c)>, affine_map<(n, c) -> (c)>, affine_map<(n, c) -> (n, c)>],
      iterator_types = ["parallel", "parallel"]} ins(%scores, %b : tensor<4x3xf32>, tensor<3xf32>) outs(%start : tensor<4x3xf32>) {
  ^bb0(%s: f32, %t: f32, %o: f32):
    %sum = arith.addf %s, %t : f32
    linalg.yield %sum : f32
  } -> tensor<4x3xf32>
  return %logits : tensor<4x3xf32>
}
)";

class TrainerTest : public testing::Test {
protected:
  TrainerTest() : context(makeRegistry()) {
    module = mlir::parseSourceString<mlir::ModuleOp>(network, &context);
    program = std::make_shared<const TrainingProgram>(llvm::cantFail(
        TrainingProgram::compile(*module, "forward", ProgramOptions())));
  }

  static mlir::DialectRegistry makeRegistry() {
    mlir::DialectRegistry registry;
    registerCPUPipelineDialects(registry);
    return registry;
  }

  /// Points around one centre for each class.
  static Dataset makeData(int64_t count, uint64_t seed) {
    std::mt19937_64 random(seed);
    auto noise = [&] { return float(random() % 2000) / 1000 - 1; };
    auto values = std::make_shared<std::vector<float>>();
    std::vector<int64_t> labels;
    for (int64_t index = 0; index < count; ++index) {
      int64_t label = int64_t(random() % 3);
      labels.push_back(label);
      values->push_back(float(label == 0) * 2 + noise());
      values->push_back(float(label == 1) * 2 + noise());
    }
    Examples examples;
    examples.type = ElementType::F32;
    examples.shape = {2};
    for (int64_t index = 0; index < count; ++index)
      examples.starts.push_back(values->data() + 2 * index);
    examples.storage = values;
    return llvm::cantFail(Dataset::create(examples, labels, 3));
  }

  static TrainerOptions makeOptions(int64_t epochs) {
    TrainerOptions options;
    options.epochs = epochs;
    options.seed = 5;
    options.normalization = Normalization{{0.5}, {2}};
    return options;
  }

  llvm::Expected<Trainer> make(const TrainerOptions &options, DataSplits data) {
    return Trainer::create(program, data, options);
  }

  static std::vector<float> getValues(const Trainer &trainer) {
    std::vector<float> values;
    for (const Tensor &tensor : trainer.getState())
      llvm::append_range(values, tensor.getValues());
    return values;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::shared_ptr<const TrainingProgram> program;
};

/// Softmax of the logits of one example.
std::array<double, 3> getShares(llvm::ArrayRef<double> w,
                                llvm::ArrayRef<double> b, double x, double y) {
  std::array<double, 3> shares;
  double sum = 0;
  for (int c = 0; c < 3; ++c)
    sum += shares[c] = std::exp(x * w[c] + y * w[3 + c] + b[c]);
  for (double &share : shares)
    share /= sum;
  return shares;
}

TEST_F(TrainerTest, ComputesWhatPlainLoopsDo) {
  TrainerOptions options = makeOptions(3);
  Dataset data = makeData(22, 1), other = makeData(9, 2);
  auto made = make(options, {data, other, std::nullopt});
  ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
  Trainer &trainer = *made;
  std::vector<double> w, b(3, 0), wm(6, 0), bm(3, 0);
  for (float value : trainer.getState()[0].getValues())
    w.push_back(value);

  BatchOptions batches;
  batches.batchSize = 4;
  batches.seed = options.seed;
  batches.dropLast = true;
  batches.normalization = options.normalization;
  BatchLoader loader = llvm::cantFail(BatchLoader::create(data, batches));
  ASSERT_EQ(loader.getNumBatches(), 5);
  Schedule schedule = llvm::cantFail(parseSchedule("cosine", 0.1, 15));
  std::vector<float> examples(8), labels(4);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    Epoch order = loader.startEpoch(epoch);
    double loss = 0;
    for (int64_t batch = 0; batch < 5; ++batch) {
      order.fill(batch, examples, llvm::MutableArrayRef(labels));
      std::vector<double> gw(6, 0), gb(3, 0);
      for (int n = 0; n < 4; ++n) {
        double x = examples[2 * n], y = examples[2 * n + 1];
        auto shares = getShares(w, b, x, y);
        loss -= std::log(shares[int(labels[n])]) / 4;
        for (int c = 0; c < 3; ++c) {
          double error = (shares[c] - (labels[n] == float(c))) / 4;
          gw[c] += error * x;
          gw[3 + c] += error * y;
          gb[c] += error;
        }
      }
      double size = schedule.getLearningRate(epoch * 5 + batch);
      for (int i = 0; i < 6; ++i)
        w[i] -= size * (wm[i] = 0.9 * wm[i] + gw[i]);
      for (int i = 0; i < 3; ++i)
        b[i] -= size * (bm[i] = 0.9 * bm[i] + gb[i]);
    }
    EpochReport report = llvm::cantFail(trainer.trainEpoch());
    EXPECT_EQ(report.epoch, epoch + 1);
    EXPECT_EQ(report.step, 5 * (epoch + 1));
    EXPECT_NEAR(report.training.loss, loss / 5, 1e-5);
    ASSERT_TRUE(report.validation);

    // Nine examples: the last batch has one only.
    double expected = 0;
    int correct = 0;
    for (int64_t n = 0; n < other.size(); ++n) {
      auto values = other.getFloats(n);
      auto shares =
          getShares(w, b, (values[0] - 0.5) / 2, (values[1] - 0.5) / 2);
      int label = other.getLabels()[n];
      expected -= std::log(shares[label]);
      correct +=
          shares[label] == *std::max_element(shares.begin(), shares.end());
    }
    EXPECT_NEAR(report.validation->loss, expected / 9, 1e-5);
    EXPECT_NEAR(report.validation->accuracy, correct / 9.0, 1e-9);
  }
  EXPECT_TRUE(trainer.isDone());
  for (int i = 0; i < 6; ++i)
    EXPECT_NEAR(trainer.getState()[0].getValues()[i], w[i], 1e-5);
}

TEST_F(TrainerTest, ContinuesBitByBit) {
  DataSplits data{makeData(40, 3), makeData(10, 4), std::nullopt};
  TrainerOptions options = makeOptions(4);
  options.stop = "patience=9";
  Trainer whole = llvm::cantFail(make(options, data));
  while (!whole.isDone())
    llvm::cantFail(whole.trainEpoch());

  llvm::SmallString<128> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("trainer", "npz", path));
  Trainer first = llvm::cantFail(make(options, data));
  llvm::cantFail(first.trainEpoch());
  llvm::cantFail(first.trainEpoch());
  llvm::cantFail(first.save(path));
  Trainer second = llvm::cantFail(make(options, data));
  llvm::cantFail(second.restore(path));
  EXPECT_EQ(second.getEpoch(), 2);
  EXPECT_EQ(second.getAccuracy(), first.getAccuracy());
  while (!second.isDone())
    llvm::cantFail(second.trainEpoch());
  EXPECT_EQ(getValues(second), getValues(whole));

  // Of another order of examples: nothing changes.
  options.seed = 6;
  Trainer other = llvm::cantFail(make(options, data));
  std::vector<float> before = getValues(other);
  std::string message = llvm::toString(other.restore(path));
  EXPECT_NE(message.find("seed 6"), std::string::npos) << message;
  EXPECT_EQ(getValues(other), before);
  EXPECT_EQ(other.getEpoch(), 0);
  llvm::sys::fs::remove(path);
}

TEST_F(TrainerTest, StopsWhereTheLossIsNaN) {
  TrainerOptions options = makeOptions(4);
  options.schedule = "constant";
  options.learningRate = 1e38;
  Trainer trainer =
      llvm::cantFail(make(options, {makeData(40, 3), std::nullopt, {}}));
  EpochReport report = llvm::cantFail(trainer.trainEpoch());
  ASSERT_TRUE(report.stopped);
  EXPECT_NE(report.stopped->find("the loss is not finite at step"),
            std::string::npos);
  EXPECT_TRUE(trainer.isDone());
}

TEST_F(TrainerTest, RefusesWhatDoesNotFit) {
  auto message = [&](const TrainerOptions &options, Dataset data) {
    return llvm::toString(make(options, {data, std::nullopt, {}}).takeError());
  };
  EXPECT_EQ(message(makeOptions(0), makeData(9, 1)),
            "requires at least one epoch, got 0");
  EXPECT_EQ(
      message(makeOptions(1), llvm::cantFail(makeData(9, 1).withClasses(4))),
      "requires a network of at least as many classes as the data has, "
      "4, got 3");
  float three[12] = {};
  Examples examples;
  examples.type = ElementType::F32;
  examples.shape = {3};
  for (int index = 0; index < 4; ++index)
    examples.starts.push_back(three + 3 * index);
  EXPECT_EQ(message(makeOptions(1),
                    llvm::cantFail(Dataset::create(examples, {0, 1, 2, 0}))),
            "requires examples of the shape 2, got 3");
  ProgramOptions squares;
  squares.step.loss = networks::LossKind::MeanSquaredError;
  auto refused = TrainingProgram::compile(*module, "forward", squares);
  EXPECT_EQ(llvm::toString(refused.takeError()),
            "requires cross entropy as the loss of labelled examples, got the "
            "mean squared error");
}

TEST_F(TrainerTest, RefusesLabelsThatAreNoClasses) {
  TrainingState state = llvm::cantFail(program->makeState({}, 0)), spare;
  for (const Tensor &tensor : state)
    spare.emplace_back(tensor.getShape());
  std::vector<float> data(8, 1), labels{0, 1, 3, 0};
  auto outcome = program->step(data, labels, StepSettings(), state, spare);
  std::string message = llvm::toString(outcome.takeError());
  EXPECT_NE(message.find("requires labels that are numbers of classes"),
            std::string::npos)
      << message;
  // Padding is for evaluations only.
  labels = {0, 1, -1, -1};
  EXPECT_FALSE(
      llvm::errorToBool(program->evaluate(data, labels, state).takeError()));
  EXPECT_TRUE(llvm::errorToBool(
      program->step(data, labels, StepSettings(), state, spare).takeError()));
}

/// The same network with half of the logits left out, and a constant.
TEST_F(TrainerTest, SeedsDropoutAndRequiresConstants) {
  std::string text = network.str();
  text.replace(text.find("%b: tensor<3xf32>"), 0,
               "%m: tensor<3xf32> {kas.name = \"m\", kas.constant}, ");
  text.replace(
      text.find("return %logits"), 14,
      "%masked = linalg.generic {indexing_maps = [affine_map<(n, c) -> "
      "(n, c)>, affine_map<(n, c) -> (c)>, affine_map<(n, c) -> (n, "
      "c)>], iterator_types = [\"parallel\", \"parallel\"]} "
      "ins(%logits, %m : tensor<4x3xf32>, tensor<3xf32>) outs(%start : "
      "tensor<4x3xf32>) {\n^bb0(%s: f32, %t: f32, %o: f32):\n"
      "%product = arith.mulf %s, %t : f32\n"
      "linalg.yield %product : f32\n} -> tensor<4x3xf32>\n"
      "%dropped = kas.dropout %masked probability 5.0e-01 : "
      "tensor<4x3xf32>\nreturn %dropped");
  auto other = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  ASSERT_TRUE(other);
  auto compiled = TrainingProgram::compile(*other, "forward", ProgramOptions());
  ASSERT_TRUE(bool(compiled)) << llvm::toString(compiled.takeError());
  EXPECT_EQ(llvm::toString(compiled->makeState({}, 0).takeError()),
            "requires the values of the constant 'm' of the network, got none");

  auto getLoss = [&](StepSettings settings) {
    NamedTensors given;
    given["m"] = Tensor({3});
    llvm::fill(given["m"].getValues(), 1.0f);
    TrainingState state = llvm::cantFail(compiled->makeState(given, 0)), spare;
    for (const Tensor &tensor : state)
      spare.emplace_back(tensor.getShape());
    std::vector<float> data{1, 2, 3, 4, 5, 6, 7, 8}, labels{0, 1, 2, 0};
    double loss =
        llvm::cantFail(compiled->step(data, labels, settings, state, spare))
            .loss;
    EXPECT_EQ(state[1].getValues()[0], 1) << "constants stay";
    return loss;
  };
  EXPECT_EQ(getLoss({0.1, 7, 3}), getLoss({0.1, 7, 3}));
  EXPECT_NE(getLoss({0.1, 7, 3}), getLoss({0.1, 7, 4}));
  EXPECT_NE(getLoss({0.1, 7, 3}), getLoss({0.1, 8, 3}));
}

} // namespace
