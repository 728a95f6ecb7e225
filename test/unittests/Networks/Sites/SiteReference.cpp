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
using namespace kas::reference;
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

std::vector<ArrayRef<float>> kas::test::getWeights(const std::string &name,
                                                   const Arguments &arguments) {
  std::vector<ArrayRef<float>> weights;
  for (unsigned number = 0;; ++number) {
    auto found = arguments.find(name + ".weight." + std::to_string(number));
    if (found == arguments.end())
      return weights;
    weights.push_back(found->second);
  }
}

bool kas::test::isFinite(ArrayRef<float> values) {
  return llvm::all_of(values, [](float value) { return std::isfinite(value); });
}

bool kas::test::isSameKind(ArrayRef<float> actual, ArrayRef<float> expected) {
  return llvm::all_of_zip(actual, expected, [](float a, float e) {
    return std::isfinite(a) == std::isfinite(e);
  });
}

std::vector<float> kas::test::evaluateCopies(KernelOp kernel,
                                             const Copies &copies,
                                             ArrayRef<float> input,
                                             ArrayRef<ArrayRef<float>> weights,
                                             StepPrecision precision) {
  Binding binding = getSizeRules(kernel).bindings[copies.binding];
  auto emitError = [&] { return kernel.emitError(); };
  FailureOr<KernelShapes> shapes = getShapes(kernel, binding, emitError);
  if (failed(shapes))
    return {};
  int64_t numBlocks = copies.inputs / copies.channels;
  int64_t block = copies.channels * copies.points;
  int64_t numWeights = shapes->weights.size();
  int64_t numResults = copies.outputs / copies.channels;
  std::vector<double> sums(copies.outputs * copies.points, 0);
  std::vector<int> counts(numResults, 0);
  for (int64_t copy = 0; copy < copies.count; ++copy) {
    SmallVector<ReferenceTensor> given;
    for (int64_t i = 0; i < numWeights; ++i)
      given.push_back({shapes->weights[i], weights[copy * numWeights + i]});
    std::vector<float> output(block);
    ArrayRef<float> part = input.slice(copy % numBlocks * block, block);
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
  return evaluateCopies(kernel,
                        {layer.inputs, layer.outputs, layer.channels,
                         layer.copies, points, layer.binding},
                        pooled, weights, precision);
}
