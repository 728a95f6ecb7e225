//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elementwise operations on tensors, such as those of arith and math: the
// verifier says which types they take.
//
//===----------------------------------------------------------------------===//

#include "OperationCase.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstdlib>

using namespace kas::pipelines;
using namespace mlir;

namespace {
/// The elements of operands and results.
struct Signature {
  std::vector<std::string> operands, results;
};
} // namespace

static constexpr llvm::StringLiteral elements[] = {
    "f32", "f64", "f16", "bf16", "i32", "i64", "i16", "i8", "i1", "index"};

static std::vector<Signature> getSignatures() {
  std::vector<Signature> all;
  auto add = [&](std::vector<std::string> operands,
                 std::vector<std::string> results) {
    all.push_back({std::move(operands), std::move(results)});
  };
  for (StringRef element : elements) {
    std::string e = element.str();
    for (StringRef result : elements)
      add({e}, {result.str()});
    add({e}, {e, e});
    add({e, e}, {e});
    add({e, e}, {"i1"});
    add({e, e}, {e, e});
    add({e, e}, {e, "i1"});
    add({e, e, e}, {e});
    add({"i1", e, e}, {e});
    add({e, "i32"}, {e});
  }
  return all;
}

static bool isFloat(StringRef element) {
  return element.starts_with("f") || element == "bf16";
}

static void setValues(OperationCase &made, const Signature &signature) {
  StringRef name = made.name;
  bool isMath = name.starts_with("math.");
  bool fromFloat = isFloat(signature.operands[0]),
       toFloat = isFloat(signature.results[0]);
  // Out of range, and by zero, nothing is defined.
  Fill fill =
      name.contains("div") || name.contains("rem") || name.contains("powi")
          ? Fill::NonZero
      : name.contains("sh")             ? Fill::Indices
      : !fromFloat                      ? Fill::Special
      : toFloat || !name.contains("to") ? Fill::Special
                                        : Fill::Fractions;
  if (fromFloat && isMath && toFloat)
    fill = Fill::Fractions;
  // Signs and shifts of what is shifted stay small, too.
  made.limit = 8;
  made.fills.assign(made.numArguments, fill);
  made.match = fromFloat && isMath && toFloat ? Match::Rounding : Match::Bits;
}

/// Of which upstream has no lowering, by others.
static std::string getReference(const OperationCase &made, StringRef shape,
                                StringRef element) {
  if (made.name == "math.isinf")
    return "  %f = math.isfinite %a0 : $0\n  %n = math.isnan %a0 : $0\n"
           "  %o = arith.ori %f, %n : $1\n"
           "  %t = arith.constant dense<true> : $1\n"
           "  %r = arith.xori %o, %t : $1";
  StringRef least = element == "f16"   ? "0x1p-14"
                    : element == "f64" ? "0x1p-1022"
                                       : "0x1p-126";
  if (made.name == "math.isnormal")
    return llvm::formatv("  %f = math.isfinite %a0 : $0\n"
                         "  %a = math.absf %a0 : $0\n"
                         "  %l = arith.constant dense<{0:E17}> : $0\n"
                         "  %g = arith.cmpf oge, %a, %l : $0\n"
                         "  %r = arith.andi %f, %g : $1",
                         std::strtod(least.data(), nullptr));
  std::string wide = ("tensor<" + shape + "i64>").str(),
              casts = "  %x = arith.index_cast %a0 : $0 to " + wide +
                      "\n  %y = arith.index_cast %a1 : $1 to " + wide + "\n";
  if (made.name == "math.ipowi" && element == "index")
    return casts + "  %p = math.ipowi %x, %y : " + wide +
           "\n  %r = arith.index_cast %p : " + wide + " to $2";
  if (made.name == "arith.addui_extended" && element == "index")
    return casts + "  %s, %r1 = arith.addui_extended %x, %y : " + wide +
           ", $3\n  %r0 = arith.index_cast %s : " + wide + " to $2";
  return "";
}

std::vector<OperationCase>
kas::pipelines::makeElementwiseCases(OperationRunner &runner, StringRef dialect,
                                     std::mt19937_64 &random) {
  std::vector<OperationCase> cases;
  MLIRContext &context = runner.getContext();
  std::vector<Signature> signatures = getSignatures();
  for (const std::string &name : getOperationNames(context, dialect)) {
    auto operation = *RegisteredOperationName::lookup(name, &context);
    if (!operation.hasTrait<OpTrait::Elementwise>())
      continue;
    std::string attributes =
        StringRef(name).contains("cmp")
            ? " <{predicate = " + std::to_string(draw(random, 1, 9)) +
                  " : i64}>"
            : "";
    for (const Signature &signature : signatures) {
      int64_t rows = draw(random, 1, 3), columns = draw(random, 1, 40);
      std::string shape =
          std::to_string(rows) + "x" + std::to_string(columns) + "x";
      OperationCase made;
      made.name = name;
      std::string operands, types, results;
      for (const std::string &element : signature.operands) {
        std::string n = std::to_string(made.types.size());
        operands += (operands.empty() ? "%a" : ", %a") + n;
        types += (types.empty() ? "$" : ", $") + n;
        made.types.push_back(shape + element);
        made.variant += element + " ";
      }
      made.numArguments = made.types.size();
      made.variant += "->";
      for (const std::string &element : signature.results) {
        results +=
            (results.empty() ? "$" : ", $") + std::to_string(made.types.size());
        made.results.push_back(made.types.size());
        made.types.push_back(shape + element);
        made.variant += " " + element;
      }
      bool isSingle = signature.results.size() == 1;
      std::string text = "\"" + name + "\"(" + operands + ")" + attributes +
                         " : (" + types + ") -> (" + results + ")";
      made.body = isSingle
                      ? "  %r = " + text
                      : "  %r:2 = " + text + "\n  %r0 = tensor.cast %r#0 : $" +
                            std::to_string(made.results[0]) + " to $" +
                            std::to_string(made.results[0]) +
                            "\n  %r1 = tensor.cast %r#1 : $" +
                            std::to_string(made.results[1]) + " to $" +
                            std::to_string(made.results[1]);
      setValues(made, signature);
      made.reference = getReference(made, shape, signature.operands[0]);
      if (runner.isValid(made, Form::Static))
        cases.push_back(std::move(made));
    }
  }
  return cases;
}
