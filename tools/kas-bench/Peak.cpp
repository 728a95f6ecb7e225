//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Peak.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

using namespace kas;

/// Twelve accumulators hide the latency of the units of today's cores and fit
/// the registers of AVX2; narrower machines split the vectors.
static std::string makeModule() {
  constexpr unsigned accumulators = 12;
  std::string text = R"mlir(
func.func @peak(%x: tensor<16xf32>) -> tensor<16xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %count = arith.constant 5000 : index
  %padding = arith.constant 0.0 : f32
  %add = vector.transfer_read %x[%zero], %padding {in_bounds = [true]}
      : tensor<16xf32>, vector<16xf32>
  %factor = arith.constant dense<0.999> : vector<16xf32>
)mlir";
  auto list = [&](llvm::StringRef before, llvm::StringRef after) {
    std::string result;
    for (unsigned i = 0; i < accumulators; ++i)
      result += (llvm::Twine(i ? ", " : "") + before +
                 (before.empty() ? llvm::Twine() : llvm::Twine(i)) + after)
                    .str();
    return result;
  };
  std::string types = list("", "vector<16xf32>");
  text += "  %r:" + std::to_string(accumulators) +
          " = scf.for %i = %zero to %count step %one iter_args(" +
          list("%a", " = %add") + ") -> (" + types + ") {\n";
  for (unsigned i = 0; i < accumulators; ++i) {
    std::string n = std::to_string(i);
    text += "    %b" + n + " = vector.fma %a" + n +
            ", %factor, %add : vector<16xf32>\n";
  }
  text += "    scf.yield " + list("%b", "") + " : " + types + "\n  }\n";
  std::string sum = "%r#0";
  for (unsigned i = 1; i < accumulators; ++i) {
    std::string n = std::to_string(i);
    text += "  %s" + n + " = arith.addf " + sum + ", %r#" + n +
            " : vector<16xf32>\n";
    sum = "%s" + n;
  }
  return text + R"mlir(
  %empty = tensor.empty() : tensor<16xf32>
  %y = vector.transfer_write )mlir" +
         sum + R"mlir(, %empty[%zero] {in_bounds = [true]}
      : vector<16xf32>, tensor<16xf32>
  return %y : tensor<16xf32>
}
)mlir";
}

llvm::Expected<TimedFunction> kas::compilePeak(mlir::MLIRContext &context) {
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(makeModule(), &context, "peak");
  if (!module)
    return llvm::createStringError("the kernel of the peak does not parse");
  return TimedFunction::compile(*module, "peak", {});
}
