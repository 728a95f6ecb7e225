//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names of outputs, reductions and weights in exported texts, and affine
// expressions as code.
// Formula, loop nest and PyTorch module of one operator name their loops alike,
// so that the three can be compared line by line.
//
//===----------------------------------------------------------------------===//

#include "Names.h"
#include "PyTorch.h"
#include "kas/Support/CNames.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace kas;
using namespace kas::target;
using namespace mlir;

namespace {
/// Gives out names, each once. Symbols of the operator and keywords of C and
/// Python are taken from the start.
class NamePool {
public:
  explicit NamePool(OperatorOp op) {
    for (ArrayAttr symbols : {op.getPrimaries(), op.getCoefficients()})
      for (StringAttr symbol : symbols.getAsRange<StringAttr>())
        taken.insert(symbol.getValue());
    // What else the texts mention.
    for (StringRef name :
         {"data", "exists", "floordiv", "floormod", "shape", "sum"})
      taken.insert(name);
  }

  bool take(StringRef name) {
    return !isCKeyword(name) && !isTorchKeyword(name) && !isNumbered(name) &&
           taken.insert(name).second;
  }

  /// `o0`, `o1`, ...: the first that is free.
  std::string takeNumbered(StringRef prefix) {
    for (unsigned number = 0;; ++number)
      if (std::string name = (prefix + Twine(number)).str(); take(name))
        return name;
  }

private:
  /// `weight0`, `value2`, `exists2`.
  static bool isNumbered(StringRef name) {
    StringRef number = name;
    return (number.consume_front("weight") || number.consume_front("value") ||
            number.consume_front("exists")) &&
           llvm::all_of(number, llvm::isDigit);
  }

  llvm::StringSet<> taken;
};
} // namespace

/// `h` for an output of size H, `c` for C/g; numbers where the letter is taken.
static std::string nameOutput(Value output, NamePool &pool) {
  SizeAttr size = getSize(output);
  // The coefficients of a size are in small letters, as a rule.
  for (StringAttr symbol : size.getNames()) {
    std::string name = symbol.getValue().lower();
    // A symbol in small letters would be taken for itself.
    if (name != symbol.getValue() && pool.take(name))
      return name;
  }
  return pool.takeNumbered("o");
}

llvm::MapVector<Value, std::string> kas::target::nameLoops(OperatorOp op) {
  NamePool pool(op);
  llvm::MapVector<Value, std::string> names;
  for (Value output : op.getOutputs())
    names[output] = nameOutput(output, pool);
  // k and n are left out: operators call kernel sizes and batches so.
  static constexpr StringRef letters[] = {"i", "j", "l", "m", "p", "q", "r"};
  for (ReduceOp reduce : getReductions(op)) {
    const StringRef *letter = llvm::find_if(
        letters, [&](StringRef candidate) { return pool.take(candidate); });
    names[reduce.getResult()] =
        letter == std::end(letters) ? pool.takeNumbered("r") : letter->str();
  }
  return names;
}

/// `W` alone, `W1` and `W2` of several.
std::string kas::target::nameWeight(OperatorOp op, unsigned index) {
  return op.getNumWeights() == 1 ? "W" : "W" + std::to_string(index + 1);
}

namespace {
/// Affine expressions in the syntax of C or Python, with as few parentheses as
/// precedence allows.
class ExprPrinter {
public:
  ExprPrinter(ArrayRef<std::string> names, ArrayRef<Interval> ranges,
              ExprSyntax syntax)
      : names(names), ranges(ranges), syntax(syntax) {}

  /// `precedence`: 0 for a sum, 1 for a factor.
  std::string print(AffineExpr expr, unsigned precedence) {
    if (auto constant = dyn_cast<AffineConstantExpr>(expr))
      return constant.getValue() < 0 && precedence > 0
                 ? "(" + std::to_string(constant.getValue()) + ")"
                 : std::to_string(constant.getValue());
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      return names[dim.getPosition()];
    // Operators have no symbols of affine maps.
    auto binary = cast<AffineBinaryOpExpr>(expr);
    if (expr.getKind() == AffineExprKind::Add) {
      std::string sum = printSum(binary);
      return precedence > 0 ? "(" + sum + ")" : sum;
    }
    if (expr.getKind() == AffineExprKind::Mul) {
      std::string product =
          // MLIR keeps constants on the right; `2 * i` is read more easily than
          // `i * 2`.
          print(binary.getRHS(), 1) + " * " + print(binary.getLHS(), 1);
      return precedence > 0 ? "(" + product + ")" : product;
    }
    bool isDivision = expr.getKind() == AffineExprKind::FloorDiv;
    // Python's // and % round down by themselves; C's do so for numbers that
    // are not negative.
    if (syntax == ExprSyntax::C &&
        getInterval(binary.getLHS(), ranges).lower < 0)
      return std::string(isDivision ? "floordiv(" : "floormod(") +
             print(binary.getLHS(), 0) + ", " + print(binary.getRHS(), 0) + ")";
    std::string quotient = print(binary.getLHS(), 1) +
                           (!isDivision               ? " % "
                            : syntax == ExprSyntax::C ? " / "
                                                      : " // ") +
                           print(binary.getRHS(), 1);
    return precedence > 0 ? "(" + quotient + ")" : quotient;
  }

private:
  /// MLIR has no subtraction: `a + b * -1` is printed as `a - b`.
  std::string printSum(AffineBinaryOpExpr sum) {
    std::string left = print(sum.getLHS(), 0);
    AffineExpr right = sum.getRHS();
    if (auto constant = dyn_cast<AffineConstantExpr>(right);
        constant && constant.getValue() < 0)
      return left + " - " + std::to_string(-constant.getValue());
    if (auto product = dyn_cast<AffineBinaryOpExpr>(right);
        product && product.getKind() == AffineExprKind::Mul)
      if (auto factor = dyn_cast<AffineConstantExpr>(product.getRHS());
          factor && factor.getValue() < 0) {
        std::string value = print(product.getLHS(), 1);
        return left + " - " +
               (factor.getValue() == -1
                    ? value
                    : std::to_string(-factor.getValue()) + " * " + value);
      }
    return left + " + " + print(right, 0);
  }

  ArrayRef<std::string> names;
  ArrayRef<Interval> ranges;
  ExprSyntax syntax;
};
} // namespace

std::string kas::target::printExpr(AffineExpr expr, ArrayRef<std::string> names,
                                   ArrayRef<Interval> ranges,
                                   ExprSyntax syntax) {
  return ExprPrinter(names, ranges, syntax).print(expr, 0);
}
