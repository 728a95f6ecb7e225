//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SiteReference.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace kas;
using namespace kas::test;
using namespace mlir;

Value kas::test::getData(linalg::Conv2DNchwFchwOp op) {
  Value image = op.getInputs()[0];
  auto pad = image.getDefiningOp<tensor::PadOp>();
  return pad ? pad.getSource() : image;
}

Layer kas::test::getLayer(linalg::Conv2DNchwFchwOp op, KernelOp kernel) {
  auto site = op->getAttrOfType<DictionaryAttr>("kas.site");
  auto from = cast<RankedTensorType>(getData(op).getType());
  auto to = cast<RankedTensorType>(op.getResult(0).getType());
  Layer layer;
  layer.name = site.getAs<StringAttr>("name").str();
  layer.binding = site.getAs<IntegerAttr>("binding").getInt();
  layer.inputs = from.getDimSize(1);
  layer.outputs = to.getDimSize(1);
  layer.size = from.getDimSize(2);
  layer.stride = layer.size / to.getDimSize(2);
  layer.window = cast<ShapedType>(op.getInputs()[1].getType()).getDimSize(2);
  layer.channels = getSizeRules(kernel).bindings[layer.binding][0];
  layer.copies = std::max(layer.inputs, layer.outputs) / layer.channels;
  return layer;
}

std::vector<ArrayRef<float>> kas::test::getWeights(const Layer &layer,
                                                   const Arguments &arguments) {
  std::vector<ArrayRef<float>> weights;
  for (unsigned number = 0;; ++number) {
    auto found =
        arguments.find(layer.name + ".weight." + std::to_string(number));
    if (found == arguments.end())
      return weights;
    weights.push_back(found->second);
  }
}

bool kas::test::isFinite(ArrayRef<float> values) {
  return llvm::all_of(values, [](float value) { return std::isfinite(value); });
}

/// `finite`, `inf`, `-inf` or `nan`.
static const char *getKind(float value) {
  if (std::isfinite(value))
    return "finite";
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

std::string kas::test::compareKinds(ArrayRef<float> actual,
                                    ArrayRef<float> expected) {
  if (actual.size() != expected.size())
    return "other sizes";
  unsigned numDifferent = 0;
  std::string first;
  for (size_t i = 0; i < actual.size(); ++i)
    if (StringRef(getKind(actual[i])) != getKind(expected[i]) &&
        numDifferent++ == 0)
      first = "at " + std::to_string(i) + " " + std::to_string(actual[i]) +
              " for " + std::to_string(expected[i]);
  if (numDifferent > 0)
    first += ", " + std::to_string(numDifferent) + " of " +
             std::to_string(actual.size());
  return first;
}

std::vector<float> kas::test::evaluateSite(KernelOp kernel, const Layer &layer,
                                           ArrayRef<float> input,
                                           ArrayRef<ArrayRef<float>> weights,
                                           StepPrecision precision) {
  int64_t size = layer.getOutputSize(), points = size * size;
  std::vector<float> pooled;
  for (int64_t c = 0; c < layer.inputs; ++c)
    for (int64_t h = 0; h < size; ++h)
      for (int64_t w = 0; w < size; ++w) {
        double sum = 0;
        for (int64_t i = 0; i < layer.stride; ++i)
          for (int64_t j = 0; j < layer.stride; ++j)
            sum += input[(c * layer.size + h * layer.stride + i) * layer.size +
                         w * layer.stride + j];
        pooled.push_back(float(sum / double(layer.stride * layer.stride)));
      }
  Binding binding = getSizeRules(kernel).bindings[layer.binding];
  auto emitError = [&] { return kernel.emitError(); };
  FailureOr<KernelShapes> shapes = getShapes(kernel, binding, emitError);
  if (failed(shapes))
    return {};
  int64_t numBlocks = layer.inputs / layer.channels;
  int64_t block = layer.channels * points, numWeights = shapes->weights.size();
  int64_t numResults = layer.outputs / layer.channels;
  std::vector<double> sums(layer.outputs * points, 0);
  std::vector<int> counts(numResults, 0);
  for (int64_t copy = 0; copy < layer.copies; ++copy) {
    SmallVector<ReferenceTensor> given;
    for (int64_t i = 0; i < numWeights; ++i)
      given.push_back({shapes->weights[i], weights[copy * numWeights + i]});
    std::vector<float> output(block);
    ArrayRef<float> part =
        ArrayRef(pooled).slice(copy % numBlocks * block, block);
    if (failed(evaluateKernel(kernel, binding, {{shapes->inputs[0], part}},
                              given, output, emitError, precision)))
      return {};
    int64_t place = copy % numResults;
    ++counts[place];
    for (int64_t i = 0; i < block; ++i)
      sums[place * block + i] += output[i];
  }
  std::vector<float> result;
  for (size_t i = 0; i < sums.size(); ++i)
    result.push_back(float(sums[i] / counts[i / block]));
  return result;
}
