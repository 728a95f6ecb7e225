//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RandomOperations.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"

using namespace kas::fuzz;
using namespace mlir;

/// What operands and results are of.
static const char *const types[] = {"f32",           "i32",
                                    "index",         "i1",
                                    "tensor<4xf32>", "tensor<2x3xf32>",
                                    "tensor<?xf32>", "tensor<4xi32>",
                                    "tensor<f32>",   "tensor<*xf32>",
                                    "memref<4xf32>", "memref<2x3xf32>",
                                    "memref<?xf32>", "memref<4xi8>",
                                    "vector<4xf32>", "vector<2x3xf32>",
                                    "complex<f32>",  "!llvm.ptr",
                                    "i64",           "f16"};

static const char *const attributes[] = {
    "unit",
    "0 : i64",
    "1 : i32",
    "4611686018427387904 : i64",
    "-1 : i64",
    "1.0 : f32",
    "\"kas\"",
    "@forward",
    "@nothing",
    "[]",
    "[0, 1]",
    "array<i64: 0>",
    "array<i64: 1, 1>",
    "array<i32: 1, 0>",
    "dense<1> : tensor<1xi64>",
    "dense<2.0> : tensor<4xf32>",
    "affine_map<(i) -> (i)>",
    "[affine_map<(i) -> (i)>, affine_map<(i) -> (i)>]",
    "f32",
    "tensor<4xf32>",
    "{}",
    "#arith.fastmath<fast>"};

namespace {
/// A value of the function, by its place among those of its type.
struct Pool {
  /// The number of arguments; `%a<i>` is of `types[i]`.
  static constexpr size_t size = std::size(types);
};
} // namespace

static size_t below(std::mt19937_64 &random, size_t bound) {
  return bound ? random() % bound : 0;
}

static std::string openFunction(const std::string &name) {
  std::string text = "func.func @" + name + "(";
  for (size_t i = 0; i < Pool::size; ++i)
    text += (i ? ", %a" : "%a") + std::to_string(i) + ": " + types[i];
  return text + ") {\n";
}

static std::string drawOperation(MLIRContext &context, std::mt19937_64 &random,
                                 const std::string &name) {
  size_t type = below(random, Pool::size);
  std::vector<std::string> operands, operandTypes;
  for (size_t i = below(random, 5) % 4; i > 0; --i) {
    // Most operations are of one type.
    size_t chosen = below(random, 3) ? type : below(random, Pool::size);
    operands.push_back("%a" + std::to_string(chosen));
    operandTypes.push_back(types[chosen]);
  }
  std::string result;
  if (below(random, 5))
    result = below(random, 4) ? types[type] : types[below(random, Pool::size)];
  std::vector<std::string> fields;
  OperationName info(name, &context);
  for (StringAttr attribute : info.getAttributeNames())
    if (below(random, 2))
      fields.push_back("\"" + attribute.str() + "\" = " +
                       attributes[below(random, std::size(attributes))]);
  std::string text = "  \"" + name + "\"(" + llvm::join(operands, ", ") + ")";
  if (below(random, 10) == 0)
    text += " ({\n  ^bb0:\n  })";
  if (!fields.empty())
    text += " {" + llvm::join(fields, ", ") + "}";
  return text + " : (" + llvm::join(operandTypes, ", ") + ") -> (" + result +
         ")\n";
}

std::string RandomOperations::makeFunction(MLIRContext &context,
                                           std::mt19937_64 &random,
                                           const std::string &name,
                                           unsigned trials) {
  if (names.empty())
    for (RegisteredOperationName op : context.getRegisteredOperations())
      if (op.getDialectNamespace() != "builtin")
        names.push_back(op.getStringRef().str());
  std::string body;
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) {});
  ParserConfig config(&context);
  const std::string end = "  func.return\n}\n";
  for (unsigned i = 0; i < trials; ++i) {
    std::string op =
        drawOperation(context, random, names[below(random, names.size())]);
    if (parseSourceString<ModuleOp>(openFunction(name) + op + end, config))
      body += op;
  }
  return openFunction(name) + body + end;
}
