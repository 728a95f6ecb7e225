//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SiteReference.h"
#include "kas/Reference/KernelEvaluator.h"

using namespace kas;
using namespace kas::test;
using namespace mlir;

std::vector<float> kas::test::evaluateSite(KernelOp kernel, const Layer &layer,
                                           ArrayRef<float> input,
                                           ArrayRef<ArrayRef<float>> weights) {
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
                              given, output, emitError)))
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
