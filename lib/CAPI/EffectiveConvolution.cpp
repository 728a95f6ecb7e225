//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface to an operator's effective convolution
// (Dialect/Kas/Analysis): its windows and its weights, as JSON.
// `KasModule(backend="effective")` builds layers of PyTorch from it: operators
// whose weights combine to those of one convolution can be computed as such
// (docs/internals/rationale/effective-weights.md). The JSON has the fields of
// `EffectiveConvolution`.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Analysis/EffectiveConvolution.h"
#include "Handles.h"
#include "llvm/Support/JSON.h"

using namespace kas;
using namespace mlir;

/// `exists` is null where all elements exist, which is the usual case.
static void write(llvm::json::OStream &writer,
                  const EffectiveConvolution &convolution) {
  // How far each dimension of the data is rolled before the convolution.
  writer.attribute("rolls", llvm::json::Array(convolution.rolls));
  // Pairs of dimensions that data and output share.
  writer.attributeArray("batch", [&] {
    for (auto [data, output] : convolution.batch)
      writer.value(llvm::json::Array{data, output});
  });
  writer.attribute("data_channels",
                   llvm::json::Array(convolution.dataChannels));
  writer.attribute("output_channels",
                   llvm::json::Array(convolution.outputChannels));
  writer.attributeArray("windows", [&] {
    for (const EffectiveWindow &window : convolution.windows)
      writer.value(llvm::json::Object{{"data", window.data},
                                      {"output", window.output},
                                      {"stride", window.stride},
                                      {"dilation", window.dilation},
                                      {"size", window.size},
                                      {"first", window.first}});
  });
  writer.attribute("inputs", convolution.numInputs);
  writer.attribute("outputs", convolution.numOutputs);
  writer.attribute("groups", convolution.groups);
  writer.attribute("terms", convolution.numTerms);
  // Means divide the sum of terms.
  writer.attribute("divisor", convolution.divisor);
  if (llvm::is_contained(convolution.exists, 0))
    writer.attributeArray("exists", [&] {
      for (uint8_t exists : convolution.exists)
        writer.value(exists);
    });
  else
    writer.attribute("exists", nullptr);
  // For each weight: which of its elements each term multiplies.
  writer.attributeArray("elements", [&] {
    for (const std::vector<int64_t> &elements : convolution.elements)
      writer.array([&] {
        for (int64_t element : elements)
          writer.value(element);
      });
  });
}

/// `limit` bounds the elements that are written: the weights of a large layer
/// would be gigabytes of JSON.
bool kasOperatorGetEffectiveConvolution(KasModule *module, const char *name,
                                        const char *binding, int64_t limit,
                                        KasStream json,
                                        KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  // Windows and weights are numbers, so the operator must be concrete.
  OwningOpRef<ModuleOp> alone = access.specializeAlone(name, binding);
  if (!alone)
    return false;
  OperatorOp op = *alone->getOps<OperatorOp>().begin();
  FailureOr<EffectiveConvolution> convolution =
      getEffectiveConvolution(op, limit, [&] { return op.emitError(); });
  if (failed(convolution))
    return false;
  CallbackStream stream(json);
  llvm::json::OStream writer(stream);
  writer.object([&] { write(writer, *convolution); });
  return true;
}
