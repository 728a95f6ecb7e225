//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Properties.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/Support/Random.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstdlib>
#include <limits>

using namespace kas;
using namespace kas::reference;
using namespace kas::test;
using namespace mlir;

unsigned kas::test::getNumOperators(unsigned quick, unsigned slow) {
  return std::getenv("KAS_SLOW_TESTS") ? slow : quick;
}

uint64_t kas::test::getFirstSeed() {
  uint64_t seed = 0;
  if (const char *text = std::getenv("KAS_TEST_SEED"))
    EXPECT_FALSE(StringRef(text).getAsInteger(10, seed))
        << "KAS_TEST_SEED must be a number, got " << text;
  return seed;
}

void kas::test::forEachOperator(
    llvm::function_ref<void(const RandomOperator &, uint64_t)> body,
    unsigned count, const RandomOperatorOptions &options) {
  MLIRContext context;
  context.loadDialect<KasDialect>();
  uint64_t first = getFirstSeed();
  for (uint64_t seed = first; seed < first + count; ++seed) {
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    RandomOperator random = makeRandomOperator(builder, "f", seed, options);
    std::string text = describe(random);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    body(random, seed);
    if (testing::Test::HasFailure())
      return;
  }
}

std::string kas::test::print(Operation *op) {
  std::string text;
  llvm::raw_string_ostream(text) << *op;
  return text;
}

std::string kas::test::describe(const RandomOperator &random) {
  std::string text = print(random.op) + "\n";
  OperatorOp op = random.op;
  SymbolSet symbols = op.getSymbolSet();
  for (auto [index, value] : llvm::enumerate(random.binding))
    text += symbols.getName(index).str() + "=" + std::to_string(value) + ",";
  text.back() = '\n';
  return text;
}

static std::vector<float> draw(ArrayRef<int64_t> shape, uint64_t seed,
                               StringRef name) {
  RandomStream stream(seed, name);
  std::vector<float> values(*getNumElements(shape));
  for (auto [index, value] : llvm::enumerate(values))
    value = 2 * stream.uniform(index) - 1;
  return values;
}

Inputs::Inputs(const OperatorShapes &shapes, uint64_t seed)
    : shapes(shapes), data(draw(shapes.data, seed, "data")) {
  for (auto [index, shape] : llvm::enumerate(shapes.weights))
    weights.push_back(draw(shape, seed, "weight" + std::to_string(index)));
}

std::vector<float> kas::test::evaluate(OperatorOp concrete,
                                       const Inputs &inputs) {
  SmallVector<ReferenceTensor> weights;
  for (auto [shape, values] :
       llvm::zip_equal(inputs.shapes.weights, inputs.weights))
    weights.push_back({shape, values});
  // NaN shows an element that is never written.
  std::vector<float> output(*getNumElements(inputs.shapes.output),
                            std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(succeeded(
      evaluateOperator(concrete, {inputs.shapes.data, inputs.data}, weights,
                       output, [&] { return concrete.emitError(); })));
  return output;
}

OperatorOp kas::test::makeConcrete(OperatorOp op, const Binding &binding) {
  OpBuilder builder(op);
  FailureOr<OperatorOp> concrete =
      specialize(builder, op, binding, (op.getSymName() + "_concrete").str(),
                 [&] { return op.emitError(); });
  EXPECT_TRUE(succeeded(concrete));
  return succeeded(concrete) ? *concrete : OperatorOp();
}

double kas::test::getError(ArrayRef<float> actual, ArrayRef<float> expected,
                           double floor) {
  if (actual.size() != expected.size())
    return std::numeric_limits<double>::infinity();
  double largest = floor, error = 0;
  for (auto [left, right] : llvm::zip_equal(actual, expected)) {
    if (!std::isfinite(left) || !std::isfinite(right))
      return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::fabs(double(right)));
    error = std::max(error, std::fabs(double(left) - double(right)));
  }
  return largest == 0 ? error : error / largest;
}

double kas::test::getCancellationFloor(OperatorOp concrete, Inputs inputs) {
  auto dropSigns = [](std::vector<float> &values) {
    for (float &value : values)
      value = std::fabs(value);
  };
  dropSigns(inputs.data);
  llvm::for_each(inputs.weights, dropSigns);
  std::vector<float> output = evaluate(concrete, inputs);
  return *llvm::max_element(output) / 100;
}

std::vector<float> kas::test::perturb(ArrayRef<float> values) {
  std::vector<float> near(values);
  for (auto [index, value] : llvm::enumerate(near))
    value *= index % 2 ? 1 + 1e-6f : 1 - 1e-6f;
  return near;
}
