//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which pass lowers an operation that the pipeline does not take, for its error
// message.
//
//===----------------------------------------------------------------------===//

#include "LoweringHints.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

// By operation first, then by dialect. Nothing for dialects whose operations
// the pipeline takes: there the type or form is what is wrong.
std::string kas::codegen::getLoweringHint(Operation *op) {
  StringRef name = op->getName().getStringRef();
  StringRef pass = llvm::StringSwitch<StringRef>(name)
                       // What a conversion left between two type systems.
                       .Case("builtin.unrealized_conversion_cast",
                             "-reconcile-unrealized-casts, after what made it,")
                       .Case("builtin.module", "a run on that module alone")
                       .Default("");
  if (pass.empty())
    pass = llvm::StringSwitch<StringRef>(op->getName().getDialectNamespace())
               .Case("async", "-async-to-async-runtime")
               .Case("complex", "-convert-complex-to-standard")
               // Functions on tensors take the GPU's own pipeline, launches a
               // conversion.
               .Case("gpu", "-gpu-to-llvm, or -kas-nvvm-pipeline for functions "
                            "on tensors,")
               .Case("mhlo", "-mhlo-legalize-to-linalg of MLIR-HLO")
               .Case("ml_program", "-mlprogram-pipeline-globals")
               .Case("onnx", "onnx-mlir, or kas.onnx on the model,")
               .Case("quant", "-lower-quant-ops -strip-func-quant-types")
               .Case("shape", "-convert-shape-to-std")
               .Case("sparse_tensor", "-sparsifier")
               .Case("stablehlo", "-stablehlo-legalize-to-linalg of StableHLO")
               .Case("tf", "the TensorFlow importer")
               .Case("torch",
                     "-torch-backend-to-linalg-on-tensors-backend-pipeline of "
                     "torch-mlir")
               .Case("tosa", "another form of it: static shapes, or the "
                             "operations it stands for,")
               .Case("transform", "-transform-interpreter")
               // `vector` is lowered but for transfers of several dimensions.
               .Case("vector", "-convert-vector-to-scf")
               .Default("");
  return pass.empty() ? "" : ("; " + pass + " lowers it").str();
}
