//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels for the tests of tuning.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_UNITTESTS_TUNING_TUNINGMODULES_H
#define KAS_UNITTESTS_TUNING_TUNINGMODULES_H

#include "kas/Codegen/CPU/Strategy/ScheduleSpace.h"
#include "kas/Conversion/KasToAffine.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Tuning/Task.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

namespace kas {

/// A context that workers may be forked from.
inline std::unique_ptr<mlir::MLIRContext> makeTuningContext() {
  mlir::DialectRegistry registry;
  registerCPUPipelineDialects(registry);
  registry.insert<KasDialect, KasCPUDialect>();
  registerBufferizableOpInterfaceExternalModels(registry);
  return std::make_unique<mlir::MLIRContext>(
      registry, mlir::MLIRContext::Threading::DISABLED);
}

inline std::string makeMatmul(int64_t m, int64_t n, int64_t k) {
  return llvm::formatv(R"(
func.func @forward(%x: tensor<{0}x{2}xf32>, %w: tensor<{2}x{1}xf32>)
    -> tensor<{0}x{1}xf32> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{0}x{1}xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<{0}x{1}xf32>)
    -> tensor<{0}x{1}xf32>
  %y = linalg.matmul ins(%x, %w : tensor<{0}x{2}xf32>, tensor<{2}x{1}xf32>)
    outs(%init : tensor<{0}x{1}xf32>) -> tensor<{0}x{1}xf32>
  return %y : tensor<{0}x{1}xf32>
})",
                       m, n, k);
}

/// A 3x3 convolution of a padded image, with a bias and a rectifier.
inline std::string makeConvolution(int64_t inputs, int64_t outputs,
                                   int64_t size, int64_t stride) {
  return llvm::formatv(R"(
#map = affine_map<(a, b, c, d) -> (a, b, c, d)>
func.func @forward(%x: tensor<1x{0}x{2}x{2}xf32>,
    %w: tensor<{1}x{0}x3x3xf32>, %b: tensor<{1}xf32>)
    -> tensor<1x{1}x{4}x{4}xf32> {{
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {{
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x{0}x{2}x{2}xf32> to tensor<1x{0}x{3}x{3}xf32>
  %empty = tensor.empty() : tensor<1x{1}x{4}x{4}xf32>
  %init = linalg.broadcast ins(%b : tensor<{1}xf32>)
    outs(%empty : tensor<1x{1}x{4}x{4}xf32>) dimensions = [0, 2, 3]
  %y = linalg.conv_2d_nchw_fchw {{dilations = dense<1> : vector<2xi64>,
    strides = dense<{5}> : vector<2xi64>}
    ins(%p, %w : tensor<1x{0}x{3}x{3}xf32>, tensor<{1}x{0}x3x3xf32>)
    outs(%init : tensor<1x{1}x{4}x{4}xf32>) -> tensor<1x{1}x{4}x{4}xf32>
  %r = linalg.generic {{indexing_maps = [#map, #map],
    iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%y : tensor<1x{1}x{4}x{4}xf32>)
    outs(%empty : tensor<1x{1}x{4}x{4}xf32>) {{
  ^bb0(%in: f32, %out: f32):
    %m = arith.maximumf %in, %zero : f32
    linalg.yield %m : f32
  } -> tensor<1x{1}x{4}x{4}xf32>
  return %r : tensor<1x{1}x{4}x{4}xf32>
})",
                       inputs, outputs, size, size + 2,
                       (size + stride - 1) / stride, stride);
}

/// A depthwise convolution without padding.
inline std::string makeDepthwise(int64_t channels, int64_t size) {
  return llvm::formatv(R"(
func.func @forward(%x: tensor<1x{0}x{1}x{1}xf32>, %w: tensor<{0}x3x3xf32>)
    -> tensor<1x{0}x{2}x{2}xf32> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x{0}x{2}x{2}xf32>
  %init = linalg.fill ins(%zero : f32)
    outs(%empty : tensor<1x{0}x{2}x{2}xf32>) -> tensor<1x{0}x{2}x{2}xf32>
  %y = linalg.depthwise_conv_2d_nchw_chw {{dilations = dense<1> : vector<2xi64>,
    strides = dense<1> : vector<2xi64>}
    ins(%x, %w : tensor<1x{0}x{1}x{1}xf32>, tensor<{0}x3x3xf32>)
    outs(%init : tensor<1x{0}x{2}x{2}xf32>) -> tensor<1x{0}x{2}x{2}xf32>
  return %y : tensor<1x{0}x{2}x{2}xf32>
})",
                       channels, size, size - 2);
}

/// An operator on channels and a line.
inline std::string makeOperator(int64_t inputs, int64_t outputs, int64_t size) {
  return llvm::formatv(R"(
kas.operator @conv1d<N, Cin, Cout, W | k>
    (%n: N, %o: Cout, %w: W) from [N, Cin, W] {{
  %c = kas.reduce sum : Cin
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %j_d, %j_w = kas.share %j : k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_d, %x) weight(%o, %c_w, %j_w)
}
func.func @forward(%x: tensor<1x{0}x{2}xf32>, %w: tensor<{1}x{0}x3xf32>)
    -> tensor<1x{1}x{2}xf32> {{
  %y = kas.apply @conv1d<k = 3>(%x, %w)
    : (tensor<1x{0}x{2}xf32>, tensor<{1}x{0}x3xf32>) -> tensor<1x{1}x{2}xf32>
  return %y : tensor<1x{1}x{2}xf32>
})",
                       inputs, outputs, size);
}

/// The module and its kernels.
struct TuningModule {
  TuningModule(mlir::MLIRContext &context, llvm::StringRef text) {
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text.str();
    llvm::cantFail(device->prepare(*module));
    function = module->lookupSymbol<mlir::func::FuncOp>("forward");
    tasks = llvm::cantFail(findTasks(function, *device));
  }
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  std::vector<tuning::TuningTask> tasks;
  std::unique_ptr<tuning::TuningDevice> device = tuning::makeCPUTuningDevice();

  /// The CPU's space of the first kernel.
  ScheduleSpace getSpace() {
    return llvm::cantFail(codegen::getScheduleSpace(tasks.front().anchor));
  }
};

} // namespace kas

#endif // KAS_UNITTESTS_TUNING_TUNINGMODULES_H
